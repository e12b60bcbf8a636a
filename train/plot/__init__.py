"""Plot training curves of runs as SVG and as a self-contained HTML page.

The output is reproducible: the same logs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.html_page import render_page
from bioshards.train.plot.charts import draw_charts
from bioshards.train.plot.curves import NoLogsError, RunLog, Split, read_logs
from bioshards.train.plot.line_chart import WIDTH, Chart
from bioshards.train.plot.panels import SMOOTHING_DIVISOR, format_title, format_value, select_panels

_COLUMNS: Final = 2
_GAP: Final = 30
"""Pixels between charts of the picture."""


def plot(folders: Sequence[str], output: str) -> list[str]:
    """Plot the curves of runs.

    Args:
        folders: folders of the runs, in the order of the legend.
        output: path of the output files, with the extension ``.svg`` or ``.html`` or with none.

    Returns:
        the paths of the two files written.

    Raises:
        NoLogsError: a folder is not a run, or no run has logged a step.
        OSError: a file cannot be written.
    """
    runs = read_logs(folders)
    selected_panels = select_panels(runs)
    if not selected_panels:
        raise NoLogsError(f"nothing to plot: no step is logged in {', '.join(folders)}")
    title = f"Training curves: {', '.join(run.name for run in runs)}"
    legend, *charts = draw_charts(runs, selected_panels)
    stem = output.removesuffix(".svg").removesuffix(".html")
    contents = {
        f"{stem}.svg": _render_picture(title, legend, charts),
        f"{stem}.html": _render_page(title, runs, legend, charts),
    }
    for path, content in contents.items():
        with LocalStorage().write(path) as file:
            file.write(content.encode())
    return list(contents)


def _render_picture(title: str, legend: Chart, charts: Sequence[Chart]) -> str:
    places, y = [(0, 0.0, legend)], legend.height + _GAP
    for index in range(0, len(charts), _COLUMNS):
        row = charts[index : index + _COLUMNS]
        places += [(column * (WIDTH + _GAP), y, chart) for column, chart in enumerate(row)]
        y += max(chart.height for chart in row) + _GAP
    width = _COLUMNS * (WIDTH + _GAP) - _GAP
    return render_page(__package__, "curves.svg", title=title, width=width, height=y - _GAP, places=places)


def _render_page(title: str, runs: Sequence[RunLog], legend: Chart, charts: Sequence[Chart]) -> str:
    is_smoothed = any(len(run.entries["train"]) >= SMOOTHING_DIVISOR for run in runs)
    header = ["", *(run.name for run in runs)]
    return render_page(
        __package__,
        "curves_page.html",
        title=title,
        headline=[figure for run in runs for figure in _find_last_loss(run)],
        notes=[(run.name, note) for run in runs for note in run.notes],
        smoothing=SMOOTHING_DIVISOR if is_smoothed else None,
        legend=legend,
        charts=charts,
        tables=[
            ("training", header, _list_last_values(runs, "train")),
            ("validation", header, _list_last_values(runs, "validation")),
        ],
    )


def _find_last_loss(run: RunLog) -> Iterator[tuple[str, str]]:
    """Yield a run's last loss, in validation if there is one, with its name."""
    for split in ("validation", "train"):
        steps, losses = run.get_curve(split, ("loss",))
        if len(steps):
            name = "validation" if split == "validation" else "training"
            yield f"{losses[-1]:.4g}", f"{name} loss of {run.name} at step {int(steps[-1]):,}"
            return


def _list_last_values(runs: Sequence[RunLog], split: Split) -> list[list[str]]:
    """Return a row for each metric of the last entries, with a column for each run."""
    last_values = [run.get_last_values(split) for run in runs]
    metrics = dict.fromkeys(metric for values in last_values for metric in values)
    return [
        [format_title(metric), *(format_value(metric, values.get(metric)) for values in last_values)]
        for metric in metrics
    ]
