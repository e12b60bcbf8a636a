"""Format scripts and accents in plain text: ``x_i^2`` and ``10^−3``, but ``NH4+``, ``cm−2`` and ``x̄``.

Running text has scripts without marks: ``CO2``, ``10−3``. Formulas need marks, as ``x2`` may be a product and
``10−3`` is seven. Molecules, ions and units that are marked up as formulas are formatted as in running text,
so that they have one spelling.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from typing import Final

from bioshards.corpus.mathml.symbols import (
    BIG_OPERATORS,
    FUNCTION_NAMES,
    GLUE,
    SOFT_BLANK,
    add_brackets,
    is_compound,
)

_BARE_SCRIPT = re.compile(r"[+−‑-]?\d+(?:\.\d+)?|(?:[^\W\d_][\u0300-\u036f]*)+\d*")
_UNMARKED_SCRIPTS: Final = {"′": "′", "″": "″", "‴": "‴", "'": "′", "''": "″", "°": "°", "∘": "°"}


def _format_script(mark: str, script: str) -> str:
    """Format ``_i`` or ``^(i+1)``; primes and degree signs need no mark."""
    if mark == "^" and script in _UNMARKED_SCRIPTS:
        return _UNMARKED_SCRIPTS[script]
    return mark + (script if len(script) == 1 or _BARE_SCRIPT.fullmatch(script) else add_brackets(script))


_SPECIES = re.compile(r"(?=.*[A-Z]).*[A-Za-z]")
_COUNT = re.compile(r"\d+[a-z]*")
_CHARGE = re.compile(r"\d?[+−-]|[∙•·]")
_NUMBERED_CHARGE = re.compile(r"\d[+−]")
_POWER = re.compile(r"[−‑-]?\d")
_UNIT = re.compile("m|cm|mm|km|μm|µm|nm|s|min|h|d|day|yr|g|kg|mg|μg|µg|L|l|mL|ml|mol|mmol|ha|Hz|kJ|cal")


def attach_scripts(base_text: str, sub: str, sup: str, is_upright: Callable[[], bool]) -> list[str]:
    """Return the pieces of a base with its scripts, each of which may be empty.

    Chemical species are recognised as an upright capital letter (H, N and O in any style) with a number below
    or a charge above.

    Args:
        base_text: text of the base; if empty, the scripts belong to the piece before.
        sub: text of the subscript.
        sup: text of the superscript.
        is_upright: returns True if all letters of the base are upright; called only if needed.
    """
    if not base_text and not sub and _CHARGE.fullmatch(sup):
        return [GLUE + sup]
    combined = base_text
    if _COUNT.fullmatch(sub) and _is_species(base_text, sub, is_upright):
        combined, sub = combined + sub, ""
    if not sub and _is_charge_or_unit_power(base_text, sup, combined != base_text, is_upright):
        combined, sup = combined + sup, ""
    if combined != base_text and not sub and not sup:
        return [combined]
    if is_compound(combined) and not combined.replace(" ", "").isalpha():
        combined = add_brackets(combined)
    scripts = ([_format_script("_", sub)] if sub else []) + ([_format_script("^", sup)] if sup else [])
    if base_text in BIG_OPERATORS:
        return [" ", base_text, *scripts, " "]
    return [SOFT_BLANK if base_text in FUNCTION_NAMES else "", combined, *scripts, SOFT_BLANK]


def _is_species(base_text: str, sub: str, is_upright: Callable[[], bool]) -> bool:
    """Return True if the base with this number below is a molecule or a part of one."""
    if base_text in ("H", "N", "O"):
        return sub[0] not in "01" or is_upright()
    return _SPECIES.fullmatch(base_text) is not None and is_upright()


def _is_charge_or_unit_power(
    base_text: str, sup: str, is_species: bool, is_upright: Callable[[], bool]
) -> bool:
    """Return True if the superscript is a charge or the power of a unit."""
    if (
        _NUMBERED_CHARGE.fullmatch(sup) and base_text[-1:].isalpha()
    ):  # the e of an Fe that was spelled in italics
        return True
    if _CHARGE.fullmatch(sup) and _SPECIES.fullmatch(base_text):
        return is_species or base_text in ("H", "N", "O") or is_upright()
    return bool(_POWER.fullmatch(sup) and _UNIT.fullmatch(base_text)) and is_upright()


_BRACES: Final = "⏞⏟︷︸⎴⎵⏜⏝︵︶"
ACCENTS: Final = {
    **dict.fromkeys("¯‾―_-−–\u0304\u0305", "\u0304"),
    **dict.fromkeys("^ˆ\u0302", "\u0302"),
    **dict.fromkeys("~˜∼\u0303", "\u0303"),
    **dict.fromkeys("˙.·⋅∙\u0307", "\u0307"),
    **dict.fromkeys(("¨", "..", "\u0308"), "\u0308"),
    **dict.fromkeys("→⇀\u20d7", "\u20d7"),
    **dict.fromkeys("˘\u0306", "\u0306"),
    **dict.fromkeys("ˇ\u030c", "\u030c"),
    **dict.fromkeys("´\u0301", "\u0301"),
    **dict.fromkeys("`\u0300", "\u0300"),
    **dict.fromkeys("˚\u030a", "\u030a"),
    **dict.fromkeys(_BRACES, ""),
}
"""Combining character of each mark over a base; braces have none."""
UNDERLINES: Final = dict.fromkeys("¯‾―_-−–\u0332", "\u0332") | dict.fromkeys(_BRACES, "")
_LETTER = re.compile(r"[^\W\d_][\u0300-\u036f\u20d0-\u20ff]*(?![^_^])")


def add_accent(text: str, mark: str) -> str | None:
    """Return the text with the mark composed onto its letter, or None unless it is a single letter."""
    letter = _LETTER.match(text)
    if not letter or not mark:
        return None
    return unicodedata.normalize("NFC", letter[0] + mark) + text[letter.end() :]
