"""Random numbers that depend on the seed, the pass and the document only.

The rows of a document are the same on every runner, in every order and after every restart.
"""

from __future__ import annotations

import hashlib
import random
from functools import lru_cache
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
        twister = random.Random()
        self.random = twister.random
        # The seed() of the C class: random.Random.seed() inspects the type of every key before it calls this.
        self._seed = super(random.Random, twister).seed

    def reseed(self, key: int) -> DocumentRng:
        """Restart with a key of :func:`derive_document_key`, and return this object."""
        self._seed(key)
        return self

    def randint(self, a: int, b: int) -> int:
        return a + int(self.random() * (b - a + 1))


def derive_document_key(seed: int, pass_number: int, document_id: str) -> int:
    """Return 64 bits for one pass over one document."""
    digest = _hash_pass(seed, pass_number).copy()
    digest.update(document_id.encode())
    return int.from_bytes(digest.digest())


@lru_cache(maxsize=1)
def _hash_pass(seed: int, pass_number: int) -> hashlib.blake2b:
    """Return the hash of what the documents of a pass have in common; a copy is cheaper than a new hash."""
    return hashlib.blake2b(f"{seed} {pass_number} ".encode(), digest_size=8)
