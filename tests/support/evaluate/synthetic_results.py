"""Synthetic results in the format of a run."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from unittest import mock

import numpy
from msgspec import structs

from bioshards.evaluate.benchmarks.verification import FileStatus
from bioshards.evaluate.metrics.metric import Metric
from bioshards.evaluate.metrics.tags import entity_f1
from bioshards.evaluate.metrics.text_metrics import accuracy, micro_f1, pearson, positive_f1
from bioshards.evaluate.report import report_data
from bioshards.evaluate.report.report_data import Report, build_report
from bioshards.evaluate.runs.results import (
    FORMAT,
    CheckpointScore,
    PerExampleStats,
    Provenance,
    Result,
    ScoredModel,
)

METRICS: Mapping[str, Metric] = {
    metric.name: metric
    for metric in (
        entity_f1(),
        pearson(),
        accuracy(["yes", "no", "maybe"]),
        micro_f1(["effect", "false"], "false"),
        positive_f1("1"),
    )
}
ENTITY_F1 = entity_f1().name
DEFAULTS: Mapping[str, Any] = {"learning_rate": 5e-05, "batch_size": 32, "epochs": 20}


@contextlib.contextmanager
def synthetic_tasks() -> Iterator[None]:
    """Let results be of any task: a metric by its name, and the same settings for each suite."""
    with (
        mock.patch.object(report_data, "find_metric", lambda result: METRICS[result.metric]),
        mock.patch.object(report_data, "find_suite_settings", return_value=DEFAULTS),
    ):
        yield


def build_synthetic_report(*results: Result) -> Report:
    """Build the report of synthetic results."""
    with synthetic_tasks():
        return build_report(results_by_path(*results))


def make_result(
    model: str = "tiny",
    task: str = "bc5-chem",
    seed: int = 0,
    *,
    suite: str = "blurb",
    metric: str = ENTITY_F1,
    rows: Iterable[Iterable[float]] = ((3, 4, 4, 3, 4, 4), (1, 1, 2, 1, 1, 2)),
    **overrides: Any,
) -> Result:
    """Make a result whose test examples have the statistics ``rows``."""
    per_example_stats = numpy.array([*rows], dtype=numpy.float64)
    scores = METRICS[metric].scores_from_stats(per_example_stats)
    result = Result(
        format=FORMAT,
        model=ScoredModel(
            name=model,
            path=f"runs/{model}",
            type="electra",
            parameters=1_234_567,
            sha256=hashlib.sha256(model.encode("utf-8", "surrogatepass")).hexdigest(),
        ),
        task=task,
        suite=suite,
        seed=seed,
        settings=dict(DEFAULTS),
        sample_sizes=None,
        legacy=[],
        provenance=make_provenance("verified"),
        metric=metric,
        main_score=METRICS[metric].main_score,
        scores={
            "dev": {name: score / 2 for name, score in scores.items()},
            "test": scores,
            "majority": {name: score / 4 for name, score in scores.items()},
        },
        per_example_stats=PerExampleStats(
            list(METRICS[metric].stat_names), per_example_stats.T.tolist(), f"of {task}"
        ),
        checkpoints=[CheckpointScore(200, 0.5, 0.25)],
        selected_step=200,
        seconds=60.5,
        device="cpu",
        library_versions={"bioshards": "0.9"},
    )
    return structs.replace(result, **overrides)


def make_rows(correct: int) -> list[tuple[int, ...]]:
    """Make the statistics of an example with ten entities, so many of them predicted correctly."""
    return [(correct, 10, 10, correct, 10, 10)]


def make_provenance(file_status: FileStatus, *notes: str) -> Provenance:
    """Make the provenance of files with this status and these notes."""
    return Provenance({}, {}, file_status, list(notes))


def change_stats(result: Result, **changes: Any) -> Result:
    """Return a result with other per-example statistics."""
    return structs.replace(result, per_example_stats=structs.replace(result.per_example_stats, **changes))


def results_by_path(*results: Result) -> dict[str, Result]:
    """Return results by path, as ``find_results`` does."""
    return {f"{number}/seed-{one.seed}.json": one for number, one in enumerate(results)}
