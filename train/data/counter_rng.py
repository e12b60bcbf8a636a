"""Counter-based random numbers: a stateless hash of seed, epoch, row, position and stream.

Masks are therefore independent of batch composition, number of processes and resumption, differ in every
epoch, and need no saved state.

The hash is SplitMix64 (corpus/splitmix.py).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bioshards.corpus.splitmix import GAMMA, mix

IntegerArray = np.ndarray[Any, np.dtype[np.integer[Any]]]


def make_row_keys(seed: int, epochs: IntegerArray, row_ids: IntegerArray) -> npt.NDArray[np.uint64]:
    """Return a 64-bit key for each row of an epoch, the input of :func:`random_bits`.

    Keys are distinct within an epoch, because each step of the hash is a bijection.

    Args:
        seed: any integer; the lower 64 bits are used.
        epochs: integers[R].
        row_ids: integers[R], row numbers in the set.

    Returns:
        uint64[R].
    """
    seed_state = mix(np.full(1, seed % (1 << 64), np.uint64) + GAMMA)
    epoch_state = mix(seed_state + GAMMA * (epochs.astype(np.uint64) + np.uint64(1)))
    return mix(epoch_state + GAMMA * (row_ids.astype(np.uint64) + np.uint64(1)))


def random_bits(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.uint64]:
    """Return 64 random bits for each position.

    Args:
        row_keys: uint64[N], key of each position's row.
        positions: integers[N], positions in their rows, below 2**32.
        stream: purpose of the numbers, from 0; streams are independent.

    Returns:
        uint64[N].
    """
    state = positions.astype(np.uint64)
    state += np.uint64(stream << 32)
    state *= GAMMA
    state += row_keys
    return mix(state)


def uniform(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.float64]:
    """Return a uniform number in [0, 1) of 53 bits for each position; arguments as :func:`random_bits`."""
    high_bits = random_bits(row_keys, positions, stream) >> np.uint64(11)
    uniforms: npt.NDArray[np.float64] = np.multiply(high_bits, 2.0**-53, dtype=np.float64)
    return uniforms


def uniform_float32(
    row_keys: npt.NDArray[np.uint64], positions: IntegerArray, stream: int
) -> npt.NDArray[np.float32]:
    """Return a uniform float32 in [0, 1) for each position; 24 bits, so that none rounds up to 1."""
    return (random_bits(row_keys, positions, stream) >> np.uint64(40)).astype(np.float32) * np.float32(
        2.0**-24
    )
