"""The log of a run: whole lines of JSON, and none of steps that the model does not have behind it."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.loop.metrics_log import LOG_FILE, MetricsLog
from tests.support.train.trainer_runs import load_log as lines
from tests.support.train.trainer_runs import run_trainer, use_torch_threads


def entry(step: int, kind: str = "train", **further: Any) -> dict[str, Any]:
    return {"step": step, "split": kind, "loss": 0.5, "losses": {"mlm": 0.5}, **further}


def write(folder: Path, *entries: dict[str, Any], since: int = 0) -> MetricsLog:
    log = MetricsLog(str(folder), since)
    for each in entries:
        log.write(each)
    log.close()
    return log


def test_a_line_can_be_read_as_soon_as_it_is_written(tmp_path: Path) -> None:
    log = MetricsLog(str(tmp_path), 0)
    assert log.last_train_entry == {}
    for step in (1, 2):
        log.write(entry(step))
        assert lines(tmp_path)[-1] == entry(step)
    log.write(entry(2, "validation", loss=0.25))
    assert [each["split"] for each in lines(tmp_path)] == ["train", "train", "validation"]
    assert log.last_train_entry == entry(2)
    log.close()


@pytest.mark.parametrize("steps", [0, 1, 5, 6, 7, 9, 12, 100])
def test_it_is_cut_back_to_the_steps_that_were_kept(steps: int, tmp_path: Path) -> None:
    """All lines of a step stay, as the checkpoint of that step is written after them."""
    write(tmp_path, entry(3), entry(3, "validation"), entry(6), entry(6, "validation"), entry(9))
    before = lines(tmp_path)
    log = MetricsLog(str(tmp_path), steps)
    assert lines(tmp_path) == [line for line in before if line["step"] <= steps]
    trained = [line for line in before if line["step"] <= steps and line["split"] == "train"]
    assert log.last_train_entry == (trained[-1] if trained else {})
    log.write(entry(steps + 1))
    log.close()
    assert lines(tmp_path)[-1] == entry(steps + 1)


def test_a_line_that_was_cut_is_left_out_wherever_it_was_cut(tmp_path: Path) -> None:
    write(tmp_path, entry(1), entry(2), entry(3, note="β-carotene"))
    whole = (tmp_path / LOG_FILE).read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    for end in range(last, len(whole)):
        (tmp_path / LOG_FILE).write_bytes(whole[:end])
        write(tmp_path, entry(4), since=3)
        assert [line["step"] for line in lines(tmp_path)] == [1, 2, 4]


@pytest.mark.parametrize("damage", [b"{}", b"[]", b"7", b"null", b'{"step": 2, "ki', b"\xff\x00", b""])
def test_what_is_no_line_of_a_log_is_left_out(damage: bytes, tmp_path: Path) -> None:
    """A power cut may leave anything."""
    write(tmp_path, entry(1), entry(2))
    with open(tmp_path / LOG_FILE, "ab") as file:
        file.write(damage + b"\n")
    log = write(tmp_path, entry(3), since=2)
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]
    assert log.last_train_entry["step"] == 3


@pytest.mark.parametrize("damage", [b'{"step": "two"}', b'{"step": null, "split": "train"}', b'{"step": 1}'])
def test_nor_is_a_line_that_does_not_say_of_what_it_is(damage: bytes, tmp_path: Path) -> None:
    write(tmp_path, entry(1))
    with open(tmp_path / LOG_FILE, "ab") as file:
        file.write(damage + b"\n")
    write(tmp_path, entry(3), since=2)
    assert [line["step"] for line in lines(tmp_path)] == [1, 3]


NUMBERS = st.floats() | st.integers(-(10**15), 10**15)


@settings(max_examples=50)
@given(st.dictionaries(st.text(max_size=5), NUMBERS | st.dictionaries(st.text(max_size=5), NUMBERS)))
def test_every_line_is_json_and_what_is_no_number_in_it_is_null(
    tmp_path_factory: pytest.TempPathFactory, figures: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = write(folder, entry(1, metrics=figures))

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is not of JSON")

    found = json.loads((folder / LOG_FILE).read_text(), parse_constant=refuse)
    assert found["metrics"] == _null(figures)
    assert log.last_train_entry == found == MetricsLog(str(folder), 1).last_train_entry


def _null(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _null(each) for name, each in value.items()}
    return value if math.isfinite(value) else None


def test_a_folder_without_one_gets_an_empty_one(tmp_path: Path) -> None:
    write(tmp_path)
    assert (tmp_path / LOG_FILE).read_bytes() == b""
    assert [path.name for path in tmp_path.iterdir()] == [LOG_FILE]


def test_a_run_of_which_nothing_is_a_number_any_more_can_be_logged_and_ends(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five bad steps are too few for it to be stopped; its last words are said all the same."""
    options = ("--steps", 6, "--learning-rate", 1e30, "--log-every", 1, "--validate-every", 3)
    with use_torch_threads(1):
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
        assert "6 steps" in capsys.readouterr().out
        assert [line["losses"]["mlm"] is None for line in lines(tmp_path / "run")][-2:] == [True, True]
        (tmp_path / "run" / "manifest.json").unlink()
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
        assert "6 steps" in capsys.readouterr().out
