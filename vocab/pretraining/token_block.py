"""Documents of one split in memory, as token ids: what a shard of examples is made of.

A builder of examples sees of them only where sentences begin and end.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from bioshards.vocab.encode import EncodedBatch, Encoder

Int64Array = np.ndarray[Any, np.dtype[np.int64]]


class _BlockTable(NamedTuple):
    """What is known of a block's documents and sentences, each in one array."""

    document_ids: pa.Array
    edges: Int64Array
    sentence_numbers: Int64Array
    first_sentences: Int64Array


class TokenBlock:
    """A sequence of the documents' edges (rows.py), with their ids and the tokens themselves.

    Sentences without tokens are left out of the edges.

    Attributes:
        tokens: how many are in the documents.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._dtype: Final = np.dtype(np.uint16 if encoder.size <= 1 << 16 else np.uint32)
        special_ids = [encoder.special_ids["[CLS]"], encoder.special_ids["[SEP]"]]  # rows.CLS and rows.SEP
        self._token_bytes = bytearray(np.array(special_ids, self._dtype).tobytes())
        self._document_ids: list[pa.Array] = []
        self._edges: list[Int64Array] = [np.full(1, len(special_ids))]
        self._sentence_numbers: list[Int64Array] = [np.zeros(0, np.int64)]
        self._first_sentences: list[Int64Array] = [np.zeros(1, np.int64)]
        self._num_documents = self._num_sentences = 0
        self.tokens = 0
        self._cached_table: _BlockTable | None = None

    def add(self, document_ids: pa.Array, sentence_counts: Int64Array, encoded: EncodedBatch) -> None:
        """Add documents.

        Args:
            document_ids: their ids.
            sentence_counts: how many each has, all of which have been encoded in a row.
        """
        ends = np.cumsum(sentence_counts)
        sentence_numbers = np.arange(len(encoded.offsets) - 1) - np.repeat(
            ends - sentence_counts, sentence_counts
        )
        has_tokens = np.diff(encoded.offsets) > 0
        self._document_ids.append(document_ids)
        self._num_documents += len(document_ids)
        self._edges.append(encoded.offsets[1:][has_tokens] + (2 + self.tokens))
        self._sentence_numbers.append(sentence_numbers[has_tokens])
        self._first_sentences.append(np.concatenate([[0], np.cumsum(has_tokens)])[ends] + self._num_sentences)
        self._num_sentences += int(has_tokens.sum())
        self._token_bytes += encoded.ids.tobytes()
        self.tokens += len(encoded.ids)
        self._cached_table = None

    def _get_table(self) -> _BlockTable:
        if self._cached_table is None:
            document_ids = (
                pa.concat_arrays(self._document_ids) if self._document_ids else pa.array([], pa.string())
            )
            arrays = (
                np.concatenate(parts)
                for parts in (self._edges, self._sentence_numbers, self._first_sentences)
            )
            self._cached_table = _BlockTable(document_ids, *arrays)
        return self._cached_table

    def __len__(self) -> int:
        return self._num_documents

    def __getitem__(self, document: int) -> list[int]:
        table = self._cached_table or self._get_table()
        first, end = table.first_sentences[document : document + 2].tolist()
        edges: list[int] = table.edges[first : end + 1].tolist()
        return edges

    def get_sentence_numbers(self, documents: Int64Array, sentences: Int64Array) -> Int64Array:
        """The sentences' numbers in their documents, those without tokens counted too."""
        table = self._get_table()
        sentence_numbers: Int64Array = table.sentence_numbers[table.first_sentences[documents] + sentences]
        return sentence_numbers

    def get_token_ids(self) -> np.ndarray[Any, np.dtype[Any]]:
        """All token ids, [CLS] and [SEP] before the documents'; no copy."""
        return np.frombuffer(self._token_bytes, self._dtype)

    def get_document_ids(self) -> pa.Array:
        """The documents' ids."""
        return self._get_table().document_ids
