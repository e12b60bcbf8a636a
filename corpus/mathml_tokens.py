"""The symbols of formulas in plain text: white space between them, brackets around what needs them.

A formula comes as its pieces in reading order: words, numbers, symbols, whole fractions.  What a piece
is follows from its text alone, whatever element it came from, and :func:`line` decides each blank from
the pieces on both sides.  So all spacings of the source come out the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

SOFT: Final = "\u2061"
"""A piece that asks for a blank before a word or number, but not before a bracket (``log x``, ``log(x)``).
It is Unicode's invisible function application, which asks for the same."""

GLUE: Final = "\u2060"
"""Begins a piece that is written without a blank after the one before it, as ``_`` and ``^`` do."""

_FUNCTIONS: Final = (
    "arg cos cosh cosec cot cov csc deg det diag dim div erf exp gcd inf ker lg lim ln log max min mod "
    "rank sec sgn sign sin sinh sup tan tanh tr var arccos arcsin arctan argmax argmin Cov Pr Var"
)
FUNCTIONS: Final = frozenset(_FUNCTIONS.split())
BIG: Final = frozenset("∑∏∐∫∬∭∮⋃⋂⨁⨂")

_WORD = 0  # and anything else that is not below
_BLANK, _SOFT, _NOTHING, _OPEN, _CLOSE, _BAR, _RELATION, _BINARY, _SIGN, _TIGHT, _SEPARATOR = range(1, 12)
_START, _PREFIX, _BIG = 12, 13, 14

_KINDS: Final = {
    **dict.fromkeys(["", "\u2062", "\u200b", "\u2060", "\ufeff"], _NOTHING),
    **dict.fromkeys([" "], _BLANK),
    **dict.fromkeys([SOFT, "\u2064"], _SOFT),  # 2064: invisible plus, of 2 1/2
    **dict.fromkeys("([{⟨〈⟦⌊⌈", _OPEN),
    **dict.fromkeys(")]}⟩〉⟧⌋⌉.:!′″‴°", _CLOSE),
    **dict.fromkeys(["|", "‖", "∥", "∣", "||"], _BAR),
    **dict.fromkeys("=<>≤≥≦≧⩽⩾≪≫≠≡≈≅≃≐≜≝∼∝→←↔⇒⇐⇔⟶⟵⟷⟹⇌⇋↦∈∉∋⊂⊃⊆⊇⊥≺≻⊢", _RELATION),
    **dict.fromkeys([":=", "==", "<=", ">=", "<<", ">>", "~", "->", "<-", "!="], _RELATION),
    **dict.fromkeys("×∗*⁎÷∩∪∖∧∨⊕⊗⊙", _BINARY),
    **dict.fromkeys("+−-–±∓", _SIGN),
    **dict.fromkeys(BIG | FUNCTIONS, _BIG),
    **dict.fromkeys("/∕⁄·⋅∙∘^_‐‑", _TIGHT),
    **dict.fromkeys(",;\u2063", _SEPARATOR),  # 2063: invisible comma
}
_GLUED: Final = "_^" + GLUE
_NO_OPERAND: Final = frozenset((_START, _OPEN, _RELATION, _BINARY, _SIGN, _TIGHT, _SEPARATOR, _PREFIX))
_TILDES: Final = ("~", "∼")
_UNSEEN: Final = frozenset((_BLANK, _SOFT, _NOTHING))
_SPACED: Final = frozenset((_RELATION, _BINARY, _SIGN))
_ENDS: Final = frozenset((_CLOSE, _SEPARATOR, _RELATION))

_INVISIBLE = re.compile("[\u200b-\u200d\u2060\ufeff\u00ad]")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_BEFORE_WORDS: Final = frozenset("Δδ∂∇dμµ∆")
"""Letters that belong to the word that follows."""


def token(text: str | None, pieces: list[str]) -> None:
    """Add the text of a token element: blanks at its ends count, blanks in it are one."""
    if not text:
        return
    if text in FUNCTIONS:
        pieces += (SOFT, text, SOFT)
    elif text in BIG:
        pieces += (" ", text, " ")
    elif text.isalnum() or text in _KINDS:
        pieces.append(text)
    else:
        text = _INVISIBLE.sub("", text)
        words = text.split()
        if text[:1].isspace():
            pieces.append(" ")
        if words:
            inner = " ".join(words)
            if inner in FUNCTIONS or inner in BIG:
                token(inner, pieces)
            else:
                pieces.append(inner)
            if text[-1].isspace():
                pieces.append(" ")


def line(pieces: Sequence[str], *, tight: bool) -> str:
    """The pieces in one line; ``tight`` in scripts, where operators have no blanks around them."""
    if len(pieces) == 1 and pieces[0] not in _KINDS:
        return pieces[0]
    written: list[str] = []
    before, last = _START, ""
    gap = soft = False
    bars = 0
    for index, piece in enumerate(pieces):
        kind = _KINDS.get(piece, _WORD)
        if kind in _UNSEEN:
            gap |= kind == _BLANK
            soft |= kind == _SOFT
            continue
        if piece[0] in _GLUED and len(piece) > 1:  # a script is part of what stands before it
            written.append(piece.removeprefix(GLUE))
            if before not in _SPACED and before != _BIG:
                before, last = _WORD, piece
            gap = False
            continue
        if kind == _BAR:
            if before in _NO_OPERAND or before == _BIG:
                kind, bars = _OPEN, bars + 1
            else:
                kind, bars = (_CLOSE, bars - 1) if bars else (_TIGHT, 0)
        elif (kind == _SIGN or piece in _TILDES) and before in _NO_OPERAND:
            kind = _PREFIX
        elif kind in (_SIGN, _BINARY) and _is_last(pieces, index):
            kind = _CLOSE  # the charge of Na+, the star of y*
        elif piece == "\u2063":
            piece = ","
        if _blank(before, kind, last, piece, gap, soft, tight):
            written.append(" ")
        written.append(piece)
        before, last = kind, piece
        gap = soft = False
    return "".join(written)


def _is_last(pieces: Sequence[str], index: int) -> bool:
    """Whether nothing follows, or nothing but what ends a term."""
    following = (pieces[position] for position in range(index + 1, len(pieces)))
    return next(_kinds(following), _CLOSE) in _ENDS


def _blank(before: int, kind: int, last: str, piece: str, gap: bool, soft: bool, tight: bool) -> bool:
    """Whether a blank stands between two pieces."""
    if before in (_START, _OPEN, _PREFIX) or kind in (_CLOSE, _SEPARATOR):
        return False
    if before in _SPACED or kind in _SPACED or before == _SEPARATOR:
        return not tight
    if before == _TIGHT or kind == _TIGHT:
        return False
    if gap:
        return True
    if tight or kind not in (_WORD, _BIG):
        return False
    starts = piece[0].isalnum()
    if soft:
        return starts or piece[0] in "√∛∜∂∇"
    # A word beside a number or another word; single letters are factors, or a word that was spelled.
    if before == _CLOSE and len(piece) > 1:
        return piece.isalpha() and last in ")]}"
    if before != _WORD or not starts:
        return False
    if len(piece) > 1 and piece.isalpha():
        return (last.isalpha() and last not in _BEFORE_WORDS) or bool(_NUMBER.fullmatch(last))
    return len(last) > 1 and last.isalpha() and piece[0].isalpha()


def _kinds(pieces: Iterable[str]) -> Iterator[int]:
    """The kinds of those pieces that are to be seen."""
    for piece in pieces:
        kind = _KINDS.get(piece, _WORD)
        if kind not in _UNSEEN:
            yield kind


def visible(pieces: Sequence[str]) -> bool:
    """Whether anything of the pieces is to be seen."""
    return next(_kinds(pieces), None) is not None


def opens(pieces: Sequence[str]) -> bool:
    """Whether the last piece opens a bracket, or may."""
    return next(_kinds(reversed(pieces)), _WORD) in (_OPEN, _BAR)


def goes_on(pieces: Sequence[str], following: Sequence[str]) -> bool:
    """Whether a formula goes on in the pieces that follow: an operator or a separator is between them."""
    ends, begins = next(_kinds(reversed(pieces)), _START), next(_kinds(following), _WORD)
    return ends in _NO_OPERAND or begins in _SPACED or begins == _SEPARATOR


_STRUCTURE = re.compile(r"([(\[{⟨〈⌊⌈])|([)\]}⟩〉⌋⌉])|(?<![_^(])[ /∕+−±×·⋅=<>≤≥,;-]")


def is_compound(text: str) -> bool:
    """Whether an operator or a blank stands outside of brackets: such a term needs brackets in another."""
    level = 0
    for found in _STRUCTURE.finditer(text):
        if found[1]:
            level += 1
        elif found[2]:
            level -= 1
        elif level <= 0 and found.start():  # a sign before everything makes no second term
            return True
    return False


_FACTOR = re.compile(
    r"(?:\d+(?:\.\d+)?%?|[∂∇]?[^\W\d_][\u0300-\u036f\u20d0-\u20ff]*[^\W_]*|[√∛∜]?\([^()]*\)|√[^\W_]+)"
    r"(?:[_^](?:\([^()]*\)|[+−-]?[^\W_]+|[^\w(]))*[′″]*"
)


def is_factor(text: str) -> bool:
    """Whether it is a number, a word or a bracket, with scripts: all else needs brackets after ``/``."""
    return _FACTOR.fullmatch(text) is not None


def in_brackets(text: str) -> str:
    """The text in round brackets, unless one pair is around all of it already."""
    if text[:1] == "(" and text[-1:] == ")":
        level = 0
        for found in re.finditer(r"[()]", text):
            level += 1 if found[0] == "(" else -1
            if not level:
                if found.end() == len(text):
                    return text
                break
    return f"({text})"
