"""Scores printed in papers, with notes on what limits their comparability, from published.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from typing import Any, Final

_CELL_PATTERN: Final = re.compile(r"(-|[\d.]+)(?:[ ]\(([\d.]+)\))?(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """Printed score, in per cent."""

    mean: float
    sd: float | None


@dataclass(frozen=True, slots=True)
class PublishedNote:
    """A footnote.

    Attributes:
        models: columns that it is about.
        tasks: rows that it is about; with ``models`` their cells, without either the whole table.
    """

    text: str
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PublishedTable:
    """One table of a paper, or several that form one.

    Attributes:
        suite: suite of the tasks.
        title: title in reports.
        source: paper and table numbers.
        runs_note: runs behind means and deviations.
        models: columns, in the paper's order.
        own_models: columns that are the paper's own models.
        scores: scores by (task, score name) and model, in the paper's order.
        notes: limits of comparability.
        blurb_scores: printed BLURB score by model; empty if none is printed.
    """

    suite: str
    title: str
    source: str
    runs_note: str
    models: tuple[str, ...]
    own_models: tuple[str, ...]
    scores: Mapping[tuple[str, str], Mapping[str, PublishedScore]]
    notes: tuple[PublishedNote, ...]
    blurb_scores: Mapping[str, float]

    @property
    def columns(self) -> list[str]:
        """Models, the paper's own first."""
        return sorted(self.models, key=lambda model: model not in self.own_models)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Tasks of the rows."""
        return tuple(dict.fromkeys(task for task, _ in self.scores))

    def notes_for(self, model: str | None = None, task: str | None = None) -> list[str]:
        """Return the notes on the table, a model's column, a task's rows, or a cell (both given)."""
        return [
            note.text
            for note in self.notes
            if (model in note.models if model else not note.models)
            and (task in note.tasks if task else not note.tasks)
        ]


def parse_rows(models: tuple[str, ...], text: str) -> dict[tuple[str, str], dict[str, PublishedScore]]:
    """Parse rows of task, score name (``_`` for a blank) and one cell per model.

    Cells are ``81.16 (0.50)``, ``81.16``, or ``-`` for none.

    Raises:
        ValueError: a row has more or fewer cells than there are models.
    """
    rows = {}
    for line in text.strip().splitlines():
        task, score_name, cells = line.split(maxsplit=2)
        cells_by_model = zip(models, _CELL_PATTERN.findall(cells), strict=True)
        rows[task, score_name.replace("_", " ")] = {
            model: PublishedScore(float(mean), float(sd) if sd else None)
            for model, (mean, sd) in cells_by_model
            if mean != "-"
        }
    return rows


def _make_table(entry: Mapping[str, Any]) -> PublishedTable:
    models = tuple(entry["models"])
    notes = (
        PublishedNote(note["text"], tuple(note.get("models", ())), tuple(note.get("tasks", ())))
        for note in entry.get("notes", ())
    )
    return PublishedTable(
        entry["suite"],
        entry["title"],
        entry["source"],
        entry["runs_note"],
        models,
        tuple(entry["own_models"]),
        parse_rows(models, entry["rows"]),
        tuple(notes),
        dict(zip(models, entry["blurb_scores"], strict=True)) if "blurb_scores" in entry else {},
    )


_CONTENT: Final = tomllib.loads(resources.files(__package__).joinpath("published.toml").read_text("utf-8"))
PUBLISHED_TABLES: Final = tuple(map(_make_table, _CONTENT["table"]))
"""The first table of a suite compares models; later ones compare variants of one model."""
TASK_TITLES: Final[Mapping[str, str]] = _CONTENT["task_titles"]
"""Titles of tasks in reports."""
