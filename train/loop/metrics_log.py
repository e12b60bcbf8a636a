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

from bioshards.corpus.storage.local_storage import LocalStorage

LOG_FILE: Final = "log.jsonl"
SPEED_FIELDS: Final = ("tokens_per_second", "mfu", "data_wait_fraction", "elapsed_seconds")
"""Of a line, what depends on the machine; all else is the same whenever a run is done again."""


class MetricsLog:
    """The log of a run, open for further lines.

    Attributes:
        last: the last line about training; empty where there is none.
    """

    def __init__(self, run: str, steps_done: int) -> None:
        """Open it, cut back to what was logged until ``steps`` steps were done."""
        path = f"{run}/{LOG_FILE}"
        entries = [entry for entry in _read_entries(path) if entry["step"] <= steps_done]
        with LocalStorage().write(path) as file:
            file.writelines(map(_format_line, entries))
        train_entries = [entry for entry in entries if entry["split"] == "train"]
        self.last_train_entry: dict[str, Any] = train_entries[-1] if train_entries else {}
        self._file = open(path, "ab")  # noqa: SIM115 - open as long as the run is

    def write(self, entry: dict[str, Any]) -> None:
        """Add a line; a number that JSON does not have is null."""
        entry = _replace_non_finite(entry)
        self._file.write(_format_line(entry))
        self._file.flush()
        if entry["split"] == "train":
            self.last_train_entry = entry

    def close(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: each line was written, or has said so
            self._file.close()


def _read_entries(path: str) -> list[dict[str, Any]]:
    """The lines that are whole."""
    if not os.path.exists(path):
        return []
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")[:-1]
    return [entry for line in lines if (entry := _parse_entry(line))]


def _parse_entry(line: bytes) -> dict[str, Any] | None:
    with contextlib.suppress(ValueError):
        entry = json.loads(line)
        if isinstance(entry, dict) and isinstance(entry.get("step"), int) and "split" in entry:
            return entry
    return None


def _format_line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value
