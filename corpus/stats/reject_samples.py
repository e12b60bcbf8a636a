"""Samples of the rejected records of a directory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

MAX_SAMPLES: Final = 12
_MAX_FILES: Final = 24
_MAX_PER_FILE: Final = 4
_SHOWN_CHARACTERS: Final = 160
_LINE_BYTES: Final = 1 << 16
"""A record may have megabytes: those of longer lines are no samples."""


@dataclass(frozen=True, slots=True)
class RejectedRecord:
    """A rejected record.

    Attributes:
        position: number of the record in its file.
        text: how it begins; empty if it is not in UTF-8.
    """

    reason: str
    file: str
    position: int
    detail: str
    text: str


def read_samples(storage: Storage, folder: str) -> list[RejectedRecord]:
    """Read the first rejected records of some files of ``rejected/``, by reason."""

    def read_file(name: str) -> list[RejectedRecord]:
        return list(_read_records(storage, f"{folder}/rejected/{name}"))

    names = [name for name in sorted(storage.list_names(f"{folder}/rejected")) if name != "files.jsonl"]
    samples = [
        record for records in prefetch_map(storage, read_file, names[:_MAX_FILES]) for record in records
    ]
    by_reason: dict[str, list[RejectedRecord]] = {}
    for record in samples:
        by_reason.setdefault(record.reason, []).append(record)
    per_reason = max(1, MAX_SAMPLES // max(1, len(by_reason)))
    return [record for _, records in sorted(by_reason.items()) for record in records[:per_reason]]


def _read_records(storage: Storage, path: str) -> Iterator[RejectedRecord]:
    with storage.open(path) as file:
        for _ in range(_MAX_PER_FILE):
            line = file.readline(_LINE_BYTES)
            if not line.endswith(b"\n"):
                return
            entry = json.loads(line)
            text = " ".join(entry.get("raw", "")[: 4 * _SHOWN_CHARACTERS].split())[:_SHOWN_CHARACTERS]
            yield RejectedRecord(
                entry["reason"], entry["file"].rpartition("/")[2], entry["position"], entry["detail"], text
            )
