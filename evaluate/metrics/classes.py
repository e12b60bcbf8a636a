"""Measures of texts and pairs that have one class each; gold and predicted are the names of classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bioshards.corpus.errors import InvalidValueError

from . import counts
from .metric import Metric, Numbers, aligned, ratio


def micro_f1(labels: Sequence[str], negative: str | None) -> Metric:
    """Precision, recall and F1 over all classes but the negative one, and their mean F1 (``macro F1``).

    ChemProt and DDI in BLURB (PubMedBERT, arXiv:2007.15779).  BLUE reports the macro F1 of DDI since
    August 2019.  Where no class is negative (SciBERT's ChemProt), micro F1 is accuracy.
    """
    if negative is not None and negative not in labels:
        raise InvalidValueError(f"the negative class {negative!r} is none of {', '.join(labels)}")
    classes = [label for label in labels if label != negative]

    def units(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return counts.single(classes, _known(labels, gold, predicted))

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        return {**counts.micro(sums), "macro F1": counts.macro(sums)["F1"]}

    left_out = f" without {negative}" if negative is not None else ""
    return Metric(f"micro F1{left_out}", "F1", counts.statistics(classes), units, figures)


def positive_f1(positive: str) -> Metric:
    """Precision, recall and F1 of one class.

    GAD: what BLURB calls micro F1 is this in every public implementation (michiyasunaga/LinkBERT,
    dmis-lab/biobert biocodes/re_eval.py, SciCrunch/bio_electra).
    """

    def units(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return counts.single([positive], aligned(gold, predicted))

    return Metric(f"F1 of {positive}", "F1", counts.statistics([positive]), units, counts.micro)


def accuracy(labels: Sequence[str]) -> Metric:
    """The share of right answers, and macro F1, which PubMedQA's authors report too (arXiv:1909.06146)."""

    def units(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return counts.single(labels, _known(labels, gold, predicted))

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        return {"accuracy": _accuracy(sums), "macro F1": counts.macro(sums)["F1"]}

    return Metric("accuracy", "accuracy", counts.statistics(labels), units, figures)


def yes_no() -> Metric:
    """Precision, recall and F1 of ``yes`` and of ``no``, their macro F1, and accuracy.

    Bio-ELECTRA reports each answer for itself (``YesnoF1Scorer`` of its finetune/classification/
    classification_metrics.py).  BioASQ ranks by macro F1 (``macroF1ExactAnswersYesNo`` of
    BioASQ/Evaluation-Measures, EvaluatorTask1b.java; it calls false negatives false positives and the
    reverse, which F1 does not see).
    """
    answers = ("yes", "no")

    def units(gold: Sequence[str], predicted: Sequence[str]) -> Numbers:
        return counts.single(answers, _known(answers, gold, predicted))

    def figures(sums: Numbers) -> Mapping[str, Numbers]:
        each = counts.by_class(sums)
        return {
            **{
                f"{answer} {name}": figure[..., place]
                for place, answer in enumerate(answers)
                for name, figure in each.items()
            },
            "macro F1": each["F1"].mean(axis=-1),
            "accuracy": _accuracy(sums),
        }

    return Metric("F1 of yes and of no", "macro F1", counts.statistics(answers), units, figures)


def _accuracy(sums: Numbers) -> Numbers:
    return ratio(sums[..., 0::3].sum(axis=-1), sums[..., 2::3].sum(axis=-1))


def _known(labels: Sequence[str], gold: Sequence[str], predicted: Sequence[str]) -> list[tuple[str, str]]:
    unknown = sorted({*gold, *predicted}.difference(labels))
    if unknown:
        raise InvalidValueError(f"{unknown[0]!r} is none of the classes {', '.join(labels)}")
    return aligned(gold, predicted)
