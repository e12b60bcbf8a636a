"""The manifest of a finished directory: its types, and the one place where it is written and read.

The manifest is written last; its presence marks a directory complete.  The docstring below a field is its
documentation: ``python -m tests.support.corpus.manifest_reference`` generates docs/manifest.schema.json from
this module, and ``make docs`` a page.  Raise the version of a kind (``SCHEMA_VERSIONS``, and
its ``schema_version``) when a field is added, renamed or removed.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, get_args

import msgspec

from bioshards import __version__
from bioshards.corpus.errors import InputNotFoundError, TransientStorageError, UserError, quote
from bioshards.corpus.storage.checksums import sha256_of_json
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.storage_protocol import Storage

if TYPE_CHECKING:
    Json: TypeAlias = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
else:  # msgspec has no recursive types: the JSON decoder has bounded what is within
    Json = Any
"""Any JSON value."""

NAME: Final = "manifest.json"

T = TypeVar("T")
DocumentsPipeline: TypeAlias = Literal["pubmed_to_shards", "pmc_to_shards", "text_to_shards"]
"""Pipelines that write document shards."""
DOCUMENT_PIPELINES: Final = get_args(DocumentsPipeline)
Steps: TypeAlias = Mapping[str, Mapping[str, int]]
"""Metrics by the name of the step."""


def utc_now() -> str:
    """Return the time in UTC, as ``2026-11-22T21:57:18Z``."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A JSON object of a manifest.  A field is never absent, and no other is allowed."""


class OutputFile(Part, frozen=True):
    """A file of a finished directory."""

    file: str
    """Path within the directory."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""


class Shard(Part, frozen=True):
    """A file of rows of a finished directory."""

    file: str
    """Path within the directory."""
    rows: int
    """Number of rows; lines in a text file."""
    bytes: int
    """Size."""
    sha256: str
    """SHA-256 of the content."""


class DocumentsDigest(Part, frozen=True, tag_field="pipeline"):
    """A finished directory of documents that was read."""

    shards_sha256: str
    """SHA-256 of the SHA-256 sums of its shards, in order."""
    shards: int
    """Number of shards."""
    documents: int
    """Number of documents."""


class InputAbstracts(DocumentsDigest, frozen=True, tag="pubmed_to_shards"):
    """A finished directory of abstracts that was read."""


class InputArticles(DocumentsDigest, frozen=True, tag="pmc_to_shards"):
    """A finished directory of articles that was read."""


class InputText(DocumentsDigest, frozen=True, tag="text_to_shards"):
    """A finished directory of text files' documents that was read."""


InputDocuments: TypeAlias = InputAbstracts | InputArticles | InputText
"""A finished directory of documents that was read; its tag is the pipeline that made it."""


class InputWords(Part, frozen=True, tag_field="pipeline", tag="shards_to_words"):
    """A finished directory of counted words that was read."""

    words_sha256: str
    """SHA-256 of the SHA-256 sums of its files, in order."""


class RunInfo(Part, frozen=True, kw_only=True):
    """Facts about one run.  All other parts of a manifest are the same for the same inputs and options."""

    bioshards: str = __version__
    """Version of bioshards."""
    command: tuple[str, ...]
    """Command line, with secrets replaced by ``***``."""
    started_at: str = msgspec.field(default_factory=utc_now)
    """UTC time at which the run started."""
    finished_at: str = ""
    """UTC time at which the manifest was written."""
    manifest_sha256: str = ""
    """SHA-256 of the rest of the manifest: of its JSON without this field, with sorted keys."""


class PipelineRun(RunInfo, frozen=True, kw_only=True):
    """Facts about one run of a pipeline."""

    steps: Steps = msgspec.field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""
    inputs_key: str = ""
    """Digest of the inputs and of the rest of the manifest: a rerun with the same ones has nothing to do.
    Empty if it may mend an input."""


class ManifestHeader(Part, frozen=True, kw_only=True):
    """First field of every manifest."""

    schema_version: Literal[2, 3, 4] = 2
    """Version of the fields of this file."""


class DocumentsConfig(Part, frozen=True, kw_only=True):
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


class InputFile(Part, frozen=True, kw_only=True):
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


class BadFile(Part, frozen=True):
    """A source file that could not be read."""

    file: str
    """Name of the file."""
    path: str
    """Path or URL of the file."""
    reason: str
    """Reason as a short code."""
    detail: str
    """Reason as a sentence."""


class DocumentCounts(Part, frozen=True, kw_only=True):
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


class RemovedText(Part, frozen=True):
    """Text that was removed from kept documents."""

    documents: int
    """Number of documents that were changed."""
    characters: int
    """Number of characters removed; below 0 where text was added."""


class OverlapFile(Part, frozen=True):
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


class IdListSummary(Part, frozen=True):
    """The list of ``--exclude-ids`` or ``--include-ids``."""

    num_ids: int
    """Number of different ids."""
    sha256: str
    """SHA-256 of the sorted ids, one a line."""
    matched: int
    """Number of ids that name a document that was dropped by the list, or kept; the others matched nothing.
    An id of documents in several source files, as a DOI given twice, counts in each."""


class Retrieval(Part, frozen=True):
    """Download times of the source files."""

    first: str
    """UTC time of the first download."""
    last: str
    """UTC time of the last download."""
    files: Mapping[str, str]
    """UTC time of the download by name of the file."""


class DocumentsRun(PipelineRun, frozen=True, kw_only=True):
    """Facts about one run that writes documents."""

    listed_at: str | None = None
    """UTC time at which the listing of the server was read; null without downloads."""
    notices: tuple[str, ...] = ()
    """Messages about the inputs, given before the run: files that are not read, listings."""
    retrieved_at: Retrieval | None = None
    """Download times of the source files; null without downloads."""
    pyarrow: str = ""
    """Version of pyarrow, which each shard names in its footer: another one gives other bytes there."""


class DocumentsManifest(ManifestHeader, frozen=True, kw_only=True):
    """Manifest of documents, made by ``pubmed_to_shards``, ``pmc_to_shards`` or ``text_to_shards``."""

    schema_version: Literal[4] = 4
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
    """Number of records: all, rejected and dropped by reason, kept; then of entries of archives that are not
    read, by kind."""
    counts: DocumentCounts
    """Totals."""
    cleaning: Mapping[str, RemovedText]
    """Text removed by every cleaning rule."""
    dropped_parts: Mapping[str, RemovedText]
    """Text of articles that is not in the documents: of parts that are not in ``--include-parts``, then of
    elements by name (corpus/jats/elements.py), of ref-list and table the bytes with their tags."""
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


class WordsConfig(Part, frozen=True, kw_only=True):
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


class PrunedWords(Part, frozen=True):
    """Words below ``min_count``."""

    distinct_words: int
    """Number of different words."""
    tokens: int
    """Number of occurrences."""


class ValidationWords(Part, frozen=True):
    """Words of the validation split."""

    documents: int
    """Number of documents."""
    tokens: int
    """Number of occurrences."""
    distinct_words: int
    """Number of different words."""


class WordTotals(Part, frozen=True, kw_only=True):
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


class WordsRun(PipelineRun, frozen=True, kw_only=True):
    """Facts about one run of ``shards_to_words``."""

    inputs: tuple[str, ...]
    """Directories that were read, in the order of ``inputs``."""


class WordsManifest(ManifestHeader, frozen=True, kw_only=True):
    """Manifest of a directory of counted words, made by ``shards_to_words``."""

    schema_version: Literal[3] = 3
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


class CountingConfig(Part, frozen=True, kw_only=True):
    """How words of documents were counted."""

    pretokenizer: Literal["bert", "white-space"]
    """Rule that splits text into words: that of BERT, or at white space."""
    validation_fraction: float
    """Fraction of documents whose words are counted separately."""
    seed: int
    """Seed of the validation split."""


class VocabularyConfig(Part, frozen=True, kw_only=True):
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


class VocabularyCounts(Part, frozen=True, kw_only=True):
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


class VocabularyRun(RunInfo, frozen=True, kw_only=True):
    """Facts about one run of ``bioshards vocab build``."""

    inputs: tuple[str, ...]
    """Directories that were read, in the order of ``config.inputs``."""


class VocabularyManifest(ManifestHeader, frozen=True, kw_only=True):
    """Manifest of a vocabulary, made by ``bioshards vocab build``."""

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


class VocabularyIdentity(Part, frozen=True):
    """The vocabulary of a pretraining set."""

    sha256: str
    """SHA-256 of its ``tokenizer.json``."""
    size: int
    """Number of tokens."""


class PretrainingConfig(Part, frozen=True, kw_only=True):
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
    max_shard_mb: int
    """Approximate size limit of a shard in megabytes."""
    vocabulary: VocabularyIdentity
    """Vocabulary."""
    library_versions: Mapping[str, str]
    """Versions of the libraries that the rows depend on."""


class PretrainingInput(Part, frozen=True):
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
    """SHA-256 of the lists by which abstracts of this directory were left out."""


class SplitCounts(Part, frozen=True, kw_only=True):
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


class PretrainingCounts(Part, frozen=True, kw_only=True):
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


class PretrainingRun(PipelineRun, frozen=True, kw_only=True):
    """Facts about one run of ``shards_to_pretraining``."""

    inputs: tuple[str, ...]
    """Directories that were read, in the order of ``inputs``."""
    vocabulary: str
    """Directory of the vocabulary."""


class PretrainingManifest(ManifestHeader, frozen=True, kw_only=True):
    """Manifest of a pretraining set, made by ``shards_to_pretraining``."""

    schema_version: Literal[4] = 4
    """Version of the fields of this file."""
    pipeline: Literal["shards_to_pretraining"] = "shards_to_pretraining"
    """Pipeline that made the directory."""
    config: PretrainingConfig
    """Configuration."""
    inputs: tuple[PretrainingInput, ...]
    """Directories that were read."""
    outputs: tuple[Shard, ...]
    """Shards of rows."""
    counts: PretrainingCounts
    """Totals."""
    run: PretrainingRun
    """Facts about this run only."""


class InventoryIdentity(Part, frozen=True):
    """The inventory of PMC's bucket."""

    date: str
    """Date of the inventory."""
    md5: str
    """MD5 of its manifest."""


class MirrorConfig(Part, frozen=True, kw_only=True):
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


class MirrorFile(Part, frozen=True, kw_only=True):
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


class MissingFile(Part, frozen=True):
    """A file that could not be fetched."""

    file: str
    """Path within the mirror."""
    url: str
    """URL of the file."""
    problem: str
    """Reason as a sentence."""


class FailedArticle(Part, frozen=True):
    """An article version that could not be fetched."""

    pmcid: int
    """Number of the PMCID."""
    version: int
    """Version of the article."""
    reason: str
    """Reason as a short code."""
    detail: str
    """Reason as a sentence."""


class MirrorArticles(Part, frozen=True, kw_only=True):
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


class MirrorRun(RunInfo, frozen=True, kw_only=True):
    """Facts about one run of ``fetch``."""

    listed_at: str
    """UTC time at which the listings of the servers were read."""
    notices: tuple[str, ...]
    """Messages about the listings."""
    steps: Steps = msgspec.field(default_factory=dict)
    """Metrics of every step by name; the same as the runner's."""


class MirrorManifest(ManifestHeader, frozen=True, kw_only=True):
    """Manifest of a mirror, made by ``fetch``."""

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


class TrainingInput(Part, frozen=True):
    """What a model was trained on."""

    data_fingerprint: str
    """SHA-256 of the names and SHA-256 sums of the shards of the training split."""
    vocabulary_sha256: str
    """SHA-256 of the ``tokenizer.json`` of the vocabulary."""
    origin: str | None
    """Checkpoint or run that the weights come from; null for random weights."""


class TrainingRun(RunInfo, frozen=True, kw_only=True):
    """Facts about one run of ``bioshards train``."""

    world_size: int
    """Number of processes."""
    device: str
    """Type of device: ``cuda`` or ``cpu``."""
    attention_kernel: str
    """Attention of the models: ``flash``, ``efficient``, or ``padded``, which runs anywhere."""
    micro_batch_size: int
    """Number of rows in a forward pass."""
    library_versions: Mapping[str, str]
    """Versions of Python and of the libraries that the numbers depend on."""
    seconds: float
    """Duration of the run since it was last started."""


class TrainingManifest(ManifestHeader, frozen=True, kw_only=True):
    """Manifest of a training run, made by ``bioshards train``."""

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

KINDS: Final[Mapping[str, type[Manifest]]] = {
    "pubmed_to_shards": DocumentsManifest,
    "pmc_to_shards": DocumentsManifest,
    "text_to_shards": DocumentsManifest,
    "shards_to_words": WordsManifest,
    "vocab": VocabularyManifest,
    "shards_to_pretraining": PretrainingManifest,
    "fetch": MirrorManifest,
    "train": TrainingManifest,
}
"""Type of the manifest by pipeline."""
SCHEMA_VERSIONS: Final[Mapping[str, int]] = {
    **dict.fromkeys(DOCUMENT_PIPELINES, 4),
    "shards_to_words": 3,
    "vocab": 2,
    "shards_to_pretraining": 4,
    "fetch": 2,
    "train": 2,
}
"""Version of the manifest's fields by pipeline; ``config.format`` is that of the data files."""

_REMAKE: Final = "Make the directory anew"
_ONE_AT_A_TIME: Final = threading.Lock()


class ManifestError(UserError):
    """The manifest of a directory cannot be used; the message names the file, the field and what to do."""


class ManifestNotFoundError(ManifestError, InputNotFoundError):
    """The directory has no manifest: it is not finished."""


class ForeignManifestError(ManifestError):
    """The file was not written by bioshards.

    Attributes:
        pipeline: what the file names as its pipeline; None if it names none.
    """

    pipeline: str | None = None


def convert(value: object, kind: type[T]) -> T:
    """Return a JSON value as this type, a struct or a dataclass, after a strict check.

    Threads take turns: msgspec describes a type at its first use, and crashes if several do so at once.

    Raises:
        msgspec.ValidationError: the value is not of this type; the message names the field.
    """
    with _ONE_AT_A_TIME:
        return msgspec.convert(value, kind)


def write_manifest(storage: Storage, path: str, manifest: Manifest) -> None:
    """Write a manifest with its SHA-256; the directory is complete then.

    Raises:
        msgspec.ValidationError: a value is not of its field's type, which is a bug.
        RunError: this run has lost its lock on the directory.
    """
    storage.check_locks()
    value = msgspec.to_builtins(manifest)
    value["run"]["manifest_sha256"] = digest_manifest(value)
    convert(value, type(manifest))  # in every process that writes one: no manifest breaks the schema
    storage.write_json(path, value)


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Read the manifest of a finished directory.

    Raises:
        ManifestNotFoundError: there is none, so the directory is not finished; or it is on a store that
            this storage cannot reach.
        ForeignManifestError: it was not written by bioshards.
        ManifestError: it cannot be read, was changed, is of another version of bioshards, or a field is
            wrong.
        TransientStorageError: the store does not answer.
    """
    path = f"{folder}/{NAME}"
    if "://" in folder and not storage.is_remote:
        raise ManifestNotFoundError(
            f"{folder} is on an object store, and this reads local folders: copy it first (rclone, or the "
            "store's own tools)"
        )
    if not storage.exists(path):
        state = f"has no {NAME}"
        if not storage.is_remote and not storage.is_folder(folder):
            state = "is a file" if storage.exists(folder) else "does not exist"
        raise ManifestNotFoundError(
            f"{folder} {state}: it is not a finished output of bioshards. "
            "Give the --output of a completed run, or rerun the command to complete it."
        )
    return parse_manifest(_read_json(storage, path), path)


def _read_json(storage: Storage, path: str) -> Any:
    try:
        return storage.read_json(path)
    except TransientStorageError:
        raise
    except (OSError, ValueError, RecursionError) as error:
        raise ManifestError(f"{path} cannot be read: {error}. {_REMAKE}") from error


def digest_manifest(value: Mapping[str, Any]) -> str:
    """Return the SHA-256 of the JSON value of a manifest, which names it in ``run.manifest_sha256``."""
    run = {name: fact for name, fact in value["run"].items() if name != "manifest_sha256"}
    return sha256_of_json({**value, "run": run})


def _check_digest(value: object, path: str) -> None:
    """Check that a JSON value is as :func:`write_manifest` has written it, if it names its SHA-256.

    Raises:
        ManifestError: it is not.
    """
    run = value.get("run") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(run, dict) or "manifest_sha256" not in run:
        return
    if run["manifest_sha256"] != digest_manifest(value):
        raise ManifestError(
            f"{path} is damaged or was edited: its SHA-256 is not the one that it names. Copy it again, undo "
            "the edit, or run the command that wrote it"
        )


def parse_manifest(value: object, path: str) -> Manifest:
    """Check the JSON value of a manifest.

    Args:
        path: its file, for messages.

    Raises:
        ForeignManifestError, ManifestError: as :func:`read_manifest`.
    """
    _check_digest(value, path)
    folder = path.rpartition("/")[0] or "."
    pipeline = value.get("pipeline") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(pipeline, str) or pipeline not in KINDS:
        origin = f"was made by {quote(pipeline)}" if isinstance(pipeline, str) else "is not of bioshards"
        error = ForeignManifestError(f"{folder} by its {NAME} {origin}: give an output of bioshards")
        error.pipeline = pipeline if isinstance(pipeline, str) else None
        raise error
    if value.get("schema_version") != SCHEMA_VERSIONS[pipeline]:
        raise ManifestError(
            f"{folder} was made by another version of bioshards ({_describe_version(value)}, this is "
            f"schema_version {SCHEMA_VERSIONS[pipeline]}). {_REMAKE}"
        )
    try:
        manifest = convert(value, KINDS[pipeline])
        for name in manifest.run.__struct_fields__:  # those with defaults are for runs that begin
            if name not in value["run"]:
                raise msgspec.ValidationError(f"Object missing required field `{name}` - at `$.run`")
    except msgspec.ValidationError as error:
        raise ManifestError(
            f"{path} is not as {pipeline} writes it: {error}. "
            f"docs/manifest.schema.json lists its fields. {_REMAKE}"
        ) from error
    return manifest


def _describe_version(value: Mapping[str, Any]) -> str:
    if value.get("schema_version") is not None:
        return f"its manifest has schema_version {value['schema_version']}"
    config = value.get("config")
    data_format = config.get("format") if isinstance(config, dict) else None
    return f"format {data_format}, its manifest has no schema_version" if data_format else "no schema_version"


def find_manifest(storage: Storage, folder: str, kind: type[T]) -> T | None:
    """Return the manifest of a run's own output, None if it is absent, damaged or of another kind.

    A run that finds none does its work again, which writes it anew.
    """
    try:
        manifest = read_manifest(storage, folder)
    except ManifestError:
        return None
    return manifest if isinstance(manifest, kind) else None


def read_any_version(storage: Storage, folder: str) -> dict[str, Any]:
    """Return the JSON value of a manifest of any version; {} if there is none.

    Raises:
        ManifestError: the manifest cannot be read, was changed, or is no JSON object.
    """
    path = f"{folder}/{NAME}"
    if not storage.exists(path):
        return {}
    value = _read_json(storage, path)
    _check_digest(value, path)
    if not isinstance(value, dict):
        raise ManifestError(f"{path} is not a manifest of bioshards. {_REMAKE}")
    return value


def listed_files(manifest: OutputManifest) -> Iterator[Listed]:
    """Yield the files that a manifest lists."""
    yield from manifest.outputs
    if isinstance(manifest, DocumentsManifest):
        yield from manifest.dropped
        yield from manifest.overlap
        yield from manifest.duplicates


def find_damage(storage: Storage, path: str, entry: Listed) -> str | None:
    """Compare a file with its manifest entry; return the difference, or None."""
    digest, size = hashlib.sha256(), 0
    try:
        with storage.open(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
    except TransientStorageError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    if size != entry.bytes:
        return f"it has {size:,} bytes, and its manifest lists {entry.bytes:,}"
    if digest.hexdigest() != entry.sha256:
        return "its SHA-256 is not the one that its manifest lists"
    return None


def check_listed(storage: Storage, folder: str, names: Collection[str]) -> None:
    """Compare files of a folder with its manifest, if it has one of bioshards.

    Args:
        names: paths of the files within the folder.

    Raises:
        ManifestError: a file is not as the manifest lists it, or the manifest is damaged or of another
            version.
    """
    try:
        manifest = read_manifest(storage, folder)
    except (ManifestNotFoundError, ForeignManifestError):
        return
    for entry in () if isinstance(manifest, MirrorManifest) else listed_files(manifest):
        path = f"{folder}/{entry.file}"
        if entry.file in names and (damage := find_damage(storage, path, entry)):
            raise ManifestError(
                f"{path} is damaged or was edited: {damage}. Copy it again, or run the command that wrote it"
            )


def is_complete(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    *,
    present: Collection[str] = (),
    any_size: Collection[str] = (),
) -> bool:
    """Return True if every file that the manifest lists is there with its size.

    Args:
        present: further files that must be there.
        any_size: listed files that a stopped run may have rewritten, whose size does not matter.
    """
    sizes = {info.path: info.size for info in storage.walk(folder)}
    for entry in manifest.files if isinstance(manifest, MirrorManifest) else listed_files(manifest):
        size = sizes.get(f"{folder}/{entry.file}")
        if size is None or (size != entry.bytes and entry.file not in any_size):
            return False
    return all(f"{folder}/{name}" in sizes for name in present)


def sweep(
    storage: Storage,
    folders: Iterable[str],
    keep: Collection[str],
    is_ours: Callable[[str], bool] = lambda name: True,
) -> None:
    """Remove the files of folders that a finished directory no longer lists.

    Args:
        keep: paths of the files that stay.
        is_ours: return True for the name of a file that a run may have written.
    """
    paths = [f"{folder}/{name}" for folder in folders for name in storage.list_names(folder) if is_ours(name)]
    parallel_for_each(storage, storage.remove, [path for path in paths if path not in keep])
