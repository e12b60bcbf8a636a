"""Measures of texts and pairs that have one class each; gold and predicted are the names of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError

from . import class_counts
from .metric import Metric, Numbers, align, ratio


def micro_f1(labels: Sequence[str], negative: str | None) -> Metric:
    """Precision, recall and F1 over all classes but the negative one, and their mean F1 (``macro F1``).

    ChemProt and DDI in BLURB (PubMedBERT, arXiv:2007.15779).  BLUE reports the macro F1 of DDI since
    August 2019.  Where no class is negative (SciBERT's ChemProt), micro F1 is accuracy.
    """
    if negative is not None and negative not in labels:
        raise InvalidValueError(f"the negative class {negative!r} is none of {', '.join(labels)}")
    classes = [label for label in labels if label != negative]

    def compute_stats(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return class_counts.count_single_labels(classes, _align_known_labels(labels, gold, predicted))

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {**class_counts.micro_average(totals), "macro F1": class_counts.macro_average(totals)["F1"]}

    name_suffix = f" without {negative}" if negative is not None else ""
    return Metric(
        f"micro F1{name_suffix}", "F1", class_counts.stat_names(classes), compute_stats, scores_from_totals
    )


def positive_f1(positive: str) -> Metric:
    """Precision, recall and F1 of one class.

    GAD: what BLURB calls micro F1 is this in every public implementation (michiyasunaga/LinkBERT,
    dmis-lab/biobert biocodes/re_eval.py, SciCrunch/bio_electra).
    """

    def compute_stats(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return class_counts.count_single_labels([positive], align(gold, predicted))

    return Metric(
        f"F1 of {positive}",
        "F1",
        class_counts.stat_names([positive]),
        compute_stats,
        class_counts.micro_average,
    )


def accuracy(labels: Sequence[str]) -> Metric:
    """The share of right answers, and macro F1, which PubMedQA's authors report too (arXiv:1909.06146)."""

    def compute_stats(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return class_counts.count_single_labels(labels, _align_known_labels(labels, gold, predicted))

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {
            "accuracy": _accuracy_from_totals(totals),
            "macro F1": class_counts.macro_average(totals)["F1"],
        }

    return Metric("accuracy", "accuracy", class_counts.stat_names(labels), compute_stats, scores_from_totals)


def yes_no_f1() -> Metric:
    """Precision, recall and F1 of ``yes`` and of ``no``, their macro F1, and accuracy.

    Bio-ELECTRA reports each answer for itself (``YesnoF1Scorer`` of its finetune/classification/
    classification_metrics.py).  BioASQ ranks by macro F1 (``macroF1ExactAnswersYesNo`` of
    BioASQ/Evaluation-Measures, EvaluatorTask1b.java; it calls false negatives false positives and the
    reverse, which F1 does not see).
    """
    answers = ("yes", "no")

    def compute_stats(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return class_counts.count_single_labels(answers, _align_known_labels(answers, gold, predicted))

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        class_scores = class_counts.scores_by_class(totals)
        return {
            **{
                f"{answer} {name}": values[..., index]
                for index, answer in enumerate(answers)
                for name, values in class_scores.items()
            },
            "macro F1": class_scores["F1"].mean(axis=-1),
            "accuracy": _accuracy_from_totals(totals),
        }

    return Metric(
        "F1 of yes and of no", "macro F1", class_counts.stat_names(answers), compute_stats, scores_from_totals
    )


def _accuracy_from_totals(totals: Numbers) -> Numbers:
    return ratio(totals[..., 0::3].sum(axis=-1), totals[..., 2::3].sum(axis=-1))


def _align_known_labels(
    labels: Sequence[str], gold: Sequence[str], predicted: Sequence[str]
) -> list[tuple[str, str]]:
    unknown = sorted({*gold, *predicted}.difference(labels))
    if unknown:
        raise InvalidValueError(f"{unknown[0]!r} is none of the classes {', '.join(labels)}")
    return align(gold, predicted)
