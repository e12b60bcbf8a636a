"""From result files to a report's file: what ``evaluate report`` does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.runs import results

from .evaluation_page import render_page
from .markdown import render_markdown
from .report_data import MetricLookup, SettingsLookup, build_report


def _format_json(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


FORMATTERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    ".html": render_page,
    ".md": render_markdown,
    ".json": _format_json,
}
"""What a report is written as, by how its file's name ends."""


def write_report(
    storage: LocalStorage,
    sources: Sequence[str],
    output: str,
    find_metric: MetricLookup,
    find_defaults: SettingsLookup,
) -> str:
    """Make a report of results; returns what to tell.

    Args:
        sources: result files, and folders of them.
        out: the report, ``.html``, ``.md`` or ``.json``; what is there is replaced.
        find_metric, find_defaults: see gathering.gather.

    Raises:
        ValueError: ``out`` ends otherwise.
        FileNotFoundError, ResultError: see results.find and report.gather.
    """
    suffix = os.path.splitext(output)[1].lower()
    if suffix not in FORMATTERS:
        raise InvalidValueError(f"--output {output}: a report is .html, .md or .json")
    result_by_path = results.find_results(storage, sources)
    report = build_report(result_by_path, find_metric, find_defaults)
    with storage.write(output) as file:
        file.write(FORMATTERS[suffix](report).encode("utf-8", "backslashreplace"))
    suites = ", ".join(_describe_suite(suite) for suite in report["suites"])
    return f"{len(result_by_path)} results: {suites}\nreport: {output}"


def _describe_suite(suite: Mapping[str, Any]) -> str:
    num_tasks = len(suite["tasks"])
    return f"{num_tasks} {'task' if num_tasks == 1 else 'tasks'} of {suite['suite']}"
