"""Recognise references that are written as text: lists as paragraphs or HTML, the article's own citation."""

from __future__ import annotations

import functools
import re
from typing import Final

_TITLE: Final = r"""
    \W* [\divx.]* \W* (?:
        references? (?: \s (?: list | cited | section ) )? | list \s of \s references | literature \s cited
      | (?: selected \s )? bibliography | works \s cited | cited \s (?: references | literature )
      | references \s and \s notes | notes \s and \s references | further \s reading
      | r[ée]f[ée]r[eê]nces (?: \s bibliographiques )? | bibliographie | literatur (?:verzeichnis)?
      | bibliograf[ií]a | refer[eê]ncias (?: \s bibliogr[aá]ficas )? | riferimenti (?: \s bibliografici )?
    ) \W*
"""
_TITLE_PATTERN = re.compile(_TITLE, re.VERBOSE | re.IGNORECASE)
_MAX_TITLE_LENGTH: Final = 60
_YEAR = re.compile(r"\b(?:1[89]|20)\d\d[a-z]?\b|\b[Ii]n press\b")
_HTML_LIST = re.compile(
    rf"<(h\d|p|b|strong|div)\b[^<>]*>(?:<[^<>]*>|\s)*(?x:{_TITLE})(?:<[^<>]*>|\s)*<(?:ol|ul|li|p|br)\b.*",
    re.IGNORECASE | re.DOTALL,
)


@functools.lru_cache(maxsize=1 << 12)
def is_reference_title(title: str) -> bool:
    """Return True if a section of this title may be a list of references."""
    return len(title) <= _MAX_TITLE_LENGTH and _TITLE_PATTERN.fullmatch(title) is not None


def are_references(texts: list[str]) -> bool:
    """Return True if most texts of a section of references name a year; False of text about references."""
    return 2 * sum(_YEAR.search(text) is not None for text in texts) > len(texts)


def remove_html_references(text: str) -> str:
    """Remove a list of references with its title from a paragraph of HTML that came as text (CDATA)."""
    return _HTML_LIST.sub("", text).strip() if "</" in text else text


_OWN_CITATION = re.compile(
    r"(?:How to cite|Cite this article|(?:Suggested |Recommended )?[Cc]itation:"
    r"|Citation (?=(?:[\w’'-]+ ){0,2}[^\W\d_a-z][\w’'-]+ [A-Z](?:-?[A-Z]){0,3}[,.])|CITATION:?)"
    r".*\b(?:19|20)\d\d\b.*"
)
_OWN_CITATION_STARTS: Final = frozenset(("Cita", "CITA", "Cite", "How ", "Sugg", "Reco"))
"""First letters of such a paragraph, a fast prefilter."""
_MAX_OWN_CITATION: Final = 1000


def is_own_citation(text: str) -> bool:
    """Return True if a paragraph is the citation of its article: "Citation Ode A. 2011. Gulls. Birds 3:1"."""
    return (
        text[:4] in _OWN_CITATION_STARTS
        and len(text) <= _MAX_OWN_CITATION
        and _OWN_CITATION.fullmatch(text) is not None
    )
