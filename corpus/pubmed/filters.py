"""Document config and filters for PubMed.

To add a filter: a field of :class:`PubMedConfig`, which is also its option, its reason in
:data:`_DROP_REASONS`, and its condition in :func:`find_drop_reason`. jats/filters.py has those of PMC.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from bioshards.corpus.document import Document
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.pubmed.mesh import PUBLICATION_TYPES, MeshTree, is_branch, parse_publication_types
from bioshards.corpus.sentences import count_line_words
from bioshards.corpus.text.language_detection import ENGLISH, detect_language
from bioshards.corpus.text_config import (
    ArticleConfig,
    describe_unknown_types,
    find_common_drop_reason,
    find_length_drop_reason,
    is_filtered_out,
    parse_names,
)
from bioshards.corpus.ui.options import Option, int_at_least, language_list, name_list

if TYPE_CHECKING:
    from bioshards.corpus.manifest import Json
    from bioshards.corpus.pubmed.citation import Citation

OTHER_ABSTRACT_TYPES: Final = ("AAMC", "AIDS", "KIE", "NASA", "PIP", "Publisher", "plain-language-summary")
"""Types of ``OtherAbstract``: databases that wrote it, its publisher, or a summary for laymen."""

_DROP_REASONS: Final = """
    deleted superseded book below-min-pmid year journal mesh language publication-type retracted no-text
    stub no-abstract language-of-text short-abstract short long not-included duplicate near-duplicate
    excluded
"""
"""All drop reasons, in order of precedence: a record is counted under the first that applies.

``deleted`` and ``superseded`` are decided across files (lifecycle/decisions.py) and precede the filters.
``not-included`` is of the stage (lifecycle/stage.py).
``duplicate`` (lifecycle/decisions.py), ``near-duplicate`` (lifecycle/near_duplicates.py) and ``excluded``
(lifecycle/id_lists.py) apply to the remaining documents.
"""


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
        int,
        Option(
            "drop abstracts of fewer words, without title and labels",
            metavar="WORDS",
            parse=int_at_least(0),
        ),
    ] = 0
    """Words at white space, after cleaning."""
    min_pmid: Annotated[int, Option("drop lower PMIDs", metavar="PMID", parse=int_at_least(0))] = 0
    publication_types: Annotated[
        tuple[str, ...],
        Option("keep records of any of these types only", metavar="TYPES", parse=parse_publication_types),
    ] = ()
    mesh: Annotated[
        tuple[str, ...],
        Option(
            "keep records with any of these MeSH descriptors, separated by semicolons, or of a branch of the "
            'tree, by name or number ("Sleep, REM; branch:Neoplasms; branch:C04")',
            metavar="NAMES",
            parse=parse_names,
        ),
    ] = ()
    drop_mesh: Annotated[
        tuple[str, ...],
        Option("drop records with any of these MeSH descriptors", metavar="NAMES", parse=parse_names),
    ] = ()
    mesh_tree_sha256: str | None = None
    """SHA-256 of the file of ``--mesh-tree``."""
    mesh_branches: frozenset[str] = frozenset()
    """Descriptors of the branches in ``mesh``, in lower case; no setting, as they follow from it."""
    drop_mesh_branches: frozenset[str] = frozenset()
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
    keep_books: Annotated[
        bool, "keep records of books and their chapters that have an abstract, marked in the column flags"
    ] = False
    other_abstract_types: Annotated[
        tuple[str, ...],
        Option(
            "use the English OtherAbstract of a record without an abstract if it has one of these types, "
            f"comma-separated ({','.join(OTHER_ABSTRACT_TYPES)}; default: none)",
            metavar="TYPES",
            parse=name_list,
        ),
    ] = ()

    drop_reasons: ClassVar[tuple[str, ...]] = tuple(_DROP_REASONS.split())
    highest_version_wins: ClassVar[bool] = False
    """False: the version in the latest file wins (lifecycle/decisions.py)."""

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
        kept, dropped = self.publication_types, self.drop_publication_types
        kind = "publication type of MeSH 2026"
        return describe_unknown_types("publication-types", kept, dropped, PUBLICATION_TYPES, kind, "Records")

    def list_filter_names(self) -> dict[str, tuple[str, ...]]:
        """Return the names of filters that records may or may not have, by option."""
        mesh, drop_mesh = (
            tuple(name for name in names if not is_branch(name)) for names in (self.mesh, self.drop_mesh)
        )
        return {**ArticleConfig.list_filter_names(self), "mesh": mesh, "drop-mesh": drop_mesh}

    def with_mesh_tree(self, tree: MeshTree) -> PubMedConfig:
        """Return the config with the descriptors of the branches that ``mesh`` and ``drop_mesh`` name.

        Raises:
            MeshTreeError: the tree has no such branch.
        """
        return dataclasses.replace(
            self,
            mesh_tree_sha256=tree.sha256,
            mesh_branches=tree.list_branches(self.mesh),
            drop_mesh_branches=tree.list_branches(self.drop_mesh),
        )

    def to_dict(self) -> dict[str, Json]:
        """Return the settings as JSON data for a manifest."""
        values = ArticleConfig.to_dict(self)
        return {name: value for name, value in values.items() if not isinstance(value, frozenset)}

    def list_parsed_columns(self) -> frozenset[str]:
        """Return the columns that documents or filters need."""
        for_mesh = ("mesh",) if self.mesh or self.drop_mesh else ()
        return ArticleConfig.list_parsed_columns(self).union(for_mesh)


def find_drop_reason(
    citation: Citation, config: PubMedConfig, document: Document, abstract: Sequence[str], num_words: int
) -> str | None:
    """Apply the filters to a citation.

    Args:
        citation: the parsed record.
        config: the filters.
        document: the document built from it.
        abstract: texts of the cleaned abstract, without labels.
        num_words: words of the cleaned text, before sentences are reformatted.

    Returns:
        The first drop reason that applies, or None.
    """
    if citation.pmid < config.min_pmid:
        return "below-min-pmid"
    reason = find_common_drop_reason(config, citation.journal, citation.issns, citation.columns)
    if reason:
        return reason
    if config.mesh or config.drop_mesh:
        descriptors = {heading.descriptor.casefold() for heading in citation.columns.mesh}
        if (
            config.mesh
            and descriptors.isdisjoint(config.mesh)
            and descriptors.isdisjoint(config.mesh_branches)
        ):
            return "mesh"
        if not (
            descriptors.isdisjoint(config.drop_mesh) and descriptors.isdisjoint(config.drop_mesh_branches)
        ):
            return "mesh"
    if config.languages or config.drop_languages:
        languages = set(map(to_marc_code, citation.languages))
        if is_filtered_out(languages, config.languages, config.drop_languages):
            return "language"
    if config.publication_types or config.drop_publication_types:
        types = {name.casefold() for name in citation.publication_types}
        kept_types = [name.casefold() for name in config.publication_types]
        if is_filtered_out(types, kept_types, map(str.casefold, config.drop_publication_types)):
            return "publication-type"
    if config.drop_retracted and citation.retracted:
        return "retracted"
    if not document.sections:
        if not (document.sentences if config.keep_title_only else document.title):
            return "no-text"
        if not config.keep_title_only:
            return "stub" if "stubs" in document.removed_characters else "no-abstract"
    if config.languages or config.drop_languages:
        language = detect_language(abstract) or ENGLISH
        if language != ENGLISH and not config.selects_language(language):
            return "language-of-text"
    if config.min_abstract_words and sum(map(count_line_words, abstract)) < config.min_abstract_words:
        return "short-abstract"
    return find_length_drop_reason(config, num_words)
