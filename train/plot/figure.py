"""Draw training curves with matplotlib: one panel per metric, one colour per run.

Figures are built without pyplot, so that backends and user settings have no effect.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from matplotlib import rc_context, rcParamsDefault
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, PercentFormatter

from bioshards.corpus.ui.html_page import spell_out_invisible

from .curves import RunLog, smooth
from .panels import BASELINES, SMOOTHING_DIVISOR, Panel, format_title

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8b929a")
"""Colour-blind safe palette of Okabe and Ito, with grey instead of black for dark pages."""
_MARKERS: Final = "s^oDv"
"""Hollow markers of validation: five for seven colours, so that 35 runs look different."""
_TEXT_COLOUR: Final = "#1b1f24"
_LINE_COLOUR: Final = "#d4dae1"
_PAGE_COLOURS: Final = {_TEXT_COLOUR: "var(--text)", _LINE_COLOUR: "var(--line)"}
"""Colours that are replaced by variables of the page, light or dark (corpus/ui/html_page.py)."""
_STYLE: Final[dict[str, Any]] = {
    "axes.edgecolor": _LINE_COLOUR,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _TEXT_COLOUR,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": _LINE_COLOUR,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "path.simplify_threshold": 0.5,  # in pixels; reduces the points of long lines
    "savefig.facecolor": "auto",
    "svg.fonttype": "none",
    "svg.hashsalt": "bioshards",
    "text.color": _TEXT_COLOUR,
    "text.parse_math": False,
    "xtick.color": _TEXT_COLOUR,
    "xtick.major.size": 0,
    "ytick.color": _TEXT_COLOUR,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}
_COLUMNS: Final = 2
_MAX_NAME_LENGTH: Final = 40
_LEGEND_WIDTH: Final = 140
"""Width of a legend line in characters."""
_MAX_MARKERS: Final = 30
"""Maximum number of markers on a line."""


def render_pictures(runs: Sequence[RunLog], panels: Sequence[Panel]) -> tuple[bytes, str]:
    """Render the plot as PNG, and as SVG in the colours of the page; the bytes are reproducible."""
    settings: dict[Any, Any] = {key: value for key, value in rcParamsDefault.items() if key != "backend"}
    png, svg = io.BytesIO(), io.StringIO()
    with rc_context(settings | _STYLE):
        figure = _build_figure(runs, panels)
        figure.savefig(png, format="png", dpi=120, facecolor="white", metadata={"Software": None})
        figure.set_layout_engine("none")  # keep the layout of the PNG
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(svg, format="svg", metadata=metadata)
    drawing = svg.getvalue()
    for colour, css_variable in _PAGE_COLOURS.items():
        drawing = drawing.replace(colour, css_variable)
    # The XML declaration is not allowed inside HTML.
    return png.getvalue(), drawing[drawing.index("<svg") :].replace(
        "<svg ", '<svg role="img" aria-label="Training curves" ', 1
    )


def _build_figure(runs: Sequence[RunLog], panels: Sequence[Panel]) -> Figure:
    rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(10, 0.8 + 2.5 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, _COLUMNS)
    for index, panel in enumerate(panels):
        axes = figure.add_subplot(grid[divmod(index, _COLUMNS)], sharex=figure.axes[0] if index else None)
        for run_index, run in enumerate(runs):
            _draw_run(axes, panel, run, run_index)
        _label_axes(axes, panel)
    lines = [
        Line2D([], [], color=_get_run_colour(index), **_get_marker_style(index)) for index in range(len(runs))
    ]
    names = [_shorten(run.name) for run in runs]
    columns = max(1, _LEGEND_WIDTH // (8 + max(map(len, names))))
    figure.legend(lines, names, loc="outside upper left", ncols=columns)
    styles: dict[str, Any] = {"training": "-", "validation": "--"}
    if any(panel.metric in BASELINES for panel in panels):
        styles["baseline: fraction of replaced tokens"] = ":"
    lines = [Line2D([], [], color=_TEXT_COLOUR, linewidth=1, linestyle=style) for style in styles.values()]
    figure.legend(lines, list(styles), loc="outside lower left", ncols=len(lines))
    return figure


def _draw_run(axes: Axes, panel: Panel, run: RunLog, run_index: int) -> None:
    """Draw the lines of a run: training smoothed over the thin logged line, validation dashed."""
    colour = _get_run_colour(run_index)
    steps, values = run.get_curve("train", panel.metric)
    if panel.is_smoothed and (half_window := len(values) // SMOOTHING_DIVISOR):
        axes.plot(steps, values, color=colour, linewidth=0.5, alpha=0.35)
        values = smooth(values, half_window)
    axes.plot(steps, values, color=colour, linewidth=1.4, marker="." if len(steps) <= _MAX_MARKERS else "")
    steps, values = run.get_curve("validation", panel.metric)
    marker_interval = max(1, len(steps) // _MAX_MARKERS)
    axes.plot(
        steps,
        values,
        "--",
        color=colour,
        linewidth=1,
        markevery=marker_interval,
        **_get_marker_style(run_index),
    )
    if panel.metric in BASELINES:
        steps, values = run.get_curve("train", BASELINES[panel.metric])
        axes.plot(steps, smooth(values, len(values) // SMOOTHING_DIVISOR), ":", color=colour, linewidth=1.2)


def _label_axes(axes: Axes, panel: Panel) -> None:
    unit = panel.unit
    number_formatter = FuncFormatter(lambda value, _: f"{value:,.6g}")
    plotted_values = np.concatenate([np.asarray(line.get_ydata(), np.float64) for line in axes.lines])
    lowest, highest = np.nanmin(plotted_values), np.nanmax(plotted_values)
    if panel.scale == "log" and 0 < 10 * lowest <= highest:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(number_formatter)
        unit = f"{unit}, logarithmic".removeprefix(", ")
    elif panel.scale == "from zero":
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1) if panel.scale == "fraction" else number_formatter)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_title(format_title(panel.metric))
    axes.set_xlabel("step")
    axes.set_ylabel(unit)


def _get_run_colour(run_index: int) -> str:
    return _COLOURS[run_index % len(_COLOURS)]


def _get_marker_style(run_index: int) -> dict[str, Any]:
    return {"marker": _MARKERS[run_index % len(_MARKERS)], "markersize": 5, "fillstyle": "none"}


def _shorten(name: str) -> str:
    """Shorten the name of a run for the legend; keep both ends."""
    name = spell_out_invisible(name, keep=" ")
    half_length = _MAX_NAME_LENGTH // 2
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[:half_length]}…{name[-half_length:]}"
