"""ELECTRA: a generator fills in masked tokens, a discriminator finds those that are not the text's.

Rules are of the paper (Clark et al. 2020, arXiv:2003.10555) and, where it leaves them open, of its code
(google-research/electra: run_pretraining.py and pretrain/pretrain_helpers.py), named at each.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from typing import Final

import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import ElectraForMaskedLM, ElectraForPreTraining, PreTrainedModel

from bioshards.train.batch import Batch

from . import attention
from .objective import ForwardOutput, Objective, compute_ratios

GENERATOR_FOLDER: Final = "generator"
"""The folder of the generator within the discriminator's."""


class ElectraObjective(Objective):
    """Replaced-token detection, and masked language modelling of the generator.

    Weights are 1 and 50 (paper, section 3.1, and its table of hyperparameters).  The discriminator's loss is
    over all tokens but padding, [CLS] and [SEP] included.  Both have one and the same embeddings: of words,
    positions and types, and their LayerNorm (``_build_transformer`` in the scope "electra/embeddings").
    """

    losses: Mapping[str, tuple[float, str]] = {"mlm": (1.0, "masked"), "rtd": (50.0, "tokens")}
    logits_count_field = "tokens"

    def __init__(self, generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining) -> None:
        super().__init__()
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.tie_weights()  # its output layer is the word embeddings, now the discriminator's
        self.generator, self.discriminator = generator, discriminator
        attention.enable(generator)
        attention.enable(discriminator)

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
            "mlm": F.cross_entropy(generator_logits, batch.targets, reduction="sum"),
            "rtd": F.binary_cross_entropy_with_logits(
                logits, is_replaced.float(), weight=batch.is_token.float(), reduction="sum"
            ),
            "mlm_right": (generator_logits.argmax(-1) == batch.targets).sum().float(),
            "rtd_right": is_correct.sum().float(),
            "replaced": is_replaced.sum().float(),
            "flagged": is_flagged.sum().float(),
            "caught": (is_flagged & is_replaced).sum().float(),
        }
        return ForwardOutput(sums, corrupted_batch, logits, batch.is_token)

    def compute_generator_logits(self, batch: Batch) -> Tensor:
        """The generator's logits [M, vocabulary] at the masked places, float32."""
        hidden = attention.encode(self.generator.electra, batch)[batch.masked_positions]
        logits: Tensor = self.generator.generator_lm_head(self.generator.generator_predictions(hidden))
        return logits.float()

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """The discriminator's logits [T] that a token was replaced, float32."""
        logits: Tensor = self.discriminator.discriminator_predictions(
            attention.encode(self.discriminator.electra, batch, embeds)
        )
        return logits.float()

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return torch.stack((F.logsigmoid(-logits), F.logsigmoid(logits)), -1)

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Accuracies of both, and of "replaced" precision, recall, and its share of all tokens.

        ``replaced_entropy`` is the loss of a discriminator that knows the share and nothing else, in nats a
        token as ``rtd``: one that learns is below it.
        """
        metrics = compute_ratios(
            {
                "mlm_accuracy": (totals["mlm_right"], counts["masked"]),
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

    def save(self, folder: str) -> None:
        """The discriminator into the folder, the generator into its folder ``generator``."""
        self.discriminator.save_pretrained(folder)
        self.generator.save_pretrained(os.path.join(folder, GENERATOR_FOLDER))


def sample_tokens(logits: Tensor, noise: Tensor) -> Tensor:
    """Draw a token for each place from the softmax of its logits.

    The noise is a place on the cumulated probabilities, and the token the one that it falls on.  (The
    reference adds Gumbel noise to every logit, which has the same distribution and takes a random number a
    vocabulary entry.)  No gradient passes.

    Args:
        logits: [M, vocabulary], float32.
        noise: [M], from 0 to below 1.

    Returns:
        int64[M].
    """
    cumulative = logits.detach().softmax(-1).cumsum(-1)
    thresholds = noise[:, None] * cumulative[:, -1:]  # the sum of them all is 1 but for rounding
    return torch.searchsorted(cumulative, thresholds, right=True)[:, 0].clamp(max=logits.shape[-1] - 1)


def corrupt(batch: Batch, sampled: Tensor) -> tuple[Tensor, Tensor]:
    """Put drawn tokens at all masked places, those too that the generator saw unmasked.

    Returns:
        the discriminator's ids [T], and which of them are not the text's: a drawn token that is the text's
        own is as good as the text's (paper, section 2).
    """
    is_masked, current_ids = batch.targets >= 0, batch.ids[batch.masked_positions]
    ids = batch.ids.scatter(0, batch.masked_positions, torch.where(is_masked, sampled, current_ids))
    original_ids = batch.ids.scatter(
        0, batch.masked_positions, torch.where(is_masked, batch.targets, current_ids)
    )
    return ids, ids != original_ids
