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


def change_shard_text(shard: Path, replacement: bytes = b"qe") -> str:
    data = shard.read_bytes()
    assert b" gre" in data or b" sle" in data
    shard.write_bytes(data.replace(b" gre", b" g" + replacement).replace(b" sle", b" s" + replacement))
    return "its SHA-256 is not the one that its manifest lists"


def write_invalid_utf8(shard: Path) -> str:
    return change_shard_text(shard, b"\xffe")


def replace_shard_with_folder(shard: Path) -> str:
    shard.unlink()
    shard.mkdir()
    return "Is a directory"


DAMAGES = (
    delete_shard,
    truncate_shard,
    empty_shard,
    change_shard_text,
    write_invalid_utf8,
    replace_shard_with_folder,
)
