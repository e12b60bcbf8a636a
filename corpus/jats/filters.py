"""Document config and filters for PMC articles.

To add a filter: a field of :class:`PmcConfig`, its reason in ``drop_reasons``, its condition in
:func:`find_drop_reason` (metadata) or :func:`find_text_drop_reason` (text), and an option in
``pipelines/options/pmc_options.py``. pubmed/filters.py has those of PubMed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from bioshards.corpus.document import Document
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES, UNKNOWN_LICENCE
from bioshards.corpus.text_config import TextConfig, describe_unknown_names

from .article_metadata import ArticleMetadata
from .article_types import ARTICLE_TYPES
from .in_text_citations import CITATION_MODES
from .text_blocks import ARTICLE_PARTS

OPTIONAL_ARTICLE_PARTS: Final = tuple(part for part in ARTICLE_PARTS if part != "title")
DEFAULT_ARTICLE_PARTS: Final = tuple(
    part
    for part in OPTIONAL_ARTICLE_PARTS
    if part not in ("other-abstract", "translated-abstract", "sub-article")
)
DROPPED_PART_PREFIX: Final = "left out: "
"""Prefix of the names under which the characters of excluded parts are counted."""


@dataclass(frozen=True, slots=True)
class PmcConfig(TextConfig):
    """Filters and text settings for PMC articles.

    The defaults keep every English article with a body and a licence that permits use, adaptation and
    redistribution, and all of its text except the references.

    Attributes:
        licences: keep articles with these licence codes (licences.py); articles without one are "unknown".
        parts: included parts of an article (text_blocks.py); ``titles`` controls the title.
        min_words: drop shorter documents: words at white space, after cleaning.
        drop_article_types: drop articles of these types, named as in JATS ``article-type``.
        keep_ocr: keep articles that were read from scanned pages.
        keep_abstract_only: keep articles whose body PMC lacks.
        author_year_citations: keep citations by name and year ("Ode, 2011").
        translations: read an article in another language as its full translation into one of ``languages``.
        citations: what becomes of numeric citations, one of ``in_text_citations.CITATION_MODES``.
        formula_placeholder: replacement for displayed formulas; '' for none.
        salvage: use the whole articles of damaged archives and packages.
    """

    languages: tuple[str, ...] = ("eng",)
    licences: tuple[str, ...] = tuple(code for code in LICENCES if code in DEFAULT_LICENCES)
    parts: tuple[str, ...] = DEFAULT_ARTICLE_PARTS
    min_words: int = 0
    drop_article_types: tuple[str, ...] = ()
    keep_ocr: bool = False
    keep_abstract_only: bool = False
    author_year_citations: bool = True
    translations: bool = True
    citations: str = "mask"
    formula_placeholder: str = ""
    salvage: bool = False

    drop_reasons: ClassVar[tuple[str, ...]] = (
        "superseded",
        "licence",
        "language",
        "article-type",
        "retracted",
        "ocr",
        "no-body",
        "no-text",
        "language-of-text",
        "short",
        "duplicate",
        "excluded",
    )
    """All drop reasons, in order of precedence: an article is counted under the first that applies."""
    highest_version_wins: ClassVar[bool] = True
    """True: PMC numbers the versions of an article (lifecycle/versions.py)."""

    def __post_init__(self) -> None:
        TextConfig.__post_init__(self)
        for name, values, allowed in (
            ("licences", self.licences, tuple(LICENCES)),
            ("parts", self.parts, OPTIONAL_ARTICLE_PARTS),
        ):
            if values != tuple(value for value in allowed if value in values):
                raise InvalidValueError(
                    f"{name} is {', '.join(values)}; it must be some of these, in this order: "
                    f"{', '.join(allowed)}"
                )
        if self.citations not in CITATION_MODES:
            raise InvalidValueError(
                f"citations is {self.citations}; it must be one of {', '.join(CITATION_MODES)}"
            )
        if not self.licences:
            raise InvalidValueError("licences is empty, so that no article would be kept")

    def describe_unknown_values(self) -> list[str]:
        """Return a notice for each article type that is not known; articles may have it."""
        return list(
            describe_unknown_names(
                self.drop_article_types,
                ARTICLE_TYPES,
                "--drop-article-types: {} is no type that JATS or PMC suggest",
                "Articles of exactly this type are dropped",
            )
        )

    @property
    def flattens_markup(self) -> bool:
        """True if simple markup can be flattened before parsing, which marks citations by default rules."""
        return self.author_year_citations and self.citations != "keep"

    def removal_names(self) -> tuple[str, ...]:
        """Return the names of all enabled rules and excluded parts under which characters are counted."""
        dropped_parts = (
            f"{DROPPED_PART_PREFIX}{part}" for part in OPTIONAL_ARTICLE_PARTS if part not in self.parts
        )
        return (*TextConfig.removal_names(self), *dropped_parts)


def find_drop_reason(metadata: ArticleMetadata, has_body: bool, config: PmcConfig) -> str | None:
    """Apply the filters that need the metadata only, before the text is built.

    Returns:
        The drop reason, or None if no filter applies.
    """
    if (metadata.licence or UNKNOWN_LICENCE) not in config.licences:
        return "licence"
    if config.languages and metadata.language and metadata.language not in config.languages:
        return "language"
    if metadata.article_type in {name.lower() for name in config.drop_article_types}:
        return "article-type"
    if config.drop_retracted and metadata.retracted:
        return "retracted"
    if metadata.ocr and not config.keep_ocr:
        return "ocr"
    if not has_body and not config.keep_abstract_only:
        return "no-body"
    return None


def find_text_drop_reason(document: Document, config: PmcConfig, num_words: int) -> str | None:
    """Apply the filters that need the text.

    Args:
        document: the document, cleaned and split.
        config: the filters.
        num_words: words of the cleaned text, before sentences are reformatted.

    Returns:
        The drop reason, or None if no filter applies.
    """
    if not document.sections:
        return "no-text"
    if config.languages and document.language not in config.languages:
        return "language-of-text"
    if num_words < config.min_words:
        return "short"
    return None
