"""Charts of curves as inline SVG: lines with markers, and their legend.

A chart is as wide as a phone, in the colours of the page; pages and pictures place charts side by side.
The widths of texts are estimated from above, since a browser chooses the font.
"""

from __future__ import annotations

import html
import itertools
import math
import string
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from bioshards.corpus.stats.document_stats import round_up_to_nice_number
from bioshards.corpus.ui.html_page import spell_out_invisible

WIDTH: Final = 360
NUM_COLOURS: Final = 7
NUM_MARKERS: Final = 5
_TOP, _PLOT_HEIGHT = 24, 150
_BOTTOM: Final = _TOP + _PLOT_HEIGHT
_FONT_SIZE: Final = 11
_ROW_HEIGHT: Final = 17
_GAP: Final = 8
"""Least distance between texts."""
_NARROW: Final = frozenset(string.ascii_lowercase + string.digits + string.whitespace + ".,:;-()[]/'") - {
    "m",
    "w",
}
_MARKER_PATHS: Final = (
    "M-4-4h8v8h-8z",
    "M0-5L5 4h-10z",
    "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0-8 0z",
    "M0-5.5L5.5 0L0 5.5L-5.5 0z",
    "M0 5L5-4h-10z",
)
_STROKES: Final = {
    "solid": 'stroke-width="1.5"',
    "dashed": 'stroke-width="1.5" stroke-dasharray="5 3"',
    "dotted": 'stroke-width="1.5" stroke-dasharray="1.5 3"',
    "faint": 'stroke-width=".5" opacity=".5"',
}
MAX_MARKERS: Final = 30
"""Largest number of markers on a line."""
LineStyle = Literal["solid", "dashed", "dotted", "faint", "none"]
Marker = int | Literal["dot"] | None


@dataclass(frozen=True, slots=True)
class Chart:
    """SVG elements below each other, with an accessible title; a template inserts a chart as it is."""

    title: str
    height: float
    elements: Sequence[str]

    def __html__(self) -> str:
        return (
            f'<svg viewBox="0 0 {WIDTH} {self.height:g}" width="{WIDTH}" height="{self.height:g}" role="img" '
            f'fill="currentColor" font-size="{_FONT_SIZE}"><title>{_escape(self.title)}</title>'
            f"{''.join(self.elements)}</svg>"
        )


@dataclass(frozen=True, slots=True)
class Axis:
    """Range and ticks of an axis; the unit is shown apart from the label."""

    label: str
    unit: str
    low: float
    high: float
    ticks: Sequence[float]
    tick_labels: Sequence[str]
    is_log: bool = False

    def scale(self, start: float, end: float) -> Callable[[float], float]:
        """Return the map from values to the pixels between ``start`` and ``end``."""
        transform = math.log if self.is_log else float
        low, high = transform(self.low), transform(self.high)
        return lambda value: start + (transform(value) - low) / (high - low) * (end - start)


@dataclass(frozen=True, slots=True)
class Line:
    """A line; NaN leaves a gap.

    Attributes:
        name: name in the legend, if any.
        style: ``none`` draws only markers, ``faint`` a thin line behind others.
        marker: number of a hollow marker, or "dot".
    """

    xs: Sequence[float]
    ys: Sequence[float]
    colour: int = 0
    name: str = ""
    style: LineStyle = "solid"
    marker: Marker = None


def make_linear_axis(
    label: str,
    values: Iterable[float],
    *,
    unit: str = "",
    max_ticks: int = 5,
    is_round: bool = True,
    is_integer: bool = False,
    is_percent: bool = False,
) -> Axis:
    """Make an axis with ticks at multiples of 1, 2 or 5 times a power of ten.

    Args:
        values: finite values that it shows, one at least.
        is_round: True to begin and end at ticks.
    """
    values = list(values)
    low, high = min(values), max(values)
    if high - low <= 1e-6 * max(abs(low), abs(high)):
        low, high = (low - 1, high + 1) if low and not is_round else (min(low, 0), max(high, 0) or 1)
    step = round_up_to_nice_number((high - low) / max_ticks)
    step = max(1, step) if is_integer else step
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    if is_round:
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        low, high = first * step, last * step
    ticks = [number * step for number in range(first, last + 1)]
    labels = [f"{100 * tick:.6g} %" for tick in ticks] if is_percent else _format_ticks(ticks)
    return Axis(label, unit, low, high, ticks, labels)


def make_log_axis(label: str, values: Iterable[float], *, unit: str = "") -> Axis:
    """Make a logarithmic axis with ticks at 1, 2 and 5 times powers of ten, or at powers of ten alone."""
    values = list(values)
    margin = max(0.03 * math.log(max(values) / min(values)), 0.05)
    low, high = min(values) * math.exp(-margin), max(values) * math.exp(margin)
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    for digits, power_step in ((1, 2, 5), 1), ((1,), 1), ((1,), -(-len(powers) // 7)):
        ticks = [digit * 10.0**power for power in powers[::power_step] for digit in digits]
        ticks = [tick for tick in ticks if low <= tick <= high]
        if len(ticks) <= 9:
            break
    if len(ticks) < 2:
        ticks = list(make_linear_axis(label, (low, high), is_round=False).ticks)
    return Axis(
        label, f"{unit}, logarithmic".removeprefix(", "), low, high, ticks, _format_ticks(ticks), True
    )


def draw_lines(title: str, lines: Sequence[Line], x_axis: Axis, y_axis: Axis) -> Chart:
    """Draw lines, and below them a legend of those with a name."""
    left, elements = _draw_y_axis(y_axis)
    elements.append(_draw_rule(left, _BOTTOM, WIDTH, _BOTTOM))
    x_of, y_of = x_axis.scale(left + 6, WIDTH - _GAP), y_axis.scale(_BOTTOM, _TOP)
    elements += _draw_x_labels(
        [(x_of(tick), label) for tick, label in zip(x_axis.ticks, x_axis.tick_labels, strict=True)]
    )
    elements.append(_draw_x_title(f"{x_axis.label} ({x_axis.unit})" if x_axis.unit else x_axis.label))
    for line in lines:
        pixels = [
            (x_of(x), y_of(y) if math.isfinite(y) else math.nan)
            for x, y in zip(line.xs, line.ys, strict=True)
        ]
        elements += _draw_line(line, pixels)
    legend, height = _draw_legend(lines, _BOTTOM + 44)
    return Chart(title, height, [*elements, *legend])


def draw_legend(title: str, lines: Sequence[Line]) -> Chart:
    """Draw only the legend of lines."""
    elements, height = _draw_legend(lines, 2)
    return Chart(title, height, elements)


def _draw_y_axis(axis: Axis) -> tuple[float, list[str]]:
    """Return the left end of the plot, and the label, the unit, and a rule with its label for each tick."""
    left = max(map(_measure, axis.tick_labels), default=0) + 6
    unit_width = _measure(axis.unit)
    elements = [_draw_text(0, 12, axis.label, room=WIDTH - unit_width - _GAP, is_bold=True)]
    if axis.unit:
        elements.append(_draw_text(WIDTH, 12, axis.unit, "end"))
    for tick, label in zip(axis.ticks, axis.tick_labels, strict=True):
        y = axis.scale(_BOTTOM, _TOP)(tick)
        elements += [_draw_rule(left, y, WIDTH, y), _draw_text(left - 6, y + 4, label, "end")]
    return left, elements


def _draw_x_labels(labels: Sequence[tuple[float, str]]) -> list[str]:
    """Draw every n-th label, for the smallest n with which none overlap."""
    boxes = []
    for x, label in labels:
        half = _measure(label) / 2
        centre = min(max(x, half), WIDTH - half)
        boxes.append((centre - half, centre + half, _draw_text(centre, _BOTTOM + 17, label, "middle")))
    step = next(
        step
        for step in range(1, len(boxes) + 2)
        if all(left[1] + _GAP <= right[0] for left, right in itertools.pairwise(boxes[::step]))
    )
    return [element for _, _, element in boxes[::step]]


def _draw_x_title(label: str) -> str:
    return _draw_text(WIDTH, _BOTTOM + 33, label, "end", room=WIDTH)


def _draw_line(line: Line, pixels: Sequence[tuple[float, float]]) -> Iterator[str]:
    if line.style != "none":
        for is_number, points in itertools.groupby(pixels, lambda point: not math.isnan(point[1])):
            if is_number:
                coordinates = " ".join(f"{x:.1f},{y:.1f}" for x, y in _thin_out(points))
                yield f'<polyline {_stroke(line)} points="{coordinates}"/>'
    if line.marker is not None:
        for x, y in pixels[:: max(1, len(pixels) // MAX_MARKERS)]:
            if not math.isnan(y):
                yield _draw_marker(line, x, y)


def _thin_out(points: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Leave the first, lowest, highest and last of the points that share half a pixel's width."""
    for _, group in itertools.groupby(points, lambda point: round(2 * point[0])):
        column = list(group)
        kept = {0, len(column) - 1}
        kept |= {choose(range(len(column)), key=lambda index: column[index][1]) for choose in (min, max)}
        yield from (column[index] for index in sorted(kept))


def _draw_legend(lines: Sequence[Line], y: float) -> tuple[list[str], float]:
    """Return a sample and the name of each line that has one, in rows from ``y`` on, and where they end."""
    elements, x = [], 0.0
    for line in lines:
        if line.name:
            width = min(30 + _measure(line.name), WIDTH)
            if x + width > WIDTH:
                x, y = 0, y + _ROW_HEIGHT
            if line.style != "none":
                elements.append(f'<path {_stroke(line)} d="M{x:.1f} {y + 6:.1f}h24"/>')
            if line.marker is not None:
                elements.append(_draw_marker(line, x + 12, y + 6))
            elements.append(_draw_text(x + 30, y + 10, line.name, room=WIDTH - 30))
            x += width + 2 * _GAP
    return elements, y + _ROW_HEIGHT if elements else y - _GAP


def _draw_marker(line: Line, x: float, y: float) -> str:
    if line.marker == "dot":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{_colour(line.colour)}"/>'
    path = _MARKER_PATHS[(line.marker or 0) % NUM_MARKERS]
    return (  # hollow: markers may lie on one another
        f'<path transform="translate({x:.1f} {y:.1f})" d="{path}" fill="none" stroke-width="1.5" '
        f'stroke="{_colour(line.colour)}"/>'
    )


def _stroke(line: Line) -> str:
    return f'fill="none" stroke="{_colour(line.colour)}" {_STROKES[line.style]}'


def _draw_rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="var(--line)"/>'


def _draw_text(
    x: float, y: float, text: str, anchor: str = "start", *, room: float = math.inf, is_bold: bool = False
) -> str:
    weight, text = (
        (' font-weight="600"', _shorten(text, 0.9 * room)) if is_bold else ("", _shorten(text, room))
    )
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{weight}>{_escape(text)}</text>'


def _shorten(text: str, room: float) -> str:
    """Cut out the middle of a text that is too wide."""
    text = spell_out_invisible(text, keep=" ")
    half = len(text) // 2
    shown = text
    while _measure(shown) > room and half:
        half -= 1
        shown = f"{text[: half + 1]}…{text[len(text) - half :]}"
    return shown


def _measure(text: str) -> float:
    """Return the largest width of a text in pixels, whatever the font."""
    shown = spell_out_invisible(text, keep=" ")
    return _FONT_SIZE * sum(0.65 if character in _NARROW else 1.0 for character in shown)


def _colour(number: int) -> str:
    return f"var(--c{number % NUM_COLOURS})"


def _format_ticks(ticks: Sequence[float]) -> list[str]:
    """Format numbers with thousands separators; if one has five digits, those from 1,000 on with a suffix."""
    if max(map(abs, ticks), default=0) < 10_000:
        return [f"{tick:,.6g}" for tick in ticks]
    suffixes = ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k"), (1, ""))
    return [
        next(f"{tick / size:,.6g}{suffix}" for size, suffix in suffixes if abs(tick) >= size or size == 1)
        for tick in ticks
    ]


def _escape(text: str) -> str:
    return html.escape(spell_out_invisible(text, keep=" "))
