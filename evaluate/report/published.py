"""Scores printed in papers, with notes on their comparability (published.toml), and the BLURB score.

SOURCE of the BLURB score: Gu et al. 2020 (arXiv:2007.15779), section 2.4 and table 6: "the macro average of
average test results for each of the six tasks".
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, Final

import msgspec

_CELL_PATTERN: Final = re.compile(r"(-|[\d.]+)(?:[ ]\(([\d.]+)\))?(?:\s+|$)")


@dataclass(frozen=True, slots=True)
class Score:
    """Mean and standard deviation over seeds, in per cent; a paper may print no deviation."""

    mean: float
    sd: float | None


class PublishedNote(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A footnote.

    Attributes:
        models: columns that it is about.
        tasks: rows that it is about; with ``models`` their cells, without either the whole table.
    """

    text: str
    models: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()


class PublishedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    source: str = ""
    runs_note: str = ""
    models: tuple[str, ...] = ()
    own_models: tuple[str, ...] = ()
    scores: Mapping[tuple[str, str], Mapping[str, Score]] = {}
    notes: tuple[PublishedNote, ...] = ()
    blurb_scores: Mapping[str, float] = {}

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


def parse_rows(models: Sequence[str], text: str) -> dict[tuple[str, str], dict[str, Score]]:
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
            model: Score(float(mean), float(sd) if sd else None)
            for model, (mean, sd) in cells_by_model
            if mean != "-"
        }
    return rows


def _make_table(entry: dict[str, Any]) -> PublishedTable:
    scores = parse_rows(entry["models"], entry.pop("rows"))
    printed = entry.pop("blurb_scores", None)
    blurb_scores = dict(zip(entry["models"], printed, strict=True)) if printed else {}
    table = msgspec.convert(entry, PublishedTable)
    return msgspec.structs.replace(table, scores=scores, blurb_scores=blurb_scores)


_CONTENT: Final = tomllib.loads(resources.files(__package__).joinpath("published.toml").read_text("utf-8"))
PUBLISHED_TABLES: Final = tuple(map(_make_table, _CONTENT["table"]))
"""The first table of a suite compares models; later ones compare variants of one model."""
TASK_TITLES: Final[Mapping[str, str]] = _CONTENT["task_titles"]
"""Titles of tasks in reports."""


def list_tables(suite: str) -> list[PublishedTable]:
    """Return the tables of a suite; of a suite of no paper one without scores."""
    tables = [table for table in PUBLISHED_TABLES if table.suite == suite]
    return tables or [PublishedTable(suite, title=suite)]


TASKS_BY_TYPE: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "NER": ("bc5-chem", "bc5-disease", "ncbi-disease", "bc2gm", "jnlpba"),
        "PICO": ("ebm-pico",),
        "Relation extraction": ("chemprot", "ddi", "gad"),
        "Sentence similarity": ("biosses",),
        "Document classification": ("hoc",),
        "Question answering": ("pubmedqa", "bioasq-yesno"),
    }
)
"""Tasks of BLURB by type, in the paper's order."""
BLURB_TASKS: Final = tuple(task for tasks in TASKS_BY_TYPE.values() for task in tasks)


@dataclass(frozen=True, slots=True)
class BlurbScore:
    """BLURB score of a model, and its parts.

    Attributes:
        type_means: mean of each type; None if a task of the type is missing.
        score: BLURB score, the mean over six types of the mean over their tasks; None if a task is missing.
        missing_tasks: tasks without a score.
        partial_mean: macro average over the existing tasks; None without any. It is comparable only over the
            same tasks.
    """

    type_means: Mapping[str, float | None]
    score: float | None
    missing_tasks: tuple[str, ...]
    partial_mean: float | None


def compute_blurb(scores: Mapping[str, float]) -> BlurbScore:
    """Compute the BLURB score from scores by task; other tasks are ignored."""
    type_means: dict[str, float | None] = {}
    partial_means = []
    for name, tasks in TASKS_BY_TYPE.items():
        type_scores = [scores[task] for task in tasks if task in scores]
        mean = sum(type_scores) / len(type_scores) if type_scores else None
        type_means[name] = mean if len(type_scores) == len(tasks) else None
        if mean is not None:
            partial_means.append(mean)
    partial_mean = sum(partial_means) / len(partial_means) if partial_means else None
    missing_tasks = tuple(task for task in BLURB_TASKS if task not in scores)
    return BlurbScore(type_means, None if missing_tasks else partial_mean, missing_tasks, partial_mean)
