"""Everything a run that makes document shards is made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.remote_file import RemoteFile
from bioshards.corpus.lifecycle.exclusion_list import ExclusionList
from bioshards.corpus.manifest import (
    DocumentsRun,
    MirrorConfig,
    MirrorRun,
    PretrainingInput,
    PretrainingRun,
    WordsRun,
)
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.text_config import TextConfig
from bioshards.pipelines.inputs.downloads import DownloadPlan, SourceListing
from bioshards.pipelines.inputs.pmc_articles import PmcArticlePlan
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.pretraining.build import BuildConfig
from bioshards.vocab.pretraining.shard_groups import ShardGroup


@dataclass(frozen=True)
class ShardsJob:
    """A run: ``sources`` are here, those ``wanted`` are to be fetched first, and what is in the ``bucket``.

    Attributes:
        find_overlap_with: a finished directory of abstracts, of which those that the articles hold are to be listed.
        excluded: the list of ids of documents that are to be left out, which is in the work folder.
    """

    storage: LocalStorage
    output_dir: OutputDir
    sources: list[SourceFile]
    to_fetch: list[RemoteFile]
    download_plan: DownloadPlan | None
    article_plan: PmcArticlePlan | None
    document_config: TextConfig
    keep_dropped: bool
    dedup: str
    overlap_with: str | None
    exclusion_list: ExclusionList | None
    max_shard_bytes: int
    max_rejected: float
    config: dict[str, Any]
    run_info: DocumentsRun


@dataclass(frozen=True)
class FetchJob:
    """Everything a run is made of: sources with a listing, by name, and PMC's articles."""

    mirror: Mirror
    listings: dict[str, SourceListing]
    article_plan: PmcArticlePlan | None
    max_rejected: float
    config: MirrorConfig
    run_info: MirrorRun

    @property
    def has_work(self) -> bool:
        """Is there more to do than to write the manifest anew?"""
        return bool(self.article_plan or any(listing.to_fetch for listing in self.listings.values()))

    @property
    def output_dir(self) -> OutputDir:
        """Where the mirror's manifest and the run's own files are."""
        return OutputDir(self.mirror.folder)


@dataclass(frozen=True)
class WordsJob:
    """Everything a run is made of."""

    storage: LocalStorage
    output_dir: OutputDir
    inputs: list[DocumentsInput]
    count_config: CountConfig
    min_count: int
    config: dict[str, Any]
    run_info: WordsRun

    @property
    def num_items(self) -> int:
        """How many shards are counted."""
        return sum(len(document_input.shards) for document_input in self.inputs)


@dataclass(frozen=True)
class PretrainingJob:
    """Everything a run is made of; ``inputs``: what is read, as a manifest has it."""

    storage: LocalStorage
    output_dir: OutputDir
    inputs: list[PretrainingInput]
    shard_groups: list[ShardGroup]
    build_config: BuildConfig
    max_rejected: float
    config: dict[str, Any]
    run_info: PretrainingRun

    @property
    def num_items(self) -> int:
        """How many portions examples are made of, one at a time."""
        return len(self.shard_groups)


class DocumentsJob(Protocol):
    """What is known of every such run once its inputs have been looked at."""

    @property
    def storage(self) -> LocalStorage: ...

    @property
    def output_dir(self) -> OutputDir: ...

    @property
    def inputs(self) -> Sequence[Any]: ...

    @property
    def num_items(self) -> int:
        """How many there are of what a worker does at a time."""
        ...

    @property
    def config(self) -> dict[str, Any]: ...


JobT = TypeVar("JobT", bound=DocumentsJob)
