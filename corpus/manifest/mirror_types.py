"""Manifest of a mirror, made by ``beam run fetch``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bioshards.corpus.manifest.shared_types import SCHEMA_VERSION, RunInfo, Steps


@dataclass(frozen=True, slots=True)
class InventoryIdentity:
    """The inventory of PMC's bucket."""

    date: str
    """Date of the inventory."""
    md5: str
    """MD5 of its manifest."""


@dataclass(frozen=True, slots=True)
class MirrorConfig:
    """Options of a download."""

    inputs: tuple[str, ...]
    """Values of ``--input``."""
    servers: Mapping[str, str]
    """URL of the server by source."""
    licences: tuple[str, ...]
    """Selected licences."""
    sets: tuple[str, ...]
    """Selected sets of PMC."""
    drop_retracted: bool
    """True if retracted articles are left out."""
    versions: Literal["newest", "all"]
    """Selected versions of articles."""
    inventory: InventoryIdentity | None
    """Inventory that the articles were selected from; null if no articles were requested."""


@dataclass(frozen=True, slots=True)
class MirrorFile:
    """A verified file of a mirror."""

    file: str
    """Path within the mirror."""
    url: str
    """URL of the file."""
    bytes: int
    """Size."""
    md5: str
    """MD5 of the content."""
    md5_published: bool
    """True if the server publishes this MD5."""
    retrieved_at: str
    """UTC time at which the file was verified."""


@dataclass(frozen=True, slots=True)
class MissingFile:
    """A file that could not be fetched."""

    file: str
    """Path within the mirror."""
    url: str
    """URL of the file."""
    problem: str
    """Reason as a sentence."""


@dataclass(frozen=True, slots=True)
class FailedArticle:
    """An article version that could not be fetched."""

    pmcid: int
    """Number of the PMCID."""
    version: int
    """Version of the article."""
    reason: str
    """Reason as a short code."""
    detail: str
    """Reason as a sentence."""


@dataclass(frozen=True, slots=True)
class MirrorArticles:
    """The articles of PMC in a mirror."""

    ranges: int
    """Number of ranges of 10,000 PMCIDs."""
    first_range: str
    """First range."""
    last_range: str
    """Last range."""
    selected: int
    """Number of selected article versions."""
    not_selected: Mapping[str, int]
    """Number of other article versions by reason."""
    failed: int
    """Number of article versions that could not be fetched."""
    failed_articles: tuple[FailedArticle, ...]
    """The first 100 of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorRun(RunInfo):
    """Facts about one run of ``fetch``."""

    listed_at: str
    """UTC time at which the listings of the servers were read."""
    notices: tuple[str, ...]
    """Messages about the listings."""
    steps: Steps = field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorManifest:
    """Manifest of a mirror, made by ``fetch``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["fetch"] = "fetch"
    """Pipeline that made the directory."""
    notice: str
    """Copyright notice of the sources."""
    config: MirrorConfig
    """Options."""
    files: tuple[MirrorFile, ...]
    """Files of PubMed and Europe PMC."""
    newest_file: str | None
    """Newest file of PubMed; null if there is none."""
    not_fetched: tuple[MissingFile, ...]
    """Files that could not be fetched."""
    articles: MirrorArticles | None
    """Articles of PMC; null if none were requested."""
    run: MirrorRun
    """Facts about this run only."""
