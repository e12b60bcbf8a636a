"""Training loop: steps, log lines, validations and checkpoints.

On Ctrl-C or SIGTERM it finishes the step, saves a checkpoint and stops.  If training diverges it stops
without a checkpoint.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Event
from typing import Any, Final

import torch

from bioshards.corpus.errors import RunError
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.data.loader import StepLoader
from bioshards.train.data.prefetcher import Prefetcher
from bioshards.train.loop.checkpoint import LoopState
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.metrics_log import MetricsLog
from bioshards.train.loop.trainer import MAX_NON_FINITE_STEPS, MetricSums, MicroBatchMemoryError, Trainer

PREFETCH_STEPS: Final = 3
"""Steps loaded ahead."""


class DivergedError(RunError):
    """The gradients of several steps in a row were not finite."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of log lines, checkpoints and validations, in steps."""

    log: int
    save: int
    validate: int


@dataclass(frozen=True, slots=True)
class FlopsModel:
    """FLOP counts, for the model FLOP/s utilisation (MFU).

    Attributes:
        count_flops: FLOPs of training on the given counts, by the fields of ``BatchCounts``.
        peak_flops_per_second: peak of all devices together.
    """

    count_flops: Callable[[dict[str, int]], float]
    peak_flops_per_second: float


class _ThroughputMeter:
    """Throughput since the last log line, without validations and checkpoints."""

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
    """Training from ``steps_done`` to the last step of the recipe.

    Attributes:
        validation_batches: returns this process's validation batches; None: no validation.
        log: None in all processes but the main one.
        save_checkpoint: writes a checkpoint with the given state.
        stop: set to stop after the current step.
        first_step: step at which this run started.
        steps_done, tokens_seen: steps and training tokens of the model so far.
        metric_sums: totals since the last log line.
        micro_batch_limit: rows of a micro-batch that fit into memory; None: all did so far.
    """

    trainer: Trainer
    loader: StepLoader
    validation_batches: Callable[[], Iterator[tuple[Batch, BatchCounts]]] | None
    recipe: TrainRecipe
    processes: ProcessGroup
    intervals: Intervals
    flops_model: FlopsModel
    log: MetricsLog | None
    progress: Progress
    save_checkpoint: Callable[[LoopState], None]
    stop: Event
    first_step: int
    steps_done: int
    tokens_seen: int
    metric_sums: MetricSums
    micro_batch_limit: int | None

    def run(self) -> None:
        """Train to the last step.

        Raises:
            KeyboardInterrupt: ``stop`` was set; a checkpoint is saved.
            DivergedError: the gradients of several steps in a row were not finite.
            MicroBatchMemoryError: one row does not fit into memory.
        """
        started = time.perf_counter()
        meter = _ThroughputMeter()
        with (
            self.progress.bar("training", self.recipe.steps, " steps", initial=self.steps_done) as bar,
            contextlib.ExitStack() as prefetchers,
        ):
            batches = prefetchers.enter_context(self._prefetch())
            while self.steps_done < self.recipe.steps:
                micro_batches = batches.get()
                step_counts = self._reduce_counts(counts for _, counts in micro_batches)
                try:
                    grad_norm = self.trainer.update(
                        self.steps_done, micro_batches, step_counts, self.metric_sums
                    )
                except MicroBatchMemoryError:
                    if self.loader.micro_batch_size == 1:
                        raise
                    self._halve_micro_batches()
                    batches.close()
                    batches = prefetchers.enter_context(self._prefetch(batches.wait_seconds))
                    continue
                meter.add_counts(step_counts)
                self.steps_done += 1
                self.tokens_seen += step_counts["tokens"]
                bar.advance()
                if self._is_due(self.intervals.log):
                    self._check_divergence()
                    entry = self._build_entry(float(grad_norm)) | meter.compute_rates(
                        batches.wait_seconds, self.flops_model
                    )
                    self._log_entry({**entry, "elapsed_seconds": time.perf_counter() - started}, bar)
                    meter, self.metric_sums = _ThroughputMeter(batches.wait_seconds), MetricSums()
                with meter.pause():
                    if self.validation_batches and self._is_due(self.intervals.validate):
                        with self.progress.bar("validating", unit=" batches", is_transient=True) as batch_bar:
                            metrics = self.trainer.validate(batch_bar.each(self.validation_batches()))
                        self._log_entry({"step": self.steps_done, "split": "validation", **metrics}, bar)
                    if self._is_due(self.intervals.save):
                        self._save()

    def _prefetch(self, wait_seconds: float = 0.0) -> Prefetcher[list[tuple[Batch, BatchCounts]]]:
        """Load the next steps ahead; ``wait_seconds`` is the time that was waited for batches so far."""
        batches = Prefetcher(self.loader.load_step, self.steps_done, PREFETCH_STEPS)
        batches.wait_seconds = wait_seconds
        return batches

    def _halve_micro_batches(self) -> None:
        """Lower the size of micro-batches, in all processes alike."""
        size = self.loader.micro_batch_size
        self.micro_batch_limit = math.ceil(size / 2)
        self.loader = self.loader.with_micro_batch_size(self.micro_batch_limit)
        torch.cuda.empty_cache()
        self.progress.write(
            f"step {self.steps_done + 1:,}: {size:,} rows at once do not fit into memory; going on "
            f"with --micro-batch-size {self.micro_batch_limit:,}"
        )

    def _reduce_counts(self, local: Iterable[BatchCounts]) -> dict[str, int]:
        """Return the counts of a step over all processes; stop here if ``stop`` is set in any process."""
        columns = [sum(column) for column in zip(*local, strict=True)]
        *totals, stop_requests = map(int, self.processes.all_reduce([*columns, self.stop.is_set()]))
        if stop_requests:
            self._save()
            raise KeyboardInterrupt
        return dict(zip(BatchCounts._fields, totals, strict=True))

    def _check_divergence(self) -> None:
        """Raise DivergedError if training has diverged; waits for the device."""
        if (step := self.trainer.find_divergence()) is not None:
            raise DivergedError(
                f"training diverged: no finite gradient in {MAX_NON_FINITE_STEPS} consecutive steps up to "
                f"step {step:,}. Start again with another --output and a lower --learning-rate, a longer "
                "--warmup, or --precision float32"
            )

    def _save(self) -> None:
        self._check_divergence()
        self.save_checkpoint(
            LoopState(
                steps_done=self.steps_done,
                first_step=self.first_step,
                tokens_seen=self.tokens_seen,
                metric_sums=self.metric_sums.state_dict(self.processes),
                micro_batch_limit=self.micro_batch_limit,
            )
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
            **({"loss_scale": self.trainer.loss_scale} if self.recipe.precision == "float16" else {}),
            "tokens_seen": self.tokens_seen,
            "epoch": self.loader.get_epoch(self.steps_done),
            **self.processes.measure_memory(),
        }

    def _log_entry(self, entry: dict[str, Any], bar: ProgressBar) -> None:
        """Write an entry to the log and show it."""
        if self.log is None:
            return
        self.log.write(entry)
        losses = " ".join(f"{name} {value:.3f}" for name, value in entry["losses"].items())
        if entry["split"] == "validation":
            self.progress.write(f"step {self.steps_done:,}: validation {losses}")
        else:
            speed = f"{entry['tokens_per_second']:,.0f} tokens/s, MFU {entry['mfu']:.1%}"
            if "device_memory_bytes" in entry:
                speed += f", {entry['device_memory_bytes'] / 1e9:.1f} GB"
            bar.advance(0, f"{losses}, {speed}, data wait {entry['data_wait_fraction']:.1%}")
