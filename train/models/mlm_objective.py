"""BERT and ALBERT: masked language modelling (MLM), and a classification of segment pairs if rows have
labels.

The pair task is next-sentence prediction (NSP) in BERT (Devlin et al. 2019, arXiv:1810.04805) and
sentence-order prediction (SOP) in ALBERT (Lan et al. 2020, arXiv:1909.11942).  They differ in the labels
only. Both losses have weight 1 (``model_fn_builder`` in run_pretraining.py of google-research/bert and
/albert).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)

from bioshards.train.batch import Batch, BatchCounts
from bioshards.train.config.model_config import DataSpec, ModelConfig
from bioshards.train.models import attention, flops
from bioshards.train.models.objective import (
    ForwardOutput,
    ModelLoader,
    Objective,
    build_encoder_settings,
    compute_mlm_fractions,
    compute_mlm_sums,
    compute_ratios,
)


class MlmObjective(Objective):
    """Masked language modelling, with a pair task if rows have labels.

    Attributes:
        pair_task: name of the loss of the pair task; None if rows have no labels.
    """

    model_class: ClassVar[type[PreTrainedModel]]
    pair_loss: ClassVar[str]
    logits_count_field = "masked"

    def __init__(self, model: Any, data_spec: DataSpec) -> None:
        """Enable flat batches, and freeze the pair head if rows have no labels.

        Args:
            model: instance of ``model_class``.
        """
        super().__init__()
        self.model = model
        self.special_ids, self.most_frequent_id = data_spec.special_ids, data_spec.most_frequent_id
        self.pair_task = self.pair_loss if data_spec.labelled else None
        self.losses = {"mlm": (1.0, "masked")} | (
            {self.pair_task: (1.0, "labelled")} if self.pair_task else {}
        )
        if not data_spec.labelled:
            self._get_pooler().requires_grad_(False)
            self._get_pair_classifier().requires_grad_(False)
        attention.enable(model)

    @classmethod
    def build(cls, config: ModelConfig, data_spec: DataSpec, load_model: ModelLoader) -> Self:
        """Build the model."""
        return cls(load_model(cls.model_class, cls.build_config(config, data_spec)), data_spec)

    @property
    def encoder(self) -> PreTrainedModel:
        encoder = self.model.base_model
        assert isinstance(encoder, PreTrainedModel)
        return encoder

    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        hidden = attention.encode(self.encoder, batch)
        logits = self._compute_mlm_logits(hidden[batch.masked_positions])
        sums = compute_mlm_sums(logits, batch, self.special_ids, self.most_frequent_id)
        if self.pair_task:
            pair_logits = self._compute_pair_logits(hidden[batch.row_starts])
            sums[self.pair_task] = F.cross_entropy(pair_logits, batch.labels, reduction="sum")
            sums[f"{self.pair_task}_right"] = (pair_logits.argmax(-1) == batch.labels).sum().float()
        return ForwardOutput(sums, batch, logits, batch.targets >= 0)

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """Return the logits [M, vocabulary] at the masked positions, float32."""
        return self._compute_mlm_logits(attention.encode(self.encoder, batch, embeds)[batch.masked_positions])

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(-1)

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Compute the accuracy on hidden tokens with its baseline, and on pairs if rows have labels."""
        fractions = compute_mlm_fractions(totals)
        if self.pair_task:
            fractions[f"{self.pair_task}_accuracy"] = (totals[f"{self.pair_task}_right"], counts["labelled"])
        return compute_ratios(fractions)

    def count_forward_flops(self, counts: BatchCounts) -> float:
        config = self.encoder.config
        return flops.count_encoder(config, counts) + flops.count_mlm_head(config, counts)

    def count_training_flops(self, counts: BatchCounts) -> float:
        hidden_size = flops.get_hidden_size(self.encoder.config)
        pair_flops = counts.labelled * 2 * hidden_size * (hidden_size + 2) if self.pair_task else 0
        return flops.TRAINING_TO_FORWARD_RATIO * (self.count_forward_flops(counts) + pair_flops)

    def describe_heads(self) -> list[str]:
        pair_head = "next sentences" if self.pair_loss == "nsp" else "the order of sentences"
        return [
            "The head that predicts masked tokens: `AutoModelForMaskedLM` and `AutoModelForPreTraining`.",
            f"The pooler and the head for {pair_head}: `AutoModelForPreTraining`."
            if self.pair_task
            else f"The pooler and the head for {pair_head} were **not trained in this run**: the rows of its "
            "pretraining set have no labels.",
        ]

    def save(self, folder: str) -> None:
        """Write the encoder with both heads; a pair head without labels keeps its initial weights."""
        self.model.save_pretrained(folder)

    def _compute_mlm_logits(self, hidden: Tensor) -> Tensor:
        logits: Tensor = self._get_mlm_head()(hidden)
        return logits.float()

    def _compute_pair_logits(self, cls_hidden: Tensor) -> Tensor:
        """Return the logits [R, 2] of the rows' [CLS]; without dropout, as in both references."""
        pooled = self._get_pooler()(cls_hidden).tanh()
        logits: Tensor = self._get_pair_classifier()(pooled)
        return logits.float()

    @abstractmethod
    def _get_mlm_head(self) -> nn.Module:
        """Return the head that predicts masked tokens."""

    @abstractmethod
    def _get_pooler(self) -> nn.Module:
        """Return the dense layer above [CLS]."""

    @abstractmethod
    def _get_pair_classifier(self) -> nn.Module:
        """Return the classifier above the pooler."""


class BertObjective(MlmObjective):
    """Masked language modelling and next-sentence prediction with a BERT model."""

    model_class = BertForPreTraining
    pair_loss = "nsp"

    @classmethod
    def build_config(cls, config: ModelConfig, data_spec: DataSpec) -> PreTrainedConfig:
        """Build the configuration of the model."""
        settings: dict[str, Any] = build_encoder_settings(config, data_spec)
        return BertConfig(**settings)

    def _get_mlm_head(self) -> nn.Module:
        head: nn.Module = self.model.cls.predictions
        return head

    def _get_pooler(self) -> nn.Module:
        pooler: nn.Module = self.model.bert.pooler.dense
        return pooler

    def _get_pair_classifier(self) -> nn.Module:
        classifier: nn.Module = self.model.cls.seq_relationship
        return classifier


class AlbertObjective(MlmObjective):
    """Masked language modelling and sentence-order prediction with an ALBERT model."""

    model_class = AlbertForPreTraining
    pair_loss = "sop"

    @classmethod
    def build_config(cls, config: ModelConfig, data_spec: DataSpec) -> PreTrainedConfig:
        """Build the configuration of the model."""
        settings: dict[str, Any] = build_encoder_settings(config, data_spec)
        return AlbertConfig(
            **settings,
            embedding_size=config.embedding_size,
            bos_token_id=data_spec.special_ids["[CLS]"],
            eos_token_id=data_spec.special_ids["[SEP]"],
        )

    def _get_mlm_head(self) -> nn.Module:
        head: nn.Module = self.model.predictions
        return head

    def _get_pooler(self) -> nn.Module:
        pooler: nn.Module = self.model.albert.pooler
        return pooler

    def _get_pair_classifier(self) -> nn.Module:
        classifier: nn.Module = self.model.sop_classifier.classifier
        return classifier
