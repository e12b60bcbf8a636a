"""Articles out of tar and zip archives: all of them or a named error, whatever an archive claims.

Archives are written with Python's own tarfile and zipfile, in every format that they know, and then
damaged or forged byte by byte.
"""

from __future__ import annotations

import gzip
import io
import random
import struct
import tarfile
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.archives import members
from bioshards.corpus.archives.members import iter_members
from bioshards.corpus.errors import BadFileError
from bioshards.corpus.jats.article_stream import iter_articles
from tests.support.corpus.archive_bytes import ArchiveFiles, TrickleReader, pack_tar, pack_tar_gz, pack_zip

PROFILE = settings(derandomize=True, deadline=None, database=None)


ONE = b"<article><front/><body><p>One.</p></body></article>"
TWO = "<article><body><p>Naïve β-cells.</p></body></article>".encode()
FILES: ArchiveFiles = [
    ("PMC000xxxxxx/PMC1.xml", ONE),
    ("PMC000xxxxxx/PMC1.pdf", b"%PDF-1.4" + bytes(700)),
    ("./PMC2.nxml", TWO * 30),
    ("PMC3.xml.gz", gzip.compress(ONE, mtime=0)),
    ("PMC4.nxml.gz", gzip.compress(TWO, mtime=0)),
    ("PMC5.xml", b""),
    ("readme.txt", b"Nothing to read."),
]
ARTICLES = [(name, data) for name, data in FILES if name.endswith(("xml", "xml.gz"))]


def entry(name: str, kind: bytes, data: bytes = b"", **fields: object) -> bytes:
    """One entry of a tar archive, its header as given."""
    info = tarfile.TarInfo(name)
    info.type = kind
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info.tobuf(tarfile.GNU_FORMAT) + data + bytes(-len(data) % 512)


END = bytes(1024)


def content(member: members.ArchiveMember, size: int = 1000) -> bytes:
    parts = []
    while piece := member.read(size):
        parts.append(piece)
    return b"".join(parts)


def unpacked(data: bytes, name: str) -> ArchiveFiles:
    found = []
    for member in iter_members(io.BytesIO(data), name):
        assert member.error is None, member.error
        found.append((member.name, content(member)))
    return found


def refused(data: bytes, name: str) -> list[tuple[str, str | None]]:
    """Each member's name, and why it is bad."""
    return [
        (item.name, item.error.reason if item.error else None)
        for item in iter_members(io.BytesIO(data), name)
    ]


def read_all(data: bytes, name: str, read: bool = True) -> None:
    for member in iter_members(io.BytesIO(data), name):
        if read:
            content(member)


def refusal(data: bytes, name: str, read: bool = True) -> BadFileError:
    """The error in which reading the archive ends."""
    with pytest.raises(BadFileError) as caught:
        read_all(data, name, read)
    return caught.value


WRITERS: dict[str, tuple[str, Callable[[ArchiveFiles], bytes]]] = {
    "tar.gz": ("a.tar.gz", pack_tar_gz),
    "tgz in capitals": ("A.TGZ", pack_tar_gz),
    "pax": ("a.tar", pack_tar),
    "gnu": ("a.tar", lambda files: pack_tar(files, tarfile.GNU_FORMAT)),
    "ustar": ("a.tar", lambda files: pack_tar(files, tarfile.USTAR_FORMAT)),
    "zip": ("a.zip", pack_zip),
    "zip, stored": ("a.zip", lambda files: pack_zip(files, zipfile.ZIP_STORED)),
}
SHORT = {what: writer for what, writer in WRITERS.items() if what not in ("ustar", "tgz in capitals")}


# What is in an archive


@pytest.mark.parametrize("what", WRITERS)
def test_the_articles_come_in_order_and_all_else_is_passed_over(what: str) -> None:
    name, write = WRITERS[what]
    assert unpacked(write(FILES), name) == ARTICLES


@pytest.mark.parametrize("what", WRITERS)
def test_a_member_that_is_not_read_to_its_end_does_not_disturb_the_next(what: str) -> None:
    name, write = WRITERS[what]
    for size in (0, 1, 600):
        found = [(member.name, member.read(size)) for member in iter_members(io.BytesIO(write(FILES)), name)]
        assert found == [(member, data[:size]) for member, data in ARTICLES]


@pytest.mark.parametrize("what", WRITERS)
def test_a_member_is_over_when_the_next_one_is_asked_for(what: str) -> None:
    name, write = WRITERS[what]
    kept = list(iter_members(io.BytesIO(write(FILES)), name))
    assert [member.read(10) for member in kept] == [b""] * len(ARTICLES)


@pytest.mark.parametrize("what", WRITERS)
def test_an_archive_without_members_is_empty(what: str) -> None:
    name, write = WRITERS[what]
    assert unpacked(write([]), name) == []


@pytest.mark.parametrize("step", [1, 2, 3, 511, 513])
def test_tar_archives_are_the_same_whatever_a_read_gives(step: int) -> None:
    for data in (pack_tar_gz(FILES), pack_tar(FILES)):
        found = [(item.name, content(item)) for item in iter_members(TrickleReader(data, step), "a.tar.gz")]
        assert found == ARTICLES


def test_members_are_read_as_files_of_articles() -> None:
    for name, write in WRITERS.values():
        found = [
            list(iter_articles(member))
            for member in iter_members(io.BytesIO(write(FILES[:1] + FILES[3:5])), name)
        ]
        assert found == [[ONE], [ONE], [TWO]]


def test_two_members_of_one_name_are_two() -> None:
    files = [("PMC1.xml", ONE), ("PMC1.xml", TWO)]
    assert unpacked(pack_tar(files), "a.tar") == files
    with pytest.warns(UserWarning, match="Duplicate name"):
        data = pack_zip(files)
    assert unpacked(data, "a.zip") == files


@pytest.mark.parametrize("length", [99, 100, 101, 155, 156, 255, 256, 300, 4000])
def test_long_names_are_whole(length: int) -> None:
    files = [("d/" * 40 + "ä" + "n" * (length - 86) + ".xml", ONE), ("PMC2.xml", TWO)]
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        assert unpacked(pack_tar(files, kind), "a.tar") == files


def test_old_tars_without_types_and_names_in_two_parts() -> None:
    assert unpacked(entry("PMC1.xml", b"\0", ONE) + END, "a.tar") == [("PMC1.xml", ONE)]
    assert unpacked(entry("d.xml/", b"\0") + entry("PMC1.xml", b"7", ONE) + END, "a.tar") == [
        ("PMC1.xml", ONE)
    ]
    long = "a" * 90 + "/" + "b" * 90 + ".xml"
    assert unpacked(pack_tar([(long, ONE)], tarfile.USTAR_FORMAT), "a.tar") == [(long, ONE)]


def test_hidden_files_are_no_articles() -> None:
    files = [("__MACOSX/._PMC1.xml", b"\0\5\x16\7"), (".xml", ONE), ("PMC1.xml", ONE)]
    assert unpacked(pack_tar(files), "a.tar") == files[2:]
    assert unpacked(pack_zip(files), "a.zip") == files[2:]


def test_a_zip_written_to_a_pipe_is_read() -> None:
    """With data descriptors: sizes and checksums come after the data."""

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
    assert unpacked(bytes(pipe.data), "a.zip") == ARTICLES


def test_a_zip64_is_read() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive, archive.open("PMC1.xml", "w", force_zip64=True) as file:
        file.write(ONE)
    assert unpacked(out.getvalue(), "a.zip") == [("PMC1.xml", ONE)]


NAMES = st.text(
    st.characters(categories=["L", "N", "P", "S"], exclude_characters="/\\:"), min_size=1, max_size=60
)
MADE = st.lists(
    st.tuples(
        st.lists(NAMES, max_size=4).map("".join).filter(lambda name: not name.startswith(".")),
        st.sampled_from([".xml", ".nxml", ".xml.gz", ".txt", "xml", ".XML"]),
        st.binary(max_size=1500),
    ).map(lambda parts: ("n" + parts[0] + parts[1], parts[2])),
    max_size=6,
)


@PROFILE
@given(MADE, st.integers(1, 1000))
def test_any_files_come_back_from_any_archive(files: ArchiveFiles, size: int) -> None:
    expected = [
        (name, data)
        for name, data in files
        if name.lower().endswith((".xml", ".nxml", ".xml.gz", ".nxml.gz"))
    ]
    for name, write in SHORT.values():
        if name == "a.zip":
            files, expected = list(dict(files).items()), list(dict(expected).items())
        found = [
            (member.name, content(member, size)) for member in iter_members(io.BytesIO(write(files)), name)
        ]
        assert found == expected, name


# Members that are refused, the others being read

HOSTILE = [
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
    "n" * 5000 + ".xml",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_refused_and_the_rest_is_read(name: str) -> None:
    files = [("PMC7.xml", ONE), (name, ONE), ("PMC8.xml", TWO)]
    expected = [("PMC7.xml", None), (name, "hostile-name"), ("PMC8.xml", None)]
    assert refused(pack_tar(files), "a.tar") == expected
    assert refused(pack_tar_gz(files), "a.tar.gz") == expected
    assert refused(pack_zip(files), "a.zip") == expected


def test_names_like_hostile_ones_are_fine() -> None:
    files = [("a..b/..PMC/PMC1..2.xml", ONE), ("PMC1:2.xml", ONE), ("Größe 2.xml", ONE)]
    assert unpacked(pack_tar(files), "a.tar") == files
    assert unpacked(pack_zip(files), "a.zip") == files


def test_a_zero_byte_in_a_name_hides_no_ending() -> None:
    data = pack_zip([("PMC1.xmlX.pdf", ONE), ("PMC2.xml", TWO)]).replace(b"xmlX.pdf", b"xml\0.pdf")
    assert unpacked(data, "a.zip") == [("PMC2.xml", TWO)]
    data = pack_zip([("PMC1.pdfX.xml", ONE), ("PMC2.xml", TWO)]).replace(b"pdfX.xml", b"pdf\0.xml")
    assert refused(data, "a.zip") == [("PMC1.pdf\0.xml", "hostile-name"), ("PMC2.xml", None)]


@pytest.mark.parametrize("kind", [b"1", b"2", b"3", b"4", b"6", b"S", b"M", b"Z"])
def test_what_is_no_plain_file_in_a_tar_is_refused(kind: bytes) -> None:
    data = entry("PMC1.xml", kind, linkname="/etc/passwd") + entry("PMC2.xml", b"0", TWO) + END
    assert refused(data, "a.tar") == [("PMC1.xml", "not-a-file"), ("PMC2.xml", None)]
    other = entry("PMC1.txt", kind, linkname="PMC2.xml") + entry("PMC2.xml", b"0", TWO) + END
    assert refused(other, "a.tar") == [("PMC2.xml", None)]


def test_a_file_stored_with_holes_is_refused() -> None:
    header = bytearray(entry("PMC1.xml", b"S", b"x" * 700))
    header[482] = 1  # the list of holes goes on in two more blocks
    header[148:156] = b"%06o\0 " % (sum(header[:512]) - sum(header[148:156]) + 8 * 32)
    more = bytes(504) + b"\1" + bytes(7) + bytes(512)
    data = bytes(header[:512]) + more + bytes(header[512:]) + entry("PMC2.xml", b"0", TWO) + END
    assert refused(data, "a.tar") == [("PMC1.xml", "not-a-file"), ("PMC2.xml", None)]
    pax = b"22 GNU.sparse.major=1\n"
    data = entry("x", b"x", pax) + entry("PMC1.xml", b"0", ONE) + entry("PMC2.xml", b"0", TWO) + END
    assert refused(data, "a.tar") == [("PMC1.xml", "not-a-file"), ("PMC2.xml", None)]


def test_a_link_in_a_zip_is_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        link = zipfile.ZipInfo("PMC1.xml")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, "/etc/passwd")
        archive.writestr("PMC2.xml", TWO)
    assert refused(out.getvalue(), "a.zip") == [("PMC1.xml", "not-a-file"), ("PMC2.xml", None)]


def test_an_encrypted_member_of_a_zip_is_refused() -> None:
    data = bytearray(pack_zip([("PMC1.xml", ONE), ("PMC2.xml", TWO)]))
    data[6] |= 1
    data[data.index(b"PK\1\2") + 8] |= 1
    assert refused(bytes(data), "a.zip") == [("PMC1.xml", "encrypted"), ("PMC2.xml", None)]


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_unpack_without_bound_are_refused(method: int) -> None:
    data = pack_zip([("PMC1.xml", ONE)], method)
    assert refused(data, "a.zip") == [("PMC1.xml", "unsupported-compression")]


def test_large_members_are_refused_by_their_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "MAX_MEMBER_BYTES", 1000)
    files = [("PMC1.xml", b"x" * 1001), ("PMC1.pdf", b"x" * 5000), ("PMC2.xml", b"x" * 1000)]
    for name, write in SHORT.values():
        assert refused(write(files), name) == [("PMC1.xml", "too-large"), ("PMC2.xml", None)]


def test_a_refused_member_reads_as_empty() -> None:
    [member] = iter_members(io.BytesIO(pack_tar([("../PMC1.xml", ONE)])), "a.tar")
    assert member.read(10) == b""


# Archives that are refused


@pytest.mark.parametrize("what", SHORT)
def test_no_truncated_archive_passes_for_a_whole_one(what: str) -> None:
    name, write = SHORT[what]
    data = write(ARTICLES)
    whole = len(data) if name != "a.tar" else len(data.rstrip(b"\0")) // 512 * 512 + 512 + 1024
    for length in range(0, whole, 1 if len(data) < 3000 else 7):
        for read in (True, False):
            reason = refusal(data[:length], name, read).reason
            assert reason in ("truncated-archive", "not-an-archive"), length
            assert reason == "truncated-archive" or length < 512, length


def test_what_fills_a_tars_last_record_may_be_missing() -> None:
    data = pack_tar(ARTICLES).rstrip(b"\0")
    data += bytes(-len(data) % 512)
    for zeros in (1024, 1025, 1536, 9999):
        assert unpacked(data + bytes(zeros), "a.tar") == ARTICLES
    assert refusal(data + bytes(512), "a.tar").reason == "truncated-archive"


def test_a_fault_in_a_member_is_raised_again_by_the_next() -> None:
    """A reader may take a member's error for the member's own and go on."""
    damaged = bytearray(pack_zip([("PMC1.xml", TWO), ("PMC2.xml", ONE)], zipfile.ZIP_STORED))
    damaged[40] ^= 1
    cut = pack_tar([("PMC1.xml", TWO * 1000), ("PMC2.xml", ONE)])[:20_000]
    for data, name in ((cut, "a.tar"), (bytes(damaged), "a.zip")):
        reading = iter_members(io.BytesIO(data), name)
        member = next(reading)
        with pytest.raises(BadFileError) as first:
            content(member)
        with pytest.raises(BadFileError) as second:
            member.read(10)
        with pytest.raises(BadFileError) as third:
            next(reading)
        assert first.value is second.value is third.value


def test_damage_in_a_part_of_a_member_that_nobody_read_is_noticed() -> None:
    files = [("PMC1.xml", random.Random(1).randbytes(5000)), ("PMC2.xml", ONE)]
    data = bytearray(pack_zip(files, zipfile.ZIP_STORED))
    data[4000] ^= 1
    assert refusal(bytes(data), "a.zip", read=False).reason == "corrupt-archive"


@pytest.mark.parametrize("what", SHORT)
def test_a_flipped_byte_gives_the_same_articles_or_a_named_error(what: str) -> None:
    """Tar has checksums of headers only, and zip none of its directory: there names may change."""
    name, write = SHORT[what]
    data = write(ARTICLES)
    for at in range(0, len(data), 1 if len(data) < 2000 else 11):
        for flip in (0x01, 0x80, 0xFF):
            damaged = bytearray(data)
            damaged[at] ^= flip
            found, reason = outcome(bytes(damaged), name)
            assert reason in (None, "corrupt-archive", "truncated-archive", "not-an-archive"), at
            if what == "tar.gz" and reason is None:
                assert found == ARTICLES, at
            assert len(found) <= len(ARTICLES)


def outcome(data: bytes, name: str) -> tuple[ArchiveFiles, str | None]:
    """The articles found, and in which error it ended."""
    found: ArchiveFiles = []
    try:
        found.extend((member.name, content(member)) for member in iter_members(io.BytesIO(data), name))
    except BadFileError as bad:
        return found, bad.reason
    return found, None


NOT_ARCHIVES = {
    "empty": b"",
    "text": b"ORA-12537: TNS:connection closed",
    "a web page": b"<!DOCTYPE html><html><body>503 Service Unavailable</body></html>" * 20,
    "packed XML": gzip.compress(b"<articles>" + ONE * 50 + b"</articles>"),
    "a short packed text": gzip.compress(b"ORA-12537"),
    "PDF": b"%PDF-1.7\n" + random.Random(1).randbytes(3000),
}


@pytest.mark.parametrize("what", NOT_ARCHIVES)
@pytest.mark.parametrize("name", ["a.tar.gz", "a.tar", "a.zip"])
def test_what_is_no_archive_is_refused_as_that(what: str, name: str) -> None:
    assert refusal(NOT_ARCHIVES[what], name).reason == "not-an-archive"


def test_an_archive_is_what_its_name_says() -> None:
    assert refusal(pack_zip(FILES), "a.tar").reason == "not-an-archive"
    assert refusal(pack_tar(FILES), "a.zip").reason == "not-an-archive"


def test_more_after_the_end_mark_of_a_tar_is_not_lost_silently() -> None:
    for data in (
        pack_tar(FILES) + pack_tar(FILES),
        pack_tar(FILES) + b"x",
        entry("PMC1.xml", b"0", ONE) + bytes(512) + b"y" * 512,
    ):
        assert refusal(data, "a.tar").reason == "corrupt-archive"
    assert refusal(pack_tar_gz(FILES) + pack_tar_gz(FILES), "a.tar.gz").reason == "corrupt-archive"


def test_a_zip_within_a_truncated_zip_does_not_pass_for_it() -> None:
    inner = pack_zip([("PMC9.xml", TWO)])
    outer = pack_zip([("PMC1.xml", ONE), ("more.zip", inner)], zipfile.ZIP_STORED)
    cut = outer[: outer.index(inner) + len(inner)]
    assert refusal(cut, "a.zip").reason == "corrupt-archive"


@pytest.mark.parametrize(
    "size", [b"-0000000001\0", b"000000 1000\0", b"0x000000010\0", b"1_000000000\0", b"\xff" * 12]
)
def test_sizes_that_are_no_numbers_are_refused(size: bytes) -> None:
    header = bytearray(entry("PMC1.xml", b"0"))
    header[124:136] = size
    header[148:156] = b"%06o\0 " % (sum(header) - sum(header[148:156]) + 8 * 32)
    assert refusal(bytes(header) + END, "a.tar").reason == "corrupt-archive"


@pytest.mark.parametrize(
    "pax",
    [
        b"9 size=-1\n",
        b"10 size=1 \n",
        b"12 size=1e10\n",
        b"99 path=a.xml\n",
        b"2 path=a.xml\n",
        b"0 path=a.xml\n",
        b"path=a.xml\n",
        b"14 path=a.xml ",
        b"9999999999 path=a.xml\n",
    ],
)
def test_damaged_extended_headers_are_refused(pax: bytes) -> None:
    data = entry("x", b"x", pax) + entry("PMC1.xml", b"0", ONE) + END
    assert refusal(data, "a.tar").reason == "corrupt-archive"


def test_extended_headers_say_path_and_size() -> None:
    pax = b"17 path=PMC7.xml\n" + b"%d size=%d\n" % (8 + len(str(len(ONE))) + 1, len(ONE))
    wrong = entry("PMC1.xml", b"0", size=0).ljust(512, b"\0") + ONE + bytes(-len(ONE) % 512)
    after = entry("PMC2.xml", b"0", TWO) + END
    assert unpacked(entry("x", b"x", pax) + wrong + after, "a.tar") == [("PMC7.xml", ONE), ("PMC2.xml", TWO)]
    comment = entry("x", b"g", b"16 comment=abcd\n")
    assert unpacked(comment + entry("PMC1.xml", b"0", ONE) + after, "a.tar")[0] == ("PMC1.xml", ONE)


# Bounds


def peak(job: Callable[[], object]) -> int:
    """Most bytes that Python held meanwhile."""
    tracemalloc.start()
    try:
        job()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("kind", [b"x", b"g", b"L", b"K"])
@pytest.mark.parametrize("size", [members.MAX_MEMBER_BYTES, 1 << 60])
def test_extended_headers_of_hostile_size_are_not_read(kind: bytes, size: int) -> None:
    data = entry("x", kind, size=size) + bytes(100_000)
    assert peak(lambda: refusal(data, "a.tar")) < 2_000_000
    assert refusal(data, "a.tar").reason == "corrupt-archive"


def test_many_extended_headers_in_a_row_are_no_recursion() -> None:
    data = entry("x", b"x", b"17 path=PMC7.xml\n") * 3000 + entry("PMC1.xml", b"0", ONE) + END
    assert unpacked(data, "a.tar") == [("PMC7.xml", ONE)]


def test_a_tar_of_many_members_needs_no_memory_for_them() -> None:
    data = b"".join(entry(f"PMC{number}.xml", b"0", ONE) for number in range(5000)) + END
    packed = gzip.compress(data, 1)
    assert len(unpacked(packed, "a.tar.gz")) == 5000

    def read() -> None:
        assert sum(1 for _ in iter_members(io.BytesIO(packed), "a.tar.gz")) == 5000

    assert peak(read) < 3_000_000


def test_a_gzip_bomb_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "RATIO_EXEMPT_BYTES", 1 << 20)
    for name in ("PMC1.xml", "PMC1.pdf"):  # passed over or not
        bomb = gzip.compress(pack_tar([(name, bytes(30_000_000))]))
        assert peak(lambda bomb=bomb: refusal(bomb, "a.tar.gz")) < 12_000_000  # type: ignore[misc]
        assert refusal(bomb, "a.tar.gz").reason == "bomb"


def test_a_zip_bomb_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "RATIO_EXEMPT_BYTES", 1 << 20)
    bomb = pack_zip([(f"PMC{number}.xml", bytes(3_000_000)) for number in range(5)])
    assert peak(lambda: refusal(bomb, "a.zip")) < 9_000_000
    assert refusal(bomb, "a.zip").reason == "bomb"
    assert refusal(bomb, "a.zip", read=False).reason == "bomb"


def test_members_that_overlap_in_a_zip_are_a_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory of 2,000 entries that all point to the same data."""
    monkeypatch.setattr(members, "RATIO_EXEMPT_BYTES", 1 << 20)
    one = pack_zip([("PMC1.xml", bytes(500_000))])
    directory, end = one.index(b"PK\1\2"), one.index(b"PK\5\6")
    listed = one[directory:end] * 2000
    counts = struct.pack("<HHLL", 2000, 2000, len(listed), directory)
    data = one[:directory] + listed + b"PK\5\6\0\0\0\0" + counts + b"\0\0"
    error = refusal(data, "a.zip")
    assert error.reason in ("bomb", "corrupt-archive")  # newer zipfiles refuse an overlap themselves


def test_what_packs_as_text_does_is_no_bomb(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(members, "RATIO_EXEMPT_BYTES", 1 << 20)
    words = ["cells", "were", "grown", "in", "medium", "<p>", "</p>", "with", "and", "without"]
    text = " ".join(random.Random(1).choices(words, k=400_000)).encode()
    files = [("PMC1.xml", text), ("PMC2.xml", text)]
    assert unpacked(pack_tar_gz(files), "a.tar.gz") == files
    assert unpacked(pack_zip(files), "a.zip") == files


@pytest.mark.parametrize("stated", [0, 10, len(TWO) - 1, len(TWO) + 1, 1 << 20])
def test_a_size_that_a_zip_states_is_not_believed(stated: int) -> None:
    data = bytearray(pack_zip([("PMC1.xml", TWO)]))
    at = data.index(b"PK\1\2")
    data[at + 24 : at + 28] = struct.pack("<L", stated)
    assert refusal(bytes(data), "a.zip").reason == "corrupt-archive"
    if stated > len(TWO):  # with the checksum right all the same
        assert struct.unpack("<L", data[at + 16 : at + 20]) == (zlib.crc32(TWO),)


def test_a_failing_disk_is_no_damaged_archive() -> None:
    class Failing(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            if self.tell() > 30:
                raise OSError(5, "Input/output error")
            return super().read(size)

    for data, name in ((pack_tar(FILES), "a.tar"), (pack_zip(FILES), "a.zip")):
        with pytest.raises(OSError, match="Input/output"):
            list(iter_members(Failing(data), name))
