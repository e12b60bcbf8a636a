"""Decode untrusted XML files into plain blocks: decompressed, UTF-8, without comments and declarations.

In the output, ``<`` only starts a tag or the DOCTYPE, so that records can be found by searching bytes.
Sizes are bounded; nothing is fetched.

A DOCTYPE may have declarations of its own. Those of elements, attributes, notations and unparsed entities
change no text and are passed over. An entity that stands for a few characters is resolved in the bytes of the
file. A file that declares anything else is rejected as a whole: parameter entities, external entities, and
entities of markup or of other entities, which entity bombs are made of.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, Protocol, cast

from bioshards.corpus.errors import BadFileError

try:  # twice as fast as zlib
    from isal import isal_zlib as gzip_library
except ImportError:  # a platform without its wheels
    import zlib as gzip_library  # type: ignore[no-redef]

BLOCK_BYTES: Final = 1 << 18
"""Bytes decompressed at a time: fits into a core's cache from decompression to parsing."""
MAX_FILE_BYTES: Final = 8 << 30
"""Largest decompressed file. Real files are below 1 GB (SOURCES.md section 6)."""
MAX_COMPRESSION_RATIO: Final = 200
"""Largest ratio of decompressed to compressed bytes. XML has about 5; a bomb 1,000 and more."""
RATIO_EXEMPT_BYTES: Final = 64 << 20
"""Decompressed bytes below which the ratio is not checked."""
MAX_MARKUP_BYTES: Final = 32 << 20
"""Longest comment, processing instruction or CDATA section."""


class ByteStream(Protocol):
    """A readable binary stream."""

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        ...


class DecodingReport:
    """What files say against their declarations, and what they have besides articles.

    Attributes:
        misdeclared_files: number of files in UTF-8 that declare a single-byte encoding.
        skipped_entries: number of the entries of archives that are no articles, by kind.
        partial_lists: names of files that are a page of a longer list of a server.
    """

    def __init__(self) -> None:
        self.misdeclared_files = 0
        self.skipped_entries = Counter[str]()
        self.partial_lists = list[str]()


def decode_xml(file: ByteStream, report: DecodingReport | None = None) -> Iterator[bytes]:
    """Yield a file as UTF-8 blocks without comments and processing instructions; CDATA becomes text.

    Declarations of the DOCTYPE are removed, and the entities that they declare become character references.

    Args:
        file: an open ``.xml`` or ``.xml.gz``; compression is detected from the content.
        report: counts the file if its declared encoding is wrong.

    Raises:
        BadFileError: the file is damaged, too large, in an unsupported encoding, or declares entities that
            are not read (:func:`resolve_doctype`).
    """
    return resolve_doctype(_strip_markup(_transcode_to_utf8(_decompress(file), report or DecodingReport())))


# Compression


def _decompress(file: ByteStream) -> Iterator[bytes]:
    """Yield the blocks of a file, decompressed if it has the gzip magic; multi-member files are allowed."""
    block = file.read(BLOCK_BYTES)
    if not block:
        raise BadFileError("empty-file", "the file has no bytes")
    if len(block) == 1:  # short read; the magic has two bytes
        block += file.read(BLOCK_BYTES)
    gunzip = BoundedGunzip() if block[:2] == _GZIP_MAGIC else None
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


_GZIP_MAGIC: Final = b"\x1f\x8b"
_GZIP_WINDOW_BITS: Final = 31
_GzipError = cast(type[Exception], gzip_library.error)


def check_ratio(packed_bytes: int, unpacked_bytes: int) -> None:
    """Check the compression ratio of what was read of a file.

    Raises:
        BadFileError: it is too high.
    """
    if unpacked_bytes > max(RATIO_EXEMPT_BYTES, MAX_COMPRESSION_RATIO * packed_bytes):
        raise BadFileError(
            "bomb",
            f"{packed_bytes:,} bytes unpack to more than {unpacked_bytes:,}, as no text does. If it is to be "
            "read, give it uncompressed",
        )


class BoundedGunzip:
    """Streaming gunzip with bounded output: each chunk has at most :data:`BLOCK_BYTES`."""

    def __init__(self) -> None:
        self._packed_bytes = self._unpacked_bytes = 0
        self._decompressor = gzip_library.decompressobj(_GZIP_WINDOW_BITS)

    def decompress(self, data: bytes) -> Iterator[bytes]:
        """Yield the decompressed chunks of the next compressed bytes.

        Raises:
            BadFileError: the data is damaged, or a bomb.
        """
        self._packed_bytes += len(data)
        while data:
            if self._decompressor.eof:
                data = data.lstrip(b"\0")  # padding; anything else starts a new member
                if not data:
                    return
                if not _GZIP_MAGIC.startswith(data[:2]):  # isal would wait for a whole header
                    raise BadFileError("corrupt-gzip", f"no gzip data after its end mark: {data[:8]!r}")
                self._decompressor = gzip_library.decompressobj(_GZIP_WINDOW_BITS)
            try:
                chunk = self._decompressor.decompress(data, BLOCK_BYTES)
            except _GzipError as error:
                raise BadFileError("corrupt-gzip", f"gzip data is damaged: {error}") from error
            data = self._decompressor.unconsumed_tail or self._decompressor.unused_data
            if chunk:
                self._unpacked_bytes += len(chunk)
                check_ratio(self._packed_bytes, self._unpacked_bytes)
                yield chunk

    def finish(self) -> None:
        """Check that the stream is complete.

        Raises:
            BadFileError: the data is truncated.
        """
        if not self._decompressor.eof:
            raise BadFileError("truncated-gzip", "the gzip data ends before its end mark")


# Encoding

_DECLARATION_BYTES: Final = 512
_DECLARED_ENCODING = re.compile(rb"""^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w.:-]+)["']""")
_ALLOWED_ENCODING = re.compile(
    r"utf-?(8|16|16le|16be|16-le|16-be)|(us-)?ascii|iso-?8859-\d+|latin-?1|windows-125\d"
)


_UTF_8_SAMPLE_BYTES: Final = 1 << 20
"""Bytes from the first non-ASCII one that must be UTF-8 to refute a declared single-byte encoding."""


def _transcode_to_utf8(blocks: Iterator[bytes], report: DecodingReport) -> Iterator[bytes]:
    """Transcode blocks to UTF-8 from the encoding of the byte-order mark or the XML declaration.

    Text in a single-byte encoding is practically never valid UTF-8. Bytes that are valid are UTF-8, whatever
    the declaration says: read by it, every character beyond ASCII would become two or three.
    """
    head = b""
    while len(head) < _DECLARATION_BYTES and (block := next(blocks, b"")):
        head += block
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        encoding = "utf-16"
    else:
        while head.startswith(codecs.BOM_UTF8):
            head = head.removeprefix(codecs.BOM_UTF8)
        declared = _DECLARED_ENCODING.match(head)
        encoding = declared[1].decode("ascii").lower() if declared else "utf-8"
    if encoding in ("utf-8", "utf8", "us-ascii", "ascii"):
        yield head
        yield from blocks
        return
    if not _ALLOWED_ENCODING.fullmatch(encoding):
        raise BadFileError("bad-encoding", f"unsupported encoding {encoding!r}")
    blocks = itertools.chain((head,), blocks)
    if not encoding.startswith("utf"):
        while (head := next(blocks, b"")).isascii() and head:
            yield head
        sample_start = len(head) - len(head.lstrip(_ASCII_BYTES))
        while len(head) < sample_start + _UTF_8_SAMPLE_BYTES and (block := next(blocks, b"")):
            head += block
        if _is_utf8(head[sample_start : sample_start + _UTF_8_SAMPLE_BYTES]):
            report.misdeclared_files += 1
            yield head
            yield from blocks
            return
        blocks = itertools.chain((head,), blocks)
    try:
        decoder = codecs.getincrementaldecoder(encoding)()
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except (LookupError, UnicodeError) as error:
        raise BadFileError("bad-encoding", f"cannot be read as {encoding}: {error}") from error


_ASCII_BYTES: Final = bytes(range(128))


def _is_utf8(sample: bytes) -> bool:
    """Return True if the sample has multi-byte sequences of UTF-8 and nothing else beyond ASCII.

    A shorter sample than :data:`_UTF_8_SAMPLE_BYTES` is complete; a longer one may end within a sequence.
    """
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=len(sample) < _UTF_8_SAMPLE_BYTES)
    except UnicodeDecodeError:
        return False
    return not sample.isascii()


# Comments, processing instructions and CDATA

_COMMENT: Final = b"<!--"
_CDATA: Final = b"<![CDATA["


def _find_markup_end(block: bytes, start: int) -> int:
    """Return the offset after the markup at ``start``; -1 if it is incomplete, or other markup."""
    if block[start + 1] == _QUESTION_MARK:
        opening, ending = b"<?", b"?>"
    elif block.startswith(_COMMENT, start):
        opening, ending = _COMMENT, b"-->"
    elif block.startswith(_CDATA, start):
        opening, ending = _CDATA, b"]]>"
    else:
        return -1
    end = block.find(ending, start + len(opening))
    return end + len(ending) if end >= 0 else -1


def _strip_markup(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Remove comments and processing instructions, and replace CDATA by escaped text.

    The DOCTYPE stays. Markup that is cut off by a block's end is carried over to the next block.
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
    """Return the block without complete markup, and the start of incomplete markup at its end."""
    parts: list[bytes | memoryview] = []
    view = memoryview(block)  # whose slices are copied once, when they are joined
    position = scanned = 0
    declaration = _find_opening(block, b"!", 0)
    instruction = _find_opening(block, b"?", 0)
    while (start := min(declaration, instruction)) < len(block):
        end = _find_markup_end(block, start)
        if end >= 0:
            parts.append(view[position:start])
            if start == declaration and block.startswith(_CDATA, start):
                text = block[start + len(_CDATA) : end - 3]
                parts.append(text.replace(b"&", b"&amp;").replace(b"<", b"&lt;").replace(b">", b"&gt;"))
            position = scanned = end
        elif block.startswith((b"<!-", b"<![", b"<?"), start):
            return b"".join([*parts, view[position:start]]), block[start:]
        else:
            scanned = start + 2
        if declaration < scanned:
            declaration = _find_opening(block, b"!", scanned)
        if instruction < scanned:
            instruction = _find_opening(block, b"?", scanned)
    num_opening_bytes = 2 if block.endswith(b"<!") else 1 if block.endswith(b"<") else 0
    end = len(block) - num_opening_bytes
    return b"".join([*parts, view[position:end]]) if parts else block[:end], block[end:]


_LESS_THAN: Final = ord("<")
_QUESTION_MARK: Final = ord("?")


def _find_opening(block: bytes, second_byte: bytes, start: int) -> int:
    """Return the offset of the next ``<`` before ``second_byte``, or the block's length.

    Searches for the second byte: it is much rarer than ``<``, and a search for one byte is fastest.
    """
    position = block.find(second_byte, start + 1)
    while position >= 0:
        if block[position - 1] == _LESS_THAN:
            return position - 1
        position = block.find(second_byte, position + 1)
    return len(block)


# The DOCTYPE

MAX_DOCTYPE_BYTES: Final = 1 << 16
"""Longest DOCTYPE with its declarations."""
MAX_ENTITY_CHARACTERS: Final = 64
"""Longest text of a declared entity."""
GROWTH_EXEMPT_BYTES: Final = 1 << 20
"""Bytes by which declared entities may lengthen any file; a larger file may become twice as long."""

_DOCTYPE_START: Final = b"<!DOCTYPE"
_LITERAL: Final = rb"""(?:"[^"]*"|'[^']*')"""
_SPACE: Final = rb"[ \t\r\n]"
_NAME: Final = rb"[A-Za-z_:\x80-\xff][\w.:\x80-\xff-]*"
_DOCTYPE = re.compile(rb"<!DOCTYPE(?:[^\[\"'<>]|" + _LITERAL + rb")*([\[>])")
_SUBSET = re.compile(rb"((?:[^\]\"']|" + _LITERAL + rb")*)\]" + _SPACE + rb"*>")
_CHARACTER_ENTITY = re.compile(
    rb"%(space)s*<!ENTITY%(space)s+(%(name)s)%(space)s+(%(literal)s)%(space)s*>"
    % {b"space": _SPACE, b"name": _NAME, b"literal": _LITERAL}
)
_PASSED_OVER = re.compile(
    rb"%(space)s*<!(?:(?:ELEMENT|ATTLIST|NOTATION)%(space)s(?:[^<>\"'%%]|%(literal)s)*"
    rb"|ENTITY%(space)s+%(name)s%(space)s+(?:SYSTEM|PUBLIC%(space)s+%(literal)s)%(space)s+%(literal)s"
    rb"%(space)s+NDATA%(space)s+%(name)s%(space)s*)>"
    % {b"space": _SPACE, b"name": _NAME, b"literal": _LITERAL}
)
"""A declaration that changes no text. Of entities only the unparsed, as figures: text cannot name them."""
_PREDEFINED: Final = (b"lt", b"gt", b"amp", b"quot", b"apos")
"""Entities of XML itself. A declaration of one must agree with XML, and is passed over."""


def resolve_doctype(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield a file without the declarations of its DOCTYPE, the entities that it declares resolved.

    Args:
        blocks: UTF-8 without comments, processing instructions and CDATA.

    Raises:
        BadFileError: the DOCTYPE declares what is not read, or its entities lengthen the file too much.
    """
    head = b""
    doctype = subset = None
    for block in blocks:
        head = (head + block).lstrip()
        if not head.startswith(_DOCTYPE_START[: len(head)]) or len(head) > MAX_DOCTYPE_BYTES:
            break
        if b"[" in block or b">" in block:
            doctype = _DOCTYPE.match(head)
            subset = _SUBSET.match(head, doctype.end()) if doctype and doctype[1] == b"[" else None
            if doctype and (subset or doctype[1] == b">"):
                break
    doctype = doctype or _DOCTYPE.match(head)
    if doctype is None or doctype[1] == b">":
        yield head
        yield from blocks
        return
    subset = subset or _SUBSET.match(head, doctype.end())
    if subset is None or subset.end() > MAX_DOCTYPE_BYTES:
        if len(head) > MAX_DOCTYPE_BYTES:
            raise _declaration_error(f"they are longer than {MAX_DOCTYPE_BYTES:,} bytes")
        raise BadFileError("truncated-xml", f"ends within its DOCTYPE: {head[-60:]!r}")
    references = _parse_declarations(subset[1])
    blocks = itertools.chain((head[subset.end() :],), blocks)
    yield from _resolve_references(blocks, references) if references else blocks


def _declaration_error(problem: str) -> BadFileError:
    return BadFileError(
        "dtd-declarations",
        f"its DOCTYPE carries declarations of its own that are not read: {problem}. Only characters, "
        "notations, elements and attributes may be declared",
    )


def _parse_declarations(subset: bytes) -> dict[bytes, bytes]:
    """Return the declared entities: names and their text as character references.

    Raises:
        BadFileError: a declaration that is not read.
    """
    references: dict[bytes, bytes] = {}
    position, end = 0, len(subset.rstrip())
    while position < end:
        match = _CHARACTER_ENTITY.match(subset, position)
        if match and match[1] not in _PREDEFINED:
            text = _read_entity_text(match[1], match[2])
            if text is None or len(text) > MAX_ENTITY_CHARACTERS:
                raise _declaration_error(
                    f"entity {match[1][:40]!r} is more than a few characters, or has markup or entities in it"
                )
            references.setdefault(match[1], _to_references(text))  # the first declaration of a name counts
        match = match or _PASSED_OVER.match(subset, position)
        if match is None:
            raise _declaration_error(repr(subset[position : position + 60].strip()))
        position = match.end()
    return references


def _read_entity_text(name: bytes, literal: bytes) -> str | None:
    """Return the text that an entity stands for; None if it has markup or other entities in it."""
    from lxml import etree  # here, as few files declare entities

    parser = etree.XMLParser(no_network=True, strip_cdata=False)
    document = b"<!DOCTYPE a [<!ENTITY %b %b>]><a>&%b;</a>" % (name, literal, name)
    try:
        root = etree.fromstring(document, parser)
    except etree.XMLSyntaxError:
        return None
    has_markup = len(root) > 0 or b"<![CDATA[" in etree.tostring(root)
    return None if has_markup else root.text or ""


def _to_references(text: str) -> bytes:
    """Write all characters but letters, digits and blanks of ASCII as references."""
    return re.sub("[^A-Za-z0-9 ]", lambda character: f"&#{ord(character[0])};", text).encode()


_MAX_REFERENCE_BYTES: Final = 256
_ENTITY_REFERENCE = re.compile(rb"&(" + _NAME + rb");")


def _resolve_references(blocks: Iterator[bytes], references: Mapping[bytes, bytes]) -> Iterator[bytes]:
    """Yield the blocks with the declared entities resolved; other entities stay.

    Raises:
        BadFileError: the entities lengthen the file too much.
    """
    total_bytes = growth = 0

    def resolve(reference: re.Match[bytes]) -> bytes:
        nonlocal growth
        text = references.get(reference[1])
        if text is None:
            return reference[0]
        growth += max(0, len(text) - len(reference[0]))
        if growth > max(GROWTH_EXEMPT_BYTES, total_bytes):
            raise BadFileError("bomb", f"its entities make {total_bytes:,} bytes twice as long, and longer")
        return text

    pending = b""
    for block in blocks:
        total_bytes += len(block)
        block = pending + block
        start = block.rfind(b"&", max(0, len(block) - _MAX_REFERENCE_BYTES))
        is_cut = start >= 0 and b";" not in block[start:]
        block, pending = (block[:start], block[start:]) if is_cut else (block, b"")
        if block:
            yield _ENTITY_REFERENCE.sub(resolve, block)
    if pending:
        yield pending
