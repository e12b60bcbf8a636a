"""Reports and tables of the work folder with their SHA-256: a damaged one is recognised and made again."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from bioshards.corpus.storage.checksums import sha256_of_file, sha256_of_json
from bioshards.corpus.storage.storage_protocol import Storage


def write_report(storage: Storage, path: str, value: object) -> None:
    """Write JSON values with their SHA-256, for :func:`read_report`."""
    value = json.loads(json.dumps(value))  # as it is read
    storage.write_json(path, {"sha256": sha256_of_json(value), "value": value})


def read_report(storage: Storage, path: str, damaged: list[str]) -> Any:
    """Read JSON values; None if there is no report, a damaged one, or one of a version without SHA-256.

    Args:
        damaged: gets the path of a damaged report.
    """
    try:
        content = storage.read_json(path)
        if "sha256" not in content:
            return None
        if content["sha256"] == sha256_of_json(content["value"]):
            return content["value"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    damaged.append(path)
    return None


def is_intact(storage: Storage, path: str, sha256: str) -> bool:
    """Return True if there is a file with this SHA-256."""
    try:
        with storage.open(path) as file:
            return sha256_of_file(file) == sha256
    except FileNotFoundError:
        return False


def describe_damaged(paths: Iterable[str]) -> tuple[str, ...]:
    """Return a notice on each damaged work file."""
    return tuple(f"{path} was damaged and is made again" for path in sorted(paths))
