"""The log.jsonl of a run, one JSON object per line; TensorBoard, Weights & Biases, and charts of it.

A resumed run repeats the steps after its checkpoint.  Lines of these steps and a partial last line are
removed when the log is opened.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import json
import math
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from bioshards.corpus.errors import InvalidValueError, describe_install
from bioshards.corpus.storage.local_storage import LocalStorage

LOG_FILE: Final = "log.jsonl"
TENSORBOARD_FOLDER: Final = "tensorboard"
"""Folder of the event files in a run."""
SPEED_FIELDS: Final = ("tokens_per_second", "data_wait_fraction", "elapsed_seconds", "device_memory_bytes")
"""Fields that depend on the machine; all others are reproducible."""
_DASHBOARD_MODULES: Final = {"tensorboard": "torch.utils.tensorboard", "wandb": "wandb"}
"""Modules of the dashboards by the name of option, package and extra."""


class Dashboard(NamedTuple):
    """How the values of a step are shown, and how the run is ended."""

    write: Callable[[int, dict[str, float]], object]
    close: Callable[[], object]


class RunLog:
    """Log of a run, open for appending.

    Attributes:
        entries: the complete entries.
        dashboards: show each new entry.
    """

    def __init__(self, run: str, step: int, dashboards: Sequence[Dashboard] = ()) -> None:
        """Open the log and remove entries of steps after ``step``."""
        path = f"{run}/{LOG_FILE}"
        self.entries = [entry for entry in _read_entries(path) if entry["step"] <= step]
        with LocalStorage().write(path) as file:
            file.writelines(map(_format_line, self.entries))
        self._file = open(path, "ab")  # noqa: SIM115 - closed by close()
        self.dashboards = dashboards

    def write(self, entry: dict[str, Any]) -> None:
        """Append an entry; NaN and infinity are written as null."""
        entry = _replace_non_finite(entry)
        self._file.write(_format_line(entry))
        self._file.flush()
        for dashboard in self.dashboards:
            dashboard.write(entry["step"], flatten_entry(entry))
        self.entries.append(entry)

    def find_last(self, split: str) -> dict[str, Any]:
        """Return the last entry of a split, ``train`` or ``validation``; empty if there is none."""
        return next((entry for entry in reversed(self.entries) if entry["split"] == split), {})

    def close(self) -> None:
        """Close the file and the dashboards."""
        for dashboard in self.dashboards:
            dashboard.close()
        with contextlib.suppress(OSError):  # every line was flushed, or its error raised, by write()
            self._file.close()


def _read_entries(path: str) -> Iterator[dict[str, Any]]:
    """Yield the complete entries; a line that was cut by a kill is left out."""
    if not os.path.exists(path):
        return
    with open(path, "rb") as file:
        lines = file.read().split(b"\n")[:-1]
    for line in lines:
        with contextlib.suppress(ValueError):
            entry = json.loads(line)
            if isinstance(entry, dict) and isinstance(entry.get("step"), int) and "split" in entry:
                yield entry


def _format_line(entry: dict[str, Any]) -> bytes:
    return json.dumps(entry).encode() + b"\n"


def _replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _replace_non_finite(item) for key, item in value.items()}
    return None if isinstance(value, float) and not math.isfinite(value) else value


def flatten_entry(entry: Mapping[str, Any]) -> dict[str, float]:
    """Return the finite numbers of an entry of the log: ``train/loss``, ``train/losses/mlm``."""

    def flatten(prefix: str, value: Any) -> Iterator[tuple[str, float]]:
        if isinstance(value, Mapping):
            for name, item in value.items():
                yield from flatten(f"{prefix}/{name}", item)
        elif isinstance(value, (int, float)):
            yield prefix, value

    values = {name: value for name, value in entry.items() if name not in ("step", "split")}
    return dict(flatten(entry["split"], values))


def check_installed(dashboards: Iterable[str]) -> None:
    """Check that the packages of dashboards are installed.

    Raises:
        InvalidValueError: one is not.
    """
    for name in dashboards:
        try:
            importlib.import_module(_DASHBOARD_MODULES[name])
        except ImportError as error:
            raise InvalidValueError(
                f"--{name} needs the package {name} ({error}): {describe_install(name)}"
            ) from error


def open_dashboards(
    names: Collection[str], run: str, started_at: str, step: int, recipe: Mapping[str, Any]
) -> list[Dashboard]:
    """Open dashboards by their names.

    Args:
        started_at: time of the first start; it tells apart two runs in one folder.
        step: steps before this start; a resumed run repeats those after them.
        recipe: fields of the recipe.
    """
    dashboards = []
    if "tensorboard" in names:
        from torch.utils.tensorboard import SummaryWriter

        writer: Any = SummaryWriter(f"{run}/{TENSORBOARD_FOLDER}", purge_step=step + 1)

        def write_events(step: int, values: Mapping[str, float]) -> None:
            for name, value in values.items():
                writer.add_scalar(name, value, step)
            writer.flush()

        dashboards.append(Dashboard(write_events, writer.close))
    if "wandb" in names:
        import wandb

        folder = os.path.realpath(run)
        wandb_run: Any = wandb.init(
            project="bioshards",
            id=hashlib.sha256(f"{folder} {started_at}".encode()).hexdigest()[:16],
            name=os.path.basename(folder),
            dir=folder,
            config=dict(recipe),
            resume="allow",
        )
        dashboards.append(Dashboard(lambda step, values: wandb_run.log(values, step=step), wandb_run.finish))
    return dashboards


class LossChart(NamedTuple):
    """Values of a loss over the steps, on linear scales from 0.

    Attributes:
        max_step, max_loss: ends of the scales.
        points: by split, points of an SVG polyline in a square of 100.
    """

    name: str
    max_step: int
    max_loss: float
    points: dict[str, str]


def plot_losses(entries: Sequence[Mapping[str, Any]]) -> list[LossChart]:
    """Return a chart of each loss of a log."""
    return [
        _plot_loss(name, entries)
        for name in dict.fromkeys(name for entry in entries for name in entry["losses"])
    ]


def _plot_loss(name: str, entries: Sequence[Mapping[str, Any]]) -> LossChart:
    lines = {
        split: [
            (entry["step"], entry["losses"][name])
            for entry in entries
            if entry["split"] == split and entry["losses"].get(name) is not None
        ]
        for split in ("train", "validation")
    }
    max_step = max((step for points in lines.values() for step, _ in points), default=1)
    max_loss = max((loss for points in lines.values() for _, loss in points), default=1) or 1
    texts = {
        split: " ".join(
            f"{100 * step / max_step:.2f},{100 * (1 - loss / max_loss):.2f}"
            for step, loss in (points if len(points) > 1 else 2 * points)  # a line of one point is not drawn
        )
        for split, points in lines.items()
    }
    return LossChart(name, max_step, max_loss, texts)
