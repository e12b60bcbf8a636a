"""Read a PubMed file: parse its records and build their documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.xml.decoder import DecodingReport
from bioshards.corpus.xml.well_formedness import pass_checks

from . import citation as medline
from .document_builder import CitationDocumentBuilder
from .filters import PubMedConfig
from .record_stream import iter_records

_TAG_CHECK_RECORDS: Final = 16
"""Records per tag check: few enough to stay in a core's cache until they are parsed."""
_DELETION_ELEMENTS: Final = frozenset({"DeleteCitation", "DeleteDocument"})
_BOOK_ELEMENTS: Final = frozenset({"PubmedBookArticle", "BookDocument"})
_CITATION_ELEMENTS: Final = frozenset({"PubmedArticle", "MedlineCitation"})


class CitationReader:
    """Reader of PubMed files with a fixed config.

    Raises:
        MissingExtraError: the config needs a library that is not installed.
    """

    def __init__(self, config: PubMedConfig) -> None:
        self._document_builder = CitationDocumentBuilder(config)
        self._columns = config.list_parsed_columns()
        self.decoding_report = DecodingReport()

    def read_records(self, storage: Storage, source: SourceFile) -> Iterator[SourceRecord]:
        """Yield the records of the file, in order.

        Raises:
            BadFileError: the file as a whole is unusable.
        """
        with open_source(storage, source.path) as file:
            numbered_records = enumerate(iter_records(file, self.decoding_report))
            while batch := list(itertools.islice(numbered_records, _TAG_CHECK_RECORDS)):
                is_checked = pass_checks([xml for _, (_, xml) in batch])
                for position, (element, xml) in batch:
                    try:
                        keys, document = self._read_record(source.name, position, element, xml, is_checked)
                    except BadRecordError as error:
                        yield SourceRecord(position, source.name, xml, [], error=error)
                    else:
                        yield SourceRecord(position, source.name, xml, keys, document)

    def _read_record(
        self, file: str, position: int, element: str, xml: bytes, is_checked: bool
    ) -> tuple[list[VersionKey], Document | None]:
        if element in _CITATION_ELEMENTS:
            citation = medline.parse_citation(xml, is_checked, self._columns)
            drop_reason, document = self._document_builder.build_document(citation, file, position)
            return [VersionKey(citation.pmid, citation.version, False, drop_reason)], document
        if element in _DELETION_ELEMENTS:
            return [VersionKey(pmid, version, True, None) for pmid, version in medline.parse_pmids(xml)], None
        if element in _BOOK_ELEMENTS:
            book_pmids = medline.parse_pmids(xml)
            if not book_pmids:
                raise BadRecordError("no-pmid", "a book record without a PMID")
            return [VersionKey(*book_pmids[0], False, "book")], None
        raise BadRecordError("unexpected-element", f"<{element}> is none of PubMed's records")
