"""F1 of texts with any number of labels (HoC); gold and predicted are sets of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics.metric import (
    Metric,
    Numbers,
    align,
    make_stats_array,
    precision_recall_f1,
    ratio,
)


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
            **precision_recall_f1(totals[..., 0], totals[..., 1], totals[..., 2]),
            "example precision": precision,
            "example recall": recall,
            "example F1": ratio(2 * precision * recall, precision + recall),
        }

    return Metric("micro F1 by abstract", "F1", stat_names, compute_stats, scores_from_totals)


def _count_example(gold: frozenset[str], predicted: frozenset[str]) -> tuple[float, ...]:
    correct = len(gold & predicted)
    label_counts = (correct, len(predicted), len(gold))
    if not gold:
        return (*label_counts, 0, 0, 0)
    return (*label_counts, 1, correct / len(predicted) if predicted else 0, correct / len(gold))
