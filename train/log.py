"""A run's ``log.jsonl``: a line of JSON now and then, and never a line of steps that are not there.

A run that goes on from a checkpoint does its later steps once more; what a killed process has logged of
them, and a line that it was writing, are taken out first.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from typing import Any, Final

from bioshards.corpus.files import LocalFiles

NAME: Final = "log.jsonl"
SPEEDS: Final = ("tokens_per_s", "mfu", "waiting", "seconds")
"""Of a line, what the machine has a say in; all else is the same whenever and wherever a run is done again."""


class Log:
    """The log of a run, open for further lines.

    Attributes:
        last: the last line about training; empty where there is none.
    """

    def __init__(self, run: str, steps: int) -> None:
        """Open it, cut back to what was logged until ``steps`` steps were done."""
        path = f"{run}/{NAME}"
        kept = [line for line in _lines(path) if json.loads(line)["step"] <= steps]
        with LocalFiles().write(path) as file:
            file.writelines(line + b"\n" for line in kept)
        told = [entry for entry in map(json.loads, kept) if entry["kind"] == "train"]
        self.last: dict[str, Any] = told[-1] if told else {}
        self._file = open(path, "ab")  # noqa: SIM115 - open as long as the run is

    def write(self, entry: dict[str, Any]) -> None:
        """Add a line; a number that JSON does not have is null."""
        entry = _finite(entry)
        self._file.write(json.dumps(entry).encode() + b"\n")
        self._file.flush()
        if entry["kind"] == "train":
            self.last = entry

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: each line was written, or has said so
            self._file.close()


def _lines(path: str) -> list[bytes]:
    """The lines that are whole."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")[:-1]
    whole = []
    for line in lines:
        with contextlib.suppress(ValueError, KeyError, TypeError):
            json.loads(line)["step"]
            whole.append(line)
    return whole


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
