"""Document config and filters for PubMed.

To add a filter: a field of :class:`PubMedConfig`, its reason in ``drop_reasons``, its condition in
:func:`find_drop_reason`, and an option in ``pipelines/pubmed_to_shards.py``. jats/filters.py has those of
PMC.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bioshards.corpus.document import Document
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.text_config import TextConfig

from .citation import Citation


@dataclass(frozen=True, slots=True)
class PubMedConfig(TextConfig):
    """Filters and text settings for PubMed. The defaults keep every citation with an abstract.

    Attributes:
        min_abstract_words: drop shorter abstracts: words at white space, after cleaning, without labels.
        min_pmid: drop lower PMIDs.
        drop_publication_types: drop records of any of these types, named as in the DTD's ``PublicationType``
            ("Published Erratum").
        keep_title_only: keep records without an abstract; their text is the title.
    """

    min_abstract_words: int = 0
    min_pmid: int = 0
    drop_publication_types: tuple[str, ...] = ()
    keep_title_only: bool = False

    drop_reasons: ClassVar[tuple[str, ...]] = (
        "deleted",
        "superseded",
        "book",
        "below-min-pmid",
        "language",
        "publication-type",
        "retracted",
        "no-text",
        "stub",
        "no-abstract",
        "short-abstract",
        "duplicate",
        "excluded",
    )
    """All drop reasons, in order of precedence: a record is counted under the first that applies.

    ``deleted`` and ``superseded`` are decided across files (lifecycle/versions.py) and precede the filters.
    ``duplicate`` (lifecycle/dedup.py) and ``excluded`` (lifecycle/exclusion_list.py) apply to the remaining
    documents.
    """
    highest_version_wins: ClassVar[bool] = False
    """False: the version in the latest file wins (lifecycle/versions.py)."""

    def __post_init__(self) -> None:
        TextConfig.__post_init__(self)
        if self.keep_title_only and not self.titles:
            raise InvalidValueError("keep_title_only keeps titles as text, but titles are left out")
        if self.keep_title_only and self.min_abstract_words:
            raise InvalidValueError(
                "keep_title_only keeps records without an abstract, min_abstract_words drops them"
            )


def find_drop_reason(
    citation: Citation, config: PubMedConfig, document: Document, abstract_words: int
) -> str | None:
    """Apply the filters to a citation.

    Args:
        citation: the parsed record.
        config: the filters.
        document: the document built from it.
        abstract_words: words of the cleaned abstract, without labels.

    Returns:
        The first drop reason that applies, or None.
    """
    if citation.pmid < config.min_pmid:
        return "below-min-pmid"
    if config.languages and not set(config.languages).intersection(citation.languages):
        return "language"
    if config.drop_publication_types and set(config.drop_publication_types).intersection(
        citation.publication_types
    ):
        return "publication-type"
    if config.drop_retracted and citation.retracted:
        return "retracted"
    if not document.sections:
        if not (document.sentences if config.keep_title_only else document.title):
            return "no-text"
        if not config.keep_title_only:
            return "stub" if "stubs" in document.removed_characters else "no-abstract"
    if abstract_words < config.min_abstract_words:
        return "short-abstract"
    return None
