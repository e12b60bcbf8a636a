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

from .errors import MissingExtraError
from .sentences import split_clean

Splitter = Callable[[str], list[str]]
"""Sentences of a text in one line (no other white space than single blanks), in order.

No word is changed, lost or moved: ``" ".join(split(text)) == text``.
"""

NAMES: Final = ("rules", "scispacy", "none")
"""The splitters: our rules, scispaCy's, and none: each paragraph stays one line."""

MODEL: Final = "en_core_sci_sm"
"""scispaCy's smallest model: where a user has installed it, its parser finds the sentences."""

LONGEST: Final = 50_000
"""Characters of the longest text for scispaCy: 3 s with pysbd, whose time grows with their square."""


def splitter(name: str) -> Splitter:
    """The splitter of this name, one of :data:`NAMES`, loaded.

    Raises:
        MissingExtraError: its libraries are not installed.
    """
    if name == "scispacy":
        return _scispacy()
    return _paragraph if name == "none" else split_clean


def treebank_tokenizer() -> Callable[[str], list[str]]:
    """NLTK's Penn Treebank tokenizer, a sentence in, tokens out.

    Raises:
        MissingExtraError: NLTK is not installed.
    """
    try:
        from nltk.tokenize import TreebankWordTokenizer
    except ImportError as error:
        raise _missing("--treebank (also of --preset electramed)", "treebank", error) from error
    tokenize: Callable[[str], list[str]] = TreebankWordTokenizer().tokenize
    return tokenize


def tools(name: str, treebank: bool) -> dict[str, str]:
    """The libraries behind a splitter and, if asked for, the tokenizer: their names and versions.

    Another version may give other text, so a manifest's configuration has them.  All are loaded, so
    that what is missing is known before a run starts.

    Raises:
        MissingExtraError: one is not installed.
    """
    splitter(name)
    used: list[str] = []
    if name == "scispacy":
        used += [MODEL, "spacy"] if _version(MODEL) else ["scispacy", "spacy", "pysbd"]
    if treebank:
        treebank_tokenizer()
        used.append("nltk")
    return {library: _version(library) or "unknown" for library in used}


def _paragraph(text: str) -> list[str]:
    return [text] if text else []


def _version(library: str) -> str | None:
    try:
        return importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
        return None


def _missing(option: str, extra: str, error: ImportError) -> MissingExtraError:
    return MissingExtraError(
        f"{option} needs a library that cannot be imported ({error}): pip install 'bioshards[{extra}]'"
    )


def _scispacy() -> Splitter:
    """Sentences as scispaCy finds them; where it fails on a text, that text is one sentence."""
    pipeline = _scispacy_pipeline()

    def split(text: str) -> list[str]:
        if len(text) > LONGEST:
            return [text]
        try:
            starts = [sentence.start_char for sentence in pipeline(text).sents]
        except (IndexError, re.error):  # pysbd makes patterns of pieces of text
            return [text]
        # A sentence is a slice of the text and ends at a blank, whatever was done to tokens.
        cuts = [0, *[start for start in starts if start and text[start - 1] == " "], len(text) + 1]
        return [text[start : end - 1] for start, end in itertools.pairwise(cuts)] if text else []

    return split


def _scispacy_pipeline() -> Any:
    try:
        import spacy

        if _version(MODEL):
            return spacy.load(MODEL, exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"])
        import scispacy.custom_sentence_segmenter  # noqa: F401  (gives spaCy the component named below)
        from scispacy.custom_tokenizer import combined_rule_tokenizer
    except ImportError as error:
        raise _missing("--splitter scispacy", "scispacy", error) from error
    pipeline = spacy.blank("en")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of a pattern in scispaCy's tokenizer
        pipeline.tokenizer = combined_rule_tokenizer(pipeline)
    pipeline.add_pipe("pysbd_sentencizer")
    return pipeline
