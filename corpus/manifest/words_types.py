"""Manifest of word counts, made by ``beam run shards_to_words``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from bioshards.corpus.manifest.shared_types import SCHEMA_VERSION, InputDocuments, RunInfo, Shard, Steps


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
