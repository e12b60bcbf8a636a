"""The verifier of downloads: MD5, gzip integrity, root element and size, for any division into blocks."""

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

from bioshards.corpus.download import mirror
from bioshards.corpus.download.mirror import DownloadVerifier, parse_root_name
from bioshards.corpus.errors import BadFileError
from tests.support.hypothesis_profiles import examples

XML = b'<?xml version="1.0"?>\n<Set><a>' + bytes(range(97, 123)) * 4000 + b"</a></Set>"
GOOD = gzip.compress(XML, mtime=0)


def verify(blocks: Iterable[bytes], md5: str | None = None) -> str:
    """Return the MD5 of a good file, the reason of a bad one."""
    download_verifier = DownloadVerifier("Set")
    try:
        for block in blocks:
            download_verifier.feed(block)
        return download_verifier.finish(md5)
    except BadFileError as error:
        return error.reason


def compute_md5(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()


def split_into_bytes(data: bytes) -> list[bytes]:
    return [data[offset : offset + 1] for offset in range(len(data))]


def compress(xml: bytes) -> bytes:
    return gzip.compress(xml, mtime=0)


def test_good_file_returns_its_md5() -> None:
    assert verify([GOOD]) == verify([GOOD], compute_md5(GOOD)) == compute_md5(GOOD)


def test_wrong_md5_is_rejected() -> None:
    assert verify([GOOD], compute_md5(b"another")) == "checksum"


def test_message_has_both_md5s() -> None:
    download_verifier = DownloadVerifier("Set")
    download_verifier.feed(GOOD)
    with pytest.raises(BadFileError, match=f"its MD5 is {compute_md5(GOOD)}, the published one is 0000"):
        download_verifier.finish("0" * 32)


def test_empty_file_is_rejected() -> None:
    assert verify([]) == verify([b""]) == verify([b"", b""]) == "empty-file"


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
def test_first_bytes_identify_files_other_than_gzip(page: bytes) -> None:
    download_verifier = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="not-gzip"):
        download_verifier.feed(page[:2])
    assert verify(split_into_bytes(page)) == "not-gzip"


def test_message_quotes_the_first_bytes() -> None:
    with pytest.raises(BadFileError, match="it begins b'<html>Too many"):
        DownloadVerifier("Set").feed(b"<html>Too many requests</html>")


@pytest.mark.parametrize("offset", [0.0, 0.1, 0.5, 0.9])
def test_truncated_file_is_rejected(offset: float) -> None:
    assert verify([GOOD[: 1 + int(offset * len(GOOD))]]) == "truncated-gzip"


@pytest.mark.parametrize("missing", [1, 4, 8])
def test_file_without_its_last_bytes_is_rejected(missing: int) -> None:
    assert verify([GOOD[:-missing]]) == "truncated-gzip"


def test_every_wrong_byte_is_detected() -> None:
    """Header bytes 3 to 9, such as time and system, are not checked."""
    compressed = compress(b"<Set>some words of no great length</Set>")
    for offset in [0, 1, 2, *range(10, len(compressed))]:
        damaged = bytearray(compressed)
        damaged[offset] ^= 0x41
        assert verify([bytes(damaged)]) in {"not-gzip", "corrupt-gzip", "truncated-gzip", "wrong-root"}, (
            offset
        )


def test_gzip_members_are_concatenated() -> None:
    members = compress(XML[:1000]) + compress(XML[1000:])
    assert verify([members]) == verify(split_into_bytes(members)) == compute_md5(members)


def test_zero_padding_is_accepted_and_other_trailing_data_rejected() -> None:
    padded = GOOD + bytes(512)
    assert verify([padded]) == verify(split_into_bytes(padded)) == compute_md5(padded)
    for garbage in (b"garbage", b"\0\0garbage", b"<html>", GOOD[:20][2:]):
        assert verify([GOOD + garbage]) == "corrupt-gzip"
    assert verify([GOOD + GOOD[:20]]) == verify([GOOD, b"\x1f"]) == "truncated-gzip"


# Root element.


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
        b"<!DOCTYPE Set SYSTEM 'a[>b' [ <!ENTITY a ']>'> <!-- ]> isn't --> <?do ']' ?> ]><Set>",
        b"""<!DOCTYPE Set [ <!ENTITY a "]><Other>'"> ]><Set>""",
    ],
)
def test_root_element_after_any_prolog(head: bytes) -> None:
    assert parse_root_name(head) == "Set"
    assert verify([compress(head + b"</Set>")]) != "wrong-root"


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
def test_wrong_or_missing_root_element_is_rejected(head: bytes, root: str | None) -> None:
    assert parse_root_name(head) == root
    assert verify([compress(head)]) == "wrong-root"


def test_message_names_the_root_element() -> None:
    download_verifier = DownloadVerifier("Set")
    download_verifier.feed(compress(b"<html><body>Sorry</body></html>"))
    with pytest.raises(BadFileError, match="should be <Set>, it is <html>"):
        download_verifier.finish(None)


def test_wrong_root_element_is_detected_before_the_end() -> None:
    download_verifier = DownloadVerifier("Set")
    with pytest.raises(BadFileError, match="wrong-root"):
        download_verifier.feed(compress(b"<Other>" + b"x" * 100_000)[:-8])


@pytest.mark.parametrize(
    "head",
    [
        b"<!--" * 20_000,
        b"<?" * 40_000,
        b"<!DOCTYPE a [" * 8000,
        b"<!DOCTYPE a ['" + b"]<!--" * 20_000,
        b" " * 90_000,
        b"<a:" * 30_000,
    ],
)
def test_hostile_prolog_is_parsed_in_linear_time(head: bytes) -> None:
    assert parse_root_name(head) is None


# Decompression bombs.


def make_gzip_bomb(megabytes: int) -> Iterable[bytes]:
    """Yield a gzip file of blanks in a ``<Set>``, which expands about a thousandfold."""
    compressor = zlib.compressobj(9, wbits=31)
    yield compressor.compress(b"<Set>")
    for _ in range(megabytes):
        yield compressor.compress(b" " * (1 << 20))
    yield compressor.flush()


def test_bomb_is_rejected_at_the_size_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mirror, "MAX_FILE_BYTES", 8 << 20)
    assert verify(make_gzip_bomb(7)) not in {"too-large", "corrupt-gzip", "wrong-root"}
    assert verify(make_gzip_bomb(9)) == "too-large"
    assert verify([b"".join(make_gzip_bomb(9))]) == "too-large"


@pytest.mark.thorough
def test_bomb_takes_bounded_memory() -> None:
    data = b"".join(make_gzip_bomb(200))
    assert len(data) < 1 << 18
    download_verifier = DownloadVerifier("Set")
    tracemalloc.start()
    download_verifier.feed(data)
    download_verifier.finish(None)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4 << 20


OPEN_COMPRESSOR = zlib.compressobj(wbits=31)
OPEN_GZIP = OPEN_COMPRESSOR.compress(b"<Set>") + OPEN_COMPRESSOR.flush(zlib.Z_FULL_FLUSH)


@pytest.mark.parametrize(
    ("first", "endless"),
    [(GOOD, bytes(1 << 16)), (GOOD, compress(b"") * 3000), (OPEN_GZIP, b"\0\0\0\xff\xff" * 10_000)],
    ids=["padding", "empty members", "empty blocks"],
)
def test_endless_data_that_expands_to_nothing_is_rejected(
    first: bytes, endless: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Padding, empty members and empty blocks count towards the size limit."""
    monkeypatch.setattr(mirror, "MAX_FILE_BYTES", 1 << 20)
    assert verify([first, *[endless] * 40]) == "too-large"


# Block boundaries.


@settings(max_examples=examples(40))
@given(
    data=st.one_of(
        st.just(GOOD[:300]),
        st.binary(max_size=60),
        st.binary(max_size=40).map(compress),
        st.binary(max_size=40).map(lambda tail: compress(b"<Set>words</Set>") + tail),
        st.binary(max_size=40).map(lambda text: compress(b"<Set>" + text) + compress(text + b"</Set>")),
    ),
    cuts=st.lists(st.integers(0, 300), max_size=5),
)
def test_result_is_independent_of_block_boundaries(data: bytes, cuts: list[int]) -> None:
    boundaries = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    blocks = [data[start:end] for start, end in pairwise(boundaries)]
    assert verify([data]) == verify(split_into_bytes(data)) == verify(blocks)


@settings(max_examples=examples(40))
@given(text=st.text(max_size=200), split=st.integers(0, 200))
def test_any_valid_gzip_file_is_accepted(text: str, split: int) -> None:
    xml = b"<Set>" + text.encode() + b"</Set>"
    compressed = compress(xml[:split]) + compress(xml[split:])
    assert verify([compressed]) == compute_md5(compressed)
