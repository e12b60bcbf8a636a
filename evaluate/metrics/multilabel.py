"""F1 of abstracts that have several labels or none (HoC); gold and predicted are sets of labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError

from .metric import Metric, Numbers, aligned, f1, ratio, table


def multilabel_f1(labels: Collection[str]) -> Metric:
    """Micro F1 over all labels of all abstracts; ``example F1`` is BLUE's.

    Micro F1 is of all abstracts, as BLURB's (PubMedBERT, arXiv:2007.15779).  BLUE's is example-based: the
    harmonic mean of the mean precision and the mean recall of an abstract (ncbi-nlp/BLUE_Benchmark,
    blue/eval_hoc.py; scikit-learn's ``f1_score(average="samples")`` is something else, the mean F1).
    BLUE divides by the number of gold labels, and its test set has no abstract without: here those are
    left out of the three example-based figures.  Where nothing is predicted, precision is 0.
    """
    known = frozenset(labels)
    statistics = ("correct", "predicted", "gold", "with labels", "precisions", "recalls")

    def units(gold: Sequence[frozenset[str]], predicted: Sequence[frozenset[str]]) -> Numbers:
        pairs = aligned(gold, predicted)
        unknown = sorted(frozenset().union(*gold, *predicted) - known)
        if unknown:
            raise InvalidValueError(f"{unknown[0]!r} is none of the labels {', '.join(labels)}")
        return table((_example(*pair) for pair in pairs), statistics)

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        precision = ratio(sums[..., 4], sums[..., 3])
        recall = ratio(sums[..., 5], sums[..., 3])
        return {
            **f1(sums[..., 0], sums[..., 1], sums[..., 2]),
            "example precision": precision,
            "example recall": recall,
            "example F1": ratio(2 * precision * recall, precision + recall),
        }

    return Metric("micro F1 by abstract", "F1", statistics, units, figures)


def _example(gold: frozenset[str], predicted: frozenset[str]) -> tuple[float, ...]:
    correct = len(gold & predicted)
    whole = (correct, len(predicted), len(gold))
    if not gold:
        return (*whole, 0, 0, 0)
    return (*whole, 1, correct / len(predicted) if predicted else 0, correct / len(gold))
