"""Token ids of the documents of one split, from which the rows of a shard are built.

Row builders see only the positions at which sentences start and end.
"""

from __future__ import annotations

from array import array
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from bioshards.vocab.encode import EncodedBatch, Encoder

Int64Array = np.ndarray[Any, np.dtype[np.int64]]


class _BlockTable(NamedTuple):
    """Documents and sentences of a block, as arrays.

    Attributes:
        document_ids: id of each document.
        edges: int64, position at which each sentence starts, and the end of the last one.
        sentence_numbers: int64, number of each sentence in its document, empty sentences counted.
        first_sentences: int64, shape (documents + 1,), index of each document's first sentence.
        edge_array: edges; numpy takes ten times as many instructions for a slice of a few integers.
        first_sentence_array: first_sentences.
    """

    document_ids: pa.Array
    edges: Int64Array
    sentence_numbers: Int64Array
    first_sentences: Int64Array
    edge_array: array[int]
    first_sentence_array: array[int]


class TokenBlock:
    """Sequence of the sentence edges of documents (objectives/rows.py), with ids and tokens.

    Sentences without tokens have no edges.

    Attributes:
        tokens: number of tokens of all documents.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._dtype: Final = np.dtype(np.uint16 if encoder.size <= 1 << 16 else np.uint32)
        special_ids = [
            encoder.special_ids["[CLS]"],
            encoder.special_ids["[SEP]"],
        ]  # objectives.rows.CLS_RANGE and SEP_RANGE
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
            document_ids: array of strings.
            sentence_counts: int64, number of sentences of each document.
            encoded: the sentences of all documents, in order.
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
            edges, sentence_numbers, first_sentences = (
                np.concatenate(parts)
                for parts in (self._edges, self._sentence_numbers, self._first_sentences)
            )
            self._cached_table = _BlockTable(
                document_ids,
                edges,
                sentence_numbers,
                first_sentences,
                array("q", edges.tobytes()),
                array("q", first_sentences.tobytes()),
            )
        return self._cached_table

    def __len__(self) -> int:
        return self._num_documents

    def __getitem__(self, document: int) -> array[int]:
        table = self._cached_table or self._get_table()
        first_sentences = table.first_sentence_array
        return table.edge_array[first_sentences[document] : first_sentences[document + 1] + 1]

    def get_sentence_numbers(self, documents: Int64Array, sentences: Int64Array) -> Int64Array:
        """Return the number of each sentence in its document, empty sentences counted."""
        table = self._get_table()
        sentence_numbers: Int64Array = table.sentence_numbers[table.first_sentences[documents] + sentences]
        return sentence_numbers

    def get_token_ids(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Return all token ids without a copy: [CLS], [SEP], then those of the documents."""
        return np.frombuffer(self._token_bytes, self._dtype)

    def get_document_ids(self) -> pa.Array:
        """Return the ids of the documents."""
        return self._get_table().document_ids
