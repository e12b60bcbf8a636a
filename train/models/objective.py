"""What a model is trained for: losses of a batch as sums, what they are divided by, and what is kept.

A step's loss is a mean over all of its tokens, on all processes and in all micro-batches; so an objective
gives sums, and who knows the whole step divides them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor, nn
from transformers import PreTrainedModel

from bioshards.train.batch import Batch


class ForwardOutput(NamedTuple):
    """What a batch gave: a pass of the models, before anything is done to their input.

    Attributes:
        sums: sums over the batch, 0-dimensional, float32: a loss by its name, and what figures are made of.
        seen: the batch as the kept encoder saw it.
        logits: [N, ...], float32: what it said of N tokens.
        counted: bool[N]: which of them are in the loss.
    """

    sums: dict[str, Tensor]
    encoder_batch: Batch
    logits: Tensor
    loss_mask: Tensor


class Objective(nn.Module, ABC):
    """Models and their losses.

    Attributes:
        losses: by name, a loss's weight, and the field of ``Counts`` that its sum is divided by.
        judged: the field of ``Counts`` of the tokens that :attr:`Clean.logits` are of, and count.
    """

    losses: Mapping[str, tuple[float, str]]
    logits_count_field: str

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Sums over a batch: each loss by its name, and what :meth:`figures` needs."""
        return self.compute_outputs(batch).sums

    def compute_loss(self, sums: Mapping[str, Tensor], counts: Mapping[str, float]) -> Tensor:
        """A step's loss, or a micro-batch's part of it: the weighted losses, each divided by its count.

        Args:
            sums: of a micro-batch.
            counts: of the whole step, by the names of ``Counts``.  What there is none of has no loss.
        """
        loss: Tensor = sum(  # type: ignore[assignment]  # there is one loss at least
            weight / max(counts[count], 1) * sums[name] for name, (weight, count) in self.losses.items()
        )
        return loss

    @property
    @abstractmethod
    def encoder(self) -> PreTrainedModel:
        """The encoder that is kept, without its heads."""

    @abstractmethod
    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        """A pass of all models over a batch."""

    @abstractmethod
    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """The logits [N, ...] of the kept encoder, of its input's embeddings [T, E] if these are given."""

    @abstractmethod
    def log_probabilities(self, logits: Tensor) -> Tensor:
        """[N, classes]: what logits say of each class."""

    @abstractmethod
    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Accuracies and the like.

        Args:
            totals: the sums of :meth:`forward`, added up over as many batches as wanted.
            counts: the fields of ``Counts`` of the same batches, added up.

        Returns:
            by name; what would be a share of nothing is left out.
        """

    @abstractmethod
    def save(self, folder: str) -> None:
        """Write what Hugging Face's ``from_pretrained`` reads: the encoder with its heads."""


def compute_ratios(fractions: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Of each (part, whole) the quotient, where there is a whole."""
    return {
        name: numerator / denominator for name, (numerator, denominator) in fractions.items() if denominator
    }
