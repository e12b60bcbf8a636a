"""Configs that abstracts, full text and text files share: selection, columns, cleaning and line format."""

from __future__ import annotations

import argparse
import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from bioshards.corpus.document import DEFAULT_COLUMNS, ArticleColumns
from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.corpus.languages import parse_language
from bioshards.corpus.sentences import splitters
from bioshards.corpus.text.cleaning import CLEANING_RULES
from bioshards.corpus.text.line_format import ASCII_ONLY, SHORT_LINES, LineFormatter
from bioshards.corpus.ui.options import Option, complement_of, int_at_least, language_list, subset_of

if TYPE_CHECKING:
    from bioshards.corpus.manifest import Json

ISSNS: Final = "issns"
"""Name by which parsers are asked for the ISSNs of the journal, which are no column."""
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
        _check_order("cleaning", self.cleaning, CLEANING_RULES)
        if self.splitter not in splitters.SPLITTER_NAMES:
            raise InvalidValueError(
                f"splitter is {self.splitter}; it must be one of {', '.join(splitters.SPLITTER_NAMES)}"
            )

    def to_dict(self) -> dict[str, Json]:
        """Return the config as JSON data for a manifest."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    def list_filter_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of filters that records may or may not have, by option."""
        return {}

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


def _check_order(field: str, names: tuple[str, ...], known: tuple[str, ...]) -> None:
    if names != tuple(name for name in known if name in names):
        raise InvalidValueError(
            f"{field} is {', '.join(names)}; it must be some of these, in this order: {', '.join(known)}"
        )


def describe_unknown_types(
    option: str, kept: Iterable[str], dropped: Iterable[str], known: Collection[str], kind: str, records: str
) -> list[str]:
    """Return a notice for each type to keep or to drop that is not known, with the nearest that is.

    Args:
        option: ``publication-types``; the one to drop types is ``drop-publication-types``.
        kept: values of the option.
        dropped: values of the option to drop types.
        known: types in the right spelling; case does not matter.
        kind: what they are, for the message.
        records: what has a type, for the message.
    """
    folded_names = {name.casefold() for name in known}
    return [
        f"--{prefix}{option}: {name} is no {kind}{suggest_nearest(name, known)}. "
        f"{records} of exactly this type are {verb}"
        for prefix, names, verb in (("", kept, "kept"), ("drop-", dropped, "dropped"))
        for name in names
        if name.casefold() not in folded_names
    ]


def is_filtered_out(values: set[str], kept: Collection[str], dropped: Iterable[str]) -> bool:
    """Return True if none of the values is one to keep, where there are such, or any is one to drop."""
    return (bool(kept) and values.isdisjoint(kept)) or not values.isdisjoint(dropped)


def parse_columns(text: str) -> tuple[str, ...]:
    """Parse names of columns, of which ``default`` stands for the default ones."""
    default = ",".join(DEFAULT_COLUMNS)
    names = [default if name.strip() == "default" else name for name in text.split(",")]
    return subset_of(ArticleColumns._fields)(",".join(names))


_DATE: Final = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?")


def parse_date_range(text: str) -> tuple[str, str]:
    """Parse a first and a last date, both included and as precise as they are given.

    Examples are ``2009-01:2020-02``, ``1990:1999``, ``2000:``, ``:2018-09-30``, and ``2001`` for a year.

    Returns:
        First and last date; "" for none.
    """
    first, has_colon, last = text.strip().partition(":")
    last = last if has_colon else first
    if not (first or last) or not all(_DATE.fullmatch(date) for date in (first, last) if date):
        raise argparse.ArgumentTypeError(
            f"{text} is no range of dates, such as 2009-01:2020-02, 1990:1999, 2000: or :2018-09-30"
        )
    if first and last and not _is_published_within(first, (first, last)):
        raise argparse.ArgumentTypeError(f"{text} ends before it begins")
    return first, last


def parse_names(text: str) -> tuple[str, ...]:
    """Parse names that may have commas, separated by semicolons and compared in lower case."""
    return tuple(sorted({name.strip().casefold() for name in text.split(";") if name.strip()}))


@dataclass(frozen=True, slots=True)
class ArticleConfig(TextConfig):
    """Columns and filters of documents that are made from records of articles.

    Attributes:
        columns: columns of ``ArticleColumns``, in its order.
        published: first and last date of publication, in ISO 8601, as precise as given; "" for no bound;
            empty for all.
        journals: titles, abbreviations, ISSNs and NLM ids of the journals to keep; empty for all.
        drop_journals: those of journals to drop.
        drop_languages: MARC codes of languages of articles to drop.
        min_words: lowest number of words at white space, after cleaning, with the title if that is text.
        max_words: highest number; 0 for any.
    """

    columns: Annotated[
        tuple[str, ...],
        Option(
            f"columns of metadata, comma-separated: of {', '.join(ArticleColumns._fields)}; or default, all, "
            "none (default: default)",
            metavar="NAMES",
            parse=parse_columns,
        ),
    ] = DEFAULT_COLUMNS
    published: Annotated[
        tuple[str, ...],
        Option(
            "keep articles published from the first to the last of two dates: 2009-01:2020-02, 1990:1999, "
            "2000:, :2018-09-30, 2001",
            metavar="FIRST:LAST",
            parse=parse_date_range,
        ),
    ] = ()
    journals: Annotated[
        tuple[str, ...],
        Option(
            "keep articles of these journals: titles, abbreviations, ISSNs or NLM ids, by semicolons",
            metavar="NAMES",
            parse=parse_names,
        ),
    ] = ()
    drop_journals: Annotated[
        tuple[str, ...], Option("drop articles of these journals", metavar="NAMES", parse=parse_names)
    ] = ()
    drop_languages: Annotated[
        tuple[str, ...],
        Option("drop articles in any of these languages", metavar="CODES", parse=language_list),
    ] = ()
    min_words: Annotated[
        int, Option("drop documents of fewer words", metavar="WORDS", parse=int_at_least(0))
    ] = 0
    max_words: Annotated[
        int,
        Option("drop documents of more words (default: no limit)", metavar="WORDS", parse=int_at_least(0)),
    ] = 0

    def __post_init__(self) -> None:
        TextConfig.__post_init__(self)
        _check_order("columns", self.columns, ArticleColumns._fields)
        if self.published and len(self.published) != 2:
            raise InvalidValueError(
                f"published is {self.published}; it must be empty, or a first and a last date"
            )
        if 0 < self.max_words < self.min_words:
            raise InvalidValueError(
                f"max_words is {self.max_words}, below min_words, {self.min_words}; no document would be kept"
            )
        for field in dataclasses.fields(self):
            kept_field = field.name.removeprefix("drop_")
            if kept_field == field.name or not getattr(self, kept_field, ()):
                continue
            if both := {*getattr(self, kept_field)} & {*getattr(self, field.name)}:
                raise InvalidValueError(
                    f"{field.name} has {', '.join(sorted(both))}, which {kept_field} keeps; leave it out of "
                    "one of them"
                )

    def list_filter_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of filters that records may or may not have, by option."""
        return {"journals": self.journals, "drop-journals": self.drop_journals}

    def selects_language(self, code: str | None) -> bool:
        """Return True if neither filter of languages drops an article in this language."""
        return (not self.languages or code in self.languages) and code not in self.drop_languages

    def list_parsed_columns(self) -> frozenset[str]:
        """Return the columns that documents or filters need."""
        for_journals = (
            {"journal_abbreviation", "nlm_id", ISSNS} if self.journals or self.drop_journals else ()
        )
        for_dates = ("published",) if self.published else ()
        return frozenset({*self.columns, *for_journals, *for_dates})


def find_common_drop_reason(
    config: ArticleConfig, journal: str | None, issns: tuple[str, ...], columns: ArticleColumns
) -> str | None:
    """Apply the filters by date and journal; an article without a date is in none of ``--published``."""
    if config.published and not (
        columns.published and _is_published_within(columns.published, config.published)
    ):
        return "year"  # as staged files of outputs with --years have it
    if config.journals or config.drop_journals:
        names = list_journal_names(journal, issns, columns)
        folded = {name.casefold() for name in names if name}
        if is_filtered_out(folded, config.journals, config.drop_journals):
            return "journal"
    return None


def list_journal_names(
    journal: str | None, issns: tuple[str, ...], columns: ArticleColumns
) -> tuple[str | None, ...]:
    """Return the names by which filters know the journal of an article."""
    return (journal, columns.journal_abbreviation, columns.nlm_id, *issns)


def _is_published_within(date: str, bounds: Sequence[str]) -> bool:
    """Return True if a date is from the first to the last of two, both included.

    A date without month or day counts by its beginning, as PubMed's own ranges of months do.
    """
    first, last = bounds
    full_date = date + "-01-01"[len(date) - 4 :]
    return full_date >= first and (not last or full_date[: len(last)] <= last)


def find_length_drop_reason(config: ArticleConfig, num_words: int) -> str | None:
    """Apply the filters by number of words."""
    if num_words < config.min_words:
        return "short"
    return "long" if 0 < config.max_words < num_words else None
