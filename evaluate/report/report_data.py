"""Report as plain data: the content of report.json, and the input of the HTML and Markdown pages.

The report depends on the results alone: same results, same bytes. Scores are in per cent, correlations and
MRR too.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy
from msgspec import structs

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.verification import FileStatus
from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.blurb import compute_blurb
from bioshards.evaluate.report.published import PUBLISHED_TABLES, TASK_TITLES
from bioshards.evaluate.report.seed_results import MeanScore, SeedResults, group_by_model, test_set_key
from bioshards.evaluate.runs.results import Result, ResultError
from bioshards.evaluate.tasks.task_registry import TASKS, find_recipe

FORMAT: Final = 4
STANDARD_DEVIATION: Final = "numpy.std over seeds, ddof 0"
_SUITE_ORDER: Final = ("blurb", "bio-electra", "electramed", "bioalbert")
"""Order of the papers' suites in a report; others follow by name."""
_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model, with the library versions and the devices of its runs."""

    name: str
    path: str
    type: str
    parameters: int
    sha256: str
    library_versions: dict[str, list[str]]
    devices: list[str]


@dataclass(frozen=True, slots=True)
class TaskScores:
    """Scores of a model on a task, and how they came about.

    Attributes:
        title: title of the task.
        model: name of the model, with its legacy modes.
        score: main score on test, with the bounds ``low`` and ``high`` of its bootstrap interval.
        test: scores on test by name.
        dev: scores on dev by name; empty if the last epoch was selected.
        majority: scores of the majority baseline on test by name.
        file_status: what is known of the files (benchmarks/verification.py).
        changed_settings: ``value`` and ``default`` of each setting that is not the suite's.
        seconds: run time of all seeds.
    """

    suite: str
    task: str
    title: str
    model: str
    metric: str
    main_score: str
    seeds: list[int]
    score: MeanScore
    low: float
    high: float
    test: dict[str, MeanScore]
    dev: dict[str, MeanScore]
    majority: dict[str, float]
    sample_sizes: dict[str, int] | None
    file_status: FileStatus
    legacy: list[str]
    notes: list[str]
    settings: dict[str, Any]
    changed_settings: dict[str, dict[str, Any]]
    selected_steps: list[int]
    seconds: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """Comparison of two models on the same examples.

    Attributes:
        seeds: seeds that both models have.
        unshared_seeds: seeds that one model has.
        skip_reason: why the models are not compared, or ""; the fields below are None then.
        difference: second minus first, of the means over ``seeds``, with the bounds of its interval.
        p_value: two-sided.
    """

    suite: str
    task: str
    first: str
    second: str
    seeds: list[int]
    unshared_seeds: list[int]
    skip_reason: str = ""
    difference: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A report: scores by suite, in each by task, in each by model, in the order of the tables."""

    models: list[ModelInfo]
    scores: list[TaskScores]
    comparisons: list[Comparison]

    def scores_by_suite(self) -> dict[str, list[TaskScores]]:
        """Return the scores of each suite."""
        by_suite: dict[str, list[TaskScores]] = {}
        for scores in self.scores:
            by_suite.setdefault(scores.suite, []).append(scores)
        return by_suite

    def to_json(self) -> dict[str, Any]:
        """Return the content of report.json: lists of one shape each, the published scores beside ours."""
        blurb = main_scores_by_model(self.scores_by_suite().get("blurb", ()))
        return {
            "format": FORMAT,
            "score_unit": "per cent",
            "standard_deviation": STANDARD_DEVIATION,
            "interval": {"level": bootstrap.CONFIDENCE_LEVEL, "resamples": bootstrap.RESAMPLES},
            **asdict(self),
            "blurb": [{"model": model, **asdict(compute_blurb(scores))} for model, scores in blurb.items()],
            "published": list(_list_published_scores(self.scores_by_suite())),
        }


def get_task_title(task: str) -> str:
    """Return the title of a task in reports: that of the papers, else of the benchmark, else its name."""
    if task in TASK_TITLES:
        return TASK_TITLES[task]
    return BENCHMARKS[task].title if task in BENCHMARKS else task


def main_scores_by_model(scores: Sequence[TaskScores]) -> dict[str, dict[str, float]]:
    """Return the means of the main scores by model and task."""
    means: dict[str, dict[str, float]] = {}
    for each in scores:
        means.setdefault(each.model, {})[each.task] = each.score.mean
    return means


def build_report(results: Mapping[str, Result]) -> Report:
    """Build the report of results.

    Args:
        results: results by path; the first model of a task is the baseline of comparisons.

    Raises:
        ResultError: results contradict each other, or a score differs from its per-example statistics.
    """
    grouped = group_by_model(results)
    published = [(table.suite, task) for table in PUBLISHED_TABLES for task in table.tasks]

    def sort_key(suite_and_task: tuple[str, str]) -> tuple[int, str, int, str]:
        suite, task = suite_and_task
        suite_rank = _SUITE_ORDER.index(suite) if suite in _SUITE_ORDER else len(_SUITE_ORDER)
        rank = published.index(suite_and_task) if suite_and_task in published else len(published)
        return suite_rank, suite, rank, task

    groups = [grouped[key] for key in sorted(grouped, key=sort_key)]
    return Report(
        _describe_models(results),
        [_summarise_scores(model) for models in groups for model in models],
        [_compare_models(baseline, other) for baseline, *others in groups for other in others],
    )


def _describe_models(results: Mapping[str, Result]) -> list[ModelInfo]:
    """List the models in the order of the results, with library versions and devices."""
    models: dict[str, ModelInfo] = {}
    for result in results.values():
        new_model = ModelInfo(**structs.asdict(result.model), library_versions={}, devices=[])
        model = models.setdefault(new_model.name, new_model)
        model.devices[:] = sorted({*model.devices, result.device})
        for name, version in result.library_versions.items():
            model.library_versions[name] = sorted({*model.library_versions.get(name, []), version})
    return list(models.values())


def find_metric(result: Result) -> Metric:
    """Return the metric of a result.

    Raises:
        ResultError: the task is unknown, or its metric has other statistics.
    """
    task = TASKS.get(result.task)
    metric = task.metric_for(result.legacy) if task else None
    if metric is None or list(metric.stat_names) != result.per_example_stats.names:
        raise ResultError(
            f"a result of task {result.task!r} is of another version of bioshards: make the report with it"
        )
    return metric


def find_suite_settings(result: Result) -> Mapping[str, Any]:
    """Return the settings of a result's suite for its task; empty if the suite does not have it."""
    recipe = find_recipe(result.suite, result.task)
    return TASKS[result.task].drop_unused_settings(recipe).to_dict() if recipe else {}


def _summarise_scores(seed_results: SeedResults) -> TaskScores:
    """Summarise the seeds of a model on a task."""
    result, defaults = seed_results.first_result, find_suite_settings(seed_results.first_result)
    test, main_score = seed_results.summarise_scores("test"), result.main_score
    stats = [_resampling_stats(seed_result) for seed_result in seed_results.results]
    interval = bootstrap.bootstrap_interval(find_metric(result), stats, score_name=main_score)
    if abs(100 * interval.score - test[main_score].mean) > _TOLERANCE:
        raise ResultError(
            f"the {main_score} of {seed_results.label} on {result.task} ({result.suite}) is "
            f"{test[main_score].mean:.2f} in its results, but their per-example statistics give "
            f"{100 * interval.score:.2f}: the files were edited or written by another version. "
            "Run those seeds again"
        )
    return TaskScores(
        suite=result.suite,
        task=result.task,
        title=get_task_title(result.task),
        model=seed_results.label,
        metric=result.metric,
        main_score=main_score,
        seeds=seed_results.seeds,
        score=test[main_score],
        low=100 * interval.low,
        high=100 * interval.high,
        test=test,
        dev=seed_results.summarise_scores("dev"),
        majority={name: 100 * score for name, score in result.scores["majority"].items()},
        sample_sizes=result.sample_sizes,
        file_status=result.provenance.file_status,
        legacy=result.legacy,
        notes=result.provenance.notes,
        settings=result.settings,
        changed_settings={
            name: {"value": value, "default": defaults.get(name)}
            for name, value in result.settings.items()
            if name not in defaults or defaults[name] != value
        },
        selected_steps=[seed_result.selected_step for seed_result in seed_results.results],
        seconds=sum(seed_result.seconds for seed_result in seed_results.results),
    )


def _resampling_stats(result: Result) -> Numbers:
    """Return the units of resampling: documents if the files name them, else examples."""
    example_stats = numpy.array(result.per_example_stats.test, dtype=numpy.float64).T
    documents = result.per_example_stats.documents
    if not documents:
        return example_stats
    document_stats = numpy.zeros((max(documents) + 1, example_stats.shape[1]))
    numpy.add.at(document_stats, documents, example_stats)
    return document_stats


def _compare_models(first: SeedResults, second: SeedResults) -> Comparison:
    """Compare two models on the same examples, over the seeds that both have."""
    first_result, second_result = first.first_result, second.first_result
    shared_seeds = [seed for seed in first.seeds if seed in second.seeds]
    skip_reason = ""
    if any(
        getattr(first_result, name) != getattr(second_result, name)
        for name in ("metric", "main_score", "legacy")
    ):
        skip_reason = "not measured alike"
    elif test_set_key(first_result) != test_set_key(second_result):
        skip_reason = "not the same test examples"
    elif not shared_seeds:
        skip_reason = "no seed in common"
    comparison = Comparison(
        suite=first_result.suite,
        task=first_result.task,
        first=first.label,
        second=second.label,
        seeds=shared_seeds,
        unshared_seeds=sorted(set(first.seeds) ^ set(second.seeds)),
        skip_reason=skip_reason,
    )
    if skip_reason:
        return comparison
    second_stats, first_stats = (
        [_resampling_stats(result) for result in seed_results.results if result.seed in shared_seeds]
        for seed_results in (second, first)
    )
    difference = bootstrap.paired_bootstrap(
        find_metric(first_result), second_stats, first_stats, score_name=first_result.main_score
    )
    return replace(
        comparison,
        difference=100 * difference.score,
        low=100 * difference.low,
        high=100 * difference.high,
        p_value=difference.p_value,
    )


def _list_published_scores(suites: Mapping[str, object]) -> Iterator[dict[str, Any]]:
    """Yield each printed score of these suites, with the notes on its table, column, row and cell."""
    for table in PUBLISHED_TABLES:
        if table.suite not in suites:
            continue
        for (task, score_name), scores in table.scores.items():
            for model in table.columns:
                if model in scores:
                    yield {
                        "suite": table.suite,
                        "table": table.title,
                        "source": table.source,
                        "task": task,
                        "model": model,
                        "score_name": score_name,
                        **asdict(scores[model]),
                        "notes": [
                            *table.notes_for(),
                            *table.notes_for(model),
                            *table.notes_for(task=task),
                            *table.notes_for(model, task),
                        ],
                    }
