"""Result files: one JSON for each model, suite, task and seed."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import chain
from typing import Any, Final

import msgspec

from bioshards.corpus.errors import InputNotFoundError, UserError
from bioshards.corpus.storage.checksums import add_sha256, has_wrong_sha256
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import explain_unreadable
from bioshards.evaluate.benchmarks.verification import FileStatus

FORMAT: Final = 3
"""Format of the result files; others are refused."""


class ResultError(UserError):
    """A file is not a valid result, or results contradict each other. The message says what to do."""


class ScoredModel(msgspec.Struct, frozen=True):
    """The fine-tuned model; ``sha256`` is the digest of its weights, configuration and tokenizer."""

    name: str
    path: str
    type: str
    parameters: int
    sha256: str


class Provenance(msgspec.Struct, frozen=True):
    """Where the records come from.

    Attributes:
        files: SHA-256 of each file.
        counts: by unit and split (``Benchmark.count_records``).
        file_status: what is known of the files (benchmarks/verification.py).
        notes: properties of the files that affect how a score may be read.
    """

    files: dict[str, str]
    counts: dict[str, dict[str, int]]
    file_status: FileStatus
    notes: list[str]


class PerExampleStats(msgspec.Struct, frozen=True, omit_defaults=True):
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
    documents: list[int] = []


class CheckpointScore(msgspec.Struct, frozen=True):
    """Mean training loss since the checkpoint before, and the dev score if it was computed.

    Attributes:
        step: optimizer steps before the checkpoint.
    """

    step: int
    loss: float
    dev: float | None


class Result(msgspec.Struct, frozen=True):
    """Scores of one model on one task with one seed.

    Attributes:
        settings: fields of the recipe.
        sample_sizes: number of examples of each split; None if all are used.
        legacy: legacy modes of reading and counting (metrics/tags.py).
        metric: name of the metric.
        main_score: name of the score that represents the task.
        scores: of ``dev`` and ``test``, and of the majority baseline on test (``majority``), by name, from 0
            to 1 (correlations from -1).
        selected_step: optimizer steps before the checkpoint whose weights were scored.
    """

    format: int
    model: ScoredModel
    task: str
    suite: str
    seed: int
    settings: dict[str, Any]
    sample_sizes: dict[str, int] | None
    legacy: list[str]
    provenance: Provenance
    metric: str
    main_score: str
    scores: dict[str, dict[str, float]]
    per_example_stats: PerExampleStats
    checkpoints: list[CheckpointScore]
    selected_step: int
    seconds: float
    device: str
    library_versions: dict[str, str]


def result_path(output: str, suite: str, task: str, seed: int) -> str:
    """Return the path of a result."""
    return os.path.join(output, suite, task, f"seed-{seed}.json")


def write_result(storage: LocalStorage, path: str, result: Result) -> None:
    """Write a result with its SHA-256 atomically, one field a line.

    Raises:
        ResultError: a score is missing, or a number is not finite.
    """
    _check_numbers(result, path)
    fields = add_sha256(msgspec.to_builtins(result))
    lines = (f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False)}" for name, value in fields.items())
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
    if not isinstance(content, dict) or "format" not in content:
        raise ResultError(f"{path} is not a result of bioshards evaluate: take it away, or name others")
    if has_wrong_sha256(content):
        raise ResultError(
            f"{path} is damaged or was edited: its SHA-256 is not the one that it names. Copy it again, or "
            "remove it and run that seed again"
        )
    if content["format"] != FORMAT:
        raise ResultError(
            f"{path} is of format {content['format']!r}, and this version reads {FORMAT}: make the report "
            "with the bioshards that wrote it, or run that seed again"
        )
    try:
        result = msgspec.convert(content, Result)
    except msgspec.ValidationError as error:
        raise _make_error(path, str(error)) from error
    _check_numbers(result, path)
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
                paths = [info.path for info in storage.walk(source)]
            paths = [path for path in paths if fnmatchcase(os.path.basename(path), "seed-*.json")]
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


def _check_numbers(result: Result, path: str) -> None:
    """Check that a result has its scores and statistics, all of them numbers."""
    for split, text in (("test", "the test set"), ("majority", "the majority baseline")):
        if result.main_score not in result.scores.get(split, ()):
            raise _make_error(path, f"it has no {result.main_score} of {text}")
    for split, scores in result.scores.items():
        if not all(map(math.isfinite, scores.values())):
            raise _make_error(path, f"scores of {split} are not all numbers")
    stats = result.per_example_stats
    num_examples = len(stats.test[0]) if stats.test else 0
    if [len(column) for column in stats.test] != [num_examples] * len(stats.names):
        raise _make_error(path, "its 'per_example_stats' are not a list of equal length for each name")
    if not num_examples or not all(map(math.isfinite, chain.from_iterable(stats.test))):
        raise _make_error(path, "its 'per_example_stats' are not all numbers, or there are none")
    if stats.documents and len(stats.documents) != num_examples:
        raise _make_error(path, "its 'per_example_stats' do not give the document of each example")
    if not all(0 <= document < num_examples for document in stats.documents):
        raise _make_error(path, "its 'per_example_stats' have invalid document numbers")


def _make_error(path: str, problem: str) -> ResultError:
    return ResultError(f"{path} is not a whole result: {problem}. Remove it and run that seed again")
