"""The size-against-fertility plot of the report, as inline SVG in the page's own colours."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

_WIDTH: Final = 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 620, 14, 290
_LEGEND_ROW: Final = 20
_MARKS: Final = (
    "M-5-5h10v10h-10z",
    "M0-7L6.5 5h-13z",
    "M0-7L7 0L0 7L-7 0z",
    "M0 7L6.5-5h-13z",
    "M-6-2h12v4h-12z",
)
"""A shape for each other vocabulary, so that the plot can be read without colours."""


def chart(
    points: Sequence[dict[str, Any]], others: Sequence[dict[str, Any]], name: str, names: Sequence[str]
) -> str:
    """The plot: a line through ``points``, a mark for each of ``others``, a legend below.

    Args:
        points: ``size`` and ``fertility`` of the vocabulary's beginnings.
        others: the same of other vocabularies.
        name: the vocabulary's name, and ``names`` the others', for HTML already.
    """
    across, ticks = _sizes([one["size"] for one in (*points, *others)])
    up, grades = _fertilities([one["fertility"] for one in (*points, *others)])
    height = _BOTTOM + 50 + _LEGEND_ROW * (1 + len(others))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" fill="currentColor">',
        f"<title>Pieces a word against the size of the vocabulary {name}</title>",
        *(
            _line(_LEFT, up(one), _RIGHT, up(one)) + _label(_LEFT - 8, up(one) + 4, f"{one:g}", "end")
            for one in grades
        ),
        *(_line(across(one), _BOTTOM, across(one), _BOTTOM + 5) for one in ticks),
        *(_label(across(one), _BOTTOM + 19, f"{one:,}", "middle") for one in ticks),
        _label(_RIGHT, _BOTTOM + 36, "entries of the vocabulary (logarithmic)", "end"),
        _label(_LEFT + 6, _TOP + 2, "pieces a word", "start"),
        '<polyline fill="none" stroke="var(--ours)" stroke-width="2" points="'
        + " ".join(f"{across(one['size']):.1f},{up(one['fertility']):.1f}" for one in points)
        + '"/>',
        *(_dot(across(one["size"]), up(one["fertility"])) for one in points),
        *(_mark(at, across(one["size"]), up(one["fertility"])) for at, one in enumerate(others)),
        _dot(_LEFT + 8, _BOTTOM + 56) + _label(_LEFT + 22, _BOTTOM + 60, name, "start"),
    ]
    for at, label in enumerate(names):
        below = _BOTTOM + 56 + _LEGEND_ROW * (at + 1)
        parts.append(_mark(at, _LEFT + 8, below) + _label(_LEFT + 22, below + 4, label, "start"))
    return "".join([*parts, "</svg>"])


def _sizes(sizes: Sequence[int]) -> tuple[Callable[[float], float], list[int]]:
    """The place of a size on a logarithmic axis, and the powers of two (or thousands of them) to mark."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    room = max(0.25, 0.03 * (high - low))
    low, high = low - room, high + room
    unit = 1000 if max(sizes) >= 2000 else 1
    ticks = [unit * 2**power for power in range(24)]
    return (
        lambda size: _LEFT + (math.log2(size) - low) / (high - low) * (_RIGHT - _LEFT),
        [tick for tick in ticks if low <= math.log2(tick) <= high],
    )


def _fertilities(values: Sequence[float]) -> tuple[Callable[[float], float], list[float]]:
    """The place of a fertility, and values to mark: from 1, the least there is for words that are whole."""
    low, high = min(1.0, *values), max(1.1, *values)
    step = next(
        step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if (high - low) / step <= 7 or step == 50
    )
    first = math.ceil(round(low / step, 6))
    top = low + (high - low) * 1.06
    grades = [round(number * step, 6) for number in range(first, math.floor(round(top / step, 6)) + 1)]
    return lambda value: _BOTTOM - (value - low) / (top - low) * (_BOTTOM - _TOP), grades


def _line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--line)"/>'


def _label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _dot(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--ours)"/>'


def _mark(at: int, x: float, y: float) -> str:
    number = at % len(_MARKS)
    paint = (
        f'fill="none" stroke-width="2" stroke="var(--c{number + 1})"'  # hollow: marks may lie on one another
    )
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{_MARKS[number]}" {paint}/>'
