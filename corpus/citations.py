"""Read a source of PubMed citations: its records shaped into documents by the rules of a corpus."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from . import checksums, medline
from .document import Document
from .errors import BadRecordError
from .files import LocalFiles
from .medline_file import records
from .records import Key, Record
from .rules import Rules
from .shaping import Shaper
from .sources import Source
from .tags import all_balanced

_GROUP: Final = 32
"""Records whose tags are counted at a time: few enough to stay in a core's cache until they are read."""
_DELETIONS: Final = frozenset({"DeleteCitation", "DeleteDocument"})
_BOOKS: Final = frozenset({"PubmedBookArticle", "BookDocument"})
_CITATIONS: Final = frozenset({"PubmedArticle", "MedlineCitation"})


class CitationReader:
    """Reads PubMed's files by one set of rules.

    Raises:
        MissingExtraError: the rules need a library that is not installed.
    """

    def __init__(self, rules: Rules) -> None:
        self._shaper = Shaper(rules)

    def records(self, files: LocalFiles, source: Source) -> Iterator[Record]:
        """The file's records, in order.

        Raises:
            BadFileError: the file as a whole cannot be used.
        """
        with checksums.opened(files, source.path) as file:
            numbered = enumerate(records(file))
            while group := list(itertools.islice(numbered, _GROUP)):
                balanced = all_balanced([xml for _, (_, xml) in group])
                for position, (element, xml) in group:
                    try:
                        keys, document = self._read(source.name, position, element, xml, balanced)
                    except BadRecordError as bad:
                        yield Record(position, source.name, xml, [], bad=bad)
                    else:
                        yield Record(position, source.name, xml, keys, document)

    def _read(
        self, file: str, position: int, element: str, xml: bytes, balanced: bool
    ) -> tuple[list[Key], Document | None]:
        if element in _CITATIONS:
            citation = medline.parse(xml, balanced)
            drop, document = self._shaper.document(citation, file, position)
            return [Key(citation.pmid, citation.version, False, drop)], document
        if element in _DELETIONS:
            return [Key(pmid, version, True, None) for pmid, version in medline.pmids(xml)], None
        if element in _BOOKS:
            found = medline.pmids(xml)
            if not found:
                raise BadRecordError("no-pmid", "a book record without a PMID")
            return [Key(*found[0], False, "book")], None
        raise BadRecordError("unexpected-element", f"<{element}> is none of PubMed's records")
