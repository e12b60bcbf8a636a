"""Measures of answers in words: SQuAD's for a question and passage, BioASQ's for a factoid question."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from .metric import Metric, Numbers, aligned, ratio, table

FACTOID_ANSWERS: Final = 5
"""How many answers BioASQ takes to a factoid question (since its third challenge)."""

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def squad() -> Metric:
    """Exact match and F1 of SQuAD v1.1 (its evaluate-v1.1.py), a mean over questions with a passage.

    Gold are the texts that annotators marked, of which the best match counts; predicted is one text.  An
    unanswered question has the text "".  Where annotators marked none, nothing is right.
    """
    statistics = ("exact match", "F1", "questions")

    def units(gold: Sequence[Collection[str]], predicted: Sequence[str]) -> Numbers:
        return table((_matches(*pair) for pair in aligned(gold, predicted)), statistics)

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        return {"exact match": ratio(sums[..., 0], sums[..., 2]), "F1": ratio(sums[..., 1], sums[..., 2])}

    return Metric("SQuAD v1.1", "F1", statistics, units, figures)


def normalised(text: str) -> str:
    """A text in lower case without ASCII punctuation, articles and superfluous blanks (SQuAD v1.1)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def _matches(gold: Collection[str], predicted: str) -> tuple[float, float, int]:
    guess = normalised(predicted)
    answers = [normalised(answer) for answer in gold]
    return float(guess in answers), max((_overlap(answer, guess) for answer in answers), default=0), 1


def _overlap(gold: str, predicted: str) -> float:
    """F1 of the words of two texts; 0 where they share none, and so of two empty ones too."""
    right, guessed = Counter(gold.split()), Counter(predicted.split())
    common = (right & guessed).total()
    return 2 * common / (right.total() + guessed.total()) if common else 0


def bioasq_factoid() -> Metric:
    """Strict and lenient accuracy and mean reciprocal rank of BioASQ's factoid questions.

    Gold are the accepted spellings of a question's answer, predicted its answers, the best first, of
    which five count.  As in BioASQ/Evaluation-Measures (QuestionAnswerEvaluator.java, Task1bData.java):
    both are lower-cased and have to be equal, nothing else is normalised; strict is the first answer,
    lenient any.
    """
    statistics = ("strict", "lenient", "reciprocal rank", "questions")

    def units(gold: Sequence[Collection[str]], predicted: Sequence[Sequence[str]]) -> Numbers:
        return table((_factoid(*pair) for pair in aligned(gold, predicted)), statistics)

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        return {
            name: ratio(sums[..., place], sums[..., 3]) for place, name in enumerate(("SACC", "LACC", "MRR"))
        }

    return Metric("BioASQ factoid", "MRR", statistics, units, figures)


def _factoid(accepted: Collection[str], answers: Sequence[str]) -> tuple[float, ...]:
    right = {spelling.lower() for spelling in accepted}
    hits = (rank for rank, answer in enumerate(answers[:FACTOID_ANSWERS], 1) if answer.lower() in right)
    rank = next(hits, None)
    return (float(rank == 1), float(rank is not None), 1 / rank if rank else 0.0, 1)
