"""Fidelity of extracted text: n-grams of words beside text that people have read, and beside the XML itself.

CRAFT's corpus has 97 articles of PMC as text that people have read (67 of them in the data for development).
Numeric citations in brackets are left out on both sides, as the text has them and ours has not. Powers are
compared without their mark: the text has "106" for 10 to the power of 6.

The XML of other articles says what their text must have: the words of paragraphs and headings of abstract
and body that are prose beyond doubt. What it may have besides is a choice of each tool: labels, formulas,
notes, citations, acknowledgements. Tables, reference lists and other articles within the article (reviews,
translations) are neither.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from lxml import etree

from tests.support.corpus import jats_oracle

_CITATIONS = re.compile(r"\s*[\[(]\s*\d+(?:\s*[-,;–]\s*\d+)*\s*[\])]")
_POWER_MARK = re.compile(r"(?<=\d)\^(?=[\d−–-])")
_CRAFT_N: Final = 5
_N: Final = 4
_REMOVED: Final = "\ue000"
"""Stands where an element was taken out: no n-gram goes across it."""
_NEVER_TEXT: Final = {
    "ref-list",
    "table",
    "sub-article",
    "response",
    "alt-text",
    "long-desc",
    "object-id",
    "permissions",
    "related-article",
    "related-object",
}
_TEXT_PARTS: Final = "|".join(
    (
        "front/article-meta/title-group",
        "front/article-meta/abstract",
        "front/article-meta/author-notes",
        "front/article-meta/funding-group",
        "front/notes",
        "body",
        "back",
        "floats-group",
    )
)

NGramCounts = collections.Counter[tuple[str, ...]]


def count_ngrams(words: Sequence[str], n: int) -> NGramCounts:
    """Count the n-grams of words."""
    return collections.Counter(zip(*[words[start:] for start in range(n)], strict=False))


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

    def count(text: str) -> NGramCounts:
        return count_ngrams(re.findall(r"\w+", _POWER_MARK.sub("", _CITATIONS.sub("", text))), _CRAFT_N)

    matched = extracted_total = gold_total = 0
    for path, text in article_pairs:
        gold, ours = count(text), count(extract(path))
        matched += (gold & ours).total()
        extracted_total += ours.total()
        gold_total += gold.total()
    return matched / extracted_total, matched / gold_total


@dataclass(frozen=True, slots=True)
class ExpectedText:
    """What the text of a file must have, and all that it may have.

    Attributes:
        required: runs of words that must be there, each in this order.
        readings: words of the whole file in order, with and without what tools may choose.
    """

    required: Sequence[Sequence[str]]
    readings: Sequence[Sequence[str]]

    def count_required(self, n: int) -> NGramCounts:
        """Count the n-grams that must be there."""
        return collections.Counter(
            chain.from_iterable(count_ngrams(run, n).elements() for run in self.required)
        )

    def count_allowed(self, n: int) -> NGramCounts:
        """Count the n-grams that may be there: the most of any reading."""
        allowed: NGramCounts = collections.Counter()
        for reading in self.readings:
            allowed |= count_ngrams(reading, n)
        return allowed


def expect_article(xml: bytes) -> ExpectedText:
    """Read from the XML of an article what its text must and may have."""
    oracle = jats_oracle
    root = oracle.parse_article(xml)
    required = []
    for part in oracle.main_sections(root):
        copied = oracle.copy_without(part, oracle.NON_PROSE_TAGS, bibliography=True, mark=_REMOVED)
        for node in oracle.outermost_elements(copied, {"p", "title"}):
            required += [oracle.normalised_words(run) for run in oracle.text_of(node).split(_REMOVED)]
    readings = []
    for names in (_NEVER_TEXT, _NEVER_TEXT | oracle.NON_PROSE_TAGS):
        for without_citations in (False, True):
            article = oracle.copy_without(root, names, bibliography=without_citations)
            parts = map(oracle.join_text, article.xpath(_TEXT_PARTS))
            readings.append(oracle.normalised_words(" ".join(parts)))
    return ExpectedText(required, readings)


def expect_abstract(xml: bytes) -> ExpectedText:
    """Read from the XML of a PubMed record what the text of its abstract must and may have."""
    sections = etree.fromstring(xml).findall(".//Article/Abstract/AbstractText")
    texts = ["".join(map(str, section.itertext())) for section in sections]
    labelled = [f"{section.get('Label', '')} {text}" for section, text in zip(sections, texts, strict=True)]
    readings = [jats_oracle.normalised_words(" ".join(part)) for part in (texts, labelled)]
    return ExpectedText(list(map(jats_oracle.normalised_words, texts)), readings)


@dataclass(slots=True)
class NGramTotals:
    """Totals over files: n-grams that must be there, those of them found, those given, those of them allowed.

    Attributes:
        failed: n-grams that must be there, of files for which the tool failed.
    """

    required: int = 0
    found: int = 0
    given: int = 0
    allowed: int = 0
    failed: int = 0

    @property
    def precision(self) -> float:
        """Share of the given n-grams that the XML has."""
        return self.allowed / max(self.given, 1)

    @property
    def recall(self) -> float:
        """Share of the required n-grams that are given; files for which the tool failed give none."""
        return self.found / max(self.required + self.failed, 1)


@dataclass(slots=True)
class FidelityScore:
    """How much of the expected words and 4-grams a tool gives, and how much else.

    Attributes:
        failures: files for which the tool raised an exception.
        glued: given words that are two or three neighbouring words of the XML without their gap.
        lost, added: 4-grams, for examples.
    """

    files: int = 0
    failures: int = 0
    words: NGramTotals = field(default_factory=NGramTotals)
    ngrams: NGramTotals = field(default_factory=NGramTotals)
    glued: collections.Counter[str] = field(default_factory=collections.Counter)
    lost: NGramCounts = field(default_factory=collections.Counter)
    added: NGramCounts = field(default_factory=collections.Counter)

    def add(self, expected: ExpectedText, text: str | None) -> None:
        """Count a file; its text is None if the tool failed."""
        self.files += 1
        if text is None:
            self.failures += 1
            self.words.failed += expected.count_required(1).total()
            self.ngrams.failed += expected.count_required(_N).total()
            return
        words = jats_oracle.normalised_words(text)
        _add_counts(self.words, expected, words, 1)
        lost, added = _add_counts(self.ngrams, expected, words, _N)
        self.lost += lost
        self.added += added
        unknown = collections.Counter(words)
        for known in chain.from_iterable(expected.readings):
            del unknown[known]
        neighbours = _join_neighbours(expected.readings[0])
        self.glued.update({word: count for word, count in unknown.items() if word in neighbours})


def _add_counts(
    totals: NGramTotals, expected: ExpectedText, words: Sequence[str], n: int
) -> tuple[NGramCounts, NGramCounts]:
    """Add the n-grams of a file to the totals; return those that are lost and those that are added."""
    required, given, allowed = expected.count_required(n), count_ngrams(words, n), expected.count_allowed(n)
    lost, added = required - given, given - allowed
    totals.required += required.total()
    totals.found += required.total() - lost.total()
    totals.given += given.total()
    totals.allowed += given.total() - added.total()
    return lost, added


def _join_neighbours(words: Sequence[str]) -> set[str]:
    """Join each two and three neighbouring words."""
    return {"".join(run) for n in (2, 3) for run in count_ngrams(words, n)}
