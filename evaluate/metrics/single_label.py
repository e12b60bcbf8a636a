"""Metrics of texts and pairs with one class; gold and predicted are class names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.metrics import class_counts
from bioshards.evaluate.metrics.metric import Metric, Numbers, align, ratio


def micro_f1(labels: Sequence[str], negative: str | None) -> Metric:
    """Return precision, recall and F1 over all classes but the negative one, and ``macro F1``.

    BLURB's metric for ChemProt and DDI (arXiv:2007.15779). BLUE reports the macro F1 of DDI since August
    2019. Without a negative class (SciBERT's ChemProt), micro F1 equals accuracy.

    Raises:
        InvalidValueError: the negative class is not one of the labels.
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
    """Return precision, recall and F1 of one class.

    GAD: BLURB's "micro F1" is this score in every public implementation (michiyasunaga/LinkBERT,
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
    """Return accuracy and macro F1; PubMedQA's authors report both (arXiv:1909.06146)."""

    def compute_stats(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return class_counts.count_single_labels(labels, _align_known_labels(labels, gold, predicted))

    def scores_from_totals(totals: Numbers) -> Mapping[str, Numbers]:
        return {
            "accuracy": _accuracy_from_totals(totals),
            "macro F1": class_counts.macro_average(totals)["F1"],
        }

    return Metric("accuracy", "accuracy", class_counts.stat_names(labels), compute_stats, scores_from_totals)


def yes_no_f1() -> Metric:
    """Return precision, recall and F1 of ``yes`` and of ``no``, macro F1 and accuracy.

    Bio-ELECTRA reports both answers (``YesnoF1Scorer`` in finetune/classification/classification_metrics.py).
    BioASQ ranks by macro F1 (``macroF1ExactAnswersYesNo`` in EvaluatorTask1b.java of
    BioASQ/Evaluation-Measures, which swaps false positives and false negatives; F1 is the same).
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
