"""The rows of a shard before they are written: which tokens each is made of, and how rows are sorted.

A plan takes some 150 bytes a row.  The rows' tokens are copied once, as record batches are made, straight
into their place in the sorted shard.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa

from bioshards.corpus.pretraining import BATCH_ROWS, NO_LABEL, SPAN

from .block import Block, Positions
from .randomness import row_keys
from .rows import CLS, SEP, Row, tokens

Keys = np.ndarray[Any, np.dtype[np.uint64]]


class Plan:
    """Rows of one block's documents.

    Attributes:
        special: how many of the rows' tokens are [CLS] and [SEP]; ``lost``, ``borrowed``: see ``rows.Row``.
    """

    def __init__(self, block: Block) -> None:
        self._block: Final = block
        self._ranges, self._range_ends = array("q"), array("q", [0])
        self._splits, self._labels = array("H"), array("b")
        self._spans, self._span_ends = array("q"), array("q", [0])
        self._keys, self._numbers = array("Q"), array("Q")
        self.special = self.lost = self.borrowed = 0

    def add(self, row: Row, key: int, number: int) -> None:
        """Add a row; ``key``: of its document and pass, ``number``: which one of theirs it is."""
        ranges = self._ranges
        before = len(ranges)
        ranges.extend(CLS)
        for one in row.first:
            ranges.extend(one)
        ranges.extend(SEP)
        self._splits.append(2 + tokens(row.first) if row.second else 0)
        if row.second:
            for one in row.second:
                ranges.extend(one)
            ranges.extend(SEP)
        self._range_ends.append(len(ranges) // 2)
        self._labels.append(row.label)
        for span in row.spans:
            self._spans.extend(span)
        self._span_ends.append(len(self._spans) // 4)
        self._keys.append(key)
        self._numbers.append(number)
        text = len(row.first) - row.first.count(SEP) + len(row.second)
        self.special += (len(ranges) - before) // 2 - text
        self.lost += row.lost
        self.borrowed += row.borrowed

    def __len__(self) -> int:
        return len(self._splits)

    @property
    def unlabelled(self) -> int:
        """Rows without a label."""
        return self._labels.count(NO_LABEL)

    @property
    def tokens(self) -> int:
        """Tokens of all rows, special ones among them."""
        ranges = _table(self._ranges, 2)
        return int((ranges[:, 1] - ranges[:, 0]).sum())

    def sorted(self) -> tuple[Positions, Keys]:
        """The rows in the order of their keys, and these."""
        keys = row_keys(_numbers(self._keys, np.uint64), _numbers(self._numbers, np.uint64))
        order = np.argsort(keys, kind="stable")
        return order, keys[order]

    def batches(
        self, order: Positions, schema: pa.Schema, size: int = BATCH_ROWS
    ) -> Iterator[pa.RecordBatch]:
        """These rows as record batches of so many.

        Args:
            schema: of ``corpus.pretraining``.
        """
        ids = self._block.ids()
        ranges, spans = _table(self._ranges, 2), _table(self._spans, 4)
        range_ends, span_ends = _numbers(self._range_ends, np.int64), _numbers(self._span_ends, np.int64)
        splits, labels = _numbers(self._splits, np.uint16), _numbers(self._labels, np.int8)
        for start in range(0, len(order), size):
            rows = order[start : start + size]
            which, _ = _joined(range_ends[rows], range_ends[rows + 1])
            sizes = ranges[which, 1] - ranges[which, 0]
            places, _ = _joined(ranges[which, 0], ranges[which, 1])
            ends = np.cumsum(np.concatenate([np.zeros(1, np.int64), sizes]))
            row_ends = np.concatenate(
                [np.zeros(1, np.int64), np.cumsum(range_ends[rows + 1] - range_ends[rows])]
            )
            which_spans, span_offsets = _joined(span_ends[rows], span_ends[rows + 1])
            columns = {
                "input_ids": _lists(ends[row_ends], pa.array(ids[places]), schema.field("input_ids").type),
                "split": pa.array(splits[rows]),
                "label": pa.array(labels[rows]),
                "spans": _lists(span_offsets, self._with_ids(spans[which_spans]), pa.list_(SPAN)),
            }
            yield pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _with_ids(self, spans: Positions) -> pa.Array:
        """Spans with documents' ids, and with sentences numbered as in the documents."""
        of, start, first, end = spans.T
        numbered = (start, self._block.numbers(of, first), self._block.numbers(of, end - 1) + 1)
        columns = [self._block.documents().take(pa.array(of))]
        columns += [pa.array(one, SPAN.field(at).type) for at, one in enumerate(numbered, 1)]
        return pa.StructArray.from_arrays(columns, fields=list(SPAN))


def _numbers(values: array[int], type_: Any) -> np.ndarray[Any, np.dtype[Any]]:
    return np.frombuffer(values, type_) if values else np.zeros(0, type_)


def _table(values: array[int], columns: int) -> Positions:
    found: Positions = _numbers(values, np.int64).reshape(-1, columns)
    return found


def _joined(starts: Positions, stops: Positions) -> tuple[Positions, Positions]:
    """All numbers from each start to before its stop, one range after another, and where each begins."""
    sizes = stops - starts
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
    return np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], sizes), offsets


def _lists(offsets: Positions, values: pa.Array, type_: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=type_)
