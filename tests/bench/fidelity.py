"""How true the text of an article is: word 5-grams against CRAFT's hand-checked text of the same articles.

CRAFT's corpus has 97 articles of PMC as text that people have read (67 of them in the data for development).
Numeric citations in brackets are left out on both sides, as the text has them and ours has not.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable
from pathlib import Path

_CITATIONS = re.compile(r"\s*[\[(]\s*\d+(?:\s*[-,;–]\s*\d+)*\s*[\])]")
_N = 5

Grams = collections.Counter[tuple[str, ...]]


def grams(text: str) -> Grams:
    """The word 5-grams of a text."""
    words = re.findall(r"\w+", _CITATIONS.sub("", text))
    return collections.Counter(zip(*[words[start:] for start in range(_N)], strict=False))


def articles(data: Path) -> list[tuple[Path, str]]:
    """CRAFT's articles in the data: (XML, text)."""
    texts = data / "sentences"
    files = {path.name: path for path in (data / "jats" / "UCDenver-ccp__CRAFT").rglob("*.nxml")}
    found = []
    for line in (texts / "craft-idmappings.txt").read_text().splitlines():
        if not line.startswith("#"):
            name, _, pmid = line.split("\t")[:3]
            text = texts / "craft_txt" / f"{pmid.strip()}.txt"
            if name in files and text.exists():
                found.append((files[name], text.read_text()))
    return found


def score(found: list[tuple[Path, str]], extract: Callable[[Path], str]) -> tuple[float, float]:
    """Precision and recall of an extractor over all articles together."""
    common = given = wanted = 0
    for path, text in found:
        gold, ours = grams(text), grams(extract(path))
        common += (gold & ours).total()
        given += ours.total()
        wanted += gold.total()
    return common / given, common / wanted
