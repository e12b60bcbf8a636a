"""Cut a file of full text into its articles, streaming.

One article is a file of its own in PMC's bucket; E-utilities' efetch puts several into a
``<pmc-articleset>``, Europe PMC's packages 10,000 into ``<articles>`` (1 GB), and PMC's OAI-PMH
service wraps each twice in a record.  Articles are cut by their tags, so one that is not
well-formed costs nothing but itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml import element_stream
from bioshards.corpus.xml.decoder import ByteStream, decode_xml
from bioshards.corpus.xml.element_stream import RootElement

MAX_ARTICLE_BYTES: Final = 64 << 20
"""Largest article.  Real ones have 0.2 MB on average; the few of tens of MB are tables and scanned text."""

_CHILDREN_BY_CONTAINER: Final[Mapping[str, frozenset[str]]] = {
    "pmc-articleset": frozenset({"article"}),
    "articles": frozenset({"article"}),
    "OAI-PMH": frozenset({"GetRecord", "ListRecords"}),
    "GetRecord": frozenset({"record"}),
    "ListRecords": frozenset({"record"}),
    "record": frozenset({"metadata"}),
    "metadata": frozenset({"article"}),
}
"""Elements that hold articles, or what holds them, with what they hold."""
_ROOT_ELEMENTS: Final = frozenset({"article", "pmc-articleset", "articles", "OAI-PMH"})
_SERVER_MESSAGES: Final = frozenset(
    {"error", "Reply", "responseDate", "request", "header", "about", "resumptionToken"}
)
"""What servers put beside articles.  efetch answers for an article that it has not, with status 200:

    <pmc-articleset><error id="1">The following PMCID is not available: 1</error></pmc-articleset>

(until about 2016 ``<Reply Id="1" error="The following PMCID is not available: 1"/>``; described, for
instance, at https://github.com/neuroquery/pubget/issues/20).  The others are OAI-PMH 2.0's,
https://www.openarchives.org/OAI/openarchivesprotocol.html.
"""


def iter_articles(file: ByteStream) -> Iterator[bytes]:
    """Yield each article of an open ``.xml``, ``.nxml`` or ``.xml.gz``, in order.

    An article is its element's bytes in UTF-8, without XML declaration, DOCTYPE, comments and
    processing instructions, CDATA as text.  Namespaces that it uses and what holds it declares are
    declared in it, so that it can be parsed alone.

    An element beside articles that is neither an article nor a notice of the server's is handed on too:
    the reader of articles will refuse it, so that it is counted and kept.

    Raises:
        BadFileError: what is wrong with the file as a whole, at the point where it shows; callers must
            drop what they have had from it so far.
    """
    blocks = decode_xml(file)
    root = element_stream.read_root(blocks)
    name = _local_name(root.name)
    if name not in _ROOT_ELEMENTS:
        raise BadFileError("wrong-root", f"its root is <{root.name}>, none of {sorted(_ROOT_ELEMENTS)}")
    if name == "article":
        yield _read_single_article(root, blocks)
    else:
        yield from _iter_nested_articles(root, blocks, {})


def _read_single_article(root: RootElement, blocks: Iterator[bytes]) -> bytes:
    """The article that is a whole file: it ends where the file does, so its end is not searched for.

    (Two articles one after the other come as one, which no XML parser takes.)
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
) -> Iterator[bytes]:
    """The articles in a holder; ``outer_namespaces``: the namespaces declared outside it."""
    namespaces = outer_namespaces | _parse_namespaces(root.attributes)
    child_names = _CHILDREN_BY_CONTAINER[_local_name(root.name)]
    for element_name, xml in element_stream.iter_children(root, blocks, MAX_ARTICLE_BYTES):
        name = _local_name(element_name)
        if name in child_names and name in _CHILDREN_BY_CONTAINER:
            inner_blocks = iter((xml,))
            yield from _iter_nested_articles(element_stream.read_root(inner_blocks), inner_blocks, namespaces)
        elif name not in _SERVER_MESSAGES:
            yield _add_namespaces(xml, namespaces) if namespaces else xml


def _local_name(name: str) -> str:
    return name.rpartition(":")[2]


_NAMESPACE_DECLARATION = re.compile(rb"""\s(xmlns(?::[^\s=]+)?)\s*+=\s*+("[^"]*"|'[^']*')|"[^"]*"|'[^']*'""")


def _parse_namespaces(attributes: bytes) -> dict[bytes, bytes]:
    """A start tag's namespace declarations: attribute name to value, in its quotes."""
    return {match[1]: match[2] for match in _NAMESPACE_DECLARATION.finditer(attributes) if match[1]}


def _add_namespaces(xml: bytes, namespaces: dict[bytes, bytes]) -> bytes:
    """The element with these declarations, but for those that its start tag has its own of."""
    start_tag = element_stream.START_TAG.match(xml)
    assert start_tag is not None, "xml_records cuts elements by this pattern"
    own_namespaces = _parse_namespaces(start_tag[2])
    declarations = [
        b" " + name + b"=" + value for name, value in namespaces.items() if name not in own_namespaces
    ]
    return b"".join([xml[: start_tag.end(1)], *declarations, xml[start_tag.end(1) :]])
