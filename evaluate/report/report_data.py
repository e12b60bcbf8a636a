"""Report as plain data: the content of report.json, and the input of the HTML and Markdown pages.

Results are grouped by suite, task and model; results that contradict each other are refused. The report
depends on the results alone: same results, same bytes. Scores are in per cent, correlations and MRR too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import msgspec
import numpy
from msgspec import structs

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.verification import FileStatus
from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.recipes import SUITES
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report.published import PUBLISHED_TABLES, TASK_TITLES, Score, compute_blurb
from bioshards.evaluate.runs.results import Result, ResultError
from bioshards.evaluate.tasks.task_registry import TASKS, find_recipe

FORMAT: Final = 4
STANDARD_DEVIATION: Final = "numpy.std over seeds, ddof 0"
_TOLERANCE: Final = 1e-6
_SHARED_FIELDS: Final = ("metric", "main_score", "settings", "sample_sizes", "provenance")
"""Fields that must be equal for all seeds of a model and task."""


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
    score: Score
    low: float
    high: float
    test: dict[str, Score]
    dev: dict[str, Score]
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
        suites = self.scores_by_suite()
        blurb = main_scores_by_model(suites.get("blurb", ()))
        return {
            "format": FORMAT,
            "score_unit": "per cent",
            "standard_deviation": STANDARD_DEVIATION,
            "interval": {"level": bootstrap.CONFIDENCE_LEVEL, "resamples": bootstrap.RESAMPLES},
            **asdict(self),
            "blurb": [{"model": model, **asdict(compute_blurb(scores))} for model, scores in blurb.items()],
            "published": list(_list_published_scores(suites)),
        }


def get_task_title(task: str) -> str:
    """Return the title of a task in reports: that of the papers, else of the benchmark, else its name."""
    return TASK_TITLES.get(task) or (BENCHMARKS[task].title if task in BENCHMARKS else task)


def main_scores_by_model(scores: Sequence[TaskScores]) -> dict[str, dict[str, float]]:
    """Return the means of the main scores by model and task."""
    means: dict[str, dict[str, float]] = {}
    for each in scores:
        means.setdefault(each.model, {})[each.task] = each.score.mean
    return means


def _list_published_scores(suites: Collection[str]) -> Iterator[dict[str, Any]]:
    """Yield each printed score of these suites, with the notes on its table, column, row and cell."""
    for table in PUBLISHED_TABLES:
        if table.suite not in suites:
            continue
        for (task, score_name), scores in table.scores.items():
            for model in filter(scores.__contains__, table.columns):
                notes = table.notes_for() + table.notes_for(model) + table.notes_for(task=task)
                yield {
                    "suite": table.suite,
                    "table": table.title,
                    "source": table.source,
                    "task": task,
                    "model": model,
                    "score_name": score_name,
                    **asdict(scores[model]),
                    "notes": notes + table.notes_for(model, task),
                }


def build_report(results: Mapping[str, Result]) -> Report:
    """Build the report of results.

    Args:
        results: results by path; the first model of a task is the baseline of comparisons.

    Raises:
        ResultError: results contradict each other, or a score differs from its per-example statistics.
    """
    grouped = group_by_model(results)
    suites = list(SUITES)
    published = [(table.suite, task) for table in PUBLISHED_TABLES for task in table.tasks]

    def sort_key(suite_and_task: tuple[str, str]) -> tuple[int, str, int, str]:
        suite, task = suite_and_task
        suite_rank = suites.index(suite) if suite in suites else len(suites)
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


# Grouping


@dataclass(frozen=True, slots=True)
class SeedResults:
    """Results of a model on a task, by ascending seed.

    Attributes:
        label: name of the model, with its legacy modes.
    """

    label: str
    results: list[Result]

    @property
    def first_result(self) -> Result:
        """Result of the lowest seed, for the fields that all seeds share."""
        return self.results[0]

    @property
    def seeds(self) -> list[int]:
        """Seeds, ascending."""
        return [result.seed for result in self.results]

    def summarise_scores(self, split: str) -> dict[str, Score]:
        """Return mean and standard deviation (ddof 0) of each score of a split, in per cent.

        SOURCE: the papers print ``np.std`` in brackets (SciCrunch/bio_electra).
        """
        scores_by_seed = [result.scores.get(split, {}) for result in self.results]
        summary = {}
        for name in scores_by_seed[0]:
            values = [100 * scores[name] for scores in scores_by_seed if name in scores]
            if len(values) == len(self.results):
                summary[name] = Score(float(numpy.mean(values)), float(numpy.std(values)))
        return summary


def group_by_model(results: Mapping[str, Result]) -> dict[tuple[str, str], list[SeedResults]]:
    """Group results by suite and task; in each, one SeedResults for each model, in the order of the results.

    Raises:
        ResultError: a seed occurs twice with different scores, two models share a name, or seeds of a model
            and task have different settings.
    """
    first_paths: dict[str, str] = {}
    by_label: dict[str, dict[tuple[str, str], dict[int, str]]] = {}
    for path, result in results.items():
        model = result.model
        first_path = first_paths.setdefault(model.name, path)
        if results[first_path].model.sha256 != model.sha256:
            raise ResultError(
                f"{first_path} and {path} are of two models that are both named {model.name}: "
                "run one of them again with another --model-name, or report them apart"
            )
        groups = by_label.setdefault(_format_label(result), {})
        paths = groups.setdefault((result.suite, result.task), {})
        seed_path = paths.setdefault(result.seed, path)
        if _without_circumstances(results[seed_path]) != _without_circumstances(result):
            raise ResultError(
                f"{seed_path} and {path} are both seed {result.seed} of {_describe(result)}, and are not the "
                "same: name one of them only"
            )
    grouped: dict[tuple[str, str], list[SeedResults]] = {}
    for label, groups in by_label.items():
        for suite_and_task, paths in groups.items():
            _check_same_settings({path: results[path] for path in paths.values()})
            seed_results = [results[paths[seed]] for seed in sorted(paths)]
            grouped.setdefault(suite_and_task, []).append(SeedResults(label, seed_results))
    return grouped


def _format_label(result: Result) -> str:
    """Return the name of the model, with its legacy modes."""
    return result.model.name + (f" (legacy: {', '.join(result.legacy)})" if result.legacy else "")


def _describe(result: Result) -> str:
    return f"{_format_label(result)} on {result.task} ({result.suite})"


def _without_circumstances(result: Result) -> Result:
    """Return the result without when and where it was made."""
    model = structs.replace(result.model, path="")
    return structs.replace(result, model=model, seconds=0, device="", library_versions={})


def _test_set_key(result: Result) -> tuple[str, int]:
    """Identify the test set of a result: digest of its examples, and number of rows."""
    return result.per_example_stats.examples_sha256, len(result.per_example_stats.test[0])


def _check_same_settings(results: Mapping[str, Result]) -> None:
    (first_path, first_result), *others = results.items()
    for path, result in others:
        for name, first_value, value in _find_differences(first_result, result):
            raise ResultError(
                f"{first_path} and {path} are seeds of {_describe(result)}, but {name} is {first_value!r} in "
                f"one and {value!r} in the other, so they have no mean: report them apart, or run one under "
                "another name"
            )


def _find_differences(first_result: Result, second_result: Result) -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values of each setting that differs."""
    first_fields, second_fields = (
        {name: msgspec.to_builtins(getattr(result, name)) for name in _SHARED_FIELDS}
        | {"the test set": _test_set_key(result)}
        for result in (first_result, second_result)
    )
    for name, first_value in first_fields.items():
        second_value = second_fields[name]
        if isinstance(first_value, dict) and isinstance(second_value, dict):
            for key in {**first_value, **second_value}:
                if first_value.get(key) != second_value.get(key):
                    yield f"{name}.{key}", first_value.get(key), second_value.get(key)
        elif first_value != second_value:
            yield name, first_value, second_value


# Scores and comparisons


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
    return asdict(TASKS[result.task].drop_unused_settings(recipe)) if recipe else {}


def _summarise_scores(model: SeedResults) -> TaskScores:
    """Summarise the seeds of a model on a task."""
    result, defaults = model.first_result, find_suite_settings(model.first_result)
    test, main_score = model.summarise_scores("test"), result.main_score
    stats = [_resampling_stats(seed_result) for seed_result in model.results]
    interval = bootstrap.bootstrap_interval(find_metric(result), stats, score_name=main_score)
    if abs(100 * interval.score - test[main_score].mean) > _TOLERANCE:
        raise ResultError(
            f"the {main_score} of {_describe(result)} is {test[main_score].mean:.2f} in its results, but "
            f"their per-example statistics give {100 * interval.score:.2f}: the files were edited or written "
            "by another version. Run those seeds again"
        )
    return TaskScores(
        suite=result.suite,
        task=result.task,
        title=get_task_title(result.task),
        model=model.label,
        metric=result.metric,
        main_score=main_score,
        seeds=model.seeds,
        score=test[main_score],
        low=100 * interval.low,
        high=100 * interval.high,
        test=test,
        dev=model.summarise_scores("dev"),
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
        selected_steps=[seed_result.selected_step for seed_result in model.results],
        seconds=sum(seed_result.seconds for seed_result in model.results),
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
    measures = [(result.metric, result.main_score, result.legacy) for result in (first_result, second_result)]
    skip_reason = ""
    if measures[0] != measures[1]:
        skip_reason = "not measured alike"
    elif _test_set_key(first_result) != _test_set_key(second_result):
        skip_reason = "not the same test examples"
    elif not shared_seeds:
        skip_reason = "no seed in common"
    bounds = {} if skip_reason else _measure_difference(first, second, shared_seeds)
    return Comparison(
        suite=first_result.suite,
        task=first_result.task,
        first=first.label,
        second=second.label,
        seeds=shared_seeds,
        unshared_seeds=sorted(set(first.seeds) ^ set(second.seeds)),
        skip_reason=skip_reason,
        **bounds,
    )


def _measure_difference(first: SeedResults, second: SeedResults, seeds: list[int]) -> dict[str, float]:
    """Return the difference of two models' means over these seeds, its interval and its p-value."""
    second_stats, first_stats = (
        [_resampling_stats(result) for result in model.results if result.seed in seeds]
        for model in (second, first)
    )
    metric, score_name = find_metric(first.first_result), first.first_result.main_score
    paired = bootstrap.paired_bootstrap(metric, second_stats, first_stats, score_name=score_name)
    difference, low, high = (100 * value for value in (paired.score, paired.low, paired.high))
    return {"difference": difference, "low": low, "high": high, "p_value": paired.p_value}
