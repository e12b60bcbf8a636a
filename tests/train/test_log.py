"""The metrics log: whole JSON lines, truncation on resume, and non-finite values."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.train.log import LOG_FILE, RunLog
from tests.support.hypothesis_profiles import examples
from tests.support.train.trainer_runs import load_log as lines
from tests.support.train.trainer_runs import run_trainer, use_torch_threads


def make_entry(step: int, split: str = "train", **fields: Any) -> dict[str, Any]:
    return {"step": step, "split": split, "loss": 0.5, "losses": {"mlm": 0.5}, **fields}


def write_log(folder: Path, *entries: dict[str, Any], since: int = 0) -> RunLog:
    log = RunLog(str(folder), since)
    for log_entry in entries:
        log.write(log_entry)
    log.close()
    return log


def test_lines_are_flushed_immediately(tmp_path: Path) -> None:
    log = RunLog(str(tmp_path), 0)
    assert log.find_last("train") == {}
    for step in (1, 2):
        log.write(make_entry(step))
        assert lines(tmp_path)[-1] == make_entry(step)
    log.write(make_entry(2, "validation", loss=0.25))
    assert [log_entry["split"] for log_entry in lines(tmp_path)] == ["train", "train", "validation"]
    assert log.find_last("train") == make_entry(2)
    assert log.find_last("validation") == make_entry(2, "validation", loss=0.25)
    log.close()


@pytest.mark.parametrize("steps", [0, 1, 5, 6, 7, 9, 12, 100])
def test_log_is_truncated_to_the_resumed_step(steps: int, tmp_path: Path) -> None:
    """All lines of the resumed step are kept, as its checkpoint is written after them."""
    entries = (make_entry(step, split) for step in (3, 6) for split in ("train", "validation"))
    write_log(tmp_path, *entries, make_entry(9))
    before = lines(tmp_path)
    log = RunLog(str(tmp_path), steps)
    assert lines(tmp_path) == [line for line in before if line["step"] <= steps]
    train_lines = [line for line in before if line["step"] <= steps and line["split"] == "train"]
    assert log.find_last("train") == (train_lines[-1] if train_lines else {})
    log.write(make_entry(steps + 1))
    log.close()
    assert lines(tmp_path)[-1] == make_entry(steps + 1)


def test_truncated_last_line_is_removed(tmp_path: Path) -> None:
    write_log(tmp_path, make_entry(1), make_entry(2), make_entry(3, note="β-carotene"))
    whole = (tmp_path / LOG_FILE).read_bytes()
    last = whole[:-1].rindex(b"\n") + 1
    for end in range(last, len(whole)):
        (tmp_path / LOG_FILE).write_bytes(whole[:end])
        write_log(tmp_path, make_entry(4), since=3)
        assert [line["step"] for line in lines(tmp_path)] == [1, 2, 4]


@pytest.mark.parametrize(
    "damage",
    [
        *(b"{}", b"[]", b"7", b"null", b'{"step": 2, "ki', b"\xff\x00", b""),
        *(b'{"step": "two"}', b'{"step": null, "split": "train"}', b'{"step": 1}'),
    ],
)
def test_invalid_lines_are_removed(damage: bytes, tmp_path: Path) -> None:
    """A power cut may leave any bytes."""
    write_log(tmp_path, make_entry(1), make_entry(2))
    with open(tmp_path / LOG_FILE, "ab") as file:
        file.write(damage + b"\n")
    log = write_log(tmp_path, make_entry(3), since=2)
    assert [line["step"] for line in lines(tmp_path)] == [1, 2, 3]
    assert log.find_last("train")["step"] == 3


NUMBERS = st.floats() | st.integers(-(10**15), 10**15)


@settings(max_examples=examples(50))
@given(st.dictionaries(st.text(max_size=5), NUMBERS | st.dictionaries(st.text(max_size=5), NUMBERS)))
def test_non_finite_values_are_logged_as_null(
    tmp_path_factory: pytest.TempPathFactory, figures: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("log")
    log = write_log(folder, make_entry(1, metrics=figures))

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not of JSON")

    logged = json.loads((folder / LOG_FILE).read_text(), parse_constant=refuse)
    assert logged["metrics"] == replace_non_finite(figures)
    assert log.find_last("train") == logged == RunLog(str(folder), 1).find_last("train")


def replace_non_finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: replace_non_finite(item) for name, item in value.items()}
    return value if math.isfinite(value) else None


def test_diverged_run_is_logged_and_ends(
    pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five non-finite steps are too few to stop the run, and its summary is printed."""
    options = ("--steps", 6, "--learning-rate", 1e30, "--log-every", 1, "--validate-every", 3)
    with use_torch_threads(1):
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
        assert "6 steps" in capsys.readouterr().out
        assert [line["losses"]["mlm"] is None for line in lines(tmp_path / "run")][-2:] == [True, True]
        (tmp_path / "run" / "manifest.json").unlink()
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 0
        assert "6 steps" in capsys.readouterr().out
