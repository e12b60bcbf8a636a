"""find_metric: to be described."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.runs.results import Result, ResultError
from bioshards.evaluate.tasks.task_registry import TASKS, find_recipe


def find_metric(result: Result) -> Metric:
    """By which measure a result was scored.

    Raises:
        ResultError: there is no such task, or it is measured in another way by now.
    """
    task = TASKS.get(result["task"])
    metric = task.metric_for(result["legacy"]) if task else None  # type: ignore[arg-type]  # of a file
    if metric is None or list(metric.stat_names) != result["per_example_stats"]["names"]:
        raise ResultError(
            f"a result of task {result['task']!r} is of another version of bioshards: make the report with it"
        )
    return metric


def find_suite_settings(result: Result) -> Mapping[str, Any]:
    """The settings that a suite has for a result's task; none, if it is of no suite that there is."""
    recipe = find_recipe(result["suite"], result["task"])
    return TASKS[result["task"]].drop_unused_settings(recipe).to_dict() if recipe else {}
