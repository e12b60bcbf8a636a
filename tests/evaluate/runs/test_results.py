"""Result files: round trip, and the errors for damaged files, other JSON and other formats."""

from __future__ import annotations

import errno
import json
import math
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.errors import InputUnreadableError
from bioshards.corpus.storage.checksums import add_sha256
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.results import Result, ResultError
from tests.support.evaluate.synthetic_results import make_result

STORAGE = LocalStorage()


def write_result(folder: Path, **fields: Any) -> str:
    result = make_result(**fields)
    path = results.result_path(str(folder), result.suite, result.task, result.seed)
    results.write_result(STORAGE, path, result)
    return path


def write_json(path: str, result: dict[str, Any]) -> None:
    """Write the fields of a result with their SHA-256."""
    result.pop("sha256", None)
    Path(path).write_text(json.dumps(add_sha256(result)), encoding="utf-8")


def write_changed_result(folder: Path, *key_path: str, value: object) -> str:
    """Write a result file with one value replaced."""
    path = write_result(folder)
    result: Any = json.loads(Path(path).read_bytes())
    parent = result
    for name in key_path[:-1]:
        parent = parent[name]
    parent[key_path[-1]] = value
    write_json(path, result)
    return path


def test_result_round_trips(tmp_path: Path) -> None:
    path = write_result(tmp_path, seed=7, model="größe \ud800")
    assert path == f"{tmp_path}/blurb/bc5-chem/seed-7.json"
    assert results.read_result(STORAGE, path) == make_result(seed=7, model="größe \ud800")


def test_each_field_is_on_its_own_line(tmp_path: Path) -> None:
    lines = Path(write_result(tmp_path)).read_text(encoding="utf-8").splitlines()
    assert len(lines) == len([*Result.__struct_fields__, "sha256"]) + 2
    assert '"seed": 0,' in lines


def test_result_with_nan_score_is_not_written(tmp_path: Path) -> None:
    result = make_result()
    result.scores["test"]["F1"] = math.nan
    with pytest.raises(ResultError, match="scores of test are not all numbers"):
        results.write_result(STORAGE, f"{tmp_path}/seed-0.json", result)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("key_path", "value", "message"),
    [
        (("seed",), "0", "Expected `int`, got `str` - at `$.seed`"),
        (("model", "sha256"), None, "Expected `str`, got `null` - at `$.model.sha256`"),
        (("sample_sizes",), 200, "Expected `object | null`, got `int` - at `$.sample_sizes`"),
        (("main_score",), "MRR", "it has no MRR of the test set"),
        (("scores", "test"), {}, "it has no F1 of the test set"),
        (("scores", "test", "F1"), math.inf, "scores of test are not all numbers"),
        (("scores", "test", "F1"), True, "Expected `float`, got `bool` - at `$.scores[...][...]`"),
        (("per_example_stats", "test"), [[1, 2]], "not a list of equal length for each name"),
        *(
            (("per_example_stats", "test"), [*[[1]] * 5, last], message)
            for last, message in (
                ([1, 2], "not a list of equal length for each name"),
                ([None], "Expected `float`, got `null` - at `$.per_example_stats.test[5][0]`"),
                ([math.nan], "not all numbers, or there are none"),
            )
        ),
        (("per_example_stats", "test"), [[]] * 6, "not all numbers, or there are none"),
        (("per_example_stats", "names"), [], "not a list of equal length for each name"),
        (("provenance",), {}, "missing required field `files` - at `$.provenance`"),
        (("provenance", "file_status"), "yes", "Invalid enum value 'yes' - at `$.provenance.file_status`"),
    ],
)
def test_incomplete_result_is_refused(
    tmp_path: Path, key_path: tuple[str, ...], value: object, message: str
) -> None:
    path = write_changed_result(tmp_path, *key_path, value=value)
    with pytest.raises(ResultError) as error:
        results.read_result(STORAGE, path)
    assert str(error.value).startswith(f"{path} is not a whole result: ")
    assert message in str(error.value)
    assert "Remove it and run that seed again" in str(error.value)


@pytest.mark.parametrize("name", [name for name in Result.__struct_fields__ if name != "format"])
def test_missing_field_is_refused(tmp_path: Path, name: str) -> None:
    path = write_result(tmp_path)
    result = json.loads(Path(path).read_bytes())
    del result[name]
    write_json(path, result)
    with pytest.raises(ResultError, match=f"missing required field `{name}`"):
        results.read_result(STORAGE, path)


def test_other_format_is_refused(tmp_path: Path) -> None:
    path = write_changed_result(tmp_path, "format", value=2)
    with pytest.raises(ResultError, match="is of format 2, and this version reads 3: make the report with"):
        results.read_result(STORAGE, path)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"seed": 0}', '"format"'])
def test_other_json_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "seed-0.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ResultError, match=r"is not a result of bioshards evaluate"):
        results.read_result(STORAGE, str(path))


@given(kept_fraction=st.floats(0, 0.999), noise=st.binary(max_size=8))
def test_truncated_file_is_refused(
    tmp_path_factory: pytest.TempPathFactory, kept_fraction: float, noise: bytes
) -> None:
    content = Path(write_result(tmp_path_factory.mktemp("whole"))).read_bytes()
    path = tmp_path_factory.mktemp("damaged") / "seed-0.json"
    path.write_bytes(content[: int(kept_fraction * (len(content) - 2))] + noise)
    with pytest.raises(ResultError, match=r"seed-0\.json"):
        results.read_result(STORAGE, str(path))


def test_deeply_nested_json_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "seed-0.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ResultError, match="is damaged"):
        results.read_result(STORAGE, str(path))


def test_results_are_found_at_any_depth_and_only_once(tmp_path: Path) -> None:
    first, second = (write_result(tmp_path / "a" / "b", seed=seed) for seed in (0, 1))
    (tmp_path / "a" / "report.json").write_text("{}", encoding="utf-8")
    (tmp_path / "a" / ".tmp-seed-2.json").write_text("{", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    results_by_path = results.find_results(STORAGE, [second, str(tmp_path / "a"), str(tmp_path / "link")])
    assert list(results_by_path) == [second, first]
    assert results_by_path[second].seed == 1


def test_unreadable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object, folder: str) -> NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), f"{folder}/locked")

    monkeypatch.setattr(LocalStorage, "walk", refuse)
    with pytest.raises(InputUnreadableError, match=r"/locked cannot be read \(Permission denied\)"):
        results.find_results(STORAGE, [str(tmp_path)])


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*missing"):
        results.find_results(STORAGE, [str(tmp_path / "missing")])
