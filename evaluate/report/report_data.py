"""Report as plain data: the content of report.json, and the input of the HTML and Markdown pages.

The report depends on the results alone: same results, same bytes. Scores are in per cent, correlations and
MRR too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy

from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.blurb import TASKS_BY_TYPE, compute_blurb
from bioshards.evaluate.report.published import PUBLISHED_TABLES, PublishedTable
from bioshards.evaluate.report.report_types import (
    BlurbReport,
    Comparison,
    ModelReport,
    ModelScores,
    PublishedReport,
    Report,
    SuiteReport,
    TaskReport,
)
from bioshards.evaluate.report.seed_results import SeedResults, group_by_model, test_set_key
from bioshards.evaluate.report.tables import get_task_title
from bioshards.evaluate.runs.results import Result, ResultError
from bioshards.evaluate.tasks.task_registry import TASKS, find_recipe

FORMAT: Final = 4
_SUITE_ORDER: Final = ("blurb", "bio-electra", "electramed", "bioalbert")
"""Order of the papers' suites in a report; others follow by name."""
_TOLERANCE: Final = 1e-6

MetricLookup = Callable[[Result], Metric]
SettingsLookup = Callable[[Result], Mapping[str, Any]]


def find_metric(result: Result) -> Metric:
    """Return the metric of a result.

    Raises:
        ResultError: the task is unknown, or its metric has other statistics.
    """
    task = TASKS.get(result["task"])
    metric = task.metric_for(result["legacy"]) if task else None
    if metric is None or list(metric.stat_names) != result["per_example_stats"]["names"]:
        raise ResultError(
            f"a result of task {result['task']!r} is of another version of bioshards: make the report with it"
        )
    return metric


def find_suite_settings(result: Result) -> Mapping[str, Any]:
    """Return the settings of a result's suite for its task; empty if the suite does not have it."""
    recipe = find_recipe(result["suite"], result["task"])
    return TASKS[result["task"]].drop_unused_settings(recipe).to_dict() if recipe else {}


def build_report(
    results: Mapping[str, Result],
    find_metric: MetricLookup = find_metric,
    find_defaults: SettingsLookup = find_suite_settings,
) -> Report:
    """Build the report of results beside published scores.

    Args:
        results: results by path; the first model is the baseline of comparisons.
        find_metric: function from a result to its metric.
        find_defaults: function from a result to the settings of its suite for its task.

    Raises:
        ResultError: results contradict each other, or a score differs from its per-example statistics.
    """
    grouped = group_by_model(results)
    suites: dict[str, dict[str, list[SeedResults]]] = {}
    for (suite, task), seed_results in grouped.items():
        suites.setdefault(suite, {})[task] = seed_results
    known_suites = [suite for suite in _SUITE_ORDER if suite in suites]
    return {
        "format": FORMAT,
        "score_unit": "per cent",
        "standard_deviation": "numpy.std over seeds, ddof 0",
        "interval": {"level": bootstrap.CONFIDENCE_LEVEL, "resamples": bootstrap.RESAMPLES},
        "models": _describe_models(results),
        "suites": [
            _build_suite(suite, suites[suite], find_metric, find_defaults)
            for suite in [*known_suites, *sorted(set(suites).difference(known_suites))]
        ],
    }


def _describe_models(results: Mapping[str, Result]) -> list[ModelReport]:
    """List the models in the order of the results, with library versions and devices."""
    models: dict[str, ModelReport] = {}
    for result in results.values():
        model = models.setdefault(
            result["model"]["name"], {**result["model"], "library_versions": {}, "devices": []}
        )
        model["devices"] = sorted({*model["devices"], result["device"]})
        for name, version in result["library_versions"].items():
            model["library_versions"][name] = sorted({*model["library_versions"].get(name, []), version})
    return list(models.values())


def _build_suite(
    suite: str,
    tasks: Mapping[str, list[SeedResults]],
    find_metric: MetricLookup,
    find_defaults: SettingsLookup,
) -> SuiteReport:
    tables = [table for table in PUBLISHED_TABLES if table.suite == suite]
    published_tasks = [task for table in tables for task in table.tasks]
    order = [
        *(task for task in dict.fromkeys(published_tasks) if task in tasks),
        *sorted(set(tasks) - set(published_tasks)),
    ]
    task_reports = {task: _build_task(tasks[task], find_metric, find_defaults) for task in order}
    return {
        "suite": suite,
        "title": tables[0].title if tables else suite,
        "tasks": task_reports,
        "blurb": _build_blurb(task_reports, tables[0]) if suite == "blurb" else None,
        "published": [_describe_published(table) for table in tables],
    }


def _build_task(
    models: Sequence[SeedResults], find_metric: MetricLookup, find_defaults: SettingsLookup
) -> TaskReport:
    baseline, *other_models = models
    return {
        "title": get_task_title(baseline.first_result["task"]),
        "models": {
            model.label: _build_scores(model, find_metric, find_defaults(model.first_result))
            for model in models
        },
        "comparisons": [_compare_models(baseline, other_model, find_metric) for other_model in other_models],
    }


def _build_scores(
    seed_results: SeedResults, find_metric: MetricLookup, defaults: Mapping[str, Any]
) -> ModelScores:
    """Summarise the seeds of a model on a task."""
    result = seed_results.first_result
    test, main_score = seed_results.summarise_scores("test"), result["main_score"]
    interval = bootstrap.bootstrap_interval(
        find_metric(result),
        [_resampling_stats(seed_result) for seed_result in seed_results.results],
        score_name=main_score,
    )
    if abs(100 * interval.score - test[main_score]["mean"]) > _TOLERANCE:
        raise ResultError(
            f"the {main_score} of {seed_results.label} on {result['task']} ({result['suite']}) is "
            f"{test[main_score]['mean']:.2f} in its results, but their per-example statistics give "
            f"{100 * interval.score:.2f}: the files were edited or written by another version. "
            "Run those seeds again"
        )
    settings = result["settings"]
    return {
        "metric": result["metric"],
        "main_score": main_score,
        "seeds": seed_results.seeds,
        "score": {**test[main_score], "low": 100 * interval.low, "high": 100 * interval.high},
        "test": test,
        "dev": seed_results.summarise_scores("dev"),
        "majority": {name: 100 * score for name, score in result["scores"]["majority"].items()},
        "sample_sizes": result["sample_sizes"],
        "file_status": result["provenance"]["file_status"],
        "legacy": result["legacy"],
        "notes": result["provenance"]["notes"],
        "settings": settings,
        "changed_settings": {
            name: {"value": value, "default": defaults.get(name)}
            for name, value in settings.items()
            if name not in defaults or defaults[name] != value
        },
        "selected_steps": [seed_result["selected_step"] for seed_result in seed_results.results],
        "seconds": sum(seed_result["seconds"] for seed_result in seed_results.results),
    }


def _resampling_stats(result: Result) -> Numbers:
    """Return the units of resampling: documents if the files name them, else examples."""
    example_stats = numpy.array(result["per_example_stats"]["test"], dtype=numpy.float64).T
    documents = result["per_example_stats"].get("documents")
    if not documents:
        return example_stats
    document_stats = numpy.zeros((max(documents) + 1, example_stats.shape[1]))
    numpy.add.at(document_stats, documents, example_stats)
    return document_stats


def _compare_models(first: SeedResults, second: SeedResults, find_metric: MetricLookup) -> Comparison:
    """Compare two models on the same examples, over the seeds that both have."""
    first_result, second_result = first.first_result, second.first_result
    shared_seeds = [seed for seed in first.seeds if seed in second.seeds]
    comparison: Comparison = {
        "first": first.label,
        "second": second.label,
        "seeds": shared_seeds,
        "unshared_seeds": sorted(set(first.seeds) ^ set(second.seeds)),
    }
    skip_reason = (
        "not measured alike"
        if any(first_result[name] != second_result[name] for name in ("metric", "main_score", "legacy"))
        else "not the same test examples"
        if test_set_key(first_result) != test_set_key(second_result)
        else None
        if shared_seeds
        else "no seed in common"
    )
    if skip_reason:
        return {**comparison, "skip_reason": skip_reason}
    stats = [
        [_resampling_stats(result) for result in seed_results.results if result["seed"] in shared_seeds]
        for seed_results in (second, first)
    ]
    difference = bootstrap.paired_bootstrap(
        find_metric(first_result), *stats, score_name=first_result["main_score"]
    )
    return {
        **comparison,
        "difference": 100 * difference.score,
        "low": 100 * difference.low,
        "high": 100 * difference.high,
        "p_value": difference.p_value,
    }


def _build_blurb(tasks: Mapping[str, TaskReport], published: PublishedTable) -> BlurbReport:
    """Compute the BLURB score of each model, and the average over the tasks that all models here have."""
    our_scores: dict[str, dict[str, float]] = {}
    for task, task_report in tasks.items():
        for label, scores in task_report["models"].items():
            our_scores.setdefault(label, {})[task] = scores["score"]["mean"]
    published_scores = {
        model: {task: scores[model].mean for (task, _), scores in published.scores.items()}
        for model in published.models
    }
    shared_tasks = [
        task
        for tasks in TASKS_BY_TYPE.values()
        for task in tasks
        if all(task in model_scores for model_scores in our_scores.values())
    ]
    return {
        "models": {
            label: {
                "type_means": dict(blurb_score.type_means),
                "score": blurb_score.score,
                "missing_tasks": list(blurb_score.missing_tasks),
            }
            for label, scores in our_scores.items()
            for blurb_score in [compute_blurb(scores)]
        },
        "published": {
            model: {"type_means": dict(compute_blurb(scores).type_means)}
            for model, scores in published_scores.items()
        },
        # Ours and published ones apart: a model of ours may have the name of a published one.
        "shared_tasks": {
            "tasks": shared_tasks,
            "models": _average_tasks(our_scores, shared_tasks),
            "published": _average_tasks(published_scores, shared_tasks),
        },
    }


def _average_tasks(
    scores_by_model: Mapping[str, Mapping[str, float]], tasks: Sequence[str]
) -> dict[str, float | None]:
    """Return the average of each model over these tasks, as of the BLURB score."""
    return {
        name: compute_blurb({task: scores[task] for task in tasks}).partial_mean
        for name, scores in scores_by_model.items()
    }


def _describe_published(table: PublishedTable) -> PublishedReport:
    """Describe a paper's table, with notes at the table, its models, its rows or its cells."""
    blurb_scores = dict(zip(table.models, table.blurb_scores, strict=True)) if table.blurb_scores else {}
    models = sorted(table.models, key=lambda model: model not in table.own_models)  # the paper's own first
    return {
        "title": table.title,
        "source": table.source,
        "runs_note": table.runs_note,
        "notes": table.notes_for(),
        "models": {model: table.notes_for(model=model) for model in models},
        "blurb_scores": {model: blurb_scores[model] for model in models} if blurb_scores else None,
        "rows": [
            {
                "task": task,
                "score_name": score_name,
                "notes": table.notes_for(task=task),
                "scores": {
                    model: {"mean": score.mean, "sd": score.sd, "notes": table.notes_for(model, task)}
                    for model, score in scores.items()
                },
            }
            for (task, score_name), scores in table.scores.items()
        ],
    }
