"""Table of our scores beside a paper's, in the paper's layout.

BLURB has rows for means by type and for the BLURB score too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from bioshards.evaluate.report.blurb import TASKS_BY_TYPE
from bioshards.evaluate.report.report_types import (
    BlurbReport,
    ModelScores,
    PublishedReport,
    PublishedRow,
    SuiteReport,
)
from bioshards.evaluate.report.table import (
    INVENTED,
    INVENTED_SYMBOL,
    NO_SCORE,
    Cell,
    Footnotes,
    ReportTable,
    collect_footnote_symbols,
    format_interval,
    format_mean,
    get_footnote_symbols,
    get_task_title,
    iter_scores,
    list_model_labels,
    make_model_headers,
    make_published_cells,
    make_row_header,
    make_task_cell,
)

_MAJORITY_NOTE: Final = (
    "What a model scores that knows the labels of train and reads no text: the most frequent class, no "
    "entity, the mean, the order of the files, no answer."
)


def build_score_table(suite: SuiteReport, published: PublishedReport) -> ReportTable:
    """Build the table: the paper's rows, then rows of scores that the paper does not have."""
    our_labels, footnotes = list_model_labels(suite), Footnotes()
    header = [
        Cell("Task"),
        Cell("Score"),
        *(Cell(label, is_ours=True) for label in our_labels),
        Cell("Majority class", footnotes.add("", [_MAJORITY_NOTE])),
        *make_model_headers(published, footnotes),
    ]
    rows = []
    for row in [*published["rows"], *_iter_extra_rows(suite, published)]:
        models = suite["tasks"].get(row["task"], {"models": {}})["models"]
        row_header, score_name = make_row_header(row, footnotes)
        cells = [make_task_cell(row["task"], models.values(), row_header.marks), score_name]
        cells += [_make_our_cell(models.get(label), row["score_name"], footnotes) for label in our_labels]
        cells.append(_make_majority_cell(models.values(), row["score_name"]))
        rows.append([*cells, *make_published_cells(row, published["models"], footnotes)])
    if suite["blurb"]:
        rows += _make_blurb_rows(suite, suite["blurb"], published, footnotes)
    intro = (
        [f"Published scores: {published['source']}; {published['runs_note']}."] if published["models"] else []
    )
    missing_titles = dict.fromkeys(
        get_task_title(row["task"]) for row in published["rows"] if row["task"] not in suite["tasks"]
    )
    if missing_titles and not suite["blurb"]:
        intro.append(f"Without results here: {', '.join(missing_titles)}.")
    all_footnotes = [*(("", note) for note in published["notes"]), *footnotes.entries()]
    return ReportTable(suite["title"], header, rows, (1,), intro, all_footnotes)


def _iter_extra_rows(suite: SuiteReport, published: PublishedReport) -> Iterator[PublishedRow]:
    """Yield rows for scores that the paper does not have."""
    known_rows = {(row["task"], row["score_name"]) for row in published["rows"]}
    our_rows = dict.fromkeys((task, scores["main_score"]) for task, _, scores in iter_scores(suite))
    for task, score_name in our_rows:
        if (task, score_name) not in known_rows:
            yield {"task": task, "score_name": score_name, "scores": {}, "notes": []}


def _make_our_cell(scores: ModelScores | None, score_name: str, footnotes: Footnotes) -> Cell:
    if scores is None or score_name not in scores["test"]:
        return Cell(NO_SCORE, is_ours=True)
    marks = footnotes.add(get_footnote_symbols(scores), scores["notes"])
    score, num_seeds = scores["test"][score_name], len(scores["seeds"])
    if score_name != scores["main_score"]:
        return Cell(format_mean(score, num_seeds), marks, is_ours=True)
    return Cell(
        f"{format_mean(score, num_seeds)} n={num_seeds}",
        marks,
        format_interval(scores["score"]),
        is_ours=True,
    )


def _make_majority_cell(models: Iterable[ModelScores], score_name: str) -> Cell:
    """Return the majority baseline's score; several if the models have several samples of the data."""
    texts = dict.fromkeys(
        f"{scores['majority'][score_name]:.2f}" for scores in models if score_name in scores["majority"]
    )
    return Cell(" / ".join(texts) or NO_SCORE)


def _make_blurb_rows(
    suite: SuiteReport, blurb_report: BlurbReport, published: PublishedReport, footnotes: Footnotes
) -> Iterator[list[Cell]]:
    """Yield the means by task type, the BLURB score, and a partial average if tasks are missing."""
    our_labels, published_models = list_model_labels(suite), published["models"]

    def make_row(
        title: str, our_cells: list[Cell], published_scores: Iterable[float | None], marks: str = ""
    ) -> list[Cell]:
        is_invented = any(INVENTED_SYMBOL in cell.marks for cell in our_cells)
        title_cell = Cell(title, marks, INVENTED if is_invented else "")
        published_cells = [Cell(f"{score:.2f}") for score in published_scores]
        return [title_cell, Cell(""), *our_cells, Cell(NO_SCORE), *published_cells]

    def add_marks(label: str, tasks: Sequence[str], texts: Sequence[str] = ()) -> str:
        return footnotes.add(collect_footnote_symbols(suite, label, tasks), texts)

    for type_name, tasks in TASKS_BY_TYPE.items():
        type_title = f"{type_name}, mean of {len(tasks)}" if len(tasks) > 1 else type_name
        our_cells = []
        for label in our_labels:
            type_mean = blurb_report["models"][label]["type_means"][type_name]
            marks = add_marks(label, tasks) if type_mean is not None else ""
            our_cells.append(_make_blurb_cell(type_mean, marks))
        published_means = [
            blurb_report["published"][model]["type_means"][type_name] for model in published_models
        ]
        yield make_row(type_title, our_cells, published_means)
    our_cells = []
    for label in our_labels:
        model_report = blurb_report["models"][label]
        missing_notes = (
            [f"No BLURB score without {', '.join(map(get_task_title, model_report['missing_tasks']))}."]
            if model_report["missing_tasks"]
            else []
        )
        our_cells.append(
            _make_blurb_cell(
                model_report["score"],
                add_marks(label, list(suite["tasks"]) if not missing_notes else [], missing_notes),
            )
        )
    yield make_row("BLURB score", our_cells, (published["blurb_scores"] or {}).values())
    shared_tasks = blurb_report["shared_tasks"]["tasks"]
    if shared_tasks and any(model_entry["missing_tasks"] for model_entry in blurb_report["models"].values()):
        explanation = [
            "Not the BLURB score: the same average of types over the tasks that all models here have, "
            f"{', '.join(map(get_task_title, shared_tasks))}."
        ]
        means = blurb_report["shared_tasks"]["models"]
        title_marks = footnotes.add("", explanation)
        our_cells = [_make_blurb_cell(means[label], add_marks(label, shared_tasks)) for label in our_labels]
        title = f"Average over {len(shared_tasks)} of 13 tasks"
        yield make_row(title, our_cells, [means[model] for model in published_models], title_marks)


def _make_blurb_cell(value: float | None, marks: str) -> Cell:
    return Cell(NO_SCORE if value is None else f"{value:.2f}", marks, is_ours=True)
