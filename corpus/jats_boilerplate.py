"""Sections and footnotes that say of an article what journals make every article say.

Who did what, who paid, who has what interest, who has approved, where the data are: no science, and the
same sentences a million times.  They are told by ``sec-type``, ``fn-type`` and ``notes-type``, and, as two
sections in three have none, by their titles.
"""

from __future__ import annotations

import functools
import re
from typing import Final

TYPES: Final = frozenset(
    {
        *("con", "conflict", "conflict-interest", "coi", "coi-statement", "competing-interests"),
        *("competing-interest-statement", "financial-disclosure", "disclosure", "disclosures"),
        *("declarations",),
        *("supported-by", "funding", "funding-statement", "funding-information", "participating-researchers"),
        *("ethics", "ethics-statement", "ethics-approval", "informed-consent", "consent", "contributions"),
        *("author-contribution", "author-contributions", "authors-contributions"),
        *("author-contribution-statement", "data-availability", "data-availability-statement"),
        *("data_availability", "publishers-note", "disclaimer", "supplementary-material"),
    }
)
"""``sec-type``, ``fn-type`` and ``notes-type`` as in PMC's articles; conflict, con, financial-disclosure and
supported-by are those of the JATS tag library, the others are journals' own."""

_WHAT: Final = r"""
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
_TITLE = re.compile(rf"(?:{_WHAT})", re.VERBOSE)
_LONGEST_TITLE: Final = 90
_APOSTROPHES = re.compile("['’‘`´]")
_ENDS = re.compile(r"^[\W\d_]+|[\W_]+$")


@functools.lru_cache(maxsize=1 << 12)
def is_boilerplate(title: str, kinds: tuple[str | None, ...] = ()) -> bool:
    """Is a section or footnote of this title, or of one of these types, boilerplate?"""
    for kind in kinds:
        if kind and kind.lower() in TYPES:
            return True
    if not title or len(title) > _LONGEST_TITLE:
        return False
    plain = _ENDS.sub("", _APOSTROPHES.sub("", title.lower()))
    return _TITLE.fullmatch(plain) is not None


def opens_as_boilerplate(text: str) -> bool:
    """Does a footnote begin with such a title: "Conflict of interest: none declared."?"""
    end = re.search(r"[:.]", text[:_LONGEST_TITLE])
    return end is not None and is_boilerplate(text[: end.start()])
