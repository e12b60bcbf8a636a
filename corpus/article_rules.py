"""Which articles become documents, and which of their parts: the rules of a corpus of full text, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from .errors import InvalidValueError
from .jats_blocks import PARTS
from .licences import DEFAULT_LICENCES, LICENCES
from .rules import TextRules

OPTIONAL_PARTS: Final = tuple(part for part in PARTS if part != "title")
DEFAULT_PARTS: Final = tuple(
    part for part in OPTIONAL_PARTS if part not in ("other-abstract", "translated-abstract", "sub-article")
)
LEFT_OUT: Final = "left out: "
"""With a part's name: under which its characters are counted where it is left out."""


@dataclass(frozen=True, slots=True)
class ArticleRules(TextRules):
    """Selection and shape of full-text documents.  The defaults keep every English article with a body that
    anybody may use, change and pass on: all of its text but the references.

    Attributes:
        licences: keep articles of these licences (licences.py); an article that names none is "unknown".
        sections: the parts (jats_blocks.py) that are text, titles apart.
        min_words: drop documents of fewer words (split at white space), cleaned.
        drop_article_types: drop articles of any of these, by name as in JATS' ``article-type``.
        keep_ocr: keep articles that were read from scanned pages.
        keep_bodiless: keep articles of which PMC has no body: their abstract, mostly.
        author_year: do citations by name and year ("Ode, 2011") stay in the text?  Numbers never do.
        formula: what stands for a displayed formula; '' for nothing.
    """

    languages: tuple[str, ...] = ("eng",)
    licences: tuple[str, ...] = tuple(code for code in LICENCES if code in DEFAULT_LICENCES)
    sections: tuple[str, ...] = DEFAULT_PARTS
    min_words: int = 0
    drop_article_types: tuple[str, ...] = ()
    keep_ocr: bool = False
    keep_bodiless: bool = False
    author_year: bool = True
    formula: str = ""

    reasons: ClassVar[tuple[str, ...]] = (
        *("superseded", "licence", "language", "article-type", "retracted", "ocr", "no-body", "no-text"),
        *("short", "duplicate", "excluded"),
    )
    """Every reason for which an article is no document, in the order in which they are asked."""
    newest_by_version: ClassVar[bool] = True

    def __post_init__(self) -> None:
        TextRules.__post_init__(self)
        for name, given, known in (
            ("licences", self.licences, tuple(LICENCES)),
            ("sections", self.sections, OPTIONAL_PARTS),
        ):
            if given != tuple(item for item in known if item in given):
                raise InvalidValueError(
                    f"{name} is {', '.join(given)}; it must be some of these, in this order: "
                    f"{', '.join(known)}"
                )
        if not self.licences:
            raise InvalidValueError("licences is empty, so that no article would be kept")

    def removals(self) -> tuple[str, ...]:
        """The names under which removed characters are counted, of all that is on."""
        out = (f"{LEFT_OUT}{part}" for part in OPTIONAL_PARTS if part not in self.sections)
        return (*TextRules.removals(self), *out)
