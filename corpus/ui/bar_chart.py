"""Bar chart as inline SVG in the colours of html_page.py; hovering over a bar shows its value."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .html_page import escape_html

_WIDTH: Final = 640
_HEIGHT: Final = 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 104, 630, 20, 200
_MAX_GRID_LINES: Final = 5
"""Largest number of grid lines above the axis."""
_LABEL_CHARACTER_WIDTH: Final = 9
"""Pixels per character of a label, including the space between labels."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        label: text on the x axis.
        tooltip: text shown on hover.
        value: height, >= 0.
    """

    label: str
    tooltip: str
    value: int


def render_bar_chart(title: str, bars: Sequence[Bar], x_label: str, y_label: str) -> str:
    """Render a bar chart as SVG. All arguments are plain text.

    Args:
        title: accessible title.
        bars: the bars, from left to right.
        x_label: meaning of the bars' labels.
        y_label: meaning of the bars' heights.
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
    """Return the smallest of 1, 2, 5, 10, 20, 50 ... that is >= ``number``."""
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
            # At least 1 px, so that small bars are visible.
            height = max(1.0, bar.value / axis_max * (_BOTTOM - _TOP))
            yield (
                f'<rect x="{_LEFT + index * bar_width:.1f}" y="{_BOTTOM - height:.1f}" '
                f'width="{0.85 * bar_width:.1f}" '
                f'height="{height:.1f}" fill="var(--ours)"><title>{escape_html(bar.tooltip)}</title></rect>'
            )


def _render_labels(bars: Sequence[Bar]) -> Iterator[str]:
    """Render as many labels as fit, at equal distances."""
    bar_width = (_RIGHT - _LEFT) / max(1, len(bars))
    longest_label = max((len(bar.label) for bar in bars), default=1)
    label_step = max(1, -(-longest_label * _LABEL_CHARACTER_WIDTH // max(1, int(bar_width))))
    for index in range(0, len(bars), label_step):
        yield _render_label(_LEFT + (index + 0.425) * bar_width, _BOTTOM + 18, bars[index].label, "middle")


def _render_label(x: float, y: float, label: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape_html(label)}</text>'
