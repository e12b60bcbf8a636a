"""Classification and regression of texts, pairs of texts and relations."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.records import LabelledText, Relation
from bioshards.evaluate.encoder import EncodedBatch, Example, ModelTokenizer, make_linear
from bioshards.evaluate.recipes import FineTuneRecipe, RelationFeature, parse_class_weights
from bioshards.evaluate.tasks.head_layers import BiLSTM
from bioshards.evaluate.tasks.input_texts import (
    build_relation_input,
    find_entity_edges,
    find_window_start,
)

ClassificationType = Literal["single_label", "multi_label", "regression", "ranking"]
"""One class; any number of classes; a number; ranking by the probability of the second class."""


class ClassificationHead(nn.Module):
    """Linear layer on one vector per text, for classes or a number; with a BiLSTM for the text before it."""

    def __init__(
        self, num_features: int, num_outputs: int, dropout: float = 0.1, bilstm_size: int = 0
    ) -> None:
        super().__init__()
        self.bilstm = BiLSTM(bilstm_size) if bilstm_size else None
        self.dropout = nn.Dropout(dropout)
        self.linear = make_linear(num_features, num_outputs)

    def forward(self, vectors: Tensor) -> Tensor:
        """Map [B, features] to float32[B, outputs]."""
        outputs: Tensor = self.linear(self.dropout(vectors))
        return outputs.float()


@dataclass(slots=True)
class Classification:
    """Task adapter for classification, regression and ranking.

    Attributes:
        labels: classes in the order of the outputs; of a ranking the second is the relevant one.
        class_weights: float[C], weights of the classes in the loss.
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    problem_type: ClassificationType
    labels: tuple[str, ...]
    class_weights: Tensor | None = None

    def make_examples(self, records: Sequence[LabelledText | Relation], is_training: bool) -> list[Example]:
        """Return one example for each record."""
        relations = [record for record in records if isinstance(record, Relation)]
        if relations:
            return self._make_relation_examples(relations, is_training)
        texts = [record for record in records if isinstance(record, LabelledText)]
        encoded_first = self.tokenizer.encode_texts([text.text for text in texts])
        encoded_second = self.tokenizer.encode_texts([text.text_pair or "" for text in texts])
        examples = []
        for index, text in enumerate(texts):
            is_pair = text.text_pair is not None
            max_tokens = self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair)
            first_ids, second_ids = truncate_pair(
                encoded_first[index][0], encoded_second[index][0], max_tokens
            )
            model_input = self.tokenizer.build_input(first_ids, second_ids if is_pair else None)
            target = self._encode_label(text) if is_training else None
            examples.append(Example(index, *model_input[:2], target=target))
        return examples

    def _make_relation_examples(self, relations: Sequence[Relation], is_training: bool) -> list[Example]:
        inputs = [build_relation_input(relation, self.recipe.entity_format) for relation in relations]
        max_tokens = self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair=False)
        encoded_texts = self.tokenizer.encode_texts([relation.text for relation in inputs])
        examples = []
        for index, (relation, (token_ids, offsets)) in enumerate(zip(inputs, encoded_texts, strict=True)):
            edges = find_entity_edges(relation, self.recipe.relation_feature, offsets)
            window = find_window_start(len(token_ids), max_tokens, min(edges), max(edges))
            model_input = self.tokenizer.build_input(token_ids[window : window + max_tokens])
            low = model_input.first_start
            high = low + min(max_tokens, len(token_ids))
            positions = tuple(min(high, max(low, edge + low - window)) for edge in edges)
            target = self._encode_label(relations[index]) if is_training else None
            examples.append(Example(index, *model_input[:2], positions, target))
        return examples

    def _encode_label(self, record: LabelledText | Relation) -> Any:
        label = record.label
        if self.problem_type == "regression":
            return float(label)  # type: ignore[arg-type]  # regression labels are numbers
        if isinstance(label, frozenset):
            return [float(name in label) for name in self.labels]
        return self.labels.index(str(label))

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return a linear layer, above a BiLSTM if the recipe has one."""
        return ClassificationHead(
            hidden_size if self.recipe.relation_feature == "cls" else 2 * hidden_size,
            1 if self.problem_type == "regression" else len(self.labels),
            self.recipe.dropout,
            hidden_size if "bilstm" in self.recipe.head else 0,
        )

    def _compute_outputs(self, head: Any, batch: EncodedBatch) -> Tensor:
        hidden, features = batch.hidden, batch.pooled
        if head.bilstm is not None:
            hidden = head.bilstm(hidden, batch.mask)
            features = hidden[:, 0]
        if self.recipe.relation_feature != "cls":
            positions = torch.tensor([example.positions for example in batch.examples], device=hidden.device)
            features = extract_relation_features(
                hidden, positions[:, :2], positions[:, 2:], self.recipe.relation_feature
            )
        outputs: Tensor = head(features)
        return outputs

    def loss(self, head: Any, batch: EncodedBatch) -> Tensor:
        """Return the mean loss over the texts of a batch.

        Squared error of a regression, binary cross-entropy of each class (multi-label), or cross-entropy.
        Weighted by class it is divided by the number of texts, not by the sum of weights. SOURCES:
        PubMedBERT, section 2.4.1; ``WeightedClassificationTask`` in
        electra/finetune/classification/classification_tasks.py of SciCrunch/bio_electra.
        """
        outputs = self._compute_outputs(head, batch)
        if self.problem_type == "regression":
            return F.mse_loss(outputs.squeeze(1), batch.stack_targets(torch.float32))
        if self.problem_type == "multi_label":
            return F.binary_cross_entropy_with_logits(outputs, batch.stack_targets(torch.float32))
        weights = None if self.class_weights is None else self.class_weights.to(outputs.device)
        return F.cross_entropy(outputs, batch.stack_targets(), weights, reduction="sum") / len(outputs)

    def predict(self, head: Any, batch: EncodedBatch) -> list[Any]:
        """Return a class, a set of classes, a number, or the probability of the second class."""
        outputs = self._compute_outputs(head, batch)
        match self.problem_type:
            case "regression":
                return list(outputs.squeeze(1).tolist())
            case "multi_label":
                rows = (outputs > 0).tolist()
                return [frozenset(itertools.compress(self.labels, row)) for row in rows]
            case "ranking":
                return list(outputs.softmax(-1)[:, 1].tolist())
            case "single_label":
                return [self.labels[class_index] for class_index in outputs.argmax(-1).tolist()]

    def merge_predictions(
        self, records: Sequence[Any], examples: Sequence[Example], predictions: Sequence[Any]
    ) -> list[Any]:
        """Return the predictions unchanged: each record is one example."""
        return list(predictions)

    def gold_labels(self, records: Sequence[LabelledText | Relation]) -> list[Any]:
        """Return the labels; of a ranking (question id, is relevant)."""
        if self.problem_type == "ranking":
            return [
                (record.group_id, record.label == self.labels[1])
                for record in records
                if isinstance(record, LabelledText)
            ]
        return [record.label for record in records]

    def predict_majority(self, train_gold: Sequence[Any], test_gold: Sequence[Any]) -> list[Any]:
        """Return the most frequent class of train for every text, of equally frequent ones the first.

        A set of labels: those of more than half of train.  A number: the mean of train.  A ranking: the order
        of the files.
        """
        match self.problem_type:
            case "regression":
                prediction: Any = sum(train_gold) / len(train_gold)
            case "ranking":
                prediction = 0.0
            case "multi_label":
                counts = Counter(label for labels in train_gold for label in labels)
                prediction = frozenset(
                    label for label, count in counts.items() if 2 * count > len(train_gold)
                )
            case "single_label":
                ((prediction, _),) = Counter(train_gold).most_common(1)
        return [prediction] * len(test_gold)


def compute_class_weights(
    setting: str, labels: Sequence[str], train_records: Sequence[LabelledText | Relation]
) -> Tensor | None:
    """Return the class weights of the loss, float[C].

    Args:
        setting: ``none``, ``balanced``, or a number for each class (``FineTuneRecipe.class_weights``).

    Raises:
        InvalidValueError: there is another number of weights than of classes.
    """
    if setting == "none":
        return None
    if setting == "balanced":  # as scikit-learn: examples / (classes x examples of one)
        counts = Counter(str(record.label) for record in train_records)
        return torch.tensor(
            [counts.total() / (len(counts) * counts[label]) if counts[label] else 0.0 for label in labels]
        )
    weights = parse_class_weights(setting)
    if len(weights) != len(labels):
        raise InvalidValueError(
            f"--class-weights has {len(weights)} numbers, and there are {len(labels)} classes: "
            f"{', '.join(labels)}"
        )
    return torch.tensor(weights)


def truncate_pair(first: list[int], second: list[int], max_tokens: int) -> tuple[list[int], list[int]]:
    """Truncate the longer of two texts at its end until both fit (``longest_first`` of Hugging Face)."""
    shorter_length = min(len(first), len(second))
    if 2 * shorter_length > max_tokens:
        return first[: max_tokens - max_tokens // 2], second[: max_tokens // 2]
    longer_length = max_tokens - shorter_length
    if len(first) >= len(second):
        return first[:longer_length], second
    return first, second[:longer_length]


def extract_relation_features(
    hidden: Tensor, first: Tensor, second: Tensor, feature: RelationFeature
) -> Tensor:
    """Return the vectors by which relations are classified (PubMedBERT, section 3.3).

    Args:
        hidden: float32[B, T, H].
        first: int64[B, 2], token range of the first entity, end exclusive.
        second: int64[B, 2], token range of the second entity.
        feature: ``cls``: vector of [CLS]; ``mention``: maximum over each entity's tokens; ``start``: first
            token of each range, which begins at the marker if there is one.

    Returns:
        float[B, H] for ``cls``, else float[B, 2H]; 0 for an entity with an empty range.
    """
    if feature == "cls":
        return hidden[:, 0]
    positions = torch.arange(hidden.shape[1], device=hidden.device)
    vectors = []
    for token_ranges in (first, second):
        start, end = token_ranges[:, :1], token_ranges[:, 1:]
        end = end if feature == "mention" else torch.minimum(start + 1, end)
        is_inside = (positions >= start) & (positions < end)
        maximum = hidden.masked_fill(~is_inside[:, :, None], -torch.inf).amax(1)
        vectors.append(maximum.where(is_inside.any(1, keepdim=True), 0))
    return torch.cat(vectors, 1)
