"""A chart of bars as inline SVG in the page's own colours (page.py); pointing at a bar shows its value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .page import text

_WIDTH: Final = 640
_HEIGHT: Final = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 630, 20, 200
_GRADES: Final = 5
"""Lines above the lowest, at most."""
_ROOM: Final = 9
"""Pixels a character of a label takes, at most, with what keeps it from the next one."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label below, in which words its value is told, and the value, from 0 on."""

    label: str
    told: str
    value: int


def chart(title: str, bars: Sequence[Bar], across: str, up: str) -> str:
    """The chart; all arguments are plain text.

    Args:
        across: what the labels below the bars are.
        up: what the bars' heights are.
    """
    greatest = max((bar.value for bar in bars), default=0)
    step = round_up(-(-greatest // _GRADES))
    top = step * max(1, -(-greatest // step))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" fill="currentColor">',
        f"<title>{text(title)}</title>",
        *_grades(step, top),
        *_bars(bars, top),
        *_labels(bars),
        _label(_RIGHT, _BOTTOM + 40, across, "end"),
        _label(_LEFT, _TOP - 8, up, "start"),
    ]
    return "".join([*parts, "</svg>"])


def round_up(number: int) -> int:
    """The least of 1, 2, 5, 10, 20, 50 ... that is not below the number."""
    power = 1
    while number > 5 * power:
        power *= 10
    return next(digit * power for digit in (1, 2, 5) if digit * power >= number)


def _grades(step: int, top: int) -> Iterator[str]:
    for grade in range(0, top + 1, step):
        y = _BOTTOM - grade / top * (_BOTTOM - _TOP)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}" stroke="var(--line)"/>'
        yield _label(_LEFT - 8, y + 4, f"{grade:,}", "end")


def _bars(bars: Sequence[Bar], top: int) -> Iterator[str]:
    each = (_RIGHT - _LEFT) / max(1, len(bars))
    for at, bar in enumerate(bars):
        if bar.value:
            height = max(1.0, bar.value / top * (_BOTTOM - _TOP))  # one is to be seen beside a million
            yield (
                f'<rect x="{_LEFT + at * each:.1f}" y="{_BOTTOM - height:.1f}" width="{0.85 * each:.1f}" '
                f'height="{height:.1f}" fill="var(--ours)"><title>{text(bar.told)}</title></rect>'
            )


def _labels(bars: Sequence[Bar]) -> Iterator[str]:
    """The labels of so many bars, at equal distances, as there is room for."""
    each = (_RIGHT - _LEFT) / max(1, len(bars))
    longest = max((len(bar.label) for bar in bars), default=1)
    every = max(1, -(-longest * _ROOM // max(1, int(each))))
    for at in range(0, len(bars), every):
        yield _label(_LEFT + (at + 0.425) * each, _BOTTOM + 18, bars[at].label, "middle")


def _label(x: float, y: float, label: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(label)}</text>'
