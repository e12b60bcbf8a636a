"""What a record of a source comes to: what staging.py writes, whatever the source is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from .document import Document
from .errors import BadRecordError
from .files import LocalFiles
from .sources import Source


class Key(NamedTuple):
    """A row of lifecycle.KEYS without its position, and why the record is dropped, None where it is not."""

    key: int
    version: int
    deletes: bool
    drop: str | None


class Record(NamedTuple):
    """A record: its keys and its document, or why it is rejected.

    Attributes:
        position: its index in the source, from 0.
        file: the file it is in, for people.
        raw: its bytes, kept if it is rejected.
        keys: one; a DeleteCitation has one for each of its PMIDs; a rejected record has none.
        document: None where it has none.
    """

    position: int
    file: str
    raw: bytes
    keys: list[Key]
    document: Document | None = None
    bad: BadRecordError | None = None


class Reader(Protocol):
    """Reads sources by one set of rules."""

    def records(self, files: LocalFiles, source: Source) -> Iterator[Record]:
        """The records of a source, in order.

        Raises:
            BadFileError: the source as a whole cannot be used.
        """
        ...
