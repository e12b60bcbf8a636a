"""Curves of a run in TensorBoard and Weights & Biases, beside its log."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

from bioshards.corpus.errors import InvalidValueError

FOLDER: Final = "tensorboard"
"""Folder of the event files in a run."""


class Dashboard(Protocol):
    """Shows the entries of a log."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Show the values of a step."""

    def close(self) -> None:
        """End the run."""


@dataclass(frozen=True, slots=True)
class DashboardRun:
    """What dashboards must know of a run.

    Attributes:
        started_at: time of the first start; it tells apart two runs in one folder.
        steps_done: steps before this start; a resumed run repeats those after them.
        recipe: fields of the recipe.
    """

    folder: str
    started_at: str
    steps_done: int
    recipe: Mapping[str, Any]


class _TensorBoard:
    def __init__(self, run: DashboardRun) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer: Any = SummaryWriter(f"{run.folder}/{FOLDER}", purge_step=run.steps_done + 1)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def close(self) -> None:
        self._writer.close()


class _WeightsAndBiases:
    def __init__(self, run: DashboardRun) -> None:
        import wandb

        folder = os.path.realpath(run.folder)
        self._run: Any = wandb.init(
            project="bioshards",
            id=hashlib.sha256(f"{folder} {run.started_at}".encode()).hexdigest()[:16],
            name=os.path.basename(folder),
            dir=folder,
            config=dict(run.recipe),
            resume="allow",
        )

    def write(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        self._run.finish()


_DASHBOARDS: Final[dict[str, tuple[str, Callable[[DashboardRun], Dashboard]]]] = {
    "tensorboard": ("torch.utils.tensorboard", _TensorBoard),
    "wandb": ("wandb", _WeightsAndBiases),
}
"""Module and class by the name of option, package and extra."""


def check_installed(names: Iterable[str]) -> None:
    """Check that the packages of dashboards are installed.

    Raises:
        InvalidValueError: one is not.
    """
    for name in names:
        try:
            importlib.import_module(_DASHBOARDS[name][0])
        except ImportError as error:
            raise InvalidValueError(
                f"--{name} needs the package {name} ({error}): pip install 'bioshards[{name}]'"
            ) from error


def open_dashboards(names: Iterable[str], run: DashboardRun) -> list[Dashboard]:
    """Open dashboards by their names."""
    return [_DASHBOARDS[name][1](run) for name in names]


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
