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

from . import xml_records
from .errors import BadFileError
from .xml_blocks import Readable, plain_xml
from .xml_records import Root

MAX_ARTICLE_BYTES: Final = 64 << 20
"""Largest article.  Real ones have 0.2 MB on average; the few of tens of MB are tables and scanned text."""

_HOLDERS: Final[Mapping[str, frozenset[str]]] = {
    "pmc-articleset": frozenset({"article"}),
    "articles": frozenset({"article"}),
    "OAI-PMH": frozenset({"GetRecord", "ListRecords"}),
    "GetRecord": frozenset({"record"}),
    "ListRecords": frozenset({"record"}),
    "record": frozenset({"metadata"}),
    "metadata": frozenset({"article"}),
}
"""Elements that hold articles, or what holds them, with what they hold."""
_ROOTS: Final = frozenset({"article", "pmc-articleset", "articles", "OAI-PMH"})
_NOTICES: Final = frozenset(
    {"error", "Reply", "responseDate", "request", "header", "about", "resumptionToken"}
)
"""What servers put beside articles.  efetch answers for an article that it has not, with status 200:

    <pmc-articleset><error id="1">The following PMCID is not available: 1</error></pmc-articleset>

(until about 2016 ``<Reply Id="1" error="The following PMCID is not available: 1"/>``; described, for
instance, at https://github.com/neuroquery/pubget/issues/20).  The others are OAI-PMH 2.0's,
https://www.openarchives.org/OAI/openarchivesprotocol.html.
"""


def articles(file: Readable) -> Iterator[bytes]:
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
    blocks = plain_xml(file)
    root = xml_records.root(blocks)
    name = _local(root.name)
    if name not in _ROOTS:
        raise BadFileError("wrong-root", f"its root is <{root.name}>, none of {sorted(_ROOTS)}")
    if name == "article":
        yield _alone(root, blocks)
    else:
        yield from _held(root, blocks, {})


def _alone(root: Root, blocks: Iterator[bytes]) -> bytes:
    """The article that is a whole file: it ends where the file does, so its end is not searched for.

    (Two articles one after the other come as one, which no XML parser takes.)
    """
    parts = [root.text]
    size = len(root.text)
    for block in blocks:
        parts.append(block)
        size += len(block)
        if size > MAX_ARTICLE_BYTES:
            raise BadFileError("record-too-long", f"its article is longer than {MAX_ARTICLE_BYTES:,} bytes")
    text = b"".join(parts)
    end = text.rfind(b">") + 1
    close = rb"</" + re.escape(root.name.encode()) + rb"\s*+>"
    closed = re.fullmatch(close, text[text.rfind(b"<", 0, end) : end]) or (root.empty and end == root.content)
    if closed and not text[end:].strip():
        return text[root.start : end]
    if root.empty or re.search(close, text):
        raise BadFileError("malformed-xml", f"content after the root's end: {text[-60:]!r}")
    raise BadFileError("truncated-xml", f"ends before </{root.name}>: {text[-60:]!r}")


def _held(root: Root, blocks: Iterator[bytes], outer: dict[bytes, bytes]) -> Iterator[bytes]:
    """The articles in a holder; ``outer``: the namespaces declared outside it."""
    namespaces = outer | _namespaces(root.attributes)
    holds = _HOLDERS[_local(root.name)]
    for tag, xml in xml_records.inside(root, blocks, MAX_ARTICLE_BYTES):
        name = _local(tag)
        if name in holds and name in _HOLDERS:
            inner = iter((xml,))
            yield from _held(xml_records.root(inner), inner, namespaces)
        elif name not in _NOTICES:
            yield _declaring(xml, namespaces) if namespaces else xml


def _local(name: str) -> str:
    return name.rpartition(":")[2]


_NAMESPACE = re.compile(rb"""\s(xmlns(?::[^\s=]+)?)\s*+=\s*+("[^"]*"|'[^']*')|"[^"]*"|'[^']*'""")


def _namespaces(attributes: bytes) -> dict[bytes, bytes]:
    """A start tag's namespace declarations: attribute name to value, in its quotes."""
    return {found[1]: found[2] for found in _NAMESPACE.finditer(attributes) if found[1]}


def _declaring(xml: bytes, namespaces: dict[bytes, bytes]) -> bytes:
    """The element with these declarations, but for those that its start tag has its own of."""
    tag = xml_records.START.match(xml)
    assert tag is not None, "xml_records cuts elements by this pattern"
    own = _namespaces(tag[2])
    added = [b" " + name + b"=" + value for name, value in namespaces.items() if name not in own]
    return b"".join([xml[: tag.end(1)], *added, xml[tag.end(1) :]])
