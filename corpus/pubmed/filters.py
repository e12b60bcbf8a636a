"""Document config and filters for PubMed.

To add a filter: a field of :class:`PubMedConfig`, which is also its option, its reason in ``drop_reasons``,
and its condition in :func:`find_drop_reason`. jats/filters.py has those of PMC.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

from bioshards.corpus.article_config import ArticleConfig, find_common_drop_reason, parse_names
from bioshards.corpus.document import Document
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.sentences import count_line_words
from bioshards.corpus.text.language_detection import ENGLISH, detect_language
from bioshards.corpus.text_config import describe_unknown_names
from bioshards.corpus.ui.options import Option
from bioshards.corpus.ui.value_parsers import int_at_least, language_list, name_list

from .citation import OTHER_ABSTRACT_TYPES, Citation
from .publication_types import PUBLICATION_TYPES, parse_publication_types


@dataclass(frozen=True, slots=True)
class PubMedConfig(ArticleConfig):
    """Filters and text settings for PubMed; the fields are options of ``beam run pubmed_to_shards``.

    The defaults keep every citation with an abstract.
    """

    languages: Annotated[
        tuple[str, ...],
        Option(
            "keep articles in any of these languages: MARC codes, comma-separated (eng,fre); "
            "PubMed's titles and abstracts are English for all of them",
            metavar="CODES",
            parse=language_list,
        ),
    ] = ()
    section_labels: Annotated[bool, "begin a section's text with its label, METHODS: ... (default: no)"] = (
        False
    )
    min_abstract_words: Annotated[
        int, Option("drop abstracts of fewer words", metavar="WORDS", parse=int_at_least(0))
    ] = 0
    """Words at white space, after cleaning, without labels."""
    min_pmid: Annotated[int, Option("drop lower PMIDs", metavar="PMID", parse=int_at_least(0))] = 0
    publication_types: Annotated[
        tuple[str, ...],
        Option("keep records of any of these types only", metavar="TYPES", parse=parse_publication_types),
    ] = ()
    mesh: Annotated[
        tuple[str, ...],
        Option(
            'keep records with any of these MeSH descriptors, separated by semicolons ("Mice; Sleep, REM")',
            metavar="NAMES",
            parse=parse_names,
        ),
    ] = ()
    drop_mesh: Annotated[
        tuple[str, ...],
        Option("drop records with any of these MeSH descriptors", metavar="NAMES", parse=parse_names),
    ] = ()
    drop_publication_types: Annotated[
        tuple[str, ...],
        Option(
            'drop records of any of these types, comma-separated ("Published Erratum,Comment")',
            metavar="TYPES",
            parse=parse_publication_types,
        ),
    ] = ()
    """Named as in the DTD's ``PublicationType``, in any case."""
    keep_title_only: Annotated[bool, "keep records without an abstract, as their title alone"] = False
    other_abstract_types: Annotated[
        tuple[str, ...],
        Option(
            "use the English OtherAbstract of a record without an abstract if it has one of these types, "
            f"comma-separated ({','.join(OTHER_ABSTRACT_TYPES)}; default: none)",
            metavar="TYPES",
            parse=name_list,
        ),
    ] = ()

    drop_reasons: ClassVar[tuple[str, ...]] = (
        "deleted",
        "superseded",
        "book",
        "below-min-pmid",
        "year",
        "journal",
        "mesh",
        "language",
        "publication-type",
        "retracted",
        "no-text",
        "stub",
        "no-abstract",
        "language-of-text",
        "short-abstract",
        "duplicate",
        "near-duplicate",
        "excluded",
    )
    """All drop reasons, in order of precedence: a record is counted under the first that applies.

    ``deleted`` and ``superseded`` are decided across files (lifecycle/versions.py) and precede the filters.
    ``duplicate`` (lifecycle/dedup.py), ``near-duplicate`` (lifecycle/near_duplicates.py) and ``excluded``
    (lifecycle/exclusion_list.py) apply to the remaining documents.
    """
    highest_version_wins: ClassVar[bool] = False
    """False: the version in the latest file wins (lifecycle/versions.py)."""

    def __post_init__(self) -> None:
        ArticleConfig.__post_init__(self)
        if not set(self.other_abstract_types) <= set(OTHER_ABSTRACT_TYPES):
            raise InvalidValueError(
                f"other_abstract_types is {', '.join(self.other_abstract_types)}; it must be some of "
                f"{', '.join(OTHER_ABSTRACT_TYPES)}"
            )
        if self.keep_title_only and not self.titles:
            raise InvalidValueError("keep_title_only keeps titles as text, but titles are left out")
        if self.keep_title_only and self.min_abstract_words:
            raise InvalidValueError(
                "keep_title_only keeps records without an abstract, min_abstract_words drops them"
            )

    def describe_unknown_values(self) -> list[str]:
        """Return a notice for each publication type that is not known; records may have it."""
        return [
            notice
            for option, names, verb in (
                ("--publication-types", self.publication_types, "kept"),
                ("--drop-publication-types", self.drop_publication_types, "dropped"),
            )
            for notice in describe_unknown_names(
                names,
                PUBLICATION_TYPES,
                f"{option}: {{}} is no publication type of MeSH 2026",
                f"Records of exactly this type are {verb}",
            )
        ]

    def list_parsed_columns(self) -> frozenset[str]:
        """Return the columns that documents or filters need."""
        for_mesh = ("mesh",) if self.mesh or self.drop_mesh else ()
        return ArticleConfig.list_parsed_columns(self).union(for_mesh)


def find_drop_reason(
    citation: Citation, config: PubMedConfig, document: Document, abstract: Sequence[str]
) -> str | None:
    """Apply the filters to a citation.

    Args:
        citation: the parsed record.
        config: the filters.
        document: the document built from it.
        abstract: texts of the cleaned abstract, without labels.

    Returns:
        The first drop reason that applies, or None.
    """
    if citation.pmid < config.min_pmid:
        return "below-min-pmid"
    reason = find_common_drop_reason(
        config, citation.year, citation.journal, citation.issns, citation.columns
    )
    if reason:
        return reason
    if config.mesh or config.drop_mesh:
        descriptors = {heading.descriptor.casefold() for heading in citation.columns.mesh}
        if (config.mesh and descriptors.isdisjoint(config.mesh)) or not descriptors.isdisjoint(
            config.drop_mesh
        ):
            return "mesh"
    if config.languages and not set(config.languages).intersection(map(to_marc_code, citation.languages)):
        return "language"
    if config.publication_types or config.drop_publication_types:
        types = {name.casefold() for name in citation.publication_types}
        if config.publication_types and types.isdisjoint(map(str.casefold, config.publication_types)):
            return "publication-type"
        if not types.isdisjoint(map(str.casefold, config.drop_publication_types)):
            return "publication-type"
    if config.drop_retracted and citation.retracted:
        return "retracted"
    if not document.sections:
        if not (document.sentences if config.keep_title_only else document.title):
            return "no-text"
        if not config.keep_title_only:
            return "stub" if "stubs" in document.removed_characters else "no-abstract"
    if config.languages and (detect_language(abstract) or ENGLISH) not in (ENGLISH, *config.languages):
        return "language-of-text"
    if config.min_abstract_words and sum(map(count_line_words, abstract)) < config.min_abstract_words:
        return "short-abstract"
    return None
