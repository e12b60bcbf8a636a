"""Types of a report: the structure of report.json."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from bioshards.evaluate.benchmarks.known_files import FileStatus


class ScoreSummary(TypedDict):
    """Mean and standard deviation (ddof 0) over seeds, in per cent."""

    mean: float
    sd: float


class ScoreInterval(ScoreSummary):
    """Summary of the main score with the bounds of its bootstrap interval."""

    low: float
    high: float


class ChangedSetting(TypedDict):
    """A setting that differs from the suite's."""

    value: Any
    default: Any


class ModelScores(TypedDict):
    """Scores of a model on a task, and how they came about.

    Attributes:
        score: main score on test.
        test: scores on test by name.
        dev: scores on dev by name; empty if the last epoch was selected.
        majority: scores of the majority baseline on test by name.
        file_status: what is known of the files (benchmarks/known_files.py).
        seconds: run time of all seeds.
    """

    metric: str
    main_score: str
    seeds: list[int]
    score: ScoreInterval
    test: dict[str, ScoreSummary]
    dev: dict[str, ScoreSummary]
    majority: dict[str, float]
    sample_sizes: dict[str, int] | None
    file_status: FileStatus
    legacy: list[str]
    notes: list[str]
    settings: dict[str, Any]
    changed_settings: dict[str, ChangedSetting]
    selected_steps: list[int]
    seconds: float


class Comparison(TypedDict):
    """Comparison of two models on the same examples.

    Attributes:
        seeds: seeds that both models have.
        unshared_seeds: seeds that one model has.
        skip_reason: why the models are not compared; the fields below are missing then.
        difference: second minus first, of the means over ``seeds``.
        p_value: two-sided.
    """

    first: str
    second: str
    seeds: list[int]
    unshared_seeds: list[int]
    skip_reason: NotRequired[str]
    difference: NotRequired[float]
    low: NotRequired[float]
    high: NotRequired[float]
    p_value: NotRequired[float]


class TaskReport(TypedDict):
    """Scores of all models on a task, by model label."""

    title: str
    models: dict[str, ModelScores]
    comparisons: list[Comparison]


class TypeMeans(TypedDict):
    """Means of the task types of BLURB."""

    type_means: dict[str, float | None]


class ModelBlurb(TypeMeans):
    """BLURB score of one of our models; None if a task is missing."""

    score: float | None
    missing_tasks: list[str]


class SharedTasks(TypedDict):
    """Average over the tasks that all our models have, by our model and by published model."""

    tasks: list[str]
    models: dict[str, float | None]
    published: dict[str, float | None]


class BlurbReport(TypedDict):
    """BLURB scores of our models and of the published ones."""

    models: dict[str, ModelBlurb]
    published: dict[str, TypeMeans]
    shared_tasks: SharedTasks


class PublishedCell(TypedDict):
    """A printed score with its notes."""

    mean: float
    sd: float | None
    notes: list[str]


class PublishedRow(TypedDict):
    """A row of a paper's table: printed scores by model."""

    task: str
    score_name: str
    notes: list[str]
    scores: dict[str, PublishedCell]


class PublishedReport(TypedDict):
    """A paper's table; ``models`` has the notes of each column, the paper's own models first."""

    title: str
    source: str
    runs_note: str
    notes: list[str]
    models: dict[str, list[str]]
    blurb_scores: dict[str, float] | None
    rows: list[PublishedRow]


class SuiteReport(TypedDict):
    """Tasks of a suite beside the papers' tables."""

    suite: str
    title: str
    tasks: dict[str, TaskReport]
    blurb: BlurbReport | None
    published: list[PublishedReport]


class ModelReport(TypedDict):
    """A model, with the library versions and the devices of its runs."""

    name: str
    path: str
    type: str
    parameters: int
    sha256: str
    library_versions: dict[str, list[str]]
    devices: list[str]


class IntervalSettings(TypedDict):
    """Confidence level and number of resamples."""

    level: float
    resamples: int


class Report(TypedDict):
    """A report; all scores are in per cent."""

    format: int
    score_unit: str
    standard_deviation: str
    interval: IntervalSettings
    models: list[ModelReport]
    suites: list[SuiteReport]
