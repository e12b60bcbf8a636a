"""Classification and regression of texts, pairs of texts and relations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.record_types import LabelledText, Record, Relation
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.modeling import heads
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch, TokenizedExample, stack_targets
from bioshards.evaluate.modeling.tokenization import ModelTokenizer
from bioshards.evaluate.tasks.relation_inputs import build_relation_input

ClassificationType = Literal["single_label", "multi_label", "regression", "ranking"]
"""One class; any number of classes; a number; ranking by the probability of the second class."""


@dataclass(slots=True)
class Classification:
    """Task adapter for classification, regression and ranking.

    Attributes:
        labels: classes in the order of the outputs; of a ranking the second is the relevant one.
        class_weights: float[C], weights of the classes in the loss; set by ``make_examples`` in training.
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    problem_type: ClassificationType
    labels: tuple[str, ...]
    class_weights: Tensor | None = None

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[TokenizedExample]:
        """Return one example for each record."""
        relations = [record for record in records if isinstance(record, Relation)]
        if relations:
            examples = self._make_relation_examples(relations, is_training)
        else:
            examples = self._make_text_examples(
                [record for record in records if isinstance(record, LabelledText)], is_training
            )
        if is_training:
            self.class_weights = self._compute_class_weights(examples)
        return examples

    def _make_text_examples(self, texts: Sequence[LabelledText], is_training: bool) -> list[TokenizedExample]:
        encoded_first = self.tokenizer.encode_texts([text.text for text in texts])
        encoded_second = self.tokenizer.encode_texts([text.text_pair or "" for text in texts])
        examples = []
        for index, text in enumerate(texts):
            first_ids, second_ids = encoded_first[index][0], encoded_second[index][0]
            max_tokens = self.tokenizer.count_text_tokens(
                self.recipe.max_seq_length, text.text_pair is not None
            )
            first_ids, second_ids = truncate_pair(first_ids, second_ids, max_tokens)
            tokenized_input = self.tokenizer.build_input(
                first_ids, None if text.text_pair is None else second_ids
            )
            examples.append(
                TokenizedExample(
                    index,
                    tokenized_input.input_ids,
                    tokenized_input.token_type_ids,
                    target=self._encode_label(text) if is_training else None,
                )
            )
        return examples

    def _make_relation_examples(
        self, relations: Sequence[Relation], is_training: bool
    ) -> list[TokenizedExample]:
        inputs = [build_relation_input(relation, self.recipe.entity_format) for relation in relations]
        max_tokens = self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair=False)
        examples = []
        encoded_texts = self.tokenizer.encode_texts([relation.text for relation in inputs])
        for index, (relation, (token_ids, offsets)) in enumerate(zip(inputs, encoded_texts, strict=True)):
            span_starts = (
                relation.entity_starts
                if self.recipe.relation_feature == "start"
                else (relation.first[0], relation.second[0])
            )
            spans = zip(span_starts, (relation.first[1], relation.second[1]), strict=True)
            token_ranges = [_find_token_range(span, offsets) for span in spans]
            first_token = find_window_start(
                len(token_ids),
                max_tokens,
                min(range_start for range_start, _ in token_ranges),
                max(range_end for _, range_end in token_ranges),
            )
            tokenized_input = self.tokenizer.build_input(token_ids[first_token : first_token + max_tokens])
            shift, limit = (
                tokenized_input.first_start - first_token,
                tokenized_input.first_start + min(max_tokens, len(token_ids)),
            )
            positions = [
                min(limit, max(tokenized_input.first_start, edge + shift))
                for span in token_ranges
                for edge in span
            ]
            target = self._encode_label(relations[index]) if is_training else None
            examples.append(
                TokenizedExample(
                    index, tokenized_input.input_ids, tokenized_input.token_type_ids, tuple(positions), target
                )
            )
        return examples

    def _encode_label(self, record: LabelledText | Relation) -> Any:
        label = record.label
        if self.problem_type == "regression":
            return float(label)  # type: ignore[arg-type]  # regression labels are numbers
        if isinstance(label, frozenset):
            return [float(name in label) for name in self.labels]
        return self.labels.index(str(label))

    def _compute_class_weights(self, tokenized_examples: Sequence[TokenizedExample]) -> Tensor | None:
        """Return the class weights of the loss.

        Raises:
            InvalidValueError: the recipe has another number of weights than there are classes.
        """
        if self.recipe.class_weights == "none" or self.problem_type not in ("single_label", "ranking"):
            return None
        if self.recipe.class_weights == "balanced":  # as scikit-learn: examples / (classes x examples of one)
            class_counts = Counter(example.target for example in tokenized_examples)
            return torch.tensor(
                [
                    len(tokenized_examples) / (len(class_counts) * class_counts[index])
                    if class_counts[index]
                    else 0.0
                    for index in range(len(self.labels))
                ]
            )
        weights = self.recipe.parse_class_weights()
        if len(weights) != len(self.labels):
            raise InvalidValueError(
                f"--class-weights has {len(weights)} numbers, and there are {len(self.labels)} classes: "
                f"{', '.join(self.labels)}"
            )
        return torch.tensor(weights)

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return a linear layer, above a BiLSTM if the recipe has one."""
        feature_size = {"cls": hidden_size, "mention": 2 * hidden_size, "start": 2 * hidden_size}[
            self.recipe.relation_feature
        ]
        num_outputs = 1 if self.problem_type == "regression" else len(self.labels)
        bilstm = heads.BiLSTM(hidden_size) if "bilstm" in self.recipe.head else None
        return ClassificationHead(bilstm, heads.PooledHead(feature_size, num_outputs, self.recipe.dropout))

    def _compute_outputs(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> Tensor:
        hidden, features = encoded.hidden, encoded.pooled
        if task_head.bilstm is not None:
            hidden = task_head.bilstm(hidden, batch.mask)
            features = hidden[:, 0]
        if self.recipe.relation_feature != "cls":
            positions = torch.tensor(
                [example.positions for example in batch.examples], device=batch.input_ids.device
            )
            token_ranges = positions.view(-1, 2, 2)
            features = heads.extract_relation_features(
                hidden, token_ranges[:, 0], token_ranges[:, 1], self.recipe.relation_feature
            )
        outputs: Tensor = task_head.pooled(features)
        return outputs

    def loss(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> Tensor:
        """Return weighted cross-entropy, binary cross-entropy (multi-label) or squared error (regression)."""
        outputs = self._compute_outputs(task_head, encoded, batch)
        if self.problem_type == "regression":
            return heads.mean_squared_error(outputs, stack_targets(batch, torch.float32))
        if self.problem_type == "multi_label":
            return heads.binary_cross_entropy(outputs, stack_targets(batch, torch.float32))
        loss_weights = None if self.class_weights is None else self.class_weights.to(outputs.device)
        return heads.weighted_cross_entropy(outputs, stack_targets(batch, torch.int64), loss_weights)

    def predict(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> list[Any]:
        """Return a class, a set of classes, a number, or the probability of the second class."""
        outputs = self._compute_outputs(task_head, encoded, batch).float()
        match self.problem_type:
            case "regression":
                return list(outputs[:, 0].tolist())
            case "ranking":
                return list(outputs.softmax(-1)[:, 1].tolist())
            case "multi_label":
                return [
                    frozenset(
                        name for name, is_predicted in zip(self.labels, row, strict=True) if is_predicted
                    )
                    for row in (outputs > 0).tolist()
                ]
            case _:
                return [self.labels[class_index] for class_index in outputs.argmax(-1).tolist()]

    def merge_predictions(
        self,
        records: Sequence[Record],
        tokenized_examples: Sequence[TokenizedExample],
        predictions: Sequence[Any],
    ) -> list[Any]:
        """Return the predictions unchanged: each record is one example."""
        return list(predictions)

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Return the labels; of a ranking (question id, is relevant)."""
        if self.problem_type == "ranking":
            return [
                (record.group_id, record.label == self.labels[1])
                for record in records
                if isinstance(record, LabelledText)
            ]
        return [record.label for record in records if isinstance(record, (LabelledText, Relation))]


class ClassificationHead(nn.Module):
    """Linear layer on the encoder's or a BiLSTM's vectors."""

    def __init__(self, bilstm: heads.BiLSTM | None, pooled: heads.PooledHead) -> None:
        super().__init__()
        self.bilstm = bilstm
        self.pooled = pooled


def truncate_pair(first: list[int], second: list[int], max_tokens: int) -> tuple[list[int], list[int]]:
    """Truncate the longer of two texts at its end until both fit (``longest_first`` of Hugging Face)."""
    excess = len(first) + len(second) - max_tokens
    if excess <= 0:
        return first, second
    shorter_length = min(len(first), len(second))
    longer_length = max(
        shorter_length, max_tokens - shorter_length
    )  # of the longer one, if cutting that is enough
    if longer_length + shorter_length <= max_tokens:
        return (
            (first[:longer_length], second) if len(first) >= len(second) else (first, second[:longer_length])
        )
    return first[: max_tokens - max_tokens // 2], second[: max_tokens // 2]


def find_window_start(num_tokens: int, max_tokens: int, span_start: int, span_end: int) -> int:
    """Return the first token of a window that contains tokens ``span_start`` to ``span_end`` (exclusive).

    The window starts at 0 if it can, else it is centred on the span.
    """
    if num_tokens <= max_tokens or span_end <= max_tokens:
        return 0
    return max(
        0, min(num_tokens - max_tokens, span_start - max(0, max_tokens - (span_end - span_start)) // 2)
    )


def _find_token_range(span: tuple[int, int], offsets: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the tokens that overlap a character span; without any, the next token."""
    token_indices = [index for index, (start, end) in enumerate(offsets) if start < span[1] and end > span[0]]
    if token_indices:
        return token_indices[0], token_indices[-1] + 1
    next_token = next(
        (index for index, (start, _) in enumerate(offsets) if start >= span[0]), len(offsets) - 1
    )
    return next_token, next_token + 1
