"""Which articles become documents, and which of their parts: the rules of a corpus of full text, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from bioshards.corpus.document import Document
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES, UNKNOWN_LICENCE
from bioshards.corpus.text_config import TextConfig

from .article_metadata import ArticleMetadata
from .text_blocks import ARTICLE_PARTS

OPTIONAL_ARTICLE_PARTS: Final = tuple(part for part in ARTICLE_PARTS if part != "title")
DEFAULT_ARTICLE_PARTS: Final = tuple(
    part
    for part in OPTIONAL_ARTICLE_PARTS
    if part not in ("other-abstract", "translated-abstract", "sub-article")
)
DROPPED_PART_PREFIX: Final = "left out: "
"""With a part's name: under which its characters are counted where it is left out."""


@dataclass(frozen=True, slots=True)
class PmcConfig(TextConfig):
    """Selection and shape of full-text documents.  The defaults keep every English article with a body that
    anybody may use, change and pass on: all of its text but the references.

    Attributes:
        licences: keep articles of these licences (licences.py); an article that names none is "unknown".
        parts: the parts (text_blocks.py) that are text, titles apart.
        min_words: drop documents of fewer words (split at white space), cleaned.
        drop_article_types: drop articles of any of these, by name as in JATS' ``article-type``.
        keep_ocr: keep articles that were read from scanned pages.
        keep_abstract_only: keep articles of which PMC has no body: their abstract, mostly.
        author_year_citations: do citations by name and year ("Ode, 2011") stay in the text?  Numbers never do.
        formula_placeholder: what stands for a displayed formula; '' for nothing.
    """

    languages: tuple[str, ...] = ("eng",)
    licences: tuple[str, ...] = tuple(code for code in LICENCES if code in DEFAULT_LICENCES)
    parts: tuple[str, ...] = DEFAULT_ARTICLE_PARTS
    min_words: int = 0
    drop_article_types: tuple[str, ...] = ()
    keep_ocr: bool = False
    keep_abstract_only: bool = False
    author_year_citations: bool = True
    formula_placeholder: str = ""

    drop_reasons: ClassVar[tuple[str, ...]] = (
        "superseded",
        "licence",
        "language",
        "article-type",
        "retracted",
        "ocr",
        "no-body",
        "no-text",
        "short",
        "duplicate",
        "excluded",
    )
    """Every reason for which an article is no document, in the order in which they are asked."""
    highest_version_wins: ClassVar[bool] = True

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
        if not self.licences:
            raise InvalidValueError("licences is empty, so that no article would be kept")

    def removal_names(self) -> tuple[str, ...]:
        """The names under which removed characters are counted, of all that is on."""
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
    if config.languages and metadata.language not in config.languages:
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
    if num_words < config.min_words:
        return "short"
    return None
