"""Recognise boilerplate: sections and footnotes that journals require of every article.

Contributions, funding, conflicts of interest, approvals, data availability. They are recognised by
``sec-type``, ``fn-type`` and ``notes-type``, and by title, as two in three have no type.
"""

from __future__ import annotations

import functools
import re
from typing import Final

BOILERPLATE_TYPES: Final = frozenset(
    {
        "con",
        "conflict",
        "conflict-interest",
        "coi",
        "coi-statement",
        "competing-interests",
        "competing-interest-statement",
        "financial-disclosure",
        "disclosure",
        "disclosures",
        "declarations",
        "supported-by",
        "funding",
        "funding-statement",
        "funding-information",
        "participating-researchers",
        "ethics",
        "ethics-statement",
        "ethics-approval",
        "informed-consent",
        "consent",
        "contributions",
        "author-contribution",
        "author-contributions",
        "authors-contributions",
        "author-contribution-statement",
        "data-availability",
        "data-availability-statement",
        "data_availability",
        "publishers-note",
        "disclaimer",
        "supplementary-material",
    }
)
"""Values of ``sec-type``, ``fn-type`` and ``notes-type`` in PMC's articles. conflict, con,
financial-disclosure and supported-by are from the JATS tag library, the others are journals' own.
"""

_TITLE_PATTERN: Final = r"""
      author(?:s|ship)?\ (?:contributions?|roles?|statements?|disclosures?|declarations?|information)
      (?:\ statements?)?
    | authors?\ ?contributions?
    | (?:individual\ )?contributions?(?:\ (?:of|by)\ (?:the\ )?authors?)?
    | contributors?(?:hip)?(?:\ statement)?
    | credit\ (?:author(?:ship)?\ )?(?:contributions?\ )?statement
    | (?:(?:declarations?|statements?|disclosures?)\ of\ )?
      (?:potential\ |financial\ |competing\ |conflicting\ )*
      (?:(?:conflicts?\ of\ |duality\ of\ |competing\ |conflicting\ )?interests?)
      (?:\ (?:statements?|declarations?|disclosures?|and\ funding))?
    | (?:additional\ information\ and\ )?declarations?
    | (?:financial\ )?(?:disclosures?|declarations?)(?:\ statements?)?
    | (?:sources?\ of\ |research\ )?(?:funding|fundings|financial\ support|grant\ support|grants?)
      (?:\ (?:sources?|statements?|information|acknowledge?ments?|and\ sponsorship|disclosures?))?
    | role\ of\ the\ (?:funding\ source|funder|sponsor)s?
    | sponsorship | supported\ by
    | (?:research\ |animal\ |human\ )?(?:ethics|ethical)
      (?:\ (?:statements?|approvals?|considerations?|standards?|declarations?|committee\ approval|clearance
      |issues|reviews?|notes?|compliance))?
      (?:\ and\ (?:informed\ )?consent(?:\ to\ participate)?)?
    | (?:compliance\ with|statement\ of)\ ethic(?:s|al\ standards)
    | (?:statements?\ (?:of|on)\ )?human\ and\ animal\ rights(?:\ and\ informed\ consent)?
    | (?:written\ |patients?\ )?(?:informed\ )?consents?
      (?:\ statements?|\ (?:for|to)\ (?:publication|participat(?:e|ion)|publish))?
    | institutional\ review\ board\ (?:statement|approval)
    | (?:data|code|software|material|materials|resource)
      (?:(?:,|\ and|\ &)*\ (?:data|code|software|materials?|resources?))*
      \ (?:availability|accessibility|access|sharing|deposition|archiving)(?:\ (?:statement|plan)s?)?
    | (?:availability\ (?:of|and)|access\ to)\ (?:the\ )?(?:supporting\ )?(?:data|materials?|code|software)
      (?:(?:,|\ and|\ &|\ or)*\ (?:data|materials?|code|software|requirements))*
    | accession\ (?:numbers?|codes?)
    | publishers?\ notes? | disclaimers? | provenance(?:\ and\ peer\ review)?
    | (?:peer\ )?review\ (?:history|information|file) | peer\ review
    | pre-?publication\ history | transparency\ (?:declaration|statement)s? | how\ to\ cite\ this\ article
    | (?:copyright|licen[cs]e|open\ access|rights\ and\ permissions)(?:\ (?:statement|information))?
    | (?:electronic\ |online\ )?(?:supplement(?:ary|al)|supporting)
      \ (?:information|materials?|data|files?)(?:\ available)?
    | reporting\ summary | ethics,?\ consent(?:,|\ and)*\ permissions?
"""
_BOILERPLATE_TITLE = re.compile(rf"(?:{_TITLE_PATTERN})", re.VERBOSE)
_MAX_TITLE_LENGTH: Final = 90
_APOSTROPHES = re.compile("['’‘`´]")
_NON_LETTERS_AT_ENDS = re.compile(r"^[\W\d_]+|[\W_]+$")


@functools.lru_cache(maxsize=1 << 12)
def is_boilerplate(title: str, section_types: tuple[str | None, ...] = ()) -> bool:
    """Return True if a section or footnote with this title or one of these types is boilerplate."""
    for section_type in section_types:
        if section_type and section_type.lower() in BOILERPLATE_TYPES:
            return True
    if not title or len(title) > _MAX_TITLE_LENGTH:
        return False
    normalised = _APOSTROPHES.sub("", title.lower())
    if not (normalised[:1].isalpha() and normalised[-1:].isalnum()):
        normalised = _NON_LETTERS_AT_ENDS.sub("", normalised)
    return _BOILERPLATE_TITLE.fullmatch(normalised) is not None


def is_supplement_title(title: str) -> bool:
    """Return True if a section with this title lists the supplements of the article."""
    return re.search(r"\b(?:supplement|supporting|additional file|associated data)", title, re.I) is not None


def starts_with_boilerplate_title(text: str) -> bool:
    """Return True if a footnote starts with a boilerplate title ("Funding: none."), or is one."""
    end = re.search(r"[:.]", text[:_MAX_TITLE_LENGTH])
    return is_boilerplate(text[: end.start()] if end else text)


_RUN_IN_HEADING = re.compile(
    r"(?:Acknowledge?ments?|Aims?|Authors?['’]? [Cc]ontributions?|Background|Competing [Ii]nterests?"
    r"|Conclusions?|Conflicts? of [Ii]nterest(?: [Ss]tatement)?|Data [Aa]vailability|Disclaimer|Discussion"
    r"|Funding|Introduction|(?:Materials and |Patients and )?[Mm]ethods|Notes?|Objectives?|Purpose|Results?"
    r"|Statistical [Aa]nalys[ei]s)"
)
MAX_RUN_IN_HEADING: Final = 32
"""Characters of such a heading, with the full stop and the blank after it."""


def split_run_in_heading(text: str) -> tuple[str, str]:
    """Split a paragraph into a heading that is its first sentence, and its other text: "Funding. We thank".

    The heading is empty if there is none, or no other text.
    """
    end = text.find(". ", 0, MAX_RUN_IN_HEADING)
    if end < 0 or _RUN_IN_HEADING.fullmatch(text, 0, end) is None:
        return "", text
    return text[:end], text[end + 2 :]


MAX_PARAGRAPH_HEADING: Final = 50
_PARAGRAPH_HEADING = re.compile(
    rf"(?:{_RUN_IN_HEADING.pattern}|Change [Hh]istory|Specifications? [Tt]able|Value of the [Dd]ata)[:.]?"
)


def is_heading(text: str) -> bool:
    """Return True if a paragraph is only a heading: "Notes:", "Competing interests"."""
    return (
        len(text) <= MAX_PARAGRAPH_HEADING
        and text[0].isupper()
        and (
            _PARAGRAPH_HEADING.fullmatch(text) is not None
            or (text[-1].isalpha() and " " in text and is_boilerplate(text))
        )
    )


_DATE: Final = r"""
    (?: \d{1,2} / \d{1,2} / \d{4} | \d{1,2} \s [A-Z][a-z]{2,8} \.? ,? \s \d{4}
      | [A-Z][a-z]{2,8} \.? \s \d{1,2} , \s \d{4} )
"""
_EDITORIAL_NOTE = re.compile(
    rf"""
    (?: (?: Academic | Associate | Communicating | Guest | Handling | Section | Subject ) \s )?
      [Ee]ditors? \s? : (?: [^.?!] | \b[A-Z]\. )*
  | Edited \s by :? (?: [^.?!] | \b[A-Z]\. )*
  | (?: (?: Received | Revised | Accepted | Published ) (?: \s for \s Publication | \s online )? :?
        \s {_DATE} [.;,]? \s? )+ (?: doi: \S+ )?
  | {_DATE}
    """,
    re.VERBOSE,
)
_EDITORIAL_STARTS: Final = frozenset(
    ("Acad", "Acce", "Asso", "Comm", "Edit", "Gues", "Hand", "Publ", "Rece", "Revi", "Sect", "Subj")
)
"""First letters of such notes, a fast prefilter; a date alone begins with a digit or is shorter."""
_MAX_EDITORIAL_NOTE: Final = 120


def is_editorial_note(text: str) -> bool:
    """Return True if a paragraph only names the editor of its article, or a date: "Received: 3 May 2011"."""
    return (
        len(text) <= _MAX_EDITORIAL_NOTE
        and (text[:4] in _EDITORIAL_STARTS or text[:1].isdigit())
        and _EDITORIAL_NOTE.fullmatch(text.rstrip(" .")) is not None
    )
