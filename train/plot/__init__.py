"""Plot training curves of runs as PNG and as a self-contained HTML page.

The output is reproducible: the same logs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui import html_page as html
from bioshards.corpus.ui.html_page import escape_html

from .curves import NoLogsError, RunLog, Split, read_logs
from .panels import SMOOTHING_DIVISOR, format_title, format_value, select_panels


def plot(folders: Sequence[str], output: str) -> list[str]:
    """Plot the curves of runs.

    Args:
        folders: folders of the runs, in the order of the legend.
        output: path of the output files, with the extension ``.png`` or ``.html`` or with none.

    Returns:
        the paths of the two files written.

    Raises:
        NoLogsError: a folder is not a run, no run has logged a step, or matplotlib is missing.
        OSError: a file cannot be written.
    """
    runs = read_logs(folders)
    selected_panels = select_panels(runs)
    if not selected_panels:
        raise NoLogsError(f"nothing to plot: no step is logged in {', '.join(folders)}")
    try:
        from .figure import render_pictures  # imported late: training does not need matplotlib
    except ModuleNotFoundError as error:
        raise NoLogsError(f"plot needs {error.name}: pip install 'bioshards[train]'") from error
    png, svg = render_pictures(runs, selected_panels)
    stem = output.removesuffix(".png").removesuffix(".html")
    contents = {f"{stem}.png": png, f"{stem}.html": _render_page(runs, svg).encode()}
    for path, content in contents.items():
        with LocalStorage().write(path) as file:
            file.write(content)
    return list(contents)


def _render_page(runs: Sequence[RunLog], svg: str) -> str:
    title = escape_html(f"Training curves: {', '.join(run.name for run in runs)}")
    notes = [f"<li>{escape_html(run.name)}: {escape_html(note)}.</li>" for run in runs for note in run.notes]
    body = [
        f"<h1>{title}</h1>",
        f"<ul>{''.join(notes)}</ul>" if notes else "",
        f"<figure>{svg}<figcaption>{_build_caption(runs)}</figcaption></figure>",
        "<h2>Last values of training</h2>",
        _render_last_values(runs, "train"),
        "<h2>Last values of validation</h2>",
        _render_last_values(runs, "validation"),
    ]
    return html.render_html_page(title, body)


def _build_caption(runs: Sequence[RunLog]) -> str:
    caption = "One colour per run; solid lines: training, dashed lines with markers: validation."
    if any(len(run.entries["train"]) >= SMOOTHING_DIVISOR for run in runs):
        caption += (
            f" Training lines of {SMOOTHING_DIVISOR} or more points, except the learning rate, are smoothed: "
            "each point is the mean of its neighbours, one per cent of all points on either side and fewer "
            "near the ends. Thin lines show the logged values."
        )
    return caption


def _render_last_values(runs: Sequence[RunLog], split: Split) -> str:
    """Render a table of the last entry of each run."""
    last_values = [run.get_last_values(split) for run in runs]
    metrics = dict.fromkeys(metric for values in last_values for metric in values)
    if not metrics:
        return "<p>No entries.</p>"
    rows = [
        [
            escape_html(format_title(metric)),
            *(escape_html(format_value(metric, values.get(metric))) for values in last_values),
        ]
        for metric in metrics
    ]
    return html.render_table(["", *(escape_html(run.name) for run in runs)], rows)
