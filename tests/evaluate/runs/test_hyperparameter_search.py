"""The search for settings: on dev alone, the same each time, and gone on with after a stop."""

from __future__ import annotations

import builtins
import json
import signal
import tomllib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bioshards.evaluate.__main__ import main
from bioshards.evaluate.modeling.tokenization import ModelTokenizer
from bioshards.evaluate.runs import hyperparameter_search as searching
from tests.support.evaluate.evaluate_commands import (
    call_after_update,
    copy_benchmarks,
    evaluate_argv,
    list_temporary_files,
    load_result,
    run_evaluate,
    send_signal,
)
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.paths import BENCHMARK_SAMPLE
from tests.support.train.trainer_runs import use_torch_threads

Capture = pytest.CaptureFixture[str]
POISON = "Poisoned"
GRID = "learning_rate = [0.0001, 0.01]\nbatch_size = [4, 8, 16]\n"


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    with use_torch_threads(1):
        yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def search(model: Path, out: Path, grid: object, *options: object, data: Path = BENCHMARK_SAMPLE) -> int:
    given = ("--tasks", "ncbi-disease", "--max-examples", 8, "--grid", grid, *options)
    return main(evaluate_argv("search", model, out, *given, data=data))


def trials(out: Path) -> dict[str, Any]:
    """All trials by their files, without what depends on the machine's speed."""
    found = {path.name: json.loads(path.read_text()) for path in sorted(out.rglob("trial-*.json"))}
    for one in found.values():
        del one["seconds"]
    return found


def best(out: Path, task: str = "blurb/ncbi-disease") -> dict[str, Any]:
    return tomllib.loads((out / task / "best.toml").read_text())


# Never test


def test_no_record_of_test_is_ever_read_by_a_model(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Records of test are poisonous: a tokenizer that is given one refuses it."""
    grid = tmp_path / "grid.toml"
    grid.write_text("batch_size = [8]\n")
    data = copy_benchmarks(tmp_path / "data", "ncbi-disease", "gad", "yesno-ideal", "factoid-7b", "squad")
    _poison(data / "mtl-bioinformatics-2016/NCBI-disease-IOB/test.tsv", 0, "\t")
    _poison(data / "bio_electra/gad/test.tsv", 1, "\t")
    _poison(data / "bio_electra/yesno/test.tsv", 1, "\t")
    for batch in range(1, 6):
        path = data / f"electramed/QA/BioASQ/BioASQ-test-factoid-7b-{batch}.json"
        path.write_text(path.read_text().replace('"question": "', f'"question": "{POISON} '))

    def wary(read: Any) -> Any:
        def reading(self: ModelTokenizer, texts: Any, *more: Any) -> Any:
            assert POISON not in str(texts), "a record of test is read"
            return read(self, texts, *more)

        return reading

    for name in ("encode_words", "encode_texts"):
        monkeypatch.setattr(ModelTokenizer, name, wary(getattr(ModelTokenizer, name)))
    tasks = ("--tasks", "ncbi-disease", "gad", "yesno-ideal", "factoid-7b", "--max-examples", 1000)
    assert search(model, tmp_path / "searched", grid, *tasks, data=data) == 0
    for task in tasks[1:5]:
        assert run_evaluate(model, tmp_path / str(task), "--tasks", task, "--seeds", 1, data=data) == 1
        assert "a record of test is read" in capsys.readouterr().err


def _poison(path: Path, column: int, between: str) -> None:
    """A word before those in a column; the header stays."""
    rows = [line.split(between) for line in path.read_text().splitlines()]
    for row in rows[1:]:
        if len(row) > 1:
            row[column] = f"{POISON} {row[column]}"
    path.write_text("".join(between.join(row) + "\n" for row in rows))


# Trials


def test_a_grid_is_gone_through_in_order_and_the_best_is_published(
    model: Path, grid: Path, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert search(model, out, grid) == 0
    found = trials(out)
    assert len(found) == 6
    told = [line for line in capsys.readouterr().out.splitlines() if ", trial " in line]
    assert [line.partition(" with ")[2] for line in told] == [
        f"learning_rate {rate}, batch_size {batch}" for rate in (0.0001, 0.01) for batch in (4, 8, 16)
    ]
    most = max(one["dev_score"] for one in found.values())
    assert best(out) in [one["params"] for one in found.values() if one["dev_score"] == most]
    assert all(
        {"params", "main_score", "dev_score", "settings", "provenance", "library_versions", "model"} <= {*one}
        for one in found.values()
    )
    assert not any("test" in str(one.get("scores", "")) for one in found.values())


def test_the_same_search_again_finds_its_trials(
    model: Path, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert search(model, out, grid, "--max-trials", 3) == 0
    first, chosen = trials(out), best(out)
    monkeypatch.setattr(searching, "fine_tune", lambda _: pytest.fail("a trial is made again"))
    assert search(model, out, grid, "--max-trials", 3) == 0
    assert (trials(out), best(out)) == (first, chosen)


def test_random_is_by_the_seed(model: Path, grid: Path, tmp_path: Path, capsys: Capture) -> None:
    orders = []
    for name, seed in (("one", 1), ("same", 1), ("other", 3)):
        given = ("--method", "random", "--max-trials", 2, "--first-seed", seed)
        assert search(model, tmp_path / name, grid, *given) == 0
        lines = capsys.readouterr().out.splitlines()
        orders.append([line.partition(" with ")[2] for line in lines if ", trial " in line])
    assert orders[0] == orders[1] != orders[2]
    assert trials(tmp_path / "one") == trials(tmp_path / "same")


def test_a_search_that_was_stopped_goes_on(model: Path, grid: Path, tmp_path: Path) -> None:
    assert search(model, tmp_path / "whole", grid, "--max-trials", 3) == 0
    out = tmp_path / "stopped"
    with call_after_update(
        6, partial(send_signal, signal.SIGTERM)
    ):  # in the second trial, after four of the first
        assert search(model, out, grid, "--max-trials", 3) == 130
    assert len(trials(out)) == 1
    assert not list_temporary_files(out)
    assert search(model, out, grid, "--max-trials", 3) == 0
    assert trials(out) == trials(tmp_path / "whole")
    assert best(out) == best(tmp_path / "whole")


def test_the_best_settings_are_a_config(model: Path, grid: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert search(model, out, grid, "--max-trials", 2) == 0
    config = out / "blurb/ncbi-disease/best.toml"
    given = evaluate_argv("run", model, tmp_path / "run", "--tasks", "ncbi-disease", "--seeds", 1)
    at = given.index("--batch-size")
    assert main([*given[:at], *given[at + 2 :], "--config", str(config)]) == 0
    settings = load_result(tmp_path / "run", "blurb/ncbi-disease")["settings"]
    assert {name: settings[name] for name in best(out)} == best(out)


def test_a_trial_without_a_score_is_one_and_no_search_is_lost(
    model: Path, tmp_path: Path, capsys: Capture
) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text("learning_rate = [1e38, 0.001]\n")
    assert search(model, tmp_path / "out", grid, "--batch-size", 2) == 0
    assert "no score with learning_rate 1e+38" in capsys.readouterr().out
    assert best(tmp_path / "out") == {"learning_rate": 0.001}
    grid.write_text("learning_rate = [1e38]\n")
    assert search(model, tmp_path / "none", grid, "--batch-size", 2) == 1
    said = capsys.readouterr()
    assert "blurb/ncbi-disease failed: no trial has a score: give lower learning rates" in said.out


# Misuse


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "is neither of pubmedbert, bio-electra nor a file that can be read"),
        ("learning_rate =", "nor a file that can be read"),
        ("learning_rate = 0.1", "learning_rate is no list of values"),
        ("learning_rate = []", "learning_rate is no list of values"),
        ("rate = [0.1]", "unknown field rate"),
        ("learning_rate = [-1.0]", "--learning-rate -1.0 is below 0"),
        ('batch_size = ["many"]', "--batch-size"),
        ("", "has no lines"),
    ],
)
def test_grids_that_are_none(
    model: Path, tmp_path: Path, capsys: Capture, text: str | None, said: str
) -> None:
    grid = tmp_path / "grid.toml"
    if text is not None:
        grid.write_text(text)
    assert search(model, tmp_path / "out", grid) == 2
    assert said in capsys.readouterr().err


def test_optuna_has_to_be_installed(
    model: Path, grid: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any, **named: Any) -> Any:
        if name == "optuna":
            raise ImportError("No module named 'optuna'")
        return real(name, *more, **named)

    monkeypatch.setattr(builtins, "__import__", without)
    assert search(model, tmp_path / "out", grid, "--method", "optuna") == 2
    said = capsys.readouterr().err
    assert "--method optuna needs a library: pip install 'bioshards[search]'" in said
    assert not trials(tmp_path / "out")


def test_a_damaged_trial_is_named(model: Path, grid: Path, tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "out"
    assert search(model, out, grid, "--max-trials", 1) == 0
    [path] = out.rglob("trial-*.json")
    path.write_text(path.read_text()[:30])
    assert search(model, out, grid, "--max-trials", 1) == 2
    said = capsys.readouterr().err
    assert f"{path} is damaged" in said
    assert "remove it" in said


def test_a_task_that_is_not_there_does_not_end_the_others(
    model: Path, grid: Path, tmp_path: Path, capsys: Capture
) -> None:
    data = copy_benchmarks(tmp_path / "data", "ncbi-disease")
    tasks = ("--tasks", "gad", "ncbi-disease", "--max-trials", 1)
    assert search(model, tmp_path / "out", grid, *tasks, data=data) == 1
    assert best(tmp_path / "out")
    said = capsys.readouterr()
    assert "blurb/gad" in said.out
    assert "GAD: no train" in said.out
