"""Manifest of a pretraining set, made by ``beam run shards_to_pretraining``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bioshards.corpus.manifest.shared_types import SCHEMA_VERSION, DocumentsPipeline, RunInfo, Shard, Steps


@dataclass(frozen=True, slots=True)
class VocabularyIdentity:
    """The vocabulary of a pretraining set."""

    sha256: str
    """SHA-256 of its ``tokenizer.json``."""
    size: int
    """Number of tokens."""


@dataclass(frozen=True, slots=True)
class PretrainingConfig:
    """Configuration of a pretraining set.  A rerun must have the same."""

    pipeline: Literal["shards_to_pretraining"]
    """Pipeline that made the directory."""
    format: int
    """Version of the data files."""
    objective: str
    """Value of ``--objective``."""
    max_seq_length: int
    """Maximum number of tokens in a row."""
    short_seq_prob: float
    """Fraction of rows with a random lower target length."""
    single_segment_prob: float
    """Fraction of rows with one segment."""
    dupe_factor: int
    """Number of passes over each document."""
    keep_overflow: bool
    """True if tokens that do not fit into a row begin the next one."""
    as_published: bool
    """True if the reference code is reproduced with its defects."""
    seed: int
    """Seed of all random choices."""
    validation_fraction: float
    """Fraction of documents in the validation split."""
    shuffle: Literal["shard", "global"]
    """Value of ``--shuffle``."""
    dedup: Literal["none", "near"]
    """Value of ``--dedup``."""
    max_shard_mb: int
    """Approximate size limit of a shard in megabytes."""
    vocabulary: VocabularyIdentity
    """Vocabulary."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the rows depend on."""


@dataclass(frozen=True, slots=True)
class PretrainingInput:
    """A finished directory of documents that was read."""

    pipeline: DocumentsPipeline
    """Pipeline that made the directory."""
    shards_sha256: str
    """SHA-256 of the SHA-256 sums of its shards, in order."""
    shards: int
    """Number of shards."""
    documents: int
    """Number of documents."""
    overlap: tuple[str, ...]
    """``rows_sha256`` of the lists by which abstracts of this directory were left out."""


@dataclass(frozen=True, slots=True)
class SplitCounts:
    """Totals of a split: input_tokens = tokens - special_tokens - other_document_tokens + lost_tokens."""

    lost_tokens: Mapping[str, int]
    """Number of input tokens that are in no row, by reason."""
    documents: int
    """Number of documents."""
    rows: int
    """Number of rows."""
    tokens: int
    """Number of tokens in the rows."""
    special_tokens: int
    """Number of [CLS] and [SEP] tokens in the rows."""
    other_document_tokens: int
    """Number of tokens in the rows that are a random second segment, of another document."""
    input_tokens: int
    """Number of tokens of the documents, times the passes over them."""
    unknown_tokens: int
    """Number of [UNK] tokens of the documents, in one pass."""
    unlabelled_rows: int
    """Number of rows without a pair of segments."""


@dataclass(frozen=True, slots=True)
class PretrainingCounts:
    """Totals of a pretraining set."""

    documents: int
    """Number of documents that were read."""
    dropped: Mapping[str, int]
    """Number of dropped documents by reason."""
    rejected: Mapping[str, int]
    """Number of rejected documents by reason."""
    train: SplitCounts
    """Totals of the training split."""
    validation: SplitCounts
    """Totals of the validation split."""
    years: Mapping[str, Mapping[str, int]]
    """Number of tokens by source and year of publication."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingRun(RunInfo):
    """Facts about one run of ``shards_to_pretraining``."""

    inputs: tuple[str, ...]
    """Directories that were read, in the order of ``inputs``."""
    vocabulary: str
    """Directory of the vocabulary."""
    steps: Steps = field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingManifest:
    """Manifest of a pretraining set, made by ``shards_to_pretraining``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["shards_to_pretraining"] = "shards_to_pretraining"
    """Pipeline that made the directory."""
    config: PretrainingConfig
    """Configuration."""
    inputs: tuple[PretrainingInput, ...]
    """Directories that were read."""
    outputs: tuple[Shard, ...]
    """Shards of rows."""
    duplicates: tuple[Shard, ...]
    """List of near duplicates among all inputs; empty without ``--dedup near``."""
    counts: PretrainingCounts
    """Totals."""
    run: PretrainingRun
    """Facts about this run only."""
