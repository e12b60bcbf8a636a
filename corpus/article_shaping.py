"""Shape an article into a document by the rules of a corpus: choose its parts, clean, split, count.

The counterpart of shaping.py for full text.  A paragraph's end ends a sentence; every run of blocks under the
same headings is a section of the document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from .article_rules import LEFT_OUT, ArticleRules
from .cleaning import Cleaner
from .document import HEADING_SEPARATOR, Document
from .errors import BadRecordError
from .jats_blocks import Block
from .jats_front import Front
from .lines import Lines
from .sentences import one_line, split_clean
from .splitters import splitter

_BEYOND_PMCIDS = 1 << 40


class ArticleShaper:
    """Shapes articles into documents by one set of rules; built once, used for every article.

    Raises:
        MissingExtraError: the rules need a library that is not installed.
    """

    def __init__(self, rules: ArticleRules) -> None:
        self._rules = rules
        self._parts = frozenset(rules.sections)
        self._types = frozenset(map(str.lower, rules.drop_article_types))
        self._cleaner = Cleaner(rules.cleaning)
        # Blocks are of one line already, which the usual splitter would look for again.
        self._split = split_clean if rules.splitter == "rules" else splitter(rules.splitter)
        self._lines: Lines | None = None
        if rules.lower_case or rules.ascii_only or rules.treebank or rules.min_line_characters:
            self._lines = Lines(rules.lower_case, rules.ascii_only, rules.treebank, rules.min_line_characters)

    def reason(self, front: Front, has_body: bool) -> str | None:
        """Why an article is dropped for what it says of itself; None where it is not."""
        rules = self._rules
        if (front.licence or "unknown") not in rules.licences:
            return "licence"
        if rules.languages and front.language not in rules.languages:
            return "language"
        if front.article_type in self._types:
            return "article-type"
        if rules.drop_retracted and front.retracted:
            return "retracted"
        if front.ocr and not rules.keep_ocr:
            return "ocr"
        if not has_body and not rules.keep_bodiless:
            return "no-body"
        return None

    def document(
        self, front: Front, has_body: bool, blocks: list[Block], file: str, position: int
    ) -> tuple[str | None, Document]:
        """Shape an article into a document: (reason to drop it for its text or None, document)."""
        removed: dict[str, int] = {}
        title, blocks = self._title(blocks, removed)
        sentences: list[str] = []
        if self._rules.titles and title:
            sentences += self._sentences(title, removed)
        sections: list[tuple[str, int]] = []
        words = _words(title) if self._rules.titles else 0
        standing = None
        for heading, label, text in self._texts(blocks, removed):
            words += _words(text)
            found = self._sentences(text, removed)
            if not found:
                continue
            if heading != standing:
                standing = heading
                sections.append((heading, len(sentences)))
                if self._rules.section_labels:
                    sentences += self._sentences(label, removed)
                    words += _words(label)
            sentences += found
        id_, _ = identity(front)
        shaped = Document(
            id=id_,
            source="pmc",
            pmid=front.pmid,
            pmcid=front.pmcid,
            doi=front.doi,
            version=front.version,
            year=front.year,
            journal=front.journal,
            article_type=front.article_type,
            language=front.language,
            licence=front.licence,
            retracted=front.retracted,
            flags=_flags(front, has_body),
            title=title,
            sentences=sentences,
            sections=sections,
            file=file,
            position=position,
            words=sum(map(_words, sentences)) if self._lines else words,
            characters=sum(map(len, sentences)),
            cleaned=removed,
        )
        if not sections:
            return "no-text", shaped
        return "short" if words < self._rules.min_words else None, shaped

    def _title(self, blocks: list[Block], removed: dict[str, int]) -> tuple[str, list[Block]]:
        """The cleaned title, and the other blocks."""
        if not blocks or blocks[0].part != "title":
            return "", blocks
        return one_line(self._cleaner.title(blocks[0].text, removed)), blocks[1:]

    def _sentences(self, text: str, removed: dict[str, int]) -> list[str]:
        found = self._split(text)
        return self._lines(found, removed) if self._lines else found

    def _texts(self, blocks: list[Block], removed: dict[str, int]) -> Iterator[tuple[str, str, str]]:
        """(heading path, last heading, text) of the blocks of the chosen parts, cleaned."""
        abstract = [block for block in blocks if block.part == "abstract"]
        if abstract and "abstract" in self._parts:
            yield from self._abstract(abstract, removed)
        paths: dict[tuple[str, ...], tuple[str, str]] = {}
        cleaned: dict[str, str] = {}  # headings: most head many blocks, and are counted once
        for block in blocks:
            if block.part not in self._parts:
                name = f"{LEFT_OUT}{block.part}"
                removed[name] = removed.get(name, 0) + len(block.text)
            elif block.part != "abstract":
                text = self._clean(block.text, removed)
                if not text:
                    continue
                path = paths.get(block.headings)
                if path is None:
                    for heading in block.headings:
                        if heading not in cleaned:
                            cleaned[heading] = self._clean(heading, removed)
                    headings = [cleaned[heading] for heading in block.headings if cleaned[heading]]
                    path = HEADING_SEPARATOR.join(headings), headings[-1] if headings else ""
                    paths[block.headings] = path
                yield *path, text

    def _abstract(self, blocks: list[Block], removed: dict[str, int]) -> Iterator[tuple[str, str, str]]:
        """The abstract as PubMed's are cleaned: its notices go, and labels that head nothing."""
        labelled = [(HEADING_SEPARATOR.join(block.headings[1:]) or None, block.text) for block in blocks]
        above = self._clean(blocks[0].headings[0], removed) if blocks[0].headings else ""
        above = above or "Abstract"
        for label, text in self._cleaner.abstract(labelled, removed):
            if text := one_line(text):
                label = one_line(label) if label else ""
                yield f"{above}{HEADING_SEPARATOR}{label}" if label else above, label or above, text

    def _clean(self, text: str, removed: dict[str, int]) -> str:
        return text if text.isascii() and "\x7f" not in text else one_line(self._cleaner.text(text, removed))


def identity(front: Front) -> tuple[str, int]:
    """An article's id, and the number that is the same for all its versions.

    The id is ``pmc:PMC123456.1``; of articles that PMC does not have, ``doi:10.5555/1`` or ``pmid:123``.
    Numbers of these are hashes beyond all PMCIDs.

    Raises:
        BadRecordError: it has none of the three.
    """
    if front.pmcid:
        return f"pmc:{front.pmcid}.{front.version}", int(front.pmcid[3:])
    if front.doi:
        name = f"doi:{front.doi.lower()}"
    elif front.pmid:
        name = f"pmid:{front.pmid}"
    else:
        raise BadRecordError("no-id", "it has no PMCID, no DOI and no PMID")
    digest = hashlib.blake2b(name.encode(), digest_size=8).digest()
    return name, int.from_bytes(digest) >> 1 | _BEYOND_PMCIDS


def _flags(front: Front, has_body: bool) -> list[str]:
    known = (("manuscript", front.manuscript), ("ocr", front.ocr), ("no-body", not has_body))
    return [*([front.notice] if front.notice else []), *(name for name, said in known if said)]


def _words(line: str) -> int:
    """Words of a text of one line."""
    return line.count(" ") + 1 if line else 0
