"""The loop: step after step, with a line in the log, a validation and a checkpoint now and then.

It stops at the end of a step when it is told to (Ctrl-C, SIGTERM), with a checkpoint, and when the numbers
have stopped being numbers, without one.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

from bioshards.corpus.errors import RunError

from .batch import Batch, Counts
from .log import Log
from .prefetch import Prefetch
from .processes import Processes
from .recipes import Recipe
from .steps import Steps
from .trainer import Tally, Trainer

NOT_FINITE: Final = 10
"""Steps in a row without a finite gradient after which a run stops: one comes of a bad batch, ten of a
model that is beyond help."""
AHEAD: Final = 3
"""Steps that are made before they are needed."""


class DivergedError(RunError):
    """The gradients of several steps in a row were not finite."""


@dataclass(frozen=True, slots=True)
class Every:
    """How often, in steps."""

    log: int
    save: int
    validate: int


@dataclass(frozen=True, slots=True)
class Cost:
    """What turns counts into a share of what the hardware could do.

    Attributes:
        operations: floating point operations of counts.
        peak: operations a second of all devices together.
    """

    operations: Callable[[dict[str, int]], float]
    peak: float


class _Clock:
    """What a stretch of steps took, validations and checkpoints left out."""

    def __init__(self, waited: float = 0.0) -> None:
        self._since, self._waited = time.perf_counter(), waited
        self._counts = dict.fromkeys(Counts._fields, 0)

    def count(self, counts: Mapping[str, int]) -> None:
        for name, value in counts.items():
            self._counts[name] += value

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._since += time.perf_counter() - began

    def told(self, waited: float, cost: Cost) -> dict[str, float]:
        seconds = time.perf_counter() - self._since
        return {
            "tokens_per_s": self._counts["tokens"] / seconds,
            "mfu": cost.operations(self._counts) / seconds / cost.peak,
            "waiting": (waited - self._waited) / seconds,
        }


@dataclass(slots=True)
class Loop:
    """A run from ``done`` steps to the recipe's last.

    Attributes:
        validation: gives this process's part of the validation set; None: there is none.
        save: writes a checkpoint, with what is to be given to go on: ``done``, ``tokens`` and ``tally``.
        stop: set when the run is to stop.
        done, tokens: steps and tokens behind the model.
        tally: of the steps since the last line in the log.
    """

    trainer: Trainer
    steps: Steps
    validation: Callable[[], Iterator[tuple[Batch, Counts]]] | None
    recipe: Recipe
    processes: Processes
    every: Every
    cost: Cost
    log: Log | None
    say: Callable[[str], None]
    save: Callable[[dict[str, Any]], None]
    stop: Event
    done: int
    tokens: int
    tally: Tally

    def run(self) -> None:
        """Train.

        Raises:
            KeyboardInterrupt: the run was told to stop, and has saved a checkpoint.
            DivergedError: see there.
        """
        began, first, bad, clock = time.perf_counter(), self.done, 0, _Clock()
        with Prefetch(self.steps.at, self.done, AHEAD) as batches:
            while self.done < self.recipe.steps:
                micro = batches.get()
                total = self._together(counts for _, counts in micro)
                norm = self.trainer.update(self.done, micro, total, self.tally)
                clock.count(total)
                self.done += 1
                self.tokens += total["tokens"]
                bad = 0 if math.isfinite(norm) else bad + 1
                if bad == NOT_FINITE:
                    raise DivergedError(self._diverged())
                if self._now(self.every.log):
                    entry = self._entry(norm) | clock.told(batches.waited, self.cost)
                    seconds = time.perf_counter() - began
                    self._tell({**entry, "seconds": seconds}, seconds / (self.done - first))
                    clock, self.tally = _Clock(batches.waited), Tally()
                with clock.paused():
                    if self.validation and self._now(self.every.validate):
                        found = self.trainer.validate(self.validation())
                        self._tell({"step": self.done, "kind": "validation", **found})
                    if self._now(self.every.save):
                        self._save()

    def _together(self, local: Iterable[Counts]) -> dict[str, int]:
        """What all processes' micro-batches of a step hold; the place where all learn that one is to stop."""
        columns = [sum(column) for column in zip(*local, strict=True)]
        *together, stopped = map(int, self.processes.sums([*columns, self.stop.is_set()]))
        if stopped:
            self._save()
            raise KeyboardInterrupt
        return dict(zip(Counts._fields, together, strict=True))

    def _save(self) -> None:
        self.save({"done": self.done, "tokens": self.tokens, "tally": self.tally.state(self.processes)})

    def _now(self, every: int) -> bool:
        return self.done % every == 0 or self.done == self.recipe.steps

    def _entry(self, norm: float) -> dict[str, Any]:
        step = self.done - 1
        return {
            "step": self.done,
            "kind": "train",
            **self.tally.told(self.trainer.trained, self.processes),
            "lr": self.trainer.learning_rate(step),
            "mask_rate": self.recipe.mask_rate_at(step),
            "grad_norm": norm,
            "skipped": self.tally.skipped,
            "tokens": self.tokens,
            "epoch": self.steps.epoch(self.done),
        }

    def _tell(self, entry: dict[str, Any], each: float = 0.0) -> None:
        """Into the log, and to whoever looks on.

        Args:
            each: seconds a step, of a line about training.
        """
        if self.log is None:
            return
        self.log.write(entry)
        losses = " ".join(f"{name} {value:.3f}" for name, value in entry["losses"].items())
        if entry["kind"] == "validation":
            self.say(f"step {self.done:,}: validation {losses}")
            return
        self.say(
            f"step {self.done:,} of {self.recipe.steps:,}: {losses}, {entry['tokens_per_s']:,.0f} tokens/s, "
            f"waiting {entry['waiting']:.1%}, {_time((self.recipe.steps - self.done) * each)} left"
        )

    def _diverged(self) -> str:
        return (
            f"no finite gradient in {NOT_FINITE} steps in a row, the last of them {self.done:,}: the model "
            "is beyond help. Its last checkpoint is from before; begin anew with another --out and a lower "
            "--learning-rate, a longer --warmup, or --precision float32"
        )


def _time(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
