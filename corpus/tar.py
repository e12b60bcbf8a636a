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

from .xml_blocks import BadFile

MAX_HEADER_BYTES: Final = 1 << 20
"""Largest extended header or long name.  Real ones have some hundred bytes."""

_BLOCK: Final = 512
_ZEROS: Final = bytes(_BLOCK)
_REGULAR: Final = (b"0", b"\0", b"7")
_WITHOUT_CONTENT: Final = (b"1", b"2", b"3", b"4", b"5", b"6")
"""Links, devices, folders and pipes: whatever size they state, no content follows."""
_LONG_NAME, _LONG_LINK, _PAX, _PAX_OF_ALL, _SPARSE = b"L", b"K", b"x", b"g", b"S"


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
        self._left = 0
        self._padding = 0

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes of the entry; none at its end.

        Raises:
            BadFile: the archive ends first.
        """
        piece = self._source.read(min(size, self._left)) if self._left else b""
        if self._left and not piece and size:
            raise BadFile("truncated-archive", "the archive ends within a file")
        self._left -= len(piece)
        return piece

    def entries(self) -> Iterator[Entry]:
        """Each entry, in order; what has not been read of one is passed over.

        Raises:
            BadFile: not-an-archive, corrupt-archive or truncated-archive.
        """
        every: dict[str, bytes] = {}
        own: dict[str, bytes] = {}
        first = True
        while (block := self._exactly(_BLOCK)) != _ZEROS:
            header = _header(block, first)
            first = False
            size = _size(own.get("size") or every.get("size"), header.size)
            if header.kind in (_LONG_NAME, _PAX, _PAX_OF_ALL):
                content = self._extension(header.size)
                if header.kind == _LONG_NAME:
                    own["path"] = content.split(b"\0", 1)[0]
                else:
                    (own if header.kind == _PAX else every).update(_pax(content))
                continue
            if header.kind == _SPARSE and block[482]:
                while self._exactly(_BLOCK)[504]:  # more of the list of its holes
                    pass
            self._left = 0 if header.kind in _WITHOUT_CONTENT else size
            self._padding = -self._left % _BLOCK
            if header.kind != _LONG_LINK:
                name = own.get("path") or every.get("path") or header.name
                regular = header.kind in _REGULAR and "holes" not in own
                yield Entry(name.decode("utf-8", "replace"), regular, self._left)
                own = {}
            self._pass_over()
        self._end()

    def _pass_over(self) -> None:
        while self.read(_PASS_BYTES):
            pass
        self._exactly(self._padding)

    def _extension(self, size: int) -> bytes:
        if size > MAX_HEADER_BYTES:
            raise BadFile("corrupt-archive", f"a header states {size:,} bytes")
        return self._exactly(size + -size % _BLOCK)[:size]

    def _exactly(self, size: int) -> bytes:
        parts = []
        while size:
            piece = self._source.read(size)
            if not piece:
                raise BadFile("truncated-archive", "the archive ends before its end mark")
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)

    def _end(self) -> None:
        """After the first block of zeros: another one, and nothing but zeros."""
        block = self._exactly(_BLOCK)
        while block:
            if block.strip(b"\0"):
                raise BadFile("corrupt-archive", "there is more after the archive's end mark")
            block = self._source.read(_PASS_BYTES)


_PASS_BYTES: Final = 1 << 16


class _Header(NamedTuple):
    name: bytes
    kind: bytes
    size: int


def _header(block: bytes, first: bool) -> _Header:
    """What a header block says.  Its layout: name 100, mode 8, uid 8, gid 8, size 12, mtime 12,
    checksum 8, type 1, link 100, magic 6, ..., name's prefix 155 from byte 345."""
    stated = re.fullmatch(rb"[ 0]*([0-7]{1,6})[ \0]*", block[148:156])
    # Some old writers added the bytes up as signed ones.
    unsigned = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    signed = unsigned - 256 * sum(byte > 127 for byte in block[:148] + block[156:])
    if stated is None or int(stated[1], 8) not in (unsigned, signed):
        if first:
            raise BadFile("not-an-archive", f"it does not begin as a tar archive does: {block[:40]!r}")
        raise BadFile("corrupt-archive", f"a header's checksum is wrong: {block[:40]!r}")
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0]
    if prefix and block[257:263] == b"ustar\0":  # GNU's has other things there
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
        raise BadFile("corrupt-archive", f"a header states a size of {field!r}")
    return int(octal[1] or b"0", 8)


def _size(stated: bytes | None, otherwise: int) -> int:
    """The size that a pax header states, in decimal digits."""
    if stated is None:
        return otherwise
    if not re.fullmatch(rb"[0-9]{1,19}", stated):
        raise BadFile("corrupt-archive", f"a header states a size of {stated[:40]!r}")
    return int(stated)


def _pax(content: bytes) -> dict[str, bytes]:
    """What is needed of a pax header, whose records are ``LENGTH KEYWORD=VALUE`` and a line's end."""
    found = {}
    at = 0
    while at < len(content):
        length = re.match(rb"([1-9][0-9]{0,6}) ", content[at : at + 8])
        end = at + int(length[1]) if length else 0
        if length is None or end > len(content) or content[end - 1 : end] != b"\n":
            raise BadFile("corrupt-archive", f"an extended header is damaged: {content[at : at + 40]!r}")
        keyword, _, value = content[at + length.end() : end - 1].partition(b"=")
        if keyword in (b"path", b"size"):
            found[keyword.decode()] = value
        elif keyword.startswith(b"GNU.sparse."):
            found["holes"] = value
        at = end
    return found
