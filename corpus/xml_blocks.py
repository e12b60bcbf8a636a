"""Unpack an XML file from strangers into plain blocks: gunzipped, in UTF-8, free of comments.

What comes out holds a ``<`` only where a tag begins (or the DOCTYPE), so that records can be found
by searching bytes.  Sizes are bounded and nothing is fetched.
"""

from __future__ import annotations

import codecs
import re
import zlib
from collections.abc import Iterator
from typing import Final, Protocol

from .errors import BadFileError

BLOCK_BYTES: Final = 1 << 18
"""Bytes unpacked at a time: small enough to stay in a core's cache from gunzip to parsing."""
MAX_FILE_BYTES: Final = 8 << 30
"""Largest file, unpacked.  The largest real ones are below 1 GB (SOURCES.md section 6)."""
MAX_MARKUP_BYTES: Final = 32 << 20
"""Longest comment, instruction or CDATA section."""


class Readable(Protocol):
    """What a file must do to be read."""

    def read(self, size: int, /) -> bytes: ...


def plain_xml(file: Readable) -> Iterator[bytes]:
    """The file's XML in UTF-8 blocks, without comments and processing instructions, CDATA as text.

    Args:
        file: an open ``.xml`` or ``.xml.gz``, told apart by content, not by name.

    Raises:
        BadFileError: where it shows that the bytes are not what they should be.
    """
    return _plain(_utf8(_unpacked(file)))


def _unpacked(file: Readable) -> Iterator[bytes]:
    """The file's blocks, gunzipped where the gzip magic is there; several members may follow."""
    block = file.read(BLOCK_BYTES)
    if not block:
        raise BadFileError("empty-file", "the file has no bytes")
    if len(block) == 1:  # a reader may give less than it is asked for; the magic has two bytes
        block += file.read(BLOCK_BYTES)
    gunzip = Gunzip() if block[:2] == b"\x1f\x8b" else None
    total = 0
    while block:
        for piece in gunzip.blocks(block) if gunzip else (block,):
            total += len(piece)
            if total > MAX_FILE_BYTES:
                raise BadFileError("too-large", f"more than {MAX_FILE_BYTES >> 30} GiB of XML")
            yield piece
        block = file.read(BLOCK_BYTES)
    if gunzip:
        gunzip.finish()


class Gunzip:
    """A bounded gunzip: no call gives more than a few blocks, however well the input packs."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(wbits=31)

    def blocks(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._inflate.eof:
                data = data.lstrip(b"\0")  # padding after a member is allowed, anything else begins one
                if not data:
                    return
                self._inflate = zlib.decompressobj(wbits=31)
            try:
                piece = self._inflate.decompress(data, BLOCK_BYTES)
            except zlib.error as error:
                raise BadFileError("corrupt-gzip", f"gzip data is damaged: {error}") from error
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            if piece:
                yield piece

    def finish(self) -> None:
        if not self._inflate.eof:
            raise BadFileError("truncated-gzip", "the gzip data ends before its end mark")


_DECLARATION_BYTES: Final = 512
_ENCODING = re.compile(rb"""^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)["']""")
_TEXT_ENCODING = re.compile(
    r"utf-?(8|16|16le|16be|16-le|16-be)|(us-)?ascii|iso-?8859-\d+|latin-?1|windows-125\d"
)


def _utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks in UTF-8, whatever the byte-order mark or the XML declaration says they are in."""
    first = b""
    while len(first) < _DECLARATION_BYTES and (block := next(blocks, b"")):
        first += block
    if first[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    else:
        first = first.removeprefix(codecs.BOM_UTF8)
        declared = _ENCODING.match(first)
        encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if encoding in ("utf-8", "utf8", "us-ascii", "ascii"):
        yield first
        yield from blocks
        return
    if not _TEXT_ENCODING.fullmatch(encoding):
        raise BadFileError("bad-encoding", f"it says it is in {encoding!r}, no encoding that is read here")
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        yield decoder.decode(first).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except (LookupError, UnicodeError) as error:
        raise BadFileError("bad-encoding", f"cannot be read as {encoding}: {error}") from error


_MARKUP = re.compile(rb"<[!?]")
_MARKUP = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def _text_of_markup(found: re.Match[bytes]) -> bytes:
    cdata: bytes = found[1] or b""
    return cdata.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _plain(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks without comments and processing instructions, and CDATA as escaped text.

    A DOCTYPE is left as it stands.  What is begun at the end of a block waits for the next.
    """
    held = b""
    for block in blocks:
        block, held = _split_markup(held + block if held else block)
        if len(held) > MAX_MARKUP_BYTES:
            break
        if block:
            yield block
    if held:
        raise BadFileError("truncated-xml", f"a comment or section is not closed: {held[:40]!r}")


def _split_markup(block: bytes) -> tuple[bytes, bytes]:
    """The block without complete markup, and what follows the beginning of incomplete markup."""
    parts = []
    at = scanned = 0
    declaration = _opened(block, b"!", 0)
    instruction = _opened(block, b"?", 0)
    while (start := min(declaration, instruction)) < len(block):
        whole = _MARKUP.match(block, start)
        if whole:
            parts += [block[at:start], _text_of_markup(whole)]
            at = scanned = whole.end()
        elif block.startswith((b"<!-", b"<![", b"<?"), start):
            return b"".join([*parts, block[at:start]]), block[start:]
        else:
            scanned = start + 2
        if declaration < scanned:
            declaration = _opened(block, b"!", scanned)
        if instruction < scanned:
            instruction = _opened(block, b"?", scanned)
    end = len(block) - _begun_markup(block)
    return b"".join([*parts, block[at:end]]) if parts else block[:end], block[end:]


_LESS_THAN: Final = ord("<")


def _opened(block: bytes, mark: bytes, start: int) -> int:
    """Offset of the next ``<`` before this mark; the block's length where there is none.

    The mark is what is searched: it is rarer than ``<`` by far, and one byte is found fastest.
    """
    at = block.find(mark, start + 1)
    while at >= 0:
        if block[at - 1] == _LESS_THAN:
            return at - 1
        at = block.find(mark, at + 1)
    return len(block)


def _begun_markup(block: bytes) -> int:
    """How many bytes at the end may be the beginning of a comment, instruction or CDATA section."""
    return 2 if block.endswith(b"<!") else 1 if block.endswith(b"<") else 0
