"""Read a tar archive from strangers, streaming: each entry's name and kind, then its bytes.

Python's tarfile takes some kinds of damage for the archive's end, reads headers of whatever size they
claim, and keeps every entry in memory (an archive of PMC's has hundreds of thousands).  Here an
archive that does not end as one does is truncated, sizes are bounded, and nothing is kept.

The format is POSIX.1-2001's (ustar and pax,
https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html) with GNU's long names and large
numbers (https://www.gnu.org/software/tar/manual/html_node/Standard.html): blocks of 512 bytes; a
header block, the content filled up with zeros, and so on; at the end two blocks of zeros.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from .errors import BadFileError

MAX_HEADER_BYTES: Final = 1 << 20
"""Largest extended header or long name.  Real ones have some hundred bytes."""

_BLOCK: Final = 512
_ZEROS: Final = bytes(_BLOCK)
_REGULAR: Final = (b"0", b"\0", b"7")
_WITHOUT_CONTENT: Final = (b"1", b"2", b"3", b"4", b"5", b"6")
"""Links, devices, folders and pipes: whatever size they state, no content follows."""
_LONG_NAME: Final = b"L"
_LONG_LINK: Final = b"K"
_PAX: Final = (b"x", b"X")
_PAX_OF_ALL: Final = b"g"
_SPARSE: Final = b"S"


class Source(Protocol):
    """What an archive is read from."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""
        ...


class Entry(NamedTuple):
    """An entry: its content is the next ``size`` bytes of what :class:`Tar` reads.

    Attributes:
        regular: is it a plain file, neither a link, device or folder nor stored with holes?
    """

    name: str
    regular: bool
    size: int


class Tar:
    """An open archive.  Between two entries as much may be read as the first has bytes, no more."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._left = self._padding = 0
        self._begun = False

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes of the entry; none at its end.

        Raises:
            BadFileError: the archive ends first.
        """
        piece = self._source.read(min(size, self._left)) if self._left else b""
        if self._left and not piece and size:
            raise BadFileError("truncated-archive", "the archive ends within a file")
        self._left -= len(piece)
        return piece

    def entries(self) -> Iterator[Entry]:
        """Each entry, in order; what has not been read of one is passed over.

        Raises:
            BadFileError: not-an-archive, corrupt-archive or truncated-archive.
        """
        every: dict[str, bytes] = {}
        own: dict[str, bytes] = {}
        while (block := self._exactly(_BLOCK)) != _ZEROS:
            header = self._header(block)
            if header.kind == _LONG_NAME:
                own["path"] = self._extension(header.size).split(b"\0", 1)[0]
            elif header.kind == _LONG_LINK:
                self._extension(header.size)
            elif header.kind in _PAX:
                own |= _pax(self._extension(header.size))
            elif header.kind == _PAX_OF_ALL:
                every |= _pax(self._extension(header.size))
            else:
                yield self._entry(block, header, every | own)
                self._pass_over()
                own = {}
        self._end()

    def _header(self, block: bytes) -> _Header:
        if not _checksum_fits(block):
            if self._begun:
                raise BadFileError("corrupt-archive", f"a header's checksum is wrong: {block[:40]!r}")
            raise BadFileError("not-an-archive", f"it does not begin as a tar archive does: {block[:40]!r}")
        self._begun = True
        return _header(block)

    def _entry(self, block: bytes, header: _Header, extended: dict[str, bytes]) -> Entry:
        """The entry, whose content comes next; ``extended``: what extended headers say of it."""
        more = header.kind == _SPARSE and block[482]
        while more:  # of the list of its holes
            more = self._exactly(_BLOCK)[504]
        size = _decimal(extended["size"]) if "size" in extended else header.size
        self._left = 0 if header.kind in _WITHOUT_CONTENT else size
        self._padding = -self._left % _BLOCK
        name = extended.get("path") or header.name
        regular = header.kind in _REGULAR and "holes" not in extended
        return Entry(name.decode("utf-8", "replace"), regular, self._left)

    def _pass_over(self) -> None:
        while self.read(_PASS_BYTES):
            pass
        self._exactly(self._padding)

    def _extension(self, size: int) -> bytes:
        if size > MAX_HEADER_BYTES:
            raise BadFileError("corrupt-archive", f"a header states {size:,} bytes")
        return self._exactly(size + -size % _BLOCK)[:size]

    def _exactly(self, size: int) -> bytes:
        parts: list[bytes] = []
        while size:
            piece = self._source.read(size)
            if not piece:
                if self._begun:
                    raise BadFileError("truncated-archive", "the archive ends before its end mark")
                raise BadFileError("not-an-archive", f"it is too short for one: {b''.join(parts)[:60]!r}")
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)

    def _end(self) -> None:
        """After the first block of zeros: another one, and nothing but zeros."""
        block = self._exactly(_BLOCK)
        while block:
            if block.strip(b"\0"):
                raise BadFileError("corrupt-archive", "there is more after the archive's end mark")
            block = self._source.read(_PASS_BYTES)


_PASS_BYTES: Final = 1 << 16


class _Header(NamedTuple):
    name: bytes
    kind: bytes
    size: int


def _checksum_fits(block: bytes) -> bool:
    """Is a header's checksum the sum of its bytes, with blanks for the checksum itself?"""
    stated = re.fullmatch(rb"[ 0]*([0-7]{1,6})[ \0]*", block[148:156])
    if stated is None:
        return False
    summed = block[:148] + b" " * 8 + block[156:]
    expected = int(stated[1], 8)
    # Some old writers added the bytes up as signed ones.
    return expected == sum(summed) or expected == sum(summed) - 256 * sum(byte > 127 for byte in summed)


def _header(block: bytes) -> _Header:
    """A header block: name 100 bytes, mode 8, uid 8, gid 8, size 12, time 12, checksum 8, type 1,
    link 100, magic 8, ..., and from byte 345 on what comes before the name, 155."""
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0]
    if prefix and block[257:263] == b"ustar\0":  # GNU has other things there
        name = prefix + b"/" + name
    kind = block[156:157]
    if kind == b"\0" and name.endswith(b"/"):  # a folder, before there were types
        kind = b"5"
    return _Header(name, kind, _number(block[124:136]))


def _number(field: bytes) -> int:
    """A number in octal digits or, where its first byte is 128, in the bytes that follow."""
    if field[0] == 128:
        return int.from_bytes(field[1:], "big")
    octal = re.fullmatch(rb"[ \0]*([0-7]*)[ \0]*", field)
    if octal is None:
        raise BadFileError("corrupt-archive", f"a header states a size of {field!r}")
    return int(octal[1] or b"0", 8)


def _decimal(digits: bytes) -> int:
    """A size as a pax header states it."""
    if not re.fullmatch(rb"[0-9]{1,19}", digits):
        raise BadFileError("corrupt-archive", f"a header states a size of {digits[:40]!r}")
    return int(digits)


def _pax(content: bytes) -> dict[str, bytes]:
    """What is needed of a pax header, whose records are ``LENGTH KEYWORD=VALUE`` and a line's end."""
    found = {}
    at = 0
    while at < len(content):
        length = re.match(rb"([1-9][0-9]{0,6}) ", content[at : at + 8])
        end = at + int(length[1]) if length else 0
        if length is None or end > len(content) or content[end - 1 : end] != b"\n":
            raise BadFileError("corrupt-archive", f"an extended header is damaged: {content[at : at + 40]!r}")
        keyword, _, value = content[at + length.end() : end - 1].partition(b"=")
        if keyword in (b"path", b"size"):
            found[keyword.decode()] = value
        elif keyword.startswith(b"GNU.sparse."):
            found["holes"] = value
        at = end
    return found
