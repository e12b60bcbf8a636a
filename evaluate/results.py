"""Result files: one JSON for a model, a task and a seed, written by a run and read by reports.

Reports are made of files from several runs, machines and months, so a file is held against what a report
takes from it before anything is computed: what is damaged, or not ours, is refused by name.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from typing import Any, Final, NotRequired, TypedDict

import numpy

from bioshards.corpus.errors import InputNotFoundError, UserError
from bioshards.corpus.files import LocalFiles

FORMAT: Final = 1
"""Of the files; another number is one that this version cannot read."""


class ResultError(UserError):
    """A file is not a result, or results do not fit each other: says which, why, and what to do."""


class Model(TypedDict):
    """The model that was fine-tuned; ``sha256`` is of its weights."""

    name: str
    path: str
    type: str
    parameters: int
    sha256: str


class Units(TypedDict):
    """What the score of the test set is made of (metrics/metric.py).

    ``test`` has a list for each of ``names``, with a number for each example; ``ids`` is the SHA-256 of the
    examples' ids and gold, so that two models are compared example by example only where these are the same.
    ``documents`` numbers the document that each example is of, where the files name them: examples of one
    are not independent.
    """

    names: list[str]
    test: list[list[float]]
    ids: str
    documents: NotRequired[list[int]]


class Result(TypedDict):
    """What a run says of one model, task and seed.

    ``scores`` has for ``dev`` and ``test`` the figures of the metric as shares (correlations from -1 on),
    ``main`` which of them is the score.  ``sampled`` is None, or how many examples were drawn of each part;
    ``legacy`` names the papers' own ways of counting that were switched on.
    """

    format: int
    model: Model
    task: str
    suite: str
    metric: str
    main: str
    seed: int
    scores: dict[str, dict[str, float]]
    units: Units
    settings: dict[str, Any]
    sampled: dict[str, int] | None
    legacy: list[str]
    data: dict[str, Any]
    epochs: list[dict[str, float]]
    best_epoch: int
    seconds: float
    device: str
    versions: dict[str, str]


_KINDS: Final[Mapping[str, type | tuple[type, ...]]] = {
    "model": dict,
    "task": str,
    "suite": str,
    "metric": str,
    "main": str,
    "seed": int,
    "scores": dict,
    "units": dict,
    "settings": dict,
    "sampled": (dict, type(None)),
    "legacy": list,
    "data": dict,
    "epochs": list,
    "best_epoch": int,
    "seconds": (int, float),
    "device": str,
    "versions": dict,
}
_OF_MODEL: Final = {"name": str, "path": str, "type": str, "parameters": int, "sha256": str}


def path(out: str, suite: str, task: str, seed: int) -> str:
    """Where a run writes a result."""
    return os.path.join(out, suite, task, f"seed-{seed}.json")


def write(files: LocalFiles, path: str, result: Result) -> None:
    """Write a result, whole or not at all; a line of the file is a field.

    Raises:
        ResultError: a field is absent, of another kind or not finite; no report could be made of it.
    """
    _check(result, path)
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in result.items())
    with files.write(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "backslashreplace"))


def read(files: LocalFiles, path: str) -> Result:
    """A result.

    Raises:
        ResultError: the file is damaged, of another version, or no result.
    """
    try:
        found = files.read_json(path)
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8
        raise ResultError(f"{path} is damaged ({error}): remove it and run that seed again") from None
    _check(found, path)
    result: Result = found
    return result


def find(files: LocalFiles, sources: Iterable[str]) -> dict[str, Result]:
    """The results of files and folders by path; of a folder all ``seed-*.json`` at any depth.

    A file that is named twice is read once.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ResultError: a file is no result, or a folder has none.
    """
    found: dict[str, Result] = {}
    for source in sources:
        if files.is_folder(source):
            paths = [one.path for one in files.walk(source) if _is_result(one.path)]
            if not paths:
                raise ResultError(
                    f"{source} has no results (seed-*.json, at any depth): give the --out of a run"
                )
        elif files.exists(source):
            paths = [source]
        else:
            raise InputNotFoundError(f"there is no file or folder {source}: give the --out of a run")
        found |= {real: read(files, one) for one in paths if (real := os.path.realpath(one)) not in found}
    return found


def _is_result(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith("seed-") and name.endswith(".json")


def _check(result: Any, path: str) -> None:
    """Hold a file against what reports take from it."""
    if not isinstance(result, dict) or "format" not in result:
        raise ResultError(f"{path} is not a result of bioshards.evaluate: take it away, or name others")
    if result["format"] != FORMAT:
        raise ResultError(
            f"{path} is of format {result['format']!r}, and this version reads {FORMAT}: make the report "
            "with the bioshards that wrote it, or run that seed again"
        )
    wrong = _wrong(result)
    if wrong:
        raise ResultError(f"{path} is not a whole result: {wrong}. Remove it and run that seed again")


def _wrong(result: Mapping[str, Any]) -> str | None:
    """What is wrong with the fields of a result, if anything."""
    for owner, kinds in ((result, _KINDS), (result.get("model"), _OF_MODEL)):
        assert owner is not None
        for name, kind in kinds.items():
            if name not in owner:
                return f"it has no {name!r}"
            if not isinstance(owner[name], kind) or isinstance(owner[name], bool):
                return f"its {name!r} is {str(owner[name])[:40]!r}"
    return (
        _wrong_scores(result["scores"], result["main"])
        or _wrong_units(result["units"])
        or _wrong_data(result["data"])
    )


def _wrong_scores(scores: Mapping[str, Any], main: str) -> str | None:
    if not isinstance(scores.get("test"), dict) or main not in scores["test"]:
        return f"it has no {main} of the test set"
    for part, figures in scores.items():
        if not isinstance(figures, dict) or not all(map(_finite, figures.values())):
            return f"scores of {part} are not all numbers"
    return None


def _wrong_units(units: Mapping[str, Any]) -> str | None:
    names, test = units.get("names"), units.get("test")
    if not isinstance(names, list) or not isinstance(test, list) or not isinstance(units.get("ids"), str):
        return "its 'units' have no names, numbers and ids"
    try:
        numbers = numpy.array(test)
    except ValueError:
        numbers = numpy.array([])
    if numbers.ndim != 2 or len(numbers) != len(names):
        return "its 'units' are not a list of equal length for each name"
    if numbers.dtype.kind not in "iuf" or not numbers.size or not numpy.isfinite(numbers).all():
        return "its 'units' are not all numbers, or there are none"
    examples = numbers.shape[1]
    documents = units.get("documents", [0] * examples)
    if not isinstance(documents, list) or len(documents) != examples:
        return "its 'units' do not say of each example which document it is of"
    if not all(isinstance(one, int) and 0 <= one < examples for one in documents):
        return "its 'units' number documents that there cannot be"
    return None


def _wrong_data(data: Mapping[str, Any]) -> str | None:
    if not isinstance(data.get("verified"), bool) or not isinstance(data.get("notes"), list):
        return "its 'data' does not say whether it was verified, or has no notes"
    return None


def _finite(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and math.isfinite(number)
