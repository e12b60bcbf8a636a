"""Numbers for places of rows: what they are, and that nothing can be told from one of another.

Bounds are of five standard deviations; all draws are the same in every run.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.data.counter_rng import make_row_keys, random_bits, uniform, uniform_float32

Numbers = npt.NDArray[np.uint64]
_WORD = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


def splitmix(start: int, number: int) -> int:
    """The number-th value of a SplitMix64 that begins at start, with Python's whole numbers."""
    z = (start + number * _GAMMA) & _WORD
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _WORD
    return z ^ (z >> 31)


def one_key(seed: int, epoch: int, row: int) -> int:
    return splitmix(splitmix(splitmix(seed & _WORD, 1), epoch + 1), row + 1)


def keys(seed: int = 0, epoch: int = 0, rows: int = 1000) -> Numbers:
    return make_row_keys(seed, np.full(rows, epoch), np.arange(rows))


def drawn(seed: int = 0, epoch: int = 0, stream: int = 0, rows: int = 1000, length: int = 100) -> Numbers:
    """[rows, length]"""
    flat = random_bits(np.repeat(keys(seed, epoch, rows), length), np.tile(np.arange(length), rows), stream)
    return flat.reshape(rows, length)


def ones(numbers: Numbers) -> npt.NDArray[np.uint8]:
    """[..., 64], the bits of numbers."""
    return np.unpackbits(np.ascontiguousarray(numbers)[..., None].view(np.uint8), axis=-1)


def unrelated(a: Numbers, b: Numbers) -> bool:
    """Is about half of the bits of two arrays the same, at each of the 64 and in all?"""
    same = (ones(a) == ones(b)).reshape(-1, 64).mean(axis=0)
    n = a.size
    return bool(
        (abs(same - 0.5) < 5 * 0.5 / n**0.5).all() and abs(same.mean() - 0.5) < 5 * 0.5 / (64 * n) ** 0.5
    )


# What they are


@given(
    seed=st.integers(-(1 << 70), 1 << 70),
    epoch=st.integers(0, 1 << 40),
    row=st.integers(0, 1 << 60),
    place=st.integers(0, (1 << 32) - 1),
    stream=st.integers(0, 9),
)
def test_numbers_are_those_of_splitmix64_begun_at_the_key(
    seed: int, epoch: int, row: int, place: int, stream: int
) -> None:
    of_row = make_row_keys(seed, np.array([epoch]), np.array([row]))
    assert of_row.tolist() == [one_key(seed, epoch, row)]
    number = splitmix(one_key(seed, epoch, row), (stream << 32) + place)
    assert random_bits(of_row, np.array([place]), stream).tolist() == [number]
    assert uniform(of_row, np.array([place]), stream).tolist() == [(number >> 11) / (1 << 53)]
    assert uniform_float32(of_row, np.array([place]), stream).tolist() == [(number >> 40) / (1 << 24)]


def test_numbers_are_what_they_have_always_been() -> None:
    assert make_row_keys(7, np.array([0, 3]), np.array([5, 5])).tolist() == [
        13916494961907462818,
        15029617380150509269,
    ]
    assert random_bits(keys(rows=2), np.array([0, 9]), 1).tolist() == [
        5123629938494458332,
        10371490778074630982,
    ]


def test_splitmix_here_is_splitmix_elsewhere() -> None:
    """The first three numbers of the generator seeded with 1234567, as its implementations are checked by."""
    assert [splitmix(1234567, number) for number in (1, 2, 3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def unmixed(z: int) -> int:
    """The state of which SplitMix64 makes z: its steps backwards."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        z ^= (z >> shift) ^ (z >> 2 * shift)
        z = z * pow(factor, -1, 1 << 64) & _WORD
    return z


def test_numbers_are_from_0_to_below_1() -> None:
    """Of states that make 64 zeros, 64 ones, and ones that single precision would round up."""
    states = np.array([unmixed(0), unmixed(_WORD), unmixed(_WORD >> 1)], np.uint64)
    place = np.zeros(3, np.int64)
    assert random_bits(states, place, 0).tolist() == [0, _WORD, _WORD >> 1]
    assert uniform(states, place, 0).tolist() == [0, 1 - 2.0**-53, 0.5 - 2.0**-53]
    assert uniform_float32(states, place, 0).tolist() == [0, 1 - 2.0**-24, 0.5 - 2.0**-24]
    assert uniform_float32(states, place, 0).dtype == np.float32


def test_arguments_are_not_changed() -> None:
    of_rows, places = keys(rows=5), np.arange(5).astype(np.uint64)
    before = of_rows.copy(), places.copy()
    random_bits(of_rows, places, 0)
    rows = np.arange(5).astype(np.uint64)
    make_row_keys(0, rows, rows)
    assert (of_rows == before[0]).all()
    assert (places == before[1]).all()
    assert rows.tolist() == [0, 1, 2, 3, 4]


def test_no_two_rows_of_an_epoch_have_the_same_key() -> None:
    assert len(np.unique(keys(rows=200_000))) == 200_000


# That they are random


def test_each_bit_is_set_half_of_the_time() -> None:
    numbers = drawn()
    share = ones(numbers).reshape(-1, 64).mean(axis=0)
    assert (abs(share - 0.5) < 5 * 0.5 / numbers.size**0.5).all()


@pytest.mark.parametrize("shift", [0, 8, 24, 40, 56])
def test_bytes_are_equally_frequent_at_all_places(shift: int) -> None:
    """Chi-square of 256 values, for all places and for each of the first twenty alone."""
    numbers = (drawn(rows=20_000, length=20) >> np.uint64(shift)) & np.uint64(255)
    for of_place in (numbers, *numbers.T):
        found = np.bincount(of_place.ravel().astype(np.int64), minlength=256)
        expected = of_place.size / 256
        chi_square = float(((found - expected) ** 2 / expected).sum())
        assert abs(chi_square - 255) < 5 * (2 * 255) ** 0.5


def test_neighbours_are_unrelated() -> None:
    numbers = drawn()
    assert unrelated(numbers[:, 1:], numbers[:, :-1])  # places
    assert unrelated(numbers[1:], numbers[:-1])  # rows
    assert unrelated(numbers[1:, :-1], numbers[:-1, 1:])  # the next row, a place before
    assert unrelated(numbers, drawn(seed=1))
    assert unrelated(numbers, drawn(seed=-1))
    assert unrelated(numbers, drawn(epoch=1))
    assert unrelated(drawn(seed=1, epoch=0), drawn(seed=0, epoch=1))


def test_streams_are_unrelated() -> None:
    for a, b in combinations(range(5), 2):
        assert unrelated(drawn(stream=a), drawn(stream=b))
        assert unrelated(drawn(stream=a)[:, 1:], drawn(stream=b)[:, :-1])


def test_streams_are_not_correlated() -> None:
    of_rows, places = np.repeat(keys(), 100), np.tile(np.arange(100), 1000)
    draws = np.array([uniform(of_rows, places, stream) for stream in range(5)])
    correlations = np.corrcoef(draws)[np.triu_indices(5, 1)]
    assert (abs(correlations) < 5 / places.size**0.5).all()
    assert (abs(draws.mean(axis=1) - 0.5) < 5 * (1 / 12 / places.size) ** 0.5).all()


@pytest.mark.parametrize("what", ["seed", "epoch", "row", "place"])
def test_one_bit_of_any_argument_changes_half_of_the_bits(what: str) -> None:
    """Of 500 rows; each of the argument's lower bits, and each bit of the number."""
    rows = np.arange(500)

    def numbers(flip: int) -> Numbers:
        seed = 12345 ^ (flip if what == "seed" else 0)
        epochs = np.full(500, 3) ^ (flip if what == "epoch" else 0)
        of_row = rows * 977 ^ (flip if what == "row" else 0)
        places = rows % 50 ^ (flip if what == "place" else 0)
        return random_bits(make_row_keys(seed, epochs, of_row), places, 0)

    changed = np.array([ones(numbers(0) ^ numbers(1 << bit)).mean(axis=0) for bit in range(30)])
    assert (abs(changed - 0.5) < 6 * 0.5 / 500**0.5).all()
    assert abs(changed.mean() - 0.5) < 5 * 0.5 / (500 * 64 * 30) ** 0.5
