"""Cut an XML file into the elements that its root holds, streaming.

A baseline file of PubMed is 150-700 MB of XML of which a corpus needs a tenth, a package of Europe
PMC 1 GB.  Building a tree of all of it is most of what other readers spend their time on, so this
module finds where each record begins and ends and hands its bytes on, unparsed.  That is exact, not
a guess, because of what XML forbids: a ``<`` in content always opens a tag (elsewhere it is written
``&lt;``), except in comments, processing instructions and CDATA sections, which decoder.py takes
out first.

A DOCTYPE with declarations of its own (the place of entity bombs) is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from bioshards.corpus.errors import BadFileError

_ATTRIBUTES = rb"""(?:\s++[^\s=<>"'/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+"""
START_TAG: Final = re.compile(rb"<([A-Za-z_][\w.:-]*+)(" + _ATTRIBUTES + rb")(/?)>")
"""A start tag: its name with its prefix, its attributes, and is it empty?"""

_FIRST_TAG = re.compile(rb"\s*+" + START_TAG.pattern)
_DOCTYPE = re.compile(rb"""<!DOCTYPE(?:[^\["'>]|"[^"]*"|'[^']*')*+([\[>])""")
_PROLOG_BYTES: Final = 1 << 16
_TAG_BYTES: Final = 1 << 16


class RootElement(NamedTuple):
    """A file's root element: its name and attributes as written, and what has been read so far.

    Attributes:
        text: what has been read; the element begins at ``start``, its content at ``content``.
        empty: has it no content and no end tag?
    """

    name: str
    attributes: bytes
    buffer: bytes
    start: int
    content_start: int
    is_empty: bool


def read_root(blocks: Iterator[bytes]) -> RootElement:
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
        tag = _FIRST_TAG.match(head, doctype.end() if doctype else 0)
        if tag:
            return RootElement(tag[1].decode(), tag[2], head, tag.start(1) - 1, tag.end(), bool(tag[3]))
        if len(head) > _PROLOG_BYTES or head[:1] not in (b"<", b""):
            break
    if not head:
        raise BadFileError("not-xml", "there is no element in it")
    raise BadFileError("not-xml", f"it does not begin as XML does: {head[:60]!r}")


def iter_children(root: RootElement, blocks: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """``(element name, bytes)`` of each child element of the root, in order.

    Args:
        blocks: what follows ``root.text``.
        max_bytes: the longest child.

    Raises:
        BadFileError: at the point where it shows.
    """
    buffer, start = root.buffer, root.content_start
    if root.is_empty:
        buffer, start = f"</{root.name}>".encode() + buffer[start:], 0
    return _iter_elements(buffer, start, _BlockReader(blocks, root.name), root.name, max_bytes)


def iter_root(root: RootElement, blocks: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """``(element name, bytes)`` of the root as the file's only record; otherwise like ``inside``."""
    return _iter_elements(root.buffer, root.start, _BlockReader(blocks, None), None, max_bytes)


_TAG = re.compile(rb"\s*+<(/?)([A-Za-z_][\w.:-]*+)" + _ATTRIBUTES + rb"(/?)>")
_STRAY_TEXT = re.compile(rb"\s*+[^\s<]")


class _BlockReader:
    """What of the file has not been read yet."""

    def __init__(self, blocks: Iterator[bytes], root_name: str | None) -> None:
        self._blocks, self._root_name = blocks, root_name

    def read_block(self, beginning: bytes, size: int, max_bytes: int) -> bytes:
        """The next block, for something begun of which there are ``size`` bytes, at most ``max_bytes``."""
        if size > max_bytes:
            raise BadFileError(
                "record-too-long", f"no end in {max_bytes:,} bytes of what begins {beginning[:60]!r}"
            )
        block = next(self._blocks, None)
        if block is None:
            raise BadFileError(
                "truncated-xml", f"ends before </{self._root_name or 'the record'}>: {beginning[:60]!r}"
            )
        return block

    def expect_end(self, buffer: bytes) -> None:
        """Nothing but blanks is allowed from here on."""
        while True:
            if buffer.strip():
                raise BadFileError("malformed-xml", f"content after the root's end: {buffer.strip()[:60]!r}")
            block = next(self._blocks, None)
            if block is None:
                return
            buffer = block


def _iter_elements(
    buffer: bytes, position: int, reader: _BlockReader, root_name: str | None, max_bytes: int
) -> Iterator[tuple[str, bytes]]:
    """The elements from here to the root's end tag; without a root, the one element."""
    while True:
        tag = _TAG.match(buffer, position)
        if tag:
            name = tag[2].decode()
            if tag[1]:
                if name != root_name:
                    raise BadFileError("malformed-xml", f"</{name}> closes nothing")
                reader.expect_end(buffer[tag.end() :])
                return
            start = tag.start(2) - 1
            position = tag.end() if tag[3] else _find_end(buffer, tag.end(), tag[2])
            if not position:
                buffer, position = _read_whole_element(buffer[start:], tag[2], reader, max_bytes)
                start = 0
            yield name, buffer[start:position]
            if root_name is None:
                reader.expect_end(buffer[position:])
                return
            continue
        if match := _STRAY_TEXT.match(buffer, position):
            stray = buffer[match.end() - 1 : match.end() + 59]
            raise BadFileError("malformed-xml", f"text between two records: {stray!r}")
        beginning = buffer[position:].lstrip()
        buffer, position = (
            beginning + reader.read_block(beginning, len(beginning), min(max_bytes, _TAG_BYTES)),
            0,
        )


def _read_whole_element(
    beginning: bytes, name: bytes, reader: _BlockReader, max_bytes: int
) -> tuple[bytes, int]:
    """Read until the record that has begun is whole: what there is then, and the offset of its end."""
    chunks, total_bytes, tail, end = [beginning], len(beginning), beginning, 0
    while not end:
        block = reader.read_block(beginning, total_bytes, max_bytes)
        chunks.append(block)
        total_bytes += len(block)
        tail = tail[tail.rfind(b"<") :] + block  # an end tag that has begun has no other after it
        end = _find_end(tail, 0, name)
    return b"".join(chunks), total_bytes - len(tail) + end


_END_TAG_CLOSE = re.compile(rb"\s*+>")


def _find_end(buffer: bytes, start: int, name: bytes) -> int:
    """Offset after the end tag of this name; 0 where the buffer does not hold it."""
    end_tag = b"</" + name
    # Most records are short, and CPython searches up to 30,000 bytes without building tables first.
    position = buffer.find(end_tag, start, start + 29_000)
    if position < 0:
        position = buffer.find(end_tag, start)
    while position >= 0:
        end = _END_TAG_CLOSE.match(buffer, position + len(end_tag))
        if end:
            return end.end()
        position = buffer.find(end_tag, position + 1)
    return 0
