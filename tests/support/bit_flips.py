"""Damage of files: flipped bits."""

from __future__ import annotations

import random
from pathlib import Path


def flip_bits(path: Path, flips: int = 100) -> list[bytes]:
    """Return the content of a file as often, each time with another bit changed."""
    data = path.read_bytes()
    numbers = random.Random(7).sample(range(8 * len(data)), flips)
    return [
        data[: number // 8] + bytes([data[number // 8] ^ 1 << number % 8]) + data[number // 8 + 1 :]
        for number in numbers
    ]
