"""Questions to passages as a problem to fine-tune on: where in the passage the answer begins and ends.

A passage that is longer than what the model can read is read through windows that overlap, as in
google-research/bert's run_squad.py and electra's qa_tasks.py: from a window without the answer is learned
that there is none (it begins and ends at [CLS]), and an answer is taken from the window that has most
context on both sides of its first piece.  What is predicted for a passage are its best answers with their
probabilities, over all of its windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor, nn

from bioshards.evaluate.benchmarks.record_types import Question, Record
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.modeling.batches import EncoderOutput, PaddedBatch, TokenizedExample
from bioshards.evaluate.modeling.heads import SpanHead, find_best_spans
from bioshards.evaluate.modeling.tokenization import ModelTokenizer, Offsets

from . import answer_pooling

_MAX_QUESTION_TOKENS: Final = 64
"""Pieces of a question, at most (google-research/bert and electra, max_query_length)."""
_N_BEST: Final = 20
"""Answers of a window and of a passage (n_best_size there)."""
_MAX_ANSWER_TOKENS: Final = 30
"""Pieces of an answer, at most (max_answer_length there)."""


@dataclass(frozen=True, slots=True)
class QuestionAnswering:
    """A problem (batches.py).

    Attributes:
        by_question: predict for a question, over all of its passages, a list of five (BioASQ); else for
            each passage its best answer (SQuAD).
    """

    tokenizer: ModelTokenizer
    recipe: FineTuneRecipe
    is_per_question: bool

    def make_examples(self, records: Sequence[Record], is_training: bool) -> list[TokenizedExample]:
        """The windows of all passages; to learn from, those of passages in which an answer is marked."""
        questions = _select_questions(records)
        encoded_questions = self.tokenizer.encode_texts([question.question for question in questions])
        encoded_passages = self.tokenizer.encode_texts([question.context for question in questions])
        examples = []
        for index, question in enumerate(questions):
            windows = self._make_windows(
                index, encoded_questions[index][0][:_MAX_QUESTION_TOKENS], *encoded_passages[index]
            )
            if not is_training:
                examples += windows
            elif question.answers and question.answers[0].start >= 0:
                start, end = (
                    question.answers[0].start,
                    question.answers[0].start + len(question.answers[0].text),
                )
                examples += [
                    replace(window, target=_find_span_target(window, start, end)) for window in windows
                ]
        return examples

    def _make_windows(
        self, record_index: int, question_ids: list[int], passage_ids: list[int], offsets: Offsets
    ) -> list[TokenizedExample]:
        max_passage_tokens = min(
            self.recipe.max_seq_length, self.tokenizer.max_length
        ) - self.tokenizer.count_special_tokens(is_pair=True)
        question_ids = question_ids[: max(1, max_passage_tokens // 2)]
        max_passage_tokens -= len(question_ids)
        stride = min(self.recipe.stride, max_passage_tokens)
        window_starts = [0, *range(stride, stride + max(0, len(passage_ids) - max_passage_tokens), stride)]
        windows = [(start, min(start + max_passage_tokens, len(passage_ids))) for start in window_starts]
        examples = []
        for start, end in windows:
            tokenized_input = self.tokenizer.build_input(question_ids, passage_ids[start:end])
            input_offsets = [(0, 0)] * tokenized_input.second_start + list(offsets[start:end])
            input_offsets += [(0, 0)] * (len(tokenized_input.input_ids) - len(input_offsets))
            owned_tokens = (
                token_index
                for token_index in range(start, end)
                if find_max_context_window(windows, token_index) == (start, end)
            )
            positions = tuple(
                tokenized_input.second_start + token_index - start for token_index in owned_tokens
            )
            examples.append(
                TokenizedExample(
                    record_index,
                    tokenized_input.input_ids,
                    tokenized_input.token_type_ids,
                    positions,
                    offsets=tuple(input_offsets),
                )
            )
        return examples

    def build_head(self, hidden_size: int) -> nn.Module:
        """Two numbers a piece."""
        return SpanHead(hidden_size)

    def loss(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> Tensor:
        """Of the answers' first and last pieces, of [CLS] and all pieces of the passage."""
        targets = torch.tensor([example.target for example in batch.examples], device=batch.input_ids.device)
        answer_mask = _make_passage_mask(batch)
        answer_mask[:, 0] = True
        loss: Tensor = task_head.loss(encoded.hidden, answer_mask, targets)
        return loss

    def predict(self, task_head: Any, encoded: EncoderOutput, batch: PaddedBatch) -> list[Any]:
        """The best spans of each window: first character, one past the last, and the sum of both
        numbers."""
        answer_mask = _make_passage_mask(batch)
        batch_logits = task_head(encoded.hidden, answer_mask).cpu()
        predictions = []
        for example, logits, passage_mask in zip(
            batch.examples, batch_logits, answer_mask.cpu(), strict=True
        ):
            start_logits = torch.full_like(logits[:, 0], -torch.inf)
            start_logits[list(example.positions)] = logits[list(example.positions), 0]
            spans = find_best_spans(start_logits, logits[:, 1], passage_mask, _MAX_ANSWER_TOKENS, _N_BEST)
            predictions.append(
                [(example.offsets[start][0], example.offsets[end][1], score) for start, end, score in spans]
            )
        return predictions

    def merge_predictions(
        self,
        records: Sequence[Record],
        tokenized_examples: Sequence[TokenizedExample],
        predictions: Sequence[Any],
    ) -> list[Any]:
        """Of each passage the best answer, or of each question the best five of all its passages."""
        questions = _select_questions(records)
        spans_by_passage: list[list[tuple[int, int, float]]] = [[] for _ in questions]
        for example, spans in zip(tokenized_examples, predictions, strict=True):
            spans_by_passage[example.record_index] += spans
        answers_by_passage = [
            rank_passage_answers(question.context, spans)
            for question, spans in zip(questions, spans_by_passage, strict=True)
        ]
        if not self.is_per_question:
            return [answers[0][0] if answers else "" for answers in answers_by_passage]
        return [
            [
                text
                for text, _ in answer_pooling.pool_answers(
                    answer for passage_index in members for answer in answers_by_passage[passage_index]
                )
            ]
            for members in group_by_question(questions).values()
        ]

    def gold_labels(self, records: Sequence[Record]) -> list[Any]:
        """Of each passage the answers that are marked in it, or of each question what is accepted."""
        questions = _select_questions(records)
        if not self.is_per_question:
            return [[answer.text for answer in question.answers] for question in questions]
        return [questions[members[0]].accepted_answers for members in group_by_question(questions).values()]


def group_by_question(questions: Sequence[Question]) -> dict[str, list[int]]:
    """The numbers of the passages of each question."""
    groups: dict[str, list[int]] = {}
    for index, question in enumerate(questions):
        groups.setdefault(question.group_id, []).append(index)
    return groups


def rank_passage_answers(context: str, spans: Sequence[tuple[int, int, float]]) -> list[tuple[str, float]]:
    """The best answers of a passage, each text once, with probabilities: a softmax over all of them.

    To SentencePiece a blank is of the word after it, but of no answer.
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
    """The window, of those that have a piece, with most context on the side where it has less; of equals
    the longest, then the first (``_check_is_max_context``)."""
    candidates = [window for window in windows if window[0] <= token_index < window[1]]
    return max(
        candidates,
        key=lambda window: (
            min(token_index - window[0], window[1] - 1 - token_index) + 0.01 * (window[1] - window[0])
        ),
    )


def _find_span_target(window: TokenizedExample, start: int, end: int) -> tuple[int, int]:
    """The first and the last piece of an answer, if both are in the window; else those of [CLS]."""
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


def _make_passage_mask(batch: PaddedBatch) -> Tensor:
    """Which pieces are of the passage, bool[B, T]."""
    mask = torch.zeros(batch.mask.shape, dtype=torch.bool)
    for row, example in enumerate(batch.examples):
        mask[row, : len(example.offsets)] = torch.tensor([end > 0 for _, end in example.offsets])
    return mask.to(batch.mask.device)


def _select_questions(records: Sequence[Record]) -> list[Question]:
    return [record for record in records if isinstance(record, Question)]
