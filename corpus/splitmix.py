"""The mixing function of SplitMix64, by which counters become random bits.

Steele, Lea and Flood 2014, "Fast splittable pseudorandom number generators",
https://doi.org/10.1145/2660193.2660195, figure 17, with its constants: a counter times an odd number, then
two multiplications and three shifts, after which each bit depends on all bits of the counter.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

GAMMA: Final = np.uint64(0x9E3779B97F4A7C15)
"""The odd number by which counters are multiplied."""
_ROUNDS: Final = (
    (np.uint64(30), np.uint64(0xBF58476D1CE4E5B9)),
    (np.uint64(27), np.uint64(0x94D049BB133111EB)),
)
_FINAL_SHIFT: Final = np.uint64(31)


def mix(state: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix the bits of a state in place and return it; a bijection."""
    for shift, factor in _ROUNDS:
        state ^= state >> shift
        state *= factor
    state ^= state >> _FINAL_SHIFT
    return state
