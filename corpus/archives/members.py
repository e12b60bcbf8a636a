"""Stream the article files of a ``.tar``, ``.tar.gz`` or ``.zip`` archive without extracting it.

PMC's former article packages and Europe PMC's author manuscripts are such archives. Archives are untrusted:
member names are never used as paths, stated sizes are bounded, and decompression bombs are rejected. A
damaged archive is rejected as a whole, or salvaged: whole members are read, and what is lost is reported.
"""

from __future__ import annotations

import functools
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, Final, TypeAlias

from bioshards.corpus.archives.tar import TarReader
from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.xml.decoder import BLOCK_BYTES, BoundedGunzip

ARCHIVE_EXTENSIONS: Final = (".tar.gz", ".tgz", ".tar", ".zip")
"""File name extensions of archives."""
MAX_MEMBER_BYTES: Final = 64 << 20
"""Largest decompressed member: the limit of an article (article_stream.py)."""
MAX_COMPRESSION_RATIO: Final = 200
"""Largest ratio of decompressed to compressed bytes. XML has about 5; a bomb 1,000 and more."""
RATIO_EXEMPT_BYTES: Final = 64 << 20
"""Decompressed bytes below which the ratio is not checked."""
MAX_SKIPPED_BYTES: Final = 8 << 30
"""Decompressed bytes of bombs that are skipped to salvage the members after them."""
MAX_NAME_LENGTH: Final = 4096
"""Longest member name in characters: PATH_MAX of Linux."""

_ARTICLE_EXTENSIONS: Final = (".xml", ".nxml", ".xml.gz", ".nxml.gz")


class ArchiveMember:
    """An article file in an archive; readable until the next member is requested.

    Attributes:
        name: name in the archive; never to be used as a path. '' for the rest of an archive, which is lost.
        error: why the member is rejected (``hostile-name``, ``not-a-file``, ``encrypted``,
            ``unsupported-compression`` or ``too-large``), or None. A rejected member reads as empty.
    """

    def __init__(self, name: str, error: BadRecordError | None, read: Callable[[int], bytes]) -> None:
        self.name, self.error = name, error
        self._read = read
        self._failure: BadFileError | None = None

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the member's end.

        Raises:
            BadFileError: the archive is damaged. Requesting the next member raises it again, unless the
                archive is salvaged.
        """
        if self._failure:
            raise self._failure
        try:
            return self._read(size)
        except BadFileError as error:
            self._failure = error
            raise

    def drain(self) -> None:
        """Read the rest of the member, so that damage in it is detected."""
        while self.read(BLOCK_BYTES):
            pass
        self.close()

    def close(self) -> None:
        """End the member: it reads as empty."""
        self._read = _read_nothing

    @property
    def is_whole(self) -> bool:
        """Return True if the member is not rejected, and no damage was found in what was read of it."""
        return self.error is None and self._failure is None


def iter_members(file: BinaryIO, name: str, salvage: bool = False) -> Iterator[ArchiveMember]:
    """Yield each article file of an archive, in order; other members are skipped.

    Args:
        file: the open archive; seekable for ``.zip``.
        name: name of the archive; its extension selects the format.
        salvage: a member that is damaged or a bomb raises when it is read, and members after it follow. If
            these are lost, the last item is a rejected member without a name. Members must be read to
            their end, where damage in them is detected.

    Raises:
        BadFileError: ``not-an-archive``, ``truncated-archive``, ``corrupt-archive`` or ``bomb``, as soon as
            it is detected. Callers must discard the members read so far. With ``salvage``, only if the
            whole members cannot be told from the damaged ones.
    """
    bomb_detector = _BombDetector(MAX_SKIPPED_BYTES if salvage else 0)
    if name.lower().endswith(".zip"):
        article_members = _iter_zip_members(file, bomb_detector, salvage)
    elif salvage:
        article_members = _iter_salvaged_tar_members(file, bomb_detector)
    else:
        article_members = _iter_tar_members(_DecompressedFile(file, bomb_detector), bomb_detector)
    for member in article_members:
        yield member
        if salvage:
            member.close()
        else:
            member.drain()


def _read_nothing(size: int) -> bytes:
    return b""


def _is_article_name(name: str) -> bool:
    """Return True for the name of an article file. Hidden files are ignored, as in ``LocalStorage.walk``."""
    return name.lower().endswith(_ARTICLE_EXTENSIONS) and not re.split(r"[/\\]", name)[-1].startswith(".")


def _check_member(name: str, is_regular: bool, size: int) -> BadRecordError | None:
    """Return why a member is rejected, or None. Contains the checks that tar and zip share."""
    if (
        name.startswith("/")
        or ".." in name.split("/")
        or "\\" in name
        or re.match("[A-Za-z]:", name)
        or not name.isprintable()
        or len(name) > MAX_NAME_LENGTH
    ):
        return BadRecordError("hostile-name", f"unsafe member name: {name[:200]!r}")
    if not is_regular:
        return BadRecordError("not-a-file", f"{name[:200]!r} is a link, a device or not stored whole")
    if size > MAX_MEMBER_BYTES:
        return BadRecordError(
            "too-large", f"{name[:200]!r} has {size:,} bytes, more than {MAX_MEMBER_BYTES:,}"
        )
    return None


class _BombDetector:
    """Counter of compressed and decompressed bytes.

    Attributes:
        packed_bytes: compressed bytes read.
        skipped_bytes: decompressed bytes of members that are not used; they do not make other members bombs.

    Args:
        max_skipped_bytes: decompressed bytes beyond the permitted ratio that may be skipped.
    """

    def __init__(self, max_skipped_bytes: int) -> None:
        self.packed_bytes = self.skipped_bytes = self._unpacked_bytes = 0
        self._max_skipped_bytes = max_skipped_bytes

    def add_unpacked(self, num_bytes: int) -> None:
        """Count decompressed bytes.

        Raises:
            BadFileError: the compression ratio of the archive is too high.
        """
        self._unpacked_bytes += num_bytes
        self._check(self._max_skipped_bytes)

    def check_member(self) -> None:
        """Check the ratio of the members that are used.

        Raises:
            BadFileError: the current member makes it too high.
        """
        self._check(self.skipped_bytes)

    def _check(self, exempt_bytes: int) -> None:
        max_bytes = max(RATIO_EXEMPT_BYTES, MAX_COMPRESSION_RATIO * self.packed_bytes)
        if self._unpacked_bytes > max_bytes + exempt_bytes:
            raise BadFileError(
                "bomb", f"{self.packed_bytes:,} bytes unpack to more than {self._unpacked_bytes:,}"
            )


# tar


def _iter_tar_members(stream: _DecompressedFile, bomb_detector: _BombDetector) -> Iterator[ArchiveMember]:
    tar = TarReader(stream)

    def read(size: int) -> bytes:
        chunk = tar.read(size)
        bomb_detector.check_member()
        return chunk

    for entry in tar.iter_entries():
        is_used = False
        if _is_article_name(entry.name):
            member_error = _check_member(entry.name, entry.is_regular, entry.size)
            member = ArchiveMember(entry.name, member_error, _read_nothing if member_error else read)
            yield member
            is_used = member.is_whole
        if not is_used:
            bomb_detector.skipped_bytes += entry.size


def _iter_salvaged_tar_members(file: BinaryIO, bomb_detector: _BombDetector) -> Iterator[ArchiveMember]:
    """Yield the members before the damage, then the loss of those after it.

    Compressed data that ends too early is right up to its end. If its checksum is wrong, any of it may be.
    """
    stream = _DecompressedFile(file, bomb_detector)
    last_name = ""
    has_whole_member = False
    try:
        for member in _iter_tar_members(stream, bomb_detector):
            yield member
            last_name = member.name
            has_whole_member = has_whole_member or member.is_whole
    except BadFileError as error:
        if not has_whole_member or stream.drain() == "corrupt-archive":
            raise
        lost = f"{error.detail}; what follows {last_name[:200]!r} is lost"
        yield ArchiveMember("", BadRecordError(error.reason, lost), _read_nothing)


class _DecompressedFile:
    """Readable stream of a file, decompressed if it has the gzip magic."""

    def __init__(self, file: BinaryIO, bomb_detector: _BombDetector) -> None:
        self._blocks = _iter_decompressed_blocks(file, bomb_detector)
        self._block = b""
        self._position = 0
        self._failure: BadFileError | None = None

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the end.

        Raises:
            BadFileError: the compressed data is damaged or a bomb; so does every later call.
        """
        while self._position == len(self._block):
            if self._failure:
                raise self._failure
            try:
                block = next(self._blocks, None)
            except BadFileError as error:
                self._failure = error
                raise
            if block is None:
                return b""
            self._block, self._position = block, 0
        chunk = self._block[self._position : self._position + size]
        self._position += len(chunk)
        return chunk

    def drain(self) -> str | None:
        """Read the rest; return the reason of damage in it, or None."""
        try:
            while self.read(BLOCK_BYTES):
                pass
        except BadFileError as error:
            return error.reason
        return None


_ARCHIVE_REASON_BY_GZIP_REASON: Final = {
    "truncated-gzip": "truncated-archive",
    "corrupt-gzip": "corrupt-archive",
}


def _iter_decompressed_blocks(file: BinaryIO, bomb_detector: _BombDetector) -> Iterator[bytes]:
    block = file.read(BLOCK_BYTES)
    if len(block) == 1:
        block += file.read(BLOCK_BYTES)
    if block[:2] != b"\x1f\x8b":
        while block:
            yield block
            block = file.read(BLOCK_BYTES)
        return
    gunzip = BoundedGunzip()
    try:
        while block:
            bomb_detector.packed_bytes += len(block)
            for chunk in gunzip.decompress(block):
                bomb_detector.add_unpacked(len(chunk))
                yield chunk
            block = file.read(BLOCK_BYTES)
        gunzip.finish()
    except BadFileError as error:
        raise BadFileError(
            _ARCHIVE_REASON_BY_GZIP_REASON.get(error.reason, error.reason), error.detail
        ) from error


# zip

_ENCRYPTED_FLAGS: Final = 0x1 | 0x40
_SIZES_FOLLOW_FLAG: Final = 0x8
_UTF_8_FLAG: Final = 0x800
_LOCAL_HEADER: Final = struct.Struct("<4s2xHH4xLLLHH")
"""Header before a member: magic, flags, method, CRC, compressed size, size, lengths of name and extra field
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.7)."""
_ZIP64_SIZE: Final = 0xFFFFFFFF
_OpenMember: TypeAlias = Callable[[], "IO[bytes] | zipfile.ZipExtFile"]
_NO_DIRECTORY: Final = "the archive's directory, at its end, is missing"
_ZIP_ERRORS: Final = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,  # unsupported features of the format
    ValueError,  # undecodable names, negative offsets
    OverflowError,
)
"""Exceptions of zipfile for damaged archives. OSError is excluded: it is an error of the disk."""


def _iter_zip_members(file: BinaryIO, bomb_detector: _BombDetector, salvage: bool) -> Iterator[ArchiveMember]:
    bomb_detector.packed_bytes = file.seek(0, 2)
    file.seek(0)
    magic = file.read(4)
    if magic not in (b"PK\3\4", b"PK\5\6"):
        raise BadFileError("not-an-archive", f"it does not begin as a zip archive does: {magic!r}")
    try:
        archive = zipfile.ZipFile(file)
    except _ZIP_ERRORS as error:
        if isinstance(error.__context__, OSError):  # zipfile reports a disk error as end of file
            raise error.__context__ from None
        if str(error) == "File is not a zip file":  # it has no end
            if salvage:
                yield from _iter_salvaged_zip_members(file, bomb_detector)
                return
            raise BadFileError("truncated-archive", _NO_DIRECTORY) from error
        raise BadFileError("corrupt-archive", f"its directory cannot be read: {error}") from error
    with archive:
        infos = archive.infolist()
        if infos and min(info.header_offset for info in infos) != 0:
            raise BadFileError("corrupt-archive", "its directory is not that of its first member")
        for info in infos:
            yield from _iter_zip_member(info, functools.partial(archive.open, info), bomb_detector)


def _iter_zip_member(
    info: zipfile.ZipInfo,
    open_member: _OpenMember,
    bomb_detector: _BombDetector,
) -> Iterator[ArchiveMember]:
    """Yield the member if it is an article file."""
    if _is_article_name(info.orig_filename):
        member_error = _check_zip_member(info)
        reader = _ZipMemberReader(open_member, info, bomb_detector)
        read = _read_nothing if member_error else reader.read
        member = ArchiveMember(info.orig_filename, member_error, read)
        yield member
        if not member.is_whole:
            bomb_detector.skipped_bytes += reader.num_bytes_read


def _iter_salvaged_zip_members(file: BinaryIO, bomb_detector: _BombDetector) -> Iterator[ArchiveMember]:
    """Yield the members of an archive without its directory by the header before each, then the loss.

    A member is found by the size of the one before. A writer that cannot seek states no sizes there, so
    that the members after such a one are lost.
    """
    position, last_name, has_whole_member, problem = 0, "", False, _NO_DIRECTORY
    while len(header := _read_at(file, position, _LOCAL_HEADER.size)) == _LOCAL_HEADER.size:
        magic, flags, method, crc, packed_size, size, name_size, extra_size = _LOCAL_HEADER.unpack(header)
        if magic != b"PK\3\4":
            break
        name = file.read(name_size).decode("utf-8" if flags & _UTF_8_FLAG else "cp437", "replace")
        if flags & _SIZES_FOLLOW_FLAG or _ZIP64_SIZE in (packed_size, size):
            problem = f"{_NO_DIRECTORY}, and {name[:200]!r} does not state its size before its data"
            break
        info = zipfile.ZipInfo(name)
        info.flag_bits, info.compress_type, info.CRC = flags, method, crc
        info.compress_size, info.file_size = packed_size, size
        position += _LOCAL_HEADER.size + name_size + extra_size
        for member in _iter_zip_member(
            info, functools.partial(_open_at, file, position, info), bomb_detector
        ):
            yield member
            last_name = member.name
            has_whole_member = has_whole_member or member.is_whole
        position += packed_size
    if not has_whole_member:
        raise BadFileError("truncated-archive", problem)
    lost = f"{problem}; what follows {last_name[:200]!r} is lost"
    yield ArchiveMember("", BadRecordError("truncated-archive", lost), _read_nothing)


def _read_at(file: BinaryIO, position: int, size: int) -> bytes:
    file.seek(position)
    return file.read(size)


def _open_at(file: BinaryIO, position: int, info: zipfile.ZipInfo) -> zipfile.ZipExtFile:
    file.seek(position)
    return zipfile.ZipExtFile(file, "r", info)


def _check_zip_member(info: zipfile.ZipInfo) -> BadRecordError | None:
    file_type = stat.S_IFMT(info.external_attr >> 16)
    name = info.orig_filename
    if member_error := _check_member(name, file_type in (0, stat.S_IFREG), info.file_size):
        return member_error
    if info.flag_bits & _ENCRYPTED_FLAGS:
        return BadRecordError("encrypted", f"{name[:200]!r} is encrypted")
    # zipfile does not bound the chunks of other methods.
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        message = f"{name[:200]!r} is packed by method {info.compress_type}, not deflated"
        return BadRecordError("unsupported-compression", message)
    return None


class _ZipMemberReader:
    """Reader of a zip member; the member is opened at the first read."""

    def __init__(
        self,
        open_member: _OpenMember,
        info: zipfile.ZipInfo,
        bomb_detector: _BombDetector,
    ) -> None:
        self._open_member, self._info, self._bomb_detector = open_member, info, bomb_detector
        self._file: IO[bytes] | zipfile.ZipExtFile | None = None
        self._bytes_left = info.file_size

    @property
    def num_bytes_read(self) -> int:
        return self._info.file_size - self._bytes_left

    def read(self, size: int) -> bytes:
        try:
            if self._file is None:
                self._file = self._open_member()
            chunk = self._file.read(size)
        except _ZIP_ERRORS as error:
            raise BadFileError("corrupt-archive", f"{self._info.orig_filename[:200]!r}: {error}") from error
        self._bytes_left -= len(chunk)
        if not chunk and size and self._bytes_left:
            raise BadFileError(
                "corrupt-archive", f"{self._info.orig_filename[:200]!r} is shorter than it states"
            )
        self._bomb_detector.add_unpacked(len(chunk))
        self._bomb_detector.check_member()
        return chunk
