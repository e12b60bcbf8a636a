"""Draw training curves: one chart per metric, one colour and marker per run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from bioshards.train.plot.curves import FloatArray, RunLog, smooth
from bioshards.train.plot.line_chart import (
    MAX_MARKERS,
    NUM_COLOURS,
    Axis,
    Chart,
    Line,
    LineStyle,
    Marker,
    draw_legend,
    draw_lines,
    make_linear_axis,
    make_log_axis,
)
from bioshards.train.plot.panels import BASELINES, SMOOTHING_DIVISOR, Panel, format_title

_GREY: Final = NUM_COLOURS - 1


def draw_charts(runs: Sequence[RunLog], panels: Sequence[Panel]) -> list[Chart]:
    """Draw the legend, and a chart for each panel; all have the same steps."""
    legend = [Line([], [], index, run.name, marker=index) for index, run in enumerate(runs)]
    legend += [Line([], [], _GREY, "training"), Line([], [], _GREY, "validation", "dashed")]
    if any(panel.metric in BASELINES for panel in panels):
        legend.append(Line([], [], _GREY, "baseline: frequencies alone", "dotted"))
    lines_by_panel = [
        [line for index, run in enumerate(runs) for line in _make_lines(run, panel, index)]
        for panel in panels
    ]
    steps = [step for lines in lines_by_panel for line in lines for step in line.xs]
    x_axis = make_linear_axis("step", steps, max_ticks=6, is_round=False, is_integer=True)
    charts = [
        draw_lines(format_title(panel.metric), lines, x_axis, _make_y_axis(panel, lines))
        for panel, lines in zip(panels, lines_by_panel, strict=True)
    ]
    return [draw_legend("Runs and lines", legend), *charts]


def _make_lines(run: RunLog, panel: Panel, index: int) -> Iterator[Line]:
    """Yield the lines of a run: training smoothed over the faint logged line, validation dashed."""

    def make_line(steps: FloatArray, values: FloatArray, style: LineStyle, marker: Marker = None) -> Line:
        return Line(steps.tolist(), values.tolist(), index, "", style, marker)

    steps, values = run.get_curve("train", panel.metric)
    if panel.is_smoothed and (half_window := len(values) // SMOOTHING_DIVISOR):
        yield make_line(steps, values, "faint")
        values = smooth(values, half_window)
    yield make_line(steps, values, "solid", "dot" if len(steps) <= MAX_MARKERS else None)
    yield make_line(*run.get_curve("validation", panel.metric), "dashed", index)
    if panel.metric in BASELINES:
        steps, values = run.get_curve("train", BASELINES[panel.metric])
        yield make_line(steps, smooth(values, len(values) // SMOOTHING_DIVISOR), "dotted")


def _make_y_axis(panel: Panel, lines: Sequence[Line]) -> Axis:
    values = [value for line in lines for value in line.ys if math.isfinite(value)]
    title = format_title(panel.metric)
    if panel.scale == "log" and 0 < 10 * min(values) <= max(values):
        return make_log_axis(title, values, unit=panel.unit)
    if panel.scale == "from zero":
        values.append(0)
    return make_linear_axis(title, values, unit=panel.unit, is_percent=panel.scale == "fraction")
