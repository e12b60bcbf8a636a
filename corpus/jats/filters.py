"""Document config and filters for PMC articles.

To add a filter: a field of :class:`PmcConfig`, which is also its option, its reason in
:data:`_DROP_REASONS`, and its condition in :func:`find_drop_reason` (metadata) or
:func:`find_text_drop_reason` (text). pubmed/filters.py has those of PubMed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from bioshards.corpus.document import Document
from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES, UNKNOWN_LICENCE
from bioshards.corpus.text_config import (
    ArticleConfig,
    describe_unknown_types,
    find_common_drop_reason,
    find_length_drop_reason,
)
from bioshards.corpus.ui.options import Option, language_list, lower_case_list, nonempty_subset_of, subset_of

if TYPE_CHECKING:
    from bioshards.corpus.jats.article_metadata import ArticleMetadata

_ARTICLE_PART_NAMES: Final = """
    title abstract summary other-abstract translated-abstract body caption footnote acknowledgements appendix
    glossary boilerplate sub-article
"""
ARTICLE_PARTS: Final = tuple(_ARTICLE_PART_NAMES.split())
"""The parts of an article. ``summary`` is an abstract for other readers; ``other-abstract`` a teaser
(graphical, table of contents, highlights); ``sub-article`` the text of a review, a reply or a translation.
"""

_ARTICLE_TYPES: Final = """
    abstract addendum announcement article-commentary book-review books-received brief-report calendar
    case-report case-study clinical-trial collection community-comment companion corrected-article
    correction data-paper decision-letter discussion dissertation editorial expression-of-concern
    guideline in-brief introduction letter meeting-report methods-article news obituary oration other
    partial-retraction preprint product-review protocol rapid-communication referee-report removal reply
    report reprint research-article retracted-article retraction review-article reviewer-report
    study-protocol systematic-review technical-report translation
"""
"""Article types that JATS (https://jats.nlm.nih.gov/archiving/tag-library/1.3/attribute/article-type.html)
and PMC (https://pmc.ncbi.nlm.nih.gov/tagging-guidelines/article/tags/#el-article) suggest, and frequent
others. The vocabulary is open: publishers have more.
"""

CITATION_MODES: Final = ("keep", "drop", "mask")
"""keep: citations as printed; drop: none; mask: :data:`CITATION_MASK` in place of nouns, no others."""
CITATION_MASK: Final = "[CITATION]"
TABLE_MODES: Final = ("none", "text")
FORMULA_MODES: Final = ("latex", "text")
FORMULA_WORD: Final = "[FORMULA]"
"""Stands for an inline formula, or the graphic of a symbol, that has no text."""

NOTE_PARTS: Final = ("citation-note", "licence-note", "publisher-note", "review-note", "supplement-note")
"""Kinds of publisher's notes (publisher_notes.py), which are the parts that they are counted as."""
REFERENCES_PART: Final = "references"
"""References that are paragraphs or lists, which are never text."""
OPTIONAL_ARTICLE_PARTS: Final = tuple(part for part in ARTICLE_PARTS if part != "title")
_EXTRA_ARTICLE_PARTS: Final = ("other-abstract", "translated-abstract", "sub-article")
DEFAULT_ARTICLE_PARTS: Final = tuple(
    part for part in OPTIONAL_ARTICLE_PARTS if part not in _EXTRA_ARTICLE_PARTS
)
DROPPED_PART_PREFIX: Final = "left out: "
"""Prefix of the names under which the characters of excluded parts are counted."""

_DROP_REASONS: Final = """
    superseded superseded-by-date copy licence language year journal article-type retracted ocr no-body
    no-text language-of-text short long not-included duplicate near-duplicate excluded
"""
"""All drop reasons, in order of precedence: an article is counted under the first that applies."""

LICENCES_OPTION: Final = Option(
    f"comma-separated, of {', '.join(LICENCES)}, or all (default: {','.join(sorted(DEFAULT_LICENCES))}, "
    "which permit everybody any use, and passing on changed text)",
    metavar="CODES",
    parse=nonempty_subset_of(tuple(LICENCES)),
)


@dataclass(frozen=True, slots=True)
class PmcConfig(ArticleConfig):
    """Filters and text settings for PMC articles; the fields are options of ``beam run pmc_to_shards``.

    The defaults keep every English article with a body and a licence that permits use, adaptation and
    redistribution, and all of its text except the references.
    """

    languages: Annotated[
        tuple[str, ...],
        Option(
            "keep articles in any of these languages: MARC codes, comma-separated; '' for all (default: eng)",
            metavar="CODES",
            parse=language_list,
        ),
    ] = ("eng",)
    section_labels: Annotated[
        bool, "give each section's heading a line of its own in the text (default: no)"
    ] = False
    licences: Annotated[tuple[str, ...], LICENCES_OPTION] = tuple(
        code for code in LICENCES if code in DEFAULT_LICENCES
    )
    """Licence codes (licences.py); articles without one are "unknown"."""
    parts: Annotated[
        tuple[str, ...],
        Option(
            "these parts only, comma-separated, or all (default: all but "
            f"{', '.join(_EXTRA_ARTICLE_PARTS)}): {', '.join(OPTIONAL_ARTICLE_PARTS)} (boilerplate: who did "
            "what, who paid, who approved, where data are)",
            name="include_parts",
            metavar="NAMES",
            parse=subset_of(OPTIONAL_ARTICLE_PARTS),
        ),
    ] = DEFAULT_ARTICLE_PARTS
    """Parts of an article (:data:`ARTICLE_PARTS`); ``titles`` controls the title."""
    article_types: Annotated[
        tuple[str, ...],
        Option("keep articles of any of these types only", metavar="TYPES", parse=lower_case_list),
    ] = ()
    drop_article_types: Annotated[
        tuple[str, ...],
        Option(
            "drop articles of any of these, comma-separated, as JATS' article-type has them "
            "(correction,retraction,book-review)",
            metavar="TYPES",
            parse=lower_case_list,
        ),
    ] = ()
    keep_ocr: Annotated[bool, "keep articles that were read from scanned pages (default: no)"] = False
    keep_abstract_only: Annotated[bool, "keep articles of which there is an abstract only (default: no)"] = (
        False
    )
    author_year_citations: Annotated[
        bool, "leave citations by name and year in the text (default: yes; --citations is about numbers)"
    ] = True
    translations: Annotated[
        bool,
        "read an article in another language in its full translation into one of --languages, if it has "
        "one (default: yes; its id and metadata stay the article's)",
    ] = True
    citations: Annotated[
        str,
        Option(
            "what becomes of citations by number: keep them as printed, drop them all, or mask those that "
            f"their sentence needs as a noun (as shown in {CITATION_MASK}) and drop the others "
            "(default: mask)",
            choices=CITATION_MODES,
        ),
    ] = "mask"
    keep_notes: Annotated[
        bool,
        "keep publishers' notes: how to cite the article, its licence, who reviewed it, where supplements "
        "are, what the publisher is not responsible for (default: no)",
    ] = False
    tables: Annotated[
        str,
        Option(
            "text writes the rows of tables after their captions, a line each, as header: cell; header: cell "
            "(default: none)",
            choices=TABLE_MODES,
        ),
    ] = "none"
    formula: Annotated[
        str,
        Option(
            "latex writes formulas as LaTeX where the article has it, and other displayed ones as text; text "
            "writes displayed formulas as text; another word, as [EQUATION], stands in place of each "
            f"displayed one, and of inline ones without text (default: {FORMULA_WORD} stands for those in a "
            "sentence, other displayed ones are left out, inline ones are text)",
            metavar="latex|text|TOKEN",
        ),
    ] = ""

    drop_reasons: ClassVar[tuple[str, ...]] = tuple(_DROP_REASONS.split())
    highest_version_wins: ClassVar[bool] = True
    """True: PMC numbers the versions of an article (lifecycle/decisions.py)."""

    def __post_init__(self) -> None:
        ArticleConfig.__post_init__(self)
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
        if self.tables not in TABLE_MODES:
            raise InvalidValueError(f"tables is {self.tables}; it must be one of {', '.join(TABLE_MODES)}")
        if not self.licences:
            raise InvalidValueError("licences is empty, so that no article would be kept")

    def describe_unknown_values(self) -> list[str]:
        """Return a notice for each article type that is not known, and for a word that is nearly a mode."""
        notices = []
        if self.formula not in FORMULA_MODES and (hint := suggest_nearest(self.formula, FORMULA_MODES)):
            notices.append(f"--formula {self.formula} stands in place of each displayed formula{hint}")
        kept, dropped, known = self.article_types, self.drop_article_types, _ARTICLE_TYPES.split()
        kind = "type that JATS or PMC suggest"
        return notices + describe_unknown_types("article-types", kept, dropped, known, kind, "Articles")

    @property
    def flattens_markup(self) -> bool:
        """True if simple markup can be flattened before parsing, which marks citations by default rules."""
        return self.author_year_citations and self.citations != "keep"

    @property
    def has_tables(self) -> bool:
        """True if the rows of tables are text."""
        return self.tables == "text"

    def removal_names(self) -> tuple[str, ...]:
        """Return the names of all enabled rules and excluded parts under which characters are counted."""
        dropped_parts = (
            f"{DROPPED_PART_PREFIX}{part}" for part in OPTIONAL_ARTICLE_PARTS if part not in self.parts
        )
        notes = () if self.keep_notes else (f"{DROPPED_PART_PREFIX}{part}" for part in NOTE_PARTS)
        references = f"{DROPPED_PART_PREFIX}{REFERENCES_PART}"
        return (*ArticleConfig.removal_names(self), *dropped_parts, *notes, references)


def find_drop_reason(metadata: ArticleMetadata, has_body: bool, config: PmcConfig) -> str | None:
    """Apply the filters that need the metadata only, before the text is built.

    Returns:
        The drop reason, or None if no filter applies.
    """
    if (metadata.licence or UNKNOWN_LICENCE) not in config.licences:
        return "licence"
    if metadata.language and not config.selects_language(metadata.language):
        return "language"
    reason = find_common_drop_reason(config, metadata.journal, metadata.issns, metadata.columns)
    if reason:
        return reason
    if config.article_types and metadata.article_type not in {name.lower() for name in config.article_types}:
        return "article-type"
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
    if not config.selects_language(document.language):
        return "language-of-text"
    return find_length_drop_reason(config, num_words)
