"""Stream an untrusted tar archive: name and type of each entry, then its bytes.

The standard library's tarfile treats some damage as the end of the archive, reads headers of any stated size,
and keeps every entry in memory (PMC's archives have hundreds of thousands). This reader detects truncation,
bounds sizes, and keeps nothing.

Format: POSIX.1-2001 ustar and pax
(https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html) with GNU's long names and large numbers
(https://www.gnu.org/software/tar/manual/html_node/Standard.html). Blocks have 512 bytes: a header block, the
content padded with zeros, and so on; two zero blocks end the archive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from bioshards.corpus.errors import BadFileError
from bioshards.corpus.xml.decoder import ByteStream

MAX_HEADER_BYTES: Final = 1 << 20
"""Largest extended header or long name. Real ones have some hundred bytes."""

_BLOCK_BYTES: Final = 512
_ZERO_BLOCK: Final = bytes(_BLOCK_BYTES)
_REGULAR_TYPES: Final = (b"0", b"\0", b"7")
_TYPES_WITHOUT_CONTENT: Final = (b"1", b"2", b"3", b"4", b"5", b"6")
"""Links, devices, directories and pipes: no content follows, whatever size is stated."""
_LONG_NAME: Final = b"L"
_LONG_LINK: Final = b"K"
_PAX: Final = (b"x", b"X")
_PAX_GLOBAL: Final = b"g"
_SPARSE: Final = b"S"


class TarEntry(NamedTuple):
    """An entry. Its content is the next ``size`` bytes that :meth:`TarReader.read` returns.

    Attributes:
        name: name in the archive.
        is_regular: True for a regular, non-sparse file.
        size: bytes of content.
    """

    name: str
    is_regular: bool
    size: int


class TarReader:
    """An open tar archive."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._bytes_left = self._padding_bytes = 0
        self._has_read_header = False

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes of the current entry; none at its end.

        Raises:
            BadFileError: the archive is truncated.
        """
        chunk = self._stream.read(min(size, self._bytes_left)) if self._bytes_left else b""
        if self._bytes_left and not chunk and size:
            raise BadFileError("truncated-archive", "the archive ends within a file")
        self._bytes_left -= len(chunk)
        return chunk

    def iter_entries(self) -> Iterator[TarEntry]:
        """Yield each entry, in order; unread content is skipped.

        Raises:
            BadFileError: ``not-an-archive``, ``corrupt-archive`` or ``truncated-archive``.
        """
        global_fields: dict[str, bytes] = {}
        entry_fields: dict[str, bytes] = {}
        while (block := self._read_exactly(_BLOCK_BYTES)) != _ZERO_BLOCK:
            header = self._read_header(block)
            if header.type_flag == _LONG_NAME:
                entry_fields["path"] = self._read_extension(header.size).split(b"\0", 1)[0]
            elif header.type_flag == _LONG_LINK:
                self._read_extension(header.size)
            elif header.type_flag in _PAX:
                entry_fields |= _parse_pax(self._read_extension(header.size))
            elif header.type_flag == _PAX_GLOBAL:
                global_fields |= _parse_pax(self._read_extension(header.size))
            else:
                yield self._make_entry(block, header, global_fields | entry_fields)
                self._skip_entry()
                entry_fields = {}
        self._check_end()

    def _read_header(self, block: bytes) -> _Header:
        if not _has_valid_checksum(block):
            if self._has_read_header:
                raise BadFileError("corrupt-archive", f"a header's checksum is wrong: {block[:40]!r}")
            raise BadFileError("not-an-archive", f"it does not begin as a tar archive does: {block[:40]!r}")
        self._has_read_header = True
        return _parse_header(block)

    def _make_entry(self, block: bytes, header: _Header, extended_fields: dict[str, bytes]) -> TarEntry:
        """Create the entry whose content follows; ``extended_fields`` override the header."""
        has_more_holes = header.type_flag == _SPARSE and block[482]
        while has_more_holes:  # skip the sparse map
            has_more_holes = self._read_exactly(_BLOCK_BYTES)[504]
        size = _parse_decimal(extended_fields["size"]) if "size" in extended_fields else header.size
        self._bytes_left = 0 if header.type_flag in _TYPES_WITHOUT_CONTENT else size
        self._padding_bytes = -self._bytes_left % _BLOCK_BYTES
        name = extended_fields.get("path") or header.name
        is_regular = header.type_flag in _REGULAR_TYPES and "holes" not in extended_fields
        return TarEntry(name.decode("utf-8", "replace"), is_regular, self._bytes_left)

    def _skip_entry(self) -> None:
        while self.read(_SKIP_BYTES):
            pass
        self._read_exactly(self._padding_bytes)

    def _read_extension(self, size: int) -> bytes:
        if size > MAX_HEADER_BYTES:
            raise BadFileError("corrupt-archive", f"a header states {size:,} bytes")
        return self._read_exactly(size + -size % _BLOCK_BYTES)[:size]

    def _read_exactly(self, size: int) -> bytes:
        chunks: list[bytes] = []
        while size:
            chunk = self._stream.read(size)
            if not chunk:
                if self._has_read_header:
                    raise BadFileError("truncated-archive", "the archive ends before its end mark")
                raise BadFileError("not-an-archive", f"it is too short for one: {b''.join(chunks)[:60]!r}")
            chunks.append(chunk)
            size -= len(chunk)
        return b"".join(chunks)

    def _check_end(self) -> None:
        """Check that only zeros follow the first zero block, with at least one more zero block."""
        block = self._read_exactly(_BLOCK_BYTES)
        while block:
            if block.strip(b"\0"):
                raise BadFileError("corrupt-archive", "there is more after the archive's end mark")
            block = self._stream.read(_SKIP_BYTES)


_SKIP_BYTES: Final = 1 << 16


class _Header(NamedTuple):
    name: bytes
    type_flag: bytes
    size: int


def _has_valid_checksum(block: bytes) -> bool:
    """Return True if the checksum equals the sum of the header's bytes, with blanks in its own field."""
    match = re.fullmatch(rb"[ 0]*([0-7]{1,6})[ \0]*", block[148:156])
    if match is None:
        return False
    checked_bytes = block[:148] + b" " * 8 + block[156:]
    expected = int(match[1], 8)
    # Some old writers summed signed bytes.
    return expected == sum(checked_bytes) or expected == sum(checked_bytes) - 256 * sum(
        byte > 127 for byte in checked_bytes
    )


def _parse_header(block: bytes) -> _Header:
    """Parse a header block.

    Layout in bytes: name 100, mode 8, uid 8, gid 8, size 12, time 12, checksum 8, type 1, link 100, magic 8,
    ..., and from byte 345 the name's prefix, 155.
    """
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0]
    if prefix and block[257:263] == b"ustar\0":  # GNU uses these bytes differently
        name = prefix + b"/" + name
    type_flag = block[156:157]
    if type_flag == b"\0" and name.endswith(b"/"):  # directory in pre-POSIX archives
        type_flag = b"5"
    return _Header(name, type_flag, _parse_number(block[124:136]))


def _parse_number(field: bytes) -> int:
    """Parse a number in octal digits or, if the first byte is 128, in big-endian bytes."""
    if field[0] == 128:
        return int.from_bytes(field[1:], "big")
    octal = re.fullmatch(rb"[ \0]*([0-7]*)[ \0]*", field)
    if octal is None:
        raise BadFileError("corrupt-archive", f"a header states a size of {field!r}")
    return int(octal[1] or b"0", 8)


def _parse_decimal(digits: bytes) -> int:
    """Parse a size of a pax header."""
    if not re.fullmatch(rb"[0-9]{1,19}", digits):
        raise BadFileError("corrupt-archive", f"a header states a size of {digits[:40]!r}")
    return int(digits)


def _parse_pax(content: bytes) -> dict[str, bytes]:
    """Parse path, size and sparse fields of a pax header: records ``LENGTH KEYWORD=VALUE\\n``."""
    fields = {}
    position = 0
    while position < len(content):
        length = re.match(rb"([1-9][0-9]{0,6}) ", content[position : position + 8])
        end = position + int(length[1]) if length else 0
        if length is None or end > len(content) or content[end - 1 : end] != b"\n":
            raise BadFileError(
                "corrupt-archive", f"an extended header is damaged: {content[position : position + 40]!r}"
            )
        keyword, _, value = content[position + length.end() : end - 1].partition(b"=")
        if keyword in (b"path", b"size"):
            fields[keyword.decode()] = value
        elif keyword.startswith(b"GNU.sparse."):
            fields["holes"] = value
        position = end
    return fields
