"""Types of the manifest of every kind of finished directory.

The docstring below a field is its documentation: docs/manifest.md and docs/manifest.schema.json are generated
from this file (``python -m bioshards.corpus.manifest docs``).  Raise :data:`SCHEMA_VERSION` when a field is
added, renamed or removed.
"""

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


# Parts that several kinds share


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

    pipeline: Literal["pubmed_to_shards", "pmc_to_shards"]
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


# Documents: pubmed_to_shards and pmc_to_shards


@dataclass(frozen=True, slots=True)
class DocumentsConfig:
    """Configuration of a directory of documents.  A rerun must have the same."""

    pipeline: Literal["pubmed_to_shards", "pmc_to_shards"]
    """Pipeline that made the directory."""
    format: int
    """Version of the data files."""
    preset: str | None
    """Value of ``--preset``."""
    document_config: Mapping[str, Json]
    """Filters and text processing, by the names of the options."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the text depends on."""
    keep_dropped: bool
    """True if dropped documents are kept in ``dropped/``."""
    dedup: Literal["none", "exact"]
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
class ExclusionSummary:
    """The list of ``--exclude-ids``."""

    num_ids: int
    """Number of different ids."""
    sha256: str
    """SHA-256 of the sorted ids, one a line."""
    matched: int
    """Number of ids that name a dropped document."""


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
    """Facts about one run of ``pubmed_to_shards`` or ``pmc_to_shards``."""

    steps: Steps = field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""
    listed_at: str | None = None
    """UTC time at which the listing of the server was read; null without downloads."""
    notices: tuple[str, ...] = ()
    """Messages about the listing."""
    retrieved_at: Retrieval | None = None
    """Download times of the source files; null without downloads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentsManifest:
    """Manifest of a directory of documents, made by ``pubmed_to_shards`` or ``pmc_to_shards``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["pubmed_to_shards", "pmc_to_shards"]
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
    """List of duplicates; empty without ``--dedup exact``."""
    overlap: tuple[OverlapFile, ...]
    """List of abstracts whose full text is here; empty if none was requested."""
    exclusion_list: ExclusionSummary | None
    """List of ids to exclude; null without ``--exclude-ids``."""
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


# Words: shards_to_words


@dataclass(frozen=True, slots=True)
class WordsConfig:
    """Configuration of a directory of counted words.  A rerun must have the same."""

    pipeline: Literal["shards_to_words"]
    """Pipeline that made the directory."""
    format: int
    """Version of the data files."""
    pretokenizer: Literal["bert", "white-space"]
    """Rule that splits text into words: that of BERT, or at white space."""
    validation_fraction: float
    """Fraction of documents whose words are counted separately."""
    seed: int
    """Seed of the validation split."""
    min_count: int
    """Rarer words are not in ``words.tsv``."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the counts depend on."""


@dataclass(frozen=True, slots=True)
class PrunedWords:
    """Words below ``min_count``."""

    distinct_words: int
    """Number of different words."""
    tokens: int
    """Number of occurrences."""


@dataclass(frozen=True, slots=True)
class ValidationWords:
    """Words of the validation split."""

    documents: int
    """Number of documents."""
    tokens: int
    """Number of occurrences."""
    distinct_words: int
    """Number of different words."""


@dataclass(frozen=True, slots=True)
class WordTotals:
    """Totals of a directory of counted words."""

    documents: int
    """Number of documents, without the validation split."""
    tokens: int
    """Number of occurrences of words, rare words included."""
    distinct_words: int
    """Number of different words, rare words included."""
    pruned: PrunedWords
    """Words left out because they are rare."""
    validation: ValidationWords
    """Words of the validation split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsRun(RunInfo):
    """Facts about one run of ``shards_to_words``."""

    inputs: tuple[str, ...]
    """Directories that were read, in the order of ``inputs``."""
    steps: Steps = field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsManifest:
    """Manifest of a directory of counted words, made by ``shards_to_words``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["shards_to_words"] = "shards_to_words"
    """Pipeline that made the directory."""
    config: WordsConfig
    """Configuration."""
    inputs: tuple[InputDocuments, ...]
    """Directories that were read."""
    outputs: tuple[Shard, ...]
    """Lists of words with their counts."""
    counts: WordTotals
    """Totals."""
    run: WordsRun
    """Facts about this run only."""


# Vocabulary: python -m bioshards.vocab build


@dataclass(frozen=True, slots=True)
class CountingConfig:
    """How words of documents were counted."""

    pretokenizer: Literal["bert", "white-space"]
    """Rule that splits text into words: that of BERT, or at white space."""
    validation_fraction: float
    """Fraction of documents whose words are counted separately."""
    seed: int
    """Seed of the validation split."""


@dataclass(frozen=True, slots=True)
class VocabularyConfig:
    """Configuration of a vocabulary.  A rerun must have the same."""

    pipeline: Literal["vocab"]
    """Command that made the directory."""
    format: int
    """Version of the data files."""
    recipe: Mapping[str, Json]
    """Algorithm and its options."""
    counting: CountingConfig | None
    """How words of documents were counted; null if all were counted before."""
    min_count: int | None
    """Value of ``--min-count``; null for the memory limit alone."""
    inputs: tuple[InputDocuments | InputWords, ...]
    """Directories that were read."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the vocabulary depends on."""


@dataclass(frozen=True, slots=True)
class VocabularyCounts:
    """Totals of a vocabulary."""

    pieces: int
    """Number of tokens in the vocabulary."""
    words: int
    """Number of occurrences of words in the training text."""
    distinct_words: int
    """Number of different words in the training text."""
    min_count: int
    """Rarer words may be missing."""
    validation_words: int
    """Number of occurrences of words in the validation split."""
    trained_words: int
    """Number of occurrences of the words that the algorithm was given."""
    distinct_trained_words: int
    """Number of different words that the algorithm was given."""
    alphabet: int | None
    """Number of characters in the alphabet; null if the algorithm chose it."""
    alphabet_rarest: int | None
    """Number of occurrences of its rarest character."""
    alphabet_coverage: float | None
    """Fraction of the characters of the training text that are in the alphabet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyRun(RunInfo):
    """Facts about one run of ``python -m bioshards.vocab build``."""

    inputs: tuple[str, ...]
    """Directories that were read, in the order of ``config.inputs``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VocabularyManifest:
    """Manifest of a vocabulary, made by ``python -m bioshards.vocab build``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["vocab"] = "vocab"
    """Command that made the directory."""
    config: VocabularyConfig
    """Configuration."""
    outputs: tuple[OutputFile, ...]
    """Files of the tokenizer, lists of words and reports."""
    counts: VocabularyCounts
    """Totals."""
    run: VocabularyRun
    """Facts about this run only."""


# Pretraining sets: shards_to_pretraining


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
    whole_words: bool
    """True if whole words are masked in TFRecord files."""
    max_predictions_per_seq: int
    """Maximum number of masked tokens of a row in TFRecord files; 0: 15 % of the length."""
    seed: int
    """Seed of all random choices."""
    validation_fraction: float
    """Fraction of documents in the validation split."""
    shuffle: Literal["shard", "global"]
    """Value of ``--shuffle``."""
    max_shard_mb: int
    """Approximate size limit of a shard in megabytes."""
    tfrecord: bool
    """True if TFRecord files are written too."""
    vocabulary: VocabularyIdentity
    """Vocabulary."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the rows depend on."""


@dataclass(frozen=True, slots=True)
class PretrainingInput:
    """A finished directory of documents that was read."""

    pipeline: Literal["pubmed_to_shards", "pmc_to_shards"]
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
    """Shards of rows, and TFRecord files."""
    counts: PretrainingCounts
    """Totals."""
    run: PretrainingRun
    """Facts about this run only."""


# Mirrors: fetch


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


# Training runs: python -m bioshards.train


@dataclass(frozen=True, slots=True)
class TrainingInput:
    """What a model was trained on."""

    data_fingerprint: str
    """SHA-256 of the names and SHA-256 sums of the shards of the training split."""
    vocabulary_sha256: str
    """SHA-256 of the ``tokenizer.json`` of the vocabulary."""
    origin: str | None
    """Checkpoint or run that the weights come from; null for random weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun(RunInfo):
    """Facts about one run of ``python -m bioshards.train``."""

    world_size: int
    """Number of processes."""
    device: str
    """Type of device: ``cuda`` or ``cpu``."""
    micro_batch_size: int
    """Number of rows in a forward pass."""
    library_versions: Mapping[str, str]
    """Versions of Python and of the libraries that the numbers depend on."""
    seconds: float
    """Duration of the run since it was last started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingManifest:
    """Manifest of a training run, made by ``python -m bioshards.train``."""

    schema_version: Literal[1] = SCHEMA_VERSION
    """Version of the fields of this file."""
    pipeline: Literal["train"] = "train"
    """Command that made the directory."""
    config: Mapping[str, Json]
    """Recipe of the model and of its training, with the ``format``."""
    inputs: tuple[TrainingInput, ...]
    """What the model was trained on."""
    outputs: tuple[OutputFile, ...]
    """Files of the last checkpoint."""
    final_metrics: Mapping[str, Json]
    """Last line of the log about training, without what depends on the machine."""
    run: TrainingRun
    """Facts about this run only."""


Listed: TypeAlias = OutputFile | Shard | OverlapFile
"""A file that a manifest lists with its SHA-256."""

OutputManifest: TypeAlias = (
    DocumentsManifest | WordsManifest | VocabularyManifest | PretrainingManifest | TrainingManifest
)
"""The manifest of a finished directory that lists ``outputs``."""

Manifest: TypeAlias = OutputManifest | MirrorManifest
"""The manifest of any finished directory; ``pipeline`` identifies the kind."""
