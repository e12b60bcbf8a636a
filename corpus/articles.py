"""Read a source of full text: its articles, from files and archives, shaped into documents."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from . import archives, article_file, checksums, jats_blocks, jats_front, jats_xml
from .ahead import ahead
from .article_rules import ArticleRules
from .article_shaping import ArticleShaper, identity
from .article_sources import LIST
from .document import Document
from .errors import BadFileError, BadRecordError
from .files import LocalFiles
from .jats_front import Front
from .records import Key, Record
from .sources import Source

_IN_MIRROR: Final = re.compile(r"PMC\d{1,10}\.\d{1,4}-[0-9a-f]{8}\.xml", re.ASCII)
"""How download/pmc.py names an article in the mirror."""
_SMALL: Final = 4_000_000
"""Bytes of a file that is read ahead of its turn; of a larger one these are read twice.  Articles have 0.2 MB
on average."""


class _File(NamedTuple):
    """One of many files, or why it is not to be read; ``listed`` is what PMC's metadata say of it."""

    name: str
    path: str = ""
    listed: dict[str, Any] | None = None
    bad: BadRecordError | None = None


class _Article(NamedTuple):
    """An article's bytes, or why it has none; ``listed`` is what PMC's metadata say of it."""

    file: str
    xml: bytes = b""
    bad: BadRecordError | None = None
    listed: dict[str, Any] | None = None


class ArticleReader:
    """Reads sources of full text by one set of rules.

    Args:
        keep_dropped: make documents of those articles too that their front matter drops.

    Raises:
        MissingExtraError: the rules need a library that is not installed.
    """

    def __init__(self, rules: ArticleRules, keep_dropped: bool) -> None:
        self._rules, self._keep_dropped = rules, keep_dropped
        self._shaper = ArticleShaper(rules)

    def records(self, files: LocalFiles, source: Source) -> Iterator[Record]:
        """The source's articles, in order.

        Raises:
            BadFileError: a package or an archive as a whole cannot be used.
        """
        for position, article in enumerate(_articles(files, source)):
            if article.bad:
                yield Record(position, article.file, article.xml, [], bad=article.bad)
                continue
            try:
                key, document = self._read(article, position)
            except BadRecordError as bad:
                yield Record(position, article.file, article.xml, [], bad=bad)
            except RecursionError:
                deep = BadRecordError("too-deep", "its elements are nested too deeply to be read")
                yield Record(position, article.file, article.xml, [], bad=deep)
            else:
                yield Record(position, article.file, article.xml, [key], document)

    def _read(self, article: _Article, position: int) -> tuple[Key, Document | None]:
        tree = jats_xml.tree(article.xml, flat=self._rules.author_year)
        if tree.tag != "article":
            raise BadRecordError("unexpected-element", f"<{tree.tag}> is no article")
        front = jats_front.front(tree)
        if article.listed:
            front = _as_listed(front, article.listed)
        has_body = jats_blocks.has_body(tree)
        _, number = identity(front)
        drop = self._shaper.reason(front, has_body)
        document = None
        if drop is None or self._keep_dropped:
            blocks = jats_blocks.blocks(
                tree, formula=self._rules.formula, author_year=self._rules.author_year
            )
            unfit, document = self._shaper.document(front, has_body, blocks, article.file, position)
            drop = drop or unfit
        return Key(number, front.version, False, drop), document


def _as_listed(front: Front, listed: dict[str, Any]) -> Front:
    """The front matter with what PMC's metadata know better: they are kept current, XML is not."""
    return front._replace(
        pmcid=f"PMC{listed['pmcid']}",
        version=listed["version"],
        pmid=listed["pmid"] or front.pmid,
        doi=listed["doi"] or front.doi,
        licence=listed["licence"] if listed["licence"] != "unknown" else front.licence,
        retracted=front.retracted or bool(listed["retracted"]),
        manuscript=front.manuscript or bool(listed["manuscript"]),
        ocr=front.ocr or bool(listed["ocr"]),
    )


def _articles(files: LocalFiles, source: Source) -> Iterator[_Article]:
    if source.parts:
        yield from _of_files(files, [_File(part.name, part.path) for part in source.parts])
    elif source.path.endswith(LIST):
        yield from _of_files(files, _listed(files, source))
    elif source.name.endswith(archives.ENDINGS):
        yield from _of_archive(files, source)
    else:
        with checksums.opened(files, source.path) as file:
            for xml in article_file.articles(file):
                yield _Article(source.name, xml)


def _of_files(files: LocalFiles, those: list[_File]) -> Iterator[_Article]:
    """The articles of many files; if one cannot be used, that is no other file's fault."""

    def beginning(of: _File) -> bytes | BadFileError:
        try:
            with checksums.opened(files, of.path) as file:
                return file.read(_SMALL)
        except BadFileError as bad:
            return bad

    good = (of for of in those if not of.bad)
    beginnings = ahead(files, beginning, good)
    for of in those:
        if of.bad:
            yield _Article(of.name, bad=of.bad)
            continue
        begun = next(beginnings)
        try:
            if isinstance(begun, BadFileError):
                raise begun
            whole = len(begun) < _SMALL
            with io.BytesIO(begun) if whole else checksums.opened(files, of.path) as file:
                for xml in article_file.articles(file):
                    yield _Article(of.name, xml, listed=of.listed)
        except BadFileError as bad:
            yield _Article(of.name, bad=BadRecordError(bad.reason, bad.detail))


def _listed(files: LocalFiles, source: Source) -> list[_File]:
    """The files of the articles that a mirror's list of a range selects."""
    columns = ["pmcid", "version", "pmid", "doi", "licence", "retracted", "manuscript", "ocr", "file"]
    with checksums.opened(files, source.path) as file:
        try:
            rows = pq.ParquetFile(file).read(columns).select(columns).to_pylist()
        except (pa.ArrowException, KeyError) as error:
            raise BadFileError("not-a-list", f"it is no list of a mirror's articles: {error}") from error
    mirror, _, name = source.path.removesuffix(LIST).rpartition("/pmc/selected/")
    return [
        _File(row["file"], f"{mirror}/pmc/xml/{name}/{row['file']}", row)
        if _IN_MIRROR.fullmatch(row["file"])
        else _File(source.name, bad=BadRecordError("hostile-name", f"it lists {row['file'][:200]!r}"))
        for row in rows
    ]


def _of_archive(files: LocalFiles, source: Source) -> Iterator[_Article]:
    with checksums.opened(files, source.path) as file:
        for member in archives.members(file, source.name):
            name = f"{source.name}/{member.name}"
            if member.bad:
                yield _Article(name, bad=member.bad)
                continue
            try:
                for xml in article_file.articles(member):
                    yield _Article(name, xml)
            except (
                BadFileError
            ) as bad:  # of this member; an archive that is damaged itself says so at the next
                yield _Article(name, bad=BadRecordError(bad.reason, bad.detail))
