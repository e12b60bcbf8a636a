"""Fine-tuning: one loop for every task, which knows examples, a head and a measure, and no task by its
name."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.train.gradients import Gradients
from bioshards.train.optimisers import Adam, layer_scales
from bioshards.train.schedules import learning_rate

from . import examples
from .encoder import Encoder
from .examples import Encoded, Example, Problem
from .recipes import Recipe
from .records import Record

_TELL: Final = 20
"""Updates between two lines of progress."""


class NaNLossError(RunError):
    """The loss, or what the model gives, is none any more: says so, and what to do."""


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an epoch came to: its mean loss, and the score on dev, if that was asked for."""

    epoch: int
    loss: float
    dev: float | None


class Model(nn.Module):
    """An encoder and a head."""

    def __init__(self, encoder: Encoder, head: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head


@dataclass(slots=True)
class FineTuning:
    """A model on its way.

    Attributes:
        padding: the id of [PAD].
        say: takes a line of progress.
    """

    model: Model
    problem: Problem
    recipe: Recipe
    padding: int
    device: torch.device
    say: Callable[[str], None]

    def learn(
        self, records: Sequence[Record], seed: int, dev: Callable[[], float] | None
    ) -> tuple[list[Epoch], int]:
        """Train on records; the model then is that of the best epoch, if ``dev`` is given, else of the
        last.

        Args:
            seed: of order and dropout.
            dev: scores the model as it is.

        Returns:
            All epochs, and the number of the one whose weights the model has.

        Raises:
            NaNLossError: the loss is none.
        """
        learned = self.problem.examples(records, learn=True)
        if not learned:
            raise InvalidValueError(
                "there is no example to learn from: no passage has an answer marked that fits into --length"
            )
        torch.manual_seed(seed)
        order = torch.Generator().manual_seed(seed)
        batches = -(-len(learned) // self.recipe.batch)
        total = self.recipe.total(batches)
        updates = _Updates(self.model, self.recipe, total)
        epochs: list[Epoch] = []
        best, number, weights = -math.inf, 0, None
        while updates.done < total:
            this = len(epochs) + 1
            loss = self._epoch(learned, torch.randperm(len(learned), generator=order).tolist(), updates, this)
            score = dev() if dev else None
            epochs.append(Epoch(this, loss, score))
            if score is not None and score > best:
                best, number = score, this
                weights = None if updates.done == total else copy.deepcopy(self.model.state_dict())
        if weights is not None:
            self.model.load_state_dict(weights)
        return epochs, number or len(epochs)

    def _epoch(
        self, learned: Sequence[Example], order: Sequence[int], updates: _Updates, epoch: int
    ) -> float:
        self.model.train()
        losses: list[Tensor] = []
        for first in range(0, len(order), self.recipe.batch):
            if updates.done == updates.total:
                break
            batch = self._batch([learned[at] for at in order[first : first + self.recipe.batch]])
            loss = self.problem.loss(self.model.head, self._encoded(batch), batch)
            updates.step(loss)
            losses.append(loss.detach())
            if updates.done % _TELL == 0 or updates.done == updates.total:
                at = f"epoch {epoch}, update {updates.done:,} of {updates.total:,}"
                self.say(f"{at}, loss {float(losses[-1]):.3f}")
        mean = float(torch.stack(losses).float().mean())
        if not math.isfinite(mean):
            raise NaNLossError(
                f"the loss is no number after {updates.done:,} updates: give a lower --learning-rate"
            )
        return mean

    def predict(self, records: Sequence[Record]) -> list[Any]:
        """What the model predicts for each record, or each group of them (``Problem.assemble``).

        Raises:
            NaNLossError: the last update has ruined the weights.
        """
        read = self.problem.examples(records, learn=False)
        order = sorted(range(len(read)), key=lambda at: len(read[at].ids))
        found: list[Any] = [None] * len(read)
        self.model.eval()
        with torch.inference_mode():
            for first in range(0, len(order), _PREDICTED):
                at = order[first : first + _PREDICTED]
                batch = self._batch([read[one] for one in at])
                encoded = self._encoded(batch)
                if not encoded.hidden.isfinite().all():  # of which argmax makes a class nonetheless
                    raise NaNLossError("the model gives no numbers any more: give a lower --learning-rate")
                predicted = self.problem.predict(self.model.head, encoded, batch)
                for one, what in zip(at, predicted, strict=True):
                    found[one] = what
                self.say(f"{first + len(at):,} of {len(order):,} predicted")
        return self.problem.assemble(records, read, found)

    def _batch(self, chosen: Sequence[Example]) -> examples.Batch:
        return examples.batch(chosen, self.padding, self.device)

    def _encoded(self, batch: examples.Batch) -> Encoded:
        """The encoder's output; the head is never in bfloat16, whose 8 bits would make many scores equal."""
        wanted = self.recipe.precision == "bfloat16"
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=wanted):
            encoded: Encoded = self.model.encoder(batch)
        return encoded


_PREDICTED: Final = 64
"""Examples that are predicted at once."""


class _Updates:
    """The optimiser with its rates: a step takes a loss and moves the weights."""

    def __init__(self, model: Model, recipe: Recipe, total: int) -> None:
        named = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
        scales = layer_scales([name for name, _ in named], recipe.layer_decay, recipe.electra_layers)
        if recipe.layer_decay < 1 and len(set(scales.values())) < 3:  # head, a layer, embeddings
            raise InvalidValueError(
                "--layer-decay needs a model whose layers have the names that BERT's have"
            )
        self._gradients = Gradients(named)
        self._adam = Adam(
            named,
            eps=recipe.epsilon,
            weight_decay=recipe.weight_decay,
            bias_correction=recipe.bias_correction,
            scales=scales,
        )
        self._recipe = recipe
        self._warmup = recipe.warmup_steps(total)
        self.total = total
        self.done = 0

    def step(self, loss: Tensor) -> None:
        """Move the weights by the gradients of a loss."""
        self._gradients.zero()
        loss.backward()  # type: ignore[no-untyped-call]
        if self._recipe.clip:
            self._gradients.clip(self._recipe.clip)
        rate = learning_rate(
            *(self._recipe.schedule, self.done, self.total, self._warmup, self._recipe.learning_rate)
        )
        self._adam.step(rate)
        self.done += 1
