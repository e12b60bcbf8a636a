"""Update step: forward and backward over micro-batches, gradient all-reduce, clipping, optimizer.

Loss sums are divided by the counts of the whole step over all processes, so the partition of a batch changes
the result by rounding only.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from bioshards.corpus.errors import InvalidValueError
from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.recipe import TrainRecipe
from bioshards.train.models.adversarial_objective import AdversarialObjective
from bioshards.train.models.objective import Objective
from bioshards.train.optim.gradients import FlatGradients
from bioshards.train.optim.optimizers import Adam, Lamb, OptimizerStateError, compute_layer_scales
from bioshards.train.optim.schedules import learning_rate

from .distributed import ProcessGroup


class MetricSums:
    """Sums of losses and metric numerators over micro-batches, and their counts.

    Sums are those of this process and stay on the device, so that adding does not synchronise with it.
    Counts are those of all processes.

    Attributes:
        counts: fields of ``BatchCounts``.
        skipped_steps: steps without a finite gradient; they are in neither sums nor counts.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self.counts = dict.fromkeys(BatchCounts._fields, 0)
        self.skipped_steps = 0

    def add_sums(self, sums: Mapping[str, Tensor]) -> None:
        """Add the sums of a micro-batch."""
        for name, value in sums.items():
            self._sums[name] = self._sums.get(name, 0) + value.detach().double()

    def add_counts(self, counts: Mapping[str, int]) -> None:
        """Add counts of micro-batches."""
        for name, value in counts.items():
            self.counts[name] += value

    def merge(self, other: MetricSums) -> None:
        """Add sums and counts of another object."""
        self.add_sums(other._sums)
        self.add_counts(other.counts)

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
        self.counts, self.skipped_steps = dict(state["counts"]), state["skipped"]

    def compute_metrics(self, objective: Objective, processes: ProcessGroup) -> dict[str, Any]:
        """Compute losses and metrics over all processes; losses are NaN if all steps were skipped."""
        sums, counts = self.state_dict(processes)["sums"], self.counts
        if not sums:
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
    """

    def __init__(
        self, objective: Objective, recipe: TrainRecipe, processes: ProcessGroup, accumulation_steps: int
    ) -> None:
        self.objective = objective
        self.training_objective = (
            AdversarialObjective(objective, recipe.adversarial_weight)
            if recipe.adversarial_weight
            else objective
        )
        self._forward: Any = (
            torch.compile(self.training_objective, dynamic=False)
            if recipe.compile
            else self.training_objective
        )
        self._recipe, self._processes, self._accumulation_steps = recipe, processes, accumulation_steps
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
        micro_batches: Iterable[tuple[Batch, BatchCounts]],
        step_counts: Mapping[str, int],
        metric_sums: MetricSums,
    ) -> float:
        """Update the weights once.

        If the gradient is not finite, the weights are unchanged and the step counts as skipped.

        Args:
            micro_batches: this process's micro-batches of the step.
            step_counts: counts of the step over all processes, by the fields of ``BatchCounts``.
            metric_sums: totals to add this step to.

        Returns:
            the gradient norm before clipping.
        """
        processes, step_sums = self._processes, MetricSums()
        self._gradients.zero()
        self.training_objective.train()
        for index, (batch, _) in enumerate(micro_batches):
            torch.manual_seed(
                _make_dropout_seed(self._recipe.seed, step, processes.rank * self._accumulation_steps + index)
            )
            with self._autocast():
                sums = self._forward(batch.to(processes.device))
            loss = self.training_objective.compute_loss(sums, step_counts)
            torch.autograd.backward(loss)
            step_sums.add_sums(sums)
        step_sums.add_counts(step_counts)
        self._gradients.all_reduce()
        grad_norm = float(self._gradients.clip(self._recipe.grad_clip or math.inf))
        if math.isfinite(grad_norm):
            self._optimizer.step(self.learning_rate(step))
            metric_sums.merge(step_sums)
        else:
            metric_sums.skipped_steps += 1
        return grad_norm

    def validate(self, batches: Iterable[tuple[Batch, BatchCounts]]) -> dict[str, Any]:
        """Compute losses and metrics of batches, over all processes and without dropout."""
        self.objective.eval()
        metric_sums = MetricSums()
        with torch.no_grad(), self._autocast():
            for batch, counts in batches:
                metric_sums.add_sums(self.objective(batch.to(self._processes.device)))
                metric_sums.add_counts(counts._asdict())
        total_counts = self._processes.all_reduce(list(metric_sums.counts.values()))
        metric_sums.counts = dict(zip(metric_sums.counts, map(int, total_counts), strict=True))
        return metric_sums.compute_metrics(self.objective, self._processes)

    def state_dict(self) -> dict[str, Any]:
        """Return all state that the next update depends on, with the keys of state.pt."""
        return {"model": self.objective.state_dict(), "optimiser": self._optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of :meth:`state_dict`.

        Raises:
            InvalidValueError: it is of another model.
        """
        try:
            self.objective.load_state_dict(state["model"])
            self._optimizer.load_state_dict(state["optimiser"])
        except (RuntimeError, OptimizerStateError) as error:
            raise InvalidValueError(str(error).splitlines()[-1].strip()) from error

    def _autocast(self) -> contextlib.AbstractContextManager[None]:
        if self._recipe.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self._processes.device.type, torch.bfloat16)


def _make_dropout_seed(seed: int, step: int, index: int) -> int:
    """Return the dropout seed of a micro-batch; ``index`` counts the micro-batches of all processes."""
    return int(np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64)[0] >> np.uint64(1))
