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
        """The windows of all passages; to learn from, those of passages in which an answer is marked."""
        questions = _questions(records)
        asked = self.tokens.texts([one.question for one in questions])
        passages = self.tokens.texts([one.context for one in questions])
        found = []
        for at, one in enumerate(questions):
            windows = self._windows(at, asked[at][0][:_QUESTION], *passages[at])
            if not learn:
                found += windows
            elif one.answers and one.answers[0].start >= 0:
                start, end = one.answers[0].start, one.answers[0].start + len(one.answers[0].text)
                found += [replace(window, target=_target(window, start, end)) for window in windows]
        return found

    def _windows(self, record: int, asked: list[int], pieces: list[int], offsets: Offsets) -> list[Example]:
        room = min(self.recipe.length, self.tokens.longest) - self.tokens.around(pair=True)
        asked = asked[: max(1, room // 2)]
        room -= len(asked)
        step = min(self.recipe.stride, room)
        begins = [0, *range(step, step + max(0, len(pieces) - room), step)]
        ranges = [(begin, min(begin + room, len(pieces))) for begin in begins]
        found = []
        for begin, end in ranges:
            read = self.tokens.join(asked, pieces[begin:end])
            here = [(0, 0)] * read.second + list(offsets[begin:end])
            here += [(0, 0)] * (len(read.ids) - len(here))
            starts = (at for at in range(begin, end) if widest(ranges, at) == (begin, end))
            places = tuple(read.second + at - begin for at in starts)
            found.append(Example(record, read.ids, read.types, places, offsets=tuple(here)))
        return found

    def head(self, hidden: int) -> nn.Module:
        """Two numbers a piece."""
        return Span(hidden)

    def loss(self, head: Any, encoded: Encoded, batch: Batch) -> Tensor:
        """Of the answers' first and last pieces, of [CLS] and all pieces of the passage."""
        gold = torch.tensor([one.target for one in batch.examples], device=batch.ids.device)
        allowed = _allowed(batch)
        allowed[:, 0] = True
        found: Tensor = head.loss(encoded.hidden, allowed, gold)
        return found

    def predict(self, head: Any, encoded: Encoded, batch: Batch) -> list[Any]:
        """The best spans of each window: first character, one past the last, and the sum of both
        numbers."""
        allowed = _allowed(batch)
        scores = head(encoded.hidden, allowed).cpu()
        found = []
        for one, logits, passage in zip(batch.examples, scores, allowed.cpu(), strict=True):
            start = torch.full_like(logits[:, 0], -torch.inf)
            start[list(one.places)] = logits[list(one.places), 0]
            best = best_spans(start, logits[:, 1], passage, _LONGEST, _BEST)
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
    """The best answers of a passage, each text once, with probabilities: a softmax over all of them.

    To SentencePiece a blank is of the word after it, but of no answer.
    """
    best: dict[str, float] = {}
    for start, end, score in sorted(spans, key=lambda one: -one[2]):
        if text := context[start:end].strip():
            best.setdefault(text, score)
    texts = list(best)[:_BEST]
    shares = torch.tensor([best[text] for text in texts], dtype=torch.float64).softmax(0).tolist()
    return list(zip(texts, shares, strict=True))


def widest(ranges: Sequence[tuple[int, int]], piece: int) -> tuple[int, int]:
    """The window, of those that have a piece, with most context on the side where it has less; of equals
    the longest, then the first (``_check_is_max_context``)."""
    around = [one for one in ranges if one[0] <= piece < one[1]]
    return max(around, key=lambda one: min(piece - one[0], one[1] - 1 - piece) + 0.01 * (one[1] - one[0]))


def _target(window: Example, start: int, end: int) -> tuple[int, int]:
    """The first and the last piece of an answer, if both are in the window; else those of [CLS]."""
    inside = [
        at for at, (low, high) in enumerate(window.offsets) if high > start and low < end and high > low
    ]
    if not inside or window.offsets[inside[0]][0] > start or window.offsets[inside[-1]][1] < end:
        return 0, 0
    return inside[0], inside[-1]


def _allowed(batch: Batch) -> Tensor:
    """Which pieces are of the passage, bool[B, T]."""
    found = torch.zeros(batch.mask.shape, dtype=torch.bool)
    for row, one in enumerate(batch.examples):
        found[row, : len(one.offsets)] = torch.tensor([end > 0 for _, end in one.offsets])
    return found.to(batch.mask.device)


def _questions(records: Sequence[Record]) -> list[Question]:
    return [one for one in records if isinstance(one, Question)]
