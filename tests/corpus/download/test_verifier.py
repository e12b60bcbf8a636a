"""Is it the file that it should be?  Told from its bytes, however they are cut, before any of it is used."""

from __future__ import annotations

import gzip
import hashlib
import tracemalloc
import zlib
from collections.abc import Iterable
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download import verifier
from bioshards.corpus.download.verifier import DownloadVerifier, parse_root_name
from bioshards.corpus.errors import BadFileError

XML = b'<?xml version="1.0"?>\n<Set><a>' + bytes(range(97, 123)) * 4000 + b"</a></Set>"
GOOD = gzip.compress(XML, mtime=0)


def outcome(pieces: Iterable[bytes], md5: str | None = None) -> str:
    """The MD5 of a good file, the reason of a bad one."""
    check = DownloadVerifier("Set")
    try:
        for piece in pieces:
            check.feed(piece)
        return check.finish(md5)
    except BadFileError as bad:
        return bad.reason


def md5_of(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def singly(data: bytes) -> list[bytes]:
    return [data[at : at + 1] for at in range(len(data))]


def zipped(xml: bytes) -> bytes:
    return gzip.compress(xml, mtime=0)


def test_a_good_file_gives_its_md5() -> None:
    assert outcome([GOOD]) == outcome([GOOD], md5_of(GOOD)) == md5_of(GOOD)


def test_another_md5_than_the_published_one() -> None:
    assert outcome([GOOD], md5_of(b"another")) == "checksum"


def test_the_message_says_both_md5s() -> None:
    check = DownloadVerifier("Set")
    check.feed(GOOD)
    with pytest.raises(BadFileError, match=f"its MD5 is {md5_of(GOOD)}, the published one is 0000"):
        check.finish("0" * 32)


def test_no_bytes_are_no_file() -> None:
    assert outcome([]) == outcome([b""]) == outcome([b"", b""]) == "empty-file"


@pytest.mark.parametrize(
    "page",
    [
        b"<html><body>Service unavailable</body></html>",
        b'<?xml version="1.0"?><Error><Code>SlowDown</Code></Error>',
        b"ORA-12537: TNS:connection closed",
        b"\x1e\x8b",
        b"\x1f\x8c",
        b"PK\x03\x04",
        XML,
    ],
)
def test_what_is_no_gzip_file_is_known_by_its_first_bytes(page: bytes) -> None:
    check = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="not-gzip"):
        check.feed(page[:2])
    assert outcome(singly(page)) == "not-gzip"


def test_the_message_says_how_it_begins() -> None:
    with pytest.raises(BadFileError, match="it begins b'<html>Too many"):
        DownloadVerifier("Set").feed(b"<html>Too many requests</html>")


@pytest.mark.parametrize("at", [0.0, 0.1, 0.5, 0.9])
def test_a_file_that_is_cut_short(at: float) -> None:
    assert outcome([GOOD[: 1 + int(at * len(GOOD))]]) == "truncated-gzip"


@pytest.mark.parametrize("missing", [1, 4, 8])
def test_a_file_that_lacks_its_last_bytes(missing: int) -> None:
    assert outcome([GOOD[:-missing]]) == "truncated-gzip"


def test_every_wrong_byte_is_noticed() -> None:
    """But in the header, whose time and system say nothing of the file."""
    small = zipped(b"<Set>some words of no great length</Set>")
    for at in [0, 1, 2, *range(10, len(small))]:
        damaged = bytearray(small)
        damaged[at] ^= 0x41
        assert outcome([bytes(damaged)]) in {"not-gzip", "corrupt-gzip", "truncated-gzip", "wrong-root"}, at


def test_several_members_are_one_file() -> None:
    members = zipped(XML[:1000]) + zipped(XML[1000:])
    assert outcome([members]) == outcome(singly(members)) == md5_of(members)


def test_zeros_after_the_end_are_padding_and_all_else_is_damage() -> None:
    padded = GOOD + bytes(512)
    assert outcome([padded]) == outcome(singly(padded)) == md5_of(padded)
    for garbage in (b"garbage", b"\0\0garbage", b"<html>", GOOD[:20][2:]):
        assert outcome([GOOD + garbage]) == "corrupt-gzip"
    assert outcome([GOOD + GOOD[:20]]) == outcome([GOOD, b"\x1f"]) == "truncated-gzip"


# The root.


@pytest.mark.parametrize(
    "head",
    [
        b"<Set>",
        b"<Set/>",
        b"<Set\n>",
        b"<Set a='>'>",
        b"<p:Set xmlns:p='x'>",
        b"\xef\xbb\xbf<Set>",
        b"\xef\xbb\xbf<?xml version='1.0'?><Set>",
        b" \r\n\t<Set>",
        b"<!-- <Other> --><Set>",
        b"<!-- -- > --><!-- --><?do <Other>?><Set>",
        b"<!DOCTYPE Set><Set>",
        b'<!DOCTYPE Set PUBLIC "-//NLM//DTD" "https://dtd.example.org/set.dtd">\n<Set>',
        b"<!DOCTYPE Set [ <!ENTITY a 'b'> <!ELEMENT Other ANY> ]><Set>",
        b"<!DOCTYPE Set SYSTEM 'x' [ <!ENTITY a 'b'> ] >\n<!-- --><Set>",
    ],
)
def test_the_root_after_whatever_may_come_before_it(head: bytes) -> None:
    assert parse_root_name(head) == "Set"
    assert outcome([zipped(head + b"</Set>")]) != "wrong-root"


@pytest.mark.parametrize(
    ("head", "root"),
    [
        (b"<html>", "html"),
        (b"<!doctype html><html>", None),
        (b"<!DOCTYPE html><html>", "html"),
        (b"<Settings>", "Settings"),
        (b"<Other><Set>", "Other"),
        (b"<!-- <Set> -->", None),
        (b"<!-- <Set>", None),
        (b"<!DOCTYPE Set [ <Set>", None),
        (b"text <Set>", None),
        (b"", None),
        (b"<Set", None),
        (b"< Set>", None),
        ("<Set>".encode("utf-16"), None),
    ],
)
def test_another_root_or_none(head: bytes, root: str | None) -> None:
    assert parse_root_name(head) == root
    assert outcome([zipped(head)]) == "wrong-root"


def test_the_message_says_which_root_there_is() -> None:
    check = DownloadVerifier("Set")
    check.feed(zipped(b"<html><body>Sorry</body></html>"))
    with pytest.raises(BadFileError, match="should be <Set>, it is <html>"):
        check.finish(None)


def test_another_root_is_noticed_before_the_end_of_a_large_file() -> None:
    check = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="wrong-root"):
        check.feed(zipped(b"<Other>" + b"x" * 100_000)[:-8])


@pytest.mark.parametrize(
    "head", [b"<!--" * 20_000, b"<?" * 40_000, b"<!DOCTYPE a [" * 8000, b" " * 90_000, b"<a:" * 30_000]
)
def test_a_beginning_made_to_take_long_does_not(head: bytes) -> None:
    assert parse_root_name(head) is None


# Bombs.


def bomb(megabytes: int) -> Iterable[bytes]:
    """A gzip file of blanks in a ``<Set>``, a thousandth of its size unpacked."""
    squeeze = zlib.compressobj(9, wbits=31)
    yield squeeze.compress(b"<Set>")
    for _ in range(megabytes):
        yield squeeze.compress(b" " * (1 << 20))
    yield squeeze.flush()


def test_a_bomb_is_given_up_at_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verifier, "MAX_FILE_BYTES", 8 << 20)
    assert outcome(bomb(7)) not in {"too-large", "corrupt-gzip", "wrong-root"}
    assert outcome(bomb(9)) == "too-large"
    assert outcome([b"".join(bomb(9))]) == "too-large"


def test_a_bomb_takes_little_memory() -> None:
    data = b"".join(bomb(200))
    assert len(data) < 1 << 18
    check = DownloadVerifier("Set")
    tracemalloc.start()
    check.feed(data)
    check.finish(None)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 4 << 20


BEGUN = zlib.compressobj(wbits=31)
OPEN = BEGUN.compress(b"<Set>") + BEGUN.flush(zlib.Z_FULL_FLUSH)


@pytest.mark.parametrize(
    ("first", "endless"),
    [(GOOD, bytes(1 << 16)), (GOOD, zipped(b"") * 3000), (OPEN, b"\0\0\0\xff\xff" * 10_000)],
    ids=["padding", "empty members", "empty blocks"],
)
def test_bytes_that_unpack_to_nothing_do_not_come_for_ever(
    first: bytes, endless: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else they fill the disk."""
    monkeypatch.setattr(verifier, "MAX_FILE_BYTES", 1 << 20)
    assert outcome([first, *[endless] * 40]) == "too-large"


# However it is cut.


@settings(max_examples=40, deadline=None)
@given(
    data=st.one_of(
        st.just(GOOD[:300]),
        st.binary(max_size=60),
        st.binary(max_size=40).map(zipped),
        st.binary(max_size=40).map(lambda tail: zipped(b"<Set>words</Set>") + tail),
        st.binary(max_size=40).map(lambda text: zipped(b"<Set>" + text) + zipped(text + b"</Set>")),
    ),
    cuts=st.lists(st.integers(0, 300), max_size=5),
)
def test_it_does_not_matter_how_the_bytes_are_cut(data: bytes, cuts: list[int]) -> None:
    at = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    pieces = [data[a:b] for a, b in pairwise(at)]
    assert outcome([data]) == outcome(singly(data)) == outcome(pieces)


@settings(max_examples=40, deadline=None)
@given(text=st.text(max_size=200), split=st.integers(0, 200))
def test_what_gzip_packs_is_what_it_unpacks(text: str, split: int) -> None:
    xml = b"<Set>" + text.encode() + b"</Set>"
    packed = zipped(xml[:split]) + zipped(xml[split:])
    assert outcome([packed]) == md5_of(packed)
