"""Which citations become documents, and of which text: the rules of a corpus, as data.

A drop always has a reason of the rules' ``reasons``; the first that applies, in that order, is counted.
article_rules.py has those of full text.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import ClassVar

from . import splitters
from .cleaning import CLEANING_RULES
from .errors import InvalidValueError
from .lines import ASCII_ONLY, SHORT_LINES


@dataclass(frozen=True, slots=True)
class TextConfig:
    """What the rules of abstracts and of full text have in common.

    Attributes:
        languages: keep articles in any of these MARC codes (``eng``); empty keeps all.
        drop_retracted: drop retracted articles.
        titles: does the text begin with the title?  The ``title`` column is there either way.
        section_labels: does a section's text begin with its label ("METHODS: ...")?
        cleaning: the rules of cleaning.py that are on, in the order of its ``NAMES``.
        splitter: what finds the sentences, one of ``splitters.NAMES``.
        lower_case: write sentences in lower case.
        ascii_only: replace runs of non-ASCII characters in them by a blank.
        treebank: write their Penn Treebank tokens, with blanks between.
        min_line_characters: leave out sentences of fewer characters, as they would be written.
    """

    languages: tuple[str, ...] = ()
    drop_retracted: bool = False
    titles: bool = True
    section_labels: bool = False
    cleaning: tuple[str, ...] = CLEANING_RULES
    splitter: str = "rules"
    lower_case: bool = False
    ascii_only: bool = False
    treebank: bool = False
    min_line_characters: int = 0

    drop_reasons: ClassVar[tuple[str, ...]] = ()
    highest_version_wins: ClassVar[bool] = False

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if field.name.startswith("min_") and getattr(self, field.name) < 0:
                raise InvalidValueError(f"{field.name} is {getattr(self, field.name)}; it cannot be below 0")
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
        """Plain data for a manifest."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in dataclasses.asdict(self).items()
        }

    def removal_names(self) -> tuple[str, ...]:
        """The names under which removed characters are counted, of all that is on."""
        line_rules = ((ASCII_ONLY, self.ascii_only), (SHORT_LINES, self.min_line_characters))
        return (*self.cleaning, *(name for name, is_enabled in line_rules if is_enabled))


@dataclass(frozen=True, slots=True)
class PubMedConfig(TextConfig):
    """Selection and shape of PubMed's documents.  The defaults keep every citation that has an abstract.

    Attributes:
        min_abstract_words: drop abstracts of fewer words (split at white space, labels not counted),
            cleaned, before anything else is done to them.
        min_pmid: drop lower PMIDs.
        drop_publication_types: drop records of any of these types, by name as in the DTD's
            ``PublicationType`` ("Published Erratum").
        keep_title_only: keep records without an abstract, as their title alone.
    """

    min_abstract_words: int = 0
    min_pmid: int = 0
    drop_publication_types: tuple[str, ...] = ()
    keep_title_only: bool = False

    drop_reasons: ClassVar[tuple[str, ...]] = (
        *("deleted", "superseded", "book", "below-min-pmid", "language", "publication-type", "retracted"),
        *("no-text", "stub", "no-abstract", "short-abstract", "duplicate", "excluded"),
    )
    """Every reason for which a record is no document, in the order in which they are asked.

    The first two are decided across files (lifecycle.py) and come before all others: an old version
    counts as superseded whatever it says.  The last two are asked of documents that would be kept: does one
    repeat another, which is decided across files too (duplicates.py), and is it listed (excluded.py)?
    """
    highest_version_wins: ClassVar[bool] = False
    """A later file says more of a citation than a higher Version does (lifecycle.py)."""

    def __post_init__(self) -> None:
        TextConfig.__post_init__(self)
        if self.keep_title_only and not self.titles:
            raise InvalidValueError("keep_title_only keeps titles as text, but titles are left out")
        if self.keep_title_only and self.min_abstract_words:
            raise InvalidValueError(
                "keep_title_only keeps records without an abstract, min_abstract_words drops them"
            )
