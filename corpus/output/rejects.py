"""Write rejected records to JSON Lines files."""

from __future__ import annotations

import base64
import collections
import contextlib
import itertools
import json
from collections.abc import Iterable, Mapping
from typing import Final

from bioshards.corpus.errors import MAX_SHOWN, BadRecordError, quote, shorten_list
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

MAX_REJECTED_OF_FEW: Final = 5
"""Rejected items that never end a run, as a fraction of a few says little; a fraction of 0 allows none."""


def is_over_limit(rejected: int, total: int, max_fraction: float) -> bool:
    """Return True if more items are rejected than ``--max-rejected`` allows, and more than a few."""
    return rejected > max(MAX_REJECTED_OF_FEW if max_fraction else 0, max_fraction * total)


def describe_rejected(storage: Storage, paths: Iterable[str], rejected: int) -> str:
    """Return the files of rejected records or documents and the first of these, for a message.

    Args:
        paths: the files, at least one.
        rejected: number of records in all files.
    """
    paths = list(paths)

    def list_first(path: str) -> list[str]:
        with storage.open(path) as file:
            return [_name_entry(line) for line in itertools.islice(file, MAX_SHOWN)]

    first = [name for names in prefetch_map(storage, list_first, paths[:MAX_SHOWN]) for name in names]
    return f"{shorten_list(paths)} ({shorten_list(first[:MAX_SHOWN], rejected, '; ')})"


def _name_entry(line: bytes) -> str:
    try:
        entry = json.loads(line)
    except ValueError:
        return "a line that is damaged"
    place = entry["id"] if "id" in entry else f"record {entry['position']}"
    return quote(f"{entry['file']}, {place}: {entry['detail']}")


class RejectWriter(contextlib.ExitStack):
    """Writer of rejected records or documents; the file is created with the first one.

    Attributes:
        reason_counts: number of them by reason.
        sha256: of the file; '' without one.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path
        self._file: HashingWriter | None = None
        self.reason_counts: collections.Counter[str] = collections.Counter()

    def add_record(self, file: str, position: int, xml: bytes, rejection: BadRecordError) -> None:
        """Write a record with its raw bytes, as text if they are UTF-8, else in base 64."""
        entry = {"file": file, "position": position, "reason": rejection.reason, "detail": rejection.detail}
        try:
            entry["raw"] = xml.decode()
        except UnicodeDecodeError:
            entry["raw_base64"] = base64.b64encode(xml).decode()
        self._write(rejection.reason, entry)

    def add_document(self, file: str, document_id: str, reason: str, detail: str) -> None:
        """Write the reason why a document of a shard is rejected."""
        self._write(reason, {"file": file, "id": document_id, "reason": reason, "detail": detail})

    @property
    def sha256(self) -> str:
        return self._file.sha256 if self._file else ""

    def _write(self, reason: str, entry: Mapping[str, object]) -> None:
        if self._file is None:
            self._file = HashingWriter(self.enter_context(self._storage.write(self._path)))
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self.reason_counts[reason] += 1
