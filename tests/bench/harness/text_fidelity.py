"""Fidelity of article text: word 5-grams against CRAFT's hand-checked text of the same articles.

CRAFT's corpus has 97 articles of PMC as text that people have read (67 of them in the data for development).
Numeric citations in brackets are left out on both sides, as the text has them and ours has not. Powers are
compared without their mark: the text has "106" for 10 to the power of 6.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from pathlib import Path

_CITATIONS = re.compile(r"\s*[\[(]\s*\d+(?:\s*[-,;–]\s*\d+)*\s*[\])]")
_POWER_MARK = re.compile(r"(?<=\d)\^(?=[\d−–-])")
_N = 5

NGramCounts = collections.Counter[tuple[str, ...]]


def count_ngrams(text: str) -> NGramCounts:
    """Count the word 5-grams of a text."""
    words = re.findall(r"\w+", _POWER_MARK.sub("", _CITATIONS.sub("", text)))
    return collections.Counter(zip(*[words[start:] for start in range(_N)], strict=False))


def load_craft_articles(data: Path) -> list[tuple[Path, str]]:
    """Load CRAFT's articles as (XML, text)."""
    texts = data / "sentences"
    files = {path.name: path for path in (data / "jats" / "UCDenver-ccp__CRAFT").rglob("*.nxml")}
    pairs = []
    for line in (texts / "craft-idmappings.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, pmid = line.split("\t")[:3]
            text = texts / "craft_txt" / f"{pmid.strip()}.txt"
            if name in files and text.exists():
                pairs.append((files[name], text.read_text()))
    return pairs


def score_extractor(
    article_pairs: list[tuple[Path, str]], extract: Callable[[Path], str]
) -> tuple[float, float]:
    """Return precision and recall of an extractor over all articles."""
    matched = extracted_total = gold_total = 0
    for path, text in article_pairs:
        gold, ours = count_ngrams(text), count_ngrams(extract(path))
        matched += (gold & ours).total()
        extracted_total += ours.total()
        gold_total += gold.total()
    return matched / extracted_total, matched / gold_total
