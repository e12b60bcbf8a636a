"""Random numbers that are a function of what they are for, and of nothing that happened before.

A generator that is asked in turn gives other numbers when a run is resumed, when its rows are dealt out to
more processes, or when a micro-batch is made smaller.  Here a number is a hash of the run's seed, the epoch,
the row, the place in the row and what the number is for.  So masks do not depend on the batch that a row is
in, no epoch repeats another's, and nothing has to be saved.

The hash is SplitMix64 (Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators",
https://doi.org/10.1145/2660193.2660195, figure 17, with its constants): a counter times an odd number, then
two multiplications and three shifts, after which each bit depends on all bits of the counter.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

IntegerArray = np.ndarray[Any, np.dtype[np.integer[Any]]]
_GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_ROUNDS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_FINAL_SHIFT: Final = np.uint64(31)


def make_row_keys(seed: int, epochs: IntegerArray, row_ids: IntegerArray) -> npt.NDArray[np.uint64]:
    """64 bits for each row in an epoch, of which :func:`bits` makes the row's numbers.

    Within an epoch no two rows have the same key, for each step of the hash is a bijection.

    Args:
        seed: any whole number, of which 64 bits count.
        epochs: [R], how often the data have been gone through before.
        row_ids: [R], the rows' numbers in the data.
    """
    seed_state = _mix(np.full(1, seed % (1 << 64), np.uint64) + _GAMMA)
    epoch_state = _mix(seed_state + _GAMMA * (epochs.astype(np.uint64) + np.uint64(1)))
    return _mix(epoch_state + _GAMMA * (row_ids.astype(np.uint64) + np.uint64(1)))


def random_bits(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.uint64]:
    """64 random bits for each place of a row.

    Args:
        row_keys: [N], the key of the row that each place is in.
        positions: [N], places in their rows, below 2 to the 32.
        stream: what the numbers are for, from 0; those of two streams have nothing to do with each other.
    """
    state = positions.astype(np.uint64)
    state += np.uint64(stream << 32)
    state *= _GAMMA
    state += row_keys
    return _mix(state)


def uniform(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.float64]:
    """A number from 0 to below 1 for each place of a row, of 53 bits; the arguments are those of bits."""
    return (random_bits(row_keys, positions, stream) >> np.uint64(11)) * 2.0**-53


def uniform_float32(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.float32]:
    """The same in single precision, of 24 bits, so that none is rounded up to 1."""
    return (random_bits(row_keys, positions, stream) >> np.uint64(40)).astype(np.float32) * np.float32(
        2.0**-24
    )


def _mix(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """The state itself, mixed in place."""
    for shift, factor in _MIX_ROUNDS:
        state ^= state >> shift
        state *= factor
    state ^= state >> _FINAL_SHIFT
    return state
