"""Convert a formula to plain text as scientists type it: ``p < 0.05``, ``x_i^2``, ``(a + b)/(2c)``.

Most formulas of JATS articles are presentation MathML (https://www.w3.org/TR/MathML3/, chapter 3). Publishers
mark up the same formula differently, so white space is derived from the symbols instead of the source. Words,
numbers and symbols stay as written.

A formula is a sequence of pieces in reading order: words, numbers, symbols, whole fractions. The text of a
piece alone determines its class, and :func:`_join_pieces` derives each blank from the classes on both sides.

Running text has scripts without marks: ``CO2``, ``10−3``. Formulas need marks, as ``x2`` may be a product and
``10−3`` is seven. Molecules, ions and units that are marked up as formulas are formatted as in running text
(``NH4+``, ``cm−2``), so that they have one spelling.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

from lxml import etree

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


# Symbols and spacing

_SOFT_BLANK: Final = "\u2061"
"""A piece that requests a blank before a word or number, but not before a bracket: ``log x``, ``log(x)``.
It is Unicode's FUNCTION APPLICATION.
"""

_GLUE: Final = "\u2060"
"""Prefix of a piece that attaches to the piece before without a blank, as ``_`` and ``^`` do."""

_FUNCTION_NAME_LIST: Final = (
    "arg cos cosh cosec cot cov csc deg det diag dim div erf exp gcd inf ker lg lim ln log max min mod "
    "rank sec sgn sign sin sinh sup tan tanh tr var arccos arcsin arctan argmax argmin Cov Pr Var"
)
_FUNCTION_NAMES: Final = frozenset(_FUNCTION_NAME_LIST.split())
_BIG_OPERATORS: Final = frozenset("∑∏∐∫∬∭∮⋃⋂⨁⨂")

_WORD = 0  # and anything else that is not below
_BLANK, _SOFT, _NOTHING, _OPEN, _CLOSE, _BAR, _RELATION, _BINARY, _SIGN, _TIGHT, _SEPARATOR = range(1, 12)
_START, _PREFIX, _BIG = 12, 13, 14

_SYMBOL_CLASSES: Final = {
    **dict.fromkeys(["", "\u2062", "\u200b", "\u2060", "\ufeff"], _NOTHING),
    **dict.fromkeys([" "], _BLANK),
    **dict.fromkeys([_SOFT_BLANK, "\u2064"], _SOFT),  # 2064: invisible plus, of 2 1/2
    **dict.fromkeys("([{⟨〈\u2329⟦〚⌊⌈", _OPEN),
    **dict.fromkeys(")]}⟩〉\u232a⟧〛⌋⌉.:!′″‴°", _CLOSE),
    **dict.fromkeys(["|", "‖", "∥", "∣", "||"], _BAR),
    **dict.fromkeys("=<>≤≥≦≧⩽⩾≪≫≠≡≈≅≍≃≐≜≝∼∝→←↔⇒⇐⇔⟶⟵⟷⟹⇌⇋↦∈∉∋⊂⊃⊆⊇⊥≺≻⊢", _RELATION),
    **dict.fromkeys([":=", "==", "<=", ">=", "<<", ">>", "~", "->", "<-", "!="], _RELATION),
    **dict.fromkeys("×∗*⁎÷∩∪∖∧∨⊕⊗⊙", _BINARY),
    **dict.fromkeys("+−-–±∓", _SIGN),
    **dict.fromkeys(_BIG_OPERATORS | _FUNCTION_NAMES, _BIG),
    **dict.fromkeys("/∕⁄·⋅∙∘^_‐‑", _TIGHT),
    **dict.fromkeys(",;\u2063", _SEPARATOR),  # 2063: invisible comma
}
_GLUE_MARKS: Final = "_^" + _GLUE
_EXPECTS_OPERAND: Final = frozenset((_START, _OPEN, _RELATION, _BINARY, _SIGN, _TIGHT, _SEPARATOR, _PREFIX))
_TILDES: Final = ("~", "∼")
_INVISIBLE_CLASSES: Final = frozenset((_BLANK, _SOFT, _NOTHING))
_SPACED_CLASSES: Final = frozenset((_RELATION, _BINARY, _SIGN))
_TERM_ENDS: Final = frozenset((_CLOSE, _SEPARATOR, _RELATION))

_INVISIBLE_CHARACTERS = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD_PREFIXES: Final = frozenset("Δδ∂∇dμµ∆")
"""Letters that belong to the word after them."""
_ORDINAL_ENDINGS: Final = frozenset(("st", "nd", "rd", "th"))


def _append_token(text: str | None, pieces: list[str]) -> None:
    """Append the text of a token element: white space at its ends becomes blanks, inside single blanks."""
    if not text:
        return
    if text in _FUNCTION_NAMES:
        pieces += (_SOFT_BLANK, text, _SOFT_BLANK)
    elif text in _BIG_OPERATORS:
        pieces += (" ", text, " ")
    elif text.isalnum() or text in _SYMBOL_CLASSES:
        pieces.append(text)
    else:
        text = _INVISIBLE_CHARACTERS.sub("", text)
        words = text.split()
        if text[:1].isspace():
            pieces.append(" ")
        if words:
            inner = " ".join(words)
            if inner in _FUNCTION_NAMES or inner in _BIG_OPERATORS:
                _append_token(inner, pieces)
            else:
                pieces.append(inner)
            if text[-1].isspace():
                pieces.append(" ")


def _join_pieces(pieces: Sequence[str], *, tight: bool) -> str:
    """Join the pieces into one line; ``tight`` omits blanks around operators, for scripts."""
    if len(pieces) == 1 and pieces[0] not in _SYMBOL_CLASSES:
        return pieces[0]
    output: list[str] = []
    previous_class, previous_piece = _START, ""
    has_gap = has_soft_blank = False
    open_bars = 0
    for index, piece in enumerate(pieces):
        symbol_class = _SYMBOL_CLASSES.get(piece, _WORD)
        if symbol_class in _INVISIBLE_CLASSES:
            has_gap |= symbol_class == _BLANK
            has_soft_blank |= symbol_class == _SOFT
            continue
        if piece[0] in _GLUE_MARKS and len(piece) > 1:  # a script is part of what stands before it
            output.append(piece.removeprefix(_GLUE))
            if previous_class not in _SPACED_CLASSES and previous_class != _BIG:
                previous_class, previous_piece = _WORD, piece
            has_gap = False
            continue
        if symbol_class == _BAR:
            if previous_class in _EXPECTS_OPERAND or previous_class == _BIG:
                symbol_class, open_bars = _OPEN, open_bars + 1
            else:
                symbol_class, open_bars = (_CLOSE, open_bars - 1) if open_bars else (_TIGHT, 0)
        elif (symbol_class == _SIGN or piece in _TILDES) and previous_class in _EXPECTS_OPERAND:
            symbol_class = _PREFIX
        elif symbol_class in (_SIGN, _BINARY) and _ends_term(pieces, index):
            symbol_class = _CLOSE  # the charge of Na+, the star of y*
        elif piece == "\u2063":
            piece = ","
        if _needs_blank(previous_class, symbol_class, previous_piece, piece, has_gap, has_soft_blank, tight):
            output.append(" ")
        output.append(piece)
        previous_class, previous_piece = symbol_class, piece
        has_gap = has_soft_blank = False
    return "".join(output)


def _ends_term(pieces: Sequence[str], index: int) -> bool:
    """Return True if no piece follows, or one that ends a term."""
    following = (pieces[position] for position in range(index + 1, len(pieces)))
    return next(_iter_visible_classes(following), _CLOSE) in _TERM_ENDS


def _needs_blank(
    previous_class: int,
    symbol_class: int,
    previous_piece: str,
    piece: str,
    has_gap: bool,
    has_soft_blank: bool,
    tight: bool,
) -> bool:
    """Return True if a blank is needed between two pieces."""
    if previous_class in (_START, _OPEN, _PREFIX) or symbol_class in (_CLOSE, _SEPARATOR):
        return False
    if previous_class in _SPACED_CLASSES or symbol_class in _SPACED_CLASSES or previous_class == _SEPARATOR:
        return not tight
    if previous_class == _TIGHT or symbol_class == _TIGHT:
        return False
    if has_gap:
        return True
    if tight or symbol_class not in (_WORD, _BIG):
        return False
    starts_word = piece[0].isalnum()
    if has_soft_blank:
        return starts_word or piece[0] in "√∛∜∂∇"
    # A blank separates a word from a number or word; single letters are factors, or a word that was spelled.
    if previous_class == _CLOSE and len(piece) > 1:
        return piece.isalpha() and previous_piece in ")]}"
    if previous_class != _WORD or not starts_word:
        return False
    if len(piece) > 1 and piece.isalpha():
        if piece in _ORDINAL_ENDINGS and (len(previous_piece) == 1 or previous_piece.isdigit()):
            return False
        return (previous_piece.isalpha() and previous_piece not in _WORD_PREFIXES) or bool(
            _NUMBER.fullmatch(previous_piece)
        )
    return len(previous_piece) > 1 and previous_piece.isalpha() and piece[0].isalpha()


def _iter_visible_classes(pieces: Iterable[str]) -> Iterator[int]:
    """Yield the classes of the visible pieces."""
    for piece in pieces:
        symbol_class = _SYMBOL_CLASSES.get(piece, _WORD)
        if symbol_class not in _INVISIBLE_CLASSES:
            yield symbol_class


def _has_visible_piece(pieces: Sequence[str]) -> bool:
    """Return True if any piece is visible."""
    return next(_iter_visible_classes(pieces), None) is not None


def _ends_with_opening_bracket(pieces: Sequence[str]) -> bool:
    """Return True if the last visible piece is an opening bracket or a bar."""
    return next(_iter_visible_classes(reversed(pieces)), _WORD) in (_OPEN, _BAR)


def _continues_in(pieces: Sequence[str], following: Sequence[str]) -> bool:
    """Return True if the formula continues in ``following``: an operator or separator joins them."""
    last_class, first_class = (
        next(_iter_visible_classes(reversed(pieces)), _START),
        next(_iter_visible_classes(following), _WORD),
    )
    return last_class in _EXPECTS_OPERAND or first_class in _SPACED_CLASSES or first_class == _SEPARATOR


_STRUCTURE = re.compile(r"([(\[{⟨〈\u2329⌊⌈])|([)\]}⟩〉\u232a⌋⌉])|(?<![_^(])[ /∕+−±×·⋅=<>≤≥,;-]")


def _is_compound(text: str) -> bool:
    """Return True if an operator or blank is outside of brackets, so that the term needs brackets."""
    depth = 0
    for match in _STRUCTURE.finditer(text):
        if match[1]:
            depth += 1
        elif match[2]:
            depth -= 1
        elif depth <= 0 and match.start():  # a sign before everything makes no second term
            return True
    return False


_FACTOR = re.compile(
    r"(?:\d+(?:\.\d+)?%?|[∂∇]?[^\W\d_][\u0300-\u036f\u20d0-\u20ff]*[^\W_]*|[√∛∜]?\([^()]*\)|√[^\W_]+)"
    r"(?:[_^](?:\([^()]*\)|[+−-]?[^\W_]+|[^\w(]))*[′″]*"
)


def _is_factor(text: str) -> bool:
    """Return True for a number, word or bracket with scripts: it needs no brackets after ``/``."""
    return _FACTOR.fullmatch(text) is not None


def _add_brackets(text: str) -> str:
    """Enclose the text in round brackets, unless one pair already encloses all of it."""
    if text[:1] == "(" and text[-1:] == ")":
        depth = 0
        for match in re.finditer(r"[()]", text):
            depth += 1 if match[0] == "(" else -1
            if not depth:
                if match.end() == len(text):
                    return text
                break
    return f"({text})"


# Scripts and accents

_BARE_SCRIPT = re.compile(r"[+−‑-]?\d+(?:\.\d+)?|(?:[^\W\d_][\u0300-\u036f]*)+\d*")
_UNMARKED_SCRIPTS: Final = {"′": "′", "″": "″", "‴": "‴", "'": "′", "''": "″", "°": "°", "∘": "°"}


def _format_script(mark: str, script: str) -> str:
    """Format ``_i`` or ``^(i+1)``; primes and degree signs need no mark."""
    if mark == "^" and script in _UNMARKED_SCRIPTS:
        return _UNMARKED_SCRIPTS[script]
    return mark + (script if len(script) == 1 or _BARE_SCRIPT.fullmatch(script) else _add_brackets(script))


_SPECIES = re.compile(r"(?=.*[A-Z]).*[A-Za-z]")
_COUNT = re.compile(r"\d+(?:\.\d+)?[a-z]*")
_CHARGE = re.compile(r"\d?[+−-]|[∙•·]")
_NUMBERED_CHARGE = re.compile(r"\d[+−]")
_POWER = re.compile(r"[−‑-]?\d")
_UNIT = re.compile("m|cm|mm|km|μm|µm|nm|s|min|h|d|day|yr|g|kg|mg|μg|µg|L|l|mL|ml|mol|mmol|ha|Hz|kJ|cal")


def _attach_scripts(base_text: str, sub: str, sup: str, is_upright: Callable[[], bool]) -> list[str]:
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
        return [_GLUE + sup]
    combined = base_text
    if _COUNT.fullmatch(sub) and _is_species(base_text, sub, is_upright):
        combined, sub = combined + sub, ""
    if not sub and _is_charge_or_unit_power(base_text, sup, combined != base_text, is_upright):
        combined, sup = combined + sup, ""
    if combined != base_text and not sub and not sup:
        return [combined]
    if _is_compound(combined) and not combined.replace(" ", "").isalpha():
        combined = _add_brackets(combined)
    scripts = ([_format_script("_", sub)] if sub else []) + ([_format_script("^", sup)] if sup else [])
    if base_text in _BIG_OPERATORS:
        return [" ", base_text, *scripts, " "]
    return [_SOFT_BLANK if base_text in _FUNCTION_NAMES else "", combined, *scripts, _SOFT_BLANK]


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
_ACCENTS: Final = {
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
_UNDERLINES: Final = dict.fromkeys("¯‾―_-−–\u0332", "\u0332") | dict.fromkeys(_BRACES, "")
_LETTER = re.compile(r"[^\W_][\u0300-\u036f\u20d0-\u20ff]*(?![^_^])")


def _add_accent(text: str, mark: str) -> str | None:
    """Return the text with the mark composed onto its letter or digit, or None unless it is a single one."""
    letter = _LETTER.match(text)
    if not letter or not mark:
        return None
    return unicodedata.normalize("NFC", letter[0] + mark) + text[letter.end() :]


# Elements
#
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
    return _join_pieces(pieces, tight=tight)


def _first_children(element: etree._Element, count: int) -> list[etree._Element]:
    """Return the first ``count`` children, padded with empty elements."""
    return [*list(element)[:count], *[_EMPTY_ELEMENT] * (count - len(element))]


def _append_token_element(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    _append_token(
        "".join(map(str, element.itertext(etree.Element))) if len(element) else element.text, pieces
    )


def _append_row(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    if not len(element):
        _append_token(element.text, pieces)
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
_UNITS: Final = {"em": 1, "ex": 0.43, "pt": 0.1, "px": 0.075, "mm": 0.28, "cm": 2.8, "in": 7.2, "pc": 1.2}
"""Ems in a unit, for type of 10 points."""
_WIDE_SPACE_NAME = re.compile(r"\s*(?:thin|medium|(?:very){0,2}thick)mathspace\s*")


def _append_space(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append a blank if the space is at least as wide as a thin space, 1/6 em."""
    if is_wide_space(element):
        pieces.append(" ")


def is_wide_space(element: etree._Element) -> bool:
    """Return True if an ``mspace`` separates words."""
    width = element.get("width", "")
    length = _LENGTH.fullmatch(width)
    if length:
        is_wide = float(length[1]) * _UNITS[length[2]] > 0.166
    else:
        is_wide = _WIDE_SPACE_NAME.fullmatch(width) is not None
    return is_wide or element.get("linebreak") == "newline"


def _append_fenced(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append a list in its brackets; one that has commas of its own needs no others."""
    separators = "".join(element.get("separators", ",").split())
    if any(child.tag in _OPERATOR_TAGS and (child.text or "").strip() in _SEPARATORS for child in element):
        separators = ""
    _append_token(element.get("open", "("), pieces)
    for index, child in enumerate(element):
        if index and separators:
            pieces.append(separators[min(index, len(separators)) - 1])
        _append_element(child, pieces, depth, tight)
    _append_token(element.get("close", ")"), pieces)


_OPERATOR_TAGS: Final = ("mo", MATHML_NAMESPACE + "mo")
_SEPARATORS: Final = (",", ";")
_ZERO_THICKNESS = re.compile(r"\s*+0++(?:\.0*+)?\s*+[a-z%]*+\s*")


def _append_fraction(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``a/b``, with brackets around sums and around products below the line."""
    numerator, denominator = (
        _render_element(child, depth, tight=tight) for child in _first_children(element, 2)
    )
    if _ZERO_THICKNESS.fullmatch(element.get("linethickness", "")):  # (n; k)
        pieces += (numerator, ";", denominator)
        return
    numerator = _add_brackets(numerator) if _is_compound(numerator) else numerator
    denominator = denominator if _is_factor(denominator) else _add_brackets(denominator)
    pieces += (" ", f"{numerator}/{denominator}", " ")


def _format_radical(sign: str, radicand: str) -> str:
    is_short = len(radicand) == 1 or radicand.isdecimal()
    return sign + (radicand if is_short else _add_brackets(radicand))


def _append_square_root(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    inner_pieces: list[str] = []
    _append_row(element, inner_pieces, depth, tight)
    pieces += (_SOFT_BLANK, _format_radical("√", _join_pieces(inner_pieces, tight=tight)), _SOFT_BLANK)


def _append_root(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``∛x``, ``∜x`` or ``x^(1/n)``."""
    radicand, index = (_render_element(child, depth, tight=tight) for child in _first_children(element, 2))
    sign = {"": "√", "2": "√", "3": "∛", "4": "∜"}.get(index)
    if sign:
        pieces += (_SOFT_BLANK, _format_radical(sign, radicand), _SOFT_BLANK)
    else:
        index = index if _is_factor(index) else _add_brackets(index)
        pieces += (
            radicand if _is_factor(radicand) else _add_brackets(radicand),
            f"^(1/{index})",
            _SOFT_BLANK,
        )


def _append_with_scripts(
    base: etree._Element, sub: str, sup: str, pieces: list[str], depth: int, tight: bool
) -> None:
    base_text = _render_element(base, depth, tight=tight)
    if not base_text and not _has_visible_piece(pieces):  # scripts of the text before the formula
        pieces.append(sub + sup)
    else:
        pieces += _attach_scripts(base_text, sub, sup, lambda: _is_upright(base))


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
    pieces.append("_".join(above_and_below) + _join_pieces(inner_pieces, tight=tight))


_PRESCRIPTS_TAGS: Final = ("mprescripts", MATHML_NAMESPACE + "mprescripts")

# Accents and limits


def _append_accented(base: etree._Element, mark: str, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``x̄`` or ``x̄_i``; a base of several letters stays without the accent."""
    inner_pieces: list[str] = []
    _append_element(base, inner_pieces, depth, tight)
    accented_text = _add_accent(_join_pieces(inner_pieces, tight=tight), mark)
    pieces += (accented_text, _SOFT_BLANK if "_" in accented_text else "") if accented_text else inner_pieces


def _append_under(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, script = _first_children(element, 2)
    below = _render_element(script, depth, tight=True)
    if below in _UNDERLINES:
        _append_accented(base, _UNDERLINES[below], pieces, depth, tight)
    else:
        _append_with_scripts(base, below, "", pieces, depth, tight)


def _append_over(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    base, script = _first_children(element, 2)
    above = _render_element(script, depth, tight=True)
    if above in _ACCENTS:
        _append_accented(base, _ACCENTS[above], pieces, depth, tight)
    else:
        _append_with_scripts(base, "", above, pieces, depth, tight)


# Tables


def _append_table(element: etree._Element, pieces: list[str], depth: int, tight: bool) -> None:
    """Append ``[a, b; c, d]``, or with the brackets of the source.

    A table without a visible piece before it is layout: the cells of a row form one formula, and rows are
    joined by a semicolon unless one continues in the next.
    """
    rows = [(list(row)[1:] if row.tag in _LABELED_ROW_TAGS else list(row) or [row]) for row in element]
    if not _has_visible_piece(pieces):
        for row in rows:
            inner_pieces: list[str] = []
            for cell in row:
                _append_element(cell, inner_pieces, depth, tight)
                inner_pieces.append(" ")
            if _has_visible_piece(inner_pieces) and not _continues_in(pieces, inner_pieces):
                pieces.append(";")
            pieces += inner_pieces
        return
    lines = [[_render_element(cell, depth, tight=tight) for cell in row] for row in rows]
    matrix = "; ".join(", ".join(cell.rstrip(",;") for cell in row if cell) for row in lines)
    pieces.append(matrix if _ends_with_opening_bracket(pieces) or not matrix else f"[{matrix}]")


_LABELED_ROW_TAGS: Final = ("mlabeledtr", MATHML_NAMESPACE + "mlabeledtr")

_HANDLERS: Final[dict[object, Callable[[etree._Element, list[str], int, bool], None]]] = {
    namespace + name: handler
    for handler, names in (
        (_append_token_element, "mi mn mo mtext ms"),
        (_skip, "annotation annotation-xml mphantom maligngroup malignmark none mprescripts"),
        (_append_first, "semantics"),
        (_append_selected, "maction"),
        (_append_space, "mspace"),
        (_append_fenced, "mfenced"),
        (_append_fraction, "mfrac"),
        (_append_square_root, "msqrt"),
        (_append_root, "mroot"),
        (_append_subscript, "msub"),
        (_append_superscript, "msup"),
        (_append_subscript_and_superscript, "msubsup munderover"),
        (_append_multiscripts, "mmultiscripts"),
        (_append_under, "munder"),
        (_append_over, "mover"),
        (_append_table, "mtable"),
    )
    for name in names.split()
    for namespace in ("", MATHML_NAMESPACE)
}
"""Handlers by element name. All other elements are rows: their children are concatenated."""
