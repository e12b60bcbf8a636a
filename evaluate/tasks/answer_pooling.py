"""Pool the answers of several passages into one ranked list per question.

BioASQ wants answers to a question; a SQuAD model gives n-best lists for passages. SOURCE:
biocodes/transform_n2b_factoid.py of dmis-lab/bioasq-biobert, which ELECTRAMed used.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.evaluate.metrics.text_metrics import FACTOID_ANSWERS

Candidate = tuple[str, float]
"""Text and probability of an answer."""

_MAX_ANSWER_CHARACTERS: Final = 100


def pool_answers(candidates: Iterable[Candidate], n_best: int = FACTOID_ANSWERS) -> list[Candidate]:
    """Return the best answers to a question from the candidates of all its passages.

    Texts are trimmed; empty texts and those above 100 characters are dropped. Probabilities of texts that
    differ only in case are added, and the most probable spelling is kept; ties keep their order. The script
    sorts unstably and reads candidates in an arbitrary order (it uses row labels as ``iloc`` positions), so
    it may choose another spelling or order of equally probable answers.
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
    """Remove a final comma, full stop or blank, or else the parentheses around a text.

    At most one character or one pair is removed. A text with unbalanced parentheses becomes empty, unless its
    last character was removed (``textrip`` of the script).
    """
    if text.endswith((",", ".", " ")):
        return text[:-1]
    if len(text) > 2 and text[0] == "(" and text[-1] == ")" and text.count("(") == text.count(")") == 1:
        return text[1:-1]
    return text if ("(" in text) == (")" in text) else ""
