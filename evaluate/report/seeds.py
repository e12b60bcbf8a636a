"""Results of several seeds as one, and a refusal to make one of what was not run in the same way."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import numpy

from bioshards.evaluate.results import Result, ResultError

_TIMES: Final = ("seconds", "device", "versions")
"""What may differ between two files that say the same."""
_SAME: Final = ("metric", "main", "settings", "sampled", "data")
"""What the seeds of a model and task have in common, or their mean says nothing."""


@dataclass(frozen=True, slots=True)
class Seeds:
    """The results of a model for a task, by ascending seed.

    Attributes:
        label: the model's name, and how it was counted where that is a paper's own way.
    """

    label: str
    results: tuple[Result, ...]

    @property
    def first(self) -> Result:
        """One of them, for what all have in common."""
        return self.results[0]

    @property
    def seeds(self) -> list[int]:
        """The seeds, ascending."""
        return [one["seed"] for one in self.results]

    def figures(self, part: str) -> dict[str, dict[str, float]]:
        """Mean and deviation (``numpy.std``, ddof 0) of each figure of a part, in per cent.

        SOURCE: the deviations in brackets that the papers print are ``np.std`` (SciCrunch/bio_electra).
        """
        of = [one["scores"].get(part, {}) for one in self.results]
        return {
            name: {"mean": float(numpy.mean(values)), "sd": float(numpy.std(values))}
            for name in of[0]
            if len(values := [100 * scores[name] for scores in of if name in scores]) == len(of)
        }


def examples(result: Result) -> tuple[str, int]:
    """Of what a result's units are: the same for results that were tested on the same."""
    return result["units"]["ids"], len(result["units"]["test"][0])


def label(result: Result) -> str:
    """What a report calls a model: its name, and the papers' ways of counting that were switched on."""
    legacy = f" (legacy: {', '.join(result['legacy'])})" if result["legacy"] else ""
    return result["model"]["name"] + legacy


def group(results: Mapping[str, Result]) -> dict[tuple[str, str], list[Seeds]]:
    """Results, by path, as the seeds of each model, by suite and task; models in the order of the results.

    Raises:
        ResultError: a seed is there twice with different scores, models of one name are different models, or
            seeds of one model and task were run in different ways.
    """
    _one_model_a_name(results)
    order = list(dict.fromkeys(label(result) for result in results.values()))

    def key(item: tuple[str, Result]) -> tuple[str, str, int]:
        return item[1]["suite"], item[1]["task"], order.index(label(item[1]))

    grouped: dict[tuple[str, str], list[Seeds]] = {}
    for (suite, task, at), found in groupby(sorted(results.items(), key=key), key):
        once = dict(_once(found))
        _run_alike(once)
        by_seed = sorted(once.values(), key=lambda one: one["seed"])
        grouped.setdefault((suite, task), []).append(Seeds(order[at], tuple(by_seed)))
    return grouped


def _one_model_a_name(results: Mapping[str, Result]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for path, result in results.items():
        model = result["model"]
        before, digest = seen.setdefault(model["name"], (path, model["sha256"]))
        if digest != model["sha256"]:
            raise ResultError(
                f"{before} and {path} are of two models that are both named {model['name']}: "
                "run one of them again under another name, or report them apart"
            )


def _once(found: Iterable[tuple[str, Result]]) -> Iterator[tuple[str, Result]]:
    """Each seed once."""
    seen: dict[int, tuple[str, Result]] = {}
    for path, result in found:
        if (seed := result["seed"]) not in seen:
            seen[seed] = path, result
            yield path, result
        elif not _equal(seen[seed][1], result):
            raise ResultError(
                f"{seen[seed][0]} and {path} are both seed {seed} of {label(result)} on {result['task']} "
                f"({result['suite']}), and are not the same: name one of them only"
            )


def _equal(one: Result, other: Result) -> bool:
    def told(result: Result) -> str:
        model = {**result["model"], "path": None}
        return json.dumps({**result, "model": model, **dict.fromkeys(_TIMES)}, sort_keys=True)

    return told(one) == told(other)


def _run_alike(results: Mapping[str, Result]) -> None:
    (first_path, first), *others = results.items()
    for path, result in others:
        for name, one, other in _differences(first, result):
            raise ResultError(
                f"{first_path} and {path} are seeds of {label(result)} on {result['task']} "
                f"({result['suite']}), but {name} is {one!r} in one and {other!r} in the other, so they have "
                "no mean: report them apart, or run one under another name"
            )


def _differences(one: Result, other: Result) -> Iterator[tuple[str, Any, Any]]:
    """Where two results were not run or counted in the same way: by name, with both values."""
    pairs: Sequence[tuple[str, Any, Any]] = [(name, one[name], other[name]) for name in _SAME]
    pairs = [*pairs, ("the test set", examples(one), examples(other))]
    for name, left, right in pairs:
        if isinstance(left, dict) and isinstance(right, dict):
            keys = [*left, *(key for key in right if key not in left)]
            yield from (
                (f"{name}.{key}", left.get(key), right.get(key))
                for key in keys
                if left.get(key) != right.get(key)
            )
        elif left != right:
            yield name, left, right
