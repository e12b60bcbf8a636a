"""The picture of curves: a panel for each quantity, a colour for each run; the one file with matplotlib.

Figures are made without pyplot, so that no window, no backend and no setting of the user's plays a part.
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

from bioshards.corpus.page import visible

from .curves import Run, smooth
from .panels import CHANCE, SMOOTHED, Panel, named

_COLOURS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#8b929a")
"""Okabe and Ito's, which the colour-blind tell apart; grey for their black, which a dark page would hide."""
_MARKS: Final = "s^oDv"
"""Of validation, hollow: five for seven colours, so that no two of 35 runs look the same."""
_TEXT: Final = "#1b1f24"
_LINE: Final = "#d4dae1"
_OF_PAGE: Final = {_TEXT: "var(--text)", _LINE: "var(--line)"}
"""Colours that a page has its own for, light or dark (corpus/page.py)."""
_STYLE: Final[dict[str, Any]] = {
    "axes.edgecolor": _LINE,
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.labelcolor": _TEXT,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "figure.facecolor": "none",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "grid.color": _LINE,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "path.simplify_threshold": 0.5,  # of a pixel: few points for lines of many steps
    "savefig.facecolor": "auto",
    "svg.fonttype": "none",
    "svg.hashsalt": "bioshards",
    "text.color": _TEXT,
    "text.parse_math": False,
    "xtick.color": _TEXT,
    "xtick.major.size": 0,
    "ytick.color": _TEXT,
    "ytick.major.size": 0,
    "ytick.minor.size": 0,
}
_COLUMNS: Final = 2
_LONGEST_NAME: Final = 40
_CHARACTERS: Final = 140
"""What a line of the legend has room for."""
_FEW: Final = 30
"""Points of a line that each get a mark."""


def pictures(runs: Sequence[Run], panels: Sequence[Panel]) -> tuple[bytes, str]:
    """The picture as PNG, and as SVG to put into a page, in its colours; the same bytes every time."""
    settings: dict[Any, Any] = {key: value for key, value in rcParamsDefault.items() if key != "backend"}
    png, svg = io.BytesIO(), io.StringIO()
    with rc_context(settings | _STYLE):
        figure = _figure(runs, panels)
        figure.savefig(png, format="png", dpi=120, facecolor="white", metadata={"Software": None})
        figure.set_layout_engine("none")  # what has its place by now keeps it
        undated = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(svg, format="svg", metadata=undated)
    drawing = svg.getvalue()
    for colour, own in _OF_PAGE.items():
        drawing = drawing.replace(colour, own)
    # Without XML's head, which does not belong into a page.
    return png.getvalue(), drawing[drawing.index("<svg") :].replace(
        "<svg ", '<svg role="img" aria-label="Training curves" ', 1
    )


def _figure(runs: Sequence[Run], panels: Sequence[Panel]) -> Figure:
    rows = -(-len(panels) // _COLUMNS)
    figure = Figure(figsize=(10, 0.8 + 2.5 * rows), layout="constrained")
    grid = figure.add_gridspec(rows, _COLUMNS)
    for at, panel in enumerate(panels):
        axes = figure.add_subplot(grid[divmod(at, _COLUMNS)], sharex=figure.axes[0] if at else None)
        for of_run, run in enumerate(runs):
            _draw(axes, panel, run, of_run)
        _label(axes, panel)
    lines = [Line2D([], [], color=_colour(at), **_mark(at)) for at in range(len(runs))]
    names = [_short(run.name) for run in runs]
    across = max(1, _CHARACTERS // (8 + max(map(len, names))))
    figure.legend(lines, names, loc="outside upper left", ncols=across)
    styles: dict[str, Any] = {"training": "-", "validation": "--"}
    if any(panel.place in CHANCE for panel in panels):
        styles["chance, given the share replaced"] = ":"
    lines = [Line2D([], [], color=_TEXT, linewidth=1, linestyle=style) for style in styles.values()]
    figure.legend(lines, list(styles), loc="outside lower left", ncols=len(lines))
    return figure


def _draw(axes: Axes, panel: Panel, run: Run, at: int) -> None:
    """A run's lines: training smoothed, on the thin line of what was logged; validation dashed."""
    colour = _colour(at)
    steps, values = run.curve("train", panel.place)
    if panel.smoothed and (half := len(values) // SMOOTHED):
        axes.plot(steps, values, color=colour, linewidth=0.5, alpha=0.35)
        values = smooth(values, half)
    axes.plot(steps, values, color=colour, linewidth=1.4, marker="." if len(steps) <= _FEW else "")
    steps, values = run.curve("validation", panel.place)
    every = max(1, len(steps) // _FEW)
    axes.plot(steps, values, "--", color=colour, linewidth=1, markevery=every, **_mark(at))
    if panel.place in CHANCE:
        steps, values = run.curve("train", CHANCE[panel.place])
        axes.plot(steps, smooth(values, len(values) // SMOOTHED), ":", color=colour, linewidth=1.2)


def _label(axes: Axes, panel: Panel) -> None:
    unit = panel.unit
    plain = FuncFormatter(lambda value, _: f"{value:,.6g}")
    drawn = np.concatenate([np.asarray(line.get_ydata(), np.float64) for line in axes.lines])
    lowest, highest = np.nanmin(drawn), np.nanmax(drawn)
    if panel.scale == "far" and 0 < 10 * lowest <= highest:
        axes.set_yscale("log")
        axes.yaxis.set_minor_locator(LogLocator(subs=(2, 5)))
        axes.yaxis.set_minor_formatter(plain)
        unit = f"{unit}, logarithmic".removeprefix(", ")
    elif panel.scale == "from zero":
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(PercentFormatter(1) if panel.scale == "share" else plain)
    axes.xaxis.set_major_locator(MaxNLocator(7, integer=True, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.set_title(named(panel.place))
    axes.set_xlabel("step")
    axes.set_ylabel(unit)


def _colour(at: int) -> str:
    return _COLOURS[at % len(_COLOURS)]


def _mark(at: int) -> dict[str, Any]:
    return {"marker": _MARKS[at % len(_MARKS)], "markersize": 5, "fillstyle": "none"}


def _short(name: str) -> str:
    """A run's name for the legend: its ends, if it is long."""
    name = visible(name, keep=" ")
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"
