"""Random numbers by row and position: those of SplitMix64, and independent of each other.

Bounds are five standard deviations. All draws are the same in every run.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
from hypothesis import given
from hypothesis import strategies as st

from bioshards.train.data.masking import make_row_keys, random_bits, uniform, uniform_float32

Numbers = npt.NDArray[np.uint64]
_WORD = (1 << 64) - 1
_GAMMA = 0x9E3779B97F4A7C15


def splitmix(start: int, number: int) -> int:
    """Compute the number-th value of SplitMix64 seeded with start, in Python integers."""
    state = (start + number * _GAMMA) & _WORD
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & _WORD
    return state ^ (state >> 31)


def compute_key(seed: int, epoch: int, row: int) -> int:
    return splitmix(splitmix(splitmix(seed & _WORD, 1), epoch + 1), row + 1)


def make_keys(seed: int = 0, epoch: int = 0, rows: int = 1000) -> Numbers:
    return make_row_keys(seed, np.full(rows, epoch), np.arange(rows))


def draw_bits(seed: int = 0, epoch: int = 0, stream: int = 0, rows: int = 1000, length: int = 100) -> Numbers:
    """Draw numbers of shape [rows, length]."""
    numbers = random_bits(
        np.repeat(make_keys(seed, epoch, rows), length), np.tile(np.arange(length), rows), stream
    )
    return numbers.reshape(rows, length)


def unpack_bits(numbers: Numbers) -> npt.NDArray[np.uint8]:
    """Return the bits of numbers, of shape [..., 64]."""
    return np.unpackbits(np.ascontiguousarray(numbers)[..., None].view(np.uint8), axis=-1)


def is_independent(first: Numbers, second: Numbers) -> bool:
    """Return True if about half of the bits of two arrays are equal, at each bit and in total."""
    equal_share = (unpack_bits(first) == unpack_bits(second)).reshape(-1, 64).mean(axis=0)
    size = first.size
    return bool(
        (abs(equal_share - 0.5) < 5 * 0.5 / size**0.5).all()
        and abs(equal_share.mean() - 0.5) < 5 * 0.5 / (64 * size) ** 0.5
    )


# Values


@given(
    seed=st.integers(-(1 << 70), 1 << 70),
    epoch=st.integers(0, 1 << 40),
    row=st.integers(0, 1 << 60),
    position=st.integers(0, (1 << 32) - 1),
    stream=st.integers(0, 9),
)
def test_numbers_are_those_of_splitmix64_seeded_with_the_row_key(
    seed: int, epoch: int, row: int, position: int, stream: int
) -> None:
    row_key = make_row_keys(seed, np.array([epoch]), np.array([row]))
    assert row_key.tolist() == [compute_key(seed, epoch, row)]
    expected = splitmix(compute_key(seed, epoch, row), (stream << 32) + position)
    assert random_bits(row_key, np.array([position]), stream).tolist() == [expected]
    assert uniform(row_key, np.array([position]), stream).tolist() == [(expected >> 11) / (1 << 53)]
    assert uniform_float32(row_key, np.array([position]), stream).tolist() == [(expected >> 40) / (1 << 24)]


def test_numbers_equal_recorded_values() -> None:
    assert make_row_keys(7, np.array([0, 3]), np.array([5, 5])).tolist() == [
        13916494961907462818,
        15029617380150509269,
    ]
    assert random_bits(make_keys(rows=2), np.array([0, 9]), 1).tolist() == [
        5123629938494458332,
        10371490778074630982,
    ]


def test_splitmix_equals_reference_values() -> None:
    """The first three numbers for the seed 1234567, the usual check of implementations."""
    assert [splitmix(1234567, number) for number in (1, 2, 3)] == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
    ]


def invert_splitmix(state: int) -> int:
    """Invert the output function of SplitMix64."""
    for shift, factor in ((31, 0x94D049BB133111EB), (27, 0xBF58476D1CE4E5B9), (30, 1)):
        state ^= (state >> shift) ^ (state >> 2 * shift)
        state = state * pow(factor, -1, 1 << 64) & _WORD
    return state


def test_uniform_numbers_are_in_0_to_1() -> None:
    """The states give 64 zeros, 64 ones, and ones that single precision would round up."""
    states = np.array([invert_splitmix(0), invert_splitmix(_WORD), invert_splitmix(_WORD >> 1)], np.uint64)
    positions = np.zeros(3, np.int64)
    assert random_bits(states, positions, 0).tolist() == [0, _WORD, _WORD >> 1]
    assert uniform(states, positions, 0).tolist() == [0, 1 - 2.0**-53, 0.5 - 2.0**-53]
    assert uniform_float32(states, positions, 0).tolist() == [0, 1 - 2.0**-24, 0.5 - 2.0**-24]
    assert uniform_float32(states, positions, 0).dtype == np.float32


def test_arguments_are_not_modified() -> None:
    row_keys, positions = make_keys(rows=5), np.arange(5).astype(np.uint64)
    before = row_keys.copy(), positions.copy()
    random_bits(row_keys, positions, 0)
    rows = np.arange(5).astype(np.uint64)
    make_row_keys(0, rows, rows)
    assert (row_keys == before[0]).all()
    assert (positions == before[1]).all()
    assert rows.tolist() == [0, 1, 2, 3, 4]


def test_row_keys_of_an_epoch_are_distinct() -> None:
    assert len(np.unique(make_keys(rows=200_000))) == 200_000


# Randomness


def test_neighbouring_numbers_are_independent() -> None:
    numbers = draw_bits()
    assert is_independent(numbers[:, 1:], numbers[:, :-1])  # places
    assert is_independent(numbers[1:], numbers[:-1])  # rows
    assert is_independent(numbers[1:, :-1], numbers[:-1, 1:])  # the next row, a place before
    assert is_independent(numbers, draw_bits(seed=1))
    assert is_independent(numbers, draw_bits(seed=-1))
    assert is_independent(numbers, draw_bits(epoch=1))
    assert is_independent(draw_bits(seed=1, epoch=0), draw_bits(seed=0, epoch=1))
    for a, b in combinations(range(5), 2):
        assert is_independent(draw_bits(stream=a), draw_bits(stream=b))
