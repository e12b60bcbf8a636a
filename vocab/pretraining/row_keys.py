"""Sort keys of rows: 64 random bits of a row's document and its number in the document."""

from __future__ import annotations

from typing import Any

import numpy as np

from bioshards.corpus.splitmix import GAMMA, mix

KeyArray = np.ndarray[Any, np.dtype[np.uint64]]


def derive_row_keys(document_keys: KeyArray, row_numbers: np.ndarray[Any, np.dtype[Any]]) -> KeyArray:
    """Return the key of each row, by the generator SplitMix64 (corpus/splitmix.py).

    Args:
        document_keys: uint64, the seed of each row (``document_rng.derive_document_key``).
        row_numbers: integers of the same shape, the number of each row in its document and pass.
    """
    return mix(document_keys + GAMMA * (row_numbers.astype(np.uint64) + np.uint64(1)))
