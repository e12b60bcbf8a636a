"""Damage of a shard; each function returns the message that names it."""

from __future__ import annotations

import os
from pathlib import Path


def delete_shard(shard: Path) -> str:
    shard.unlink()
    return "No such file or directory"


def truncate_shard(shard: Path) -> str:
    size = shard.stat().st_size
    os.truncate(shard, size - 8)
    return f"it has {size - 8:,} bytes, and its manifest lists {size:,}"


def empty_shard(shard: Path) -> str:
    size = shard.stat().st_size
    shard.write_bytes(b"")
    return f"it has 0 bytes, and its manifest lists {size:,}"


def flip_bit_of_page(shard: Path) -> str:
    return flip_bit(shard, shard.stat().st_size // 2)


def flip_bit_of_footer(shard: Path) -> str:
    return flip_bit(shard, shard.stat().st_size - 40)


def flip_bit(shard: Path, position: int) -> str:
    data = bytearray(shard.read_bytes())
    data[position] ^= 1
    shard.write_bytes(data)
    return "its SHA-256 is not the one that its manifest lists"


def replace_shard_with_folder(shard: Path) -> str:
    shard.unlink()
    shard.mkdir()
    return "Is a directory"


DAMAGES = (
    delete_shard,
    truncate_shard,
    empty_shard,
    flip_bit_of_page,
    flip_bit_of_footer,
    replace_shard_with_folder,
)
