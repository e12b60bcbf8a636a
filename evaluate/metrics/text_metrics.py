"""Metrics of texts and pairs of texts: a class, labels, a number (Pearson's r), a rank (MRR), or an answer.

Answers are scored as in SQuAD (of a passage) and BioASQ (of a factoid question).
"""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Final

import numpy

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import (
    Metric,
    Numbers,
    align,
    class_metric,
    macro_average,
    make_stats_array,
    mean_scores,
    micro_average,
    precision_recall_f1,
    ratio,
    scores_by_class,
)

FACTOID_ANSWERS: Final = 5
"""Answers to a factoid question that BioASQ counts (since its third challenge)."""
_ARTICLES: Final = re.compile(r"\b(a|an|the)\b")
_WITHOUT_PUNCTUATION: Final = str.maketrans("", "", string.punctuation)
_MIN_RELATIVE_VARIANCE: Final = 1e-12
"""Variances below this fraction of the mean square are rounding errors of a constant."""


def micro_f1(labels: Sequence[str], negative: str | None) -> Metric:
    """Return precision, recall and F1 over all classes but the negative one, and ``macro F1``.

    BLURB's metric for ChemProt and DDI (arXiv:2007.15779). BLUE reports the macro F1 of DDI since August
    2019. Without a negative class (SciBERT's ChemProt), micro F1 equals accuracy.

    Raises:
        InvalidValueError: the negative class is not one of the labels.
    """
    if negative is not None and negative not in labels:
        raise InvalidValueError(f"the negative class {negative!r} is none of {', '.join(labels)}")
    suffix = f" without {negative}" if negative is not None else ""
    classes = [label for label in labels if label != negative]

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return micro_average(totals) | {"macro F1": macro_average(totals)["F1"]}

    return class_metric(
        f"micro F1{suffix}", "F1", classes, partial(_align_classes, labels), scores_from_totals
    )


def positive_f1(positive: str) -> Metric:
    """Return precision, recall and F1 of one class.

    GAD: BLURB's "micro F1" is this score in every public implementation (michiyasunaga/LinkBERT,
    dmis-lab/biobert biocodes/re_eval.py, SciCrunch/bio_electra).
    """
    return class_metric(f"F1 of {positive}", "F1", [positive], partial(_align_classes, None), micro_average)


def accuracy(labels: Sequence[str]) -> Metric:
    """Return accuracy and macro F1; PubMedQA's authors report both (arXiv:1909.06146)."""

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {"accuracy": micro_average(totals)["recall"], "macro F1": macro_average(totals)["F1"]}

    return class_metric("accuracy", "accuracy", labels, partial(_align_classes, labels), scores_from_totals)


def yes_no_f1() -> Metric:
    """Return precision, recall and F1 of ``yes`` and of ``no``, macro F1 and accuracy.

    Bio-ELECTRA reports both answers (``YesnoF1Scorer`` in finetune/classification/classification_metrics.py).
    BioASQ ranks by macro F1 (``macroF1ExactAnswersYesNo`` in EvaluatorTask1b.java of
    BioASQ/Evaluation-Measures, which swaps false positives and false negatives; F1 is the same).
    """
    answers = ("yes", "no")

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        class_scores = scores_by_class(totals)
        return {
            **{
                f"{answer} {name}": values[..., index]
                for index, answer in enumerate(answers)
                for name, values in class_scores.items()
            },
            "macro F1": class_scores["F1"].mean(axis=-1),
            "accuracy": micro_average(totals)["recall"],
        }

    return class_metric(
        "F1 of yes and of no", "macro F1", answers, partial(_align_classes, answers), scores_from_totals
    )


def _align_classes(
    labels: Sequence[str] | None, gold: Sequence[str], predicted: Sequence[str]
) -> list[tuple[tuple[str], tuple[str]]]:
    """Pair gold with predicted classes, all of which are ``labels`` unless it is None."""
    if labels is not None and (unknown := sorted({*gold, *predicted}.difference(labels))):
        raise InvalidValueError(f"{unknown[0]!r} is none of the classes {', '.join(labels)}")
    return [((gold_label,), (guess,)) for gold_label, guess in align(gold, predicted)]


def multilabel_f1(labels: Collection[str]) -> Metric:
    """Return micro F1 over all labels (``F1``) and BLUE's example-based F1 (``example F1``).

    Micro F1 covers all abstracts, as in BLURB (arXiv:2007.15779). BLUE's F1 is the harmonic mean of mean
    precision and mean recall of an abstract (ncbi-nlp/BLUE_Benchmark, blue/eval_hoc.py), which differs from
    scikit-learn's ``f1_score(average="samples")``. BLUE's test set has a label for each abstract; abstracts
    without gold labels are left out of the example-based scores. Precision is 0 without predictions.
    """
    known_labels = frozenset(labels)
    stat_names = ("correct", "predicted", "gold", "with labels", "precisions", "recalls")

    def compute_stats(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> Numbers:
        pairs = align(gold, predicted)
        unknown = sorted(frozenset().union(*gold, *predicted) - known_labels)
        if unknown:
            raise InvalidValueError(f"{unknown[0]!r} is none of the labels {', '.join(labels)}")
        return make_stats_array((_count_example(*pair) for pair in pairs), stat_names)

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        precision = ratio(totals[..., 4], totals[..., 3])
        recall = ratio(totals[..., 5], totals[..., 3])
        return {
            **precision_recall_f1(totals[..., :3]),
            "example precision": precision,
            "example recall": recall,
            "example F1": ratio(2 * precision * recall, precision + recall),
        }

    return Metric("micro F1 by abstract", "F1", stat_names, compute_stats, scores_from_totals)


def _count_example(gold: frozenset[str], predicted: frozenset[str]) -> tuple[float, ...]:
    correct = len(gold & predicted)
    shares = (correct / max(1, len(predicted)), correct / max(1, len(gold)))
    return (correct, len(predicted), len(gold), bool(gold), *shares)


def pearson() -> Metric:
    """Return Pearson's r, from -1 to 1; 0 if either side is constant."""
    stat_names = ("n", "x", "y", "xx", "yy", "xy")

    def compute_stats(gold: Sequence[float], predicted: Sequence[float]) -> Numbers:
        pairs = align(gold, predicted)
        if not all(math.isfinite(value) for pair in pairs for value in pair):
            raise InvalidValueError("a score is not a finite number: has the training diverged?")
        return make_stats_array(((1, x, y, x * x, y * y, x * y) for x, y in pairs), stat_names)

    return Metric("Pearson's r", "Pearson", stat_names, compute_stats, _pearson_from_totals)


def _pearson_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
    n, x, y, xx, yy, xy = (totals[..., index] for index in range(6))
    variances = _scaled_variance(n, x, xx) * _scaled_variance(n, y, yy)
    return {"Pearson": numpy.clip(ratio(n * xy - x * y, numpy.sqrt(variances)), -1, 1)}


def _scaled_variance(n: Numbers, total: Numbers, squares: Numbers) -> Numbers:
    """Return the variance times n squared."""
    variance = n * squares - total * total
    return numpy.where(variance > _MIN_RELATIVE_VARIANCE * n * squares, variance, 0)


def mean_reciprocal_rank() -> Metric:
    """Return the mean reciprocal rank of the first relevant candidate; 0 for questions without one.

    Gold is (question id, is relevant) of each candidate, predicted its score; a row of statistics is a
    question. SOURCE: show_reranker_performance.py of SciCrunch/bio_electra: consecutive candidates of one
    question form a group, and ties keep their order.
    """
    stat_names = ("reciprocal rank", "questions")

    def compute_stats(gold: Sequence[tuple[str, bool]], predicted: Sequence[float]) -> Numbers:
        candidates = align(gold, predicted)
        if any(math.isnan(score) for score in predicted):
            raise InvalidValueError("a score is not a number: has the training diverged?")
        questions = groupby(candidates, key=lambda candidate: candidate[0][0])
        return make_stats_array(((_reciprocal_rank(list(group)), 1) for _, group in questions), stat_names)

    return Metric("mean reciprocal rank", "MRR", stat_names, compute_stats, mean_scores(["MRR"]))


def _reciprocal_rank(candidates: list[tuple[tuple[str, bool], float]]) -> float:
    ranked = sorted(candidates, key=lambda candidate: -candidate[1])
    return next((1 / rank for rank, ((_, relevant), _) in enumerate(ranked, 1) if relevant), 0)


def squad_f1() -> Metric:
    """Return exact match and F1 of SQuAD v1.1 (evaluate-v1.1.py), averaged over questions.

    Gold is the list of marked answers, of which the best match counts; predicted is one text. An empty list
    of gold answers scores 0.
    """
    stat_names = ("exact match", "F1", "questions")

    def compute_stats(gold: Sequence[Collection[str]], predicted: Sequence[str]) -> Numbers:
        return make_stats_array((_compare_answers(*pair) for pair in align(gold, predicted)), stat_names)

    return Metric("SQuAD v1.1", "F1", stat_names, compute_stats, mean_scores(stat_names[:2]))


def normalise_answer(text: str) -> str:
    """Lower-case a text and remove ASCII punctuation, articles and extra blanks (SQuAD v1.1)."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_WITHOUT_PUNCTUATION)).split())


def _compare_answers(gold: Collection[str], predicted: str) -> tuple[float, float, int]:
    normalised_guess = normalise_answer(predicted)
    answers = [normalise_answer(answer) for answer in gold]
    best_f1 = max((_word_overlap_f1(answer, normalised_guess) for answer in answers), default=0)
    return (normalised_guess in answers, best_f1, 1)


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

    return Metric("BioASQ factoid", "MRR", stat_names, compute_stats, mean_scores(["SACC", "LACC", "MRR"]))


def _rank_answer(accepted: Collection[str], answers: Sequence[str]) -> tuple[float, ...]:
    accepted_lower = {spelling.lower() for spelling in accepted}
    is_right = [answer.lower() in accepted_lower for answer in answers[:FACTOID_ANSWERS]]
    rank = is_right.index(True) + 1 if any(is_right) else 0
    return (rank == 1, rank > 0, 1 / rank if rank else 0, 1)
