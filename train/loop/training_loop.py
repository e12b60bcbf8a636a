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
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.prefetcher import Prefetcher

from .distributed import ProcessGroup
from .metrics_log import MetricsLog
from .trainer import MetricSums, Trainer

MAX_NON_FINITE_STEPS: Final = 10
"""Steps in a row without a finite gradient after which a run stops: one comes of a bad batch, ten of a
model that is beyond help."""
PREFETCH_STEPS: Final = 3
"""Steps that are made before they are needed."""


class DivergedError(RunError):
    """The gradients of several steps in a row were not finite."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """How often, in steps."""

    log: int
    save: int
    validate: int


@dataclass(frozen=True, slots=True)
class FlopsModel:
    """What turns counts into a share of what the hardware could do.

    Attributes:
        operations: floating point operations of counts.
        peak: operations a second of all devices together.
    """

    count_flops: Callable[[dict[str, int]], float]
    peak_flops_per_second: float


class _ThroughputMeter:
    """What a stretch of steps took, validations and checkpoints left out."""

    def __init__(self, wait_seconds: float = 0.0) -> None:
        self._started, self._wait_seconds = time.perf_counter(), wait_seconds
        self._counts = dict.fromkeys(BatchCounts._fields, 0)

    def add_counts(self, counts: Mapping[str, int]) -> None:
        for name, value in counts.items():
            self._counts[name] += value

    @contextlib.contextmanager
    def pause(self) -> Iterator[None]:
        pause_started = time.perf_counter()
        yield
        self._started += time.perf_counter() - pause_started

    def compute_rates(self, wait_seconds: float, flops_model: FlopsModel) -> dict[str, float]:
        seconds = time.perf_counter() - self._started
        return {
            "tokens_per_second": self._counts["tokens"] / seconds,
            "mfu": flops_model.count_flops(self._counts) / seconds / flops_model.peak_flops_per_second,
            "data_wait_fraction": (wait_seconds - self._wait_seconds) / seconds,
        }


@dataclass(slots=True)
class TrainingLoop:
    """A run from ``done`` steps to the recipe's last.

    Attributes:
        validation: gives this process's part of the validation set; None: there is none.
        save: writes a checkpoint, with what is to be given to go on: ``done``, ``tokens`` and ``tally``.
        stop: set when the run is to stop.
        done, tokens: steps and tokens behind the model.
        tally: of the steps since the last line in the log.
    """

    trainer: Trainer
    loader: StepLoader
    validation_batches: Callable[[], Iterator[tuple[Batch, BatchCounts]]] | None
    recipe: TrainRecipe
    processes: ProcessGroup
    intervals: Intervals
    flops_model: FlopsModel
    log: MetricsLog | None
    progress: Callable[[str], None]
    save_checkpoint: Callable[[dict[str, Any]], None]
    stop: Event
    steps_done: int
    tokens_seen: int
    metric_sums: MetricSums

    def run(self) -> None:
        """Train.

        Raises:
            KeyboardInterrupt: the run was told to stop, and has saved a checkpoint.
            DivergedError: see there.
        """
        started, first_step, non_finite_steps, meter = (
            time.perf_counter(),
            self.steps_done,
            0,
            _ThroughputMeter(),
        )
        with Prefetcher(self.loader.load_step, self.steps_done, PREFETCH_STEPS) as batches:
            while self.steps_done < self.recipe.steps:
                micro_batches = batches.get()
                step_counts = self._reduce_counts(counts for _, counts in micro_batches)
                grad_norm = self.trainer.update(self.steps_done, micro_batches, step_counts, self.metric_sums)
                meter.add_counts(step_counts)
                self.steps_done += 1
                self.tokens_seen += step_counts["tokens"]
                non_finite_steps = 0 if math.isfinite(grad_norm) else non_finite_steps + 1
                if non_finite_steps == MAX_NON_FINITE_STEPS:
                    raise DivergedError(self._format_divergence())
                if self._is_due(self.intervals.log):
                    entry = self._build_entry(grad_norm) | meter.compute_rates(
                        batches.wait_seconds, self.flops_model
                    )
                    seconds = time.perf_counter() - started
                    self._log_entry(
                        {**entry, "elapsed_seconds": seconds}, seconds / (self.steps_done - first_step)
                    )
                    meter, self.metric_sums = _ThroughputMeter(batches.wait_seconds), MetricSums()
                with meter.pause():
                    if self.validation_batches and self._is_due(self.intervals.validate):
                        metrics = self.trainer.validate(self.validation_batches())
                        self._log_entry({"step": self.steps_done, "split": "validation", **metrics})
                    if self._is_due(self.intervals.save):
                        self._save()

    def _reduce_counts(self, local: Iterable[BatchCounts]) -> dict[str, int]:
        """What all processes' micro-batches of a step hold; the place where all learn that one is to stop."""
        columns = [sum(column) for column in zip(*local, strict=True)]
        *totals, stop_requests = map(int, self.processes.all_reduce([*columns, self.stop.is_set()]))
        if stop_requests:
            self._save()
            raise KeyboardInterrupt
        return dict(zip(BatchCounts._fields, totals, strict=True))

    def _save(self) -> None:
        self.save_checkpoint(
            {
                "done": self.steps_done,
                "tokens": self.tokens_seen,
                "tally": self.metric_sums.state_dict(self.processes),
            }
        )

    def _is_due(self, interval: int) -> bool:
        return self.steps_done % interval == 0 or self.steps_done == self.recipe.steps

    def _build_entry(self, grad_norm: float) -> dict[str, Any]:
        step = self.steps_done - 1
        return {
            "step": self.steps_done,
            "split": "train",
            **self.metric_sums.compute_metrics(self.trainer.training_objective, self.processes),
            "lr": self.trainer.learning_rate(step),
            "mask_rate": self.recipe.mask_rate_at(step),
            "grad_norm": grad_norm,
            "skipped_steps": self.metric_sums.skipped_steps,
            "tokens_seen": self.tokens_seen,
            "epoch": self.loader.get_epoch(self.steps_done),
        }

    def _log_entry(self, entry: dict[str, Any], seconds_per_step: float = 0.0) -> None:
        """Into the log, and to whoever looks on.

        Args:
            seconds_per_step: seconds a step, of a line about training.
        """
        if self.log is None:
            return
        self.log.write(entry)
        losses = " ".join(f"{name} {value:.3f}" for name, value in entry["losses"].items())
        if entry["split"] == "validation":
            self.progress(f"step {self.steps_done:,}: validation {losses}")
            return
        self.progress(
            f"step {self.steps_done:,} of {self.recipe.steps:,}: {losses}, {entry['tokens_per_second']:,.0f} "
            "tokens/s, "
            f"waiting {entry['data_wait_fraction']:.1%}, "
            f"{_format_duration((self.recipe.steps - self.steps_done) * seconds_per_step)} left"
        )

    def _format_divergence(self) -> str:
        return (
            f"no finite gradient in {MAX_NON_FINITE_STEPS} steps in a row, the last of them "
            f"{self.steps_done:,}: the model "
            "is beyond help. Its last checkpoint is from before; begin anew with another --output and a lower "
            "--learning-rate, a longer --warmup, or --precision float32"
        )


def _format_duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    if minutes < 1:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes / 60:.0f} h"
