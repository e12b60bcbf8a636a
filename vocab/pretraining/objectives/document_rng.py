"""Random numbers that depend on the seed, the pass and the document only.

The rows of a document are the same on every runner, in every order and after every restart.
"""

from __future__ import annotations

import hashlib
import random
from typing import Protocol


class RandomSource(Protocol):
    """Source of the random numbers of a row builder."""

    def random(self) -> float:
        """Return a number from 0 to below 1."""

    def randint(self, a: int, b: int) -> int:
        """Return an integer from a to b, both included."""


class DocumentRng:
    """Random numbers that are reseeded for each document.

    ``random()`` of the Mersenne Twister is the same in every version of Python.  ``randint()`` of the
    standard library is not, so it is derived from ``random()`` here.
    """

    def __init__(self) -> None:
        self._twister = random.Random()
        self.random = self._twister.random

    def reseed(self, key: int) -> DocumentRng:
        """Restart with a key of :func:`derive_document_key`, and return this object."""
        self._twister.seed(key)
        return self

    def randint(self, a: int, b: int) -> int:
        return a + int(self.random() * (b - a + 1))


def derive_document_key(seed: int, pass_number: int, document_id: str) -> int:
    """Return 64 bits for one pass over one document."""
    return int.from_bytes(
        hashlib.blake2b(f"{seed} {pass_number} {document_id}".encode(), digest_size=8).digest()
    )
