"""The log.jsonl of a run: one JSON object per line.

A resumed run repeats the steps after its checkpoint.  Lines of these steps and a partial last line are
removed when the log is opened.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Sequence
from typing import Any, Final

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.train.loop.dashboards import Dashboard, flatten_entry

LOG_FILE: Final = "log.jsonl"
SPEED_FIELDS: Final = (
    *("tokens_per_second", "mfu", "data_wait_fraction", "elapsed_seconds"),
    "device_memory_bytes",
)
"""Fields that depend on the machine; all others are reproducible."""


class MetricsLog:
    """Log of a run, open for appending.

    Attributes:
        last_train_entry: last entry about training; empty if there is none.
        last_validation_entry: likewise.
    """

    def __init__(self, run: str, steps_done: int, dashboards: Sequence[Dashboard] = ()) -> None:
        """Open the log and remove entries of steps after ``steps_done``.

        Args:
            dashboards: show each new entry.
        """
        path = f"{run}/{LOG_FILE}"
        entries = [entry for entry in _read_entries(path) if entry["step"] <= steps_done]
        with LocalStorage().write(path) as file:
            file.writelines(map(_format_line, entries))
        last_entries = {entry["split"]: entry for entry in entries}
        self.last_train_entry: dict[str, Any] = last_entries.get("train", {})
        self.last_validation_entry: dict[str, Any] = last_entries.get("validation", {})
        self._file = open(path, "ab")  # noqa: SIM115 - closed by close()
        self._dashboards = dashboards

    def write(self, entry: dict[str, Any]) -> None:
        """Append an entry; NaN and infinity are written as null."""
        entry = _replace_non_finite(entry)
        self._file.write(_format_line(entry))
        self._file.flush()
        for dashboard in self._dashboards:
            dashboard.write(entry["step"], flatten_entry(entry))
        if entry["split"] == "train":
            self.last_train_entry = entry
        else:
            self.last_validation_entry = entry

    def close(self) -> None:
        """Close the file and the dashboards."""
        for dashboard in self._dashboards:
            dashboard.close()
        with contextlib.suppress(OSError):  # every line was flushed, or its error raised, by write()
            self._file.close()


def _read_entries(path: str) -> list[dict[str, Any]]:
    """Read the complete entries."""
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
