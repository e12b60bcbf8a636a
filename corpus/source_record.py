"""What a record of a source comes to: what stage.py writes, whatever the source is of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import Storage

from .document import Document
from .errors import BadRecordError


class VersionKey(NamedTuple):
    """A row of lifecycle.KEYS without its position, and why the record is dropped, None where it is not."""

    article_number: int
    version: int
    is_deletion: bool
    drop_reason: str | None


class SourceRecord(NamedTuple):
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
    keys: list[VersionKey]
    document: Document | None = None
    error: BadRecordError | None = None


class RecordReader(Protocol):
    """Reads sources by one set of rules."""

    def read_records(self, storage: Storage, source: SourceFile) -> Iterator[SourceRecord]:
        """The records of a source, in order.

        Raises:
            BadFileError: the source as a whole cannot be used.
        """
        ...
