"""Split an XML file into the child elements of its root, streaming and without parsing.

A PubMed baseline file has 150-700 MB of XML, a Europe PMC package 1 GB; building a tree of it dominates the
run time of other readers. Splitting by bytes is exact: decoder.py removes comments, processing instructions
and CDATA, and elsewhere XML allows ``<`` only at the start of a tag.

Elements are checked for the balance of their tags and for control characters without parsing, and parsed with
lxml if they fail. Tags balance in well-formed records (except a few with ``>`` in an attribute), and in few
broken ones.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final, NamedTuple

from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.xml.decoder import decode_xml

_ATTRIBUTES = rb"""(?:\s++[^\s=<>"'/]++\s*+=\s*+(?:"[^"<]*+"|'[^'<]*+'))*+\s*+"""
START_TAG: Final = re.compile(rb"<([A-Za-z_][\w.:-]*+)(" + _ATTRIBUTES + rb")(/?)>")
"""A start tag. Groups: name with prefix, attributes, "/" if the element is empty."""

_FIRST_TAG = re.compile(rb"\s*+" + START_TAG.pattern)
_DOCTYPE = re.compile(rb"""<!DOCTYPE(?:[^\["'>]|"[^"]*"|'[^']*')*+>""")
_PROLOG_BYTES: Final = 1 << 16
_TAG_BYTES: Final = 1 << 16
_REJECTED_BYTES: Final = 1000
"""Bytes of an element over the limit that are kept."""


class RootElement(NamedTuple):
    """The root element of a file, and the bytes read so far.

    Attributes:
        name: name as written.
        attributes: attributes as written.
        buffer: bytes read so far.
        start: offset of the element in ``buffer``.
        content_start: offset of its content in ``buffer``.
        is_empty: True for ``<root/>``.
    """

    name: str
    attributes: bytes
    buffer: bytes
    start: int
    content_start: int
    is_empty: bool


class LongElement(bytes):
    """The beginning of an element that is over the size limit; its other bytes were passed over.

    Attributes:
        num_bytes: of the element, rounded up to a block.
    """

    num_bytes = 0


def check_length(xml: bytes) -> None:
    """Check that an element is whole.

    Raises:
        BadRecordError: it is over the size limit.
    """
    if isinstance(xml, LongElement):
        raise BadRecordError(
            "record-too-long",
            f"it has {xml.num_bytes / 1e6:,.0f} MB, more than is read of one, and begins {xml[:60]!r}",
        )


def read_root(blocks: Iterator[bytes]) -> RootElement:
    """Read up to the root's start tag.

    Args:
        blocks: output of :func:`decoder.decode_xml`.

    Raises:
        BadFileError: there is no start tag.
    """
    head = b""
    for block in blocks:
        head = (head + block).lstrip()
        doctype = _DOCTYPE.match(head)
        tag = _FIRST_TAG.match(head, doctype.end() if doctype else 0)
        if tag:
            return RootElement(tag[1].decode(), tag[2], head, tag.start(1) - 1, tag.end(), bool(tag[3]))
        if len(head) > _PROLOG_BYTES or head[:1] not in (b"<", b""):
            break
    if not head:
        raise BadFileError("not-xml", "there is no element in it")
    raise BadFileError("not-xml", f"it does not begin as XML does, nor as gzip: {head[:24]!r}")


_PIPELINE_BY_ROOT: Final = {
    **dict.fromkeys(("PubmedArticleSet", "PubmedArticle", "MedlineCitationSet"), "pubmed_to_shards"),
    **dict.fromkeys(("article", "articles", "pmc-articleset", "OAI-PMH"), "pmc_to_shards"),
}


def suggest_pipeline(root_name: str) -> str:
    """Return which pipeline reads files with this root, for a message; '' if none does."""
    pipeline = _PIPELINE_BY_ROOT.get(root_name.rpartition(":")[2])
    kind = "PubMed XML" if pipeline == "pubmed_to_shards" else "full text, JATS XML"
    return f"; this is {kind}: beam run {pipeline}" if pipeline else ""


def find_foreign_root(file: BinaryIO, pipeline: str) -> str:
    """Return what a file is, for a message, if another pipeline reads files with its root; else ''."""
    with contextlib.suppress(BadFileError):
        name = read_root(decode_xml(file)).name
        suggestion = suggest_pipeline(name)
        if suggestion and not suggestion.endswith(f" {pipeline}"):
            return f"has the root <{name}>{suggestion}"
    return ""


def iter_children(root: RootElement, blocks: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` for each child element of the root, in order.

    Of a child over the limit a :class:`LongElement` is yielded.

    Args:
        root: result of :func:`read_root`.
        blocks: the blocks after ``root.buffer``.
        max_bytes: size limit of a child.

    Raises:
        BadFileError: the file is malformed or truncated.
    """
    buffer, start = root.buffer, root.content_start
    if root.is_empty:
        buffer, start = f"</{root.name}>".encode() + buffer[start:], 0
    return _iter_elements(buffer, start, _BlockReader(blocks, root.name), root.name, max_bytes)


def iter_root(root: RootElement, blocks: Iterator[bytes], max_bytes: int) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` of the root as the only record. See :func:`iter_children`."""
    return _iter_elements(root.buffer, root.start, _BlockReader(blocks, None), None, max_bytes)


_TAG = re.compile(rb"\s*+<(/?)([A-Za-z_][\w.:-]*+)" + _ATTRIBUTES + rb"(/?)>")
_STRAY_TEXT = re.compile(rb"\s*+[^\s<]")


class _BlockReader:
    """Reader of the remaining blocks of a file."""

    def __init__(self, blocks: Iterator[bytes], root_name: str | None) -> None:
        self._blocks, self._root_name = blocks, root_name

    def read_block(self, beginning: bytes) -> bytes:
        """Return the next block.

        Args:
            beginning: start of the incomplete element, for error messages.

        Raises:
            BadFileError: the file ends.
        """
        block = next(self._blocks, None)
        if block is None:
            raise BadFileError(
                "truncated-xml", f"ends before </{self._root_name or 'the record'}>: {beginning[:60]!r}"
            )
        return block

    def expect_end(self, buffer: bytes) -> None:
        """Check that only white space follows."""
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
    """Yield the elements up to the root's end tag; without a root name, exactly one element."""
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
            if position:
                xml = buffer[start:position]
            else:
                xml, buffer = _read_whole_element(buffer[start:], tag[2], reader, max_bytes)
            yield name, xml
            if root_name is None:
                reader.expect_end(buffer[position:])
                return
            continue
        if match := _STRAY_TEXT.match(buffer, position):
            stray = buffer[match.end() - 1 : match.end() + 59]
            raise BadFileError("malformed-xml", f"text between two records: {stray!r}")
        buffer, position = buffer[position:].lstrip(), 0
        if len(buffer) > min(max_bytes, _TAG_BYTES):
            raise BadFileError("record-too-long", f"no end of the tag that begins {buffer[:60]!r}")
        buffer += reader.read_block(buffer)


def _read_whole_element(
    beginning: bytes, name: bytes, reader: _BlockReader, max_bytes: int
) -> tuple[bytes, bytes]:
    """Read until the element is complete. Return it and the bytes read after it."""
    chunks, total_bytes, tail, end = [beginning], len(beginning), beginning, 0
    is_long = False
    while not end:
        if total_bytes > max_bytes:
            is_long, chunks = True, []
        block = reader.read_block(beginning[:_REJECTED_BYTES])
        chunks.append(block)
        total_bytes += len(block)
        tail = tail[max(tail.rfind(b"<"), len(tail) - _TAG_BYTES) :] + block  # keep an incomplete end tag
        end = _find_end(tail, 0, name)
    if is_long:
        element = LongElement(beginning[:_REJECTED_BYTES])
        element.num_bytes = total_bytes
        return element, tail[end:]
    xml = b"".join(chunks)
    return xml[: len(xml) - (len(tail) - end)], tail[end:]


_END_TAG_CLOSE = re.compile(rb"\s*+>")


def _find_end(buffer: bytes, start: int, name: bytes) -> int:
    """Return the offset after the first end tag of this name, or 0 if the buffer has none."""
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


# Checks of well-formedness

_SELF_CLOSED = re.compile(r"<[^<>]*/>")
_XML_BYTES: Final = bytes(set(range(256)) - set(range(0x20)) | set(b"\t\n\r"))
"""Bytes of the characters that XML permits."""


def has_balanced_tags(record: str) -> bool:
    """Return True if the tags of a record balance."""
    unclosed = record.count("<") - 2 * record.count("</")
    return unclosed == 0 or unclosed == len(_SELF_CLOSED.findall(record))


def has_forbidden_character(xml: bytes) -> bool:
    """Return True if the XML has a control character that XML forbids."""
    return bool(xml.translate(None, _XML_BYTES))


def pass_checks(records: Sequence[bytes]) -> bool:
    """Return True if the tags of all records together balance, and none has a forbidden character.

    Several times as fast as to check each record.
    """
    import numpy as np  # here, as readers of articles do without

    xml = b"".join(records)
    if len(xml) < 2:
        return False
    array = np.frombuffer(xml, np.uint8)
    opening, slash = array == ord("<"), array == ord("/")
    unclosed = np.count_nonzero(opening) - 2 * np.count_nonzero(opening[:-1] & slash[1:])
    if unclosed and unclosed != np.count_nonzero(slash[:-1] & (array[1:] == ord(">"))):
        return False
    # Of bytes less 11, line feed and tab are the largest. A carriage return is looked at again.
    has_control = array.min() < ord("\t") or (array - np.uint8(11)).min() < ord(" ") - 11
    return not (has_control and has_forbidden_character(xml))
