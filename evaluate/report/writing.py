"""From result files to a report's file: what ``evaluate report`` does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.files import LocalFiles
from bioshards.evaluate import results

from .gathering import DefaultsOf, MetricOf, gather
from .markdown import markdown
from .page import page


def _plain(report: Mapping[str, Any]) -> str:
    return json.dumps(report, indent=1, ensure_ascii=False) + "\n"


WRITERS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    ".html": page,
    ".md": markdown,
    ".json": _plain,
}
"""What a report is written as, by how its file's name ends."""


def write(
    files: LocalFiles, sources: Sequence[str], out: str, metric_of: MetricOf, defaults_of: DefaultsOf
) -> str:
    """Make a report of results; returns what to tell.

    Args:
        sources: result files, and folders of them.
        out: the report, ``.html``, ``.md`` or ``.json``; what is there is replaced.
        metric_of, defaults_of: see gathering.gather.

    Raises:
        ValueError: ``out`` ends otherwise.
        FileNotFoundError, ResultError: see results.find and report.gather.
    """
    ending = os.path.splitext(out)[1].lower()
    if ending not in WRITERS:
        raise InvalidValueError(f"--out {out}: a report is .html, .md or .json")
    found = results.find(files, sources)
    report = gather(found, metric_of, defaults_of)
    with files.write(out) as file:
        file.write(WRITERS[ending](report).encode("utf-8", "backslashreplace"))
    suites = ", ".join(_said(suite) for suite in report["suites"])
    return f"{len(found)} results: {suites}\nreport: {out}"


def _said(suite: Mapping[str, Any]) -> str:
    count = len(suite["tasks"])
    return f"{count} {'task' if count == 1 else 'tasks'} of {suite['suite']}"
