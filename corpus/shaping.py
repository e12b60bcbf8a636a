"""Shape a citation into a document by the rules of a corpus: clean, split, and say why not to keep it.

Sentences are found first and shaped as a paper's recipe wants them (lines.py) then.  Selection counts
the words of the cleaned text as it was before that, so that a number of words means the same with every
recipe.
"""

from __future__ import annotations

from .cleaning import Cleaner
from .document import HEADING_SEPARATOR, Document
from .lines import Lines
from .medline import Citation
from .rules import Rules
from .sentences import one_line
from .splitters import splitter


class Shaper:
    """Shapes citations into documents by one set of rules; built once, used for every record.

    Raises:
        MissingExtraError: the rules need a library that is not installed.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._cleaner = Cleaner(rules.cleaning)
        self._split = splitter(rules.splitter)
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
            journal=None,
            article_type=None,
            language=",".join(citation.languages) or None,
            licence=None,
            retracted=citation.retracted,
            flags=[],
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
            return "stub" if "stubs" in shaped.cleaned else "no-abstract"
    if abstract_words < rules.min_abstract_words:
        return "short-abstract"
    return None
