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

from bioshards.corpus.errors import BadFileError

BLOCK_BYTES: Final = 1 << 18
"""Bytes unpacked at a time: small enough to stay in a core's cache from gunzip to parsing."""
MAX_FILE_BYTES: Final = 8 << 30
"""Largest file, unpacked.  The largest real ones are below 1 GB (SOURCES.md section 6)."""
MAX_MARKUP_BYTES: Final = 32 << 20
"""Longest comment, instruction or CDATA section."""


class ByteStream(Protocol):
    """What a file must do to be read."""

    def read(self, size: int, /) -> bytes: ...


def decode_xml(file: ByteStream) -> Iterator[bytes]:
    """The file's XML in UTF-8 blocks, without comments and processing instructions, CDATA as text.

    Args:
        file: an open ``.xml`` or ``.xml.gz``, told apart by content, not by name.

    Raises:
        BadFileError: where it shows that the bytes are not what they should be.
    """
    return _strip_markup(_transcode_to_utf8(_decompress(file)))


def _decompress(file: ByteStream) -> Iterator[bytes]:
    """The file's blocks, gunzipped where the gzip magic is there; several members may follow."""
    block = file.read(BLOCK_BYTES)
    if not block:
        raise BadFileError("empty-file", "the file has no bytes")
    if len(block) == 1:  # a reader may give less than it is asked for; the magic has two bytes
        block += file.read(BLOCK_BYTES)
    gunzip = BoundedGunzip() if block[:2] == b"\x1f\x8b" else None
    total_bytes = 0
    while block:
        for chunk in gunzip.decompress(block) if gunzip else (block,):
            total_bytes += len(chunk)
            if total_bytes > MAX_FILE_BYTES:
                raise BadFileError("too-large", f"more than {MAX_FILE_BYTES >> 30} GiB of XML")
            yield chunk
        block = file.read(BLOCK_BYTES)
    if gunzip:
        gunzip.finish()


class BoundedGunzip:
    """A bounded gunzip: no call gives more than a few blocks, however well the input packs."""

    def __init__(self) -> None:
        self._decompressor = zlib.decompressobj(wbits=31)

    def decompress(self, data: bytes) -> Iterator[bytes]:
        while data:
            if self._decompressor.eof:
                data = data.lstrip(b"\0")  # padding after a member is allowed, anything else begins one
                if not data:
                    return
                self._decompressor = zlib.decompressobj(wbits=31)
            try:
                chunk = self._decompressor.decompress(data, BLOCK_BYTES)
            except zlib.error as error:
                raise BadFileError("corrupt-gzip", f"gzip data is damaged: {error}") from error
            data = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            if chunk:
                yield chunk

    def finish(self) -> None:
        if not self._decompressor.eof:
            raise BadFileError("truncated-gzip", "the gzip data ends before its end mark")


_DECLARATION_BYTES: Final = 512
_DECLARED_ENCODING = re.compile(rb"""^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)["']""")
_ALLOWED_ENCODING = re.compile(
    r"utf-?(8|16|16le|16be|16-le|16-be)|(us-)?ascii|iso-?8859-\d+|latin-?1|windows-125\d"
)


def _transcode_to_utf8(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks in UTF-8, whatever the byte-order mark or the XML declaration says they are in."""
    head = b""
    while len(head) < _DECLARATION_BYTES and (block := next(blocks, b"")):
        head += block
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    else:
        head = head.removeprefix(codecs.BOM_UTF8)
        declared = _DECLARED_ENCODING.match(head)
        encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if encoding in ("utf-8", "utf8", "us-ascii", "ascii"):
        yield head
        yield from blocks
        return
    if not _ALLOWED_ENCODING.fullmatch(encoding):
        raise BadFileError("bad-encoding", f"it says it is in {encoding!r}, no encoding that is read here")
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        yield decoder.decode(head).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except (LookupError, UnicodeError) as error:
        raise BadFileError("bad-encoding", f"cannot be read as {encoding}: {error}") from error


_MARKUP_SECTION = re.compile(rb"<!--.*?-->|<\?.*?\?>|<!\[CDATA\[(.*?)\]\]>", re.DOTALL)


def _markup_to_text(match: re.Match[bytes]) -> bytes:
    cdata: bytes = match[1] or b""
    return cdata.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;")


def _strip_markup(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks without comments and processing instructions, and CDATA as escaped text.

    A DOCTYPE is left as it stands.  What is begun at the end of a block waits for the next.
    """
    pending = b""
    for block in blocks:
        block, pending = _split_markup(pending + block if pending else block)
        if len(pending) > MAX_MARKUP_BYTES:
            break
        if block:
            yield block
    if pending:
        raise BadFileError("truncated-xml", f"a comment or section is not closed: {pending[:40]!r}")


def _split_markup(block: bytes) -> tuple[bytes, bytes]:
    """The block without complete markup, and what follows the beginning of incomplete markup."""
    parts = []
    position = scanned = 0
    declaration = _find_opening(block, b"!", 0)
    instruction = _find_opening(block, b"?", 0)
    while (start := min(declaration, instruction)) < len(block):
        match = _MARKUP_SECTION.match(block, start)
        if match:
            parts += [block[position:start], _markup_to_text(match)]
            position = scanned = match.end()
        elif block.startswith((b"<!-", b"<![", b"<?"), start):
            return b"".join([*parts, block[position:start]]), block[start:]
        else:
            scanned = start + 2
        if declaration < scanned:
            declaration = _find_opening(block, b"!", scanned)
        if instruction < scanned:
            instruction = _find_opening(block, b"?", scanned)
    end = len(block) - _count_trailing_opening_bytes(block)
    return b"".join([*parts, block[position:end]]) if parts else block[:end], block[end:]


_LESS_THAN: Final = ord("<")


def _find_opening(block: bytes, second_byte: bytes, start: int) -> int:
    """Offset of the next ``<`` before this mark; the block's length where there is none.

    The mark is what is searched: it is rarer than ``<`` by far, and one byte is found fastest.
    """
    position = block.find(second_byte, start + 1)
    while position >= 0:
        if block[position - 1] == _LESS_THAN:
            return position - 1
        position = block.find(second_byte, position + 1)
    return len(block)


def _count_trailing_opening_bytes(block: bytes) -> int:
    """How many bytes at the end may be the beginning of a comment, instruction or CDATA section."""
    return 2 if block.endswith(b"<!") else 1 if block.endswith(b"<") else 0
