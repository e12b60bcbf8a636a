"""Grouped bar chart of scores by task, as inline SVG in the colours of the page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.ui.html_page import escape_html

_WIDTH: Final = 720
_LEFT, _RIGHT = 190, 650
"""x of 0 and of 100; labels are left of the bars, values right."""
_TOP: Final = 24
_BAR_HEIGHT: Final = 13
_GAP: Final = 12
_COLOURS: Final = ("ours", "c1", "c2", "c3", "c4", "c5")


@dataclass(frozen=True, slots=True)
class ScoreBar:
    """Score in per cent with the label beside its bar; ``low`` and ``high`` if it has an interval."""

    score: float
    label: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class ModelBars:
    """Name of a model and its bar for each task; None without a score. Published bars are hollow."""

    name: str
    bars: Sequence[ScoreBar | None]
    is_published: bool = False


def draw_chart(title: str, tasks: Sequence[str], models: Sequence[ModelBars]) -> str:
    """Draw a group of bars for each task, with a legend. Texts are escaped."""
    elements, y = [], _TOP + 20 * len(models)
    for index, model in enumerate(models):
        elements.append(_draw_bar(_LEFT, 20 * index + 14, 24, index, model.is_published))
        elements.append(_draw_label(_LEFT + 32, 20 * index + 24, model.name, "start"))
    top = y
    for index, task in enumerate(tasks):
        task_bars = [
            (model_index, bar) for model_index, model in enumerate(models) if (bar := model.bars[index])
        ]
        elements.append(_draw_label(_LEFT - 8, y + _BAR_HEIGHT * len(task_bars) / 2 + 4, task, "end"))
        for model_index, bar in task_bars:
            elements += _draw_score(bar, y, model_index, models[model_index], task)
            y += _BAR_HEIGHT
        y += _GAP
    grid_lines = [
        f'<line x1="{_x_position(tick):.1f}" y1="{top - 6}" x2="{_x_position(tick):.1f}" y2="{y}" '
        'stroke="var(--line)"/>' + _draw_label(_x_position(tick), y + 14, str(tick), "middle")
        for tick in range(0, 101, 20)
    ]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {y + 24}" width="{_WIDTH}" role="img" fill="currentColor">'
        f"<title>{escape_html(title)}</title>{''.join([*grid_lines, *elements])}</svg>"
    )


def _draw_score(bar: ScoreBar, y: float, model_index: int, model: ModelBars, task: str) -> Iterator[str]:
    tooltip = f"<title>{escape_html(f'{model.name}, {task}: {bar.label}')}</title>"
    yield _draw_bar(
        _LEFT, y, _x_position(max(0.0, bar.score)) - _LEFT, model_index, model.is_published, tooltip
    )
    end = _x_position(max(0.0, bar.score))
    if bar.low is not None and bar.high is not None:
        low, high, middle = (
            _x_position(max(0.0, bar.low)),
            _x_position(max(0.0, bar.high)),
            y + _BAR_HEIGHT / 2 - 1,
        )
        yield f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}" stroke="currentColor" stroke-width="1.5"/>'
        end = max(end, high)
    yield _draw_label(end + 5, y + _BAR_HEIGHT - 3, bar.label, "start")


def _x_position(score: float) -> float:
    return _LEFT + score / 100 * (_RIGHT - _LEFT)


def _draw_bar(x: float, y: float, width: float, model_index: int, is_hollow: bool, tooltip: str = "") -> str:
    colour = f"var(--{_COLOURS[model_index % len(_COLOURS)]})"
    paint = f'fill="none" stroke="{colour}"' if is_hollow else f'fill="{colour}"'
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_BAR_HEIGHT - 3}"'
    return f"<rect {shape} {paint}>{tooltip}</rect>"


def _draw_label(x: float, y: float, label: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape_html(label)}</text>'
