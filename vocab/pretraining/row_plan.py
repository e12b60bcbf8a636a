"""Rows of a shard before they are written: the tokens of its documents, and rows planned on their positions.

A row takes about 150 bytes.  Tokens are copied once, while record batches of the sorted shard are made.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bioshards.corpus.shards.pretraining_schema import BATCH_ROWS, NO_LABEL
from bioshards.corpus.splitmix import GAMMA, mix
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining import objectives
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives import CLS_RANGE, SEP_RANGE, ExampleRow, TokenRange

Int64Array = np.ndarray[Any, np.dtype[np.int64]]
KeyArray = np.ndarray[Any, np.dtype[np.uint64]]
_CHUNK_ROWS: Final = 4096
"""Rows added to a plan at a time; a row takes about 1 kB until then."""


class TokenBlock:
    """Sequence of the sentence edges of documents (objectives.py), with ids and tokens.

    Sentences without tokens have no edges.
    """

    def __init__(self, encoder: Encoder) -> None:
        self._dtype: Final = np.dtype(np.uint16 if encoder.size <= 1 << 16 else np.uint32)
        specials = [encoder.special_ids["[CLS]"], encoder.special_ids["[SEP]"]]  # CLS_RANGE and SEP_RANGE
        self._token_bytes = bytearray(np.array(specials, self._dtype).tobytes())
        self._document_ids: list[pa.Array] = [pa.array([], pa.string())]
        # Of arrays a slice of a few integers takes a tenth of numpy's instructions.
        self._edges, self._first_sentences = array("q", [SEP_RANGE[1]]), array("q", [0])
        self.tokens = 0

    def add(self, document_ids: pa.Array, sentence_counts: Int64Array, encoded: EncodedBatch) -> None:
        """Add documents, given their ids, their numbers of sentences, and all sentences in order."""
        ends = np.cumsum(sentence_counts)
        has_tokens = np.diff(encoded.offsets) > 0
        first_sentences = np.concatenate([[0], np.cumsum(has_tokens)])[ends] + len(self._edges) - 1
        self._document_ids.append(document_ids)
        self._first_sentences.frombytes(first_sentences.tobytes())
        self._edges.frombytes((encoded.offsets[1:][has_tokens] + (SEP_RANGE[1] + self.tokens)).tobytes())
        self._token_bytes += encoded.ids.tobytes()
        self.tokens += len(encoded.ids)

    def __len__(self) -> int:
        return len(self._first_sentences) - 1

    def __getitem__(self, document: int) -> array[int]:
        first_sentences = self._first_sentences
        return self._edges[first_sentences[document] : first_sentences[document + 1] + 1]

    def get_token_ids(self) -> np.ndarray[Any, np.dtype[Any]]:
        """Return all token ids without a copy: [CLS], [SEP], then those of the documents."""
        return np.frombuffer(self._token_bytes, self._dtype)

    def get_document_ids(self) -> pa.Array:
        """Return the ids of the documents."""
        return pa.concat_arrays(self._document_ids)


def derive_row_keys(document_keys: KeyArray, row_numbers: np.ndarray[Any, np.dtype[Any]]) -> KeyArray:
    """Return the sort key of each row: 64 random bits of its document and its number there, by SplitMix64.

    Args:
        document_keys: uint64, the seed of each row (``objectives.derive_document_key``).
        row_numbers: integers of the same shape, the number of each row in its document and pass.
    """
    return mix(document_keys + GAMMA * (row_numbers.astype(np.uint64) + np.uint64(1)))


class RowPlan:
    """Rows of the documents of one block.

    Attributes:
        tokens: number of tokens in the rows, special tokens included.
        special_tokens: number of [CLS] and [SEP] tokens in the rows.
        lost_tokens: number of tokens in no row (``ExampleRow.lost_tokens``).
        other_document_tokens: number of tokens of random second segments.
    """

    def __init__(self, block: TokenBlock) -> None:
        self._block: Final = block
        self._ranges, self._range_ends = array("q"), array("q", [0])
        self._segment_b_starts, self._labels = array("H"), array("b")
        self._keys, self._row_numbers = array("Q"), array("Q")
        self.tokens = self.special_tokens = self.lost_tokens = self.other_document_tokens = 0

    def add_rows(self, rows: Sequence[ExampleRow], keys: Sequence[int], row_numbers: Sequence[int]) -> None:
        """Add rows, of which many at a time cost little each.

        Args:
            keys: key of the document and pass of each row.
            row_numbers: number of each row in its document and pass.
        """
        text_ranges: list[TokenRange] = []
        for row in rows:
            text_ranges += row.segment_a
            text_ranges += row.segment_b
        text = _pack_integers("q", list(chain.from_iterable(text_ranges)))
        counts_a = np.array([len(row.segment_a) for row in rows])
        counts_b = np.array([len(row.segment_b) for row in rows])
        ends = np.cumsum(2 + counts_a + np.where(counts_b, counts_b + 1, 0))
        starts = np.concatenate([[0], ends[:-1]])
        ranges = np.tile(np.array(SEP_RANGE), (ends[-1], 1))
        ranges[starts] = CLS_RANGE
        is_text = np.ones(len(ranges), np.bool_)
        is_text[starts] = is_text[starts + counts_a + 1] = is_text[ends - 1] = False
        ranges[is_text] = np.frombuffer(text, np.int64).reshape(-1, 2)
        offsets = np.cumsum(np.concatenate([[0], ranges[:, 1] - ranges[:, 0]]))
        segment_b_starts = np.where(counts_b, offsets[starts + counts_a + 2] - offsets[starts], 0)
        self._segment_b_starts.frombytes(_pack_integers("H", segment_b_starts.tolist()))
        self._range_ends.frombytes((ends + len(self._ranges) // 2).tobytes())
        self._ranges.frombytes(ranges.tobytes())
        self._labels.frombytes(_pack_integers("b", [row.label for row in rows]))
        self._keys.frombytes(_pack_integers("Q", keys))
        self._row_numbers.frombytes(_pack_integers("Q", row_numbers))
        self.tokens += int(offsets[-1])
        self.special_tokens += int((ranges[:, 0] <= SEP_RANGE[0]).sum())
        self.lost_tokens += sum([row.lost_tokens for row in rows])
        self.other_document_tokens += sum([row.other_document_tokens for row in rows])

    def __len__(self) -> int:
        return len(self._segment_b_starts)

    @property
    def unlabelled_rows(self) -> int:
        """Number of rows without a label."""
        return self._labels.count(NO_LABEL)

    def sort_by_key(self) -> Int64Array:
        """Return the row numbers in the order of their keys."""
        keys = derive_row_keys(
            np.frombuffer(self._keys, np.uint64), np.frombuffer(self._row_numbers, np.uint64)
        )
        return np.argsort(keys, kind="stable")

    def iter_batches(self, schema: pa.Schema, batch_rows: int = BATCH_ROWS) -> Iterator[pa.RecordBatch]:
        """Yield the rows in the order of their keys, in batches of a schema of ``make_schema``."""
        order = self.sort_by_key()
        ids = self._block.get_token_ids()
        ranges = np.frombuffer(self._ranges, np.int64).reshape(-1, 2)
        range_ends = np.frombuffer(self._range_ends, np.int64)
        segment_b_starts = np.frombuffer(self._segment_b_starts, np.uint16)
        labels = np.frombuffer(self._labels, np.int8)
        for start in range(0, len(order), batch_rows):
            rows = order[start : start + batch_rows]
            range_indices, range_offsets = _concat_ranges(range_ends[rows], range_ends[rows + 1])
            token_indices, token_offsets = _concat_ranges(*ranges[range_indices].T)
            columns = {
                "input_ids": pa.ListArray.from_arrays(
                    pa.array(token_offsets[range_offsets], pa.int32()),
                    pa.array(ids.take(token_indices)),
                    type=schema.field("input_ids").type,
                ),
                "split": pa.array(segment_b_starts[rows]),
                "label": pa.array(labels[rows]),
            }
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)


def _pack_integers(typecode: str, values: Sequence[int]) -> bytes:
    """Return the bytes of an array; ``array.extend`` takes five times as many instructions."""
    return struct.pack(f"{len(values)}{typecode}", *values)


def _concat_ranges(starts: Int64Array, stops: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the integers of all ranges, one range after another, and the offset of each range."""
    sizes = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes), offsets


def plan_rows(block: TokenBlock, recipe: ExampleRecipe, seed: int, num_passes: int) -> RowPlan:
    """Return the rows of all passes over a block.

    The rows that start with one document are numbered from 0 in each pass.
    """
    row_plan = RowPlan(block)
    document_ids = block.get_document_ids().to_pylist()
    for pass_number in range(num_passes):
        document_keys = [objectives.derive_document_key(seed, pass_number, name) for name in document_ids]
        document, row_number = -1, 0
        rows = objectives.build_rows(block, document_keys, recipe)
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            documents = [row.document for row in chunk]
            row_numbers: list[int] = []
            for next_document in documents:
                row_number = row_number + 1 if next_document == document else 0
                document = next_document
                row_numbers.append(row_number)
            row_plan.add_rows(chunk, [document_keys[document] for document in documents], row_numbers)
    return row_plan
