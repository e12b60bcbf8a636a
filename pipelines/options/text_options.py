"""Options of text processing, deduplication and excluded ids, for abstracts and full text."""

from __future__ import annotations

import argparse
import dataclasses
from typing import TypeVar

from bioshards.corpus.errors import UsageError
from bioshards.corpus.sentences import splitters
from bioshards.corpus.text import cleaning
from bioshards.corpus.text_config import TextConfig

from .argument_types import complement_of, int_at_least
from .parser import Parser

ConfigT = TypeVar("ConfigT", bound=TextConfig)


def override_config(config: ConfigT, args: argparse.Namespace) -> ConfigT:
    """Return the configuration, overridden by the arguments that are not None.

    Raises:
        UsageError: options contradict each other.
    """
    overrides = {
        field.name: getattr(args, field.name)
        for field in dataclasses.fields(config)
        if getattr(args, field.name) is not None
    }
    try:
        return dataclasses.replace(config, **overrides)
    except ValueError as error:
        raise UsageError(str(error)) from error


def add_dedup_option(group: argparse._ArgumentGroup, compared_text: str, ordering_id: str) -> None:
    """Add ``--dedup``."""
    group.add_argument(
        "--dedup",
        choices=["none", "exact"],
        default="none",
        help=f"exact: of documents with the same {compared_text} (case, spacing and punctuation apart) "
        f"keep the one of the lowest {ordering_id}; DIR/duplicates.tsv lists the others (default: "
        "%(default)s)",
    )


def add_exclusion_option(group: argparse._ArgumentGroup) -> None:
    """Add ``--exclude-ids``."""
    group.add_argument(
        "--exclude-ids",
        metavar="FILE",
        help="drop the documents of these articles: a PMID, a PMCID or a document's id a line, # before a "
        "comment; either of an article's ids drops its abstract and its full text, whatever the version",
    )


def add_text_options(parser: Parser) -> None:
    """Add the options of text processing: cleaning, sentence splitting and formatting."""
    text = parser.add_argument_group("what becomes of the text (default: cleaned and split, else as written)")
    text.add_argument(
        "--disable-cleaning",
        type=complement_of(cleaning.CLEANING_RULES),
        dest="cleaning",
        metavar="NAMES",
        help="leave out these cleaning rules, comma-separated, or all (default: none): "
        f"{', '.join(cleaning.CLEANING_RULES)}",
    )
    text.add_argument(
        "--splitter",
        choices=splitters.SPLITTER_NAMES,
        help="what finds sentences: rules (default), scispacy (needs bioshards[scispacy]; en_core_sci_sm if "
        "that is installed), or none (a line for each paragraph)",
    )
    for option, help_text in (
        ("lower-case", "write sentences in lower case (default: no)"),
        ("ascii-only", "replace each run of non-ASCII characters by a blank (default: no)"),
        (
            "treebank",
            "write Penn Treebank tokens, blanks between them (default: no; needs bioshards[treebank])",
        ),
    ):
        text.add_argument(f"--{option}", action=argparse.BooleanOptionalAction, help=help_text)
    text.add_argument(
        "--min-line-characters",
        type=int_at_least(0),
        metavar="N",
        help="leave out sentences of fewer characters, as they would be written",
    )
