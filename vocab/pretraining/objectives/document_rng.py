"""Randomness that depends on a document and nothing else, so that no runner, order or restart can change
it."""

from __future__ import annotations

import hashlib
import random
from typing import Any, Final, Protocol

import numpy as np

_INCREMENT: Final = np.uint64(0x9E3779B97F4A7C15)
_MIX_STEPS: Final = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))


class RandomSource(Protocol):
    """Where examples' builders get their chances from."""

    def random(self) -> float:
        """A number from 0 to below 1."""

    def randint(self, a: int, b: int) -> int:
        """A whole number from a to b, both included."""


class DocumentRng:
    """A source that begins anew with each document.

    The Mersenne Twister's ``random()`` is the same in every version of Python; ``randint`` is made of it
    here.
    """

    def __init__(self) -> None:
        self._twister = random.Random()
        self.random = self._twister.random

    def reseed(self, key: int) -> DocumentRng:
        """The source of the document and pass that this is the :func:`key` of."""
        self._twister.seed(key)
        return self

    def randint(self, a: int, b: int) -> int:
        return a + int(self.random() * (b - a + 1))


def derive_document_key(seed: int, pass_number: int, document_id: str) -> int:
    """64 bits for the pass of this number over the document of this id."""
    return int.from_bytes(
        hashlib.blake2b(f"{seed} {pass_number} {document_id}".encode(), digest_size=8).digest()
    )


def derive_row_keys(
    document_keys: np.ndarray[Any, np.dtype[np.uint64]], row_numbers: np.ndarray[Any, np.dtype[Any]]
) -> np.ndarray[Any, np.dtype[np.uint64]]:
    """64 bits for each row, of its document's key and its number in the document: rows are sorted by them.

    This is the generator SplitMix64 (Steele, Lea and Flood 2014), begun at the key.
    """
    mixed: np.ndarray[Any, np.dtype[np.uint64]] = document_keys + _INCREMENT * (
        row_numbers.astype(np.uint64) + np.uint64(1)
    )
    for shift, factor in _MIX_STEPS:
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return mixed ^ (mixed >> np.uint64(31))
