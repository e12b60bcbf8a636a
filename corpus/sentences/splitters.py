"""The choice of sentence splitter, and the optional libraries that some choices need.

spaCy, scispaCy and NLTK are imported here, when they are asked for and not before: importing them takes
longer than a small corpus, and most installations have none of them.
"""

from __future__ import annotations

import importlib.metadata
import itertools
import re
import warnings
from collections.abc import Callable
from typing import Any, Final

from bioshards.corpus.errors import MissingExtraError

from . import split_line

Splitter = Callable[[str], list[str]]
"""Sentences of a text in one line (no other white space than single blanks), in order.

No word is changed, lost or moved: ``" ".join(split(text)) == text``.
"""

SPLITTER_NAMES: Final = ("rules", "scispacy", "none")
"""The splitters: our rules, scispaCy's, and none: each paragraph stays one line."""

SCISPACY_MODEL: Final = "en_core_sci_sm"
"""scispaCy's smallest model: where a user has installed it, its parser finds the sentences."""

MAX_SCISPACY_LENGTH: Final = 50_000
"""Characters of the longest text for scispaCy: 3 s with pysbd, whose time grows with their square."""


def load_splitter(name: str) -> Splitter:
    """The splitter of this name, one of :data:`NAMES`, loaded.

    Raises:
        MissingExtraError: its libraries are not installed.
    """
    if name == "scispacy":
        return _load_scispacy()
    return _keep_paragraph if name == "none" else split_line


def load_treebank_tokenizer() -> Callable[[str], list[str]]:
    """NLTK's Penn Treebank tokenizer, a sentence in, tokens out.

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
    """The libraries behind a splitter and, if asked for, the tokenizer: their names and versions.

    Another version may give other text, so a manifest's configuration has them.  All are loaded, so
    that what is missing is known before a run starts.

    Raises:
        MissingExtraError: one is not installed.
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
        f"{option} needs a library that cannot be imported ({error}): pip install 'bioshards[{extra}]'"
    )


def _load_scispacy() -> Splitter:
    """Sentences as scispaCy finds them; where it fails on a text, that text is one sentence."""
    pipeline = _load_scispacy_pipeline()

    def split(text: str) -> list[str]:
        if len(text) > MAX_SCISPACY_LENGTH:
            return [text]
        try:
            starts = [sentence.start_char for sentence in pipeline(text).sents]
        except (IndexError, re.error):  # pysbd makes patterns of pieces of text
            return [text]
        # A sentence is a slice of the text and ends at a blank, whatever was done to tokens.
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
