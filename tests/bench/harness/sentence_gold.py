"""Gold sentences: paragraphs with manually annotated ends of sentences.

CRAFT (67 full articles here) and GENIA (1,599 abstracts), as BIOSHARDS_DATA/sentences has them, and the
repository's own invented paragraphs (tests/golden/sentences.txt).  A fifth of the documents, by a hash of
their names, is held out: nothing is fitted on it and no error in it was read.
"""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

MIN_COVERAGE: Final = 0.9
"""CRAFT marks no sentences in some lines; one is used if its sentences cover so much of it."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a document.  ``ends``: of all sentences but the last, in non-space characters."""

    document: str
    text: str
    ends: frozenset[int]


@dataclass(frozen=True, slots=True)
class BoundaryScore:
    """Counts of boundaries: true positives, false positives and false negatives."""

    correct: int
    wrong: int
    missed: int

    @property
    def f1(self) -> float:
        return 2 * self.correct / max(1, 2 * self.correct + self.wrong + self.missed)


def is_held_out(document: str) -> bool:
    """Return True if a document is in the held-out fifth."""
    return int(hashlib.sha256(document.encode()).hexdigest(), 16) % 5 == 0


def sentence_ends(sentences: Iterable[str]) -> frozenset[int]:
    """Return the ends of all sentences but the last, in non-space characters."""
    total, positions = 0, []
    for sentence in sentences:
        total += len("".join(sentence.split()))
        positions.append(total)
    return frozenset(positions) - {total}


def load_craft(folder: Path) -> list[Paragraph]:
    """A paragraph is a line of an article."""
    marked: dict[str, list[tuple[int, int]]] = {}
    for row in _read_rows(folder / "craft_train_dev.tsv"):
        marked.setdefault(row["pmid"], []).append((int(row["start"]), int(row["end"])))
    paragraphs = []
    for document, spans in marked.items():
        text = (folder / "craft_txt" / f"{document}.txt").read_text(encoding="utf-8")
        for line in re.finditer(r"[^\n]+", text):
            inside = sorted((s, e) for s, e in spans if line.start() <= s and e <= line.end())
            if inside and sum(e - s for s, e in inside) >= MIN_COVERAGE * len(line[0]):
                # Some characters belong to no sentence: ends are counted in the line, from its start.
                ends = [len("".join(text[line.start() : end].split())) for _, end in inside[:-1]]
                paragraphs.append(Paragraph(document, line[0], frozenset(ends)))
    return paragraphs


def load_genia(folder: Path) -> list[Paragraph]:
    """A paragraph is an abstract without its title, its sentences joined by blanks."""
    marked: dict[str, list[str]] = {}
    for row in _read_rows(folder / "genia_dev.tsv"):
        marked.setdefault(row["muid"], []).append(row["text"])
    return [
        Paragraph(document, " ".join(sentences[1:]), sentence_ends(sentences[1:]))
        for document, sentences in marked.items()
        if len(sentences) > 1
    ]


def load_own_paragraphs(file: Path) -> list[Paragraph]:
    """A paragraph is a line of ours, ``|`` where its sentences end."""
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    return [Paragraph("ours", line.replace("|", ""), sentence_ends(line.split("|"))) for line in lines]


def score_splitter(paragraphs: Iterable[Paragraph], split: Callable[[str], list[str]]) -> BoundaryScore:
    """Score a splitter on the boundaries within paragraphs."""
    correct = wrong = missed = 0
    for paragraph in paragraphs:
        found = sentence_ends(split(paragraph.text))
        correct += len(found & paragraph.ends)
        wrong += len(found - paragraph.ends)
        missed += len(paragraph.ends - found)
    return BoundaryScore(correct, wrong, missed)


def _read_rows(file: Path) -> Iterable[dict[str, str]]:
    previous_limit = csv.field_size_limit(1 << 30)  # of the whole process
    try:
        with file.open(encoding="utf-8", newline="") as opened:
            yield from csv.DictReader(opened, delimiter="\t", quoting=csv.QUOTE_NONE)
    finally:
        csv.field_size_limit(previous_limit)
