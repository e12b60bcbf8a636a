"""Manifest of a vocabulary, made by ``python -m bioshards.vocab build``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from bioshards.corpus.manifest.shared_types import (
    SCHEMA_VERSION,
    InputDocuments,
    InputWords,
    Json,
    OutputFile,
    RunInfo,
)


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
