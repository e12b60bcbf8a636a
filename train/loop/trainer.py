"""Update step: forward and backward over micro-batches, gradient all-reduce, clipping, optimizer.

Loss sums are divided by the counts of the whole step over all processes, so the partition of a batch changes
the result by rounding only.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.loop.distributed import ProcessGroup
from bioshards.train.loop.precision import LossScaler, autocast, enable_tf32
from bioshards.train.models import attention
from bioshards.train.models.adversarial_objective import AdversarialObjective
from bioshards.train.models.objective import Objective
from bioshards.train.optim.gradients import FlatGradients
from bioshards.train.optim.optimizers import Adam, Lamb, OptimizerStateError, compute_layer_scales
from bioshards.train.optim.schedules import learning_rate

MAX_NON_FINITE_STEPS: Final = 10
"""Consecutive steps without a finite gradient after which a run stops: one can be a bad batch, ten are a
diverged model."""


class MicroBatchMemoryError(RunError):
    """A micro-batch does not fit into the memory of a GPU."""


class MetricSums:
    """Sums of losses and metric numerators over micro-batches, and their counts.

    Sums are those of this process and stay on the device, so that adding does not wait for it.  Counts are
    those of all processes.  Steps without a finite gradient are in neither.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self._counts = dict.fromkeys(BatchCounts._fields, 0)
        self._skipped_steps = 0
        self._unread_steps: list[tuple[Mapping[str, int], Tensor]] = []

    @property
    def counts(self) -> dict[str, int]:
        """Fields of ``BatchCounts``; waits for the device."""
        self._read_flags()
        return self._counts

    @property
    def skipped_steps(self) -> int:
        """Number of steps without a finite gradient; waits for the device."""
        self._read_flags()
        return self._skipped_steps

    def add_sums(self, sums: Mapping[str, Tensor]) -> None:
        """Add the sums of a micro-batch."""
        for name, value in sums.items():
            self._sums[name] = self._sums.get(name, 0) + value.detach().double()

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add counts of micro-batches."""
        for name, value in counts.items():
            self._counts[name] += value

    def add_step(self, step_sums: MetricSums, step_counts: Mapping[str, int], is_finite: Tensor) -> None:
        """Add sums and counts of a step, or skip it.

        Args:
            is_finite: bool[] on the device, the step's gradient was finite.
        """
        self.add_sums({name: torch.where(is_finite, value, 0.0) for name, value in step_sums._sums.items()})
        self._unread_steps.append((step_counts, is_finite))

    def _read_flags(self) -> None:
        """Count the steps whose flags were not read yet; one wait for the device."""
        if not self._unread_steps:
            return
        step_counts, flags = zip(*self._unread_steps, strict=True)
        self._unread_steps = []
        for counts, is_finite in zip(step_counts, torch.stack(flags).tolist(), strict=True):
            if is_finite:
                self.add_counts(counts)
            else:
                self._skipped_steps += 1

    def state_dict(self, processes: ProcessGroup) -> dict[str, Any]:
        """Return the totals of all processes, for state.pt."""
        names = sorted(self._sums)
        values = torch.stack([self._sums[name] for name in names]).tolist() if names else []
        sums = dict(zip(names, processes.all_reduce(values), strict=True))
        return {"sums": sums, "counts": dict(self.counts), "skipped": self.skipped_steps}

    def load_state_dict(self, state: Mapping[str, Any], processes: ProcessGroup) -> None:
        """Restore totals from state.pt; the main process takes the sums of all."""
        factor = 1.0 if processes.is_main else 0.0
        self._sums = {
            name: torch.tensor(factor * value, dtype=torch.float64, device=processes.device)
            for name, value in state["sums"].items()
        }
        self._counts, self._skipped_steps = dict(state["counts"]), state["skipped"]

    def compute_metrics(self, objective: Objective, processes: ProcessGroup) -> dict[str, Any]:
        """Compute losses and metrics over all processes; losses are NaN if all steps were skipped."""
        sums, counts = self.state_dict(processes)["sums"], self.counts
        if not counts["rows"]:
            return {"loss": math.nan, "losses": dict.fromkeys(objective.losses, math.nan), "metrics": {}}
        losses = {
            name: sums[name] / max(1, counts[count_field])
            for name, (_, count_field) in objective.losses.items()
        }
        return {
            "loss": sum(weight * losses[name] for name, (weight, _) in objective.losses.items()),
            "losses": losses,
            "metrics": objective.compute_metrics(sums, counts),
        }


class Trainer:
    """Model, optimizer and their updates.

    Attributes:
        objective: objective that is saved and validated.
        training_objective: objective that is trained: ``objective``, or an adversarial wrapper around it.
        attention_kernel: name of its attention kernels.
    """

    def __init__(self, objective: Objective, recipe: TrainRecipe, processes: ProcessGroup) -> None:
        self.objective = objective
        self.training_objective = (
            AdversarialObjective(objective, recipe.adversarial_weight)
            if recipe.adversarial_weight
            else objective
        )
        enable_tf32(processes.device)
        self.attention_kernel = (
            "padded"
            if recipe.pad_rows
            else attention.choose_kernels(objective, processes.device, getattr(torch, recipe.precision))
        )
        self._scaler = LossScaler(recipe.precision, processes.device)
        self._non_finite_steps, self._diverged_step = torch.zeros(
            2, dtype=torch.int64, device=processes.device
        ).unbind()
        self._forward: Any = (
            torch.compile(self.training_objective, dynamic=False)
            if recipe.compile
            else self.training_objective
        )
        self._recipe, self._processes = recipe, processes
        named_parameters = list(objective.named_parameters())
        self._gradients = FlatGradients(named_parameters)
        optimizer_class = Lamb if recipe.optimizer == "lamb" else Adam
        self._optimizer = optimizer_class(
            named_parameters,
            betas=(recipe.beta1, recipe.beta2),
            eps=recipe.epsilon,
            weight_decay=recipe.weight_decay,
            bias_correction=recipe.bias_correction,
            lr_scales=compute_layer_scales((name for name, _ in named_parameters), recipe.layer_decay),
        )

    def learning_rate(self, step: int) -> float:
        """Return the learning rate of a step."""
        recipe = self._recipe
        return learning_rate(recipe.schedule, step, recipe.steps, recipe.warmup_steps, recipe.learning_rate)

    def update(
        self,
        step: int,
        micro_batches: Sequence[tuple[Batch, BatchCounts]],
        step_counts: Mapping[str, int],
        metric_sums: MetricSums,
    ) -> Tensor:
        """Update the weights once, without waiting for the device.

        If the gradient is not finite, the weights are unchanged and the step counts as skipped.

        Args:
            micro_batches: this process's micro-batches of the step; as many as in the other processes.
            step_counts: counts of the step over all processes, by the fields of ``BatchCounts``.
            metric_sums: totals to add this step to.

        Returns:
            the gradient norm before clipping, float64[] on the device.

        Raises:
            MicroBatchMemoryError: a micro-batch of any process is too large; nothing is changed.
        """
        step_sums = MetricSums()
        is_out_of_memory = False
        try:
            self._compute_gradients(step, micro_batches, step_counts, step_sums)
        except torch.OutOfMemoryError:
            is_out_of_memory = True
        if self._processes.all_reduce([is_out_of_memory])[0]:
            raise MicroBatchMemoryError(
                f"step {step + 1:,}: the rows of a micro-batch do not fit into memory, even one at a time. "
                "Train a smaller model, or on shorter rows"
            )
        self._gradients.all_reduce()
        grad_norm = self._gradients.clip(self._recipe.grad_clip or math.inf, self._scaler.scale)
        is_finite = torch.isfinite(grad_norm)
        self._gradients.zero_unless(is_finite)
        self._optimizer.step(self.learning_rate(step), is_finite)
        metric_sums.add_step(step_sums, step_counts, is_finite)
        self._count_non_finite(step, is_finite)
        self._scaler.update(is_finite)
        return grad_norm

    def _compute_gradients(
        self,
        step: int,
        micro_batches: Sequence[tuple[Batch, BatchCounts]],
        step_counts: Mapping[str, int],
        step_sums: MetricSums,
    ) -> None:
        """Add up gradients and sums of this process's micro-batches."""
        processes = self._processes
        self._gradients.zero()
        self.training_objective.train()
        for index, (batch, _) in enumerate(micro_batches):
            torch.manual_seed(
                _make_dropout_seed(self._recipe.seed, step, processes.rank * len(micro_batches) + index)
            )
            with autocast(self._recipe.precision, processes.device):
                sums = self._forward(batch.to(processes.device))
            loss = self.training_objective.compute_loss(sums, step_counts)
            torch.autograd.backward(loss * self._scaler.scale)
            step_sums.add_sums(sums)

    @property
    def loss_scale(self) -> float:
        """Loss scale of float16, else 1; waits for the device."""
        return float(self._scaler.scale)

    def find_divergence(self) -> int | None:
        """Return the number of steps after which training had diverged, or None; waits for the device.

        Training has diverged after :data:`MAX_NON_FINITE_STEPS` consecutive steps without a finite gradient.
        Those that only find the loss scale of float16 do not count.
        """
        return int(self._diverged_step) or None

    def _count_non_finite(self, step: int, is_finite: Tensor) -> None:
        count = self._non_finite_steps + (self._scaler.scale == 1)
        self._non_finite_steps = torch.where(is_finite, 0, count)
        self._diverged_step = torch.where(
            (self._diverged_step == 0) & (self._non_finite_steps == MAX_NON_FINITE_STEPS),
            step + 1,
            self._diverged_step,
        )

    def validate(self, batches: Iterable[tuple[Batch, BatchCounts]]) -> dict[str, Any]:
        """Compute losses and metrics of batches, over all processes and without dropout."""
        self.objective.eval()
        metric_sums = MetricSums()
        with torch.no_grad(), autocast(self._recipe.precision, self._processes.device):
            for batch, counts in batches:
                metric_sums.add_sums(self.objective(batch.to(self._processes.device)))
                metric_sums.add_counts(counts._asdict())
        total_counts = self._processes.all_reduce(list(metric_sums.counts.values()))
        metric_sums.counts.update(zip(BatchCounts._fields, map(int, total_counts), strict=True))
        return metric_sums.compute_metrics(self.objective, self._processes)

    def state_dict(self) -> dict[str, Any]:
        """Return all state that the next update depends on, with the keys of state.pt."""
        return {
            "model": self.objective.state_dict(),
            "optimiser": self._optimizer.state_dict(),
            **self._scaler.state_dict(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of :meth:`state_dict`.

        Raises:
            InvalidValueError: it is of another model.
        """
        try:
            self.objective.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimiser"])
            self._scaler.load_state_dict(state)
        except (RuntimeError, OptimizerStateError) as error:
            raise InvalidValueError(str(error).splitlines()[-1].strip()) from error


def _make_dropout_seed(seed: int, step: int, index: int) -> int:
    """Return the dropout seed of a micro-batch; ``index`` counts the micro-batches of all processes."""
    return int(np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64)[0] >> np.uint64(1))
