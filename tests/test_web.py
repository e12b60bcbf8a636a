"""Asking a server: whatever it does, what arrives is what it has, or an error that says why."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from bioshards.corpus.download.web import Connection, Refused, Unreachable
from tests.asking import SOON, Canned, answer, connected

pytestmark = pytest.mark.usefixtures("own_temporary_folder")

LETTERS = bytes(range(256)) * 4


def arrived(connection: Connection, url: str, start: int = 0) -> bytes:
    """What has come once the stream has ended; bytes before ``start`` are there already."""
    held = bytearray(LETTERS[:start])
    for offset, block in connection.stream(url, start):
        if offset != len(held):
            assert offset == 0, "only ever on, or from the beginning"
            held.clear()
        held += block
    return bytes(held)


def test_a_server_that_never_sends_more_than_the_same_beginning_is_given_up() -> None:
    """It knows no ranges and always breaks off: that it sends something is no progress."""
    with Canned(answer("200 OK", LETTERS[:100], length=1024)) as server, connected(server.url) as connection:
        with pytest.raises(Unreachable, match="100 bytes read, 924 more expected"):
            arrived(connection, server.url)
        assert len(server.heads) == SOON.tries


def test_a_server_that_has_no_range_not_even_all_of_it_is_given_up() -> None:
    with Canned(answer("416 Range Not Satisfiable")) as server, connected(server.url) as connection:
        with pytest.raises(Unreachable, match="no such range"):
            arrived(connection, server.url, 100)
        assert len(server.heads) == SOON.tries


def test_what_is_there_whole_already_is_not_sent_again() -> None:
    refusal = answer("416 Range Not Satisfiable\r\nContent-Range: bytes */1024")
    with Canned(refusal, answer("200 OK", LETTERS)) as server, connected(server.url) as connection:
        assert list(connection.stream(server.url, 1024)) == []
        assert len(server.heads) == 1


def test_a_range_of_another_version_is_not_appended() -> None:
    """A server that does not know If-Range answers 206, but says by the ETag that the file is another."""
    other = LETTERS[::-1]
    answers = (
        answer('200 OK\r\nETag: "a"', LETTERS[:100], length=1024),
        answer('206 Partial Content\r\nETag: "b"\r\nContent-Range: bytes 100-1023/1024', other[100:]),
        answer('200 OK\r\nETag: "b"', other),
    )
    with Canned(*answers) as server, connected(server.url) as connection:
        assert arrived(connection, server.url) == other
        assert 'If-Range: "a"' in server.heads[1]


@pytest.mark.parametrize("location", ["http://[", "http://[::1", "//[x]/", "http://127.0.0.1:x/"])
def test_a_redirect_to_no_address_is_refused(location: str) -> None:
    with Canned(answer(f"302 Found\r\nLocation: {location}")) as server, connected(server.url) as connection:
        with pytest.raises(Refused, match="redirected"):
            connection.read(server.url, 100)
        assert len(server.heads) == 1


def test_the_body_of_a_redirect_is_not_read() -> None:
    def endless() -> Iterator[bytes]:
        yield b"HTTP/1.1 302 Found\r\nLocation: /there\r\nConnection: close\r\n\r\n"
        for _ in range(300):
            yield bytes(1 << 20)
            sent.append(1)

    sent: list[int] = []
    with Canned(endless(), answer("200 OK", b"here")) as server, connected(server.url) as connection:
        assert connection.read(server.url, 100).body == b"here"
        assert len(sent) < 100


@pytest.mark.parametrize(
    "headers",
    [
        "Retry-After: Mon, 01 Jan 99999999999999999999 00:00:00 GMT",
        f"Retry-After: Mon, 01 Jan {'9' * 5000} 00:00:00 GMT",
        "Retry-After: Mon, 01 Jan 0001 00:00:00 -0000",
        "Retry-After: Mon, 01 Jan 2020 00:00:00 +9999999999999999999",
        "Retry-After: \xb2",
    ],
)
def test_an_absurd_pause_is_no_pause(headers: str) -> None:
    with (
        Canned(answer(f"503 Busy\r\n{headers}"), answer("200 OK", b"here")) as server,
        connected(server.url) as connection,
    ):
        assert connection.read(server.url, 100).body == b"here"


@pytest.mark.parametrize("length", ["\xb2", "9" * 5000, "-1", "many", ""])
def test_an_absurd_length_is_no_length(length: str) -> None:
    with Canned(answer("200 OK", b"here", length)) as server, connected(server.url) as connection:
        assert connection.read(server.url, 100).body == b"here"


def test_an_absurd_range_is_another_range() -> None:
    absurd = answer(f"206 Partial Content\r\nContent-Range: bytes {'1' * 5000}-2/3", b"x")
    with Canned(absurd, answer("200 OK", LETTERS)) as server, connected(server.url) as connection:
        assert arrived(connection, server.url, 100) == LETTERS
