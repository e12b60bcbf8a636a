"""Group results by model, suite and task; results of different settings are refused."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import msgspec
import numpy
from msgspec import structs

from bioshards.evaluate.runs.results import Result, ResultError

_SHARED_FIELDS: Final = ("metric", "main_score", "settings", "sample_sizes", "provenance")
"""Fields that must be equal for all seeds of a model and task."""


@dataclass(frozen=True, slots=True)
class MeanScore:
    """Mean and standard deviation (ddof 0) over seeds, in per cent."""

    mean: float
    sd: float


@dataclass(frozen=True, slots=True)
class SeedResults:
    """Results of a model on a task, by ascending seed.

    Attributes:
        label: name of the model, with its legacy modes.
    """

    label: str
    results: tuple[Result, ...]

    @property
    def first_result(self) -> Result:
        """Result of the lowest seed, for the fields that all seeds share."""
        return self.results[0]

    @property
    def seeds(self) -> list[int]:
        """Seeds, ascending."""
        return [result.seed for result in self.results]

    def summarise_scores(self, split: str) -> dict[str, MeanScore]:
        """Return mean and standard deviation (ddof 0) of each score of a split, in per cent.

        SOURCE: the papers print ``np.std`` in brackets (SciCrunch/bio_electra).
        """
        scores_by_seed = [result.scores.get(split, {}) for result in self.results]
        return {
            name: MeanScore(float(numpy.mean(values)), float(numpy.std(values)))
            for name in scores_by_seed[0]
            if len(values := [100 * scores[name] for scores in scores_by_seed if name in scores])
            == len(scores_by_seed)
        }


def test_set_key(result: Result) -> tuple[str, int]:
    """Identify the test set of a result: digest of its examples, and number of rows."""
    return result.per_example_stats.examples_sha256, len(result.per_example_stats.test[0])


def format_model_label(result: Result) -> str:
    """Return the name of the model, with its legacy modes."""
    legacy = f" (legacy: {', '.join(result.legacy)})" if result.legacy else ""
    return result.model.name + legacy


def group_by_model(results: Mapping[str, Result]) -> dict[tuple[str, str], list[SeedResults]]:
    """Group results by suite and task; in each, one SeedResults for each model, in the order of the results.

    Raises:
        ResultError: a seed occurs twice with different scores, two models share a name, or seeds of a model
            and task have different settings.
    """
    _check_model_names(results)
    order = list(dict.fromkeys(format_model_label(result) for result in results.values()))

    def sort_key(item: tuple[str, Result]) -> tuple[str, str, int]:
        return item[1].suite, item[1].task, order.index(format_model_label(item[1]))

    grouped: dict[tuple[str, str], list[SeedResults]] = {}
    for (suite, task, model_index), items in groupby(sorted(results.items(), key=sort_key), sort_key):
        unique_results = dict(_drop_duplicates(items))
        _check_same_settings(unique_results)
        sorted_results = sorted(unique_results.values(), key=lambda seed_result: seed_result.seed)
        grouped.setdefault((suite, task), []).append(SeedResults(order[model_index], tuple(sorted_results)))
    return grouped


def _check_model_names(results: Mapping[str, Result]) -> None:
    seen: dict[str, tuple[str, str]] = {}
    for path, result in results.items():
        model = result.model
        first_path, digest = seen.setdefault(model.name, (path, model.sha256))
        if digest != model.sha256:
            raise ResultError(
                f"{first_path} and {path} are of two models that are both named {model.name}: "
                "run one of them again with another --model-name, or report them apart"
            )


def _drop_duplicates(items: Iterable[tuple[str, Result]]) -> Iterator[tuple[str, Result]]:
    """Yield each seed once."""
    seen: dict[int, tuple[str, Result]] = {}
    for path, result in items:
        if (seed := result.seed) not in seen:
            seen[seed] = path, result
            yield path, result
        elif not _is_same_result(seen[seed][1], result):
            raise ResultError(
                f"{seen[seed][0]} and {path} are both seed {seed} of {format_model_label(result)} on "
                f"{result.task} "
                f"({result.suite}), and are not the same: name one of them only"
            )


def _is_same_result(first_result: Result, second_result: Result) -> bool:
    first, second = (
        structs.replace(
            result,
            model=structs.replace(result.model, path=""),
            seconds=0,
            device="",
            library_versions={},
        )
        for result in (first_result, second_result)
    )
    return first == second


def _check_same_settings(results: Mapping[str, Result]) -> None:
    (first_path, first_result), *other_results = results.items()
    for path, result in other_results:
        for name, first_value, second_value in _find_differences(first_result, result):
            raise ResultError(
                f"{first_path} and {path} are seeds of {format_model_label(result)} on {result.task} "
                f"({result.suite}), but {name} is {first_value!r} in one and {second_value!r} in the "
                "other, so they have "
                "no mean: report them apart, or run one under another name"
            )


def _find_differences(first_result: Result, second_result: Result) -> Iterator[tuple[str, Any, Any]]:
    """Yield name and both values of each setting that differs."""
    first_fields, second_fields = msgspec.to_builtins(first_result), msgspec.to_builtins(second_result)
    pairs: Sequence[tuple[str, Any, Any]] = [
        (name, first_fields[name], second_fields[name]) for name in _SHARED_FIELDS
    ]
    pairs = [*pairs, ("the test set", test_set_key(first_result), test_set_key(second_result))]
    for name, first_value, second_value in pairs:
        if isinstance(first_value, dict) and isinstance(second_value, dict):
            keys = [*first_value, *(key for key in second_value if key not in first_value)]
            yield from (
                (f"{name}.{key}", first_value.get(key), second_value.get(key))
                for key in keys
                if first_value.get(key) != second_value.get(key)
            )
        elif first_value != second_value:
            yield name, first_value, second_value
