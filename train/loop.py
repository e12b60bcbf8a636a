"""The loop: step after step, with a line in the log, a validation and a checkpoint now and then.

It stops at the end of a step when it is told to (Ctrl-C, SIGTERM), and when the numbers have stopped being
numbers; in both cases what was learned until then is in a checkpoint.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from threading import Event
from typing import Any, Final

from .batch import Batch, Counts
from .log import Log
from .prefetch import Prefetch
from .processes import Processes
from .recipes import Recipe
from .schedules import mask_rate
from .steps import Steps
from .trainer import Tally, Trainer

NOT_FINITE: Final = 10
"""Steps in a row without a finite gradient after which a run stops: one comes of a bad batch, ten of a
model that is beyond help."""
AHEAD: Final = 3
"""Steps that are made before they are needed."""


class Diverged(Exception):
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


@dataclass(slots=True)
class Loop:
    """A run from ``done`` steps to the recipe's last.

    Attributes:
        validation: gives this process's part of the validation set; None: there is none.
        save: writes a checkpoint of so many steps and tokens.
        stop: set when the run is to stop.
        done, tokens: steps and tokens behind the model; ``begun``: the steps when this process began.
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
    save: Callable[[int, int], None]
    stop: Event
    done: int
    tokens: int
    begun: int = field(init=False)

    def __post_init__(self) -> None:
        self.begun = self.done

    def run(self) -> None:
        """Train.

        Raises:
            KeyboardInterrupt: the run was told to stop, and has saved a checkpoint.
            Diverged: see there.
        """
        began = since = time.perf_counter()
        waited, bad, tally = 0.0, 0, Tally()
        with Prefetch(self.steps.at, self.done, AHEAD) as batches:
            while self.done < self.recipe.steps:
                micro = batches.get()
                total = self._together(counts for _, counts in micro)
                norm = self.trainer.update(self.done, micro, total, tally)
                self.done += 1
                self.tokens += total["tokens"]
                bad = 0 if math.isfinite(norm) else bad + 1
                if bad == NOT_FINITE:
                    raise Diverged(self._diverged())
                if self._now(self.every.log):
                    seconds = time.perf_counter() - since
                    entry = self._entry(tally, norm, seconds, batches.waited - waited)
                    self._tell({**entry, "seconds": time.perf_counter() - began})
                    since, waited, tally = time.perf_counter(), batches.waited, Tally()
                paused = time.perf_counter()
                if self.validation and self._now(self.every.validate):
                    found = self.trainer.validate(self.validation())
                    self._tell({"step": self.done, "kind": "validation", **found})
                if self._now(self.every.save):
                    self.save(self.done, self.tokens)
                since += time.perf_counter() - paused

    def _together(self, local: Iterable[Counts]) -> dict[str, int]:
        """What all processes' micro-batches of a step hold; the place where all learn that one is to stop."""
        columns = [sum(column) for column in zip(*local, strict=True)]
        *together, stopped = map(int, self.processes.sums([*columns, self.stop.is_set()]))
        if stopped:
            self.save(self.done, self.tokens)
            raise KeyboardInterrupt
        return dict(zip(Counts._fields, together, strict=True))

    def _now(self, every: int) -> bool:
        return self.done % every == 0 or self.done == self.recipe.steps

    def _entry(self, tally: Tally, norm: float, seconds: float, waited: float) -> dict[str, Any]:
        recipe, step = self.recipe, self.done - 1
        rates = recipe.mask_rate, recipe.mask_rate_end or recipe.mask_rate
        return {
            "step": self.done,
            "kind": "train",
            **tally.told(self.trainer.trained, self.processes),
            "lr": self.trainer.learning_rate(step),
            "mask_rate": mask_rate(step, recipe.steps, *rates),
            "grad_norm": norm,
            "tokens": self.tokens,
            "tokens_per_s": tally.counts["tokens"] / seconds,
            "mfu": self.cost.operations(tally.counts) / seconds / self.cost.peak,
            "waiting": waited / seconds,
            "epoch": self.steps.epoch(self.done),
        }

    def _tell(self, entry: dict[str, Any]) -> None:
        if self.log is None:
            return
        self.log.write(entry)
        losses = " ".join(f"{name} {value:.3f}" for name, value in entry["losses"].items())
        if entry["kind"] == "validation":
            self.say(f"step {self.done:,}: validation {losses}")
            return
        left = (self.recipe.steps - self.done) * entry["seconds"] / (self.done - self.begun)
        self.say(
            f"step {self.done:,} of {self.recipe.steps:,}: {losses}, {entry['tokens_per_s']:,.0f} tokens/s, "
            f"waiting {entry['waiting']:.1%}, {_time(left)} left"
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
