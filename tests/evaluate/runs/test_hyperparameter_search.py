"""``evaluate search``: it reads dev only, is reproducible, and resumes after an interrupt."""

from __future__ import annotations

import builtins
import json
import signal
import tomllib
from pathlib import Path
from typing import Any

import pytest

from bioshards.evaluate.__main__ import main
from bioshards.evaluate.encoder import ModelTokenizer
from bioshards.evaluate.runs import hyperparameter_search as search_module
from tests.support.evaluate.evaluate_commands import (
    call_after_update,
    copy_benchmarks,
    evaluate_argv,
    list_temporary_files,
    load_result,
    run_evaluate,
)
from tests.support.paths import BENCHMARK_SAMPLE
from tests.support.train.trainer_processes import send_signal

Capture = pytest.CaptureFixture[str]
TEST_MARKER = "Poisoned"
GRID = "learning_rate = [0.0001, 0.01]\nbatch_size = [4, 8, 16]\n"


pytestmark = pytest.mark.usefixtures("use_one_thread")


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    path = tmp_path / "grid.toml"
    path.write_text(GRID)
    return path


def run_search(
    checkpoint_dir: Path, output_dir: Path, grid: object, *options: object, data: Path = BENCHMARK_SAMPLE
) -> int:
    search_options = ("--tasks", "blurb/ncbi-disease", "--max-examples", 8, "--grid", grid, *options)
    return main(evaluate_argv("search", checkpoint_dir, output_dir, *search_options, data=data))


def load_trials(output_dir: Path) -> dict[str, Any]:
    """All trials by file name, without their duration and the SHA-256 with it."""
    trials = {path.name: json.loads(path.read_text()) for path in sorted(output_dir.rglob("trial-*.json"))}
    for trial in trials.values():
        del trial["seconds"], trial["sha256"]
    return trials


def load_best_settings(output_dir: Path, task: str = "blurb/ncbi-disease") -> dict[str, Any]:
    return tomllib.loads((output_dir / task / "best.toml").read_text())


def test_best_settings_are_marked_if_they_are_of_the_sample(checkpoint_dir: Path, tmp_path: Path) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text("batch_size = [4]\n")
    assert run_search(checkpoint_dir, tmp_path / "out", grid, "--epochs", 1) == 0
    marks = (tmp_path / "out/blurb/ncbi-disease/best.toml").read_text().splitlines()[1:3]
    assert marks[0].startswith("# Found on invented text, the sample bundled with bioshards")
    assert marks[1] == "# Found on a sample of the data: train 8, dev 8 examples."
    assert load_best_settings(tmp_path / "out") == {"batch_size": 4}


# The test split


def test_search_reads_no_test_record(
    checkpoint_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    """Mark the test records with a word that the patched tokenizer refuses."""
    grid = tmp_path / "grid.toml"
    grid.write_text("batch_size = [8]\n")
    data = copy_benchmarks(tmp_path / "data", "ncbi-disease", "gad", "yesno-ideal", "factoid-7b", "squad")
    mark_test_records(data / "mtl-bioinformatics-2016/NCBI-disease-IOB/test.tsv", 0, "\t")
    mark_test_records(data / "bio_electra/gad/test.tsv", 1, "\t")
    mark_test_records(data / "bio_electra/yesno/test.tsv", 1, "\t")
    for batch in range(1, 6):
        path = data / f"electramed/QA/BioASQ/BioASQ-test-factoid-7b-{batch}.json"
        path.write_text(path.read_text().replace('"question": "', f'"question": "{TEST_MARKER} '))

    def refuse_test_records(method: Any) -> Any:
        def checked_method(self: ModelTokenizer, texts: Any, *arguments: Any) -> Any:
            assert TEST_MARKER not in str(texts), "a record of test is read"
            return method(self, texts, *arguments)

        return checked_method

    for name in ("encode_words", "encode_texts"):
        monkeypatch.setattr(ModelTokenizer, name, refuse_test_records(getattr(ModelTokenizer, name)))
    tasks = ("blurb/ncbi-disease", "blurb/gad", "yesno-ideal", "factoid-7b")
    options = ("--tasks", *tasks, "--max-examples", 1000)
    assert run_search(checkpoint_dir, tmp_path / "searched", grid, *options, data=data) == 0
    for task in tasks:
        one_task = ("--tasks", task, "--seeds", 1)
        assert run_evaluate(checkpoint_dir, tmp_path / task, *one_task, data=data) == 1
        assert "a record of test is read" in capsys.readouterr().err


def mark_test_records(path: Path, column: int, separator: str) -> None:
    """Add a marker word to a column of every row after the header."""
    rows = [line.split(separator) for line in path.read_text().splitlines()]
    for row in rows[1:]:
        if len(row) > 1:
            row[column] = f"{TEST_MARKER} {row[column]}"
    path.write_text("".join(separator.join(row) + "\n" for row in rows))


# Trials


def test_grid_is_searched_once_and_the_best_settings_are_written(
    checkpoint_dir: Path, grid: Path, tmp_path: Path, capsys: Capture
) -> None:
    output_dir = tmp_path / "out"
    assert run_search(checkpoint_dir, output_dir, grid) == 0
    trials = load_trials(output_dir)
    assert len(trials) == 6
    trial_lines = [line for line in capsys.readouterr().out.splitlines() if ", trial " in line]
    assert sorted(line.partition(" with ")[2] for line in trial_lines) == sorted(
        f"learning_rate {rate}, batch_size {batch}" for rate in (0.0001, 0.01) for batch in (4, 8, 16)
    )
    best_score = max(trial["dev_score"] for trial in trials.values())
    assert load_best_settings(output_dir) in [
        trial["params"] for trial in trials.values() if trial["dev_score"] == best_score
    ]
    fields = {"params", "main_score", "dev_score", "settings", "provenance", "library_versions", "model"}
    assert all(fields <= {*trial} for trial in trials.values())
    assert not any("test" in str(trial.get("scores", "")) for trial in trials.values())


def test_repeated_search_reuses_its_trials(
    checkpoint_dir: Path, grid: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output_dir = tmp_path / "out"
    assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 3) == 0
    first_trials, first_best = load_trials(output_dir), load_best_settings(output_dir)
    monkeypatch.setattr(search_module, "fine_tune", lambda *_: pytest.fail("a trial is made again"))
    assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 3) == 0
    assert (load_trials(output_dir), load_best_settings(output_dir)) == (first_trials, first_best)


@pytest.mark.parametrize("method", ["grid", "tpe"])
def test_search_is_determined_by_the_seed(
    method: str, checkpoint_dir: Path, grid: Path, tmp_path: Path, capsys: Capture
) -> None:
    orders = []
    for name, seed in (("one", 1), ("same", 1), ("other", 3)):
        search_options = ("--method", method, "--max-trials", 2, "--first-seed", seed)
        assert run_search(checkpoint_dir, tmp_path / name, grid, *search_options) == 0
        lines = capsys.readouterr().out.splitlines()
        orders.append([line.partition(" with ")[2] for line in lines if ", trial " in line])
    assert orders[0] == orders[1] != orders[2]
    assert load_trials(tmp_path / "one") == load_trials(tmp_path / "same")


def test_interrupted_search_resumes(checkpoint_dir: Path, grid: Path, tmp_path: Path) -> None:
    assert run_search(checkpoint_dir, tmp_path / "whole", grid, "--max-trials", 3) == 0
    output_dir = tmp_path / "stopped"

    def stop_in_the_second_trial() -> None:
        if load_trials(output_dir):
            send_signal(signal.SIGTERM)

    with call_after_update(0, stop_in_the_second_trial):
        assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 3) == 130
    assert len(load_trials(output_dir)) == 1
    assert not list_temporary_files(output_dir)
    assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 3) == 0
    assert load_trials(output_dir) == load_trials(tmp_path / "whole")
    assert load_best_settings(output_dir) == load_best_settings(tmp_path / "whole")


def test_best_settings_are_accepted_as_config(checkpoint_dir: Path, grid: Path, tmp_path: Path) -> None:
    output_dir = tmp_path / "out"
    assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 2) == 0
    config = output_dir / "blurb/ncbi-disease/best.toml"
    argv = evaluate_argv(
        "run", checkpoint_dir, tmp_path / "run", "--tasks", "blurb/ncbi-disease", "--seeds", 1
    )
    batch_size_index = argv.index("--batch-size")
    assert main([*argv[:batch_size_index], *argv[batch_size_index + 2 :], "--config", str(config)]) == 0
    settings = load_result(tmp_path / "run", "blurb/ncbi-disease")["settings"]
    assert {name: settings[name] for name in load_best_settings(output_dir)} == load_best_settings(output_dir)


def test_trial_without_a_score_is_skipped(checkpoint_dir: Path, tmp_path: Path, capsys: Capture) -> None:
    grid = tmp_path / "grid.toml"
    grid.write_text("learning_rate = [1e38, 0.001]\n")
    assert run_search(checkpoint_dir, tmp_path / "out", grid, "--batch-size", 2) == 0
    assert "no score with learning_rate 1e+38" in capsys.readouterr().out
    assert load_best_settings(tmp_path / "out") == {"learning_rate": 0.001}
    grid.write_text("learning_rate = [1e38]\n")
    assert run_search(checkpoint_dir, tmp_path / "none", grid, "--batch-size", 2) == 1
    captured = capsys.readouterr()
    assert "blurb/ncbi-disease failed: no trial has a score: give lower learning rates" in captured.out


# Bad input


@pytest.mark.parametrize(
    ("text", "message"),
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
def test_bad_grid_is_refused(
    checkpoint_dir: Path, tmp_path: Path, capsys: Capture, text: str | None, message: str
) -> None:
    grid = tmp_path / "grid.toml"
    if text is not None:
        grid.write_text(text)
    assert run_search(checkpoint_dir, tmp_path / "out", grid) == 2
    assert message in capsys.readouterr().err


def test_missing_optuna_is_reported(
    checkpoint_dir: Path, grid: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_import = builtins.__import__

    def import_without_optuna(name: str, *arguments: Any, **keywords: Any) -> Any:
        if name == "optuna":
            raise ImportError("No module named 'optuna'")
        return real_import(name, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", import_without_optuna)
    assert run_search(checkpoint_dir, tmp_path / "out", grid) == 2
    output = capsys.readouterr().err
    assert "search needs the library optuna: pip install '.[search]'" in output
    assert not load_trials(tmp_path / "out")


def test_damaged_trial_is_named(checkpoint_dir: Path, grid: Path, tmp_path: Path, capsys: Capture) -> None:
    output_dir = tmp_path / "out"
    assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 1) == 0
    [path] = output_dir.rglob("trial-*.json")
    path.write_text(path.read_text()[:30])
    assert run_search(checkpoint_dir, output_dir, grid, "--max-trials", 1) == 2
    output = capsys.readouterr().err
    assert f"{path} is damaged" in output
    assert "remove it" in output


def test_missing_task_does_not_stop_the_others(
    checkpoint_dir: Path, grid: Path, tmp_path: Path, capsys: Capture
) -> None:
    data = copy_benchmarks(tmp_path / "data", "ncbi-disease")
    tasks = ("--tasks", "blurb/gad", "blurb/ncbi-disease", "--max-trials", 1)
    assert run_search(checkpoint_dir, tmp_path / "out", grid, *tasks, data=data) == 1
    assert load_best_settings(tmp_path / "out")
    captured = capsys.readouterr()
    assert "blurb/gad" in captured.out
    assert "GAD: no train" in captured.out
