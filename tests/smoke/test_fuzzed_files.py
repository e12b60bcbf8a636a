"""Mutated files of strangers, others in every run: each reader reads or refuses them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.fuzzing import MUTATIONS, READERS, FuzzedReader, Mutation, Seed
from tests.support.hypothesis_profiles import examples


@functools.cache
def list_seeds(reader: FuzzedReader) -> Sequence[Seed]:
    return reader.seeds()


@pytest.mark.thorough
@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.name.replace(" ", "-"))
@settings(max_examples=examples(20), derandomize=False)
@given(number=st.integers(0, 10_000), mutations=MUTATIONS)
def test_mutated_file_is_read_or_refused(
    reader: FuzzedReader, number: int, mutations: Sequence[Mutation]
) -> None:
    seeds = list_seeds(reader)
    reader.check(seeds[number % len(seeds)], mutations)
