"""Questions to passages as a problem to fine-tune on: where in the passage the answer begins and ends.

A passage that is longer than what the model can read is read through windows that overlap.  What is
predicted for a passage are its best answers with their probabilities, over all of its windows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from . import answers
from .examples import Batch, Encoded, Example
from .heads import Span, best_spans
from .recipes import Recipe
from .records import Question, Record
from .tokens import Offsets, Tokens

_QUESTION: Final = 64
"""Pieces of a question, at most (google-research/bert and electra, max_query_length)."""
_BEST: Final = 20
"""Answers of a window and of a passage (n_best_size there)."""
_LONGEST: Final = 30
"""Pieces of an answer, at most (max_answer_length there)."""


@dataclass(frozen=True, slots=True)
class Answering:
    """A problem (examples.py).

    Attributes:
        by_question: predict for a question, over all of its passages, a list of five (BioASQ); else for
            each passage its best answer (SQuAD).
    """

    tokens: Tokens
    recipe: Recipe
    by_question: bool

    def examples(self, records: Sequence[Record], learn: bool) -> list[Example]:
        """The windows of all passages; to learn from, only those with an answer in them."""
        questions = _questions(records)
        asked = self.tokens.texts([one.question for one in questions])
        passages = self.tokens.texts([one.context for one in questions])
        found = []
        for at, one in enumerate(questions):
            windows = self._windows(at, asked[at][0][:_QUESTION], *passages[at])
            if not learn:
                found += windows
                continue
            for answer in one.answers[:1]:
                for window in windows:
                    target = _target(window, answer.start, answer.start + len(answer.text))
                    if target:
                        found.append(_with(window, target))
        return found

    def _windows(self, record: int, asked: list[int], pieces: list[int], offsets: Offsets) -> list[Example]:
        room = min(self.recipe.length, self.tokens.longest) - self.tokens.around(pair=True)
        asked = asked[: max(1, room // 2)]
        room -= len(asked)
        found, begin = [], 0
        while True:
            read = self.tokens.join(asked, pieces[begin : begin + room])
            here = [(0, 0)] * read.second + [(start, end) for start, end in offsets[begin : begin + room]]
            here += [(0, 0)] * (len(read.ids) - len(here))
            found.append(Example(record, read.ids, read.types, offsets=tuple(here)))
            if begin + room >= len(pieces):
                return found
            begin += min(self.recipe.stride, room)

    def head(self, hidden: int) -> nn.Module:
        """Two numbers a piece."""
        return Span(hidden)

    def loss(self, head: Any, encoded: Encoded, batch: Batch) -> Tensor:
        """Of the answers' first and last pieces, of all pieces of the passage."""
        gold = torch.tensor([one.target for one in batch.examples], device=batch.ids.device)
        found: Tensor = head.loss(encoded.hidden, _allowed(batch), gold)
        return found

    def predict(self, head: Any, encoded: Encoded, batch: Batch) -> list[Any]:
        """The best spans of each window: first character, one past the last, and the sum of both
        numbers."""
        allowed = _allowed(batch)
        scores = head(encoded.hidden, allowed).cpu()
        found = []
        for one, logits, places in zip(batch.examples, scores, allowed.cpu(), strict=True):
            best = best_spans(logits[:, 0], logits[:, 1], places, _LONGEST, _BEST)
            found.append([(one.offsets[start][0], one.offsets[end][1], score) for start, end, score in best])
        return found

    def assemble(
        self, records: Sequence[Record], examples: Sequence[Example], found: Sequence[Any]
    ) -> list[Any]:
        """Of each passage the best answer, or of each question the best five of all its passages."""
        questions = _questions(records)
        pooled: list[list[tuple[int, int, float]]] = [[] for _ in questions]
        for example, spans in zip(examples, found, strict=True):
            pooled[example.record] += spans
        best = [passage_answers(one.context, spans) for one, spans in zip(questions, pooled, strict=True)]
        if not self.by_question:
            return [one[0][0] if one else "" for one in best]
        return [
            [text for text, _ in answers.merged(answer for at in members for answer in best[at])]
            for members in by_group(questions).values()
        ]

    def gold(self, records: Sequence[Record]) -> list[Any]:
        """Of each passage the answers that are marked in it, or of each question what is accepted."""
        questions = _questions(records)
        if not self.by_question:
            return [[answer.text for answer in one.answers] for one in questions]
        return [questions[members[0]].accepted for members in by_group(questions).values()]


def by_group(questions: Sequence[Question]) -> dict[str, list[int]]:
    """The numbers of the passages of each question."""
    found: dict[str, list[int]] = {}
    for at, one in enumerate(questions):
        found.setdefault(one.group, []).append(at)
    return found


def passage_answers(context: str, spans: Sequence[tuple[int, int, float]]) -> list[tuple[str, float]]:
    """The best answers of a passage, each text once, with probabilities: a softmax over all of them."""
    best: dict[str, float] = {}
    for start, end, score in sorted(spans, key=lambda one: -one[2]):
        best.setdefault(context[start:end], score)
    texts = list(best)[:_BEST]
    shares = torch.tensor([best[text] for text in texts], dtype=torch.float64).softmax(0).tolist()
    return list(zip(texts, shares, strict=True))


def _target(window: Example, start: int, end: int) -> tuple[int, int] | None:
    """The first and the last piece of an answer, if both are in the window."""
    if start < 0:
        return None
    inside = [
        at for at, (low, high) in enumerate(window.offsets) if high > start and low < end and high > low
    ]
    if not inside or window.offsets[inside[0]][0] > start or window.offsets[inside[-1]][1] < end:
        return None
    return inside[0], inside[-1]


def _allowed(batch: Batch) -> Tensor:
    """Which pieces are of the passage, bool[B, T]."""
    found = torch.zeros(batch.mask.shape, dtype=torch.bool)
    for row, one in enumerate(batch.examples):
        found[row, : len(one.offsets)] = torch.tensor([end > 0 for _, end in one.offsets])
    return found.to(batch.mask.device)


def _with(window: Example, target: tuple[int, int]) -> Example:
    return Example(window.record, window.ids, window.types, target=target, offsets=window.offsets)


def _questions(records: Sequence[Record]) -> list[Question]:
    return [one for one in records if isinstance(one, Question)]
