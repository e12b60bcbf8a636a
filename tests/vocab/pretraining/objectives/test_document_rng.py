"""Random numbers of documents, compared with recorded values."""

from __future__ import annotations

from collections import Counter

import numpy as np

from bioshards.vocab.pretraining.objectives import (
    DocumentRng,
    derive_document_key,
)
from bioshards.vocab.pretraining.row_plan import derive_row_keys
from tests.support.vocab.reference_cases import is_near_expected_count


def test_document_keys_equal_recorded_values() -> None:
    assert derive_document_key(0, 0, "pubmed:1") == 12694863430520147266
    assert derive_document_key(7, 3, "pmc:PMC1.2") == 3279815718350081640


def test_random_numbers_equal_recorded_values() -> None:
    rng = DocumentRng().reseed(derive_document_key(0, 0, "pubmed:1"))
    assert [rng.random() for _ in range(3)] == [
        0.18739084975042897,
        0.8770429934123231,
        0.5913445600746597,
    ]
    assert [rng.randint(1, 6) for _ in range(10)] == [2, 3, 3, 3, 5, 3, 4, 1, 3, 6]


def test_reseeding_restarts_the_generator() -> None:
    rng = DocumentRng()
    once = [rng.reseed(7).random(), rng.random()]
    rng.reseed(8).random()
    assert [rng.reseed(7).random(), rng.random()] == once


def test_every_bit_of_the_key_changes_the_numbers() -> None:
    rng = DocumentRng()
    assert len({rng.reseed(1 << bit).random() for bit in range(64)}) == 64


def test_integers_are_uniform_with_both_ends_included() -> None:
    rng = DocumentRng().reseed(1)
    found = Counter(rng.randint(5, 14) for _ in range(20_000))
    assert set(found) == set(range(5, 15))
    assert all(is_near_expected_count(times, 20_000, 0.1) for times in found.values())


def test_row_keys_are_those_of_splitmix64() -> None:
    # the first three numbers of the generator seeded with 1234567, as its implementations are checked by
    expected = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    assert derive_row_keys(np.full(3, 1234567, np.uint64), np.arange(3)).tolist() == expected
