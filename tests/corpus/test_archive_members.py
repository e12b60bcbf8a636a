"""Members of tar and zip archives: reading, hostile names, damaged archives and bounds."""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus import archives
from bioshards.corpus.archives import iter_members
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.jats.article_stream import MAX_ARTICLE_BYTES, iter_articles
from bioshards.corpus.xml import decoder
from tests.support.corpus.archive_bytes import ArchiveFiles, TrickleReader, pack_tar, pack_tar_gz, pack_zip
from tests.support.memory import measure_peak_memory

FIRST_ARTICLE = b"<article><front/><body><p>One.</p></body></article>"
SECOND_ARTICLE = "<article><body><p>Naïve β-cells.</p></body></article>".encode()
FILES: ArchiveFiles = [
    ("PMC000xxxxxx/PMC1.xml", FIRST_ARTICLE),
    ("PMC000xxxxxx/PMC1.pdf", b"%PDF-1.4" + bytes(700)),
    ("./PMC2.nxml", SECOND_ARTICLE * 30),
    ("PMC3.xml.gz", gzip.compress(FIRST_ARTICLE, mtime=0)),
    ("PMC4.nxml.gz", gzip.compress(SECOND_ARTICLE, mtime=0)),
    ("PMC5.xml", b""),
    ("readme.txt", b"Nothing to read."),
]
ARTICLES = [(name, data) for name, data in FILES if name.endswith(("xml", "xml.gz"))]


def pack_entry(name: str, kind: bytes, data: bytes = b"", **fields: object) -> bytes:
    """Return one entry of a tar archive with the given header fields."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


END_OF_TAR = bytes(1024)


def read_member(member: archives.ArchiveMember, size: int = 1000) -> bytes:
    blocks = []
    while block := member.read(size):
        blocks.append(block)
    return b"".join(blocks)


def unpack(data: bytes, name: str) -> ArchiveFiles:
    articles = []
    for member in iter_members(io.BytesIO(data), name):
        assert member.error is None, member.error
        articles.append((member.name, read_member(member)))
    return articles


def list_member_errors(data: bytes, name: str) -> list[tuple[str, str | None]]:
    """Return each member's name and the reason for which it is bad."""
    return [
        (item.name, item.error.reason if item.error else None)
        for item in iter_members(io.BytesIO(data), name)
    ]


def read_archive(data: bytes, name: str, read: bool = True) -> None:
    for member in iter_members(io.BytesIO(data), name):
        if read:
            read_member(member)


def read_archive_error(data: bytes, name: str, read: bool = True) -> BadFileError:
    """Return the error with which reading the archive ends."""
    with pytest.raises(BadFileError) as caught:
        read_archive(data, name, read)
    return caught.value


PACKERS: dict[str, tuple[str, Callable[[ArchiveFiles], bytes]]] = {
    "tar.gz": ("a.tar.gz", pack_tar_gz),
    "tgz in capitals": ("A.TGZ", pack_tar_gz),
    "pax": ("a.tar", pack_tar),
    "gnu": ("a.tar", lambda files: pack_tar(files, tarfile.GNU_FORMAT)),
    "ustar": ("a.tar", lambda files: pack_tar(files, tarfile.USTAR_FORMAT)),
    "zip": ("a.zip", pack_zip),
    "zip, stored": ("a.zip", lambda files: pack_zip(files, zipfile.ZIP_STORED)),
}


FIRST = pack_entry("PMC1.xml", b"0", FIRST_ARTICLE)


SECOND = pack_entry("PMC2.xml", b"0", SECOND_ARTICLE) + END_OF_TAR


def pack_header(kind: bytes = b"0", start: int = 0, field: bytes = b"") -> bytes:
    """Return the header of an entry with another field, and its checksum."""
    header = bytearray(pack_entry("PMC1.xml", kind))
    header[start : start + len(field)] = field
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
    return bytes(header)


def pack_global(fields: dict[str, str]) -> bytes:
    """Return a global header of a tar archive."""
    return tarfile.TarInfo.create_pax_global_header(fields)


SPARSE_MAP_CONTINUES = 482


SIZE = 124


@pytest.mark.parametrize("archive_format", PACKERS)
def test_articles_are_read_in_order_and_other_files_skipped(archive_format: str) -> None:
    name, pack = PACKERS[archive_format]
    assert unpack(pack([]), name) == []
    assert unpack(pack(FILES), name) == ARTICLES
    for size in (0, 1, 600):  # a member that is read in part does not affect the next
        members = [(member.name, member.read(size)) for member in iter_members(io.BytesIO(pack(FILES)), name)]
        assert members == [(member, data[:size]) for member, data in ARTICLES]
    previous_members = list(iter_members(io.BytesIO(pack(FILES)), name))
    assert [member.read(10) for member in previous_members] == [b""] * len(ARTICLES)
    files = FILES[:1] + FILES[3:5]
    articles = [list(iter_articles(member)) for member in iter_members(io.BytesIO(pack(files)), name)]
    assert articles == [[FIRST_ARTICLE], [FIRST_ARTICLE], [SECOND_ARTICLE]]


LONG_NAME = "a" * 90 + "/" + "b" * 90 + ".xml"


PATH_AND_SIZE = b"17 path=PMC7.xml\n" + b"%d size=%d\n" % (
    8 + len(str(len(FIRST_ARTICLE))) + 1,
    len(FIRST_ARTICLE),
)


WITHOUT_SIZE = pack_entry("PMC1.xml", b"0", size=0) + FIRST_ARTICLE + bytes(-len(FIRST_ARTICLE) % 512)


@pytest.mark.parametrize(
    ("data", "files"),
    [
        (pack_entry("PMC1.xml", b"\0", FIRST_ARTICLE) + END_OF_TAR, [("PMC1.xml", FIRST_ARTICLE)]),  # old
        (pack_entry("d.xml/", b"\0") + FIRST + END_OF_TAR, [("PMC1.xml", FIRST_ARTICLE)]),
        (pack_entry("PMC1.xml", b"7", FIRST_ARTICLE) + END_OF_TAR, [("PMC1.xml", FIRST_ARTICLE)]),
        (pack_tar([(LONG_NAME, FIRST_ARTICLE)], tarfile.USTAR_FORMAT), [(LONG_NAME, FIRST_ARTICLE)]),
        (
            pack_entry("/", b"5") + FIRST + END_OF_TAR,
            [("PMC1.xml", FIRST_ARTICLE)],
        ),  # a folder without a name
        (
            pack_entry("x", b"x", PATH_AND_SIZE) + WITHOUT_SIZE + SECOND,
            [("PMC7.xml", FIRST_ARTICLE), ("PMC2.xml", SECOND_ARTICLE)],
        ),
        (
            pack_entry("x", b"g", b"16 comment=abcd\n") + FIRST + SECOND,
            [("PMC1.xml", FIRST_ARTICLE), ("PMC2.xml", SECOND_ARTICLE)],
        ),
        *(
            (
                pack_header(start=SIZE, field=size) + b"<article/>" + bytes(502) + END_OF_TAR,
                [("PMC1.xml", b"<article/>")],
            )
            for size in (
                b"00000000012\0",
                b"        12 \0",
                b"12".ljust(12, b"\0"),
                b"0" * 10 + b"12",
                b"\x80" + bytes(10) + b"\x0a",  # a binary number, of GNU tar for files of 8 GiB and more
            )
        ),
    ],
)
def test_headers_of_every_kind_of_tar_are_read(data: bytes, files: ArchiveFiles) -> None:
    assert unpack(data, "a.tar") == files


MAIN_PACKERS = {
    archive_format: packer
    for archive_format, packer in PACKERS.items()
    if archive_format not in ("ustar", "tgz in capitals")
}


# Reading


@pytest.mark.parametrize("step", [1, 2, 3, 511, 513])
def test_tar_is_independent_of_read_sizes(step: int) -> None:
    for data in (pack_tar_gz(FILES), pack_tar(FILES)):
        articles = [
            (item.name, read_member(item)) for item in iter_members(TrickleReader(data, step), "a.tar.gz")
        ]
        assert articles == ARTICLES


def test_members_of_the_same_name_are_separate() -> None:
    files = [("PMC1.xml", FIRST_ARTICLE), ("PMC1.xml", SECOND_ARTICLE)]
    assert unpack(pack_tar(files), "a.tar") == files
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = pack_zip(files)
    assert unpack(data, "a.zip") == files


@pytest.mark.parametrize("length", [99, 100, 101, 155, 156, 255, 256, 300, 4000])
def test_long_names_are_whole(length: int) -> None:
    files = [("d/" * 40 + "ä" + "n" * (length - 86) + ".xml", FIRST_ARTICLE), ("PMC2.xml", SECOND_ARTICLE)]
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert unpack(pack_tar(files, kind), "a.tar") == files


def test_zip_written_to_a_pipe() -> None:
    """Such a zip has data descriptors: sizes and checksums follow the data."""

    class Pipe(io.RawIOBase):
        data = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            self.data += data
            return len(data)

    pipe = Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in ARTICLES:
            archive.writestr(name, data)
    assert unpack(bytes(pipe.data), "a.zip") == ARTICLES


NAMES = st.text(
    st.characters(categories=["L", "N", "P", "S"], exclude_characters="/\\:"), min_size=1, max_size=60
)
ANY_FILES = st.lists(
    st.tuples(
        st.lists(NAMES, max_size=4).map("".join).filter(lambda name: not name.startswith(".")),
        st.sampled_from([".xml", ".nxml", ".xml.gz", ".txt", "xml", ".XML"]),
        st.binary(max_size=1500),
    ).map(lambda parts: ("n" + parts[0] + parts[1], parts[2])),
    max_size=6,
)


@given(ANY_FILES, st.integers(1, 1000))
def test_any_files_round_trip_through_any_archive(files: ArchiveFiles, size: int) -> None:
    expected = [
        (name, data)
        for name, data in files
        if name.lower().endswith((".xml", ".nxml", ".xml.gz", ".nxml.gz"))
    ]
    for name, pack in MAIN_PACKERS.values():
        if name == "a.zip":
            files, expected = list(dict(files).items()), list(dict(expected).items())
        unpacked = [
            (member.name, read_member(member, size)) for member in iter_members(io.BytesIO(pack(files)), name)
        ]
        assert unpacked == expected, name


# Rejected members

HOSTILE_NAMES = [
    "/etc/PMC1.xml",
    "../PMC1.xml",
    "a/../../PMC1.xml",
    "a/..\\PMC1.xml",
    "a\\PMC1.xml",
    "C:PMC1.xml",
    "c:/PMC1.xml",
    "PMC\n1.xml",
    "PMC\x1b[2J.xml",
    "PMC\u202elmx.xml",
    "n" * 4093 + ".xml",
]


SPARSE_MAP = bytes(504) + b"\1" + bytes(7) + bytes(512)  # it continues in two more blocks


@pytest.mark.parametrize(
    "entry",
    [
        *(
            pack_entry("PMC1.xml", kind, linkname="/etc/passwd")
            for kind in (b"1", b"2", b"3", b"4", b"6", b"S", b"M", b"Z")
        ),
        pack_header(b"S", SPARSE_MAP_CONTINUES, b"\1") + SPARSE_MAP,
        pack_entry("x", b"x", b"22 GNU.sparse.major=1\n") + FIRST,
    ],
)
def test_special_files_in_a_tar_are_rejected(entry: bytes) -> None:
    assert list_member_errors(entry + SECOND, "a.tar") == [("PMC1.xml", "not-a-file"), ("PMC2.xml", None)]
    unrelated = pack_entry("PMC1.txt", entry[156:157], linkname="PMC2.xml") + SECOND
    assert entry[156:157] == b"x" or list_member_errors(unrelated, "a.tar") == [("PMC2.xml", None)]
    [rejected, _] = iter_members(io.BytesIO(entry + SECOND), "a.tar")
    assert rejected.read(10) == b""


def test_special_members_of_a_zip_are_rejected() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("PMC1.xml")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("PMC2.xml", SECOND_ARTICLE)
    assert list_member_errors(out.getvalue(), "a.zip") == [("PMC1.xml", "not-a-file"), ("PMC2.xml", None)]
    data = bytearray(pack_zip([("PMC1.xml", FIRST_ARTICLE), ("PMC2.xml", SECOND_ARTICLE)]))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    assert list_member_errors(bytes(data), "a.zip") == [("PMC1.xml", "encrypted"), ("PMC2.xml", None)]
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):  # their memory has no bound
        packed = pack_zip([("PMC1.xml", FIRST_ARTICLE)], method)
        assert list_member_errors(packed, "a.zip") == [("PMC1.xml", "unsupported-compression")]


def test_errors_quote_200_characters_of_a_name() -> None:
    name = "n" * 300
    data = pack_entry(f"{name}.xml", b"2", linkname="a") + pack_entry(f"{name}.zip", b"0", b"x") + END_OF_TAR
    errors = [member.error for member in iter_members(io.BytesIO(data), "a.tar")]
    assert [error and error.detail.split()[0] for error in errors] == [repr(name[:200])] * 2


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_rejected_and_the_rest_is_read(name: str) -> None:
    files = [("PMC7.xml", FIRST_ARTICLE), (name, FIRST_ARTICLE), ("PMC8.xml", SECOND_ARTICLE)]
    expected = [("PMC7.xml", None), (name, "hostile-name"), ("PMC8.xml", None)]
    assert list_member_errors(pack_tar(files), "a.tar") == expected
    assert list_member_errors(pack_tar_gz(files), "a.tar.gz") == expected
    assert list_member_errors(pack_zip(files), "a.zip") == expected


def test_names_similar_to_hostile_ones_are_accepted() -> None:
    files = [
        ("a..b/..PMC/PMC1..2.xml", FIRST_ARTICLE),
        ("PMC1:2.xml", FIRST_ARTICLE),
        ("Größe 2.xml", FIRST_ARTICLE),
        ("n" * 4092 + ".xml", FIRST_ARTICLE),
    ]
    assert unpack(pack_tar(files), "a.tar") == files
    assert unpack(pack_zip(files), "a.zip") == files


def test_zero_byte_in_a_name_does_not_hide_its_suffix() -> None:
    data = pack_zip([("PMC1.xmlX.pdf", FIRST_ARTICLE), ("PMC2.xml", SECOND_ARTICLE)]).replace(
        b"xmlX.pdf", b"xml\0.pdf"
    )
    assert unpack(data, "a.zip") == [("PMC2.xml", SECOND_ARTICLE)]
    data = pack_zip([("PMC1.pdfX.xml", FIRST_ARTICLE), ("PMC2.xml", SECOND_ARTICLE)]).replace(
        b"pdfX.xml", b"pdf\0.xml"
    )
    assert list_member_errors(data, "a.zip") == [("PMC1.pdf\0.xml", "hostile-name"), ("PMC2.xml", None)]


def test_large_members_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    assert archives.MAX_MEMBER_BYTES == MAX_ARTICLE_BYTES
    monkeypatch.setattr(archives, "MAX_MEMBER_BYTES", 1000)
    files = [("PMC1.xml", b"x" * 1001), ("PMC1.pdf", b"x" * 5000), ("PMC2.xml", b"x" * 1000)]
    for name, pack in MAIN_PACKERS.values():
        assert list_member_errors(pack(files), name) == [("PMC1.xml", "too-large"), ("PMC2.xml", None)]


# Rejected archives


@pytest.mark.parametrize("archive_format", MAIN_PACKERS)
def test_truncated_archives_are_detected(archive_format: str) -> None:
    name, pack = MAIN_PACKERS[archive_format]
    data = pack(ARTICLES)
    min_length = len(data) if name != "a.tar" else len(data.rstrip(b"\0")) // 512 * 512 + 512 + 1024
    for length in range(0, min_length, 1 if len(data) < 3000 else 7):
        for read_members in (True, False):
            reason = read_archive_error(data[:length], name, read_members).reason
            assert reason in ("truncated-archive", "not-an-archive"), length
            assert reason == "truncated-archive" or length < 512, length


def test_padding_of_the_last_tar_record_may_be_missing() -> None:
    data = pack_tar(ARTICLES).rstrip(b"\0")
    data += bytes(-len(data) % 512)
    for zeros in (1024, 1025, 1536, 9999):
        assert unpack(data + bytes(zeros), "a.tar") == ARTICLES
    assert read_archive_error(data + bytes(512), "a.tar").reason == "truncated-archive"


@pytest.mark.parametrize("compress", [bytes, gzip.compress], ids=["tar", "tar.gz"])
def test_tar_that_is_cut_between_members_or_has_a_damaged_second_header(
    compress: Callable[[bytes], bytes],
) -> None:
    """Both are the end of an archive to :mod:`tarfile`."""
    first, second = (pack_entry(f"PMC{number}.xml", b"0", FIRST_ARTICLE) for number in (1, 2))
    for kept in (first, first + second[:512], first + second):
        assert read_archive_error(compress(kept), "a.tar.gz").reason == "truncated-archive"
    for damaged in (b"Q" + second[1:], second[:149] + b"?" + second[150:], b"?" * 512 + second):
        error = read_archive_error(compress(first + damaged + END_OF_TAR), "a.tar.gz")
        assert error.reason == "corrupt-archive"
    assert unpack(compress(first + second + END_OF_TAR), "a.tar.gz") == [
        ("PMC1.xml", FIRST_ARTICLE),
        ("PMC2.xml", FIRST_ARTICLE),
    ]


def test_error_in_a_member_is_raised_again_by_the_next() -> None:
    """A caller that takes the error for one of the member alone may continue."""
    damaged = bytearray(
        pack_zip([("PMC1.xml", SECOND_ARTICLE), ("PMC2.xml", FIRST_ARTICLE)], zipfile.ZIP_STORED)
    )
    damaged[40] ^= 1
    truncated = pack_tar([("PMC1.xml", SECOND_ARTICLE * 1000), ("PMC2.xml", FIRST_ARTICLE)])[:20_000]
    for data, name in ((truncated, "a.tar"), (bytes(damaged), "a.zip")):
        member_iterator = iter_members(io.BytesIO(data), name)
        member = next(member_iterator)
        with pytest.raises(BadFileError) as first:
            read_member(member)
        with pytest.raises(BadFileError) as second:
            member.read(10)
        with pytest.raises(BadFileError) as third:
            next(member_iterator)
        assert first.value is second.value is third.value


def test_damage_in_an_unread_part_of_a_member_is_detected() -> None:
    files = [("PMC1.xml", random.Random(1).randbytes(5000)), ("PMC2.xml", FIRST_ARTICLE)]
    data = bytearray(pack_zip(files, zipfile.ZIP_STORED))
    data[4000] ^= 1
    assert read_archive_error(bytes(data), "a.zip", read=False).reason == "corrupt-archive"


@pytest.mark.parametrize("archive_format", MAIN_PACKERS)
def test_flipped_byte_gives_the_same_articles_or_an_error(archive_format: str) -> None:
    """Names may change: tar has checksums of headers only, and zip none of its directory."""
    name, pack = MAIN_PACKERS[archive_format]
    data = pack(ARTICLES)
    for offset in range(0, len(data), 1 if len(data) < 2000 else 11):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[offset] ^= flip
            articles, reason = unpack_until_error(bytes(damaged), name)
            assert reason in (None, "corrupt-archive", "truncated-archive", "not-an-archive"), offset
            if archive_format == "tar.gz" and reason is None:
                assert articles == ARTICLES, offset
            assert len(articles) <= len(ARTICLES)


def unpack_until_error(data: bytes, name: str) -> tuple[ArchiveFiles, str | None]:
    """Return the articles before an error, and its reason."""
    articles: ArchiveFiles = []
    try:
        articles.extend((member.name, read_member(member)) for member in iter_members(io.BytesIO(data), name))
    except BadFileError as error:
        return articles, error.reason
    return articles, None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        # Sizes, where the content is that of a valid one.
        *(
            (pack_header(start=SIZE, field=size) + b"<article/>" + bytes(502) + END_OF_TAR, "")
            for size in (
                b"-0000000001\0",
                b"000000 1000\0",
                b"0x000000010\0",
                b"1_000000000\0",
                b"\xff" * 12,
                b"+0000000012\0",
                b"        12\0x",
                b"\0" + b"0000000012\0",
            )
        ),
        # Extended headers: damaged, too many, and without the name of an article, which would be skipped.
        *(
            (pack_entry("x", b"x", pax) + FIRST + END_OF_TAR, "")
            for pax in (
                b"9 size=-1\n",
                b"10 size=1 \n",
                b"12 size=1e10\n",
                b"99 path=a.xml\n",
                b"2 path=a.xml\n",
                b"0 path=a.xml\n",
                b"path=a.xml\n",
                b"14 path=a.xml ",
                b"9999999999 path=a.xml\n",
            )
        ),
        (pack_entry("x", b"x", b"17 path=PMC7.xml\n") * 3000 + FIRST + END_OF_TAR, ""),
        *(
            (pack_entry("x", kind, pax) + FIRST + END_OF_TAR, ": a file has no name")
            for kind, headers in (
                *(
                    (kind, (b"8 path=\n", b"9 path=/\n", b"20 GNU.sparse.name=\n"))
                    for kind in (b"x", b"X", b"g")
                ),
                (b"L", (b"\0",)),
            )
            for pax in headers
        ),
        *(
            (
                pack_global({"comment": "abcd", "size": str(size)})
                + pack_entry(name, b"0", FIRST_ARTICLE)
                + END_OF_TAR,
                ": a global header states a size",
            )
            for size in (len(FIRST_ARTICLE), 9999999999999999999)
            for name in ("PMC1.xml", "PMC1.txt")
        ),
        # Data after the end.
        *((pack_tar(FILES) + more, "") for more in (pack_tar(FILES), b"x")),
        (FIRST + bytes(512) + b"y" * 512, ""),
        (gzip.compress(pack_tar(FILES) + pack_tar(FILES)), ""),
        (pack_tar_gz(FILES) + pack_tar_gz(FILES), ""),
    ],
)
def test_corrupt_tar_is_rejected(data: bytes, message: str) -> None:
    error = read_archive_error(data, "a.tar.gz" if data[:2] == b"\x1f\x8b" else "a.tar")
    assert error.reason == "corrupt-archive"
    assert str(error).startswith(f"corrupt-archive{message}")


def test_long_map_of_a_sparse_file_is_rejected() -> None:
    entry = b"%011o\0" % 1
    data = pack_header(b"S", SPARSE_MAP_CONTINUES, b"\1") + (entry * 42 + b"\1" + bytes(7)) * 100_000
    assert measure_peak_memory(lambda: read_archive_error(data, "a.tar")) < 2_000_000
    assert read_archive_error(data, "a.tar").reason == "corrupt-archive"


NOT_ARCHIVES = {
    "empty": b"",
    "text": b"ORA-12537: TNS:connection closed",
    "a web page": b"<!DOCTYPE html><html><body>503 Service Unavailable</body></html>" * 20,
    "packed XML": gzip.compress(b"<articles>" + FIRST_ARTICLE * 50 + b"</articles>"),
    "a short packed text": gzip.compress(b"ORA-12537"),
    "PDF": b"%PDF-1.7\n" + random.Random(1).randbytes(3000),
}


@pytest.mark.parametrize("case", NOT_ARCHIVES)
@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip"])
def test_other_files_are_rejected_as_not_an_archive(case: str, name: str) -> None:
    assert read_archive_error(NOT_ARCHIVES[case], name).reason == "not-an-archive"


def test_archive_format_follows_the_file_name() -> None:
    assert read_archive_error(pack_zip(FILES), "a.tar").reason == "not-an-archive"
    assert read_archive_error(pack_tar(FILES), "a.zip").reason == "not-an-archive"


def test_zip64() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("PMC1.xml", "w", force_zip64=True) as file:
        file.write(FIRST_ARTICLE)
    assert unpack(out.getvalue(), "a.zip") == [("PMC1.xml", FIRST_ARTICLE)]


def test_zip_within_a_truncated_zip_is_not_read_instead() -> None:
    inner = pack_zip([("PMC9.xml", SECOND_ARTICLE)])
    outer = pack_zip([("PMC1.xml", FIRST_ARTICLE), ("more.zip", inner)], zipfile.ZIP_STORED)
    truncated = outer[: outer.index(inner) + len(inner)]
    assert read_archive_error(truncated, "a.zip").reason == "corrupt-archive"


# Bounds


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
@pytest.mark.parametrize("size", [archives.MAX_MEMBER_BYTES, 1 << 60])
def test_oversized_extended_headers_are_not_read(kind: bytes, size: int) -> None:
    data = pack_entry("x", kind, size=size) + bytes(100_000)
    assert measure_peak_memory(lambda: read_archive_error(data, "a.tar")) < 2_000_000
    assert read_archive_error(data, "a.tar").reason == "corrupt-archive"


def test_global_fields_of_a_tar_are_bounded() -> None:
    """tarfile copies all of them for every member, which takes quadratic time."""
    article = pack_entry("PMC1.xml", b"0", FIRST_ARTICLE)
    most = archives.MAX_GLOBAL_FIELDS
    headers = [pack_global({f"key{number}": "v"}) + article for number in range(most)]
    repeated = pack_global({"key0": "w"}) + article
    accepted = b"".join(headers) + repeated
    assert len(unpack(accepted + END_OF_TAR, "a.tar")) == most + 1

    articles, reason = unpack_until_error(
        accepted + pack_global({"last": "v"}) + article + END_OF_TAR, "a.tar"
    )
    assert (len(articles), reason) == (most + 1, "corrupt-archive")
    skipped = b"".join(
        pack_global({f"key{first + number}": "v" for number in range(1500)}) + pack_entry("empty", b"0")
        for first in range(0, 300_000, 1500)
    )
    file = io.BytesIO(skipped + END_OF_TAR)
    with pytest.raises(BadFileError, match="global headers have more than 100 fields"):
        list(iter_members(file, "a.tar"))
    assert file.tell() < len(skipped) / 4


def test_tar_of_many_members_takes_bounded_memory() -> None:
    data = (
        b"".join(pack_entry(f"PMC{number}.xml", b"0", FIRST_ARTICLE) for number in range(2000)) + END_OF_TAR
    )
    compressed = gzip.compress(data, 1)
    assert len(unpack(compressed, "a.tar.gz")) == 2000

    def count_members() -> None:
        assert sum(1 for _ in iter_members(io.BytesIO(compressed), "a.tar.gz")) == 2000

    assert measure_peak_memory(count_members) < 1_000_000


def test_gzip_bomb_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "RATIO_EXEMPT_BYTES", 1 << 20)
    for name in ("PMC1.xml", "PMC1.pdf"):  # skipped or not
        bomb = gzip.compress(pack_tar([(name, bytes(30_000_000))]))
        assert measure_peak_memory(lambda bomb=bomb: read_archive_error(bomb, "a.tar.gz")) < 12_000_000  # type: ignore[misc]
        assert read_archive_error(bomb, "a.tar.gz").reason == "bomb"


def test_zip_bomb_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "RATIO_EXEMPT_BYTES", 1 << 20)
    bomb = pack_zip([(f"PMC{number}.xml", bytes(3_000_000)) for number in range(5)])
    assert measure_peak_memory(lambda: read_archive_error(bomb, "a.zip")) < 9_000_000
    assert read_archive_error(bomb, "a.zip").reason == "bomb"
    assert read_archive_error(bomb, "a.zip", read=False).reason == "bomb"


def test_ratio_of_a_zip_is_of_its_file_and_all_its_articles(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [("PMC1.xml", bytes(600)), ("PMC2.xml", bytes(400))]
    data = pack_zip(files)
    monkeypatch.setattr(decoder, "RATIO_EXEMPT_BYTES", 0)
    monkeypatch.setattr(decoder, "MAX_COMPRESSION_RATIO", 1000.1 / len(data))
    assert unpack(data, "a.zip") == files
    monkeypatch.setattr(decoder, "MAX_COMPRESSION_RATIO", 999.9 / len(data))
    assert read_archive_error(data, "a.zip").reason == "bomb"


def test_zip_directory_is_bounded_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    archive = pack_zip([(f"{number}.txt", b"") for number in range(3000)])
    size = len(archive) - archive.index(b"PK\1\2") - len("PK\5\6") - 18
    monkeypatch.setattr(archives, "MAX_ZIP_DIRECTORY_BYTES", size)
    assert not unpack(archive, "a.zip")
    monkeypatch.setattr(archives, "MAX_ZIP_DIRECTORY_BYTES", 100_000)
    error = read_archive_error(archive, "a.zip")
    assert str(error).startswith("corrupt-archive: its directory cannot be read: it has 1")
    assert str(error).endswith("more than 100,000: divide the archive")


def test_overlapping_members_of_a_zip_are_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of 2,000 entries that all point to the same data."""
    monkeypatch.setattr(decoder, "RATIO_EXEMPT_BYTES", 1 << 20)
    archive = pack_zip([("PMC1.xml", bytes(500_000))])
    directory, end = archive.index(b"PK\1\2"), archive.index(b"PK\5\6")
    directory_entries = archive[directory:end] * 2000
    counts = struct.pack("<HHLL", 2000, 2000, len(directory_entries), directory)
    data = archive[:directory] + directory_entries + b"PK\5\6\0\0\0\0" + counts + b"\0\0"
    error = read_archive_error(data, "a.zip")
    assert error.reason in ("bomb", "corrupt-archive")  # newer zipfiles refuse an overlap themselves


@pytest.mark.thorough
def test_highly_compressible_text_is_not_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "RATIO_EXEMPT_BYTES", 1 << 20)
    words = ["cells", "were", "grown", "in", "medium", "<p>", "</p>", "with", "and", "without"]
    text = " ".join(random.Random(1).choices(words, k=400_000)).encode()
    files = [("PMC1.xml", text), ("PMC2.xml", text)]
    assert unpack(pack_tar_gz(files), "a.tar.gz") == files
    assert unpack(pack_zip(files), "a.zip") == files


@pytest.mark.parametrize("declared_size", [0, 10, len(SECOND_ARTICLE) - 1, len(SECOND_ARTICLE) + 1, 1 << 20])
def test_wrong_declared_size_in_a_zip_is_detected(declared_size: int) -> None:
    data = bytearray(pack_zip([("PMC1.xml", SECOND_ARTICLE)]))
    offset = data.index(b"PK\1\2")
    data[offset + 24 : offset + 28] = struct.pack("<L", declared_size)
    assert read_archive_error(bytes(data), "a.zip").reason == "corrupt-archive"
    if declared_size > len(SECOND_ARTICLE):  # although the checksum is right
        assert struct.unpack("<L", data[offset + 16 : offset + 20]) == (zlib.crc32(SECOND_ARTICLE),)


def test_disk_error_is_raised_unchanged() -> None:
    class FailingFile(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 30:
                raise OSError(5, "Input/output error")
            return super().read(size)

    for data, name in ((pack_tar(FILES), "a.tar"), (pack_zip(FILES), "a.zip")):
        with pytest.raises(OSError, match="Input/output"):
            list(iter_members(FailingFile(data), name))
