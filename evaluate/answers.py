"""One list of answers to a question from the n-best lists of all its passages.

BioASQ wants an answer to a question, and a model of SQuAD's kind gives some for each passage.  They are
pooled by the rule of dmis-lab/bioasq-biobert, biocodes/transform_n2b_factoid.py, whose code ELECTRAMed
was tuned with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.evaluate.metrics.questions import FACTOID_ANSWERS

Candidate = tuple[str, float]
"""A text and its probability."""

_LONGEST: Final = 100


def merged(candidates: Iterable[Candidate], best: int = FACTOID_ANSWERS) -> list[Candidate]:
    """The best answers to a question from the candidates of all its passages.

    Texts are trimmed; empty ones and those of more than 100 characters are left out.  Of texts that
    differ in case only, probabilities are added up and the most probable spelling stays; of equally
    probable ones the first comes first.  The script differs in these two: it sorts unstably and, as it
    takes labels of rows for places (``iloc``), then goes through the candidates in an order of no
    meaning.  So it may keep another spelling, or put another of two equally probable answers first.
    """
    spellings: dict[str, str] = {}
    sums: dict[str, float] = {}
    for raw, probability in sorted(candidates, key=lambda candidate: -candidate[1]):
        text = trimmed(raw)
        if text and len(text) <= _LONGEST:
            key = text.lower()
            spellings.setdefault(key, text)
            sums[key] = sums.get(key, 0.0) + probability
    ranked = sorted(sums, key=lambda key: -sums[key])
    return [(spellings[key], sums[key]) for key in ranked[:best]]


def trimmed(text: str) -> str:
    """A text without the comma, full stop or blank at its end, or else the parentheses around it.

    At most one character goes, or one pair.  A text that only opens or only closes parentheses becomes
    empty, unless it lost its end (``textrip`` of the script).
    """
    if text.endswith((",", ".", " ")):
        return text[:-1]
    if len(text) > 2 and text[0] == "(" and text[-1] == ")" and text.count("(") == text.count(")") == 1:
        return text[1:-1]
    return text if ("(" in text) == (")" in text) else ""
