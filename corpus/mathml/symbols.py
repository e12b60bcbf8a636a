"""Symbols of formulas in plain text: spacing and brackets.

A formula is a sequence of pieces in reading order: words, numbers, symbols, whole fractions. The text of a
piece alone determines its class, and :func:`join_pieces` derives each blank from the classes on both sides.
So the spacing is independent of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

SOFT_BLANK: Final = "\u2061"
"""A piece that requests a blank before a word or number, but not before a bracket: ``log x``, ``log(x)``.
It is Unicode's FUNCTION APPLICATION.
"""

GLUE: Final = "\u2060"
"""Prefix of a piece that attaches to the piece before without a blank, as ``_`` and ``^`` do."""

_FUNCTION_NAME_LIST: Final = (
    "arg cos cosh cosec cot cov csc deg det diag dim div erf exp gcd inf ker lg lim ln log max min mod "
    "rank sec sgn sign sin sinh sup tan tanh tr var arccos arcsin arctan argmax argmin Cov Pr Var"
)
FUNCTION_NAMES: Final = frozenset(_FUNCTION_NAME_LIST.split())
BIG_OPERATORS: Final = frozenset("∑∏∐∫∬∭∮⋃⋂⨁⨂")

_WORD = 0  # and anything else that is not below
_BLANK, _SOFT, _NOTHING, _OPEN, _CLOSE, _BAR, _RELATION, _BINARY, _SIGN, _TIGHT, _SEPARATOR = range(1, 12)
_START, _PREFIX, _BIG = 12, 13, 14

_SYMBOL_CLASSES: Final = {
    **dict.fromkeys(["", "\u2062", "\u200b", "\u2060", "\ufeff"], _NOTHING),
    **dict.fromkeys([" "], _BLANK),
    **dict.fromkeys([SOFT_BLANK, "\u2064"], _SOFT),  # 2064: invisible plus, of 2 1/2
    **dict.fromkeys("([{⟨〈\u2329⟦〚⌊⌈", _OPEN),
    **dict.fromkeys(")]}⟩〉\u232a⟧〛⌋⌉.:!′″‴°", _CLOSE),
    **dict.fromkeys(["|", "‖", "∥", "∣", "||"], _BAR),
    **dict.fromkeys("=<>≤≥≦≧⩽⩾≪≫≠≡≈≅≍≃≐≜≝∼∝→←↔⇒⇐⇔⟶⟵⟷⟹⇌⇋↦∈∉∋⊂⊃⊆⊇⊥≺≻⊢", _RELATION),
    **dict.fromkeys([":=", "==", "<=", ">=", "<<", ">>", "~", "->", "<-", "!="], _RELATION),
    **dict.fromkeys("×∗*⁎÷∩∪∖∧∨⊕⊗⊙", _BINARY),
    **dict.fromkeys("+−-–±∓", _SIGN),
    **dict.fromkeys(BIG_OPERATORS | FUNCTION_NAMES, _BIG),
    **dict.fromkeys("/∕⁄·⋅∙∘^_‐‑", _TIGHT),
    **dict.fromkeys(",;\u2063", _SEPARATOR),  # 2063: invisible comma
}
_GLUE_MARKS: Final = "_^" + GLUE
_EXPECTS_OPERAND: Final = frozenset((_START, _OPEN, _RELATION, _BINARY, _SIGN, _TIGHT, _SEPARATOR, _PREFIX))
_TILDES: Final = ("~", "∼")
_INVISIBLE_CLASSES: Final = frozenset((_BLANK, _SOFT, _NOTHING))
_SPACED_CLASSES: Final = frozenset((_RELATION, _BINARY, _SIGN))
_TERM_ENDS: Final = frozenset((_CLOSE, _SEPARATOR, _RELATION))

_INVISIBLE_CHARACTERS = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_WORD_PREFIXES: Final = frozenset("Δδ∂∇dμµ∆")
"""Letters that belong to the word after them."""


def append_token(text: str | None, pieces: list[str]) -> None:
    """Append the text of a token element: white space at its ends becomes blanks, inside single blanks."""
    if not text:
        return
    if text in FUNCTION_NAMES:
        pieces += (SOFT_BLANK, text, SOFT_BLANK)
    elif text in BIG_OPERATORS:
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
            if inner in FUNCTION_NAMES or inner in BIG_OPERATORS:
                append_token(inner, pieces)
            else:
                pieces.append(inner)
            if text[-1].isspace():
                pieces.append(" ")


def join_pieces(pieces: Sequence[str], *, tight: bool) -> str:
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
            output.append(piece.removeprefix(GLUE))
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


def has_visible_piece(pieces: Sequence[str]) -> bool:
    """Return True if any piece is visible."""
    return next(_iter_visible_classes(pieces), None) is not None


def ends_with_opening_bracket(pieces: Sequence[str]) -> bool:
    """Return True if the last visible piece is an opening bracket or a bar."""
    return next(_iter_visible_classes(reversed(pieces)), _WORD) in (_OPEN, _BAR)


def continues_in(pieces: Sequence[str], following: Sequence[str]) -> bool:
    """Return True if the formula continues in ``following``: an operator or separator joins them."""
    last_class, first_class = (
        next(_iter_visible_classes(reversed(pieces)), _START),
        next(_iter_visible_classes(following), _WORD),
    )
    return last_class in _EXPECTS_OPERAND or first_class in _SPACED_CLASSES or first_class == _SEPARATOR


_STRUCTURE = re.compile(r"([(\[{⟨〈\u2329⌊⌈])|([)\]}⟩〉\u232a⌋⌉])|(?<![_^(])[ /∕+−±×·⋅=<>≤≥,;-]")


def is_compound(text: str) -> bool:
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


def is_factor(text: str) -> bool:
    """Return True for a number, word or bracket with scripts: it needs no brackets after ``/``."""
    return _FACTOR.fullmatch(text) is not None


def add_brackets(text: str) -> str:
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
