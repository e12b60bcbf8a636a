"""Write a report file from result files (``evaluate report``)."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.report.evaluation_page import render_page
from bioshards.evaluate.report.markdown import render_markdown
from bioshards.evaluate.report.report_data import MetricLookup, SettingsLookup, build_report
from bioshards.evaluate.report.report_types import Report, SuiteReport
from bioshards.evaluate.report.table import get_task_title, iter_scores
from bioshards.evaluate.runs import results


def _format_json(report: Report) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


FORMATTERS: Final[Mapping[str, Callable[[Report], str]]] = {
    ".html": render_page,
    ".md": render_markdown,
    ".json": _format_json,
}
"""Renderer by suffix of the report file."""


def write_report(
    storage: LocalStorage,
    sources: Sequence[str],
    output: str,
    find_metric: MetricLookup,
    find_defaults: SettingsLookup,
) -> str:
    """Write the report of results, and return the main scores and a summary as text.

    Args:
        sources: result files and directories of results.
        output: path with suffix ``.html``, ``.md`` or ``.json``; an existing file is replaced.
        find_metric: see :func:`report_data.build_report`.
        find_defaults: see :func:`report_data.build_report`.

    Raises:
        InvalidValueError: the suffix is unknown.
        InputNotFoundError: a source does not exist.
        ResultError: see :func:`results.find_results` and :func:`report_data.build_report`.
    """
    suffix = os.path.splitext(output)[1].lower()
    if suffix not in FORMATTERS:
        raise InvalidValueError(f"--output {output}: a report is .html, .md or .json")
    result_by_path = results.find_results(storage, sources)
    report = build_report(result_by_path, find_metric, find_defaults)
    with storage.write(output) as file:
        file.write(FORMATTERS[suffix](report).encode("utf-8", "backslashreplace"))
    suites = ", ".join(_describe_suite(suite) for suite in report["suites"])
    lines = [line for suite in report["suites"] for line in _format_scores(suite)]
    return "\n".join([*lines, f"{len(result_by_path)} results: {suites}", f"report: {output}"])


def _format_scores(suite: SuiteReport) -> Iterator[str]:
    """Yield the main score of each task and model beside the majority baseline's."""
    rows = [(suite["title"], "model", "score", "", "majority class", "")]
    for task, label, scores in iter_scores(suite):
        name = scores["main_score"]
        flags = {
            scores["file_status"]: scores["file_status"] != "verified",
            "changed settings": bool(scores["changed_settings"]),
            "sample of the data": scores["sample_sizes"] is not None,
        }
        limits = [name for name, is_set in flags.items() if is_set]
        status = f"({', '.join(limits)})" if limits else ""
        numbers = (f"{scores['score']['mean']:.2f}", f"{scores['majority'][name]:.2f}")
        rows.append((f"  {get_task_title(task)}", label, name, numbers[0], numbers[1], status))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for title, label, name, score, majority, status in rows:
        yield (
            f"{title:<{widths[0]}}  {label:<{widths[1]}}  {name:<{widths[2]}}  {score:>{widths[3]}}  "
            f"{majority:>{widths[4]}}  {status}"
        ).rstrip()


def _describe_suite(suite: SuiteReport) -> str:
    num_tasks = len(suite["tasks"])
    return f"{num_tasks} {'task' if num_tasks == 1 else 'tasks'} of {suite['suite']}"
