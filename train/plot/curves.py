"""Read the logs of runs as curves; a run may still be writing, or may have been killed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.errors import UserError

LOG_FILE: Final = "log.jsonl"
Split = Literal["train", "validation"]
MetricPath = tuple[str, ...]
"""Keys of a value in a log entry: ``("lr",)`` or ``("losses", "mlm")``."""
FloatArray = NDArray[np.float64]


class NoLogsError(UserError):
    """There is nothing to plot."""


@dataclass
class RunLog:
    """Log of a run.

    Attributes:
        entries: entries of each split, by ascending step.
        notes: remarks for the reader, such as unreadable lines.
    """

    name: str
    entries: dict[Split, list[dict[str, Any]]] = field(
        default_factory=lambda: {"train": [], "validation": []}
    )
    notes: list[str] = field(default_factory=list)

    def get_curve(self, split: Split, metric: MetricPath) -> tuple[FloatArray, FloatArray]:
        """Return steps and values of the entries that have the metric; NaN for values that are not finite."""
        points = [
            (entry["step"], number_from_value(value))
            for entry in self.entries[split]
            if (value := _get_value(entry, metric)) is not _MISSING
        ]
        steps, values = np.array(points, np.float64).reshape(-1, 2).T
        return steps, values

    def list_metrics(self, group: str) -> list[MetricPath]:
        """List the metrics in ``losses`` or ``metrics``, in the order of first occurrence."""
        metrics: dict[MetricPath, None] = {}
        for entry in (*self.entries["train"], *self.entries["validation"]):
            if isinstance(names := entry.get(group), Mapping):
                metrics.update(dict.fromkeys((group, name) for name in names))
        return list(metrics)

    def get_last_values(self, split: Split) -> dict[MetricPath, Any]:
        """Return the values of the last entry, in its order."""
        values: dict[MetricPath, Any] = {}
        for name, value in (self.entries[split] or [{}])[-1].items():
            if isinstance(value, Mapping):
                values.update(
                    {(name, nested_name): nested_value for nested_name, nested_value in value.items()}
                )
            elif name != "split":
                values[(name,)] = value
        return values


def read_logs(folders: Iterable[str]) -> list[RunLog]:
    """Read the logs of runs.

    A run is named by the last part of its path, or by the whole path if two runs share that part.

    Raises:
        NoLogsError: a folder is not a run, or its log cannot be read.
    """
    folders = list(dict.fromkeys(folders))
    names = [os.path.basename(os.path.abspath(folder)) for folder in folders]
    return [
        _read_log(folder, name if names.count(name) == 1 else folder)
        for folder, name in zip(folders, names, strict=True)
    ]


def number_from_value(value: object) -> float:
    """Return a value of an entry as a float; NaN if it is not a finite number."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return math.nan


def smooth(values: FloatArray, half_window: int) -> FloatArray:
    """Return the moving average over ``half_window`` values on either side, NaN excluded.

    The window is symmetric and smaller near the beginning, where curves are steep; near the end only its
    right half is smaller.
    """
    positions = np.arange(len(values))
    num_before = np.minimum(half_window, positions)
    num_after = np.minimum(num_before, positions[::-1])
    is_finite = np.isfinite(values)
    cumulative_sums = np.concatenate([[0.0], np.cumsum(np.where(is_finite, values, 0.0))])
    cumulative_counts = np.concatenate([[0], np.cumsum(is_finite)])
    count = cumulative_counts[positions + num_after + 1] - cumulative_counts[positions - num_before]
    total = cumulative_sums[positions + num_after + 1] - cumulative_sums[positions - num_before]
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def _read_log(folder: str, name: str) -> RunLog:
    path = os.path.join(folder, LOG_FILE)
    if not os.path.isdir(folder):
        raise NoLogsError(f"{folder} does not exist")
    try:
        with open(path, "rb") as file:
            content = file.read()
    except FileNotFoundError:
        raise NoLogsError(f"{folder} has no {LOG_FILE}. Give the --output of a training run") from None
    except OSError as error:
        raise NoLogsError(f"{path} cannot be read: {error.strerror}") from error
    run = RunLog(name)
    bad_lines = [
        line_number
        for line_number, line in enumerate(content.splitlines(), start=1)
        if not _add_line(run, line)
    ]
    if bad_lines:
        run.notes.append(f"{len(bad_lines)} unreadable lines, the first is line {bad_lines[0]}")
    if not run.entries["train"] and not run.entries["validation"]:
        run.notes.append("no step is logged yet")
    for split, entries in run.entries.items():
        if non_finite_steps := [
            line["step"] for line in entries if math.isnan(number_from_value(line.get("loss")))
        ]:
            run.notes.append(
                f"{len(non_finite_steps)} {split} losses are not finite, the first at step "
                f"{non_finite_steps[0]:,}"
            )
    return run


def _add_line(run: RunLog, written: bytes) -> bool:
    """Add a line of the log to a run; return False if it cannot be parsed.

    A resumed run logs the steps after its checkpoint again.  Earlier entries of these steps are dropped.
    """
    try:
        entry = json.loads(written)
    except ValueError:
        return False
    if not isinstance(entry, dict) or not isinstance(step := entry.get("step"), int):
        return False
    if (split := entry.get("split")) in run.entries:
        if run.entries[split] and run.entries[split][-1]["step"] >= step:
            for other_split, entries in run.entries.items():
                run.entries[other_split] = [previous for previous in entries if previous["step"] < step]
        run.entries[split].append(entry)
    return True


_MISSING: Final = object()


def _get_value(entry: Mapping[str, Any], metric: Sequence[str]) -> object:
    """Return the value of a metric in an entry, or ``_MISSING``."""
    value: Any = entry
    for key in metric:
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value
