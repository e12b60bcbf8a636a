"""Cut a PubMed XML file into its records, streaming.

A baseline file is 150-700 MB of XML of which a corpus needs a tenth.  Building a tree of all of it
is most of what other readers spend their time on, so this module finds where each record begins and
ends and hands its bytes on, unparsed.  That is exact, not a guess, because of what XML forbids: a
``<`` in content always opens a tag (elsewhere it is written ``&lt;``), except in comments,
processing instructions and CDATA sections, which xml_blocks.py takes out first.

A DOCTYPE with declarations of its own (the place of entity bombs) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from .xml_blocks import BadFile, Readable, plain_xml

MAX_RECORD_BYTES: Final = 32 << 20
"""Largest record.  Real ones with thousands of references stay below 2 MB."""

ROOTS: Final = frozenset(
    {"PubmedArticleSet", "PubmedBookArticleSet", "MedlineCitationSet", "BookDocumentSet"}
)
RECORDS: Final = frozenset(
    {
        "PubmedArticle",
        "MedlineCitation",
        "PubmedBookArticle",
        "BookDocument",
        "DeleteCitation",
        "DeleteDocument",
    }
)


def records(file: Readable) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` for each record of an open ``.xml`` or ``.xml.gz``, in order.

    Raises:
        BadFile: what is wrong with the file as a whole, at the point where it shows; callers must
            drop what they have had from it so far.
    """
    blocks = plain_xml(file)
    root, head = _prolog(blocks)
    yield from _cut(head, blocks, root)


_DOCTYPE = re.compile(rb"""<!DOCTYPE(?:[^\["'>]|"[^"]*"|'[^']*')*+([\[>])""")
_ATTRIBUTES = rb"""(?:\s++[^\s=<>"'/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+"""
_ROOT = re.compile(rb"<([A-Za-z_][\w.-]*+)(" + _ATTRIBUTES + rb")(/?)>")
_PROLOG_BYTES: Final = 1 << 16


def _prolog(blocks: Iterator[bytes]) -> tuple[str | None, bytes]:
    """Read up to the root: its name (None where it is a record itself) and the bytes after its tag."""
    head = b""
    for block in blocks:
        head = (head + block).lstrip()
        doctype = _DOCTYPE.match(head)
        if doctype and doctype[1] == b"[":
            raise BadFile(
                "dtd-declarations",
                "its DOCTYPE carries declarations of its own, which PubMed's files never do and "
                "entity bombs need; it is not read",
            )
        start = head[doctype.end() :].lstrip() if doctype else head
        root = _ROOT.match(start)
        if root:
            name = root[1].decode()
            if name in RECORDS:
                return None, start
            if name not in ROOTS:
                raise BadFile("wrong-root", f"its root is <{name}>, not PubMed's {sorted(ROOTS)}")
            if root[3]:
                return name, b"</" + root[1] + b">" + start[root.end() :]
            return name, start[root.end() :]
        if len(head) > _PROLOG_BYTES or head[:1] not in (b"<", b""):
            break
    if not head:
        raise BadFile("not-xml", "there is no element in it")
    raise BadFile("not-xml", f"it does not begin as XML does: {head[:60]!r}")


_TAG = re.compile(rb"\s*+<(/?)([A-Za-z_][\w.-]*+)" + _ATTRIBUTES + rb"(/?)>")
_TEXT = re.compile(rb"\s*+[^\s<]")


def _cut(buffer: bytes, blocks: Iterator[bytes], root: str | None) -> Iterator[tuple[str, bytes]]:
    position = 0
    while True:
        tag = _TAG.match(buffer, position)
        end = 0
        if tag:
            name = tag[2].decode()
            if tag[1]:
                if name != root:
                    raise BadFile("malformed-xml", f"</{name}> closes nothing")
                _nothing_more(buffer[tag.end() :], blocks)
                return
            end = tag.end() if tag[3] else _end(buffer, tag.end(), tag[2])
            if end:
                yield name, buffer[tag.start(2) - 1 : end]
                position = end
                if root is None:
                    _nothing_more(buffer[end:], blocks)
                    return
                continue
        elif text := _TEXT.match(buffer, position):
            stray = buffer[text.end() - 1 : text.end() + 59]
            raise BadFile("malformed-xml", f"text between two records: {stray!r}")
        rest = buffer[position:]
        if len(rest) > MAX_RECORD_BYTES:
            raise BadFile("record-too-long", f"no end of a record in {MAX_RECORD_BYTES >> 20} MiB")
        block = next(blocks, None)
        if block is None:
            raise BadFile("truncated-xml", f"ends before </{root or 'the record'}>: {rest[:60]!r}")
        buffer, position = rest + block, 0


_CLOSE = re.compile(rb"\s*+>")


def _end(buffer: bytes, start: int, name: bytes) -> int:
    """Offset after the end tag of this name; 0 where the buffer does not hold it."""
    close = b"</" + name
    # Most records are short, and CPython searches up to 30,000 bytes without building tables first.
    at = buffer.find(close, start, start + 29_000)
    if at < 0:
        at = buffer.find(close, start)
    while at >= 0:
        end = _CLOSE.match(buffer, at + len(close))
        if end:
            return end.end()
        at = buffer.find(close, at + 1)
    return 0


def _nothing_more(rest: bytes, blocks: Iterator[bytes]) -> None:
    while True:
        if rest.strip():
            raise BadFile("malformed-xml", f"content after the root's end: {rest.strip()[:60]!r}")
        block = next(blocks, None)
        if block is None:
            return
        rest = block
