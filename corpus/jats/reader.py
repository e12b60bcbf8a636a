"""Read a full-text source: extract its articles from files and archives, and build their documents."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import BinaryIO, Final, NamedTuple

import pyarrow as pa

from bioshards.corpus.archives import iter_members
from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.jats import article_stream
from bioshards.corpus.jats.article_metadata import ListedMetadata
from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.inputs import ARTICLE_LIST_EXTENSION, is_archive, is_article_list
from bioshards.corpus.source_record import DAMAGED_COPY, SourceRecord
from bioshards.corpus.storage.checksums import md5_of_file
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.parquet_file import open_parquet
from bioshards.corpus.storage.source_file import SourceFile, open_source
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.xml.decoder import ByteStream, DecodingReport, check_ratio
from bioshards.corpus.xml.element_stream import check_length

_MIRROR_FILE_NAME: Final = re.compile(r"PMC\d{1,10}\.\d{1,4}-[0-9a-f]{8}\.xml", re.ASCII)
"""File name of an article in a mirror (download/pmc/)."""
_PREFETCH_BYTES: Final = 4_000_000
"""Bytes prefetched of a file; larger files are read again. Articles have 0.2 MB on average."""


class _ArticleFile(NamedTuple):
    """A file of a single article, or the error that makes it unreadable.

    Attributes:
        listed: PMC's metadata of the article, if a mirror lists it.
    """

    name: str
    path: str = ""
    listed: ListedMetadata | None = None
    error: BadRecordError | None = None


class _RawArticle(NamedTuple):
    """The bytes of an article, or the error that makes it unreadable.

    Attributes:
        listed: PMC's metadata of the article, if a mirror lists it.
    """

    file: str
    xml: bytes = b""
    error: BadRecordError | None = None
    listed: ListedMetadata | None = None


class ArticleReader:
    """Reader of full-text sources with a fixed config.

    Args:
        config: filters and text settings.
        keep_dropped: also build documents of articles that the metadata filters drop.

    Raises:
        MissingExtraError: the config needs a library that is not installed.
    """

    def __init__(self, config: PmcConfig, keep_dropped: bool) -> None:
        self._document_builder = ArticleDocumentBuilder(config)
        self._keep_dropped = keep_dropped
        self.decoding_report = DecodingReport()
        self.filter_names = self._document_builder.filter_names

    def read_records(self, storage: Storage, source: SourceFile) -> Iterator[SourceRecord]:
        """Yield the articles of the source, in order.

        Raises:
            BadFileError: a package or an archive as a whole is unusable.
        """
        for position, article in enumerate(_iter_articles(storage, source, self.decoding_report)):
            if article.error:
                yield SourceRecord(position, article.file, article.xml, [], error=article.error)
                continue
            try:
                check_length(article.xml)
                key, document = self._document_builder.read_article(
                    article.xml, article.file, position, article.listed, self._keep_dropped
                )
            except BadRecordError as error:
                yield SourceRecord(position, article.file, article.xml, [], error=error)
            except RecursionError:
                too_deep = BadRecordError("too-deep", "its elements are nested too deeply to be read")
                yield SourceRecord(position, article.file, article.xml, [], error=too_deep)
            else:
                yield SourceRecord(position, article.file, article.xml, [key], document)


def _iter_articles(storage: Storage, source: SourceFile, report: DecodingReport) -> Iterator[_RawArticle]:
    if source.parts:
        entries = [_ArticleFile(part.name, part.path) for part in source.parts]
        yield from _iter_articles_of_files(storage, entries, report)
    elif is_article_list(source.path):
        yield from _iter_articles_of_files(storage, _read_article_list(storage, source), report)
    elif is_archive(source.name):
        with open_source(storage, source.path) as archive:
            yield from _iter_articles_of_archive(archive, source.name, report)
    else:
        with open_source(storage, source.path) as package:
            for xml in article_stream.iter_articles(package, report, source.name):
                yield _RawArticle(source.name, xml)


def _iter_articles_of_files(
    storage: Storage, entries: list[_ArticleFile], report: DecodingReport
) -> Iterator[_RawArticle]:
    """Yield the articles of many files; an unusable file is rejected alone."""

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
                if entry.listed:
                    _check_md5(entry.name, file)
                for xml in _iter_at_least_one(file, report, entry.name):
                    yield _RawArticle(entry.name, xml, listed=entry.listed)
        except BadFileError as error:
            yield _RawArticle(entry.name, error=BadRecordError(error.reason, error.detail))


def _iter_at_least_one(file: ByteStream, report: DecodingReport, name: str) -> Iterator[bytes]:
    """Yield the articles of a file.

    Raises:
        BadFileError: there is none, or the file is unusable.
    """
    has_article = False
    for xml in article_stream.iter_articles(file, report, name):
        has_article = True
        yield xml
    if not has_article:
        raise BadFileError("no-article", "it has no article")


def _check_md5(name: str, file: BinaryIO) -> None:
    """Compare the MD5 of a mirror's article with the beginning of it in the file name.

    Raises:
        BadFileError: they differ.
    """
    md5 = md5_of_file(file)
    if not name.endswith(f"-{md5[:8]}.xml"):
        raise BadFileError(
            DAMAGED_COPY, f"the mirror's copy is damaged, its MD5 is {md5}: delete it and fetch it again"
        )
    file.seek(0)


def _read_article_list(storage: Storage, source: SourceFile) -> list[_ArticleFile]:
    """Return the article files that a mirror's list of a range contains."""
    columns = [*ListedMetadata._fields, "file"]
    with open_source(storage, source.path) as file:
        try:
            parquet = open_parquet(file)
            groups = range(parquet.num_row_groups)
            check_ratio(source.size, sum(parquet.metadata.row_group(i).total_byte_size for i in groups))
            rows = parquet.read(columns).select(columns).to_pylist()
        except (pa.ArrowException, KeyError) as error:
            raise BadFileError("not-a-list", f"not a mirror's list of articles: {error}") from error
    mirror_folder, _, range_name = source.path.removesuffix(ARTICLE_LIST_EXTENSION).rpartition(
        "/pmc/selected/"
    )
    entries = []
    for row in rows:
        name = row.pop("file")
        if _MIRROR_FILE_NAME.fullmatch(name):
            path = f"{mirror_folder}/pmc/xml/{range_name}/{name}"
            entries.append(_ArticleFile(name, path, ListedMetadata(**row)))
        else:
            name_error = BadRecordError("hostile-name", f"invalid file name in the list: {name[:200]!r}")
            entries.append(_ArticleFile(source.name, error=name_error))
    return entries


def _iter_articles_of_archive(
    file: ByteStream, archive_name: str, report: DecodingReport, is_nested: bool = False
) -> Iterator[_RawArticle]:
    """Yield the articles of an archive and of the archives in it.

    XML with another root, as of a supplement, is another file, unless the archive has no article.

    Raises:
        BadFileError: the archive is damaged. Callers must discard the articles read so far.
    """
    has_article = False
    others = []
    for member in iter_members(file, archive_name, report.skipped_entries, is_nested):
        name = f"{archive_name}/{member.name}"
        is_read = False
        try:
            if member.error:
                yield _RawArticle(name, error=member.error)
            elif is_archive(member.name):
                for article in _iter_articles_of_archive(member, name, report, is_nested=True):
                    is_read = True
                    has_article |= article.error is None
                    yield article
            else:
                for xml in _iter_at_least_one(member, report, name):
                    yield _RawArticle(name, xml)
                has_article = True
        except BadFileError as error:  # a damaged archive raises at the next member
            if is_read:
                raise
            rejected = _RawArticle(name, error=BadRecordError(error.reason, error.detail))
            if error.reason == article_stream.WRONG_ROOT:
                others.append(rejected)
            else:
                yield rejected
    if has_article and others:
        report.skipped_entries["other file"] += len(others)
    else:
        yield from others
