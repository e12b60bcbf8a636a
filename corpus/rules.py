"""Which citations become documents, and of which text: the rules of a corpus, as data.

A drop always has a reason from :data:`REASONS`; the first that applies, in that order, is counted.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Final

from .document import HEADING_SEPARATOR, Document
from .medline import Citation
from .sentences import one_line, split_clean

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
        min_abstract_words: drop abstracts of fewer words (split at white space, labels not counted).
        min_pmid: drop lower PMIDs.
        drop_publication_types: drop records of any of these types, by name as in the DTD's
            ``PublicationType`` ("Published Erratum").
        drop_retracted: drop retracted articles.
        keep_title_only: keep records without an abstract, as their title alone.
        titles: does the text begin with the title?  The ``title`` column is there either way.
        section_labels: does a section's text begin with its label ("METHODS: ...")?
    """

    languages: tuple[str, ...] = ()
    min_abstract_words: int = 0
    min_pmid: int = 0
    drop_publication_types: tuple[str, ...] = ()
    drop_retracted: bool = False
    keep_title_only: bool = False
    titles: bool = True
    section_labels: bool = False

    def __post_init__(self) -> None:
        for name in ("min_abstract_words", "min_pmid"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it cannot be below 0")
        if self.keep_title_only and not self.titles:
            raise ValueError("keep_title_only keeps titles as text, but titles are left out")
        if self.keep_title_only and self.min_abstract_words:
            raise ValueError(
                "keep_title_only keeps records without an abstract, min_abstract_words drops them"
            )

    def as_dict(self) -> dict[str, object]:
        """Plain data for a manifest."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }


def document(citation: Citation, rules: Rules, file: str, position: int) -> tuple[str | None, Document]:
    """Shape a citation into a document: (reason to drop it or None, document).

    The document is whole even where there is a reason, so that it can be kept aside.
    """
    title = one_line(citation.title)
    sentences = split_clean(title) if rules.titles else []
    words = _words(title) if rules.titles else 0
    sections: list[tuple[str, int]] = []
    abstract_words = 0
    for section in citation.abstract:
        text = one_line(section.text)
        if not text:
            continue
        abstract_words += _words(text)
        heading = "Abstract"
        if section.label is not None:
            label = one_line(section.label)
            heading = f"Abstract{HEADING_SEPARATOR}{label}"
            if rules.section_labels:
                text = f"{label}: {text}"
                words += _words(label)
        sections.append((heading, len(sentences)))
        sentences += split_clean(text)
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
        words=words + abstract_words,
        characters=sum(map(len, sentences)),
    )
    return _reason(citation, rules, bool(title), abstract_words), shaped


def _words(line: str) -> int:
    """Words of a text of :func:`one_line`."""
    return line.count(" ") + 1 if line else 0


def _reason(citation: Citation, rules: Rules, has_title: bool, abstract_words: int) -> str | None:
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
    if not abstract_words and not has_title:
        return "no-text"
    if not abstract_words and not rules.keep_title_only:
        return "no-abstract"
    if abstract_words < rules.min_abstract_words:
        return "short-abstract"
    return None
