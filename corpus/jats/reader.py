"""Read a source of full text: its articles, from files and archives, shaped into documents."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from bioshards.corpus.archives import members
from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.source_record import SourceRecord, VersionKey
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage

from . import article_metadata, article_stream, text_blocks, xml_tree
from .article_metadata import ArticleMetadata
from .document_builder import ArticleDocumentBuilder, identify_article
from .filters import PmcConfig
from .inputs import ARTICLE_LIST_EXTENSION

_MIRROR_FILE_NAME: Final = re.compile(r"PMC\d{1,10}\.\d{1,4}-[0-9a-f]{8}\.xml", re.ASCII)
"""How download/pmc.py names an article in the mirror."""
_PREFETCH_BYTES: Final = 4_000_000
"""Bytes of a file that is read ahead of its turn; of a larger one these are read twice.  Articles have 0.2 MB
on average."""


class _ArticleFile(NamedTuple):
    """One of many files, or why it is not to be read; ``listed`` is what PMC's metadata say of it."""

    name: str
    path: str = ""
    list_row: dict[str, Any] | None = None
    error: BadRecordError | None = None


class _RawArticle(NamedTuple):
    """An article's bytes, or why it has none; ``listed`` is what PMC's metadata say of it."""

    file: str
    xml: bytes = b""
    error: BadRecordError | None = None
    list_row: dict[str, Any] | None = None


class ArticleReader:
    """Reads sources of full text by one set of rules.

    Args:
        keep_dropped: make documents of those articles too that their front matter drops.

    Raises:
        MissingExtraError: the rules need a library that is not installed.
    """

    def __init__(self, config: PmcConfig, keep_dropped: bool) -> None:
        self._config, self._keep_dropped = config, keep_dropped
        self._document_builder = ArticleDocumentBuilder(config)

    def read_records(self, storage: Storage, source: SourceFile) -> Iterator[SourceRecord]:
        """The source's articles, in order.

        Raises:
            BadFileError: a package or an archive as a whole cannot be used.
        """
        for position, article in enumerate(_iter_raw_articles(storage, source)):
            if article.error:
                yield SourceRecord(position, article.file, article.xml, [], error=article.error)
                continue
            try:
                key, document = self._read_article(article, position)
            except BadRecordError as error:
                yield SourceRecord(position, article.file, article.xml, [], error=error)
            except RecursionError:
                too_deep = BadRecordError("too-deep", "its elements are nested too deeply to be read")
                yield SourceRecord(position, article.file, article.xml, [], error=too_deep)
            else:
                yield SourceRecord(position, article.file, article.xml, [key], document)

    def _read_article(self, article: _RawArticle, position: int) -> tuple[VersionKey, Document | None]:
        tree = xml_tree.parse_article(article.xml, flatten=self._config.author_year_citations)
        if tree.tag != "article":
            raise BadRecordError("unexpected-element", f"<{tree.tag}> is no article")
        metadata = article_metadata.parse_metadata(tree)
        if article.list_row:
            metadata = _update_from_list_row(metadata, article.list_row)
        has_body = text_blocks.has_body(tree)
        _, article_number = identify_article(metadata)
        drop_reason = self._document_builder.find_drop_reason(metadata, has_body)
        document = None
        if drop_reason is None or self._keep_dropped:
            blocks = text_blocks.extract_blocks(
                tree,
                formula_placeholder=self._config.formula_placeholder,
                author_year_citations=self._config.author_year_citations,
            )
            text_drop_reason, document = self._document_builder.build_document(
                metadata, has_body, blocks, article.file, position
            )
            drop_reason = drop_reason or text_drop_reason
        return VersionKey(article_number, metadata.version, False, drop_reason), document


def _update_from_list_row(metadata: ArticleMetadata, list_row: dict[str, Any]) -> ArticleMetadata:
    """The front matter with what PMC's metadata know better: they are kept current, XML is not."""
    return metadata._replace(
        pmcid=f"PMC{list_row['pmcid']}",
        version=list_row["version"],
        pmid=list_row["pmid"] or metadata.pmid,
        doi=list_row["doi"] or metadata.doi,
        licence=list_row["licence"] if list_row["licence"] != "unknown" else metadata.licence,
        retracted=metadata.retracted or bool(list_row["retracted"]),
        manuscript=metadata.manuscript or bool(list_row["manuscript"]),
        ocr=metadata.ocr or bool(list_row["ocr"]),
    )


def _iter_raw_articles(storage: Storage, source: SourceFile) -> Iterator[_RawArticle]:
    if source.parts:
        yield from _iter_articles_of_files(
            storage, [_ArticleFile(part.name, part.path) for part in source.parts]
        )
    elif source.path.endswith(ARTICLE_LIST_EXTENSION):
        yield from _iter_articles_of_files(storage, _read_article_list(storage, source))
    elif source.name.endswith(members.ARCHIVE_EXTENSIONS):
        yield from _iter_articles_of_archive(storage, source)
    else:
        with open_source(storage, source.path) as file:
            for xml in article_stream.iter_articles(file):
                yield _RawArticle(source.name, xml)


def _iter_articles_of_files(storage: Storage, entries: list[_ArticleFile]) -> Iterator[_RawArticle]:
    """The articles of many files; if one cannot be used, that is no other file's fault."""

    def read_first_bytes(entry: _ArticleFile) -> bytes | BadFileError:
        try:
            with open_source(storage, entry.path) as file:
                return file.read(_PREFETCH_BYTES)
        except BadFileError as error:
            return error

    readable_entries = (entry for entry in entries if not entry.error)
    prefetched = prefetch_map(storage, read_first_bytes, readable_entries)
    for entry in entries:
        if entry.error:
            yield _RawArticle(entry.name, error=entry.error)
            continue
        first_bytes = next(prefetched)
        try:
            if isinstance(first_bytes, BadFileError):
                raise first_bytes
            is_whole = len(first_bytes) < _PREFETCH_BYTES
            with io.BytesIO(first_bytes) if is_whole else open_source(storage, entry.path) as file:
                for xml in article_stream.iter_articles(file):
                    yield _RawArticle(entry.name, xml, list_row=entry.list_row)
        except BadFileError as error:
            yield _RawArticle(entry.name, error=BadRecordError(error.reason, error.detail))


def _read_article_list(storage: Storage, source: SourceFile) -> list[_ArticleFile]:
    """The files of the articles that a mirror's list of a range selects."""
    columns = ["pmcid", "version", "pmid", "doi", "licence", "retracted", "manuscript", "ocr", "file"]
    with open_source(storage, source.path) as file:
        try:
            rows = pq.ParquetFile(file).read(columns).select(columns).to_pylist()
        except (pa.ArrowException, KeyError) as error:
            raise BadFileError("not-a-list", f"it is no list of a mirror's articles: {error}") from error
    mirror_folder, _, range_name = source.path.removesuffix(ARTICLE_LIST_EXTENSION).rpartition(
        "/pmc/selected/"
    )
    return [
        _ArticleFile(row["file"], f"{mirror_folder}/pmc/xml/{range_name}/{row['file']}", row)
        if _MIRROR_FILE_NAME.fullmatch(row["file"])
        else _ArticleFile(
            source.name, error=BadRecordError("hostile-name", f"it lists {row['file'][:200]!r}")
        )
        for row in rows
    ]


def _iter_articles_of_archive(storage: Storage, source: SourceFile) -> Iterator[_RawArticle]:
    with open_source(storage, source.path) as file:
        for member in members.iter_members(file, source.name):
            name = f"{source.name}/{member.name}"
            if member.error:
                yield _RawArticle(name, error=member.error)
                continue
            try:
                for xml in article_stream.iter_articles(member):
                    yield _RawArticle(name, xml)
            except BadFileError as member_error:  # a damaged archive raises at the next member
                yield _RawArticle(name, error=BadRecordError(member_error.reason, member_error.detail))
