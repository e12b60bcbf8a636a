"""Which citations become documents, and of which text: the rules of a corpus, as data.

A drop always has a reason of the rules' ``reasons``; the first that applies, in that order, is counted.
filters.py has those of full text.
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
    """Every reason for which a record is no document, in the order in which they are asked.

    The first two are decided across files (versions.py) and come before all others: an old version
    counts as superseded whatever it says.  The last two are asked of documents that would be kept: does one
    repeat another, which is decided across files too (dedup.py), and is it listed (exclusion_list.py)?
    """
    highest_version_wins: ClassVar[bool] = False
    """A later file says more of a citation than a higher Version does (versions.py)."""

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
