"""MD5 and SHA-256 of files, of bytes and of JSON values."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, BinaryIO


def md5_of_file(file: BinaryIO) -> str:
    """Return the MD5 of the rest of an open file, in lower-case hexadecimal."""
    digest = hashlib.md5(usedforsecurity=False)
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


def sha256_of_file(file: BinaryIO) -> str:
    """Return the SHA-256 of the rest of an open file, in lower-case hexadecimal."""
    digest = hashlib.sha256()
    while block := file.read(1 << 20):
        digest.update(block)
    return digest.hexdigest()


class HashingWriter:
    """A writer that computes the SHA-256 and the size of the bytes that pass through it."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.size = 0
        self.closed = False

    def write(self, data: bytes) -> int:
        view = memoryview(data)
        self._digest.update(view)
        self.size += view.nbytes
        self._file.write(view)
        return view.nbytes

    def flush(self) -> None:
        self._file.flush()

    def tell(self) -> int:
        """Return the number of bytes written, which writers of Parquet ask for."""
        return self.size

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def md5_of_bytes(body: bytes) -> str:
    """Return the MD5 in lower-case hexadecimal."""
    return hashlib.md5(body, usedforsecurity=False).hexdigest()


def add_sha256(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a JSON object with the SHA-256 of its fields, for :func:`has_wrong_sha256`."""
    return {**value, "sha256": sha256_of_json(value)}


def has_wrong_sha256(value: object) -> bool:
    """Return True if a JSON object names a SHA-256 that is not that of its other fields."""
    if not isinstance(value, dict) or "sha256" not in value:  # of an earlier version
        return False
    fields = {name: field for name, field in value.items() if name != "sha256"}
    return bool(value["sha256"] != sha256_of_json(fields))


def sha256_of_json(value: object) -> str:
    """Return the SHA-256 of a JSON value in lower-case hexadecimal, whatever its layout in a file."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
