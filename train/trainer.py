"""One model being trained: what an update does with a step's micro-batches.

Losses are sums until here, and are divided by what the whole step holds, whichever process and micro-batch
it was in; so dealing a batch out in another way changes nothing but rounding.
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

from .adversarial import Adversarial
from .batch import Batch, Counts
from .gradients import Gradients
from .objective import Objective
from .optimisers import Adam, Lamb, OptimizerStateError, layer_scales
from .processes import Processes
from .recipes import Recipe
from .schedules import learning_rate


class Tally:
    """Sums of losses and figures over some micro-batches, and the counts that they are of.

    Sums are this process's, and stay on the device until they are asked for, so that adding them up does not
    wait for it.  Counts are all processes'.

    Attributes:
        skipped: steps that had no finite gradient, and are in neither.
    """

    def __init__(self) -> None:
        self._sums: dict[str, Tensor] = {}
        self.counts = dict.fromkeys(Counts._fields, 0)
        self.skipped = 0

    def add(self, sums: Mapping[str, Tensor]) -> None:
        """Add a micro-batch's sums."""
        for name, value in sums.items():
            self._sums[name] = self._sums.get(name, 0) + value.detach().double()

    def count(self, counts: Mapping[str, int]) -> None:
        """Add what there is in some micro-batches."""
        for name, value in counts.items():
            self.counts[name] += value

    def take(self, other: Tally) -> None:
        """Add another's."""
        self.add(other._sums)
        self.count(other.counts)

    def state(self, processes: Processes) -> dict[str, Any]:
        """What was added up in all processes, for a checkpoint and for :meth:`told`."""
        names = sorted(self._sums)
        values = torch.stack([self._sums[name] for name in names]).tolist() if names else []
        sums = dict(zip(names, processes.sums(values), strict=True))
        return {"sums": sums, "counts": dict(self.counts), "skipped": self.skipped}

    def load(self, state: Mapping[str, Any], processes: Processes) -> None:
        """Go on from a checkpoint's; the first process takes the sums of all."""
        share = 1.0 if processes.first else 0.0
        self._sums = {
            name: torch.tensor(share * value, dtype=torch.float64, device=processes.device)
            for name, value in state["sums"].items()
        }
        self.counts, self.skipped = dict(state["counts"]), state["skipped"]

    def told(self, objective: Objective, processes: Processes) -> dict[str, Any]:
        """Losses and figures of all processes, for the log; of no step at all they are no numbers."""
        sums, counts = self.state(processes)["sums"], self.counts
        if not sums:
            return {"loss": math.nan, "losses": dict.fromkeys(objective.losses, math.nan), "figures": {}}
        losses = {name: sums[name] / max(1, counts[of]) for name, (_, of) in objective.losses.items()}
        return {
            "loss": sum(weight * losses[name] for name, (weight, _) in objective.losses.items()),
            "losses": losses,
            "figures": objective.figures(sums, counts),
        }


class Trainer:
    """A model, its optimiser, and their updates.

    Attributes:
        objective: what is saved and validated.
        trained: what is trained: the objective, or the adversarial one around it.
    """

    def __init__(self, objective: Objective, recipe: Recipe, processes: Processes, accumulate: int) -> None:
        self.objective = objective
        self.trained = Adversarial(objective, recipe.adversarial) if recipe.adversarial else objective
        self._forward: Any = torch.compile(self.trained, dynamic=False) if recipe.compile else self.trained
        self._recipe, self._processes, self._accumulate = recipe, processes, accumulate
        named = list(objective.named_parameters())
        self._gradients = Gradients(named)
        kind = Lamb if recipe.optimiser == "lamb" else Adam
        self._optimiser = kind(
            named,
            betas=(recipe.beta1, recipe.beta2),
            eps=recipe.epsilon,
            weight_decay=recipe.decay,
            bias_correction=recipe.bias_correction,
            scales=layer_scales((name for name, _ in named), recipe.layer_decay),
        )

    def learning_rate(self, step: int) -> float:
        """That of a step."""
        recipe = self._recipe
        return learning_rate(recipe.schedule, step, recipe.steps, recipe.warmup_steps, recipe.learning_rate)

    def update(
        self, step: int, micro: Iterable[tuple[Batch, Counts]], total: Mapping[str, int], tally: Tally
    ) -> float:
        """Update the weights; returns the length of the gradient before it was clipped.

        Where that is not finite, the weights stay as they are, and the step is counted as skipped.

        Args:
            micro: this process's micro-batches of the step.
            total: what all processes' micro-batches of the step hold.
            tally: to add this step to.
        """
        processes, found = self._processes, Tally()
        self._gradients.zero()
        self.trained.train()
        for index, (batch, _) in enumerate(micro):
            torch.manual_seed(_chance(self._recipe.seed, step, processes.rank * self._accumulate + index))
            with self._autocast():
                sums = self._forward(batch.to(processes.device))
            loss = self.trained.total(sums, total)
            torch.autograd.backward(loss)
            found.add(sums)
        found.count(total)
        self._gradients.all_reduce()
        norm = float(self._gradients.clip(self._recipe.clip or math.inf))
        if math.isfinite(norm):
            self._optimiser.step(self.learning_rate(step))
            tally.take(found)
        else:
            tally.skipped += 1
        return norm

    def validate(self, batches: Iterable[tuple[Batch, Counts]]) -> dict[str, Any]:
        """Losses and figures of batches that all processes have their part of, without dropout."""
        self.objective.eval()
        tally = Tally()
        with torch.no_grad(), self._autocast():
            for batch, counts in batches:
                tally.add(self.objective(batch.to(self._processes.device)))
                tally.count(counts._asdict())
        together = self._processes.sums(list(tally.counts.values()))
        tally.counts = dict(zip(tally.counts, map(int, together), strict=True))
        return tally.told(self.objective, self._processes)

    def state(self) -> dict[str, Any]:
        """Everything that the next update depends on."""
        return {"model": self.objective.state_dict(), "optimiser": self._optimiser.state_dict()}

    def load(self, state: Mapping[str, Any]) -> None:
        """Go on from a state.

        Raises:
            ValueError: it is another model's.
        """
        try:
            self.objective.load_state_dict(state["model"])
            self._optimiser.load_state_dict(state["optimiser"])
        except (RuntimeError, OptimizerStateError) as error:
            raise InvalidValueError(str(error).splitlines()[-1].strip()) from error

    def _autocast(self) -> contextlib.AbstractContextManager[None]:
        if self._recipe.precision == "float32":
            return contextlib.nullcontext()
        return torch.autocast(self._processes.device.type, torch.bfloat16)


def _chance(seed: int, step: int, index: int) -> int:
    """The seed of a micro-batch's dropout: ``index`` counts the micro-batches of all processes."""
    return int(np.random.SeedSequence([seed, step, index]).generate_state(1, np.uint64)[0] >> np.uint64(1))
