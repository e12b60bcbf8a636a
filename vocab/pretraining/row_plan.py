"""Rows of a shard before they are written, planned by the builder of their objective: ranges and order.

A row takes about 150 bytes.  Tokens are copied once, while record batches of the sorted shard are made.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import DTypeLike

from bioshards.corpus.shards.pretraining_schema import BATCH_ROWS, NO_LABEL, SPAN_TYPE
from bioshards.corpus.splitmix import GAMMA, mix
from bioshards.vocab.pretraining.objectives import electra_segments, plain_packing, sentence_pairs
from bioshards.vocab.pretraining.objectives.document_rng import DocumentRng, RandomSource, derive_document_key
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives.rows import (
    CLS_RANGE,
    SEP_RANGE,
    DocumentEdges,
    ExampleRow,
    TokenRange,
)
from bioshards.vocab.pretraining.token_block import Int64Array, TokenBlock

_CHUNK_ROWS: Final = 4096
"""Rows added to a plan at a time; a row takes about 1 kB until then."""
KeyArray = np.ndarray[Any, np.dtype[np.uint64]]


def derive_row_keys(document_keys: KeyArray, row_numbers: np.ndarray[Any, np.dtype[Any]]) -> KeyArray:
    """Return the sort key of each row: 64 random bits of its document and its number there, by SplitMix64.

    Args:
        document_keys: uint64, the seed of each row (``document_rng.derive_document_key``).
        row_numbers: integers of the same shape, the number of each row in its document and pass.
    """
    return mix(document_keys + GAMMA * (row_numbers.astype(np.uint64) + np.uint64(1)))


class RowPlan:
    """Rows of the documents of one block.

    Attributes:
        special_tokens: number of [CLS] and [SEP] tokens in the rows.
        lost_tokens: number of tokens in no row (``ExampleRow.lost_tokens``).
        other_document_tokens: number of tokens of random second segments.
    """

    def __init__(self, block: TokenBlock) -> None:
        self._block: Final = block
        self._ranges, self._range_ends = array("q"), array("q", [0])
        self._segment_b_starts, self._labels = array("H"), array("b")
        self._spans, self._span_ends = array("q"), array("q", [0])
        self._keys, self._row_numbers = array("Q"), array("Q")
        self.special_tokens = self.lost_tokens = self.other_document_tokens = 0

    def add_rows(self, rows: Sequence[ExampleRow], keys: Sequence[int], row_numbers: Sequence[int]) -> None:
        """Add rows, of which many at a time cost little each.

        Args:
            rows: a row or more.
            keys: key of the document and pass of each row.
            row_numbers: number of each row in its document and pass.
        """
        text_ranges: list[TokenRange] = []
        for row in rows:
            text_ranges += row.segment_a
            text_ranges += row.segment_b
        text = _pack_integers("q", list(chain.from_iterable(text_ranges)))
        counts_a, counts_b = (
            np.array([len(segment) for segment in segments])
            for segments in ([row.segment_a for row in rows], [row.segment_b for row in rows])
        )
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
        spans = [row.spans for row in rows]
        span_ends = np.cumsum([len(row_spans) for row_spans in spans])
        self._span_ends.frombytes((span_ends + len(self._spans) // 4).tobytes())
        span_values = chain.from_iterable(chain.from_iterable(spans))
        self._spans.frombytes(_pack_integers("q", list(span_values)))
        self._labels.frombytes(_pack_integers("b", [row.label for row in rows]))
        self._keys.frombytes(_pack_integers("Q", keys))
        self._row_numbers.frombytes(_pack_integers("Q", row_numbers))
        self.special_tokens += int((ranges[:, 0] <= SEP_RANGE[0]).sum())
        self.lost_tokens += sum([row.lost_tokens for row in rows])
        self.other_document_tokens += sum([row.other_document_tokens for row in rows])

    def __len__(self) -> int:
        return len(self._segment_b_starts)

    @property
    def unlabelled_rows(self) -> int:
        """Number of rows without a label."""
        return self._labels.count(NO_LABEL)

    @property
    def tokens(self) -> int:
        """Number of tokens of all rows, special tokens included."""
        ranges = _table_from_array(self._ranges, 2)
        return int((ranges[:, 1] - ranges[:, 0]).sum())

    def sort_by_key(self) -> tuple[Int64Array, KeyArray]:
        """Return the row numbers in the order of their keys, and the sorted keys."""
        keys = derive_row_keys(
            _numpy_from_array(self._keys, np.uint64), _numpy_from_array(self._row_numbers, np.uint64)
        )
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def iter_batches(
        self, order: Int64Array, schema: pa.Schema, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """Yield rows as record batches.

        Args:
            order: numbers of the rows, in the order to write.
            schema: schema of ``pretraining_schema.make_schema``.
            batch_rows: maximum number of rows of a batch.
        """
        ids = self._block.get_token_ids()
        ranges, spans = _table_from_array(self._ranges, 2), _table_from_array(self._spans, 4)
        range_ends, span_ends = (
            _numpy_from_array(self._range_ends, np.int64),
            _numpy_from_array(self._span_ends, np.int64),
        )
        segment_b_starts, labels = (
            _numpy_from_array(self._segment_b_starts, np.uint16),
            _numpy_from_array(self._labels, np.int8),
        )
        for start in range(0, len(order), batch_rows):
            rows = order[start : start + batch_rows]
            range_indices, _ = _concat_ranges(range_ends[rows], range_ends[rows + 1])
            sizes = ranges[range_indices, 1] - ranges[range_indices, 0]
            token_indices, _ = _concat_ranges(ranges[range_indices, 0], ranges[range_indices, 1])
            ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), sizes]))
            row_ends = np.concatenate(
                [np.zeros(1, np.int64), np.cumsum(range_ends[rows + 1] - range_ends[rows])]
            )
            span_indices, span_offsets = _concat_ranges(span_ends[rows], span_ends[rows + 1])
            columns = {
                "input_ids": _make_list_array(
                    ends[row_ends], pa.array(ids.take(token_indices)), schema.field("input_ids").type
                ),
                "split": pa.array(segment_b_starts[rows]),
                "label": pa.array(labels[rows]),
                "spans": _make_list_array(
                    span_offsets, self._resolve_spans(spans[span_indices]), pa.list_(SPAN_TYPE)
                ),
            }
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _resolve_spans(self, spans: Int64Array) -> pa.Array:
        """Return spans with the ids of documents and the numbers of sentences in them."""
        documents, start, first_sentence, end_sentence = spans.T
        integer_columns = (
            start,
            self._block.get_sentence_numbers(documents, first_sentence),
            self._block.get_sentence_numbers(documents, end_sentence - 1) + 1,
        )
        columns = [self._block.get_document_ids().take(pa.array(documents))]
        columns += [
            pa.array(values, SPAN_TYPE.field(field_index).type)
            for field_index, values in enumerate(integer_columns, 1)
        ]
        return pa.StructArray.from_arrays(columns, fields=list(SPAN_TYPE))


def _pack_integers(typecode: str, values: Sequence[int]) -> bytes:
    """Return the bytes of an array; ``array.extend`` takes five times as many instructions."""
    return struct.pack(f"{len(values)}{typecode}", *values)


def _numpy_from_array(values: array[int], dtype: DTypeLike) -> np.ndarray[Any, np.dtype[Any]]:
    return np.frombuffer(values, dtype) if values else np.zeros(0, dtype)


def _table_from_array(values: array[int], columns: int) -> Int64Array:
    table: Int64Array = _numpy_from_array(values, np.int64).reshape(-1, columns)
    return table


def _concat_ranges(starts: Int64Array, stops: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the integers of all ranges, one range after another, and the offset of each range."""
    sizes = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes), offsets


def _make_list_array(offsets: Int64Array, values: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=type_)


RowBuilder = Callable[[DocumentEdges, Sequence[int], ExampleRecipe], Iterator[ExampleRow]]
"""Build the rows of one pass over documents, given the edges and the key of each document.

The rows that start with one document follow one another.
"""
DocumentRowBuilder = Callable[[int, DocumentEdges, RandomSource, ExampleRecipe], Iterator[ExampleRow]]
"""Build the rows of one document, given its index, the edges of all documents, and its random numbers."""


def _for_each_document(build_document: DocumentRowBuilder) -> RowBuilder:
    """Return a builder that takes the documents in order, each with random numbers of its own."""

    def build_rows(
        documents: DocumentEdges, document_keys: Sequence[int], recipe: ExampleRecipe
    ) -> Iterator[ExampleRow]:
        rng = DocumentRng()
        for document, document_key in enumerate(document_keys):
            yield from build_document(document, documents, rng.reseed(document_key), recipe)

    return build_rows


def _build_electra_rows(
    document: int, documents: DocumentEdges, rng: RandomSource, recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    return electra_segments.build_rows(document, documents[document], rng, recipe)


def _pack_in_key_order(
    documents: DocumentEdges, document_keys: Sequence[int], recipe: ExampleRecipe
) -> Iterator[ExampleRow]:
    order = sorted(range(len(document_keys)), key=document_keys.__getitem__)
    return plain_packing.build_rows(order, documents, recipe)


BUILDERS: Final[dict[str, RowBuilder]] = {
    "electra": _for_each_document(_build_electra_rows),
    "bert": _for_each_document(sentence_pairs.build_rows),
    "albert": _for_each_document(sentence_pairs.build_rows),
    "plain": _pack_in_key_order,
}
"""Builders by objective."""


def plan_rows(block: TokenBlock, recipe: ExampleRecipe, seed: int, num_passes: int) -> RowPlan:
    """Return the rows of all passes over a block.

    The rows that start with one document are numbered from 0 in each pass.
    """
    build_rows = BUILDERS[recipe.objective]
    row_plan = RowPlan(block)
    document_ids = block.get_document_ids().to_pylist()
    for pass_number in range(num_passes):
        document_keys = [derive_document_key(seed, pass_number, name) for name in document_ids]
        document, row_number = -1, 0
        rows = build_rows(block, document_keys, recipe)
        while chunk := list(islice(rows, _CHUNK_ROWS)):
            documents = [row.spans[0].document for row in chunk]
            row_numbers: list[int] = []
            for next_document in documents:
                row_number = row_number + 1 if next_document == document else 0
                document = next_document
                row_numbers.append(row_number)
            row_plan.add_rows(chunk, [document_keys[document] for document in documents], row_numbers)
    return row_plan
