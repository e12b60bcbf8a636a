"""BERT and ALBERT: masked language modelling, and a judgement of pairs of segments where rows have labels.

The judgement is next-sentence prediction in BERT (Devlin et al. 2019, arXiv:1810.04805) and sentence order in
ALBERT (Lan et al. 2020, arXiv:1909.11942); what differs is in the labels, so they are one objective.
Both losses have the weight 1 (``model_fn_builder`` in google-research/bert and google-research/albert,
run_pretraining.py).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import AlbertForPreTraining, BertForPreTraining, PreTrainedModel

from bioshards.train.batch import Batch

from . import attention
from .objective import ForwardOutput, Objective, compute_ratios


class MlmObjective(Objective):
    """Masked language modelling, with ``nsp`` (BERT) or ``sop`` (ALBERT) if the data are labelled."""

    logits_count_field = "masked"

    def __init__(self, model: BertForPreTraining | AlbertForPreTraining, labelled: bool) -> None:
        super().__init__()
        self.model = model
        self.pair_task = ("nsp" if isinstance(model, BertForPreTraining) else "sop") if labelled else None
        self.losses = {"mlm": (1.0, "masked")} | (
            {self.pair_task: (1.0, "labelled")} if self.pair_task else {}
        )
        if not labelled:
            _get_pooler(model).requires_grad_(False)
            _get_pair_classifier(model).requires_grad_(False)
        attention.enable(model)

    @property
    def encoder(self) -> PreTrainedModel:
        encoder = self.model.base_model
        assert isinstance(encoder, PreTrainedModel)
        return encoder

    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        hidden = attention.encode(self.encoder, batch)
        logits = self._compute_mlm_logits(hidden[batch.masked_positions])
        sums = {
            "mlm": F.cross_entropy(logits, batch.targets, reduction="sum"),
            "mlm_right": (logits.argmax(-1) == batch.targets).sum().float(),
        }
        if self.pair_task:
            pair_logits = self._compute_pair_logits(hidden[batch.row_starts])
            sums[self.pair_task] = F.cross_entropy(pair_logits, batch.labels, reduction="sum")
            sums[f"{self.pair_task}_right"] = (pair_logits.argmax(-1) == batch.labels).sum().float()
        return ForwardOutput(sums, batch, logits, batch.targets >= 0)

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """The logits [M, vocabulary] at the masked places, float32."""
        return self._compute_mlm_logits(attention.encode(self.encoder, batch, embeds)[batch.masked_positions])

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(-1)

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Accuracies: of masked tokens, and of pairs if they are judged."""
        fractions = {"mlm_accuracy": (totals["mlm_right"], counts["masked"])}
        if self.pair_task:
            fractions[f"{self.pair_task}_accuracy"] = (totals[f"{self.pair_task}_right"], counts["labelled"])
        return compute_ratios(fractions)

    def save(self, folder: str) -> None:
        """The encoder with both heads; one that the data had no labels for is as it was at the start."""
        self.model.save_pretrained(folder)

    def _compute_mlm_logits(self, hidden: Tensor) -> Tensor:
        model = self.model
        head = model.cls.predictions if isinstance(model, BertForPreTraining) else model.predictions
        logits: Tensor = head(hidden)
        return logits.float()

    def _compute_pair_logits(self, cls_hidden: Tensor) -> Tensor:
        """Logits [R, 2] from the rows' [CLS]; without dropout, as in both references."""
        pooled = _get_pooler(self.model)(cls_hidden).tanh()
        logits: Tensor = _get_pair_classifier(self.model)(pooled)
        return logits.float()


def _get_pooler(model: BertForPreTraining | AlbertForPreTraining) -> nn.Module:
    """The layer above [CLS]."""
    if isinstance(model, BertForPreTraining):
        assert model.bert.pooler is not None  # as a model for pretraining has it
        return model.bert.pooler.dense
    return model.albert.pooler


def _get_pair_classifier(model: BertForPreTraining | AlbertForPreTraining) -> nn.Module:
    """The layer above that, which judges."""
    if isinstance(model, BertForPreTraining):
        return model.cls.seq_relationship
    return model.sop_classifier.classifier
