"""Write rejected records to JSON Lines files."""

from __future__ import annotations

import base64
import collections
import contextlib
import json
from collections.abc import Mapping
from typing import BinaryIO

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.storage.storage_protocol import Storage


class RejectWriter(contextlib.ExitStack):
    """Writer of rejected records or documents; the file is created with the first one.

    Attributes:
        reason_counts: number of them by reason.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path
        self._file: BinaryIO | None = None
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

    def _write(self, reason: str, entry: Mapping[str, object]) -> None:
        if self._file is None:
            self._file = self.enter_context(self._storage.write(self._path))
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self.reason_counts[reason] += 1
