"""Parts that the manifests of several kinds share, and the version of their fields."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from bioshards import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

    Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
else:

    class Json:
        """Any JSON value."""


SCHEMA_VERSION: Final = 1
"""Version of the fields of manifests; the format of the data files is ``config.format``."""


def utc_now() -> str:
    """Return the time in UTC, as ``2026-11-22T21:57:18Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


DocumentsPipeline: TypeAlias = Literal["pubmed_to_shards", "pmc_to_shards", "text_to_shards"]
"""Pipelines that write document shards."""


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of a finished directory."""

    file: str
    """Path within the directory."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""


@dataclass(frozen=True, slots=True)
class Shard:
    """A file of rows of a finished directory."""

    file: str
    """Path within the directory."""
    rows: int
    """Number of rows; lines in a text file."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""


@dataclass(frozen=True, slots=True)
class InputDocuments:
    """A finished directory of documents that was read."""

    pipeline: DocumentsPipeline
    """Pipeline that made the directory."""
    shards_sha256: str
    """SHA-256 of the SHA-256 sums of its shards, in order."""
    shards: int
    """Number of shards."""
    documents: int
    """Number of documents."""


@dataclass(frozen=True, slots=True)
class InputWords:
    """A finished directory of counted words that was read."""

    pipeline: Literal["shards_to_words"]
    """Pipeline that made the directory."""
    words_sha256: str
    """SHA-256 of the SHA-256 sums of its files, in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """Facts about one run.  All other parts of a manifest are the same for the same inputs and options."""

    bioshards: str = __version__
    """Version of bioshards."""
    command: tuple[str, ...]
    """Command line, with secrets replaced by ``***``."""
    started_at: str = field(default_factory=utc_now)
    """UTC time at which the run started."""
    finished_at: str = ""
    """UTC time at which the manifest was written."""


Steps: TypeAlias = Mapping[str, Mapping[str, int]]
