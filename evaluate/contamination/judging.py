"""From what the shards hold to what is said of each example, and of each document that holds some.

Texts that have nothing else in common share set phrases ("participated in the design of the study and
helped to draft the manuscript").  So it is also said how many of an example's 13-grams are in the corpus.
And three kinds of documents are to be left out: those with an example's PMID, those that hold most of an
example, and those that share many 13-grams with all of them, as another version of a long one does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from bioshards.evaluate.datasets import PARTS, Part

from .corpus import Corpus, Document, Found
from .examples import Benchmarks, Example
from .ngrams import Index, Places

Marks = npt.NDArray[np.bool_]

LEAST: Final = 13
"""Shared 13-grams from which on a document is to be left out: as many as 25 words in a row have."""
MOSTLY: Final = 0.8
"""The share of its 13-grams from which on an example is mostly in a document, or in the corpus.  Of sentences
of benchmarks and 4,391 real abstracts and articles, the same ones share all, others 0.6 at most."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What was found of an example.

    Attributes:
        pmids: those of its PMIDs of which the corpus has a document.
        ngrams: how many 13-grams it has, each as often as it stands in it; 0: it is too short to tell.
        covered: how many of them are in the corpus.
        document: of the parts asked for, the id of the document that shares most of them; "": none does.
        shared: distinct 13-grams that this document shares with it.
    """

    example: Example
    pmids: tuple[int, ...]
    ngrams: int
    covered: int
    document: str
    shared: int

    @property
    def share(self) -> float:
        """Of its 13-grams, those that are in the corpus; 0 where it has none."""
        return self.covered / max(1, self.ngrams)

    @property
    def mostly(self) -> bool:
        """Whether most of it is in the corpus, by 13-grams."""
        return self.share >= MOSTLY


@dataclass(frozen=True, slots=True)
class Holder:
    """A document of the corpus that holds examples of the parts asked for.

    Attributes:
        by_pmid: whether it has an example's PMID.
        shared: distinct 13-grams that it shares with the examples.
        mostly: whether it holds most of one of them.
        sets: whose examples these are.
        excluded: whether it is to be left out.
    """

    document: Document
    by_pmid: bool
    shared: int
    mostly: bool
    sets: tuple[str, ...]
    excluded: bool


@dataclass(frozen=True, slots=True)
class Contamination:
    """All that was found.

    Attributes:
        parts, least: what was asked for.
        bytes: of the corpora's text.
        judged: each example, in the order of Benchmarks.
        holders: by id.
    """

    benchmarks: Benchmarks
    corpora: list[Corpus]
    parts: tuple[Part, ...]
    least: int
    bytes: int
    judged: list[Judged]
    holders: list[Holder]


class Hits:
    """What all shards hold, added up.

    Attributes:
        bytes: of text.
        there: by n-gram, whether it is in the corpus.
    """

    def __init__(self, ngrams: int) -> None:
        self.bytes = 0
        self.there = np.zeros(ngrams, bool)
        self._documents: dict[str, tuple[int, Document]] = {}
        self._pairs = [np.zeros((2, 0), np.int64)]

    def add(self, shard: Found) -> None:
        """Add one more shard's; a document that two corpora have is one."""
        self.bytes += shard.bytes
        self.there[shard.ngrams] = True
        known = self._documents
        rows = [known.setdefault(one.id, (len(known), one))[0] for one in shard.documents]
        self._pairs.append(np.stack([np.array(rows, np.int64)[shard.holders], shard.held]))

    def documents(self) -> tuple[list[Document], Places, Places]:
        """The documents by id; and pairs of one's place and an n-gram that it holds, by n-gram."""
        documents = [document for _, document in self._documents.values()]
        order = sorted(range(len(documents)), key=lambda row: documents[row].id)
        place = np.argsort(np.array(order, np.int64))
        rows, held = np.concatenate(self._pairs, axis=1)
        pairs = np.unique(held * len(documents) + place[rows])
        held, rows = np.divmod(pairs, max(1, len(documents)))
        return [documents[row] for row in order], rows, held


class _Holders:
    """The documents, and which examples each of them holds."""

    def __init__(self, index: Index, hits: Hits) -> None:
        self.documents, self._rows, held = hits.documents()
        self._index = index
        self._begin = np.searchsorted(held, np.arange(len(index) + 1))
        self._named: defaultdict[int | None, set[str]] = defaultdict(set)
        self._sharing: defaultdict[str, Marks] = defaultdict(self._no_marks)
        self._mostly = self._no_marks()

    def _no_marks(self) -> Marks:
        return np.zeros(len(self.documents), bool)

    def add_by_pmid(self, example: Example) -> None:
        """Mark who has a PMID of an example."""
        for pmid in example.pmids:
            self._named[pmid].add(example.set)

    def add_by_ngrams(self, example: Example) -> tuple[str, int]:
        """Mark who shares 13-grams with an example, which some do; returns who shares most, and how many."""
        ngrams = np.unique(np.concatenate([self._index.of(text) for text in example.texts]))
        holding = [self._rows[self._begin[one] : self._begin[one + 1]] for one in ngrams.tolist()]
        rows, shared = np.unique(np.concatenate(holding), return_counts=True)
        self._sharing[example.set][rows] = True
        self._mostly[rows[shared >= MOSTLY * len(ngrams)]] = True
        return self.documents[rows[shared.argmax()]].id, int(shared.max())

    def judged(self, least: int) -> Iterator[Holder]:
        """Those that hold something of the examples added."""
        for row, shared in enumerate(np.bincount(self._rows, minlength=len(self.documents)).tolist()):
            document, mostly = self.documents[row], bool(self._mostly[row])
            sets = {name for name, marks in self._sharing.items() if marks[row]}
            by_pmid = document.pmid in self._named
            if by_pmid:
                sets |= self._named[document.pmid]
            if sets:
                excluded = by_pmid or mostly or shared >= least
                yield Holder(document, by_pmid, shared, mostly, tuple(sorted(sets)), excluded)


def judge(
    benchmarks: Benchmarks,
    corpora: list[Corpus],
    index: Index,
    hits: Hits,
    parts: Collection[Part],
    least: int,
) -> Contamination:
    """Judge each example, and each document that holds some of the parts asked for."""
    holders = _Holders(index, hits)
    there = {document.pmid for document in holders.documents}
    ngrams_of = np.diff(index.offsets).tolist()
    covered_of = np.diff(np.concatenate([[0], hits.there[index.ids].cumsum()])[index.offsets]).tolist()
    judged = []
    for example in benchmarks.examples:
        pmids = tuple(pmid for pmid in example.pmids if pmid in there)
        ngrams, covered = (sum(of[text] for text in example.texts) for of in (ngrams_of, covered_of))
        closest = "", 0
        if example.part in parts:
            holders.add_by_pmid(example)
            if covered:
                closest = holders.add_by_ngrams(example)
        judged.append(Judged(example, pmids, ngrams, covered, *closest))
    asked = tuple(part for part in PARTS if part in parts)
    holding = list(holders.judged(least))
    return Contamination(benchmarks, corpora, asked, least, hits.bytes, judged, holding)
