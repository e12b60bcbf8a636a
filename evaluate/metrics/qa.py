"""Metrics of textual answers: SQuAD's for passages, BioASQ's for factoid questions."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from bioshards.evaluate.metrics.metric import Metric, Numbers, align, make_stats_array, ratio

FACTOID_ANSWERS: Final = 5
"""Answers to a factoid question that BioASQ counts (since its third challenge)."""

_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)


def squad_f1() -> Metric:
    """Return exact match and F1 of SQuAD v1.1 (evaluate-v1.1.py), averaged over questions.

    Gold is the list of marked answers, of which the best match counts; predicted is one text. An empty list
    of gold answers scores 0.
    """
    stat_names = ("exact match", "F1", "questions")

    def compute_stats(gold: Sequence[Collection[str]], predicted: Sequence[str]) -> Numbers:
        return make_stats_array((_compare_answers(*pair) for pair in align(gold, predicted)), stat_names)

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {
            "exact match": ratio(totals[..., 0], totals[..., 2]),
            "F1": ratio(totals[..., 1], totals[..., 2]),
        }

    return Metric("SQuAD v1.1", "F1", stat_names, compute_stats, scores_from_totals)


def normalise_answer(text: str) -> str:
    """Lower-case a text and remove ASCII punctuation, articles and extra blanks (SQuAD v1.1)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def _compare_answers(gold: Collection[str], predicted: str) -> tuple[float, float, int]:
    normalised_guess = normalise_answer(predicted)
    answers = [normalise_answer(answer) for answer in gold]
    return (
        float(normalised_guess in answers),
        max((_word_overlap_f1(answer, normalised_guess) for answer in answers), default=0),
        1,
    )


def _word_overlap_f1(gold: str, predicted: str) -> float:
    """Return the F1 of the words of two texts; 0 without common words, so also for two empty texts."""
    gold_words, predicted_words = Counter(gold.split()), Counter(predicted.split())
    common = (gold_words & predicted_words).total()
    return 2 * common / (gold_words.total() + predicted_words.total()) if common else 0


def bioasq_factoid() -> Metric:
    """Return strict and lenient accuracy and mean reciprocal rank of BioASQ factoid questions.

    Gold is the accepted spellings, predicted the ranked answers, of which five count. SOURCE:
    BioASQ/Evaluation-Measures (QuestionAnswerEvaluator.java, Task1bData.java): answers match if they are
    equal in lower case. Strict counts the first answer, lenient any.
    """
    stat_names = ("strict", "lenient", "reciprocal rank", "questions")

    def compute_stats(gold: Sequence[Collection[str]], predicted: Sequence[Sequence[str]]) -> Numbers:
        return make_stats_array((_rank_answer(*pair) for pair in align(gold, predicted)), stat_names)

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {
            name: ratio(totals[..., index], totals[..., 3])
            for index, name in enumerate(("SACC", "LACC", "MRR"))
        }

    return Metric("BioASQ factoid", "MRR", stat_names, compute_stats, scores_from_totals)


def _rank_answer(accepted: Collection[str], answers: Sequence[str]) -> tuple[float, ...]:
    accepted_lower = {spelling.lower() for spelling in accepted}
    ranks = (
        rank for rank, answer in enumerate(answers[:FACTOID_ANSWERS], 1) if answer.lower() in accepted_lower
    )
    rank = next(ranks, None)
    return (float(rank == 1), float(rank is not None), 1 / rank if rank else 0.0, 1)
