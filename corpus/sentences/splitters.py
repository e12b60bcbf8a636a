"""Sentence splitters and the tokenizer, with the optional libraries that some need.

spaCy, scispaCy and NLTK are imported on demand: importing them takes longer than processing a small corpus,
and they are optional.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from bioshards.corpus.errors import MissingExtraError, describe_install
from bioshards.corpus.sentences import split_line

Splitter = Callable[[str], list[str]]
"""Function that splits a line with single blanks into sentences: ``" ".join(split(text)) == text``."""

SPLITTER_NAMES: Final = ("rules", "scispacy", "none")
"""Splitters: our rules, scispaCy, and none (a paragraph stays one line)."""

SCISPACY_MODEL: Final = "en_core_sci_sm"
"""scispaCy's smallest model. If it is installed, its parser splits the sentences."""

MAX_SCISPACY_LENGTH: Final = 50_000
"""Longest text in characters for scispaCy: 3 s with pysbd, whose time is quadratic."""


def load_splitter(name: str) -> Splitter:
    """Load a splitter.

    Args:
        name: one of :data:`SPLITTER_NAMES`.

    Raises:
        MissingExtraError: a library that it needs is not installed.
    """
    if name == "scispacy":
        return _load_scispacy()
    return _keep_paragraph if name == "none" else split_line


def load_treebank_tokenizer() -> Callable[[str], list[str]]:
    """Load NLTK's Penn Treebank tokenizer: sentence to tokens.

    Raises:
        MissingExtraError: NLTK is not installed.
    """
    try:
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise _missing_extra("--treebank (also of --preset electramed)", "treebank", error) from error
    tokenize: Callable[[str], list[str]] = TreebankWordTokenizer().tokenize
    return tokenize


def find_library_versions(name: str, treebank: bool) -> dict[str, str]:
    """Return names and versions of the libraries behind a splitter and the tokenizer.

    The manifest's config contains them, as another version may give other text. All libraries are loaded, so
    that a missing one fails before the run starts.

    Args:
        name: one of :data:`SPLITTER_NAMES`.
        treebank: include the tokenizer.

    Raises:
        MissingExtraError: a library is not installed.
    """
    load_splitter(name)
    libraries: list[str] = []
    if name == "scispacy":
        libraries += (
            [SCISPACY_MODEL, "spacy"]
            if _installed_version(SCISPACY_MODEL)
            else ["scispacy", "spacy", "pysbd"]
        )
    if treebank:
        load_treebank_tokenizer()
        libraries.append("nltk")
    return {library: _installed_version(library) or "unknown" for library in libraries}


def _keep_paragraph(text: str) -> list[str]:
    return [text] if text else []


def _installed_version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _missing_extra(option: str, extra: str, error: ImportError) -> MissingExtraError:
    return MissingExtraError(
        f"{option} needs a library that cannot be imported ({error}): {describe_install(extra)}"
    )


def _load_scispacy() -> Splitter:
    """Return scispaCy's splitter; a text on which it fails stays one sentence."""
    pipeline = _load_scispacy_pipeline()

    def split(text: str) -> list[str]:
        if len(text) > MAX_SCISPACY_LENGTH:
            return [text]
        try:
            starts = [sentence.start_char for sentence in pipeline(text).sents]
        except (IndexError, re.error):  # pysbd makes patterns of pieces of text
            return [text]
        # Sentences are slices of the text that end at a blank, whatever the tokenizer changed.
        boundaries = [0, *[start for start in starts if start and text[start - 1] == " "], len(text) + 1]
        return [text[start : end - 1] for start, end in itertools.pairwise(boundaries)] if text else []

    return split


def _load_scispacy_pipeline() -> Any:
    try:
        import spacy

        if _installed_version(SCISPACY_MODEL):
            return spacy.load(SCISPACY_MODEL, exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"])
        import scispacy.custom_sentence_segmenter  # noqa: F401  (gives spaCy the component named below)
        from scispacy.custom_tokenizer import combined_rule_tokenizer
    except ImportError as error:
        raise _missing_extra("--splitter scispacy", "scispacy", error) from error
    pipeline = spacy.blank("en")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pattern in scispaCy's tokenizer
        pipeline.tokenizer = combined_rule_tokenizer(pipeline)
    pipeline.add_pipe("pysbd_sentencizer")
    return pipeline
