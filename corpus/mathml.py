"""Write a formula as a scientist types it in plain text: ``p < 0.05``, ``x_i^2``, ``(a + b)/(2c)``.

JATS articles hold most of their formulas as presentation MathML (<https://www.w3.org/TR/MathML3/>,
chapter 3), which says what stands where and little of what it means.  A model that reads articles
should meet the same formula in the same letters, however its publisher has marked it up.  So white
space comes from what the symbols are, not from the source; words, numbers and symbols stay as they are.
mathml_tokens.py knows the symbols and the white space between them, mathml_scripts.py what is above and
below, this file the elements.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from .mathml_scripts import ACCENTS, LINES_BELOW, accented, scripted
from .mathml_tokens import SOFT, goes_on, in_brackets, is_compound, is_factor, line, opens, token, visible

MAX_DEPTH: Final = 50
"""Elements within elements that are read as a formula: real ones have up to 22.  What lies deeper is
written as its characters in their order, so that no formula is too deep to be read."""

_NAMESPACE: Final = "{http://www.w3.org/1998/Math/MathML}"
_EMPTY: Final = etree.Element("none")


def text(math: etree._Element) -> str:
    """The formula in one line, stripped, without two blanks in a row; "" where nothing is to be seen.

    Args:
        math: a ``math`` element, or any element of one; with MathML's namespace or without.
    """
    return _line(math, 0, tight=False)


# The functions of elements add the element's pieces (words, numbers, symbols, wished blanks) to those
# that stand before it.  ``depth`` is how deep it lies, ``tight`` whether it is in a script, where
# operators have no blanks.


def _add(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    if depth > MAX_DEPTH:
        _token(element, pieces, depth, tight)
    else:
        _ELEMENTS.get(element.tag, _row)(element, pieces, depth + 1, tight)


def _line(element: etree._Element, depth: int, *, tight: bool) -> str:
    pieces: list[str] = []
    _add(element, pieces, depth, tight)
    return line(pieces, tight=tight)


def _children(element: etree._Element, count: int) -> list[etree._Element]:
    """The first children, and empty ones where there are fewer."""
    return [*list(element)[:count], *[_EMPTY] * (count - len(element))]


def _token(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    token("".join(map(str, element.itertext(etree.Element))) if len(element) else element.text, pieces)


def _row(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    if not len(element):
        token(element.text, pieces)
    for child in element:
        _add(child, pieces, depth, tight)


def _nothing(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    pass


def _first(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    _add(_children(element, 1)[0], pieces, depth, tight)


def _selected(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    selection = element.get("selection", "1").strip()
    number = int(selection) if re.fullmatch("[0-9]{1,4}", selection) else 1
    if 1 <= number <= len(element):
        _add(element[number - 1], pieces, depth, tight)


_LENGTH = re.compile(r"\s*(-?(?:[0-9]{1,4}\.?[0-9]{0,20}|\.[0-9]{1,20}))\s*(em|ex|pt|px|mm|cm|in|pc)\s*")
_EM: Final = {"em": 1, "ex": 0.43, "pt": 0.1, "px": 0.075, "mm": 0.28, "cm": 2.8, "in": 7.2, "pc": 1.2}
"""Ems in a unit, for type of 10 points."""
_WIDE = re.compile(r"\s*(?:thin|medium|(?:very){0,2}thick)mathspace\s*")


def _space(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """A blank if it is at least as wide as a thin space, a sixth of an em."""
    width = element.get("width", "")
    length = _LENGTH.fullmatch(width)
    wide = float(length[1]) * _EM[length[2]] > 0.166 if length else _WIDE.fullmatch(width)
    if wide or element.get("linebreak") == "newline":
        pieces.append(" ")


def _fenced(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    separators = "".join(element.get("separators", ",").split())
    token(element.get("open", "("), pieces)
    for index, child in enumerate(element):
        if index and separators:
            pieces.append(separators[min(index, len(separators)) - 1])
        _add(child, pieces, depth, tight)
    token(element.get("close", ")"), pieces)


_NO_LINE = re.compile(r"\s*0+(?:\.0*)?\s*[a-z%]*\s*")


def _fraction(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """``a/b``; what has more than one term, or below the line more than one factor, in brackets."""
    above, below = (_line(child, depth, tight=tight) for child in _children(element, 2))
    if _NO_LINE.fullmatch(element.get("linethickness", "")):  # (n; k)
        pieces += (above, ";", below)
        return
    above = in_brackets(above) if is_compound(above) else above
    below = below if is_factor(below) else in_brackets(below)
    pieces += (" ", f"{above}/{below}", " ")


def _radical(sign: str, radicand: str) -> str:
    short = len(radicand) == 1 or radicand.isdecimal()
    return sign + (radicand if short else in_brackets(radicand))


def _square_root(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    inside: list[str] = []
    _row(element, inside, depth, tight)
    pieces += (SOFT, _radical("√", line(inside, tight=tight)), SOFT)


def _root(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """``∛x``, ``∜x``, ``x^(1/n)``."""
    radicand, index = (_line(child, depth, tight=tight) for child in _children(element, 2))
    sign = {"": "√", "2": "√", "3": "∛", "4": "∜"}.get(index)
    if sign:
        pieces += (SOFT, _radical(sign, radicand), SOFT)
    else:
        index = index if is_factor(index) else in_brackets(index)
        pieces += (radicand if is_factor(radicand) else in_brackets(radicand), f"^(1/{index})", SOFT)


def _with_scripts(
    base: etree._Element, sub: str, sup: str, pieces: list[str], depth: int, tight: bool
) -> None:
    core = _line(base, depth, tight=tight)
    if not core and not visible(pieces):  # they belong to the text before the formula
        pieces.append(sub + sup)
    else:
        pieces += scripted(core, sub, sup, lambda: _is_upright(base))


_TEXT: Final = ("mtext", _NAMESPACE + "mtext")


def _is_upright(base: etree._Element) -> bool:
    """Whether all its letters are upright: as text, by their variant, or as a name of several letters."""
    return all(
        leaf.tag in _TEXT
        or leaf.get("mathvariant", "italic" if len(leaf.text or "") == 1 else "normal") == "normal"
        for leaf in base.iter(etree.Element)
        if not len(leaf)
    )


def _sub(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, sub = _children(element, 2)
    _with_scripts(base, _line(sub, depth, tight=True), "", pieces, depth, tight)


def _sup(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, sup = _children(element, 2)
    _with_scripts(base, "", _line(sup, depth, tight=True), pieces, depth, tight)


def _sub_sup(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, sub, sup = _children(element, 3)
    scripts = _line(sub, depth, tight=True), _line(sup, depth, tight=True)
    _with_scripts(base, *scripts, pieces, depth, tight)


def _both_sides(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Scripts before and after the base: ``14C``; with both before it, ``14_6C``."""
    base, *others = _children(element, max(1, len(element)))
    after: list[str] = []
    before: list[str] = []
    side = after
    for child in others:
        if child.tag in _PRESCRIPTS:
            side = before
        else:
            side.append(_line(child, depth, tight=True))
    inside: list[str] = []
    _with_scripts(base, "".join(after[::2]), "".join(after[1::2]), inside, depth, tight)
    above_and_below = filter(None, ("".join(before[1::2]), "".join(before[::2])))
    pieces.append("_".join(above_and_below) + line(inside, tight=tight))


_PRESCRIPTS: Final = ("mprescripts", _NAMESPACE + "mprescripts")

# Accents and limits


def _accented(base: etree._Element, mark: str, pieces: list[str], depth: int, tight: bool) -> None:
    """``x̄``, ``x̄_i``; a base of several letters stays as it is."""
    inside: list[str] = []
    _add(base, inside, depth, tight)
    with_accent = accented(line(inside, tight=tight), mark)
    pieces += (with_accent, SOFT if "_" in with_accent else "") if with_accent else inside


def _under(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, script = _children(element, 2)
    below = _line(script, depth, tight=True)
    if below in LINES_BELOW:
        _accented(base, LINES_BELOW[below], pieces, depth, tight)
    else:
        _with_scripts(base, below, "", pieces, depth, tight)


def _over(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, script = _children(element, 2)
    above = _line(script, depth, tight=True)
    if above in ACCENTS:
        _accented(base, ACCENTS[above], pieces, depth, tight)
    else:
        _with_scripts(base, "", above, pieces, depth, tight)


# Tables


def _table(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """``[a, b; c, d]``, in the source's own fence where it has one.

    A table with nothing before it is no matrix but the layout of long formulas: its cells are one
    formula, its rows are joined by a semicolon where the next does not go on from the last.
    """
    rows = [(list(row)[1:] if row.tag in _LABELED else list(row) or [row]) for row in element]
    if not visible(pieces):
        for row in rows:
            inside: list[str] = []
            for cell in row:
                _add(cell, inside, depth, tight)
                inside.append(" ")
            if visible(inside) and not goes_on(pieces, inside):
                pieces.append(";")
            pieces += inside
        return
    lines = [[_line(cell, depth, tight=tight) for cell in row] for row in rows]
    matrix = "; ".join(", ".join(cell.rstrip(",;") for cell in row if cell) for row in lines)
    pieces.append(matrix if opens(pieces) or not matrix else f"[{matrix}]")


_LABELED: Final = ("mlabeledtr", _NAMESPACE + "mlabeledtr")

_Element = Callable[[etree._Element, list[str], int, bool], None]
_NAMED: Final[dict[str, _Element]] = {
    **dict.fromkeys(("mi", "mn", "mo", "mtext", "ms"), _token),
    **dict.fromkeys(("annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark"), _nothing),
    **dict.fromkeys(("none", "mprescripts"), _nothing),
    "semantics": _first,
    "maction": _selected,
    "mspace": _space,
    "mfenced": _fenced,
    "mfrac": _fraction,
    "msqrt": _square_root,
    "mroot": _root,
    "msub": _sub,
    "msup": _sup,
    "msubsup": _sub_sup,
    "munderover": _sub_sup,
    "mmultiscripts": _both_sides,
    "munder": _under,
    "mover": _over,
    "mtable": _table,
}
_ELEMENTS: Final = _NAMED | {_NAMESPACE + name: add for name, add in _NAMED.items()}
"""All other elements are rows: what is in them is written one after the other."""
