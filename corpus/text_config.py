"""Config that abstracts and full text share: selection, cleaning and line format."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.corpus.languages import parse_language
from bioshards.corpus.sentences import splitters
from bioshards.corpus.text.cleaning import CLEANING_RULES
from bioshards.corpus.text.line_format import ASCII_ONLY, SHORT_LINES, LineFormatter
from bioshards.corpus.ui.options import Option
from bioshards.corpus.ui.value_parsers import complement_of, int_at_least

_text_option = functools.partial(
    Option, group="what becomes of the text (default: cleaned and split, else as written)"
)


@dataclass(frozen=True, slots=True)
class TextConfig:
    """Base class of the document configs; the fields are options of the command line.

    Attributes:
        languages: keep articles in any of these MARC codes (``eng``); empty keeps all.
        section_labels: start the text of a section with its label ("METHODS: ...").
        cleaning: enabled cleaning rules, in the order of ``cleaning.CLEANING_RULES``.
        columns: columns of ``ArticleColumns`` that the documents have, in its order.
    """

    columns: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    drop_retracted: Annotated[
        bool, "drop retracted articles (default: keep them, marked in the column retracted)"
    ] = False
    titles: Annotated[
        bool, "begin the text with the title (default: yes; the title column is there either way)"
    ] = True
    section_labels: bool = False
    cleaning: Annotated[
        tuple[str, ...],
        _text_option(
            "leave out these cleaning rules, comma-separated, or all (default: none): "
            f"{', '.join(CLEANING_RULES)}",
            name="disable_cleaning",
            metavar="NAMES",
            parse=complement_of(CLEANING_RULES),
        ),
    ] = CLEANING_RULES
    splitter: Annotated[
        str,
        _text_option(
            "what finds sentences: rules (default), scispacy (needs bioshards[scispacy]; en_core_sci_sm if "
            "that is installed), or none (a line for each paragraph)",
            choices=splitters.SPLITTER_NAMES,
        ),
    ] = "rules"
    lower_case: Annotated[bool, _text_option("write sentences in lower case (default: no)")] = False
    ascii_only: Annotated[
        bool, _text_option("replace each run of non-ASCII characters by a blank (default: no)")
    ] = False
    treebank: Annotated[
        bool,
        _text_option(
            "write Penn Treebank tokens, blanks between them (default: no; needs bioshards[treebank])"
        ),
    ] = False
    min_line_characters: Annotated[
        int,
        _text_option(
            "leave out sentences of fewer characters, as they would be written", parse=int_at_least(0)
        ),
    ] = 0

    drop_reasons: ClassVar[tuple[str, ...]] = ()
    highest_version_wins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.name.startswith("min_") and getattr(self, field.name) < 0:
                raise InvalidValueError(f"{field.name} is {getattr(self, field.name)}; it cannot be below 0")
        for code in self.languages:
            if code != parse_language(code):
                raise InvalidValueError(f"languages has {code}; the code of MARC is {parse_language(code)}")
        if self.cleaning != tuple(name for name in CLEANING_RULES if name in self.cleaning):
            raise InvalidValueError(
                f"cleaning is {', '.join(self.cleaning)}; it must be some of these, in this order: "
                f"{', '.join(CLEANING_RULES)}"
            )
        if self.splitter not in splitters.SPLITTER_NAMES:
            raise InvalidValueError(
                f"splitter is {self.splitter}; it must be one of {', '.join(splitters.SPLITTER_NAMES)}"
            )

    def to_dict(self) -> dict[str, object]:
        """Return the config as JSON data for a manifest."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    def describe_unknown_values(self) -> list[str]:
        """Return a notice for each value that is not known, of options that take others too."""
        return []

    def make_line_formatter(self) -> LineFormatter | None:
        """Return the formatter of sentences, or None if sentences are written as they are.

        Raises:
            MissingExtraError: ``treebank`` is set and NLTK is not installed.
        """
        if not (self.lower_case or self.ascii_only or self.treebank or self.min_line_characters):
            return None
        return LineFormatter(
            lower_case=self.lower_case,
            ascii_only=self.ascii_only,
            treebank=self.treebank,
            min_characters=self.min_line_characters,
        )

    def removal_names(self) -> tuple[str, ...]:
        """Return the names of all enabled rules under which removed characters are counted."""
        line_rules = ((ASCII_ONLY, self.ascii_only), (SHORT_LINES, self.min_line_characters))
        return (*self.cleaning, *(name for name, is_enabled in line_rules if is_enabled))


def describe_unknown_names(
    names: Iterable[str], known: Collection[str], place: str, effect: str
) -> Iterator[str]:
    """Yield a notice for each name that is not known, with the nearest that is.

    Args:
        names: values of an option.
        known: names in the right spelling; case does not matter.
        place: option and, behind the name, what it is not: ``--drop-article-types: {} is no type``.
        effect: what follows nevertheless.
    """
    folded_names = {name.casefold() for name in known}
    for name in names:
        if name.casefold() not in folded_names:
            yield f"{place.format(name)}{suggest_nearest(name, known)}. {effect}"
