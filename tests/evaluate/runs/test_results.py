"""A result is read as it was written; what is damaged, foreign or of another version is refused by name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.results import ResultError
from tests.support.evaluate.synthetic_results import make_result

FILES = LocalStorage()


def written(folder: Path, **others: Any) -> str:
    one = make_result(**others)
    path = results.result_path(str(folder), one["suite"], one["task"], one["seed"])
    results.write_result(FILES, path, one)
    return path


def changed(folder: Path, *place: str, to: object) -> str:
    """A result's file with one value changed."""
    path = written(folder)
    whole: Any = json.loads(Path(path).read_bytes())
    inner = whole
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = to
    Path(path).write_text(json.dumps(whole), encoding="utf-8")
    return path


def test_a_result_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = written(tmp_path, seed=7, model="größe \ud800")
    assert path == f"{tmp_path}/blurb/bc5-chem/seed-7.json"
    assert results.read_result(FILES, path) == make_result(seed=7, model="größe \ud800")


def test_a_field_is_a_line_so_that_people_can_read_it(tmp_path: Path) -> None:
    lines = Path(written(tmp_path)).read_text(encoding="utf-8").splitlines()
    assert len(lines) == len(make_result()) + 2
    assert '"seed": 0,' in lines


def test_what_no_report_can_be_made_of_is_not_written(tmp_path: Path) -> None:
    one = make_result()
    one["scores"]["test"]["F1"] = math.nan
    with pytest.raises(ResultError, match="scores of test are not all numbers"):
        results.write_result(FILES, f"{tmp_path}/seed-0.json", one)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("place", "to", "said"),
    [
        (("seed",), "0", "its 'seed' is '0'"),
        (("seed",), True, "its 'seed' is 'True'"),
        (("model",), ["tiny"], "its 'model' is"),
        (("model", "sha256"), None, "its 'sha256' is 'None'"),
        (("sample_sizes",), 200, "its 'sample_sizes' is '200'"),
        (("main_score",), "MRR", "it has no MRR of the test set"),
        (("scores", "test"), [], "it has no F1 of the test set"),
        (("scores", "dev"), None, "scores of dev are not all numbers"),
        (("scores", "test", "F1"), math.inf, "scores of test are not all numbers"),
        (("scores", "test", "F1"), True, "scores of test are not all numbers"),
        (("per_example_stats", "examples_sha256"), None, "have no names, numbers and examples_sha256"),
        (("per_example_stats", "test"), [[1, 2]], "not a list of equal length for each name"),
        (
            ("per_example_stats", "test"),
            [[1], [1], [1], [1], [1], [1, 2]],
            "not a list of equal length for each name",
        ),
        (
            ("per_example_stats", "test"),
            [[1], [1], [1], [1], [1], None],
            "not a list of equal length for each name",
        ),
        (
            ("per_example_stats", "test"),
            [[1], [1], [1], [1], [1], [None]],
            "not all numbers, or there are none",
        ),
        (("per_example_stats", "test"), [[True]] * 6, "not all numbers, or there are none"),
        (
            ("per_example_stats", "test"),
            [[1], [1], [1], [1], [1], [math.nan]],
            "not all numbers, or there are none",
        ),
        (("per_example_stats", "test"), 6, "have no names, numbers and examples_sha256"),
        (("per_example_stats", "test"), [[], [], [], [], [], []], "not all numbers, or there are none"),
        (
            ("per_example_stats", "test"),
            [[1], [1], [1], [1], [1], ["1"]],
            "not all numbers, or there are none",
        ),
        (("per_example_stats", "names"), [], "not a list of equal length for each name"),
        (("provenance",), {}, "has no 'verified' or no notes"),
        (("provenance", "verified"), "yes", "has no 'verified' or no notes"),
    ],
)
def test_a_file_that_is_no_whole_result_is_refused(
    tmp_path: Path, place: tuple[str, ...], to: object, said: str
) -> None:
    path = changed(tmp_path, *place, to=to)
    with pytest.raises(ResultError) as refused:
        results.read_result(FILES, path)
    assert str(refused.value).startswith(f"{path} is not a whole result: ")
    assert said in str(refused.value)
    assert "Remove it and run that seed again" in str(refused.value)


@pytest.mark.parametrize("name", [name for name in make_result() if name != "format"])
def test_every_field_is_needed(tmp_path: Path, name: str) -> None:
    path = written(tmp_path)
    whole = json.loads(Path(path).read_bytes())
    del whole[name]
    Path(path).write_text(json.dumps(whole), encoding="utf-8")
    with pytest.raises(ResultError, match=f"it has no '{name}'"):
        results.read_result(FILES, path)


def test_another_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = changed(tmp_path, "format", to=3)
    with pytest.raises(ResultError, match="is of format 3, and this version reads 2: make the report with"):
        results.read_result(FILES, path)


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"seed": 0}', '"format"'])
def test_other_json_is_not_ours(tmp_path: Path, text: str) -> None:
    path = tmp_path / "seed-0.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ResultError, match=r"is not a result of bioshards\.evaluate"):
        results.read_result(FILES, str(path))


@given(kept=st.floats(0, 0.999), noise=st.binary(max_size=8))
def test_a_damaged_file_is_refused_wherever_it_ends(
    tmp_path_factory: pytest.TempPathFactory, kept: float, noise: bytes
) -> None:
    whole = Path(written(tmp_path_factory.mktemp("whole"))).read_bytes()
    path = tmp_path_factory.mktemp("damaged") / "seed-0.json"
    path.write_bytes(whole[: int(kept * (len(whole) - 2))] + noise)
    with pytest.raises(ResultError, match=r"seed-0\.json"):
        results.read_result(FILES, str(path))


def test_deep_nesting_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "seed-0.json"
    path.write_text("[" * 100_000, encoding="utf-8")
    with pytest.raises(ResultError, match="is damaged"):
        results.read_result(FILES, str(path))


def test_results_are_found_at_any_depth_and_read_once(tmp_path: Path) -> None:
    first, second = (written(tmp_path / "a" / "b", seed=seed) for seed in (0, 1))
    (tmp_path / "a" / "report.json").write_text("{}", encoding="utf-8")
    (tmp_path / "a" / ".tmp-seed-2.json").write_text("{", encoding="utf-8")
    (tmp_path / "link").symlink_to(tmp_path / "a")
    found = results.find_results(FILES, [second, str(tmp_path / "a"), str(tmp_path / "link")])
    assert list(found) == [second, first]
    assert found[second]["seed"] == 1


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="has no results"):
        results.find_results(FILES, [str(tmp_path)])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"there is no file or folder .*missing"):
        results.find_results(FILES, [str(tmp_path / "missing")])
