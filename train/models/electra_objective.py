"""ELECTRA: a generator fills in masked tokens; a discriminator detects replaced tokens.

The rules are those of the paper (Clark et al. 2020, arXiv:2003.10555) and, where it leaves them open, of its
code (google-research/electra: run_pretraining.py and pretrain/pretrain_helpers.py).
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Any, Final, Self

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import ElectraConfig, ElectraForMaskedLM, ElectraForPreTraining, PreTrainedModel

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.model_config import DataSpec, ModelConfig
from bioshards.train.models import attention, flops
from bioshards.train.models.objective import (
    ForwardOutput,
    ModelLoader,
    Objective,
    build_common_settings,
    build_encoder_settings,
    compute_mlm_fractions,
    compute_mlm_sums,
    compute_ratios,
)

GENERATOR_FOLDER: Final = "generator"
"""Subfolder of the generator in a checkpoint."""


class ElectraObjective(Objective):
    """Replaced-token detection (RTD), and masked language modelling of the generator.

    The loss weights are 50 and 1 (paper, section 3.1 and table of hyperparameters).  The RTD loss covers all
    tokens except padding, [CLS] and [SEP] included.  Both models share the embeddings of words, positions and
    types and their LayerNorm (``_build_transformer`` in the scope "electra/embeddings").
    """

    losses: Mapping[str, tuple[float, str]] = {"mlm": (1.0, "masked"), "rtd": (50.0, "tokens")}
    logits_count_field = "tokens"

    def __init__(
        self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining, data_spec: DataSpec
    ) -> None:
        super().__init__()
        self.special_ids, self.most_frequent_id = data_spec.special_ids, data_spec.most_frequent_id
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.tie_weights()  # tie its output layer to the discriminator's word embeddings
        self.generator, self.discriminator = generator, discriminator
        attention.enable(generator)
        attention.enable(discriminator)

    @classmethod
    def build(cls, config: ModelConfig, data_spec: DataSpec, load_model: ModelLoader) -> Self:
        """Build generator and discriminator."""
        generator = load_model(
            ElectraForMaskedLM, cls.build_generator_config(config, data_spec), subfolder=GENERATOR_FOLDER
        )
        discriminator = load_model(ElectraForPreTraining, cls.build_config(config, data_spec))
        return cls(generator, discriminator, data_spec)

    @classmethod
    def build_config(cls, config: ModelConfig, data_spec: DataSpec) -> ElectraConfig:
        """Build the configuration of the discriminator."""
        settings: dict[str, Any] = build_encoder_settings(config, data_spec)
        return ElectraConfig(**settings, embedding_size=config.embedding_size)

    @classmethod
    def build_generator_config(cls, config: ModelConfig, data_spec: DataSpec) -> ElectraConfig:
        """Build the configuration of the generator."""
        settings: dict[str, Any] = build_common_settings(config, data_spec)
        sizes = config.generator_sizes
        return ElectraConfig(
            **settings,
            embedding_size=config.embedding_size,
            hidden_size=sizes.hidden_size,
            num_hidden_layers=sizes.num_layers,
            num_attention_heads=sizes.num_heads,
            intermediate_size=4 * sizes.hidden_size,
        )

    @property
    def encoder(self) -> PreTrainedModel:
        return self.discriminator.electra

    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        generator_logits = self.compute_generator_logits(batch)
        ids, is_replaced = corrupt(batch, sample_tokens(generator_logits, batch.noise))
        corrupted_batch = batch._replace(ids=ids)
        logits = self.predict(corrupted_batch)
        is_flagged, is_replaced = (logits > 0) & batch.is_token, is_replaced & batch.is_token
        is_correct = (is_flagged == is_replaced) & batch.is_token
        sums = {
            **compute_mlm_sums(generator_logits, batch, self.special_ids, self.most_frequent_id),
            "rtd": F.binary_cross_entropy_with_logits(
                logits, is_replaced.float(), weight=batch.is_token.float(), reduction="sum"
            ),
            "rtd_right": is_correct.sum().float(),
            "replaced": is_replaced.sum().float(),
            "flagged": is_flagged.sum().float(),
            "caught": (is_flagged & is_replaced).sum().float(),
        }
        return ForwardOutput(sums, corrupted_batch, logits, batch.is_token)

    def compute_generator_logits(self, batch: Batch) -> Tensor:
        """Return the generator's logits [M, vocabulary] at the masked positions, float32."""
        hidden = attention.encode(self.generator.electra, batch)[batch.masked_positions]
        logits: Tensor = self.generator.generator_lm_head(self.generator.generator_predictions(hidden))
        return logits.float()

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """Return the discriminator's logits [T] that a token was replaced, float32."""
        logits: Tensor = self.discriminator.discriminator_predictions(
            attention.encode(self.discriminator.electra, batch, embeds)
        )
        return logits.float()

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return torch.stack((F.logsigmoid(-logits), F.logsigmoid(logits)), -1)

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Compute accuracies, the baseline of MLM's, precision and recall of RTD, and the fraction of
        replaced tokens.

        ``replaced_entropy`` is the RTD loss, in nats per token, of a discriminator that knows only the
        fraction of replaced tokens: the baseline of ``rtd``.
        """
        metrics = compute_ratios(
            {
                **compute_mlm_fractions(totals),
                "rtd_accuracy": (totals["rtd_right"], counts["tokens"]),
                "rtd_precision": (totals["caught"], totals["flagged"]),
                "rtd_recall": (totals["caught"], totals["replaced"]),
                "replaced": (totals["replaced"], counts["tokens"]),
            }
        )
        if (replaced_fraction := metrics.get("replaced")) is not None:
            metrics["replaced_entropy"] = -sum(
                p * math.log(p) for p in (replaced_fraction, 1 - replaced_fraction) if p > 0
            )
        return metrics

    def count_forward_flops(self, counts: BatchCounts) -> float:
        config = self.encoder.config
        hidden_size = flops.get_hidden_size(config)
        return flops.count_encoder(config, counts) + counts.tokens * 2 * hidden_size * (hidden_size + 1)

    def count_training_flops(self, counts: BatchCounts) -> float:
        generator = self.generator.config
        forward_flops = (
            self.count_forward_flops(counts)
            + flops.count_encoder(generator, counts)
            + flops.count_mlm_head(generator, counts)
        )
        return flops.TRAINING_TO_FORWARD_RATIO * forward_flops

    def describe_heads(self) -> list[str]:
        return [
            "The discriminator's head, which finds replaced tokens: `AutoModelForPreTraining`. This model "
            "does not predict tokens: **`AutoModelForMaskedLM` on this folder adds a head that is not "
            "trained.**",
            f"The generator in `{GENERATOR_FOLDER}/`, with its head that predicts masked tokens: "
            f"`AutoModelForMaskedLM` on `{GENERATOR_FOLDER}/`. It is the smaller model of the two, and "
            "shares its embeddings with the discriminator.",
        ]

    def save(self, folder: str) -> None:
        """Write the discriminator into the folder, the generator into its subfolder ``generator``."""
        self.discriminator.save_pretrained(folder)
        self.generator.save_pretrained(os.path.join(folder, GENERATOR_FOLDER))


def sample_tokens(logits: Tensor, noise: Tensor) -> Tensor:
    """Sample a token at each position from the softmax of its logits, without a gradient.

    Inverse transform sampling takes one random number per position.  The reference adds Gumbel noise to every
    logit, which has the same distribution and takes one per vocabulary entry.

    Args:
        logits: float32[M, vocabulary].
        noise: float32[M], uniform in [0, 1).

    Returns:
        int64[M].
    """
    cumulative = logits.detach().softmax(-1).cumsum(-1)
    thresholds = noise[:, None] * cumulative[:, -1:]  # the total is 1 up to rounding
    return torch.searchsorted(cumulative, thresholds, right=True)[:, 0].clamp(max=logits.shape[-1] - 1)


def corrupt(batch: Batch, sampled: Tensor) -> tuple[Tensor, Tensor]:
    """Replace the tokens at all masked positions by sampled ones, those that were kept unmasked included.

    Args:
        sampled: int64[M].

    Returns:
        the discriminator's ids, int64[T], and whether each token was replaced, bool[T].  A sampled token that
        equals the original counts as original (paper, section 2).
    """
    is_masked, current_ids = batch.targets >= 0, batch.ids[batch.masked_positions]
    ids = batch.ids.scatter(0, batch.masked_positions, torch.where(is_masked, sampled, current_ids))
    original_ids = batch.ids.scatter(
        0, batch.masked_positions, torch.where(is_masked, batch.targets, current_ids)
    )
    return ids, ids != original_ids
