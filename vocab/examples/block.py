"""Documents of one split in memory, as token ids: what a shard of examples is made of.

A builder of examples sees of them only where sentences begin and end.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa

from ..encode import Encoded, Encoder

Positions = np.ndarray[Any, np.dtype[np.int64]]


class Block:
    """A sequence of the documents' edges (rows.py), with their ids and the tokens themselves.

    Attributes:
        tokens: how many are in the documents.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._type: Final = np.dtype(np.uint16 if encoder.size <= 1 << 16 else np.uint32)
        special = [encoder.special["[CLS]"], encoder.special["[SEP]"]]  # rows.CLS and rows.SEP
        self._ids = bytearray(np.array(special, self._type).tobytes())
        self._documents: list[pa.Array] = []
        self._edges: list[Positions] = [np.full(1, len(special))]
        self._first_sentences: list[Positions] = [np.zeros(1, np.int64)]
        self._sentences = 0
        self.tokens = 0
        self._whole: tuple[Positions, Positions] | None = None

    def add(self, documents: pa.Array, sentences: Positions, encoded: Encoded) -> None:
        """Add documents.

        Args:
            documents: their ids.
            sentences: how many each has, all of which have been encoded in a row.
        """
        self._documents.append(documents)
        self._edges.append(encoded.offsets[1:] + (2 + self.tokens))
        self._first_sentences.append(np.cumsum(sentences) + self._sentences)
        self._sentences += len(encoded.offsets) - 1
        self._ids += memoryview(encoded.ids).cast("B")
        self.tokens += len(encoded.ids)
        self._whole = None

    def __len__(self) -> int:
        return sum(map(len, self._documents))

    def __getitem__(self, document: int) -> list[int]:
        if self._whole is None:
            self._whole = np.concatenate(self._first_sentences), np.concatenate(self._edges)
        first, edges = self._whole
        found: list[int] = edges[first[document] : first[document + 1] + 1].tolist()
        return found

    def ids(self) -> np.ndarray[Any, np.dtype[Any]]:
        """All token ids, [CLS] and [SEP] before the documents'; no copy."""
        return np.frombuffer(self._ids, self._type)

    def documents(self) -> pa.Array:
        """The documents' ids."""
        return pa.concat_arrays(self._documents) if self._documents else pa.array([], pa.string())
