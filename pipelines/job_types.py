"""The jobs: everything a run consists of once its inputs are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from bioshards.corpus.output.output_layout import OutputDir

if TYPE_CHECKING:  # vocab needs the libraries of an extra
    from bioshards.corpus.download.mirror import Mirror
    from bioshards.corpus.lifecycle.id_lists import IdList, ListedIds
    from bioshards.corpus.manifest import (
        DocumentsRun,
        MirrorConfig,
        MirrorRun,
        PretrainingInput,
        PretrainingRun,
        WordsRun,
    )
    from bioshards.corpus.shards.input_dirs import DocumentsInput
    from bioshards.corpus.storage.source_file import SourceFile
    from bioshards.corpus.storage.storage_protocol import Storage
    from bioshards.corpus.text_config import TextConfig
    from bioshards.pipelines.inputs.downloads import SourceListing
    from bioshards.pipelines.inputs.run_inputs import PmcArticlePlan, RunInputs
    from bioshards.vocab.counting.word_counts import CountConfig
    from bioshards.vocab.pretraining.build import BuildConfig
    from bioshards.vocab.pretraining.shard_groups import ShardGroup


class Job(Protocol):
    """What every job has."""

    @property
    def storage(self) -> Storage:
        """Return the storage of inputs and output."""
        ...

    @property
    def output_dir(self) -> OutputDir:
        """Return the output directory."""
        ...

    @property
    def config(self) -> Any:
        """Return the configuration; runs into one output directory must have the same."""
        ...


class DocumentsJob(Job, Protocol):
    """A job that reads document shards."""

    @property
    def inputs(self) -> Sequence[object]:
        """Return the input directories."""
        ...

    @property
    def num_items(self) -> int:
        """Return the number of items; a worker processes one at a time."""
        ...


@dataclass(frozen=True)
class ShardsJob:
    """Sources to document shards.

    Attributes:
        sources: files to read as they are.
        run_inputs: the same with the files to download, and what a person should know of them.
        overlap_with: directory of abstracts to look for in the articles.
        inclusion_list: digest of the ids of documents to keep; the ids are in the work folder.
        exclusion_list: digest of the ids of documents to drop; the ids are in the work folder.
        abstracts_digest: digest of the abstracts in ``overlap_with``.
        included_ids: the ids of documents to keep, to be written to the work folder.
        excluded_ids: the ids of documents to drop, likewise.
        verify_inputs: read all sources again, also unchanged ones.
    """

    storage: Storage
    output_dir: OutputDir
    sources: list[SourceFile]
    run_inputs: RunInputs
    document_config: TextConfig
    keep_dropped: bool
    dedup: str
    overlap_with: str | None
    exclusion_list: IdList | None
    inclusion_list: IdList | None
    max_shard_bytes: int
    max_rejected: float
    max_bad_files: float
    config: dict[str, Any]
    run_info: DocumentsRun
    abstracts_digest: str | None = None
    included_ids: ListedIds | None = None
    excluded_ids: ListedIds | None = None
    verify_inputs: bool = False

    @property
    def article_plan(self) -> PmcArticlePlan | None:
        """Return PMC's articles to download first."""
        return self.run_inputs.article_plan


@dataclass(frozen=True)
class FetchJob:
    """Sources to a mirror of verified files.

    Attributes:
        listings: the selected files of the sources that have a listing, by source.
        article_plan: PMC's articles to download; None if none are asked for.
    """

    mirror: Mirror
    listings: dict[str, SourceListing]
    article_plan: PmcArticlePlan | None
    max_rejected: float
    config: MirrorConfig
    run_info: MirrorRun

    @property
    def has_work(self) -> bool:
        """Return True if there is more to do than to write the manifest."""
        return bool(self.article_plan or any(listing.to_fetch for listing in self.listings.values()))

    @property
    def storage(self) -> Storage:
        """Return the storage of the mirror."""
        return self.mirror.storage

    @property
    def output_dir(self) -> OutputDir:
        """Return the mirror as an output directory, for its manifest and work folder."""
        return OutputDir(self.mirror.folder)


@dataclass(frozen=True)
class WordsJob:
    """Document shards to word counts."""

    storage: Storage
    output_dir: OutputDir
    inputs: list[DocumentsInput]
    count_config: CountConfig
    min_count: int
    config: dict[str, Any]
    run_info: WordsRun

    @property
    def num_items(self) -> int:
        """Return the number of document shards."""
        return sum(len(document_input.shards) for document_input in self.inputs)


@dataclass(frozen=True)
class PretrainingJob:
    """Document shards and a vocabulary to pretraining examples.

    Attributes:
        inputs: the input directories as the manifest lists them.
        shard_groups: what one worker builds at a time.
        dedup: ``near`` to leave out near duplicates, else ``none``.
    """

    storage: Storage
    output_dir: OutputDir
    inputs: list[PretrainingInput]
    shard_groups: list[ShardGroup]
    build_config: BuildConfig
    max_rejected: float
    config: dict[str, Any]
    run_info: PretrainingRun
    dedup: Literal["none", "near"] = "none"

    @property
    def num_items(self) -> int:
        """Return the number of shard groups."""
        return len(self.shard_groups)
