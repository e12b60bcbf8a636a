"""Read the text of elements: named entities, and powers among superscripts.

The DTDs of JATS, NLM and PubMed declare the character entities of ISO 8879, ISO 9573-13 and MathML, and some
of their own. HTML 5 has adopted those of the standards (https://www.w3.org/TR/xml-entity-names/), so that the
standard library's table has them, except ISO's own names of Greek letters (``&agr;`` and ``&b.alpha;``
beside ``&alpha;``). Where the DTDs have another character than HTML 5, theirs is taken: it is what an author
has seen.

``10<sup>6</sup>`` becomes "10^6", as in formulas (mathml.py). A number is never joined to another without a
mark: it would be the number 106. Charges, isotopes, ordinals and letters ("Ca2+", "H218O", "1st") are joined
as they are. Numbers of citations, ``adults<sup>1,2</sup>``, are removed; ``37<sup>o</sup>C`` becomes "37°C".
"""

from __future__ import annotations

import functools
import html
import html.entities
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from bioshards.corpus.errors import BadRecordError

if TYPE_CHECKING:
    from lxml import etree


def text_content(element: etree._Element) -> str:
    """Return all text in an element as written, without its tail."""
    if not len(element):
        return element.text or ""
    return _import_tostring()(element, method="text", encoding="unicode", with_tail=False)


@functools.cache
def _import_tostring() -> Callable[..., str]:
    """Import lxml on first use, as --help imports the rules on exponents. An import is as slow as a call."""
    from lxml.etree import tostring

    return tostring


# Named entities

_GREEK_LETTERS: Final = """
Agr:391 Bgr:392 Ggr:393 Dgr:394 Egr:395 Zgr:396 EEgr:397 THgr:398 Igr:399 Kgr:39A Lgr:39B Mgr:39C
Ngr:39D Xgr:39E Ogr:39F Pgr:3A0 Rgr:3A1 Sgr:3A3 Tgr:3A4 Ugr:3A5 PHgr:3A6 KHgr:3A7 PSgr:3A8 OHgr:3A9
agr:3B1 bgr:3B2 ggr:3B3 dgr:3B4 egr:3B5 zgr:3B6 eegr:3B7 thgr:3B8 igr:3B9 kgr:3BA lgr:3BB mgr:3BC
ngr:3BD xgr:3BE ogr:3BF pgr:3C0 rgr:3C1 sfgr:3C2 sgr:3C3 tgr:3C4 ugr:3C5 phgr:3C6 khgr:3C7 psgr:3C8
ohgr:3C9
Aacgr:386 Eacgr:388 EEacgr:389 Iacgr:38A Oacgr:38C Uacgr:38E OHacgr:38F idiagr:390 Idigr:3AA Udigr:3AB
aacgr:3AC eacgr:3AD eeacgr:3AE iacgr:3AF udiagr:3B0 idigr:3CA udigr:3CB oacgr:3CC uacgr:3CD ohacgr:3CE
b.Gamma:1D6AA b.Delta:1D6AB b.Theta:1D6AF b.Lambda:1D6B2 b.Xi:1D6B5 b.Pi:1D6B7 b.Sigma:1D6BA
b.Upsi:1D6BC b.Upsilon:1D6BC b.Phi:1D6BD b.Psi:1D6BF b.Omega:1D6C0 b.alpha:1D6C2 b.beta:1D6C3
b.gamma:1D6C4 b.delta:1D6C5 b.epsi:1D6C6 b.zeta:1D6C7 b.eta:1D6C8 b.thetas:1D6C9 b.iota:1D6CA
b.kappa:1D6CB b.lambda:1D6CC b.mu:1D6CD b.nu:1D6CE b.xi:1D6CF b.pi:1D6D1 b.rho:1D6D2 b.sigmav:1D6D3
b.sigma:1D6D4 b.tau:1D6D5 b.upsi:1D6D6 b.phi:1D6D7 b.phis:1D6D7 b.chi:1D6D8 b.psi:1D6D9 b.omega:1D6DA
b.epsiv:1D6DC b.thetav:1D6DD b.kappav:1D6DE b.phiv:1D6DF b.rhov:1D6E0 b.piv:1D6E1 b.Gammad:3DC
b.gammad:3DD
"""
"""Names and code points of ISOgrk1, ISOgrk2 and ISOgrk4, as isogrk1.ent, isogrk2.ent and isogrk4.ent of
https://www.w3.org/2003/entities/2007/ map them; the digammas are NLM's. ``b.Upsilon`` and ``b.phis`` are
names of NLM's older isogrk4.ent (https://dtd.nlm.nih.gov/archiving/1.0/).
"""
_NLM_CHARACTERS: Final = """
Hmacr:48+304 franc:20A3 gcaron:1E7
angst:212B ohm:2126 asymp:224D race:29DA bsolhsub:5C+2282 suphsol:2283+2F jmath:6A
epsi:3F5 epsiv:3B5 varepsilon:3B5 phi:3D5 phiv:3C6 varphi:3C6
lang:2329 langle:2329 LeftAngleBracket:2329 rang:232A rangle:232A RightAngleBracket:232A Lang:300A Rang:300B
lbbrk:3014 rbbrk:3015 loang:3018 roang:3019 lobrk:301A robrk:301B LeftDoubleBracket:301A
RightDoubleBracket:301B OverBar:AF UnderBar:332 OverBrace:FE37 UnderBrace:FE38 OverParenthesis:FE35
UnderParenthesis:FE36 ThickSpace:2009+200A+200A
"""
"""Entities of NLM's chars.ent that no standard has, and those of its ISO and MathML files that differ from
HTML 5, in all versions from 2.2 (https://dtd.nlm.nih.gov/archiving/2.2/) to JATS 1.2
(https://jats.nlm.nih.gov/archiving/1.2/). Left out are two for U+FFFD, ``elinters`` and ``trpezium``, and
``NotGreaterFullEqual``, which has the sign for less-than.
"""


def _parse_characters(table: str) -> dict[str, str]:
    """Return the characters of a table's ``name:code+code`` by name."""
    pairs = (entry.split(":") for entry in table.split())
    return {name: "".join(chr(int(code, 16)) for code in codes.split("+")) for name, codes in pairs}


_CHARACTERS_BY_NAME: Final = {
    **{name[:-1]: characters for name, characters in html.entities.html5.items() if name.endswith(";")},
    **_parse_characters(_GREEK_LETTERS),
    **_parse_characters(_NLM_CHARACTERS),
}
_NAMED_ENTITY = re.compile(r"&(?!(?:lt|gt|amp|quot|apos);)([^\W\d][\w.:-]*);")


def resolve_entities(text: str) -> str:
    """Replace named entities by character references, except XML's five.

    Raises:
        BadRecordError: an unknown entity.
    """
    return _NAMED_ENTITY.sub(_entity_to_character_references, text) if "&" in text else text


def _entity_to_character_references(entity: re.Match[str]) -> str:
    name = entity[1]
    characters = _CHARACTERS_BY_NAME.get(name)
    if characters is None:
        raise BadRecordError("unknown-entity", f"&{name[:40]}; is not an entity of JATS, MathML or HTML")
    return "".join(f"&#{ord(character)};" for character in characters)


_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[^\W\d_]\w*);")


def unescape_once(text: str) -> str:
    """Resolve entities that are left in a text, which was escaped twice: ``&lt;5 &amp;lt;`` is ``<5 &lt;``.

    Named ones that no DTD has, and numbers that are no character, stay.
    """
    return _ENTITY.sub(_entity_to_text, text) if "&" in text and ";" in text else text


def _entity_to_text(entity: re.Match[str]) -> str:
    name = entity[0][1:-1]
    if name[0] != "#":
        return _CHARACTERS_BY_NAME.get(name, entity[0])
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    is_character = 0x20 <= code <= 0x10FFFF and not 0x7F <= code < 0xA0 and not 0xD800 <= code < 0xE000
    return chr(code) if is_character else entity[0]


# Exponents

LOOKBACK_CHARACTERS: Final = 24
_MINUS: Final = "[−–‐‑-]"
_NUMBER = re.compile(rf"\s*(?:{_MINUS}\s?)?\d{{1,4}}(?:\.\d+|{_MINUS}\d{{1,2}})?\s*")
_FOLD_CHANGE = re.compile(rf"\s*(?:{_MINUS}\s?)?(?:[Δ∆△]{{1,2}}|DD?)(?:C[TtQqPp])?\s*")
"""The exponent of 2 in the formula of relative expression, 2^−ΔΔCt; some leave out the minus sign, or Ct."""
_NEGATIVE_POWER = re.compile(rf"\s*{_MINUS}\s?[\w(].*")
"""An exponent of 10 or e that is an expression: e^−kt, 10^−x."""
_NATURAL_BASE = re.compile(r"(?:^|[^\W\d_]\s|[^\w\s-]\s?|\d\s?)e$")
_VARIABLE = re.compile(rf"\s*[kmnKLN](?:\s?{_MINUS}\s?1)?\s*")
"""An exponent of a small number: 2^n, 4^L, 2^n−1."""
_BASES_OF_VARIABLES: Final = frozenset(("2", "3", "4", "10"))
_NAME = re.compile(r"\s*\d{1,3}[A-Za-z]\w{0,7}\s*")
"""A superscript that names a variant and whose digits would join those before it: T76K-1^7G8."""
_BASE = re.compile(r"(?:^|[^\w)\]]|(?:^|[\W\d])[xX])([\d.,]{0,30}\d)$")
"""A number at the end of a text, perhaps after x for a multiplication sign; not in "CD4" and "H2"."""
_SUPERSCRIPT = re.compile("<sup>([^<>]*)</sup>")
_TAG = re.compile("<[^<>]*>")
_TAG_CHARACTERS: Final = 60
_BRACKETED_EXPONENT = re.compile(rf"(?<![\d.,])10\(({_MINUS}\d{{1,3}})\)|(?<=[×xX·*])(\s?)10\((\d{{1,2}})\)")


@functools.lru_cache(maxsize=1 << 12)
def may_be_exponent(script: str) -> bool:
    """Return True if a superscript is an exponent after some text."""
    return (
        _NUMBER.fullmatch(script) is not None
        or _FOLD_CHANGE.fullmatch(script) is not None
        or _NAME.fullmatch(script) is not None
        or _NEGATIVE_POWER.fullmatch(script) is not None
        or _VARIABLE.fullmatch(script) is not None
    )


def is_exponent(before: str, script: str) -> bool:
    """Return True if a superscript is the exponent of the number before it.

    Args:
        before: the last :data:`LOOKBACK_CHARACTERS` before the superscript.
        script: the text of the superscript.
    """
    ends_in_digit = before.rstrip("\n")[-1:].isdecimal()  # not in cm<sup>2</sup>, which is frequent
    if ends_in_digit and _NAME.fullmatch(script):
        return True
    base = _BASE.search(before) if ends_in_digit else None
    if base is None:
        is_natural = before[-1:] == "e" and _NATURAL_BASE.search(before) is not None
        return is_natural and _NEGATIVE_POWER.fullmatch(script) is not None
    if script.strip() == "0":  # else a degree sign: 37<sup>0</sup>C
        return base[1] == "10"
    return (
        _NUMBER.fullmatch(script) is not None
        or (base[1] == "2" and _FOLD_CHANGE.fullmatch(script) is not None)
        or (base[1] == "10" and _NEGATIVE_POWER.fullmatch(script) is not None)
        or (base[1] in _BASES_OF_VARIABLES and _VARIABLE.fullmatch(script) is not None)
    )


_DEGREE_LETTERS: Final = frozenset("oO0º∘◦")
_DEGREE_SCALE = re.compile(r"\s?[CFNSEW](?![^\W_])")


def is_degree(script: str, following: str) -> bool:
    """Return True if a superscript stands for a degree sign: ``37 <sup>o</sup>C``, ``45<sup>0</sup> N``.

    Args:
        script: the text of the superscript.
        following: the text after it, at least three characters if there are.
    """
    return script in _DEGREE_LETTERS and _DEGREE_SCALE.match(following) is not None


def mark_exponents(xml: str) -> str:
    """Replace the tags of exponents by ``^``, and remove superscript citations."""

    def mark(superscript: re.Match[str]) -> str:
        if is_citation(superscript):
            return ""
        if is_degree(superscript[1], xml[superscript.end() : superscript.end() + 3]):
            return "°"
        if not may_be_exponent(html.unescape(superscript[1])):
            return superscript[0]
        start = superscript.start()
        before = _TAG.sub("", xml[max(0, start - LOOKBACK_CHARACTERS - _TAG_CHARACTERS) : start])
        is_power = is_exponent(before[-LOOKBACK_CHARACTERS:], html.unescape(superscript[1]))
        return f"^{superscript[1].lstrip()}" if is_power else superscript[0]

    return _SUPERSCRIPT.sub(mark, xml) if "<sup>" in xml else xml


# Citations: superscript numbers after a word or a stop that are no exponent, isotope, charge, ordinal or
# chemical. ``adults<sup>1,2</sup>``, ``as was seen.<sup>4</sup> They``.

_CITATION_NUMBERS = re.compile(
    r"\s*+(?:\d{1,3}(?:\s*+[,;–—‐‑−-]\s*+\d{1,3})*+|\(\d{1,3}(?:\s*+[,;–—‐‑−-]\s*+\d{1,3})*+\))\s*+"
)
_CITED_WORD = re.compile(r"(?:\A|[\s(“‘\"'’-])([^\W\d_][a-zà-ÿ]{2,40})\Z")
_CITED_STOP = re.compile(r"(?:(?:[^\W\d_]{3}|[a-z]\))[.,;:!?][”’\"']?|[a-zà-ÿ]{3}[”’\"'])\Z")
_CITED_BRACKET = re.compile(r"(?:[a-zà-ÿ]{3}|[A-Z]{3})\)\Z")
_NUMBER_BEFORE_WORD = re.compile(r"\d(?:\s|&[^\s;&]{1,8};)[^\W\d_]+\Z")
_AFTER_CITATION = re.compile(
    r"(?:\s*\Z|\s+(?![=<>≤≥×+−±·/*]|&[lg]t;)|[.,;:!?)\]”’]|&(?:#x0{0,4}201[9d]|r[ds]quo);|<(?!su[bp]))"
)
_SQUARED_LIST: Final = """
    acre area beta chisquare depth diameter dist distance dose feet foot gamma height inch inches lambda
    length meter meters metre metres mile miles pixel pixels radius sigma size speed square squared stature
    temperature theta time velocity width yard yards year years
"""
_SQUARED_WORDS: Final = frozenset(_SQUARED_LIST.split())
"""Units and quantities, whose superscript 2 or 3 is a power; so is that of any word after a number."""
_POWERS: Final = frozenset(("2", "3"))
_RESIDUE_LIST: Final = """
    ala arg asn asp cys gln glu gly his ile leu lys met phe pro sec ser thr trp tyr val
"""
_RESIDUES: Final = frozenset(_RESIDUE_LIST.split())
_FORMATTING_TAG = re.compile("</?(?:italic|bold|i|b)>")
_CONTEXT_CHARACTERS: Final = 60
_MIN_CITED_WORD: Final = 4
"""Letters of a word with one number; those of three letters are units, residues, symbols and functions."""
_CITED_LATIN: Final = ("al.</italic>", "silico</italic>", "situ</italic>", "vitro</italic>", "vivo</italic>")
"""Latin words in italics that may have a citation; other words in italics are names of genes."""


def is_citation(superscript: re.Match[str]) -> bool:
    """Return True if a superscript without markup inside is the number of a citation that has no link.

    Alleles, ``<italic>bsk<sup>1</sup>``, are none: nothing in italics or right after another tag is.
    """
    if _CITATION_NUMBERS.fullmatch(superscript[1]) is None:
        return False
    xml, start, end = superscript.string, *superscript.span()
    last_character = xml[start - 1 : start]
    if last_character == "(":  # nests(<sup>1</sup>)
        word = xml[max(0, start - 1 - _MIN_CITED_WORD) : start - 1]
        is_word = (word.isalpha() and word.islower()) or word.endswith(" al.")
        return is_word and xml[end : end + 1] in (")", ",")
    if last_character in (" ", ",") and xml.endswith(("</sup>, ", "</sup>,"), 0, start):
        return xml[end : end + 1] in (")", ",")
    if xml.endswith(_CITED_LATIN, 0, start):
        return _AFTER_CITATION.match(xml, end) is not None
    if last_character.isdigit() or last_character in ("", ">", " ", "\n"):
        return False
    if _AFTER_CITATION.match(xml, end) is None:
        return False
    before = xml[max(0, start - _CONTEXT_CHARACTERS) : start]
    tag = before.rfind("<")
    if tag >= 0:
        if before.startswith(("<italic", "<i>"), tag):
            return False
        before = _TAG.sub("<", _FORMATTING_TAG.sub("", before))
    if "&" in before:
        before = html.unescape(before)
    number = superscript[1].strip(" \t\n()")
    is_list = not number.isdigit()
    if last_character.isalpha():
        return _is_cited_word(before, number, is_list, xml[end : end + 1])
    if last_character == ")":
        return _CITED_BRACKET.search(before) is not None and (is_list or number not in _POWERS)
    return _CITED_STOP.search(before) is not None


def _is_cited_word(before: str, number: str, is_list: bool, following: str) -> bool:
    """Return True if the numbers after a word are citations."""
    match = _CITED_WORD.search(before)
    if match is None:
        return False
    word = match[1].lower()
    if is_list:
        return word not in _RESIDUES
    if len(word) < _MIN_CITED_WORD:
        return False
    if number not in _POWERS:
        return True
    if word in _SQUARED_WORDS or _NUMBER_BEFORE_WORD.search(before):
        return False
    return match[1] == word or following == ","


def mark_bracketed_exponents(text: str) -> str:
    """Write the powers of 10 that NLM wrote in brackets until 2017 with ``^``: "3 x 10(-8)", "5 x 10(6)"."""
    return (
        _BRACKETED_EXPONENT.sub(
            lambda power: f"10^{power[1]}" if power[1] else f"{power[2]}10^{power[3]}", text
        )
        if "10(" in text
        else text
    )
