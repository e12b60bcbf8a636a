"""The result of reading one record, the same for every source; ``lifecycle/stage.py`` writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from bioshards.corpus.document import Document
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.filter_names import FilterNames
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.xml.decoder import DecodingReport

DAMAGED_COPY: Final = "damaged-copy"
"""Reason of a mirror's article whose MD5 is not that in its file name."""

NON_PMC_NUMBER_BIT: Final = 1 << 40
"""Bit of the numbers of articles outside PMC, above all PMCIDs."""


UNNUMBERED_VERSION: Final = -1
"""Version of a record whose version is no number, as "VoR"."""


class VersionKey(NamedTuple):
    """A row of ``lifecycle.decisions`` keys without its position.

    Attributes:
        article_number: PMID, number of the PMCID, or hash of another id.
        version: first number of the version, or :data:`UNNUMBERED_VERSION`.
        is_deletion: True of a DeleteCitation.
        drop_reason: None if the record is kept.
        minor_version: the numbers after the first one, in base 1,000: 2.13 is 2 and 13,000.
        published: date of publication as YYYYMMDD, with 0 for what is unknown.
    """

    article_number: int
    version: int
    is_deletion: bool
    drop_reason: str | None
    minor_version: int = 0
    published: int = 0


class SourceRecord(NamedTuple):
    """A record with its version keys and its document, or the error that rejects it.

    Attributes:
        position: 0-based index in the source.
        file: name of the file that contains it, for messages.
        raw: bytes of the record; stored if it is rejected.
        keys: one key; one per PMID for a DeleteCitation; empty if the record is rejected.
        document: the document, or None if the record has none.
        error: why the record is rejected, or None.
    """

    position: int
    file: str
    raw: bytes
    keys: list[VersionKey]
    document: Document | None = None
    error: BadRecordError | None = None


class RecordReader(Protocol):
    """A reader of sources with a fixed config.

    Attributes:
        decoding_report: what the bytes of the sources read so far say against their declarations.
        filter_names: names in the records read so far that filters compare.
    """

    decoding_report: DecodingReport
    filter_names: FilterNames

    def read_records(self, storage: Storage, source: SourceFile) -> Iterator[SourceRecord]:
        """Yield the records of a source, in order.

        Raises:
            BadFileError: the source as a whole is unusable.
        """
        ...
