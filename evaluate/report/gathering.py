"""The report on results as plain data: what report.json holds, and what the page and the Markdown show.

Nothing in it depends on time or machine: the same results give the same bytes.  All scores are in per
cent, correlations and MRR too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy

from bioshards.evaluate.metrics.metric import Metric, Numbers
from bioshards.evaluate.results import Result, ResultError

from . import bootstrap
from .blurb import TYPES, blurb
from .published import TABLES, TITLES, Published
from .seeds import Seeds, examples, group

FORMAT: Final = 1
_SUITES: Final = ("blurb", "bio-electra", "electramed", "bioalbert")
"""The papers', in the order of a report; others follow by name."""
_ROUNDING: Final = 1e-6

MetricOf = Callable[[Result], Metric]
DefaultsOf = Callable[[Result], Mapping[str, Any]]


def gather(results: Mapping[str, Result], metric_of: MetricOf, defaults_of: DefaultsOf) -> dict[str, Any]:
    """Everything that results say, beside what papers print.

    Args:
        results: by path (results.find); other models are compared with the first one's.
        metric_of: from a result to its measure, of which it has the name only.
        defaults_of: from a result to the settings that its suite has for its task.

    Raises:
        ResultError: results do not fit each other, or a score is not what its units give.
    """
    grouped = group(results)
    suites: dict[str, dict[str, list[Seeds]]] = {}
    for (suite, task), found in grouped.items():
        suites.setdefault(suite, {})[task] = found
    known = [suite for suite in _SUITES if suite in suites]
    return {
        "format": FORMAT,
        "scores": "per cent",
        "deviation": "numpy.std over seeds, ddof 0",
        "interval": {"level": bootstrap.LEVEL, "resamples": bootstrap.RESAMPLES},
        "models": _models(results),
        "suites": [
            _suite(suite, suites[suite], metric_of, defaults_of)
            for suite in [*known, *sorted(set(suites).difference(known))]
        ],
    }


def _models(results: Mapping[str, Result]) -> list[dict[str, Any]]:
    """The models in the order of the results, and by which versions and on what they were fine-tuned."""
    models: dict[str, dict[str, Any]] = {}
    for result in results.values():
        one = models.setdefault(result["model"]["name"], {**result["model"], "versions": {}, "devices": []})
        one["devices"] = sorted({*one["devices"], result["device"]})
        for name, version in result["versions"].items():
            one["versions"][name] = sorted({*one["versions"].get(name, []), version})
    return list(models.values())


def _suite(
    suite: str, tasks: Mapping[str, list[Seeds]], metric_of: MetricOf, defaults_of: DefaultsOf
) -> dict[str, Any]:
    tables = [table for table in TABLES if table.suite == suite]
    printed = [task for table in tables for task in table.tasks]
    order = [
        *(task for task in dict.fromkeys(printed) if task in tasks),
        *sorted(set(tasks) - set(printed)),
    ]
    found = {task: _task(tasks[task], metric_of, defaults_of) for task in order}
    return {
        "suite": suite,
        "title": tables[0].title if tables else suite,
        "tasks": found,
        "blurb": _blurb(found, tables[0]) if suite == "blurb" else None,
        "published": [_published(table) for table in tables],
    }


def _task(models: Sequence[Seeds], metric_of: MetricOf, defaults_of: DefaultsOf) -> dict[str, Any]:
    first, *others = models
    return {
        "title": TITLES.get(first.first["task"], first.first["task"]),
        "models": {one.label: _scores(one, metric_of, defaults_of(one.first)) for one in models},
        "comparisons": [_comparison(first, other, metric_of) for other in others],
    }


def _scores(seeds: Seeds, metric_of: MetricOf, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """What a model's seeds say of a task."""
    result = seeds.first
    test, main = seeds.figures("test"), result["main"]
    interval = bootstrap.interval(metric_of(result), [_units(one) for one in seeds.results], figure=main)
    if abs(100 * interval.score - test[main]["mean"]) > _ROUNDING:
        raise ResultError(
            f"the {main} of {seeds.label} on {result['task']} ({result['suite']}) is "
            f"{test[main]['mean']:.2f} in its results, but their units give {100 * interval.score:.2f}: they "
            "were changed, or counted by another version. Run those seeds again"
        )
    settings = result["settings"]
    return {
        "metric": result["metric"],
        "main": main,
        "seeds": seeds.seeds,
        "score": {**test[main], "low": 100 * interval.low, "high": 100 * interval.high},
        "test": test,
        "dev": seeds.figures("dev"),
        "sampled": result["sampled"],
        "verified": result["data"]["verified"],
        "legacy": result["legacy"],
        "notes": result["data"]["notes"],
        "settings": settings,
        "changed": {
            name: {"value": value, "default": defaults.get(name)}
            for name, value in settings.items()
            if name not in defaults or defaults[name] != value
        },
        "best_epochs": [one["best_epoch"] for one in seeds.results],
        "seconds": sum(one["seconds"] for one in seeds.results),
    }


def _units(result: Result) -> Numbers:
    """What is drawn again in a resample: documents, where the files name them, else examples."""
    of_examples = numpy.array(result["units"]["test"], dtype=numpy.float64).T
    documents = result["units"].get("documents")
    if not documents:
        return of_examples
    of_documents = numpy.zeros((max(documents) + 1, of_examples.shape[1]))
    numpy.add.at(of_documents, documents, of_examples)
    return of_documents


def _comparison(first: Seeds, second: Seeds, metric_of: MetricOf) -> dict[str, Any]:
    """By how much the second model is better than the first on the same examples, of seeds that both have."""
    one, other = first.first, second.first
    shared = [seed for seed in first.seeds if seed in second.seeds]
    compared: dict[str, Any] = {"first": first.label, "second": second.label, "seeds": shared}
    compared["left_out"] = sorted(set(first.seeds) ^ set(second.seeds))
    why_not = (
        "not measured alike"
        if any(one[name] != other[name] for name in ("metric", "main", "legacy"))
        else "not the same test examples"
        if examples(one) != examples(other)
        else None
        if shared
        else "no seed in common"
    )
    if why_not:
        return {**compared, "why_not": why_not}
    units = [[_units(result) for result in of.results if result["seed"] in shared] for of in (second, first)]
    found = bootstrap.paired(metric_of(one), *units, figure=one["main"])
    return {
        **compared,
        "difference": 100 * found.score,
        "low": 100 * found.low,
        "high": 100 * found.high,
        "p": found.p,
    }


def _blurb(tasks: Mapping[str, Any], published: Published) -> dict[str, Any]:
    """The BLURB score of each model, and what stands in for it where sets are missing.

    That is the same average over the sets that all models here have, published ones included.
    """
    ours: dict[str, dict[str, float]] = {}
    for task, found in tasks.items():
        for label, scores in found["models"].items():
            ours.setdefault(label, {})[task] = scores["score"]["mean"]
    theirs = {
        model: {task: scores[model].mean for (task, _), scores in published.scores.items()}
        for model in published.models
    }
    sets = [task for tasks in TYPES.values() for task in tasks if all(task in one for one in ours.values())]
    return {
        "models": {
            label: {"types": dict(of.types), "score": of.score, "missing": list(of.missing)}
            for label, scores in ours.items()
            for of in [blurb(scores)]
        },
        "published": {model: {"types": dict(blurb(scores).types)} for model, scores in theirs.items()},
        "in_common": {
            "tasks": sets,
            "models": {
                name: blurb({task: scores[task] for task in sets}).partial
                for name, scores in (ours | theirs).items()
            },
        },
    }


def _published(table: Published) -> dict[str, Any]:
    """A paper's table; notes are where they belong: at it, its models, its rows or its scores."""
    return {
        "title": table.title,
        "source": table.source,
        "runs": table.runs,
        "notes": table.notes_on(),
        "models": {model: table.notes_on(model=model) for model in table.models},
        "charted": list(table.charted),
        "blurb": dict(zip(table.models, table.blurb, strict=True)) if table.blurb else None,
        "rows": [
            {
                "task": task,
                "figure": figure,
                "notes": table.notes_on(task=task),
                "scores": {
                    model: {"mean": score.mean, "sd": score.sd, "notes": table.notes_on(model, task)}
                    for model, score in scores.items()
                },
            }
            for (task, figure), scores in table.scores.items()
        ],
    }
