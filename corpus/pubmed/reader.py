"""Read a PubMed file: parse its records and build their documents."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.pubmed import citation as medline
from bioshards.corpus.pubmed.citation import Citation
from bioshards.corpus.pubmed.document_builder import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.pubmed.record_stream import iter_records
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.xml.decoder import DecodingReport
from bioshards.corpus.xml.element_stream import pass_checks

_BATCH_RECORDS: Final = 16
"""Records that are checked and parsed together: few enough to stay in a core's cache."""
_DELETION_ELEMENTS: Final = frozenset({"DeleteCitation", "DeleteDocument"})
_BOOK_ELEMENTS: Final = frozenset({"PubmedBookArticle", "BookDocument"})
_CITATION_ELEMENTS: Final = frozenset({"PubmedArticle", "MedlineCitation"})

_ParsedRecord = Citation | list[VersionKey] | BadRecordError
"""A citation, the keys of another record, or why the record is rejected."""


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
            records = iter_records(file, self.decoding_report)
            position = 0
            while batch := list(itertools.islice(records, _BATCH_RECORDS)):
                # All are parsed before the first is built: a step that is repeated stays in the core's cache.
                parsed = self._parse_records(batch)
                yield from [
                    self._make_record(source.name, index, xml, result)
                    for index, ((_, xml), result) in enumerate(zip(batch, parsed, strict=True), position)
                ]
                position += len(batch)

    def _parse_records(self, batch: list[tuple[str, bytes]]) -> list[_ParsedRecord]:
        is_checked = pass_checks([xml for _, xml in batch])
        parsed: list[_ParsedRecord] = []
        for element, xml in batch:
            try:
                parsed.append(
                    medline.parse_citation(xml, is_checked, self._columns)
                    if element in _CITATION_ELEMENTS
                    else _parse_keys(element, xml)
                )
            except BadRecordError as error:
                # A copy: the traceback of the error leads to this list, and nothing collects such a cycle.
                parsed.append(BadRecordError(error.reason, error.detail))
        return parsed

    def _make_record(self, file: str, position: int, xml: bytes, parsed: _ParsedRecord) -> SourceRecord:
        if isinstance(parsed, Citation):
            drop_reason, document = self._document_builder.build_document(parsed, file, position)
            keys = [VersionKey(parsed.pmid, parsed.version, False, drop_reason)]
            return SourceRecord(position, file, xml, keys, document)
        if isinstance(parsed, BadRecordError):
            return SourceRecord(position, file, xml, [], error=parsed)
        return SourceRecord(position, file, xml, parsed)


def _parse_keys(element: str, xml: bytes) -> list[VersionKey]:
    """Return the keys of a record that is no citation.

    Raises:
        BadRecordError: it is none of PubMed's records, or has no valid PMID.
    """
    if element in _DELETION_ELEMENTS:
        return [VersionKey(pmid, version, True, None) for pmid, version in medline.parse_pmids(xml)]
    if element in _BOOK_ELEMENTS:
        book_pmids = medline.parse_pmids(xml)
        if not book_pmids:
            raise BadRecordError("no-pmid", "a book record without a PMID")
        return [VersionKey(*book_pmids[0], False, "book")]
    raise BadRecordError("unexpected-element", f"<{element}> is none of PubMed's records")
