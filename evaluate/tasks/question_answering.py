"""Extractive question answering: start and end of the answer in a passage.

Long passages are read in overlapping windows, as in run_squad.py of google-research/bert and qa_tasks.py of
electra. In training a window without the answer has [CLS] as its target. In prediction an answer is taken
from the window with most context around its first token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor, nn

from bioshards.evaluate.benchmarks.records import Question, Record
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.modeling.encoder import EncodedBatch, Example, pad_rows
from bioshards.evaluate.modeling.tokenization import ModelTokenizer, Offsets
from bioshards.evaluate.tasks.answer_pooling import pool_answers
from bioshards.evaluate.tasks.span_heads import JointSpanHead, SpanHead

_MAX_QUESTION_TOKENS: Final = 64
"""Maximum tokens of a question (google-research/bert and electra, max_query_length)."""
_N_BEST: Final = 20
"""Answers that are kept per window and passage (n_best_size there)."""
_MAX_ANSWER_TOKENS: Final = 30
"""Maximum tokens of an answer (max_answer_length there)."""


@dataclass(frozen=True, slots=True)
class QuestionAnswering:
    """Task adapter for extractive question answering.

    Attributes:
        is_per_question: True to predict five ranked answers per question over all of its passages (BioASQ),
            False for the best answer of each passage (SQuAD).
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    is_per_question: bool

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[Example]:
        """Return the windows of all passages; in training, of passages with a marked answer."""
        questions = _select_questions(records)
        encoded_questions = self.tokenizer.encode_texts([question.question for question in questions])
        encoded_passages = self.tokenizer.encode_texts([question.context for question in questions])
        examples = []
        for index, question in enumerate(questions):
            question_ids = encoded_questions[index][0][:_MAX_QUESTION_TOKENS]
            windows = self._make_windows(index, question_ids, *encoded_passages[index])
            if not is_training:
                examples += windows
            elif question.answers and (answer := question.answers[0]).start >= 0:
                start, end = answer.start, answer.start + len(answer.text)
                examples += [
                    replace(window, target=_find_span_target(window, start, end)) for window in windows
                ]
        return examples

    def _make_windows(
        self, record_index: int, question_ids: list[int], passage_ids: list[int], offsets: Offsets
    ) -> list[Example]:
        max_passage_tokens = self.tokenizer.count_text_tokens(self.recipe.max_seq_length, is_pair=True)
        question_ids = question_ids[: max(1, max_passage_tokens // 2)]
        max_passage_tokens -= len(question_ids)
        stride = min(self.recipe.stride, max_passage_tokens)
        window_starts = [0, *range(stride, stride + max(0, len(passage_ids) - max_passage_tokens), stride)]
        windows = [(start, min(start + max_passage_tokens, len(passage_ids))) for start in window_starts]
        examples = []
        for start, end in windows:
            model_input = self.tokenizer.build_input(question_ids, passage_ids[start:end])
            num_before = model_input.second_start
            num_after = len(model_input.input_ids) - num_before - (end - start)
            examples.append(
                Example(
                    record_index,
                    model_input.input_ids,
                    model_input.token_type_ids,
                    positions=tuple(
                        num_before + token - start
                        for token in range(start, end)
                        if find_max_context_window(windows, token) == (start, end)
                    ),
                    offsets=((0, 0),) * num_before + tuple(offsets[start:end]) + ((0, 0),) * num_after,
                )
            )
        return examples

    def build_head(self, hidden_size: int) -> nn.Module:
        """Return the head that the recipe names."""
        return JointSpanHead(hidden_size) if self.recipe.answer_head == "joint" else SpanHead(hidden_size)

    def loss(self, head: Any, batch: EncodedBatch) -> Tensor:
        """Return the loss of first and last answer token over [CLS] and the passage."""
        answer_mask = _make_passage_mask(batch)
        answer_mask[:, 0] = True
        loss: Tensor = head.loss(batch.hidden, answer_mask, batch.stack_targets())
        return loss

    def predict(self, head: Any, batch: EncodedBatch) -> list[Any]:
        """Return the best spans of each window: start character, end character (exclusive) and score."""
        passage_mask = _make_passage_mask(batch)
        start_mask = torch.zeros_like(passage_mask)
        for row, example in enumerate(batch.examples):
            start_mask[row, list(example.positions)] = True
        answers = head.find_answers(batch.hidden, start_mask, passage_mask, _MAX_ANSWER_TOKENS, _N_BEST)
        return [
            [(example.offsets[start][0], example.offsets[end][1], score) for start, end, score in spans]
            for example, spans in zip(batch.examples, answers, strict=True)
        ]

    def merge_predictions(
        self, records: Sequence[Record], examples: Sequence[Example], predictions: Sequence[Any]
    ) -> list[Any]:
        """Return the best answer of each passage, or the five best of each question."""
        questions = _select_questions(records)
        spans_by_passage: list[list[tuple[int, int, float]]] = [[] for _ in questions]
        for example, spans in zip(examples, predictions, strict=True):
            spans_by_passage[example.record_index] += spans
        answers_by_passage = [
            rank_passage_answers(question.context, spans)
            for question, spans in zip(questions, spans_by_passage, strict=True)
        ]
        if not self.is_per_question:
            return [answers[0][0] if answers else "" for answers in answers_by_passage]
        predicted = []
        for members in group_by_question(questions).values():
            candidates = (answer for passage in members for answer in answers_by_passage[passage])
            predicted.append([text for text, _ in pool_answers(candidates)])
        return predicted

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Return the marked answers of each passage, or the accepted answers of each question."""
        questions = _select_questions(records)
        if not self.is_per_question:
            return [[answer.text for answer in question.answers] for question in questions]
        return [questions[members[0]].accepted_answers for members in group_by_question(questions).values()]

    def predict_majority(self, train_gold: Sequence[Any], test_gold: Sequence[Any]) -> list[Any]:
        """Return no answer for every passage, or no answers for every question."""
        return [[] if self.is_per_question else "" for _ in test_gold]


def group_by_question(questions: Sequence[Question]) -> dict[str, list[int]]:
    """Return the indices of the passages of each question."""
    groups: dict[str, list[int]] = {}
    for index, question in enumerate(questions):
        groups.setdefault(question.group_id, []).append(index)
    return groups


def rank_passage_answers(context: str, spans: Sequence[tuple[int, int, float]]) -> list[tuple[str, float]]:
    """Return the best answers of a passage, each text once, with softmax probabilities.

    Texts are stripped: a SentencePiece token includes the blank before its word.
    """
    best_scores: dict[str, float] = {}
    for start, end, score in sorted(spans, key=lambda span: -span[2]):
        if text := context[start:end].strip():
            best_scores.setdefault(text, score)
    texts = list(best_scores)[:_N_BEST]
    probabilities = (
        torch.tensor([best_scores[text] for text in texts], dtype=torch.float64).softmax(0).tolist()
    )
    return list(zip(texts, probabilities, strict=True))


def find_max_context_window(windows: Sequence[tuple[int, int]], token_index: int) -> tuple[int, int]:
    """Return the window with most context around a token (``_check_is_max_context``).

    The context is that of the shorter side; ties by longer window, then by order.
    """
    candidates = [window for window in windows if window[0] <= token_index < window[1]]
    return max(
        candidates,
        key=lambda window: (
            min(token_index - window[0], window[1] - 1 - token_index) + 0.01 * (window[1] - window[0])
        ),
    )


def _find_span_target(window: Example, start: int, end: int) -> tuple[int, int]:
    """Return first and last token of an answer if the window contains both, else (0, 0) for [CLS]."""
    answer_tokens = [
        index
        for index, (token_start, token_end) in enumerate(window.offsets)
        if token_end > start and token_start < end and token_end > token_start
    ]
    if (
        not answer_tokens
        or window.offsets[answer_tokens[0]][0] > start
        or window.offsets[answer_tokens[-1]][1] < end
    ):
        return 0, 0
    return answer_tokens[0], answer_tokens[-1]


def _make_passage_mask(batch: EncodedBatch) -> Tensor:
    """Return which tokens belong to the passage, bool[B, T]."""
    rows = [[end > 0 for _, end in example.offsets] for example in batch.examples]
    return pad_rows(rows, batch.mask.shape[1]).bool().to(batch.mask.device)


def _select_questions(records: Sequence[Record]) -> list[Question]:
    return [record for record in records if isinstance(record, Question)]
