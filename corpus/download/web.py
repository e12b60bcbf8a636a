"""How a server is asked: the calls and errors that the sources' files rely on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class WebError(Exception):
    """A server did not give what it was asked for; the message is complete."""


class Gone(WebError):
    """The server says that there is no such thing (404, 410)."""


class Refused(WebError):
    """Another refusal (4xx), an answer that is too large, or a redirect to somewhere else."""


class Unreachable(WebError):
    """No answer after all retries."""


class Answer(NamedTuple):
    """What a server has sent: ``etag`` without its quotes, '' where the header is absent."""

    body: bytes
    etag: str
    modified: str


class Connection:
    """One kept-alive connection, used by one thread at a time."""

    def read(self, url: str, at_most: int) -> Answer:
        """The whole object at ``url``, of ``at_most`` bytes."""
        raise NotImplementedError


class Pool:
    """Connections, each with a thread."""

    def map(self, work: Callable[[Connection, T], R], items: Iterable[T]) -> Iterator[R]:
        """What ``work`` gives for each item, in the order of the items."""
        raise NotImplementedError
