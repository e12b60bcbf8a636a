"""Convert a formula to plain text as scientists type it: ``p < 0.05``, ``x_i^2``, ``(a + b)/(2c)``.

Most formulas of JATS articles are presentation MathML (https://www.w3.org/TR/MathML3/, chapter 3). Publishers
mark up the same formula differently, so white space is derived from the symbols instead of the source. Words,
numbers and symbols stay as written.

symbols.py defines symbols and their spacing, scripts.py subscripts, superscripts and accents, this module the
elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from bioshards.corpus.mathml.scripts import ACCENTS, UNDERLINES, add_accent, attach_scripts
from bioshards.corpus.mathml.symbols import (
    SOFT_BLANK,
    add_brackets,
    append_token,
    continues_in,
    ends_with_opening_bracket,
    has_visible_piece,
    is_compound,
    is_factor,
    join_pieces,
)

MAX_DEPTH: Final = 50
"""Nesting depth up to which elements are formatted; real formulas have up to 22. Deeper content becomes its
characters in order.
"""

MATHML_NAMESPACE: Final = "{http://www.w3.org/1998/Math/MathML}"
_EMPTY_ELEMENT: Final = etree.Element("none")


def formula_to_text(math: etree._Element) -> str:
    """Return the formula in one line, stripped, with single blanks; "" if nothing is visible.

    Args:
        math: a ``math`` element or any element in one, with or without MathML's namespace.
    """
    return _render_element(math, 0, tight=False)


# Handlers append the pieces of an element (words, numbers, symbols, blanks). ``depth`` is its nesting depth;
# ``tight`` is True in scripts, where operators have no blanks.


def _append_element(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    if depth > MAX_DEPTH:
        _append_token_element(element, pieces, depth, tight)
    else:
        _HANDLERS.get(element.tag, _append_row)(element, pieces, depth + 1, tight)


def _render_element(element: etree._Element, depth: int, *, tight: bool) -> str:
    pieces: list[str] = []
    _append_element(element, pieces, depth, tight)
    return join_pieces(pieces, tight=tight)


def _first_children(element: etree._Element, count: int) -> list[etree._Element]:
    """Return the first ``count`` children, padded with empty elements."""
    return [*list(element)[:count], *[_EMPTY_ELEMENT] * (count - len(element))]


def _append_token_element(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    append_token("".join(map(str, element.itertext(etree.Element))) if len(element) else element.text, pieces)


def _append_row(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    if not len(element):
        append_token(element.text, pieces)
    for child in element:
        _append_element(child, pieces, depth, tight)


def _skip(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    pass


def _append_first(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    _append_element(_first_children(element, 1)[0], pieces, depth, tight)


def _append_selected(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    selection = element.get("selection", "1").strip()
    position = int(selection) if re.fullmatch("[0-9]{1,4}", selection) else 1
    if 1 <= position <= len(element):
        _append_element(element[position - 1], pieces, depth, tight)


_LENGTH = re.compile(r"\s*(-?(?:[0-9]{1,4}\.?[0-9]{0,20}|\.[0-9]{1,20}))\s*(em|ex|pt|px|mm|cm|in|pc)\s*")
_EMS_BY_UNIT: Final = {
    "em": 1,
    "ex": 0.43,
    "pt": 0.1,
    "px": 0.075,
    "mm": 0.28,
    "cm": 2.8,
    "in": 7.2,
    "pc": 1.2,
}
"""Ems in a unit, for type of 10 points."""
_WIDE_SPACE_NAME = re.compile(r"\s*(?:thin|medium|(?:very){0,2}thick)mathspace\s*")


def _append_space(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append a blank if the space is at least as wide as a thin space, 1/6 em."""
    width = element.get("width", "")
    length = _LENGTH.fullmatch(width)
    is_wide = (
        float(length[1]) * _EMS_BY_UNIT[length[2]] > 0.166 if length else _WIDE_SPACE_NAME.fullmatch(width)
    )
    if is_wide or element.get("linebreak") == "newline":
        pieces.append(" ")


def _append_fenced(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    separators = "".join(element.get("separators", ",").split())
    append_token(element.get("open", "("), pieces)
    for index, child in enumerate(element):
        if index and separators:
            pieces.append(separators[min(index, len(separators)) - 1])
        _append_element(child, pieces, depth, tight)
    append_token(element.get("close", ")"), pieces)


_ZERO_THICKNESS = re.compile(r"\s*0+(?:\.0*)?\s*[a-z%]*\s*")


def _append_fraction(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``a/b``, with brackets around sums and around products below the line."""
    numerator, denominator = (
        _render_element(child, depth, tight=tight) for child in _first_children(element, 2)
    )
    if _ZERO_THICKNESS.fullmatch(element.get("linethickness", "")):  # (n; k)
        pieces += (numerator, ";", denominator)
        return
    numerator = add_brackets(numerator) if is_compound(numerator) else numerator
    denominator = denominator if is_factor(denominator) else add_brackets(denominator)
    pieces += (" ", f"{numerator}/{denominator}", " ")


def _format_radical(sign: str, radicand: str) -> str:
    is_short = len(radicand) == 1 or radicand.isdecimal()
    return sign + (radicand if is_short else add_brackets(radicand))


def _append_square_root(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    inner_pieces: list[str] = []
    _append_row(element, inner_pieces, depth, tight)
    pieces += (SOFT_BLANK, _format_radical("√", join_pieces(inner_pieces, tight=tight)), SOFT_BLANK)


def _append_root(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``∛x``, ``∜x`` or ``x^(1/n)``."""
    radicand, index = (_render_element(child, depth, tight=tight) for child in _first_children(element, 2))
    sign = {"": "√", "2": "√", "3": "∛", "4": "∜"}.get(index)
    if sign:
        pieces += (SOFT_BLANK, _format_radical(sign, radicand), SOFT_BLANK)
    else:
        index = index if is_factor(index) else add_brackets(index)
        pieces += (radicand if is_factor(radicand) else add_brackets(radicand), f"^(1/{index})", SOFT_BLANK)


def _append_with_scripts(
    base: etree._Element, sub: str, sup: str, pieces: list[str], depth: int, tight: bool
) -> None:
    base_text = _render_element(base, depth, tight=tight)
    if not base_text and not has_visible_piece(pieces):  # scripts of the text before the formula
        pieces.append(sub + sup)
    else:
        pieces += attach_scripts(base_text, sub, sup, lambda: _is_upright(base))


_TEXT_TAGS: Final = ("mtext", MATHML_NAMESPACE + "mtext")


def _is_upright(base: etree._Element) -> bool:
    """Return True if all letters are upright: as text, by their variant, or as a name of several letters."""
    return all(
        leaf.tag in _TEXT_TAGS
        or leaf.get("mathvariant", "italic" if len(leaf.text or "") == 1 else "normal") == "normal"
        for leaf in base.iter(etree.Element)
        if not len(leaf)
    )


def _append_subscript(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, sub = _first_children(element, 2)
    _append_with_scripts(base, _render_element(sub, depth, tight=True), "", pieces, depth, tight)


def _append_superscript(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, sup = _first_children(element, 2)
    _append_with_scripts(base, "", _render_element(sup, depth, tight=True), pieces, depth, tight)


def _append_subscript_and_superscript(
    element: etree._Element, pieces: list[str], depth: int, tight: bool
) -> None:
    base, sub, sup = _first_children(element, 3)
    scripts = _render_element(sub, depth, tight=True), _render_element(sup, depth, tight=True)
    _append_with_scripts(base, *scripts, pieces, depth, tight)


def _append_multiscripts(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append a base with scripts on both sides: ``14C``; with two before it, ``14_6C``."""
    base, *children = _first_children(element, max(1, len(element)))
    postscripts: list[str] = []
    prescripts: list[str] = []
    scripts = postscripts
    for child in children:
        if child.tag in _PRESCRIPTS_TAGS:
            scripts = prescripts
        else:
            scripts.append(_render_element(child, depth, tight=True))
    inner_pieces: list[str] = []
    _append_with_scripts(
        base, "".join(postscripts[::2]), "".join(postscripts[1::2]), inner_pieces, depth, tight
    )
    above_and_below = filter(None, ("".join(prescripts[1::2]), "".join(prescripts[::2])))
    pieces.append("_".join(above_and_below) + join_pieces(inner_pieces, tight=tight))


_PRESCRIPTS_TAGS: Final = ("mprescripts", MATHML_NAMESPACE + "mprescripts")

# Accents and limits


def _append_accented(base: etree._Element, mark: str, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``x̄`` or ``x̄_i``; a base of several letters stays without the accent."""
    inner_pieces: list[str] = []
    _append_element(base, inner_pieces, depth, tight)
    accented_text = add_accent(join_pieces(inner_pieces, tight=tight), mark)
    pieces += (accented_text, SOFT_BLANK if "_" in accented_text else "") if accented_text else inner_pieces


def _append_under(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, script = _first_children(element, 2)
    below = _render_element(script, depth, tight=True)
    if below in UNDERLINES:
        _append_accented(base, UNDERLINES[below], pieces, depth, tight)
    else:
        _append_with_scripts(base, below, "", pieces, depth, tight)


def _append_over(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, script = _first_children(element, 2)
    above = _render_element(script, depth, tight=True)
    if above in ACCENTS:
        _append_accented(base, ACCENTS[above], pieces, depth, tight)
    else:
        _append_with_scripts(base, "", above, pieces, depth, tight)


# Tables


def _append_table(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``[a, b; c, d]``, or with the brackets of the source.

    A table without a visible piece before it is layout: the cells of a row form one formula, and rows are
    joined by a semicolon unless one continues in the next.
    """
    rows = [(list(row)[1:] if row.tag in _LABELED_ROW_TAGS else list(row) or [row]) for row in element]
    if not has_visible_piece(pieces):
        for row in rows:
            inner_pieces: list[str] = []
            for cell in row:
                _append_element(cell, inner_pieces, depth, tight)
                inner_pieces.append(" ")
            if has_visible_piece(inner_pieces) and not continues_in(pieces, inner_pieces):
                pieces.append(";")
            pieces += inner_pieces
        return
    lines = [[_render_element(cell, depth, tight=tight) for cell in row] for row in rows]
    matrix = "; ".join(", ".join(cell.rstrip(",;") for cell in row if cell) for row in lines)
    pieces.append(matrix if ends_with_opening_bracket(pieces) or not matrix else f"[{matrix}]")


_LABELED_ROW_TAGS: Final = ("mlabeledtr", MATHML_NAMESPACE + "mlabeledtr")

_Handler = Callable[[etree._Element, list[str], int, bool], None]
_HANDLERS_BY_LOCAL_NAME: Final[dict[str, _Handler]] = {
    **dict.fromkeys(("mi", "mn", "mo", "mtext", "ms"), _append_token_element),
    **dict.fromkeys(("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark"), _skip),
    **dict.fromkeys(("none", "mprescripts"), _skip),
    "semantics": _append_first,
    "maction": _append_selected,
    "mspace": _append_space,
    "mfenced": _append_fenced,
    "mfrac": _append_fraction,
    "msqrt": _append_square_root,
    "mroot": _append_root,
    "msub": _append_subscript,
    "msup": _append_superscript,
    "msubsup": _append_subscript_and_superscript,
    "munderover": _append_subscript_and_superscript,
    "mmultiscripts": _append_multiscripts,
    "munder": _append_under,
    "mover": _append_over,
    "mtable": _append_table,
}
_HANDLERS: Final = _HANDLERS_BY_LOCAL_NAME | {
    MATHML_NAMESPACE + name: handler for name, handler in _HANDLERS_BY_LOCAL_NAME.items()
}
"""Handlers by element name. All other elements are rows: their children are concatenated."""
