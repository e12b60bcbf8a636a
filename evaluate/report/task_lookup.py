"""Look up metric and suite settings of a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.runs.results import Result, ResultError
from bioshards.evaluate.tasks.task_registry import TASKS, find_recipe


def find_metric(result: Result) -> Metric:
    """Return the metric of a result.

    Raises:
        ResultError: the task is unknown, or its metric has other statistics.
    """
    task = TASKS.get(result["task"])
    metric = task.metric_for(result["legacy"]) if task else None  # type: ignore[arg-type]  # of a file
    if metric is None or list(metric.stat_names) != result["per_example_stats"]["names"]:
        raise ResultError(
            f"a result of task {result['task']!r} is of another version of bioshards: make the report with it"
        )
    return metric


def find_suite_settings(result: Result) -> Mapping[str, Any]:
    """Return the settings of a result's suite for its task; empty if the suite does not have it."""
    recipe = find_recipe(result["suite"], result["task"])
    return TASKS[result["task"]].drop_unused_settings(recipe).to_dict() if recipe else {}
