"""Manifest of document shards, made by ``pubmed_to_shards``, ``pmc_to_shards`` and ``text_to_shards``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bioshards.corpus.manifest.shared_types import (
    SCHEMA_VERSION,
    DocumentsPipeline,
    Json,
    RunInfo,
    Shard,
    Steps,
)


@dataclass(frozen=True, slots=True)
class DocumentsConfig:
    """Configuration of a directory of documents.  A rerun must have the same."""

    pipeline: DocumentsPipeline
    """Pipeline that made the directory."""
    format: int
    """Version of the data files."""
    preset: str | None
    """Value of ``--preset``."""
    document_config: Mapping[str, Json]
    """Filters and text processing, by the names of the options."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the text depends on."""
    include_ids: str | None
    """SHA-256 of the sorted ids of ``--include-ids``, one a line."""
    keep_dropped: bool
    """True if dropped documents are kept in ``dropped/``."""
    dedup: Literal["none", "exact", "near"]
    """Value of ``--dedup``."""
    max_shard_mb: int
    """Size limit of a shard in megabytes."""


@dataclass(frozen=True, slots=True)
class InputFile:
    """A source file that was read."""

    file: str
    """Name of the file."""
    path: str
    """Path or URL of the file."""
    num_files: int
    """Number of files that the source consists of: 1, or the articles of a folder."""
    bytes: int
    """Size."""
    md5: str
    """MD5 of the content."""
    records: int
    """Number of records, rejected ones included."""
    deletions: int
    """Number of PMIDs that the file deletes."""
    rejected: Mapping[str, int]
    """Number of rejected records by reason."""
    funnel: Mapping[str, int]
    """Number of other records by result: ``kept`` or the drop reason."""
    shards: tuple[str, ...]
    """Shards written from the file."""


@dataclass(frozen=True, slots=True)
class BadFile:
    """A source file that could not be read."""

    file: str
    """Name of the file."""
    path: str
    """Path or URL of the file."""
    reason: str
    """Reason as a short code."""
    detail: str
    """Reason as a sentence."""


@dataclass(frozen=True, slots=True)
class DocumentCounts:
    """Totals of a directory of documents."""

    documents: int
    """Number of documents."""
    sentences: int
    """Number of sentences."""
    words: int
    """Number of words, split at white space."""
    characters: int
    """Number of characters."""
    records: int
    """Number of records in the source files."""
    rejected: int
    """Number of rejected records."""
    deletions: int
    """Number of PMIDs that the source files delete."""


@dataclass(frozen=True, slots=True)
class RemovedText:
    """Text that was removed from kept documents."""

    documents: int
    """Number of documents that were changed."""
    characters: int
    """Number of characters removed; below 0 where text was added."""


@dataclass(frozen=True, slots=True)
class OverlapFile:
    """The list of abstracts whose full text is in this directory."""

    file: str
    """Path within the directory."""
    rows: int
    """Number of abstracts."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""
    abstracts_path: str
    """Directory of the abstracts."""
    abstracts_sha256: str
    """SHA-256 of the SHA-256 sums of the shards of that directory, in order."""
    rows_sha256: str
    """SHA-256 of the rows.  The names of the shards of a pretraining set depend on it."""


@dataclass(frozen=True, slots=True)
class IdListSummary:
    """The list of ``--exclude-ids`` or ``--include-ids``."""

    num_ids: int
    """Number of different ids."""
    sha256: str
    """SHA-256 of the sorted ids, one a line."""
    matched: int
    """Number of ids that name a document that was dropped by the list, or kept; the others matched nothing.
    An id of documents in several source files, as a DOI given twice, counts in each."""


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Download times of the source files."""

    first: str
    """UTC time of the first download."""
    last: str
    """UTC time of the last download."""
    files: Mapping[str, str]
    """UTC time of the download by name of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsRun(RunInfo):
    """Facts about one run that writes documents."""

    steps: Steps = field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""
    listed_at: str | None = None
    """UTC time at which the listing of the server was read; null without downloads."""
    notices: tuple[str, ...] = ()
    """Messages about the inputs, given before the run: files that are not read, listings."""
    retrieved_at: Retrieval | None = None
    """Download times of the source files; null without downloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsManifest:
    """Manifest of documents, made by ``pubmed_to_shards``, ``pmc_to_shards`` or ``text_to_shards``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: DocumentsPipeline
    """Pipeline that made the directory."""
    notice: str
    """Copyright notice of the sources."""
    config: DocumentsConfig
    """Configuration."""
    newest_file: str | None
    """Newest file of PubMed; null for other sources."""
    inputs: tuple[InputFile, ...]
    """Source files, in the order in which they were applied."""
    bad_files: tuple[BadFile, ...]
    """Source files that could not be read."""
    outputs: tuple[Shard, ...]
    """Shards of documents."""
    dropped: tuple[Shard, ...]
    """Shards of dropped documents; empty without ``--keep-dropped``."""
    duplicates: tuple[Shard, ...]
    """List of duplicates; empty without ``--dedup``."""
    overlap: tuple[OverlapFile, ...]
    """List of abstracts whose full text is here; empty if none was requested."""
    exclusion_list: IdListSummary | None
    """List of ids to exclude; null without ``--exclude-ids``."""
    inclusion_list: IdListSummary | None
    """List of ids to keep; null without ``--include-ids``."""
    funnel: Mapping[str, int]
    """Number of records: all, rejected and dropped by reason, kept."""
    counts: DocumentCounts
    """Totals."""
    cleaning: Mapping[str, RemovedText]
    """Text removed by every cleaning rule."""
    dropped_parts: Mapping[str, RemovedText]
    """Text removed with every part of an article that is not in ``--include-parts``."""
    years: Mapping[str, int]
    """Number of documents by year of publication."""
    languages: Mapping[str, int]
    """Number of documents by language."""
    licences: Mapping[str, int]
    """Number of documents by licence."""
    article_types: Mapping[str, int]
    """Number of documents by article type."""
    warnings: tuple[str, ...]
    """Messages about the input."""
    run: DocumentsRun
    """Facts about this run only."""
