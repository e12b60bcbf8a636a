"""Cut a PubMed XML file into its records, streaming.

A baseline file is 150-700 MB of XML of which a corpus needs a tenth.  Building a tree of all of it
is most of what other readers spend their time on, so this module finds where each record begins and
ends and hands its bytes on, unparsed.  That is exact, not a guess, because of what XML forbids: a
``<`` in content always opens a tag (elsewhere it is written ``&lt;``), except in comments,
processing instructions and CDATA sections, which :func:`_plain` takes out first.

Files come from strangers: nothing is fetched, a DOCTYPE with declarations of its own (the place of
entity bombs) is refused, and the size of a file and of a record is bounded.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Callable, Iterator
from typing import Final, Protocol

BLOCK_BYTES: Final = 1 << 18
"""Bytes unpacked at a time: small enough to stay in a core's cache from gunzip to parsing."""
MAX_FILE_BYTES: Final = 8 << 30
"""Largest file, unpacked.  The largest real ones are below 1 GB (SOURCES.md section 6)."""
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


class Readable(Protocol):
    """What a file must do to be read."""

    def read(self, size: int, /) -> bytes: ...


class BadFile(Exception):
    """A file that cannot be trusted as a whole: nothing of it is used.

    ``reason`` is a short fixed word for counting, ``detail`` a sentence for people.
    """

    def __init__(self, reason: str, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.reason}: {self.detail}"


def records(file: Readable) -> Iterator[tuple[str, bytes]]:
    """Yield ``(element name, bytes)`` for each record of a file, in order.

    Args:
        file: an open ``.xml`` or ``.xml.gz`` (told apart by content, not by name).

    Raises:
        BadFile: what is wrong with the file as a whole, at the point where it shows; callers must
            drop what they have had from it so far.
    """
    blocks = _plain(_utf8(_unpacked(file)))
    root, head = _prolog(blocks)
    yield from _cut(head, blocks, root)


def _unpacked(file: Readable) -> Iterator[bytes]:
    """The file's blocks, gunzipped where the gzip magic is there; several members may follow."""
    block = file.read(BLOCK_BYTES)
    if not block:
        raise BadFile("empty-file", "the file has no bytes")
    if block[:2] != b"\x1f\x8b":
        unpack: Callable[[bytes], Iterator[bytes]] = lambda data: iter((data,))  # noqa: E731
        finish: Callable[[], None] = lambda: None  # noqa: E731
    else:
        gunzip = _Gunzip()
        unpack, finish = gunzip.blocks, gunzip.finish
    total = 0
    while block:
        for piece in unpack(block):
            total += len(piece)
            if total > MAX_FILE_BYTES:
                raise BadFile("too-large", f"more than {MAX_FILE_BYTES >> 30} GiB of XML")
            yield piece
        block = file.read(BLOCK_BYTES)
    finish()


class _Gunzip:
    """A bounded gunzip: no call gives more than a few blocks, however well the input packs."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)

    def blocks(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                if not data.strip(b"\0"):
                    return
                self._inflate = zlib.decompressobj(wbits=31)
            try:
                piece = self._inflate.decompress(data, BLOCK_BYTES)
            except zlib.error as error:
                raise BadFile("corrupt-gzip", f"gzip data is damaged: {error}") from error
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            if piece:
                yield piece

    def finish(self) -> None:
        if not self._inflate.eof:
            raise BadFile("truncated-gzip", "the gzip data ends before its end mark")


_ENCODING = re.compile(rb"""^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)["']""")


def _utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks in UTF-8, whatever the byte-order mark or the XML declaration says they are in."""
    first = next(blocks, b"")
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    else:
        first = first.removeprefix(codecs.BOM_UTF8)
        declared = _ENCODING.match(first)
        encoding = declared[1].decode("ascii") if declared else "utf-8"
    if encoding.lower() in ("utf-8", "utf8", "us-ascii", "ascii"):
        yield first
        yield from blocks
        return
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        yield decoder.decode(first).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except (LookupError, UnicodeError) as error:
        raise BadFile("bad-encoding", f"cannot be read as {encoding}: {error}") from error


_BEGINS_MARKUP = re.compile(rb"<[!?]")
_MARKUP = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def _text_of_markup(found: re.Match[bytes]) -> bytes:
    cdata: bytes = found[1] or b""
    return cdata.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _plain(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks without comments and processing instructions, and CDATA as escaped text.

    A DOCTYPE is left for :func:`_prolog`.  What is begun at the end of a block waits for the next.
    """
    held = b""
    for block in blocks:
        block, held = _split_markup(held + block if held else block)
        if len(held) > MAX_RECORD_BYTES:
            break
        if block:
            yield block
    if held:
        raise BadFile("truncated-xml", f"a comment or section is not closed: {held[:40]!r}")


def _split_markup(block: bytes) -> tuple[bytes, bytes]:
    """The block without complete markup, and what follows the beginning of incomplete markup."""
    parts = []
    at = scanned = 0
    while begun := _BEGINS_MARKUP.search(block, scanned):
        start = scanned = begun.start()
        whole = _MARKUP.match(block, start)
        if whole:
            parts += [block[at:start], _text_of_markup(whole)]
            at = scanned = whole.end()
        elif block.startswith((b"<!-", b"<![", b"<?"), start):
            return b"".join([*parts, block[at:start]]), block[start:]
        else:
            scanned += 2
    end = len(block) - _begun_markup(block)
    return b"".join([*parts, block[at:end]]) if parts else block[:end], block[end:]


def _begun_markup(block: bytes) -> int:
    """How many bytes at the end may be the beginning of a comment, instruction or CDATA section."""
    return 2 if block.endswith(b"<!") else 1 if block.endswith(b"<") else 0


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


_TAG = re.compile(rb"\s*+<(/?)([A-Za-z_][\w.-]*+)(?=[\s/>])")


def _cut(buffer: bytes, blocks: Iterator[bytes], root: str | None) -> Iterator[tuple[str, bytes]]:
    position = 0
    while True:
        tag = _TAG.match(buffer, position)
        end = 0
        if tag and tag[1]:
            if tag[2].decode() != root:
                raise BadFile("malformed-xml", f"</{tag[2].decode()}> closes nothing")
            _nothing_more(buffer[buffer.find(b">", position) + 1 :], blocks)
            return
        if tag:
            start = tag.end() - len(tag[2]) - 1
            end = _end(buffer, start, tag[2])
            if end:
                name = tag[2].decode()
                yield name, buffer[start:end]
                position = end
                if root is None:
                    _nothing_more(buffer[end:], blocks)
                    return
                continue
        elif buffer[position : position + 4096].strip()[:1] not in (b"<", b""):
            text = buffer[position : position + 80].strip()
            raise BadFile("malformed-xml", f"text between two records: {text[:60]!r}")
        rest = buffer[position:]
        if len(rest) > MAX_RECORD_BYTES:
            raise BadFile("record-too-long", f"no end of a record in {MAX_RECORD_BYTES >> 20} MiB")
        block = next(blocks, None)
        if block is None:
            raise BadFile("truncated-xml", f"ends before </{root or 'the record'}>: {rest[:60]!r}")
        buffer, position = rest + block, 0


def _end(buffer: bytes, start: int, name: bytes) -> int:
    """Offset after the element that begins at ``start``; 0 where the buffer does not hold it all."""
    head = buffer.find(b">", start)
    if head < 0:
        return 0
    if buffer[head - 1] == b"/"[0]:
        return head + 1
    close = b"</" + name
    # Most records are short, and CPython searches up to 30,000 bytes without building tables first.
    at = buffer.find(close + b">", head, head + 29_000)
    if at >= 0:
        return at + len(close) + 1
    at = buffer.find(close, head)
    while at >= 0:
        after = buffer[at + len(close) : at + len(close) + 64].lstrip()
        if after[:1] == b">":
            return buffer.find(b">", at) + 1
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
