"""Licence codes, and the recognition of licences in URLs, names and prose.

A missed restriction is worse than an unrecognised licence. Text that mentions NC, ND or SA anywhere is never
read as CC-BY, and a statement without a clear permission has no code.

Codes are Creative Commons' names (https://creativecommons.org/share-your-work/cclicenses/) as PMC writes them
(https://pmc.ncbi.nlm.nih.gov/tools/textmining/). Versions and countries are ignored: they permit the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final
from urllib.parse import unquote

UNKNOWN_LICENCE: Final = "unknown"
"""Code of an article without a licence, or with an unrecognised one."""

LICENCES: Final = {
    "CC0": "no rights reserved: any use",
    "CC-BY": "any use, with acknowledgement",
    "CC-BY-SA": "any use, with acknowledgement; adapted text under the same licence",
    "CC-BY-ND": "any use, with acknowledgement; adapted text may not be passed on",
    "CC-BY-NC": "not for commercial use",
    "CC-BY-NC-SA": "not for commercial use; adapted text under the same licence",
    "CC-BY-NC-ND": "not for commercial use; adapted text may not be passed on",
    "TDM": "authors' manuscripts: text mining and fair use only",
    UNKNOWN_LICENCE: "no licence code, or one that is not known here: nothing is permitted that the law "
    "does not",
}
"""What each licence permits."""

DEFAULT_LICENCES: Final = frozenset({"CC0", "CC-BY", "CC-BY-SA"})
"""Licences that permit everybody to train on cleaned, split text and to redistribute it."""

MAX_STATEMENT_LENGTH: Final = 10_000
"""Characters. Licence statements have a few sentences; longer text is ignored."""


def combine_licences(codes: Iterable[str]) -> str | None:
    """Combine several statements about one article into one code with all their restrictions.

    Returns:
        The code, or None without any statement.
    """
    distinct_codes = set(codes)
    if len(distinct_codes) < 2:
        return next(iter(distinct_codes), None)
    if "TDM" in distinct_codes:
        return "TDM"
    return _code_from_terms(
        {term for code in distinct_codes - {"CC0"} for term in code.lower().split("-")[1:]}
    )


def _code_from_terms(terms: set[str]) -> str:
    """Return the code for a subset of the terms by, nc, nd, sa.

    Every licence since version 2 includes BY, and ND makes SA void.
    """
    restrictions = [
        term for term in ("nc", "nd", "sa") if term in terms and not (term == "sa" and "nd" in terms)
    ]
    return "-".join(["CC", "BY", *[term.upper() for term in restrictions]])


_TERM: Final = re.compile("by|nc|nd|sa")
_TERMS: Final = re.compile("(?:by|nc|nd|sa)+")

_DEED: Final = re.compile(
    r"creative-?commons?\s*\.\s*(?:org|net)\s*/+\s*(?:licen[cs]es?|publicdomain)\s*/+\s*(\S*)"
)
_DEED_NAME_ENDS: Final = re.compile(r"\d|deed|legalcode|igo|$")
_CC0_DEED: Final = re.compile(r"(?:zero|mark|cc0|publicdomain)(?![a-z])")

_SHORT_NAME: Final = re.compile(
    r"(?<![a-z])(?:cc[- (/]*(?:by|nc|nd|sa)|by(?=-(?:nc|nd|sa)))(?:[- /+,.&]*(?:by|nc|nd|sa))*(?![a-z])"
)
_CC0_SHORT_NAME: Final = re.compile(r"(?<![a-z])cc[- ]?(?:0(?!\.?\d)|zero)")


@lru_cache(maxsize=1024)
def licence_from_url(url: str) -> str | None:
    """Return the licence at a URL: a Creative Commons deed, legal code, or page named ``...ccby...``."""
    if len(url) > MAX_STATEMENT_LENGTH:
        return None
    normalised = _normalise(unquote(url))
    deed = _DEED.search(normalised)
    if deed is not None:
        return _licence_from_deed(deed[1])
    match = _SHORT_NAME.search(normalised)
    if match is not None:
        return _code_from_terms(set(_TERM.findall(match[0])))
    return "CC0" if _CC0_SHORT_NAME.search(normalised) else None


def _licence_from_deed(path: str) -> str | None:
    """Return the licence for the path after ``licenses/`` of a deed: ``by-nc/4.0/deed.en``."""
    if _CC0_DEED.match(path):
        return "CC0"
    end = _DEED_NAME_ENDS.search(path)
    name = re.findall("[a-z]+", path[: end.start() if end else None])
    if not name or not all(map(_TERMS.fullmatch, name)):
        return None
    return _code_from_terms(
        {
            term
            for word in re.findall("[a-z]+", path)
            if _TERMS.fullmatch(word)
            for term in _TERM.findall(word)
        }
    )


_NAME: Final = re.compile(
    r"(?:cc|creativecommons)((?:by|attribution|noncommercial|noderiv(?:ative)?s?|sharealike|nc|nd|sa)+)"
)
_TERM_BY_LONG_NAME: Final = {"attribution": "by", "noncommercial": "nc", "noderiv": "nd", "sharealike": "sa"}
_CC0_NAME: Final = re.compile("(?:cc|creativecommons)(?:0|zero)|publicdomain(?:dedication|mark)?")


@lru_cache(maxsize=1024)
def licence_from_name(name: str) -> str | None:
    """Return the licence for a name: ``CC BY-NC 4.0``, ``ccbynclicense``, ``creativeCommonsBy``, ``TDM``."""
    letters = re.sub(r"\d\.\d|[^a-z0-9]|licen[cs]e|international|unported|igo", "", name[:100].lower())
    if letters == "tdm":
        return "TDM"
    if _CC0_NAME.fullmatch(letters):
        return "CC0"
    match = _NAME.fullmatch(letters)
    if match is None:
        return None
    terms = match[1]
    for long_term, short_term in _TERM_BY_LONG_NAME.items():
        terms = terms.replace(long_term, short_term)
    return _code_from_terms(set(_TERM.findall(terms)))


_LONG_NAME: Final = re.compile(
    r"creative commons?\W+"
    r"(?:(?:international|public|open|access|copyright|licen[cs]e[sd]?|cc|by|the|unported|generic|version|v?\d+)\W+){0,8}"
    r"(?:attribution|non[- ]?com+er|no[nt]?[- ]?deriv|share[- ]?alike|by\W{0,2}(?:licen[cs]e|\d))"
)
_RESTRICTIONS: Final = {
    "nc": re.compile(
        r"(?<!commercial and )(?<!commercial or )(?<!commercial and/or )(?<!commercial/)"
        r"\bnon[- ]?com+er\w*\b(?! (?:and|or|and/or) commercial)(?!/commercial)"
        r"|\b(?:no|n[aã]o|nicht|pas)[- ](?:comercia|kommerz)"
    ),
    "nd": re.compile(
        r"\bno[nt]?[- ]?deriv|\b(?:sin|sem)[- ]?deriva"
        r"|\b(?:no|without(?: any)?) (?:modification|adaptation|alteration|change)s?\b"
        r"|\bnot (?:be(?:en)? )?(?:altered|modified|changed|transformed|adapted)\b"
    ),
    "sa": re.compile(r"\bshare[- ]?alike|\b(?:same|identical|similar) licen[cs]e|\b(?:same|identical) terms"),
}
"""Wording of each restriction in prose. "For commercial and non-commercial use" is unrestricted."""

_PUBLIC_DOMAIN: Final = re.compile(
    r"creative commons(?: licen[cs]e)? zero|\bpublic domain (?:dedication|declaration|mark|waiver|licen[cs]e)"
    r"|\b(?:in|into|to) the public domain\b(?! in the u)|\bfree of (?:all|known) copyright"
)
_NOT_THE_ARTICLE: Final = re.compile(r"\b(?:meta)?data(?:sets?|bases?)?\b|\bgovernment")
"""Subjects of public-domain sentences that leave the article's licence open: data (BMC: "waiver applies to
the data made available in this article") and works of the US government (free in the USA only).
"""

_NOT_GRANTED: Final = re.compile(
    r"\bnot (?:be )?(?:covered|included|licen[cs]ed|distributed|available|published|released|under)\b"
    r"|\bnot in the public domain"
)
_TEXT_MINING: Final = re.compile(
    r"\bavailable for text mining\b(?:(?!available for text mining).)*\bfair use\b"
)
"""PMC's sentence for authors' manuscripts: "This file is available for text mining. It may also be used
consistent with the principles of fair use under the copyright law."
(https://pmc.ncbi.nlm.nih.gov/about/authorms/)"""

_LICENCE_WORD: Final = re.compile(r"creative|(?<![a-z])cc|public|free\sof|text\smining", re.IGNORECASE)
"""Prefilter: text without one of these words names no licence."""

_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])\s+(?=[A-Z©(])")


def licence_from_text(text: str) -> str | None:
    """Return the licence that a statement in prose grants for the article, by name or URL."""
    if len(text) > MAX_STATEMENT_LENGTH:
        return None
    # Most name it so; a search for a pattern that ignores case takes fifty times as long.
    has_licence_word = "Creative Commons" in text or _LICENCE_WORD.search(text) is not None
    return _licence_from_prose(text) if has_licence_word else None


@lru_cache(maxsize=1024)
def _licence_from_prose(text: str) -> str | None:
    """Parse one statement. Results are cached, as each publisher repeats a few statements."""
    sentences = [_normalise(sentence) for sentence in _SENTENCE_END.split(text)]
    statement = " ".join(sentences)
    if _TEXT_MINING.search(statement):
        return "TDM"
    granting_sentences = [sentence for sentence in sentences if not _NOT_GRANTED.search(sentence)]
    restrictions = {term for term, pattern in _RESTRICTIONS.items() if pattern.search(statement)}
    if terms := _find_terms(" ".join(granting_sentences)):
        return _code_from_terms(terms | restrictions | _find_terms(statement))
    if restrictions or _find_terms(statement):
        return None
    return "CC0" if any(map(_is_public_domain, granting_sentences)) else None


def _find_terms(text: str) -> set[str]:
    """Return the terms (by, nc, nd, sa) of all Creative Commons licences named or linked in a text."""
    terms = {term for name in _SHORT_NAME.findall(text) for term in _TERM.findall(name)}
    for deed in _DEED.finditer(text):
        terms |= set((_licence_from_deed(deed[1]) or "").lower().split("-")[1:])
    return terms | {"by"} if _LONG_NAME.search(text) else terms


def _is_public_domain(sentence: str) -> bool:
    """Return True if the sentence puts the article into the public domain."""
    if _NOT_THE_ARTICLE.search(sentence):
        return False
    if _CC0_SHORT_NAME.search(sentence) or _PUBLIC_DOMAIN.search(sentence):
        return True
    return any(_licence_from_deed(deed[1]) == "CC0" for deed in _DEED.finditer(sentence))


def _normalise(text: str) -> str:
    """Lower-case the text, collapse white space, and unify hyphens without blanks around them."""
    text = re.sub(r"[\u00ad\u200b-\u200d\ufeff]", "", text).lower()
    return re.sub(" ?[-_‐‑‒–—―−] ?", "-", " ".join(text.split()))
