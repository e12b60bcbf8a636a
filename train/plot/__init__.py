"""Curves of one or several runs on one picture, as PNG and as a page that loads nothing from elsewhere.

The same logs give the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence

from bioshards.corpus import page as html
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.page import text

from .curves import Kind, NoLogsError, Run, read
from .panels import SMOOTHED, named, panels, written


def plot(folders: Sequence[str], out: str) -> list[str]:
    """Draw the curves of runs.

    Args:
        folders: the runs' folders, in the order of the legend.
        out: what to call the picture and the page, with either's ending (``.png``, ``.html``) or with none.

    Returns:
        The two files written.

    Raises:
        NoLogsError: a folder is no run, none of the runs has logged anything, or matplotlib is missing.
        OSError: a file cannot be written.
    """
    runs = read(folders)
    shown = panels(runs)
    if not shown:
        raise NoLogsError(f"there is nothing to draw yet: no step is logged in {', '.join(folders)}")
    try:
        from .drawing import pictures  # not before something is drawn: training needs no matplotlib
    except ModuleNotFoundError as error:
        raise NoLogsError(f"curves are drawn with {error.name}: pip install 'bioshards[train]'") from error
    png, svg = pictures(runs, shown)
    stem = out.removesuffix(".png").removesuffix(".html")
    contents = {f"{stem}.png": png, f"{stem}.html": _page(runs, svg).encode()}
    for path, content in contents.items():
        with LocalFiles().write(path) as file:
            file.write(content)
    return list(contents)


def _page(runs: Sequence[Run], svg: str) -> str:
    title = text(f"Training curves: {', '.join(run.name for run in runs)}")
    notes = [f"<li>{text(run.name)}: {text(note)}.</li>" for run in runs for note in run.notes]
    body = [
        f"<h1>{title}</h1>",
        f"<ul>{''.join(notes)}</ul>" if notes else "",
        f"<figure>{svg}<figcaption>{_caption(runs)}</figcaption></figure>",
        "<h2>Last values of training</h2>",
        _last(runs, "train"),
        "<h2>Last values of validation</h2>",
        _last(runs, "validation"),
    ]
    return html.document(title, body)


def _caption(runs: Sequence[Run]) -> str:
    said = "A colour is a run; whole lines are of training, dashed ones with marks of validation."
    if any(len(run.lines["train"]) >= SMOOTHED for run in runs):
        said += (
            f" Training lines of {SMOOTHED} points or more, but for the learning rate, are smoothed for the "
            "eye: a point is the mean of its neighbours, one per cent of all points on either side and fewer "
            "near the ends. The thin lines are what was logged."
        )
    return said


def _last(runs: Sequence[Run], kind: Kind) -> str:
    """A table of the last line of each run."""
    lasts = [run.last(kind) for run in runs]
    places = dict.fromkeys(place for last in lasts for place in last)
    if not places:
        return "<p>Nothing is logged of it.</p>"
    rows = [
        [text(named(place)), *(text(written(place, last.get(place))) for last in lasts)] for place in places
    ]
    return html.table(["", *(text(run.name) for run in runs)], rows)
