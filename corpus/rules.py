"""Which citations become documents, and of which text: the rules of a corpus, as data.

A drop always has a reason from :data:`REASONS`; the first that applies, in that order, is counted.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from . import splitters
from .cleaning import NAMES, Cleaner
from .document import HEADING_SEPARATOR, Document
from .lines import ASCII_ONLY, SHORT_LINES, Lines
from .medline import Citation
from .sentences import one_line

REASONS: Final = (
    "deleted",
    "superseded",
    "book",
    "below-min-pmid",
    "language",
    "publication-type",
    "retracted",
    "no-text",
    "no-abstract",
    "short-abstract",
    "duplicate",
)
"""Every reason for which a record is no document, in the order in which they are asked.

The first two are decided across files (lifecycle.py) and come before all others: an old version
counts as superseded whatever it says.  The last is decided across files too (duplicates.py) and comes
after all others: only of documents that would be kept can one repeat another.
"""


@dataclass(frozen=True, slots=True)
class Rules:
    """Selection and shape of documents.  The defaults keep every citation that has an abstract.

    Attributes:
        languages: keep articles in any of these MARC codes (``eng``); empty keeps all.
        min_abstract_words: drop abstracts of fewer words (split at white space, labels not counted),
            cleaned, before anything else is done to them.
        min_pmid: drop lower PMIDs.
        drop_publication_types: drop records of any of these types, by name as in the DTD's
            ``PublicationType`` ("Published Erratum").
        drop_retracted: drop retracted articles.
        keep_title_only: keep records without an abstract, as their title alone.
        titles: does the text begin with the title?  The ``title`` column is there either way.
        section_labels: does a section's text begin with its label ("METHODS: ...")?
        cleaning: the rules of cleaning.py that are on, in the order of its ``NAMES``.
        splitter: what finds the sentences, one of ``splitters.NAMES``.
        lower_case: write sentences in lower case.
        ascii_only: replace runs of non-ASCII characters in them by a blank.
        treebank: write their Penn Treebank tokens, with blanks between.
        min_line_characters: leave out sentences of fewer characters, as they would be written.
    """

    languages: tuple[str, ...] = ()
    min_abstract_words: int = 0
    min_pmid: int = 0
    drop_publication_types: tuple[str, ...] = ()
    drop_retracted: bool = False
    keep_title_only: bool = False
    titles: bool = True
    section_labels: bool = False
    cleaning: tuple[str, ...] = NAMES
    splitter: str = "rules"
    lower_case: bool = False
    ascii_only: bool = False
    treebank: bool = False
    min_line_characters: int = 0

    def __post_init__(self) -> None:
        for name in ("min_abstract_words", "min_pmid", "min_line_characters"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it cannot be below 0")
        if self.keep_title_only and not self.titles:
            raise ValueError("keep_title_only keeps titles as text, but titles are left out")
        if self.keep_title_only and self.min_abstract_words:
            raise ValueError(
                "keep_title_only keeps records without an abstract, min_abstract_words drops them"
            )
        if self.cleaning != tuple(name for name in NAMES if name in self.cleaning):
            raise ValueError(
                f"cleaning is {', '.join(self.cleaning)}; it must be some of these, in this order: "
                f"{', '.join(NAMES)}"
            )
        if self.splitter not in splitters.NAMES:
            raise ValueError(f"splitter is {self.splitter}; it must be one of {', '.join(splitters.NAMES)}")

    def as_dict(self) -> dict[str, object]:
        """Plain data for a manifest."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    def removals(self) -> tuple[str, ...]:
        """The names under which removed characters are counted, of all that is on."""
        lines = ((ASCII_ONLY, self.ascii_only), (SHORT_LINES, self.min_line_characters))
        return (*self.cleaning, *(name for name, on in lines if on))


class Shaper:
    """Shapes citations into documents by one set of rules; built once, used for every record.

    Raises:
        MissingExtra: the rules need a library that is not installed.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._cleaner = Cleaner(rules.cleaning)
        self._split = splitters.splitter(rules.splitter)
        self._lines: Lines | None = None
        if rules.lower_case or rules.ascii_only or rules.treebank or rules.min_line_characters:
            self._lines = Lines(rules.lower_case, rules.ascii_only, rules.treebank, rules.min_line_characters)

    def document(self, citation: Citation, file: str, position: int) -> tuple[str | None, Document]:
        """Shape a citation into a document: (reason to drop it or None, document).

        The document is whole even where there is a reason, so that it can be kept aside.
        """
        rules, split, lines = self._rules, self._split, self._lines
        removed: dict[str, int] = {}
        title = one_line(self._cleaner.title(citation.title, removed))
        sentences = split(title) if rules.titles else []
        words = _words(title) if rules.titles else 0
        if lines:
            sentences = lines(sentences, removed)
        sections: list[tuple[str, int]] = []
        abstract_words = 0
        for label, text in self._cleaner.abstract(citation.abstract, removed):
            text = one_line(text)
            if not text:
                continue
            abstract_words += _words(text)
            heading = "Abstract"
            if label is not None:
                label = one_line(label)
                heading = f"Abstract{HEADING_SEPARATOR}{label}"
                if rules.section_labels:
                    text = f"{label}: {text}"
                    words += _words(label)
            found = split(text)
            if lines:
                found = lines(found, removed)
            if found:
                sections.append((heading, len(sentences)))
                sentences += found
        shaped = Document(
            id=f"pubmed:{citation.pmid}",
            source="pubmed",
            pmid=citation.pmid,
            pmcid=citation.pmcid,
            doi=citation.doi,
            version=citation.version,
            year=citation.year,
            language=",".join(citation.languages) or None,
            licence=None,
            retracted=citation.retracted,
            title=title,
            sentences=sentences,
            sections=sections,
            file=file,
            position=position,
            words=sum(map(_words, sentences)) if lines else words + abstract_words,
            characters=sum(map(len, sentences)),
            cleaned=removed,
        )
        return _reason(citation, rules, shaped, abstract_words), shaped


def _words(line: str) -> int:
    """Words of a text of :func:`one_line`."""
    return line.count(" ") + 1 if line else 0


def _reason(citation: Citation, rules: Rules, shaped: Document, abstract_words: int) -> str | None:
    if citation.pmid < rules.min_pmid:
        return "below-min-pmid"
    if rules.languages and not set(rules.languages).intersection(citation.languages):
        return "language"
    if rules.drop_publication_types and set(rules.drop_publication_types).intersection(
        citation.publication_types
    ):
        return "publication-type"
    if rules.drop_retracted and citation.retracted:
        return "retracted"
    if not shaped.sections:
        if not (shaped.sentences if rules.keep_title_only else shaped.title):
            return "no-text"
        if not rules.keep_title_only:
            return "no-abstract"
    if abstract_words < rules.min_abstract_words:
        return "short-abstract"
    return None
