"""Plain packing: documents joined, every row but the last one full, no token lost."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.pretraining import objectives
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.objectives import SEP_RANGE, ExampleRow
from tests.support.vocab.reference_cases import (
    document_offsets,
    expand_ranges,
    input_positions,
)


def pack_documents(documents: Sequence[Sequence[int]], length: int) -> list[ExampleRow]:
    return list(
        objectives.pack_documents(
            range(len(documents)), document_offsets(documents), ExampleRecipe("plain", length)
        )
    )


def test_documents_are_joined_with_a_separator() -> None:
    (row,) = pack_documents([[3, 2], [4]], 20)
    assert row.segment_a == [(2, 7), SEP_RANGE, (7, 11)]
    assert row.document == 0
    assert input_positions(row) == [0, 2, 3, 4, 5, 6, 1, 7, 8, 9, 10, 1]


def test_document_continues_in_the_next_row() -> None:
    found = pack_documents([[3, 20], [4]], 10)
    assert [row.segment_a for row in found] == [[(2, 10)], [(10, 18)], [(18, 25)], [(25, 29)]]
    assert [row.document for row in found] == [0, 0, 0, 1]


# Invariants

DOCUMENTS: Any = st.lists(
    st.lists(st.one_of(st.integers(1, 5), st.integers(1, 60)), min_size=1, max_size=8),
    max_size=12,
)


@given(DOCUMENTS, st.integers(5, 60), st.randoms(use_true_random=False))
def test_every_token_is_in_exactly_one_row_in_order(
    documents: list[list[int]], length: int, shuffled: random.Random
) -> None:
    offsets = document_offsets(documents)
    order = list(range(len(offsets)))
    shuffled.shuffle(order)
    rows = list(objectives.pack_documents(order, offsets, ExampleRecipe("plain", length)))
    used = [
        token for row in rows for token in expand_ranges(row.segment_a) if (token, token + 1) != SEP_RANGE
    ]
    assert used == [token for number in order for token in range(offsets[number][0], offsets[number][-1])]
    assert all((row.segment_b, row.lost_tokens, row.other_document_tokens) == ([], 0, 0) for row in rows)


@given(DOCUMENTS, st.integers(5, 60))
def test_every_row_but_the_last_one_is_full(documents: list[list[int]], length: int) -> None:
    rows = pack_documents(documents, length)
    ends = {edges[-1] for edges in document_offsets(documents)}
    for row in rows[:-1]:
        missing = length - len(input_positions(row))
        assert missing == 0 or (missing == 1 and row.segment_a[-1][1] in ends)
    assert all(len(input_positions(row)) <= length for row in rows[-1:])


@given(DOCUMENTS, st.integers(5, 60))
def test_a_separator_stands_between_two_documents_only(documents: list[list[int]], length: int) -> None:
    for row in pack_documents(documents, length):
        separators = [place for place, one in enumerate(row.segment_a) if one == SEP_RANGE]
        assert separators == list(range(1, len(row.segment_a), 2))
        assert len(row.segment_a) % 2 == 1
        assert all(before[1] == after[0] for before, after in pairwise(row.segment_a[::2]))
