"""Untrusted XML, in files or zip archives: no DOCTYPE, no entities, no network, bounded sizes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from lxml import etree

from bioshards.corpus import archives
from bioshards.corpus.errors import BadFileError
from bioshards.evaluate.benchmarks.definition import BenchmarkFileError

_PARSER: Final = etree.XMLParser(
    encoding="utf-8", resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
)


def parse_xml(path: str, data: bytes) -> etree._Element:
    """Parse a UTF-8 file and return its root.

    Raises:
        BenchmarkFileError: the file is not well-formed, not UTF-8, or has a DOCTYPE.
    """
    if b"<!DOCTYPE" in data:  # in no other encoding could it be hidden: the parser takes it for UTF-8
        line = data.count(b"\n", 0, data.index(b"<!DOCTYPE")) + 1
        raise BenchmarkFileError(
            path, line, "it has a DOCTYPE, which the authors' files do not, and which is not read"
        )
    try:
        return etree.fromstring(data, _PARSER)
    except etree.XMLSyntaxError as error:
        raise BenchmarkFileError(path, error.lineno, f"it is not well-formed XML: {error.msg}") from error


def make_element_error(path: str, element: etree._Element, reason: str) -> BenchmarkFileError:
    """Return an error that names the line of an element."""
    line: Any = element.sourceline
    return BenchmarkFileError(path, line, reason)


def iter_archive(path: str) -> Iterator[tuple[str, bytes]]:
    """Yield name and content of each XML file in a zip archive.

    Raises:
        BenchmarkFileError: the archive is damaged, or a member is too large.
    """
    try:
        with open(path, "rb") as file:
            for member in archives.iter_members(file, "set.zip"):
                if member.error:
                    raise BenchmarkFileError(path, None, f"a member is not read: {member.error.detail}")
                yield member.name, member.read(archives.MAX_MEMBER_BYTES)
    except BadFileError as bad:
        raise BenchmarkFileError(path, None, f"it cannot be read as a zip archive: {bad.detail}") from bad
