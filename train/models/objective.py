"""Interface of a pretraining objective: models, losses and metrics.

A step's loss is the mean over all its tokens, in all processes and micro-batches.  An objective therefore
returns sums, and the trainer divides them by the counts of the whole step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import NamedTuple, Protocol, Self, TypeVar

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedConfig, PreTrainedModel

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.model_config import DataSpec, ModelConfig

_Model = TypeVar("_Model", bound=PreTrainedModel)


class ModelLoader(Protocol):
    """Build a model: with random weights, or from a checkpoint that the user named."""

    def __call__(
        self, model_class: type[_Model], config: PreTrainedConfig, subfolder: str | None = None
    ) -> _Model:
        """Return the model.

        Args:
            subfolder: folder of the checkpoint to load from; if it is missing, weights are random.
        """


class ForwardOutput(NamedTuple):
    """Outputs of a forward pass over one batch.

    Attributes:
        sums: sums over the batch, float32[]: losses and the numerators of metrics, by name.
        encoder_batch: the batch as the trained encoder saw it.
        logits: float32[N, ...] of N tokens.
        loss_mask: bool[N]; True for tokens that count in the loss.
    """

    sums: dict[str, Tensor]
    encoder_batch: Batch
    logits: Tensor
    loss_mask: Tensor


class Objective(nn.Module, ABC):
    """Models and their losses.

    Attributes:
        losses: weight of each loss, and the field of ``BatchCounts`` that its sum is divided by.
        logits_count_field: field of ``BatchCounts`` that counts the tokens of ``ForwardOutput.logits``.
    """

    losses: Mapping[str, tuple[float, str]]
    logits_count_field: str

    @classmethod
    @abstractmethod
    def build(cls, config: ModelConfig, data_spec: DataSpec, load_model: ModelLoader) -> Self:
        """Build the models of the objective."""

    @classmethod
    @abstractmethod
    def build_config(cls, config: ModelConfig, data_spec: DataSpec) -> PreTrainedConfig:
        """Build the Hugging Face configuration of the trained model."""

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Return the sums over a batch: each loss, and the numerators of :meth:`compute_metrics`."""
        return self.compute_outputs(batch).sums

    def compute_loss(self, sums: Mapping[str, Tensor], counts: Mapping[str, float]) -> Tensor:
        """Return the weighted sum of the losses, each divided by its count.

        Args:
            sums: sums over one micro-batch.
            counts: counts of the whole step, by the fields of ``BatchCounts``.  A loss with a count of 0 is
                0.
        """
        loss: Tensor = sum(  # type: ignore[assignment]  # there is at least one loss
            weight / max(counts[count], 1) * sums[name] for name, (weight, count) in self.losses.items()
        )
        return loss

    @property
    @abstractmethod
    def encoder(self) -> PreTrainedModel:
        """Trained encoder, without its heads."""

    @abstractmethod
    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        """Run all models on a batch."""

    @abstractmethod
    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """Return the logits [N, ...] of the trained encoder.

        Args:
            embeds: [T, E], word embeddings to use instead of those of ``batch.ids``.
        """

    @abstractmethod
    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Return the log-probabilities [N, classes] of logits."""

    @abstractmethod
    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Compute accuracies and other metrics.

        Args:
            totals: sums of :meth:`forward`, added up over batches.
            counts: fields of ``BatchCounts`` of the same batches, added up.

        Returns:
            metrics by name; a ratio with denominator 0 is omitted.
        """

    @abstractmethod
    def count_forward_flops(self, counts: BatchCounts) -> float:
        """Count the FLOPs of a forward pass of the trained encoder with its token-level head."""

    @abstractmethod
    def count_training_flops(self, counts: BatchCounts) -> float:
        """Count the FLOPs of a training step, forward and backward, of all models."""

    @abstractmethod
    def describe_heads(self) -> list[str]:
        """Return a sentence for each head that :meth:`save` writes: is it trained, and which class loads it.

        For the model card, in Markdown.
        """

    @abstractmethod
    def save(self, folder: str) -> None:
        """Write the encoder and its heads for Hugging Face's ``from_pretrained``."""


def compute_mlm_sums(
    logits: Tensor, batch: Batch, special_ids: Mapping[str, int], most_frequent_id: int
) -> dict[str, Tensor]:
    """Return the sum of the MLM loss, and the counts of :func:`compute_mlm_fractions`.

    The loss is that of all masked positions.  The counts are of hidden ones, which show [MASK]: where a token
    was kept, the model can copy it.

    Args:
        logits: float32[M, vocabulary].
    """
    is_hidden = batch.ids[batch.masked_positions] == special_ids["[MASK]"]
    return {
        "mlm": F.cross_entropy(logits, batch.targets, reduction="sum"),
        "mlm_hidden": is_hidden.sum().float(),
        "mlm_right": (is_hidden & (logits.argmax(-1) == batch.targets)).sum().float(),
        "mlm_most_frequent": (is_hidden & (batch.targets == most_frequent_id)).sum().float(),
    }


def compute_mlm_fractions(totals: Mapping[str, float]) -> dict[str, tuple[float, float]]:
    """Return the accuracy on hidden tokens, and ``mlm_baseline``: that of the set's most frequent token."""
    return {
        "mlm_accuracy": (totals["mlm_right"], totals["mlm_hidden"]),
        "mlm_baseline": (totals["mlm_most_frequent"], totals["mlm_hidden"]),
    }


def compute_ratios(fractions: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """Return numerator / denominator of each pair; pairs with denominator 0 are omitted."""
    return {
        name: numerator / denominator for name, (numerator, denominator) in fractions.items() if denominator
    }


def build_common_settings(config: ModelConfig, data_spec: DataSpec) -> dict[str, object]:
    """Return the arguments that the Hugging Face configurations of all families share."""
    return {
        "vocab_size": data_spec.vocabulary_size,
        "pad_token_id": data_spec.special_ids["[PAD]"],
        "max_position_embeddings": config.max_positions,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
    }


def build_encoder_settings(config: ModelConfig, data_spec: DataSpec) -> dict[str, object]:
    """Return the common arguments and the sizes of the trained encoder."""
    return {
        **build_common_settings(config, data_spec),
        "hidden_size": config.hidden_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "intermediate_size": config.intermediate_size,
    }
