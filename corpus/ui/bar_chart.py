"""A chart of bars as inline SVG in the page's own colours (html_page.py); pointing at a bar shows its
value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .html_page import escape_html

_WIDTH: Final = 640
_HEIGHT: Final = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 630, 20, 200
_MAX_GRID_LINES: Final = 5
"""Lines above the lowest, at most."""
_LABEL_CHARACTER_WIDTH: Final = 9
"""Pixels a character of a label takes, at most, with what keeps it from the next one."""


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar: its label below, in which words its value is told, and the value, from 0 on."""

    label: str
    tooltip: str
    value: int


def render_bar_chart(title: str, bars: Sequence[Bar], x_label: str, y_label: str) -> str:
    """The chart; all arguments are plain text.

    Args:
        x_label: what the labels below the bars are.
        y_label: what the bars' heights are.
    """
    max_value = max((bar.value for bar in bars), default=0)
    step = round_up_to_nice_number(-(-max_value // _MAX_GRID_LINES))
    axis_max = step * max(1, -(-max_value // step))
    parts = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" role="img" fill="currentColor">',
        f"<title>{escape_html(title)}</title>",
        *_render_grid(step, axis_max),
        *_render_bars(bars, axis_max),
        *_render_labels(bars),
        _render_label(_RIGHT, _BOTTOM + 40, x_label, "end"),
        _render_label(_LEFT, _TOP - 8, y_label, "start"),
    ]
    return "".join([*parts, "</svg>"])


def round_up_to_nice_number(number: int) -> int:
    """The least of 1, 2, 5, 10, 20, 50 ... that is not below the number."""
    power = 1
    while number > 5 * power:
        power *= 10
    return next(digit * power for digit in (1, 2, 5) if digit * power >= number)


def _render_grid(step: int, axis_max: int) -> Iterator[str]:
    for level in range(0, axis_max + 1, step):
        y = _BOTTOM - level / axis_max * (_BOTTOM - _TOP)
        yield f'<line x1="{_LEFT}" y1="{y:.1f}" x2="{_RIGHT}" y2="{y:.1f}" stroke="var(--line)"/>'
        yield _render_label(_LEFT - 8, y + 4, f"{level:,}", "end")


def _render_bars(bars: Sequence[Bar], axis_max: int) -> Iterator[str]:
    bar_width = (_RIGHT - _LEFT) / max(1, len(bars))
    for index, bar in enumerate(bars):
        if bar.value:
            height = max(1.0, bar.value / axis_max * (_BOTTOM - _TOP))  # one is to be seen beside a million
            yield (
                f'<rect x="{_LEFT + index * bar_width:.1f}" y="{_BOTTOM - height:.1f}" '
                f'width="{0.85 * bar_width:.1f}" '
                f'height="{height:.1f}" fill="var(--ours)"><title>{escape_html(bar.tooltip)}</title></rect>'
            )


def _render_labels(bars: Sequence[Bar]) -> Iterator[str]:
    """The labels of so many bars, at equal distances, as there is room for."""
    bar_width = (_RIGHT - _LEFT) / max(1, len(bars))
    longest_label = max((len(bar.label) for bar in bars), default=1)
    label_step = max(1, -(-longest_label * _LABEL_CHARACTER_WIDTH // max(1, int(bar_width))))
    for index in range(0, len(bars), label_step):
        yield _render_label(_LEFT + (index + 0.425) * bar_width, _BOTTOM + 18, bars[index].label, "middle")


def _render_label(x: float, y: float, label: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape_html(label)}</text>'
