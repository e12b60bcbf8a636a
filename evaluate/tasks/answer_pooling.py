"""One list of answers to a question from the n-best lists of all its passages.

BioASQ wants an answer to a question, and a model of SQuAD's kind gives some for each passage.  They are
pooled by the rule of dmis-lab/bioasq-biobert, biocodes/transform_n2b_factoid.py, whose code ELECTRAMed
was tuned with.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.evaluate.metrics.qa import FACTOID_ANSWERS

Candidate = tuple[str, float]
"""A text and its probability."""

_MAX_ANSWER_CHARACTERS: Final = 100


def pool_answers(candidates: Iterable[Candidate], n_best: int = FACTOID_ANSWERS) -> list[Candidate]:
    """The best answers to a question from the candidates of all its passages.

    Texts are trimmed; empty ones and those of more than 100 characters are left out.  Of texts that
    differ in case only, probabilities are added up and the most probable spelling stays; of equally
    probable ones the first comes first.  The script differs in these two: it sorts unstably and, as it
    takes labels of rows for places (``iloc``), then goes through the candidates in an order of no
    meaning.  So it may keep another spelling, or put another of two equally probable answers first.
    """
    spellings: dict[str, str] = {}
    totals: dict[str, float] = {}
    for raw_text, probability in sorted(candidates, key=lambda candidate: -candidate[1]):
        text = trim_answer(raw_text)
        if text and len(text) <= _MAX_ANSWER_CHARACTERS:
            key = text.lower()
            spellings.setdefault(key, text)
            totals[key] = totals.get(key, 0.0) + probability
    ranked = sorted(totals, key=lambda key: -totals[key])
    return [(spellings[key], totals[key]) for key in ranked[:n_best]]


def trim_answer(text: str) -> str:
    """A text without the comma, full stop or blank at its end, or else the parentheses around it.

    At most one character goes, or one pair.  A text that only opens or only closes parentheses becomes
    empty, unless it lost its end (``textrip`` of the script).
    """
    if text.endswith((",", ".", " ")):
        return text[:-1]
    if len(text) > 2 and text[0] == "(" and text[-1] == ")" and text.count("(") == text.count(")") == 1:
        return text[1:-1]
    return text if ("(" in text) == (")" in text) else ""
