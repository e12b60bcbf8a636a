"""Write rejected records to JSON Lines files."""

from __future__ import annotations

import base64
import collections
import contextlib
import json
from typing import BinaryIO

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.storage.storage_protocol import Storage


class RejectWriter(contextlib.ExitStack):
    """Writer of the rejected records of a source; the file is created with the first record.

    Attributes:
        reason_counts: number of rejected records by reason.
    """

    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        self._storage, self._path = storage, path
        self._file: BinaryIO | None = None
        self.reason_counts: collections.Counter[str] = collections.Counter()

    def add(self, file: str, position: int, xml: bytes, rejection: BadRecordError) -> None:
        """Write a record with its raw bytes, as text if they are UTF-8, else in base 64."""
        entry: dict[str, object] = {"file": file, "position": position, "reason": rejection.reason}
        entry["detail"] = rejection.detail
        try:
            entry["raw"] = xml.decode()
        except UnicodeDecodeError:
            entry["raw_base64"] = base64.b64encode(xml).decode()
        if self._file is None:
            self._file = self.enter_context(self._storage.write(self._path))
        self._file.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self.reason_counts[rejection.reason] += 1
