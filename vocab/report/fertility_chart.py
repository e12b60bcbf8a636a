"""Plot of fertility against vocabulary size, as inline SVG in the colours of the page."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final

_WIDTH: Final = 640
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 620, 14, 290
_LEGEND_ROW_HEIGHT: Final = 20
_MARKER_PATHS: Final = (
    "M-5-5h10v10h-10z",
    "M0-7L6.5 5h-13z",
    "M0-7L7 0L0 7L-7 0z",
    "M0 7L6.5-5h-13z",
    "M-6-2h12v4h-12z",
)
"""Marker shapes of baselines, so that the plot is readable without colours."""


def render_chart(
    points: Sequence[dict[str, Any]],
    baselines: Sequence[dict[str, Any]],
    name: str,
    baseline_names: Sequence[str],
) -> str:
    """Return the SVG: a line through ``points``, a marker for each baseline, and a legend.

    Args:
        points: ``size`` and ``fertility`` of the first N pieces of the vocabulary.
        baselines: ``size`` and ``fertility`` of other vocabularies.
        name: name of the vocabulary, as HTML.
        baseline_names: names of the baselines, as HTML.
    """
    x_of_size, x_ticks = _make_size_axis([entry["size"] for entry in (*points, *baselines)])
    y_of_fertility, y_ticks = _make_fertility_axis([entry["fertility"] for entry in (*points, *baselines)])
    height = _BOTTOM + 50 + _LEGEND_ROW_HEIGHT * (1 + len(baselines))
    elements = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" role="img" fill="currentColor">',
        f"<title>Pieces a word against the size of the vocabulary {name}</title>",
        *(
            _svg_line(_LEFT, y_of_fertility(entry), _RIGHT, y_of_fertility(entry))
            + _svg_label(_LEFT - 8, y_of_fertility(entry) + 4, f"{entry:g}", "end")
            for entry in y_ticks
        ),
        *(_svg_line(x_of_size(entry), _BOTTOM, x_of_size(entry), _BOTTOM + 5) for entry in x_ticks),
        *(_svg_label(x_of_size(entry), _BOTTOM + 19, f"{entry:,}", "middle") for entry in x_ticks),
        _svg_label(_RIGHT, _BOTTOM + 36, "entries of the vocabulary (logarithmic)", "end"),
        _svg_label(_LEFT + 6, _TOP + 2, "pieces a word", "start"),
        '<polyline fill="none" stroke="var(--ours)" stroke-width="2" points="'
        + " ".join(
            f"{x_of_size(entry['size']):.1f},{y_of_fertility(entry['fertility']):.1f}" for entry in points
        )
        + '"/>',
        *(_svg_dot(x_of_size(entry["size"]), y_of_fertility(entry["fertility"])) for entry in points),
        *(
            _svg_marker(index, x_of_size(entry["size"]), y_of_fertility(entry["fertility"]))
            for index, entry in enumerate(baselines)
        ),
        _svg_dot(_LEFT + 8, _BOTTOM + 56) + _svg_label(_LEFT + 22, _BOTTOM + 60, name, "start"),
    ]
    for index, label in enumerate(baseline_names):
        legend_y = _BOTTOM + 56 + _LEGEND_ROW_HEIGHT * (index + 1)
        elements.append(
            _svg_marker(index, _LEFT + 8, legend_y) + _svg_label(_LEFT + 22, legend_y + 4, label, "start")
        )
    return "".join([*elements, "</svg>"])


def _make_size_axis(sizes: Sequence[int]) -> tuple[Callable[[float], float], list[int]]:
    """Return the map from size to x (logarithmic), and the ticks: powers of two, or their thousands."""
    low, high = math.log2(min(sizes)), math.log2(max(sizes))
    margin = max(0.25, 0.03 * (high - low))
    low, high = low - margin, high + margin
    unit = 1000 if max(sizes) >= 2000 else 1
    ticks = [unit * 2**power for power in range(24)]
    return (
        lambda size: _LEFT + (math.log2(size) - low) / (high - low) * (_RIGHT - _LEFT),
        [tick for tick in ticks if low <= math.log2(tick) <= high],
    )


def _make_fertility_axis(values: Sequence[float]) -> tuple[Callable[[float], float], list[float]]:
    """Return the map from fertility to y, and the ticks; the axis starts at 1, where all words are whole."""
    low, high = min(1.0, *values), max(1.1, *values)
    step = next(
        step for step in (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50) if (high - low) / step <= 7 or step == 50
    )
    first = math.ceil(round(low / step, 6))
    top = low + (high - low) * 1.06
    ticks = [round(number * step, 6) for number in range(first, math.floor(round(top / step, 6)) + 1)]
    return lambda value: _BOTTOM - (value - low) / (top - low) * (_BOTTOM - _TOP), ticks


def _svg_line(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--line)"/>'


def _svg_label(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text}</text>'


def _svg_dot(x: float, y: float) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="var(--ours)"/>'


def _svg_marker(index: int, x: float, y: float) -> str:
    marker_index = index % len(_MARKER_PATHS)
    style = (
        'fill="none" stroke-width="2" '
        f'stroke="var(--c{marker_index + 1})"'
    )  # hollow: marks may lie on one another
    return f'<path transform="translate({x:.1f} {y:.1f})" d="{_MARKER_PATHS[marker_index]}" {style}/>'
