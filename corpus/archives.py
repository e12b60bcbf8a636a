"""Stream the article files of a ``.tar``, ``.tar.gz`` or ``.zip`` archive without extracting it.

PMC's former article packages and Europe PMC's author manuscripts are such archives. Archives are untrusted:
member names are never used as paths, stated sizes are bounded, and decompression bombs are rejected. A
damaged archive is rejected as a whole. An archive within an archive is a member that :func:`iter_members`
reads too, one level deep and if it is a tar: the directory of a ``.zip`` is at its end.
"""

from __future__ import annotations

import re
import stat
import struct
import tarfile
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import IO, BinaryIO, Final, Self, cast

from bioshards.corpus.errors import BadFileError, BadRecordError
from bioshards.corpus.xml.decoder import BLOCK_BYTES, BoundedGunzip, ByteStream, check_ratio

ARCHIVE_EXTENSIONS: Final = (".tar.gz", ".tgz", ".tar", ".zip")
"""File name extensions of archives."""
MAX_MEMBER_BYTES: Final = 64 << 20
"""Largest decompressed member: the limit of an article (article_stream.py)."""
MAX_NAME_LENGTH: Final = 4096
"""Longest member name in characters: PATH_MAX of Linux."""
MAX_TAR_HEADER_BYTES: Final = 1 << 16
"""Longest header of a tar member, with its extensions. Real ones have a few thousand bytes at most."""
MAX_ZIP_DIRECTORY_BYTES: Final = 64 << 20
"""Longest directory of a zip archive, some 600,000 members. zipfile keeps it in ten times the memory."""
MAX_GLOBAL_FIELDS: Final = 100
"""Most fields that global headers of a tar set. tarfile keeps them all, and copies them for every member;
``git archive`` writes one."""

_ARTICLE_EXTENSIONS: Final = (".xml", ".nxml", ".xml.gz", ".nxml.gz")


class ArchiveMember:
    """An article file in an archive; readable until the next member is requested.

    Attributes:
        name: name in the archive; never to be used as a path.
        error: why the member is rejected (``hostile-name``, ``not-a-file``, ``nested-archive``,
            ``encrypted``, ``unsupported-compression`` or ``too-large``), or None. A rejected member reads as
            empty.
    """

    def __init__(self, name: str, error: BadRecordError | None, read: Callable[[int], bytes]) -> None:
        self.name, self.error = name, error
        self._read = _read_nothing if error else read
        self._failure: BadFileError | None = None

    def read(self, size: int, /) -> bytes:
        """Return at most ``size`` bytes; none at the member's end.

        Raises:
            BadFileError: the archive is damaged. Requesting the next member raises it again.
        """
        if self._failure:
            raise self._failure
        try:
            return self._read(size)
        except BadFileError as error:
            self._failure = error
            raise

    def drain(self) -> None:
        """Read the rest of the member, so that damage in it is detected; it then reads as empty."""
        while self.read(BLOCK_BYTES):
            pass
        self._read = _read_nothing


def iter_members(
    file: ByteStream, name: str, skipped: Counter[str] | None = None, is_nested: bool = False
) -> Iterator[ArchiveMember]:
    """Yield each article file and each archive within an archive, in order; other entries are skipped.

    Args:
        file: the open archive; seekable for ``.zip``.
        name: name of the archive; its extension selects the format.
        skipped: counts the skipped entries: ``directory``, ``link``, ``hidden file``, ``other file``.
        is_nested: True for a member of an archive, whose own archives are rejected.

    Raises:
        BadFileError: ``not-an-archive``, ``truncated-archive``, ``corrupt-archive`` or ``bomb``, as soon as
            it is detected. Callers must discard the members read so far.
    """
    skipped = Counter() if skipped is None else skipped
    is_zip = name.lower().endswith(".zip")
    members = _iter_zip_members(cast(BinaryIO, file), skipped) if is_zip else _iter_tar_members(file, skipped)
    for member in members:
        if is_nested and not member.error and member.name.lower().endswith(ARCHIVE_EXTENSIONS):
            member = ArchiveMember(member.name, _reject_nested(member.name), _read_nothing)
        yield member
        member.drain()


def _read_nothing(size: int) -> bytes:
    return b""


def _find_skip_reason(name: str, is_directory: bool, is_regular: bool) -> str:
    """Return the kind of an entry that is no article and no archive; '' for those.

    Hidden files are ignored, as in ``LocalStorage.walk``.
    """
    if is_directory:
        return "directory"
    if re.split(r"[/\\]", name)[-1].startswith("."):
        return "hidden file"
    if name.lower().endswith((*_ARTICLE_EXTENSIONS, *ARCHIVE_EXTENSIONS)):
        return ""
    return "other file" if is_regular else "link"


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
    if name.lower().endswith(ARCHIVE_EXTENSIONS):
        return _reject_nested(name) if name.lower().endswith(".zip") else None
    if size > MAX_MEMBER_BYTES:
        return BadRecordError(
            "too-large", f"{name[:200]!r} has {size:,} bytes, more than {MAX_MEMBER_BYTES:,}"
        )
    return None


def _reject_nested(name: str) -> BadRecordError:
    detail = f"{name[:200]!r} is an archive within the archive; unpack it and give it as an input"
    return BadRecordError("nested-archive", detail)


# tar

_PAX_RECORD = re.compile(rb"[0-9]+ (?:size=[0-9]{1,19}|(?!size=)[^=]+=.*)\n", re.DOTALL)
"""Extended field ``LENGTH KEYWORD=VALUE\\n``; the length is of all of it
(https://pubs.opengroup.org/onlinepubs/9699919799/utilities/pax.html)."""
_TAR_SIZE = re.compile(rb" *+[0-7]*+[ \0]*")
"""Size in a header, in octal digits. tarfile also accepts signs, ``_`` and whatever follows a zero byte."""
_PAX_TYPES: Final = (tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE)


def _iter_tar_members(file: ByteStream, skipped: Counter[str]) -> Iterator[ArchiveMember]:
    stream = _TarStream(_iter_decompressed_blocks(file))
    archive = _TarArchive(
        fileobj=cast(BinaryIO, stream), tarinfo=_TarHeader, encoding="utf-8", errors="replace"
    )
    while (header := archive.next()) is not None:
        archive.members.clear()  # PMC's archives have hundreds of thousands
        if len(archive.pax_headers) > MAX_GLOBAL_FIELDS:
            detail = f"its global headers have more than {MAX_GLOBAL_FIELDS} fields"
            raise BadFileError("corrupt-archive", detail)
        if not header.name and not header.isdir():  # an empty path of an extended header deletes the name
            raise BadFileError("corrupt-archive", "a file has no name")
        if reason := _find_skip_reason(header.name, header.isdir(), header.isfile()):
            skipped[reason] += 1
        else:
            is_sparse = any(field.startswith("GNU.sparse.") for field in header.pax_headers)
            is_regular = header.isreg() and not header.issparse() and not is_sparse
            error = _check_member(header.name, is_regular, header.size)
            yield ArchiveMember(header.name, error, _TarContent(stream, header.size).read)
        stream.header_bytes = 0
    block = stream.read(tarfile.BLOCKSIZE)  # the second block of zeros, which ends an archive
    while block:
        if block.strip(b"\0"):
            raise BadFileError("corrupt-archive", "there is more after the archive's end mark")
        block = stream.read_some(BLOCK_BYTES)


class _TarArchive(tarfile.TarFile):
    """An open archive; ``members`` are the headers that it has read and kept."""

    members: list[tarfile.TarInfo]


class _TarStream:
    """The bytes of a tar archive, which tarfile reads headers from; members are read past tarfile.

    Attributes:
        header_bytes: bytes of the current member's header that were read.
    """

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks, self._block = blocks, b""
        self._start = self._position = 0
        self.header_bytes = 0

    def peek(self, size: int) -> bytes:
        """Return the next bytes, exactly ``size``, which are read once more.

        Raises:
            BadFileError: the archive ends before, or they are more than a header has.
        """
        if size < 0 or self.header_bytes + size > MAX_TAR_HEADER_BYTES:
            raise BadFileError("corrupt-archive", f"a header states {size:,} bytes")
        while len(self._block) - self._start < size:
            block = next(self._blocks, b"")
            if not block and self._position < tarfile.BLOCKSIZE:
                raise BadFileError("not-an-archive", f"it is too short for one: {self._block[:60]!r}")
            if not block:
                raise BadFileError("truncated-archive", "the archive ends before its end mark")
            self._block, self._start = self._block[self._start :] + block, 0
        return self._block[self._start : self._start + size]

    def read(self, size: int) -> bytes:
        """Return exactly ``size`` bytes of a header.

        Raises:
            BadFileError: as :meth:`peek`.
        """
        data = self.peek(size)
        self.header_bytes += size
        return self._advance(data)

    def read_some(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        if self._start == len(self._block):
            self._block, self._start = next(self._blocks, b""), 0
        return self._advance(self._block[self._start : self._start + size])

    def _advance(self, data: bytes) -> bytes:
        self._start += len(data)
        self._position += len(data)
        return data

    def tell(self) -> int:
        """Return the number of bytes that were read."""
        return self._position

    def seek(self, position: int) -> None:
        """Skip the bytes before a position.

        Raises:
            BadFileError: the archive ends before.
        """
        while self._position < position:
            if not self.read_some(min(position - self._position, BLOCK_BYTES)):
                raise BadFileError("truncated-archive", "the archive ends within a file")


class _TarContent:
    """The content of a member."""

    def __init__(self, stream: _TarStream, size: int) -> None:
        self._stream, self._bytes_left = stream, size

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        chunk = self._stream.read_some(min(size, self._bytes_left)) if self._bytes_left else b""
        if self._bytes_left and size and not chunk:
            raise BadFileError("truncated-archive", "the archive ends within a file")
        self._bytes_left -= len(chunk)
        return chunk


class _TarHeader(tarfile.TarInfo):
    """A header whose damage is an error: tarfile would take it for the end of the archive."""

    @classmethod
    def fromtarfile(cls, tarfile_: tarfile.TarFile) -> Self:
        """Read the next header with its extensions.

        Raises:
            BadFileError: it is damaged, or the archive ends before its end mark.
            HeaderError: it is a block of zeros, the end mark.
        """
        stream = cast(_TarStream, tarfile_.fileobj)
        is_first = not stream.tell()
        block = stream.peek(tarfile.BLOCKSIZE)
        try:
            if block[124] < 0x80 and not _TAR_SIZE.fullmatch(block, 124, 136):  # else it is a binary number
                raise tarfile.HeaderError("its size is no number")
            if block[156:157] in _PAX_TYPES:
                size = cls.frombuf(block, "utf-8", "replace").size
                is_global = block[156:157] == tarfile.XGLTYPE
                _check_pax(stream.peek(tarfile.BLOCKSIZE + size)[tarfile.BLOCKSIZE :], is_global)
            header = super().fromtarfile(tarfile_)
        except (tarfile.HeaderError, ValueError) as error:
            if not block.strip(b"\0"):  # the end mark, which tarfile takes for what it is
                raise
            if is_first and block[257:262] != b"ustar":
                detail = f"it does not begin as a tar archive does: {block[:40]!r}"
                raise BadFileError("not-an-archive", detail) from error
            raise BadFileError("corrupt-archive", f"a header is damaged: {block[:40]!r}") from error
        if header.size < 0:
            raise BadFileError("corrupt-archive", f"a header states {header.size:,} bytes")
        return header


def _check_pax(content: bytes, is_global: bool) -> None:
    """Check the fields of an extended header; tarfile ignores some that are damaged.

    Raises:
        BadFileError: one is damaged, or states one size for all members.
    """
    while content:
        length = re.match(rb"[1-9][0-9]{0,6}(?= )", content)
        size = int(length[0]) if length else 0
        if not 0 < size <= len(content) or not _PAX_RECORD.fullmatch(content, 0, size):
            raise BadFileError("corrupt-archive", f"an extended header is damaged: {content[:40]!r}")
        if is_global and content[:size].partition(b" ")[2].startswith(b"size="):
            raise BadFileError("corrupt-archive", "a global header states a size")
        content = content[size:]


def _iter_decompressed_blocks(file: ByteStream) -> Iterator[bytes]:
    """Yield the blocks of a file, decompressed if it has the gzip magic.

    Raises:
        BadFileError: the compressed data is damaged or a bomb.
    """
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
            yield from gunzip.decompress(block)
            block = file.read(BLOCK_BYTES)
        gunzip.finish()
    except BadFileError as error:
        raise BadFileError(error.reason.replace("gzip", "archive"), error.detail) from error


# zip

_ENCRYPTED_FLAGS: Final = 0x1 | 0x40
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


def _iter_zip_members(file: BinaryIO, skipped: Counter[str]) -> Iterator[ArchiveMember]:
    packed_bytes = file.seek(0, 2)
    with _open_zip(file) as archive:
        infos = archive.infolist()
        if infos and min(info.header_offset for info in infos) != 0:
            raise BadFileError("corrupt-archive", "its directory is not that of its first member")
        unpacked_bytes = 0
        for info in infos:
            is_regular = stat.S_IFMT(info.external_attr >> 16) in (0, stat.S_IFREG)
            if reason := _find_skip_reason(info.orig_filename, info.is_dir(), is_regular):
                skipped[reason] += 1
            else:
                content = _ZipContent(archive, info, packed_bytes, unpacked_bytes)
                yield ArchiveMember(info.orig_filename, _check_zip_member(info), content.read)
                unpacked_bytes = content.unpacked_bytes


class _BoundedReads:
    """A file for zipfile, which reads an archive's directory at once, and its members in small pieces."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if size > MAX_ZIP_DIRECTORY_BYTES:
            raise zipfile.BadZipFile(
                f"it has {size:,} bytes, more than {MAX_ZIP_DIRECTORY_BYTES:,}: divide the archive"
            )
        return self._file.read(size)


def _open_zip(file: BinaryIO) -> zipfile.ZipFile:
    """Open an archive, whose directory is at its end.

    Raises:
        BadFileError: it is no archive, or its directory is missing or damaged.
    """
    file.seek(0)
    magic = file.read(4)
    if magic not in (b"PK\3\4", b"PK\5\6"):
        raise BadFileError("not-an-archive", f"it does not begin as a zip archive does: {magic!r}")
    try:
        return zipfile.ZipFile(cast(BinaryIO, _BoundedReads(file)))
    except _ZIP_ERRORS as error:
        if isinstance(error.__context__, OSError):  # zipfile reports a disk error as end of file
            raise error.__context__ from None
        if str(error) == "File is not a zip file":  # it has no end
            detail = "the archive's directory, at its end, is missing"
            raise BadFileError("truncated-archive", detail) from error
        raise BadFileError("corrupt-archive", f"its directory cannot be read: {error}") from error


def _check_zip_member(info: zipfile.ZipInfo) -> BadRecordError | None:
    """Return why a member is rejected, or None."""
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


class _ZipContent:
    """The content of a member, which is opened at the first read.

    Attributes:
        unpacked_bytes: decompressed bytes of the archive so far.
    """

    def __init__(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, packed_bytes: int, unpacked_bytes: int
    ) -> None:
        self._archive, self._info, self._packed_bytes = archive, info, packed_bytes
        self._file: IO[bytes] | None = None
        self._bytes_left = info.file_size
        self.unpacked_bytes = unpacked_bytes

    def read(self, size: int) -> bytes:
        """Return at most ``size`` bytes; none at the end."""
        name = self._info.orig_filename[:200]
        try:
            if self._file is None:
                self._file = self._archive.open(self._info)
            chunk = self._file.read(size)
        except _ZIP_ERRORS as error:
            raise BadFileError("corrupt-archive", f"{name!r}: {error}") from error
        self._bytes_left -= len(chunk)
        if not chunk and size and self._bytes_left:
            raise BadFileError("corrupt-archive", f"{name!r} is shorter than it states")
        self.unpacked_bytes += len(chunk)
        check_ratio(self._packed_bytes, self.unpacked_bytes)
        return chunk
