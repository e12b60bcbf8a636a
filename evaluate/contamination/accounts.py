"""What was found, added up: a part of a set a line, and in words."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from bioshards.evaluate.datasets import Part

from .judging import MOSTLY, Contamination, Judged
from .ngrams import WORDS

HEAD: Final = (
    "set",
    "part",
    "examples",
    "in corpus",
    "by PMID",
    "PMIDs",
    f"by {WORDS}-grams",
    f">= {MOSTLY:.0%} of it",
    "mean share",
    "too short",
)
LEGEND: Final = (
    "in corpus: examples found either way. by PMID: the corpus has a document with an example's PMID; "
    f"PMIDs: how many of a part's it has. by {WORDS}-grams: at least one {WORDS}-gram of the example is in "
    f"the corpus, and at least {MOSTLY:.0%} of them; mean share: of an example's {WORDS}-grams, those in the "
    f"corpus. too short: examples without {WORDS} words in a row, of which {WORDS}-grams cannot tell."
)


@dataclass(frozen=True, slots=True)
class Account:
    """A part of a set.

    Attributes:
        found: examples in the corpus, by PMID or by 13-grams.
        pmids, pmids_found: distinct ones of the examples' documents, and those in the corpus.
        mostly: examples most of whose 13-grams are in the corpus.
        share: of an example's 13-grams, those in the corpus; the mean over those not too short.
        too_short: examples without 13 words in a row, of which 13-grams cannot tell.
    """

    set: str
    part: Part
    examples: int
    found: int
    by_pmid: int
    pmids: int
    pmids_found: int
    by_ngrams: int
    mostly: int
    share: float
    too_short: int

    def cells(self) -> list[str]:
        """A row of a table with the columns :data:`HEAD`; a dash where there is no way to tell."""
        examples, told = f"{self.examples:,}", self.examples > self.too_short
        by_pmid = [f"{self.by_pmid:,}", f"{self.pmids_found:,} of {self.pmids:,}"]
        by_ngrams = [f"{self.by_ngrams:,}", f"{self.mostly:,}", f"{100 * self.share:.1f} %"]
        return [
            self.set,
            self.part,
            examples,
            f"{self.found:,}",
            *(by_pmid if self.pmids else "--"),
            *(by_ngrams if told else "---"),
            f"{self.too_short:,}",
        ]


def accounts(judged: Sequence[Judged]) -> list[Account]:
    """Each part of each set, in their order."""
    parts = itertools.groupby(judged, key=lambda one: (one.example.set, one.example.part))
    return [_account(*of, list(examples)) for of, examples in parts]


def _account(name: str, part: Part, judged: list[Judged]) -> Account:
    told = [one.share for one in judged if one.ngrams]
    return Account(
        name,
        part,
        examples=len(judged),
        found=sum(1 for one in judged if one.pmids or one.covered),
        by_pmid=sum(1 for one in judged if one.pmids),
        pmids=len({pmid for one in judged for pmid in one.example.pmids}),
        pmids_found=len({pmid for one in judged for pmid in one.pmids}),
        by_ngrams=sum(1 for one in judged if one.covered),
        mostly=sum(1 for one in judged if one.mostly),
        share=sum(told) / max(1, len(told)),
        too_short=len(judged) - len(told),
    )


def corpus(found: Contamination) -> str:
    """What was looked at, in words."""
    documents = sum(corpus.documents for corpus in found.corpora)
    return f"{documents:,} documents, {found.bytes / 1e6:,.1f} MB of text"


def to_exclude(found: Contamination) -> str:
    """What is to be left out, in words."""
    out = [holder for holder in found.holders if holder.excluded]
    by_pmid = sum(1 for holder in out if holder.by_pmid)
    mostly = sum(1 for holder in out if holder.mostly and not holder.by_pmid)
    others, stay = len(out) - by_pmid - mostly, len(found.holders) - len(out)
    return (
        f"{len(out):,} documents to leave out for {', '.join(found.parts)}: {by_pmid:,} have an example's "
        f"PMID, {mostly:,} others hold {MOSTLY:.0%} of an example, {others:,} others share "
        f"{found.least} or more of their {WORDS}-grams; {stay:,} share fewer and stay"
    )


def notes(found: Contamination) -> list[str]:
    """What else to know: of files that are not the published ones, and of sets that are not there."""
    of_sets = found.benchmarks.notes.items()
    lines = [f"{name}: {note}" for name, of_set in of_sets for note in of_set]
    if found.benchmarks.absent:
        lines.append(f"not there, and so not looked for: {', '.join(found.benchmarks.absent)}")
    return lines
