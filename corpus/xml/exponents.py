"""Recognise powers among superscripts: ``10<sup>6</sup>`` becomes "10^6", as in formulas (mathml/).

A number is never joined to another without a mark: it would be the number 106. Charges, isotopes, ordinals
and letters ("Ca2+", "H218O", "1st") are joined as they are.
"""

from __future__ import annotations

import functools
import html
import re
from typing import Final

LOOKBACK_CHARACTERS: Final = 24
_MINUS: Final = "[−–‐‑-]"
_NUMBER = re.compile(rf"\s*(?:{_MINUS}\s?)?\d{{1,4}}(?:\.\d+|{_MINUS}\d{{1,2}})?\s*")
_FOLD_CHANGE = re.compile(rf"\s*{_MINUS}\s?(?:[Δ∆]{{1,2}}|DD?)C[TtQqPp]\s*")
"""The exponent of 2 in the formula of relative expression, 2^−ΔΔCt."""
_BASE = re.compile(r"(?:^|[^\w)\]]|(?:^|[\W\d])[xX])([\d.,]*\d)$")
"""A number at the end of a text, perhaps after x for a multiplication sign; not in "CD4" and "H2"."""
_SUPERSCRIPT = re.compile("<sup>([^<>]*)</sup>")
_TAG = re.compile("<[^<>]*>")
_TAG_CHARACTERS: Final = 60
_BRACKETED_EXPONENT = re.compile(rf"(?<![\d.,])10\(({_MINUS}\d{{1,3}})\)|(?<=[×xX·*])(\s?)10\((\d{{1,2}})\)")


@functools.lru_cache(maxsize=1 << 12)
def may_be_exponent(script: str) -> bool:
    """Return True if a superscript is an exponent after some text."""
    return _NUMBER.fullmatch(script) is not None or _FOLD_CHANGE.fullmatch(script) is not None


def is_exponent(before: str, script: str) -> bool:
    """Return True if a superscript is the exponent of the number before it.

    Args:
        before: the last :data:`LOOKBACK_CHARACTERS` before the superscript.
        script: the text of the superscript.
    """
    ends_in_digit = before.rstrip("\n")[-1:].isdecimal()  # not in cm<sup>2</sup>, which is frequent
    base = _BASE.search(before) if ends_in_digit else None
    if base is None:
        return False
    if script.strip() == "0":  # else a degree sign: 37<sup>0</sup>C
        return base[1] == "10"
    return _NUMBER.fullmatch(script) is not None or (
        base[1] == "2" and _FOLD_CHANGE.fullmatch(script) is not None
    )


def mark_exponents(xml: str) -> str:
    """Replace the tags of exponents by ``^``."""

    def mark(superscript: re.Match[str]) -> str:
        if not may_be_exponent(html.unescape(superscript[1])):
            return superscript[0]
        start = superscript.start()
        before = _TAG.sub("", xml[max(0, start - LOOKBACK_CHARACTERS - _TAG_CHARACTERS) : start])
        is_power = is_exponent(before[-LOOKBACK_CHARACTERS:], html.unescape(superscript[1]))
        return f"^{superscript[1].lstrip()}" if is_power else superscript[0]

    return _SUPERSCRIPT.sub(mark, xml) if "<sup>" in xml else xml


def mark_bracketed_exponents(text: str) -> str:
    """Write the powers of 10 that NLM wrote in brackets until 2017 with ``^``: "3 x 10(-8)", "5 x 10(6)"."""
    return (
        _BRACKETED_EXPONENT.sub(
            lambda power: f"10^{power[1]}" if power[1] else f"{power[2]}10^{power[3]}", text
        )
        if "10(" in text
        else text
    )
