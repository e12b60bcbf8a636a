"""Split a full-text file into articles, streaming.

PMC's bucket has one article per file. E-utilities' efetch wraps several in ``<pmc-articleset>``, Europe PMC's
packages 10,000 in ``<articles>`` (1 GB), PMC's OAI-PMH service each in two elements of a record. Articles
are split at their tags, so that a malformed one affects only itself.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from typing import Final

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml import element_stream
from bioshards.corpus.xml.decoder import ByteStream, DecodingReport, decode_xml
from bioshards.corpus.xml.element_stream import RootElement

MAX_ARTICLE_BYTES: Final = 64 << 20
"""Largest article. The mean is 0.2 MB; the few with tens of MB are tables and scanned text."""

WRONG_ROOT: Final = "wrong-root"
"""Reason of a file that is XML, but no article."""

_CHILDREN_BY_CONTAINER: Final[Mapping[str, frozenset[str]]] = {
    "pmc-articleset": frozenset({"article"}),
    "articles": frozenset({"article"}),
    "OAI-PMH": frozenset({"GetRecord", "ListRecords"}),
    "GetRecord": frozenset({"record"}),
    "ListRecords": frozenset({"record"}),
    "record": frozenset({"metadata"}),
    "metadata": frozenset({"article"}),
}
"""Container elements, with the children that contain articles."""
_ROOT_ELEMENTS: Final = frozenset({"article", "pmc-articleset", "articles", "OAI-PMH"})
SERVER_ERRORS: Final = frozenset({"error", "Reply"})
"""Elements by which servers say that an article is not there. efetch does so with status 200:

    <pmc-articleset><error id="1">The following PMCID is not available: 1</error></pmc-articleset>

(until about 2016 ``<Reply Id="1" error="The following PMCID is not available: 1"/>``; see
https://github.com/neuroquery/pubget/issues/20).
"""
_SERVER_MESSAGES: Final = frozenset({"responseDate", "request", "header", "about", "resumptionToken"})
"""Other elements of OAI-PMH 2.0, https://www.openarchives.org/OAI/openarchivesprotocol.html."""


_RESUMPTION_TOKEN = re.compile(rb"<(?:\w+:)?resumptionToken\b[^<>]*>\s*+[^<\s]")
"""The name of the next page of a list.  It is empty on the last page."""
_DELETED_RECORD = re.compile(rb"<[^<>]*\sstatus\s*=\s*[\"']deleted[\"']")
"""The header of a record that has been withdrawn, and has no article."""


def iter_articles(file: ByteStream, report: DecodingReport | None = None, name: str = "") -> Iterator[bytes]:
    """Yield each article of an open ``.xml``, ``.nxml`` or ``.xml.gz``, in order.

    An article is its element in UTF-8, without XML declaration, DOCTYPE, comments and processing
    instructions; CDATA becomes text. Namespace declarations of its containers are added, so that it can be
    parsed alone.

    Unknown children of a container, and errors of servers, are yielded too, so that the reader rejects and
    counts them; of an article over the size limit, a :class:`~.element_stream.LongElement`.

    Args:
        report: counts a file in another encoding than it declares, and names a page of a longer list.
        name: name of the file.

    Raises:
        BadFileError: the file as a whole is unusable. Callers must discard the articles read so far.
    """
    blocks = decode_xml(file, report)
    root = element_stream.read_root(blocks)
    root_name = _local_name(root.name)
    if root_name not in _ROOT_ELEMENTS:
        detail = f"its root is <{root.name}>, none of {sorted(_ROOT_ELEMENTS)}"
        raise BadFileError(WRONG_ROOT, detail + element_stream.suggest_pipeline(root_name))
    if root_name == "article":
        yield _read_single_article(root, blocks)
    else:
        is_partial = yield from _iter_nested_articles(root, blocks, {})
        if is_partial and report:
            report.partial_lists.append(name)


def _read_single_article(root: RootElement, blocks: Iterator[bytes]) -> bytes:
    """Read an article that is the root of its file. It ends at the end of the file.

    Two concatenated articles are returned as one, which the XML parser rejects.
    """
    chunks = [root.buffer]
    size = len(root.buffer)
    for block in blocks:
        chunks.append(block)
        size += len(block)
        if size > MAX_ARTICLE_BYTES:
            raise BadFileError("record-too-long", f"its article is longer than {MAX_ARTICLE_BYTES:,} bytes")
    xml = b"".join(chunks)
    end = xml.rfind(b">") + 1
    end_tag_pattern = rb"</" + re.escape(root.name.encode()) + rb"\s*+>"
    is_closed = re.fullmatch(end_tag_pattern, xml[xml.rfind(b"<", 0, end) : end]) or (
        root.is_empty and end == root.content_start
    )
    if is_closed and not xml[end:].strip():
        return xml[root.start : end]
    if root.is_empty or re.search(end_tag_pattern, xml):
        raise BadFileError("malformed-xml", f"content after the root's end: {xml[-60:]!r}")
    raise BadFileError("truncated-xml", f"ends before </{root.name}>: {xml[-60:]!r}")


def _iter_nested_articles(
    root: RootElement, blocks: Iterator[bytes], outer_namespaces: dict[bytes, bytes]
) -> Generator[bytes, None, bool]:
    """Yield the articles in a container, and return True if the container is a page of a longer list.

    Args:
        outer_namespaces: are declared outside of the container.
    """
    is_partial = False
    namespaces = outer_namespaces | _parse_namespaces(root.attributes)
    child_names = _CHILDREN_BY_CONTAINER[_local_name(root.name)]
    for element_name, xml in element_stream.iter_children(root, blocks, MAX_ARTICLE_BYTES):
        name = _local_name(element_name)
        if isinstance(xml, element_stream.LongElement):
            yield xml
        elif name in child_names and name in _CHILDREN_BY_CONTAINER:
            inner_blocks = iter((xml,))
            inner_root = element_stream.read_root(inner_blocks)
            is_partial |= yield from _iter_nested_articles(inner_root, inner_blocks, namespaces)
        elif name not in _SERVER_MESSAGES or _DELETED_RECORD.match(xml):
            yield _add_namespaces(xml, namespaces) if namespaces else xml
        elif _RESUMPTION_TOKEN.match(xml):
            is_partial = True
    return is_partial


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]


_NAMESPACE_DECLARATION = re.compile(rb"""\s(xmlns(?::[^\s=]+)?)\s*+=\s*+("[^"]*"|'[^']*')|"[^"]*"|'[^']*'""")


def _parse_namespaces(attributes: bytes) -> dict[bytes, bytes]:
    """Return the namespace declarations of a start tag: attribute name to quoted value."""
    return {match[1]: match[2] for match in _NAMESPACE_DECLARATION.finditer(attributes) if match[1]}


def _add_namespaces(xml: bytes, namespaces: dict[bytes, bytes]) -> bytes:
    """Add the declarations to the element, except those that its start tag has."""
    start_tag = element_stream.START_TAG.match(xml)
    assert start_tag is not None, "element_stream.py finds elements by this pattern"
    own_namespaces = _parse_namespaces(start_tag[2])
    declarations = [
        b" " + name + b"=" + value for name, value in namespaces.items() if name not in own_namespaces
    ]
    return b"".join([xml[: start_tag.end(1)], *declarations, xml[start_tag.end(1) :]])
