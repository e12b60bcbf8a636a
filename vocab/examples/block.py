"""Documents of one split in memory, as token ids: what a shard of examples is made of.

A builder of examples sees of them only where sentences begin and end.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from bioshards.vocab.encode import Encoded, Encoder

Positions = np.ndarray[Any, np.dtype[np.int64]]


class _Table(NamedTuple):
    """What is known of a block's documents and sentences, each in one array."""

    documents: pa.Array
    edges: Positions
    numbers: Positions
    firsts: Positions


class Block:
    """A sequence of the documents' edges (rows.py), with their ids and the tokens themselves.

    Sentences without tokens are left out of the edges.

    Attributes:
        tokens: how many are in the documents.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._type: Final = np.dtype(np.uint16 if encoder.size <= 1 << 16 else np.uint32)
        special = [encoder.special["[CLS]"], encoder.special["[SEP]"]]  # rows.CLS and rows.SEP
        self._ids = bytearray(np.array(special, self._type).tobytes())
        self._documents: list[pa.Array] = []
        self._edges: list[Positions] = [np.full(1, len(special))]
        self._numbers: list[Positions] = [np.zeros(0, np.int64)]
        self._firsts: list[Positions] = [np.zeros(1, np.int64)]
        self._length = self._sentences = 0
        self.tokens = 0
        self._made: _Table | None = None

    def add(self, documents: pa.Array, sentences: Positions, encoded: Encoded) -> None:
        """Add documents.

        Args:
            documents: their ids.
            sentences: how many each has, all of which have been encoded in a row.
        """
        ends = np.cumsum(sentences)
        numbers = np.arange(len(encoded.offsets) - 1) - np.repeat(ends - sentences, sentences)
        kept = np.diff(encoded.offsets) > 0
        self._documents.append(documents)
        self._length += len(documents)
        self._edges.append(encoded.offsets[1:][kept] + (2 + self.tokens))
        self._numbers.append(numbers[kept])
        self._firsts.append(np.concatenate([[0], np.cumsum(kept)])[ends] + self._sentences)
        self._sentences += int(kept.sum())
        self._ids += encoded.ids.tobytes()
        self.tokens += len(encoded.ids)
        self._made = None

    def _table(self) -> _Table:
        if self._made is None:
            documents = pa.concat_arrays(self._documents) if self._documents else pa.array([], pa.string())
            arrays = (np.concatenate(parts) for parts in (self._edges, self._numbers, self._firsts))
            self._made = _Table(documents, *arrays)
        return self._made

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, document: int) -> list[int]:
        table = self._made or self._table()
        first, end = table.firsts[document : document + 2].tolist()
        found: list[int] = table.edges[first : end + 1].tolist()
        return found

    def numbers(self, documents: Positions, sentences: Positions) -> Positions:
        """The sentences' numbers in their documents, those without tokens counted too."""
        table = self._table()
        found: Positions = table.numbers[table.firsts[documents] + sentences]
        return found

    def ids(self) -> np.ndarray[Any, np.dtype[Any]]:
        """All token ids, [CLS] and [SEP] before the documents'; no copy."""
        return np.frombuffer(self._ids, self._type)

    def documents(self) -> pa.Array:
        """The documents' ids."""
        return self._table().documents
