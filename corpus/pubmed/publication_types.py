"""Publication types of PubMed's records, to check and complete what a person writes.

The vocabulary is open: NLM adds and renames types every year, and records of publishers have others.
"""

from __future__ import annotations

from typing import Final

PUBLICATION_TYPES: Final = (
    "Adaptive Clinical Trial",
    "Address",
    "Autobiography",
    "Bibliography",
    "Biography",
    "Case Reports",
    "Classical Article",
    "Clinical Conference",
    "Clinical Study",
    "Clinical Trial",
    "Clinical Trial Protocol",
    "Clinical Trial, Phase I",
    "Clinical Trial, Phase II",
    "Clinical Trial, Phase III",
    "Clinical Trial, Phase IV",
    "Clinical Trial, Veterinary",
    "Collected Work",
    "Comment",
    "Comparative Study",
    "Congress",
    "Congresses",
    "Consensus Development Conference",
    "Consensus Development Conference, NIH",
    "Controlled Clinical Trial",
    "Corrected and Republished Article",
    "Dataset",
    "Dictionary",
    "Directory",
    "Duplicate Publication",
    "Editorial",
    "Electronic Supplementary Materials",
    "English Abstract",
    "Equivalence Trial",
    "Evaluation Study",
    "Evaluation Studies",
    "Expression of Concern",
    "Festschrift",
    "Government Publication",
    "Guideline",
    "Historical Article",
    "In Vitro",
    "Interactive Tutorial",
    "Interview",
    "Introductory Journal Article",
    "Journal Article",
    "Lecture",
    "Legal Case",
    "Legislation",
    "Letter",
    "Meta-Analysis",
    "Multicenter Study",
    "Network Meta-Analysis",
    "News",
    "Newspaper Article",
    "Observational Study",
    "Observational Study, Veterinary",
    "Overall",
    "Patient Education Handout",
    "Periodical Index",
    "Personal Narrative",
    "Portrait",
    "Portraits",
    "Practice Guideline",
    "Pragmatic Clinical Trial",
    "Preprint",
    "Published Erratum",
    "Randomized Controlled Trial",
    "Randomized Controlled Trial, Veterinary",
    "Research Support, American Recovery and Reinvestment Act",
    "Research Support, N.I.H., Extramural",
    "Research Support, N.I.H., Intramural",
    "Research Support, Non-U.S. Gov't",
    "Research Support, U.S. Gov't, Non-P.H.S.",
    "Research Support, U.S. Gov't, P.H.S.",
    "Research Support, U.S. Government",
    "Retracted Publication",
    "Retraction Notice",
    "Retraction of Publication",
    "Review",
    "Scientific Integrity Review",
    "Scoping Review",
    "Systematic Review",
    "Technical Report",
    "Twin Study",
    "Validation Studies",
    "Validation Study",
    "Video-Audio Media",
    "Webcast",
)
"""Types of MeSH (https://www.nlm.nih.gov/mesh/pubtypes.html), with older names that records still have."""

_NAME_BY_FOLDED: Final = {name.casefold(): name for name in PUBLICATION_TYPES}
_MAX_COMMAS: Final = max(name.count(",") for name in PUBLICATION_TYPES)


def parse_publication_types(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list; known types may contain commas, and are spelled in any case."""
    parts = [part.strip() for part in text.split(",")]
    names: set[str] = set()
    while parts:
        for length in range(min(len(parts), _MAX_COMMAS + 1), 0, -1):
            name = ", ".join(parts[:length])
            if length == 1 or name.casefold() in _NAME_BY_FOLDED:
                break
        names.add(_NAME_BY_FOLDED.get(name.casefold(), name))
        del parts[:length]
    return tuple(sorted(names - {""}))
