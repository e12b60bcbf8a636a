"""Keep rejected records: none is lost, none stops the run (DESIGN.md section 3, rule 3)."""

from __future__ import annotations

import base64
import collections
import contextlib
import json
from collections.abc import Iterator
from typing import BinaryIO

from .files import LocalFiles
from .medline import BadRecord


class Rejects:
    """The rejected records of a file, as JSON lines written when the first one comes."""

    def __init__(self, files: LocalFiles, path: str, stack: contextlib.ExitStack) -> None:
        self._files, self._path, self._stack = files, path, stack
        self._out: BinaryIO | None = None
        self.reasons: collections.Counter[str] = collections.Counter()

    @classmethod
    @contextlib.contextmanager
    def opened(cls, files: LocalFiles, path: str) -> Iterator[Rejects]:
        with contextlib.ExitStack() as stack:
            yield cls(files, path, stack)

    def add(self, file: str, position: int, xml: bytes, bad: BadRecord) -> None:
        """Keep a record: its raw bytes as text where they are UTF-8, else in base 64."""
        entry: dict[str, object] = {"file": file, "position": position, "reason": bad.reason}
        entry["detail"] = bad.detail
        try:
            entry["raw"] = xml.decode()
        except UnicodeDecodeError:
            entry["raw_base64"] = base64.b64encode(xml).decode()
        if self._out is None:
            self._out = self._stack.enter_context(self._files.write(self._path))
        self._out.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")
        self.reasons[bad.reason] += 1
