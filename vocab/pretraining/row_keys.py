"""Sort keys of rows: 64 random bits of a row's document and its number in the document."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

KeyArray = np.ndarray[Any, np.dtype[np.uint64]]

_INCREMENT: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_STEPS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


def derive_row_keys(document_keys: KeyArray, row_numbers: np.ndarray[Any, np.dtype[Any]]) -> KeyArray:
    """Return the key of each row, by the generator SplitMix64 (Steele, Lea and Flood 2014).

    Args:
        document_keys: uint64, the seed of each row (``document_rng.derive_document_key``).
        row_numbers: integers of the same shape, the number of each row in its document and pass.
    """
    mixed: KeyArray = document_keys + _INCREMENT * (row_numbers.astype(np.uint64) + np.uint64(1))
    for shift, factor in _MIX_STEPS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
