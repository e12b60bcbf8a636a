"""Scores of several models side by side, task by task, as inline SVG in the page's own colours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.page import text

_WIDTH: Final = 720
_LEFT, _RIGHT = 190, 650
"""Where 0 and 100 are; labels are left of it, values right of the bars."""
_TOP: Final = 24
_BAR: Final = 13
_APART: Final = 12
_COLOURS: Final = ("ours", "c1", "c2", "c3", "c4", "c5")


@dataclass(frozen=True, slots=True)
class Bar:
    """A score in per cent, as it is written beside its bar; ``low`` and ``high`` where it has an interval."""

    score: float
    written: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Model:
    """A model's name, and its bar for each task, None where it has no score; published ones are hollow."""

    name: str
    bars: Sequence[Bar | None]
    published: bool = False


def chart(title: str, tasks: Sequence[str], models: Sequence[Model]) -> str:
    """The chart: a group of bars for each task, a legend in the order of the bars; all is plain text."""
    parts, y = [], _TOP + 20 * len(models)
    for at, model in enumerate(models):
        parts.append(_bar(_LEFT, 20 * at + 14, 24, at, model.published))
        parts.append(_label(_LEFT + 32, 20 * at + 24, model.name, "start"))
    top = y
    for at, task in enumerate(tasks):
        there = [(number, bar) for number, model in enumerate(models) if (bar := model.bars[at])]
        parts.append(_label(_LEFT - 8, y + _BAR * len(there) / 2 + 4, task, "end"))
        for number, bar in there:
            parts += _score(bar, y, number, models[number], task)
            y += _BAR
        y += _APART
    grid = [
        f'<line x1="{_x(grade):.1f}" y1="{top - 6}" x2="{_x(grade):.1f}" y2="{y}" stroke="var(--line)"/>'
        + _label(_x(grade), y + 14, str(grade), "middle")
        for grade in range(0, 101, 20)
    ]
    return (
        f'<svg viewBox="0 0 {_WIDTH} {y + 24}" width="{_WIDTH}" role="img" fill="currentColor">'
        f"<title>{text(title)}</title>{''.join([*grid, *parts])}</svg>"
    )


def _score(bar: Bar, y: float, number: int, model: Model, task: str) -> Iterator[str]:
    told = f"<title>{text(f'{model.name}, {task}: {bar.written}')}</title>"
    yield _bar(_LEFT, y, _x(max(0.0, bar.score)) - _LEFT, number, model.published, told)
    end = _x(max(0.0, bar.score))
    if bar.low is not None and bar.high is not None:
        low, high, middle = _x(max(0.0, bar.low)), _x(max(0.0, bar.high)), y + _BAR / 2 - 1
        yield f'<path d="M{low:.1f} {middle:.1f}H{high:.1f}" stroke="currentColor" stroke-width="1.5"/>'
        end = max(end, high)
    yield _label(end + 5, y + _BAR - 3, bar.written, "start")


def _x(score: float) -> float:
    return _LEFT + score / 100 * (_RIGHT - _LEFT)


def _bar(x: float, y: float, width: float, number: int, hollow: bool, told: str = "") -> str:
    colour = f"var(--{_COLOURS[number % len(_COLOURS)]})"
    paint = f'fill="none" stroke="{colour}"' if hollow else f'fill="{colour}"'
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{_BAR - 3}"'
    return f"<rect {shape} {paint}>{told}</rect>"


def _label(x: float, y: float, label: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{text(label)}</text>'
