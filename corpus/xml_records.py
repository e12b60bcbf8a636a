"""Cut an XML file into the elements that its root holds, streaming.

A baseline file of PubMed is 150-700 MB of XML of which a corpus needs a tenth, a package of Europe
PMC 1 GB.  Building a tree of all of it is most of what other readers spend their time on, so this
module finds where each record begins and ends and hands its bytes on, unparsed.  That is exact, not
a guess, because of what XML forbids: a ``<`` in content always opens a tag (elsewhere it is written
``&lt;``), except in comments, processing instructions and CDATA sections, which xml_blocks.py takes
out first.

A DOCTYPE with declarations of its own (the place of entity bombs) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from .errors import BadFileError

_ATTRIBUTES = rb"""(?:\s++[^\s=<>"'/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+"""
START: Final = re.compile(rb"<([A-Za-z_][\w.:-]*+)(" + _ATTRIBUTES + rb")(/?)>")
"""A start tag: its name with its prefix, its attributes, and is it empty?"""

_FIRST = re.compile(rb"\s*+" + START.pattern)
_DOCTYPE = re.compile(rb"""<!DOCTYPE(?:[^\["'>]|"[^"]*"|'[^']*')*+([\[>])""")
_PROLOG_BYTES: Final = 1 << 16
_TAG_BYTES: Final = 1 << 16


class Root(NamedTuple):
    """A file's root element: its name and attributes as written, and what has been read so far.

    Attributes:
        text: what has been read; the element begins at ``start``, its content at ``content``.
        empty: has it no content and no end tag?
    """

    name: str
    attributes: bytes
    text: bytes
    start: int
    content: int
    empty: bool


def root(blocks: Iterator[bytes]) -> Root:
    """Read up to the root's start tag; ``blocks`` are plain_xml's.

    Raises:
        BadFileError: there is none, or declarations come before it.
    """
    head = b""
    for block in blocks:
        head = (head + block).lstrip()
        doctype = _DOCTYPE.match(head)
        if doctype and doctype[1] == b"[":
            raise BadFileError(
                "dtd-declarations",
                "its DOCTYPE carries declarations of its own, which files of PubMed and PMC never do "
                "and entity bombs need; it is not read",
            )
        tag = _FIRST.match(head, doctype.end() if doctype else 0)
        if tag:
            return Root(tag[1].decode(), tag[2], head, tag.start(1) - 1, tag.end(), bool(tag[3]))
        if len(head) > _PROLOG_BYTES or head[:1] not in (b"<", b""):
            break
    if not head:
        raise BadFileError("not-xml", "there is no element in it")
    raise BadFileError("not-xml", f"it does not begin as XML does: {head[:60]!r}")


def inside(root: Root, blocks: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """``(element name, bytes)`` of each child element of the root, in order.

    Args:
        blocks: what follows ``root.text``.
        max_bytes: the longest child.

    Raises:
        BadFileError: at the point where it shows.
    """
    text, start = root.text, root.content
    if root.empty:
        text, start = f"</{root.name}>".encode() + text[start:], 0
    return _cut(text, start, _Rest(blocks, root.name), root.name, max_bytes)


def itself(root: Root, blocks: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """``(element name, bytes)`` of the root as the file's only record; otherwise like ``inside``."""
    return _cut(root.text, root.start, _Rest(blocks, None), None, max_bytes)


_TAG = re.compile(rb"\s*+<(/?)([A-Za-z_][\w.:-]*+)" + _ATTRIBUTES + rb"(/?)>")
_TEXT = re.compile(rb"\s*+[^\s<]")


class _Rest:
    """What of the file has not been read yet."""

    def __init__(self, blocks: Iterator[bytes], root: str | None) -> None:
        self._blocks, self._root = blocks, root

    def more(self, begun: bytes, size: int, most: int) -> bytes:
        """The next block, for something begun of which there are ``size`` bytes, at most ``most``."""
        if size > most:
            raise BadFileError("record-too-long", f"no end in {most:,} bytes of what begins {begun[:60]!r}")
        block = next(self._blocks, None)
        if block is None:
            raise BadFileError(
                "truncated-xml", f"ends before </{self._root or 'the record'}>: {begun[:60]!r}"
            )
        return block

    def nothing_more(self, buffer: bytes) -> None:
        """Nothing but blanks is allowed from here on."""
        while True:
            if buffer.strip():
                raise BadFileError("malformed-xml", f"content after the root's end: {buffer.strip()[:60]!r}")
            block = next(self._blocks, None)
            if block is None:
                return
            buffer = block


def _cut(
    buffer: bytes, position: int, rest: _Rest, root: str | None, max_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """The elements from here to the root's end tag; without a root, the one element."""
    while True:
        tag = _TAG.match(buffer, position)
        if tag:
            name = tag[2].decode()
            if tag[1]:
                if name != root:
                    raise BadFileError("malformed-xml", f"</{name}> closes nothing")
                rest.nothing_more(buffer[tag.end() :])
                return
            start = tag.start(2) - 1
            position = tag.end() if tag[3] else _end(buffer, tag.end(), tag[2])
            if not position:
                buffer, position = _read_on(buffer[start:], tag[2], rest, max_bytes)
                start = 0
            yield name, buffer[start:position]
            if root is None:
                rest.nothing_more(buffer[position:])
                return
            continue
        if text := _TEXT.match(buffer, position):
            stray = buffer[text.end() - 1 : text.end() + 59]
            raise BadFileError("malformed-xml", f"text between two records: {stray!r}")
        begun = buffer[position:].lstrip()
        buffer, position = begun + rest.more(begun, len(begun), min(max_bytes, _TAG_BYTES)), 0


def _read_on(begun: bytes, name: bytes, rest: _Rest, max_bytes: int) -> tuple[bytes, int]:
    """Read until the record that has begun is whole: what there is then, and the offset of its end."""
    parts, size, tail, end = [begun], len(begun), begun, 0
    while not end:
        block = rest.more(begun, size, max_bytes)
        parts.append(block)
        size += len(block)
        tail = tail[tail.rfind(b"<") :] + block  # an end tag that has begun has no other after it
        end = _end(tail, 0, name)
    return b"".join(parts), size - len(tail) + end


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
