"""Keep rejected records: none is lost, none stops the run (DESIGN.md section 3, rule 3)."""

from __future__ import annotations

import base64
import collections
import contextlib
import json
from typing import BinaryIO

from .errors import BadRecordError
from .files import LocalFiles


class Rejects(contextlib.ExitStack):
    """The rejected records of a file, as JSON lines; the file is there only if there are any."""

    def __init__(self, files: LocalFiles, path: str) -> None:
        super().__init__()
        self._files, self._path = files, path
        self._out: BinaryIO | None = None
        self.reasons: collections.Counter[str] = collections.Counter()

    def add(self, file: str, position: int, xml: bytes, bad: BadRecordError) -> None:
        """Keep a record: its raw bytes as text where they are UTF-8, else in base 64."""
        entry: dict[str, object] = {"file": file, "position": position, "reason": bad.reason}
        entry["detail"] = bad.detail
        try:
            entry["raw"] = xml.decode()
        except UnicodeDecodeError:
            entry["raw_base64"] = base64.b64encode(xml).decode()
        if self._out is None:
            self._out = self.enter_context(self._files.write(self._path))
        self._out.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self.reasons[bad.reason] += 1
