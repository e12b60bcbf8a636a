"""The articles in a ``.tar``, ``.tar.gz`` or ``.zip`` of them, streamed, never extracted.

PMC's old packages of articles and Europe PMC's author manuscripts are such archives, and so is what
people have kept of them.  Nothing in an archive is believed: names go to no file system, stated sizes
are bounded, and what unpacks to far more than real text does is refused.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, Final

from .errors import BadFileError, BadRecordError
from .tar import Tar
from .xml_blocks import BLOCK_BYTES, Gunzip

ENDINGS: Final = (".tar.gz", ".tgz", ".tar", ".zip")
"""How the names of archives end."""
MAX_MEMBER_BYTES: Final = 64 << 20
"""Largest member, unpacked: that of an article (article_file.py)."""
MAX_RATIO: Final = 200
"""Most bytes unpacked of one packed.  XML packs to a fifth; a bomb to a thousandth and less."""
BOMB_BYTES: Final = 64 << 20
"""What may be unpacked whatever the ratio."""
MAX_NAME: Final = 4096
"""Longest name, in characters: Linux's PATH_MAX."""

_ARTICLES: Final = (".xml", ".nxml", ".xml.gz", ".nxml.gz")


class Member:
    """A member whose name is an article file's: to be read until the next one is asked for.

    Attributes:
        name: as the archive has it; never to be used as a path.
        bad: why it is not to be read: ``hostile-name``, ``not-a-file``, ``encrypted``,
            ``unsupported-compression`` or ``too-large``; then it reads as empty.
    """

    def __init__(self, name: str, bad: BadRecordError | None, read: Callable[[int], bytes]) -> None:
        self.name, self.bad = name, bad
        self._read = read
        self._fault: BadFileError | None = None

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the member's end.

        Raises:
            BadFileError: the archive is damaged.  Asking for the next member then raises it again.
        """
        if self._fault:
            raise self._fault
        try:
            return self._read(size)
        except BadFileError as fault:
            self._fault = fault
            raise

    def finish(self) -> None:
        """Read what is left, so that damage in it shows; then there is nothing more to read."""
        while self.read(BLOCK_BYTES):
            pass
        self._read = _nothing


def members(file: BinaryIO, name: str) -> Iterator[Member]:
    """Yield each article file in an archive, in order; other members are passed over.

    Args:
        file: the open archive; of a ``.zip``, one that can ``seek``.
        name: the archive's name, whose ending says what it is.

    Raises:
        BadFileError: ``not-an-archive``, ``truncated-archive``, ``corrupt-archive`` or ``bomb``, at the
            point where it shows; callers must drop what they have had from it so far.
    """
    found = _zip_members(file) if name.lower().endswith(".zip") else _tar_members(file)
    for member in found:
        yield member
        member.finish()


def _nothing(size: int) -> bytes:
    return b""


def _is_article(name: str) -> bool:
    """Is it an article file's name?  Hidden files are not (LocalFiles.walk leaves them out, too)."""
    return name.lower().endswith(_ARTICLES) and not re.split(r"[/\\]", name)[-1].startswith(".")


def _refusal(name: str, regular: bool, size: int) -> BadRecordError | None:
    """Why an article file is not to be read, as far as tar and zip have it in common."""
    if (
        name.startswith("/")
        or ".." in name.split("/")
        or "\\" in name
        or re.match("[A-Za-z]:", name)
        or not name.isprintable()
        or len(name) > MAX_NAME
    ):
        return BadRecordError("hostile-name", f"no name of a file within an archive: {name[:200]!r}")
    if not regular:
        return BadRecordError("not-a-file", f"{name[:200]!r} is a link, a device or not stored whole")
    if size > MAX_MEMBER_BYTES:
        return BadRecordError(
            "too-large", f"{name[:200]!r} has {size:,} bytes, more than {MAX_MEMBER_BYTES:,}"
        )
    return None


class _Bomb:
    """Counts what is packed and what comes out of it."""

    def __init__(self) -> None:
        self.packed = self._unpacked = 0

    def add(self, unpacked: int) -> None:
        self._unpacked += unpacked
        if self._unpacked > max(BOMB_BYTES, MAX_RATIO * self.packed):
            raise BadFileError("bomb", f"{self.packed:,} bytes unpack to more than {self._unpacked:,}")


# tar


def _tar_members(file: BinaryIO) -> Iterator[Member]:
    tar = Tar(_Unpacked(file))
    for entry in tar.entries():
        if _is_article(entry.name):
            bad = _refusal(entry.name, entry.regular, entry.size)
            yield Member(entry.name, bad, _nothing if bad else tar.read)


class _Unpacked:
    """A file's bytes, gunzipped where the gzip magic is there."""

    def __init__(self, file: BinaryIO) -> None:
        self._blocks = _blocks(file)
        self._block = b""
        self._at = 0

    def read(self, size: int, /) -> bytes:
        while self._at == len(self._block):
            block = next(self._blocks, None)
            if block is None:
                return b""
            self._block, self._at = block, 0
        piece = self._block[self._at : self._at + size]
        self._at += len(piece)
        return piece


_GUNZIP_FAULTS: Final = {"truncated-gzip": "truncated-archive", "corrupt-gzip": "corrupt-archive"}


def _blocks(file: BinaryIO) -> Iterator[bytes]:
    block = file.read(BLOCK_BYTES)
    if len(block) == 1:
        block += file.read(BLOCK_BYTES)
    if block[:2] != b"\x1f\x8b":
        while block:
            yield block
            block = file.read(BLOCK_BYTES)
        return
    gunzip, bomb = Gunzip(), _Bomb()
    try:
        while block:
            bomb.packed += len(block)
            for piece in gunzip.blocks(block):
                bomb.add(len(piece))
                yield piece
            block = file.read(BLOCK_BYTES)
        gunzip.finish()
    except BadFileError as bad:
        raise BadFileError(_GUNZIP_FAULTS.get(bad.reason, bad.reason), bad.detail) from bad


# zip

_ENCRYPTED: Final = 0x1 | 0x40
_ZIP_FAULTS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,  # features of the format that zipfile has not
    ValueError,  # names that are not in the encoding stated, offsets before the file
    OverflowError,
)
"""What zipfile raises for damaged archives.  OSError is not among them: that is the disk's."""


def _zip_members(file: BinaryIO) -> Iterator[Member]:
    bomb = _Bomb()
    bomb.packed = file.seek(0, 2)
    file.seek(0)
    begin = file.read(4)
    if begin not in (b"PK\3\4", b"PK\5\6"):
        raise BadFileError("not-an-archive", f"it does not begin as a zip archive does: {begin!r}")
    try:
        archive = zipfile.ZipFile(file)
    except _ZIP_FAULTS as error:
        if isinstance(error.__context__, OSError):  # zipfile takes a failing disk for the file's end
            raise error.__context__ from None
        if str(error) == "File is not a zip file":  # it has no end
            raise BadFileError(
                "truncated-archive", "the archive's directory, at its end, is missing"
            ) from error
        raise BadFileError("corrupt-archive", f"its directory cannot be read: {error}") from error
    with archive:
        infos = archive.infolist()
        if infos and min(info.header_offset for info in infos) != 0:
            raise BadFileError("corrupt-archive", "its directory is not that of its first member")
        for info in infos:
            name = info.orig_filename
            if _is_article(name):
                bad = _zip_refusal(info)
                yield Member(name, bad, _nothing if bad else _Unzipped(archive, info, bomb).read)


def _zip_refusal(info: zipfile.ZipInfo) -> BadRecordError | None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    name = info.orig_filename
    if bad := _refusal(name, kind in (0, stat.S_IFREG), info.file_size):
        return bad
    if info.flag_bits & _ENCRYPTED:
        return BadRecordError("encrypted", f"{name[:200]!r} is encrypted")
    # zipfile unpacks the other methods in pieces of any size.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        method = f"{name[:200]!r} is packed by method {info.compress_type}, not deflated"
        return BadRecordError("unsupported-compression", method)
    return None


class _Unzipped:
    """A member of a zip archive, opened when it is first read."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, bomb: _Bomb) -> None:
        self._archive, self._info, self._bomb = archive, info, bomb
        self._file: IO[bytes] | None = None
        self._left = info.file_size

    def read(self, size: int) -> bytes:
        try:
            if self._file is None:
                self._file = self._archive.open(self._info)
            piece = self._file.read(size)
        except _ZIP_FAULTS as error:
            raise BadFileError("corrupt-archive", f"{self._info.orig_filename[:200]!r}: {error}") from error
        self._left -= len(piece)
        if not piece and size and self._left:
            raise BadFileError(
                "corrupt-archive", f"{self._info.orig_filename[:200]!r} is shorter than it states"
            )
        self._bomb.add(len(piece))
        return piece
