"""Pretraining objectives: the models of each family, their losses and metrics.

A step's loss is the mean over all its tokens, in all processes and micro-batches.  An objective therefore
returns sums, and training divides them by the counts of the whole step.
"""

from __future__ import annotations

import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    AlbertForPreTraining,
    BertConfig,
    BertForPreTraining,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    PreTrainedConfig,
    PreTrainedModel,
)

from bioshards.train.batch import Batch
from bioshards.train.models import attention
from bioshards.train.recipe import FamilyName, TrainRecipe

GENERATOR_FOLDER: Final = "generator"
"""Subfolder of ELECTRA's generator in a checkpoint."""
ModelLoader = Callable[[type[PreTrainedModel], PreTrainedConfig, str], Any]
"""Builds a model with random weights, or loads it from a checkpoint, or from a subfolder of it that is
not ''."""


class DataSpec(Protocol):
    """Facts about a pretraining set that a model depends on."""

    @property
    def vocabulary_size(self) -> int: ...

    @property
    def special_ids(self) -> Mapping[str, int]:
        """Ids of the special tokens, [PAD], [CLS], [SEP] and [MASK] among them."""

    @property
    def most_frequent_id(self) -> int:
        """Id of the most frequent token of the text."""

    @property
    def labelled(self) -> bool:
        """True if rows have a label of next-sentence prediction or sentence order."""


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
        metrics: ratios of two sums of :meth:`forward` or fields of ``BatchCounts``: the accuracy of MLM on
            hidden tokens and its baseline, that of the set's most frequent token, and others.
        logits_count_field: field of ``BatchCounts`` that counts the tokens of ``ForwardOutput.logits``.
    """

    losses: Mapping[str, tuple[float, str]]
    metrics: Mapping[str, tuple[str, str]] = {
        "mlm_accuracy": ("mlm_right", "mlm_hidden"),
        "mlm_baseline": ("mlm_most_frequent", "mlm_hidden"),
    }
    logits_count_field: str

    def __init__(self, data_spec: DataSpec) -> None:
        super().__init__()
        self.mask_id, self.most_frequent_id = data_spec.special_ids["[MASK]"], data_spec.most_frequent_id

    def forward(self, batch: Batch) -> dict[str, Tensor]:
        """Return the sums over a batch: each loss, and the numerators of :meth:`compute_metrics`."""
        return self.compute_outputs(batch).sums

    def compute_loss(self, sums: Mapping[str, Tensor], counts: Mapping[str, float]) -> Tensor:
        """Return the weighted sum of the losses, each divided by its count; with a count of 0 it is 0.

        Args:
            sums: sums over one micro-batch.
            counts: counts of the whole step, by the fields of ``BatchCounts``.
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

    def compute_mlm_sums(self, logits: Tensor, batch: Batch) -> dict[str, Tensor]:
        """Return the sum of the MLM loss of logits, float32[M, vocabulary], and the counts of its metrics.

        The loss is that of all masked positions.  The counts are of hidden ones, which show [MASK]: where a
        token was kept, the model can copy it.
        """
        is_hidden = batch.ids[batch.masked_positions] == self.mask_id
        return {
            "mlm": F.cross_entropy(logits, batch.targets, reduction="sum"),
            "mlm_hidden": is_hidden.sum().float(),
            "mlm_right": (is_hidden & (logits.argmax(-1) == batch.targets)).sum().float(),
            "mlm_most_frequent": (is_hidden & (batch.targets == self.most_frequent_id)).sum().float(),
        }

    @abstractmethod
    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """Return the logits [N, ...] of the trained encoder.

        Args:
            embeds: [T, E], word embeddings to use instead of those of ``batch.ids``.
        """

    @abstractmethod
    def log_probabilities(self, logits: Tensor) -> Tensor:
        """Return the log-probabilities [N, classes] of logits."""

    def compute_metrics(self, totals: Mapping[str, float], counts: Mapping[str, float]) -> dict[str, float]:
        """Compute the metrics; a ratio with denominator 0 is omitted.

        Args:
            totals: sums of :meth:`forward`, added up over batches.
            counts: fields of ``BatchCounts`` of the same batches, added up.
        """
        values = {**totals, **counts}
        return {
            name: values[numerator] / values[denominator]
            for name, (numerator, denominator) in self.metrics.items()
            if values[denominator]
        }

    @abstractmethod
    def describe_heads(self) -> list[str]:
        """Return a sentence of Markdown for each saved head: is it trained, and which class loads it."""

    @abstractmethod
    def save(self, folder: str) -> None:
        """Write the encoder and its heads for Hugging Face's ``from_pretrained``."""


class ElectraObjective(Objective):
    """ELECTRA: a generator fills in masked tokens (MLM), a discriminator detects replaced tokens (RTD).

    The rules are those of the paper (Clark et al. 2020, arXiv:2003.10555) and, where it leaves them open, of
    its code (google-research/electra: run_pretraining.py and pretrain/pretrain_helpers.py).  The loss weights
    are 50 and 1 (paper, section 3.1 and table of hyperparameters).  The RTD loss covers all tokens except
    padding, [CLS] and [SEP] included.  Both models share the embeddings of words, positions and types and
    their LayerNorm (``_build_transformer`` in the scope "electra/embeddings").
    """

    losses: Mapping[str, tuple[float, str]] = {"mlm": (1.0, "masked"), "rtd": (50.0, "tokens")}
    metrics: Mapping[str, tuple[str, str]] = {
        **Objective.metrics,
        "rtd_accuracy": ("rtd_right", "tokens"),
        "rtd_precision": ("caught", "flagged"),
        "rtd_recall": ("caught", "replaced"),
        "replaced": ("replaced", "tokens"),
    }
    logits_count_field = "tokens"

    def __init__(self, recipe: TrainRecipe, data_spec: DataSpec, load_model: ModelLoader) -> None:
        super().__init__(data_spec)
        settings = {**_make_settings(recipe, data_spec), "embedding_size": recipe.embedding_size}
        sizes = recipe.generator_sizes
        generator_sizes = {
            "hidden_size": sizes.hidden_size,
            "num_hidden_layers": sizes.num_layers,
            "num_attention_heads": sizes.num_heads,
            "intermediate_size": 4 * sizes.hidden_size,
        }
        generator_config = ElectraConfig(**{**settings, **generator_sizes})
        generator = load_model(ElectraForMaskedLM, generator_config, GENERATOR_FOLDER)
        discriminator = load_model(ElectraForPreTraining, ElectraConfig(**settings), "")
        generator.electra.embeddings = discriminator.electra.embeddings
        generator.tie_weights()  # tie its output layer to the discriminator's word embeddings
        self.generator, self.discriminator = generator, discriminator
        attention.enable(generator)
        attention.enable(discriminator)

    @property
    def encoder(self) -> PreTrainedModel:
        encoder: PreTrainedModel = self.discriminator.electra
        return encoder

    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        generator_logits = self.compute_generator_logits(batch)
        ids, is_replaced = corrupt(batch, sample_tokens(generator_logits, batch.noise))
        corrupted_batch = batch._replace(ids=ids)
        logits = self.predict(corrupted_batch)
        is_flagged, is_replaced = (logits > 0) & batch.is_token, is_replaced & batch.is_token
        is_correct = (is_flagged == is_replaced) & batch.is_token
        sums = {
            **self.compute_mlm_sums(generator_logits, batch),
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
        """Compute the metrics, and ``replaced_entropy``, the baseline of ``rtd``.

        It is the RTD loss, in nats per token, of a discriminator that knows only the fraction of replaced
        tokens.
        """
        metrics = super().compute_metrics(totals, counts)
        if (replaced_fraction := metrics.get("replaced")) is not None:
            metrics["replaced_entropy"] = -sum(
                p * math.log(p) for p in (replaced_fraction, 1 - replaced_fraction) if p > 0
            )
        return metrics

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


class _Heads(NamedTuple):
    """Heads of a model: for masked tokens, the dense layer above [CLS], and the classifier above that.

    They are in a tuple, because state.pt would have a module twice that is an attribute of its own.
    """

    mlm: nn.Module
    pooler: nn.Module
    pair_classifier: nn.Module


class MlmObjective(Objective):
    """Masked language modelling with BERT or ALBERT, and a task of segment pairs if rows have labels.

    The pair task is next-sentence prediction (NSP) in BERT (Devlin et al. 2019, arXiv:1810.04805) and
    sentence-order prediction (SOP) in ALBERT (Lan et al. 2020, arXiv:1909.11942).  They differ in the labels
    only. Both losses have weight 1 (``model_fn_builder`` in run_pretraining.py of google-research/bert and
    /albert).

    Attributes:
        pair_task: name of the loss of the pair task; None if rows have no labels.
    """

    logits_count_field = "masked"

    def __init__(self, recipe: TrainRecipe, data_spec: DataSpec, load_model: ModelLoader) -> None:
        super().__init__(data_spec)
        settings = _make_settings(recipe, data_spec)
        if recipe.family == "bert":
            pair_loss, self._pair_description = "nsp", "next sentences"
            model = load_model(BertForPreTraining, BertConfig(**settings), "")
            heads = _Heads(model.cls.predictions, model.bert.pooler.dense, model.cls.seq_relationship)
        else:
            pair_loss, self._pair_description = "sop", "the order of sentences"
            config = AlbertConfig(
                **settings,
                embedding_size=recipe.embedding_size,
                bos_token_id=data_spec.special_ids["[CLS]"],
                eos_token_id=data_spec.special_ids["[SEP]"],
            )
            model = load_model(AlbertForPreTraining, config, "")
            heads = _Heads(model.predictions, model.albert.pooler, model.sop_classifier.classifier)
        self.model, self._heads = model, heads
        self.pair_task = pair_loss if data_spec.labelled else None
        self.losses = {"mlm": (1.0, "masked")}
        if task := self.pair_task:
            self.losses = {**self.losses, task: (1.0, "labelled")}
            self.metrics = {**self.metrics, f"{task}_accuracy": (f"{task}_right", "labelled")}
        else:
            heads.pooler.requires_grad_(False)
            heads.pair_classifier.requires_grad_(False)
        attention.enable(model)

    @property
    def encoder(self) -> PreTrainedModel:
        encoder: PreTrainedModel = self.model.base_model
        return encoder

    def compute_outputs(self, batch: Batch) -> ForwardOutput:
        hidden = attention.encode(self.encoder, batch)
        logits: Tensor = self._heads.mlm(hidden[batch.masked_positions]).float()
        sums = self.compute_mlm_sums(logits, batch)
        if self.pair_task:
            # From [CLS], without dropout, as in both references.
            pooled = self._heads.pooler(hidden[batch.row_starts]).tanh()
            pair_logits = self._heads.pair_classifier(pooled).float()
            sums[self.pair_task] = F.cross_entropy(pair_logits, batch.labels, reduction="sum")
            sums[f"{self.pair_task}_right"] = (pair_logits.argmax(-1) == batch.labels).sum().float()
        return ForwardOutput(sums, batch, logits, batch.targets >= 0)

    def predict(self, batch: Batch, embeds: Tensor | None = None) -> Tensor:
        """Return the logits [M, vocabulary] at the masked positions, float32."""
        hidden = attention.encode(self.encoder, batch, embeds)[batch.masked_positions]
        logits: Tensor = self._heads.mlm(hidden).float()
        return logits

    def log_probabilities(self, logits: Tensor) -> Tensor:
        return logits.log_softmax(-1)

    def describe_heads(self) -> list[str]:
        mlm_head = (
            "The head that predicts masked tokens: `AutoModelForMaskedLM` and `AutoModelForPreTraining`."
        )
        pair_head = f"The pooler and the head for {self._pair_description}"
        if self.pair_task:
            return [mlm_head, f"{pair_head}: `AutoModelForPreTraining`."]
        reason = "the rows of its pretraining set have no labels"
        return [mlm_head, f"{pair_head} were **not trained in this run**: {reason}."]

    def save(self, folder: str) -> None:
        """Write the encoder with both heads; a pair head without labels keeps its initial weights."""
        self.model.save_pretrained(folder)


OBJECTIVES: Final[Mapping[FamilyName, Callable[[TrainRecipe, DataSpec, ModelLoader], Objective]]] = {
    "electra": ElectraObjective,
    "bert": MlmObjective,
    "albert": MlmObjective,
}


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


def _make_settings(recipe: TrainRecipe, data_spec: DataSpec) -> dict[str, Any]:
    """Return the settings that the Hugging Face configurations of all models share."""
    return {
        "vocab_size": data_spec.vocabulary_size,
        "pad_token_id": data_spec.special_ids["[PAD]"],
        "max_position_embeddings": recipe.max_positions,
        "hidden_dropout_prob": recipe.dropout,
        "attention_probs_dropout_prob": recipe.attention_dropout,
        "hidden_size": recipe.hidden_size,
        "num_hidden_layers": recipe.num_layers,
        "num_attention_heads": recipe.num_heads,
        "intermediate_size": recipe.intermediate_size,
    }
