"""Result files: one JSON for each model, suite, task and seed."""

from __future__ import annotations

import json
import math
import os
import types
from collections.abc import Iterable, Mapping
from typing import Any, Final, NotRequired, TypedDict, get_args, get_origin, get_type_hints, is_typeddict

import numpy

from bioshards.corpus.errors import InputNotFoundError, UserError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import explain_unreadable
from bioshards.evaluate.benchmarks.known_files import FILE_STATUSES

FORMAT: Final = 3
"""Format of the result files; others are refused."""


class ResultError(UserError):
    """A file is not a valid result, or results contradict each other. The message says what to do."""


class ModelInfo(TypedDict):
    """The fine-tuned model; ``sha256`` is the digest of its weights, configuration and tokenizer."""

    name: str
    path: str
    type: str
    parameters: int
    sha256: str


class PerExampleStats(TypedDict):
    """Per-example statistics of the test split (metrics/metric.py).

    Attributes:
        names: names of the statistics.
        test: for each name a list with a number for each example.
        examples_sha256: digest of ids and gold labels. Two models are compared by example only if it is
            equal.
        documents: document number of each example, if the files name documents; examples of a document are
            not independent.
    """

    names: list[str]
    test: list[list[float]]
    examples_sha256: str
    documents: NotRequired[list[int]]


class ResultIdentity(TypedDict):
    """Inputs that determine a result.

    An existing result is reused if its identity and its model are the same.

    Attributes:
        settings: fields of the recipe.
        sample_sizes: number of examples of each split; None if all are used.
        legacy: legacy modes of reading and counting (metrics/tag_f1.py).
        provenance: files with SHA-256, counts, ``file_status`` (benchmarks/verification.py) and notes.
    """

    task: str
    suite: str
    seed: int
    settings: dict[str, Any]
    sample_sizes: dict[str, int] | None
    legacy: list[str]
    provenance: dict[str, Any]


class Result(ResultIdentity):
    """Scores of one model on one task with one seed.

    Attributes:
        metric: name of the metric.
        main_score: name of the score that represents the task.
        scores: of ``dev`` and ``test``, and of the majority baseline on test (``majority``),
            by name, from 0 to 1 (correlations from -1).
        checkpoints: step, mean training loss and dev score of each checkpoint.
        selected_step: optimizer steps before the checkpoint whose weights were scored.
    """

    format: int
    model: ModelInfo
    metric: str
    main_score: str
    scores: dict[str, dict[str, float]]
    per_example_stats: PerExampleStats
    checkpoints: list[dict[str, Any]]
    selected_step: int
    seconds: float
    device: str
    library_versions: dict[str, str]


def _list_json_types(hint: Any) -> tuple[type, ...]:
    """Return the types that the JSON value of a field may have."""
    if isinstance(hint, types.UnionType):
        return tuple(json_type for each in get_args(hint) for json_type in _list_json_types(each))
    if hint is float:
        return int, float
    return (dict,) if is_typeddict(hint) else (get_origin(hint) or hint,)


def _list_field_types(kind: type) -> dict[str, tuple[type, ...]]:
    return {name: _list_json_types(hint) for name, hint in get_type_hints(kind).items()}


_RESULT_FIELDS: Final = _list_field_types(Result)
_MODEL_FIELDS: Final = _list_field_types(ModelInfo)


def result_path(output: str, suite: str, task: str, seed: int) -> str:
    """Return the path of a result."""
    return os.path.join(output, suite, task, f"seed-{seed}.json")


def write_result(storage: LocalStorage, path: str, result: Result) -> None:
    """Write a result atomically, one field a line.

    Raises:
        ResultError: a field is missing, of another type, or not finite.
    """
    _validate_result(result, path)
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in result.items())
    with storage.write(path) as file:
        file.write(("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8", "backslashreplace"))


def read_result(storage: LocalStorage, path: str) -> Result:
    """Read a result.

    Raises:
        ResultError: the file is damaged, of another format, or not a result.
    """
    try:
        content = storage.read_json(path)
    except (ValueError, RecursionError) as error:  # no JSON, or no UTF-8
        raise ResultError(f"{path} is damaged ({error}): remove it and run that seed again") from None
    _validate_result(content, path)
    result: Result = content
    return result


def find_results(storage: LocalStorage, sources: Iterable[str]) -> dict[str, Result]:
    """Read result files, and all ``seed-*.json`` below directories, each file once.

    Raises:
        InputNotFoundError: a path does not exist.
        InputUnreadableError: a directory cannot be listed.
        ResultError: a file is not a result, or a directory has none.
    """
    results_by_path: dict[str, Result] = {}
    for source in sources:
        if storage.is_folder(source):
            with explain_unreadable(source):
                paths = [info.path for info in storage.walk(source) if _is_result_file(info.path)]
            if not paths:
                raise ResultError(
                    f"{source} has no results (seed-*.json, at any depth): give the --output of a run"
                )
        elif storage.exists(source):
            paths = [source]
        else:
            raise InputNotFoundError(f"there is no file or folder {source}: give the --output of a run")
        results_by_path |= {
            real_path: read_result(storage, path)
            for path in paths
            if (real_path := os.path.realpath(path)) not in results_by_path
        }
    return results_by_path


def _is_result_file(path: str) -> bool:
    name = os.path.basename(path)
    return name.startswith("seed-") and name.endswith(".json")


def _validate_result(result: Any, path: str) -> None:
    """Check format and fields of a result."""
    if not isinstance(result, dict) or "format" not in result:
        raise ResultError(f"{path} is not a result of bioshards evaluate: take it away, or name others")
    if result["format"] != FORMAT:
        raise ResultError(
            f"{path} is of format {result['format']!r}, and this version reads {FORMAT}: make the report "
            "with the bioshards that wrote it, or run that seed again"
        )
    problem = _find_problem(result)
    if problem:
        raise ResultError(f"{path} is not a whole result: {problem}. Remove it and run that seed again")


def _find_problem(result: Mapping[str, Any]) -> str | None:
    """Return what is wrong with the fields of a result, or None."""
    for fields, field_types in ((result, _RESULT_FIELDS), (result.get("model"), _MODEL_FIELDS)):
        assert fields is not None
        for name, field_type in field_types.items():
            if name not in fields:
                return f"it has no {name!r}"
            if not isinstance(fields[name], field_type) or isinstance(fields[name], bool):
                return f"its {name!r} is {str(fields[name])[:40]!r}"
    return (
        _find_scores_problem(result["scores"], result["main_score"])
        or _find_stats_problem(result["per_example_stats"])
        or _find_provenance_problem(result["provenance"])
    )


def _find_scores_problem(scores: Mapping[str, Any], main_score: str) -> str | None:
    for split, text in (("test", "the test set"), ("majority", "the majority baseline")):
        if not isinstance(scores.get(split), dict) or main_score not in scores[split]:
            return f"it has no {main_score} of {text}"
    for split, split_scores in scores.items():
        if not isinstance(split_scores, dict) or not all(map(_is_finite, split_scores.values())):
            return f"scores of {split} are not all numbers"
    return None


def _find_stats_problem(stats: Mapping[str, Any]) -> str | None:
    names, columns = stats.get("names"), stats.get("test")
    if (
        not isinstance(names, list)
        or not isinstance(columns, list)
        or not isinstance(stats.get("examples_sha256"), str)
    ):
        return "its 'per_example_stats' have no names, numbers and examples_sha256"
    try:
        array = numpy.array(columns)
    except ValueError:
        array = numpy.array([])
    if array.ndim != 2 or len(array) != len(names):
        return "its 'per_example_stats' are not a list of equal length for each name"
    if array.dtype.kind not in "iuf" or not array.size or not numpy.isfinite(array).all():
        return "its 'per_example_stats' are not all numbers, or there are none"
    num_examples = array.shape[1]
    documents = stats.get("documents", [0] * num_examples)
    if not isinstance(documents, list) or len(documents) != num_examples:
        return "its 'per_example_stats' do not give the document of each example"
    if not all(isinstance(document, int) and 0 <= document < num_examples for document in documents):
        return "its 'per_example_stats' have invalid document numbers"
    return None


def _find_provenance_problem(provenance: Mapping[str, Any]) -> str | None:
    if provenance.get("file_status") not in FILE_STATUSES or not isinstance(provenance.get("notes"), list):
        return "its 'provenance' has no 'file_status' or no notes"
    return None


def _is_finite(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
