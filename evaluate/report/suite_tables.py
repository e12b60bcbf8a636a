"""Tables of a report as plain text, which the HTML and Markdown renderers share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from bioshards.evaluate.benchmarks.known_files import FileStatus
from bioshards.evaluate.report.report_types import (
    Comparison,
    ModelScores,
    PublishedReport,
    Report,
    SuiteReport,
)
from bioshards.evaluate.report.score_table import build_score_table
from bioshards.evaluate.report.table import (
    FOOTNOTE_SYMBOLS,
    NO_SCORE,
    Cell,
    Footnotes,
    ReportTable,
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

_FILE_STATUS_TEXTS: Final[Mapping[FileStatus, str]] = {
    "verified": "verified (SHA-256)",
    "counts agree": "counts agree",
    "partial": "partial",
    "differs": "not as published",
    "invented": "invented",
}
_NO_PUBLISHED_TABLE: Final[PublishedReport] = {
    "title": "",
    "source": "",
    "runs_note": "",
    "notes": [],
    "models": {},
    "charted_models": [],
    "blurb_scores": None,
    "rows": [],
}
"""Stands in for a paper's table in suites without one."""


def format_legend(report: Report) -> str:
    """Explain the numbers of all tables."""
    interval = report["interval"]
    return (
        "Scores are in per cent. Scores of our models are means over n seeds, with the standard deviation "
        f"in brackets ({report['standard_deviation']}). Below is the {interval['level']:.0%} interval of "
        f"{interval['resamples']:,} bootstrap resamples; it covers the choice of test documents (examples, "
        "if files name no documents), not the choice of seeds. Footnotes name limits of comparability."
    )


def build_models_table(report: Report) -> ReportTable:
    """Build the table of models."""
    rows = [
        [
            Cell(model["name"], is_ours=True),
            Cell(model["type"]),
            Cell(f"{model['parameters']:,}"),
            Cell(model["sha256"][:12]),
            Cell(
                "; ".join(
                    f"{name} {', '.join(versions)}" for name, versions in model["library_versions"].items()
                )
            ),
            Cell(", ".join(model["devices"])),
        ]
        for model in report["models"]
    ]
    header = ["Model", "Type", "Parameters", "SHA-256 of weights", "Fine-tuned with", "On"]
    return ReportTable("Models", list(map(Cell, header)), rows, left_aligned=(1, 3, 4, 5))


def build_suite_tables(suite: SuiteReport) -> Iterator[ReportTable]:
    """Yield the tables of a suite: scores, comparisons, changed settings, runs, all scores, variants."""
    published, *variants = suite["published"] or [_NO_PUBLISHED_TABLE]
    yield build_score_table(suite, published)
    if any(task_report["comparisons"] for task_report in suite["tasks"].values()):
        yield _build_comparison_table(suite)
    if any(scores["changed_settings"] for _, _, scores in iter_scores(suite)):
        yield _build_settings_table(suite)
    yield _build_runs_table(suite)
    yield _build_all_scores_table(suite)
    for table in variants:
        yield _build_variant_table(table)


def _build_comparison_table(suite: SuiteReport) -> ReportTable:
    """Build the table that compares each other model with the first."""
    footnotes, rows = Footnotes(), []
    for task, task_report in suite["tasks"].items():
        for comparison in task_report["comparisons"]:
            both_symbols = "".join(
                get_footnote_symbols(task_report["models"][comparison[name]]) for name in ("first", "second")
            )
            marks = footnotes.add(
                "".join(symbol for symbol in FOOTNOTE_SYMBOLS if symbol in both_symbols), []
            )
            names = [Cell(comparison[name], is_ours=True) for name in ("second", "first")]
            task_cell = make_task_cell(task, task_report["models"].values(), marks)
            rows.append([task_cell, *names, *map(Cell, _make_difference_cells(comparison))])
    num_tests = sum(
        "p_value" in comparison
        for task_report in suite["tasks"].values()
        for comparison in task_report["comparisons"]
    )
    explanation = (
        "By paired bootstrap on the same test examples, of means over the seeds that both models have; p is "
        f"two-sided and of one comparison alone: of {num_tests}, chance makes about {0.05 * num_tests:.1f} "
        "smaller "
        "than 0.05."
    )
    header = ["Task", "Model", "Compared with", "Difference", "Interval", "p", "Seeds"]
    return ReportTable(
        "Models compared",
        list(map(Cell, header)),
        rows,
        (1, 2, 6),
        footnotes=[("", explanation), *footnotes.entries()],
    )


def _make_difference_cells(comparison: Comparison) -> list[str]:
    if "skip_reason" in comparison:
        return [NO_SCORE, NO_SCORE, NO_SCORE, comparison["skip_reason"]]
    seeds = ", ".join(map(str, comparison["seeds"]))
    if comparison["unshared_seeds"]:
        seeds += f" (only one has {', '.join(map(str, comparison['unshared_seeds']))})"
    return [
        f"{comparison['difference']:+.2f}",
        format_interval(comparison),
        f"{comparison['p_value']:.3f}",
        seeds,
    ]


def _build_settings_table(suite: SuiteReport) -> ReportTable:
    tasks: dict[tuple[str, str, str, str], list[str]] = {}
    for task, label, scores in iter_scores(suite):
        for name, change in scores["changed_settings"].items():
            key = (label, name, _format_value(change["value"]), _format_value(change["default"]))
            tasks.setdefault(key, []).append(get_task_title(task))
    rows = [
        [Cell(key[0], is_ours=True), *map(Cell, key[1:]), Cell(", ".join(task_titles))]
        for key, task_titles in tasks.items()
    ]
    header = ["Model", "Setting", "Here", "Suite's own", "Tasks"]
    return ReportTable("Settings that are not the suite's", list(map(Cell, header)), rows, (1, 4))


def _format_value(value: object) -> str:
    return NO_SCORE if value is None else str(value)


def _build_runs_table(suite: SuiteReport) -> ReportTable:
    rows = []
    for task, label, scores in iter_scores(suite):
        sample_text = ", ".join(
            f"{split} {num_examples:,}" for split, num_examples in (scores["sample_sizes"] or {}).items()
        )
        cells = [
            scores["metric"] + (f"; legacy: {', '.join(scores['legacy'])}" if scores["legacy"] else ""),
            sample_text or "all",
            _FILE_STATUS_TEXTS[scores["file_status"]],
            ", ".join(map(str, scores["seeds"])),
            ", ".join(map(str, scores["selected_steps"])),
            _format_duration(scores["seconds"]),
        ]
        rows.append([make_task_cell(task, [scores]), Cell(label, is_ours=True), *map(Cell, cells)])
    header = [
        "Task",
        "Model",
        "Metric",
        "Examples",
        "Files",
        "Seeds",
        "Best steps",
        "Time",
    ]
    return ReportTable("Runs", list(map(Cell, header)), rows, (1, 2, 3, 4, 5, 6), is_collapsed=True)


def _format_duration(seconds: float) -> str:
    minutes, remaining_seconds = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{remaining_seconds:02}"


def _build_all_scores_table(suite: SuiteReport) -> ReportTable:
    """Build the table of every score of every metric, on test and dev."""
    our_labels, footnotes, rows = list_model_labels(suite), Footnotes(), []
    for task, task_report in suite["tasks"].items():
        for score_name in dict.fromkeys(
            name for scores in task_report["models"].values() for name in scores["test"]
        ):
            cells: list[Cell] = []
            for label in our_labels:
                cells += _make_split_cells(task_report["models"].get(label), score_name, footnotes)
            task_cell = make_task_cell(task, task_report["models"].values())
            rows.append([task_cell, Cell(score_name), *cells])
    header = [Cell(f"{label}, {split}", is_ours=True) for label in our_labels for split in ("test", "dev")]
    header = [Cell("Task"), Cell("Score"), *header]
    return ReportTable("All scores", header, rows, (1,), footnotes=footnotes.entries(), is_collapsed=True)


def _make_split_cells(scores: ModelScores | None, score_name: str, footnotes: Footnotes) -> list[Cell]:
    if scores is None:
        return [Cell(NO_SCORE, is_ours=True)] * 2
    marks = footnotes.add(get_footnote_symbols(scores), [])
    split_scores = [scores[split].get(score_name) for split in ("test", "dev")]
    return [
        Cell(format_mean(score, len(scores["seeds"])) if score else NO_SCORE, marks, is_ours=True)
        for score in split_scores
    ]


def _build_variant_table(published: PublishedReport) -> ReportTable:
    footnotes = Footnotes()
    header = [Cell("Task"), Cell("Score"), *make_model_headers(published, footnotes)]
    rows = [
        [*make_row_header(row, footnotes), *make_published_cells(row, published["models"], footnotes)]
        for row in published["rows"]
    ]
    if published["blurb_scores"]:
        scores = (Cell(f"{score:.2f}") for score in published["blurb_scores"].values())
        rows.append([Cell("BLURB score"), Cell(""), *scores])
    intro = [f"{published['source']}; {published['runs_note']}."]
    return ReportTable(published["title"], header, rows, (1,), intro, footnotes.entries(), is_collapsed=True)
