"""What a run has logged, as curves; a run may be drawn while it writes, and after it was killed."""

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

LOG: Final = "log.jsonl"
Kind = Literal["train", "validation"]
Place = tuple[str, ...]
"""Where a value is in a line of the log: ``("lr",)`` or ``("losses", "mlm")``."""
Numbers = NDArray[np.float64]


class NoLogsError(UserError):
    """There is nothing to draw: the message says why, and what to do."""


@dataclass
class Run:
    """A run's lines, of each kind by ascending step, and what its reader should know of them."""

    name: str
    lines: dict[Kind, list[dict[str, Any]]] = field(default_factory=lambda: {"train": [], "validation": []})
    notes: list[str] = field(default_factory=list)

    def curve(self, kind: Kind, place: Place) -> tuple[Numbers, Numbers]:
        """Steps and values of the lines that have the value; NaN where it is no finite number."""
        points = [
            (line["step"], number(value))
            for line in self.lines[kind]
            if (value := _at(line, place)) is not _MISSING
        ]
        steps, values = np.array(points, np.float64).reshape(-1, 2).T
        return steps, values

    def places(self, part: str) -> list[Place]:
        """The values in ``losses`` or ``figures``, in the order in which they come up."""
        found: dict[Place, None] = {}
        for line in (*self.lines["train"], *self.lines["validation"]):
            if isinstance(names := line.get(part), Mapping):
                found.update(dict.fromkeys((part, name) for name in names))
        return list(found)

    def last(self, kind: Kind) -> dict[Place, Any]:
        """The values of the last line, in its order."""
        found: dict[Place, Any] = {}
        for name, value in (self.lines[kind] or [{}])[-1].items():
            if isinstance(value, Mapping):
                found.update({(name, inner): one for inner, one in value.items()})
            elif name != "kind":
                found[(name,)] = value
        return found


def read(folders: Iterable[str]) -> list[Run]:
    """Read the logs of runs, each named by its folder, or by its whole path where two folders have one name.

    Raises:
        NoLogsError: a folder is no run, or its log cannot be read.
    """
    folders = list(dict.fromkeys(folders))
    names = [os.path.basename(os.path.abspath(folder)) for folder in folders]
    return [
        _read(folder, name if names.count(name) == 1 else folder)
        for folder, name in zip(folders, names, strict=True)
    ]


def number(value: object) -> float:
    """A value of a line as a number: NaN for what is none, or not finite."""
    if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
        return float(value)
    return math.nan


def smooth(values: Numbers, half: int) -> Numbers:
    """The mean of each value, ``half`` before it and as many after it, NaN left out.

    Near the beginning, where curves are steep, fewer are taken on both sides; near the end fewer after it.
    """
    at = np.arange(len(values))
    before = np.minimum(half, at)
    after = np.minimum(before, at[::-1])
    there = np.isfinite(values)
    sums = np.concatenate([[0.0], np.cumsum(np.where(there, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(there)])
    count = counts[at + after + 1] - counts[at - before]
    total = sums[at + after + 1] - sums[at - before]
    return np.where(count > 0, total / np.maximum(count, 1), math.nan)


def _read(folder: str, name: str) -> Run:
    path = os.path.join(folder, LOG)
    if not os.path.isdir(folder):
        raise NoLogsError(f"{folder}: there is no such folder")
    try:
        with open(path, "rb") as file:
            written = file.read()
    except FileNotFoundError:
        raise NoLogsError(f"{folder} is no run: it has no {LOG}. Name what was given to --out") from None
    except OSError as error:
        raise NoLogsError(f"{path} cannot be read: {error.strerror}") from error
    run = Run(name)
    bad = [at for at, line in enumerate(written.splitlines(), start=1) if not _take(run, line)]
    if bad:
        run.notes.append(f"{len(bad)} of its lines could not be read, the first of them line {bad[0]}")
    if not run.lines["train"] and not run.lines["validation"]:
        run.notes.append("it has logged no step yet")
    for kind, lines in run.lines.items():
        if wrong := [line["step"] for line in lines if math.isnan(number(line.get("loss")))]:
            run.notes.append(
                f"{len(wrong)} of its {kind} losses are no finite numbers, the first at step {wrong[0]:,}"
            )
    return run


def _take(run: Run, written: bytes) -> bool:
    """Take a line of the log up, if it is whole.

    A run that was killed goes on from its last checkpoint and logs some steps anew: what was logged from that
    step on does not count any more.
    """
    try:
        line = json.loads(written)
    except ValueError:
        return False
    if not isinstance(line, dict) or not isinstance(step := line.get("step"), int):
        return False
    if (kind := line.get("kind")) in run.lines:
        if run.lines[kind] and run.lines[kind][-1]["step"] >= step:
            for of_kind, lines in run.lines.items():
                run.lines[of_kind] = [one for one in lines if one["step"] < step]
        run.lines[kind].append(line)
    return True


_MISSING: Final = object()


def _at(line: Mapping[str, Any], place: Sequence[str]) -> object:
    """The value at a place of a line, or ``_MISSING``."""
    value: Any = line
    for key in place:
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value
