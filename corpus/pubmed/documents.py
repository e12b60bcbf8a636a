"""Read a PubMed file: split it into records, parse them, and build the documents of citations.

Sentences are split before they are reformatted (text/line_format.py). Filters count the words of the cleaned
text before reformatting, so that a word limit means the same with every format.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Final

from bioshards.corpus.document import HEADING_SEPARATOR, Document
from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.filter_names import FilterNames
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.pubmed.citation import (
    AbstractSection,
    Citation,
    parse_book,
    parse_citation,
    parse_pmids,
)
from bioshards.corpus.pubmed.filters import PubMedConfig, find_drop_reason
from bioshards.corpus.sentences import collapse_whitespace, count_line_words
from bioshards.corpus.sentences.splitters import load_splitter
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text.cleaning import Cleaner
from bioshards.corpus.text_config import list_journal_names
from bioshards.corpus.xml import element_stream
from bioshards.corpus.xml.decoder import ByteStream, DecodingReport, decode_xml
from bioshards.corpus.xml.element_stream import check_length, pass_checks

MAX_RECORD_BYTES: Final = 32 << 20
"""Largest record. Real ones with thousands of references have less than 2 MB."""
ROOT_ELEMENTS: Final = frozenset(
    {"PubmedArticleSet", "PubmedBookArticleSet", "MedlineCitationSet", "BookDocumentSet"}
)
_CITATION_ELEMENTS: Final = frozenset({"PubmedArticle", "MedlineCitation"})
_BOOK_ELEMENTS: Final = frozenset({"PubmedBookArticle", "BookDocument"})
_DELETION_ELEMENTS: Final = frozenset({"DeleteCitation", "DeleteDocument"})
_BATCH_RECORDS: Final = 16
"""Records that are checked and parsed together: few enough to stay in a core's cache."""

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
        self._keep_books = config.keep_books
        self.decoding_report = DecodingReport()
        self.filter_names = FilterNames(config.list_filter_names())

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
                check_length(xml)
                if element in _CITATION_ELEMENTS:
                    parsed.append(parse_citation(xml, is_checked, self._columns))
                elif element in _BOOK_ELEMENTS and self._keep_books:
                    parsed.append(parse_book(xml, self._columns))
                else:
                    parsed.append(_parse_keys(element, xml))
            except BadRecordError as error:
                # A copy: the traceback of the error leads to this list, and nothing collects such a cycle.
                parsed.append(BadRecordError(error.reason, error.detail))
        return parsed

    def _make_record(self, file: str, position: int, xml: bytes, parsed: _ParsedRecord) -> SourceRecord:
        if isinstance(parsed, Citation):
            self._add_filter_names(parsed)
            drop_reason, document = self._document_builder.build_document(parsed, file, position)
            keys = [VersionKey(parsed.pmid, parsed.version, False, drop_reason)]
            return SourceRecord(position, file, xml, keys, document)
        if isinstance(parsed, BadRecordError):
            return SourceRecord(position, file, xml, [], error=parsed)
        return SourceRecord(position, file, xml, parsed)

    def _add_filter_names(self, citation: Citation) -> None:
        columns, kinds = citation.columns, self.filter_names.kinds
        if "journals" in kinds:
            names = list_journal_names(citation.journal, citation.issns, columns)
            self.filter_names.add("journals", names)
        if "mesh" in kinds:
            self.filter_names.add("mesh", [heading.descriptor for heading in columns.mesh])


def _parse_keys(element: str, xml: bytes) -> list[VersionKey]:
    """Return the keys of a record that is no citation.

    Raises:
        BadRecordError: it is none of PubMed's records, or has no valid PMID.
    """
    if element in _DELETION_ELEMENTS:
        return [VersionKey(pmid, version, True, None) for pmid, version in parse_pmids(xml)]
    if element in _BOOK_ELEMENTS:
        book_pmids = parse_pmids(xml)
        if not book_pmids:
            raise BadRecordError("no-pmid", "a book record without a PMID")
        return [VersionKey(*book_pmids[0], False, "book")]
    raise BadRecordError("unexpected-element", f"<{element}> is none of PubMed's records")


def iter_records(file: ByteStream, report: DecodingReport | None = None) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` for each record of an open ``.xml`` or ``.xml.gz``, in order.

    Raises:
        BadFileError: the file as a whole is unusable. Callers must discard the records read so far.
    """
    blocks = decode_xml(file, report)
    root = element_stream.read_root(blocks)
    if root.name in _CITATION_ELEMENTS | _BOOK_ELEMENTS | _DELETION_ELEMENTS:
        yield from element_stream.iter_root(root, blocks, MAX_RECORD_BYTES)
    elif root.name in ROOT_ELEMENTS:
        yield from element_stream.iter_children(root, blocks, MAX_RECORD_BYTES)
    else:
        detail = f"its root is <{root.name}>, not PubMed's {sorted(ROOT_ELEMENTS)}"
        raise BadFileError("wrong-root", detail + element_stream.suggest_pipeline(root.name))


_NUMBER_ALONE = re.compile(r"(?:\d{1,2}[a-z]?|[IVX]{1,4}[ab]?)\.?")
"""A text that says nothing without its label: "Level of evidence: 4."."""
_MAX_NUMBER_ALONE: Final = 6


class CitationDocumentBuilder:
    """Builder of documents with a fixed config; create one per process.

    Raises:
        MissingExtraError: the config needs a library that is not installed.
    """

    def __init__(self, config: PubMedConfig) -> None:
        self._config = config
        self._cleaner = Cleaner(config.cleaning)
        self._split = load_splitter(config.splitter)
        self._line_formatter = config.make_line_formatter()

    def build_document(self, citation: Citation, file: str, position: int) -> tuple[str | None, Document]:
        """Build the document of a citation and apply the filters.

        Args:
            citation: the parsed record.
            file: name of the source file.
            position: 0-based index of the record in the file.

        Returns:
            (drop reason or None, document). The document is complete in both cases, so that it can be stored.
        """
        config, split, line_formatter = self._config, self._split, self._line_formatter
        removed_characters: dict[str, int] = {}
        title = collapse_whitespace(self._cleaner.clean_title(citation.title, removed_characters))
        sentences = split(title) if config.titles else []
        num_words = count_line_words(title) if config.titles else 0
        if line_formatter:
            sentences = line_formatter(sentences, removed_characters)
        sections: list[tuple[str, int]] = []
        section_labels: list[str | None] = []
        abstract: list[str] = []
        part, citation_sections = self._choose_abstract(citation)
        for label, text in self._cleaner.clean_abstract(citation_sections, removed_characters):
            text = collapse_whitespace(text)
            if not text:
                continue
            abstract.append(text)
            num_words += count_line_words(text)
            heading = part
            if label is not None:
                label = collapse_whitespace(label)
                heading = f"{part}{HEADING_SEPARATOR}{label}"
                if config.section_labels or (
                    len(text) <= _MAX_NUMBER_ALONE and _NUMBER_ALONE.fullmatch(text)
                ):
                    text = f"{label}: {text}"
                    num_words += count_line_words(label)
            new_sentences = split(text)
            if line_formatter:
                new_sentences = line_formatter(new_sentences, removed_characters)
            if new_sentences:
                sections.append((heading, len(sentences)))
                section_labels.append(label)
                sentences += new_sentences
        columns = citation.columns
        if any(citation.abstract_categories):
            categories = self._choose_categories(citation, section_labels)
            columns = columns._replace(section_categories=categories)
        document = Document(
            id=f"pubmed:{citation.pmid}",
            source="pubmed",
            pmid=citation.pmid,
            pmcid=citation.pmcid,
            doi=citation.doi,
            version=citation.version,
            year=citation.year,
            journal=citation.journal,
            article_type=None,
            language=",".join(map(to_marc_code, citation.languages)) or None,
            licence=None,
            retracted=citation.retracted,
            flags=["book"] if citation.is_book else [],
            title=title,
            sentences=sentences,
            sections=sections,
            file=file,
            position=position,
            num_words=count_line_words(" ".join(sentences)),
            num_characters=sum(map(len, sentences)),
            removed_characters=removed_characters,
            columns=columns,
        )
        return find_drop_reason(citation, config, document, abstract, num_words), document

    def _choose_abstract(self, citation: Citation) -> tuple[str, tuple[AbstractSection, ...]]:
        """Return heading and sections of the abstract, or of the first other abstract of a chosen type."""
        if not citation.abstract:
            for other in citation.other_abstracts:
                if (
                    other.type in self._config.other_abstract_types
                    and other.language == "eng"
                    and any(section.text.strip() for section in other.sections)
                ):
                    return f"Abstract ({other.type})", other.sections
        return "Abstract", citation.abstract

    def _choose_categories(
        self, citation: Citation, section_labels: list[str | None]
    ) -> tuple[str | None, ...]:
        """Return the category of each section by its label; a label that stood in the text has none."""
        category_by_label: dict[str | None, str | None] = {}
        for section, category in zip(citation.abstract, citation.abstract_categories, strict=True):
            label = section.label
            if label is not None:
                label = collapse_whitespace(label if label.isascii() else self._cleaner.clean_text(label, {}))
            category_by_label.setdefault(label, category)
        return tuple([category_by_label.get(label) for label in section_labels])
