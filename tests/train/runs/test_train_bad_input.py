"""Errors of training: invalid data, vocabularies, outputs and options, full disks, non-finite gradients."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModel

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.train import checkpoint
from bioshards.train.log import RunLog
from bioshards.train.models.objectives import Objective
from bioshards.train.train import MAX_NON_FINITE_STEPS
from tests.support.outputs import load_manifest, published_digests, save_manifest
from tests.support.train.synthetic_rows import find_column
from tests.support.train.trainer_runs import (
    build_pretraining_set,
    is_same_state,
    load_log,
    load_state,
    run_trainer,
)
from tests.support.vocab.synthetic_corpora import build_vocabulary, list_shards, write_abstracts

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

Capture = pytest.CaptureFixture[str]
ReadError = Callable[..., str]
LAST, BEFORE = "step-0000012", "step-0000006"


@pytest.fixture
def data(pretraining_sets: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of a pretraining set that the test may damage."""
    folder: Path = shutil.copytree(pretraining_sets["electra"], tmp_path / "data")
    return folder


@pytest.fixture(scope="module")
def other_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other-vocabulary")
    return build_vocabulary(
        folder / "v", write_abstracts(folder / "in", a=range(900, 960)), options=("--size", "280")
    )


@pytest.fixture
def read_error(pretraining_sets: dict[str, Path], tmp_path: Path, capsys: Capture) -> ReadError:
    """Run the trainer, check the exit code, and return the last line of stderr."""

    def call(
        *options: object,
        code: int = 2,
        data: Path = pretraining_sets["electra"],
        out: Any = tmp_path / "out",
    ) -> str:
        capsys.readouterr()
        try:
            exit_code = run_trainer(data, out, *options)
        except SystemExit as error:  # argparse's own
            exit_code = error.code  # type: ignore[assignment]
        captured = capsys.readouterr()
        assert exit_code == code, captured.err
        assert "Traceback" not in captured.err
        assert "BIOSHARDS_TRACEBACK" not in captured.err  # the hint of unexpected errors
        assert not captured.out
        message = captured.err.splitlines()[-1]
        assert message.startswith(("train: ", "bioshards: "))
        assert ".." not in message.replace("...", "")
        return message

    return call


def is_started(out: Path) -> bool:
    """Return True if a run was started in this directory."""
    return (out / "run.json").exists()


@pytest.fixture
def finished_run(runs: dict[str, Path]) -> Path:
    return runs["electra"]


# Data


# data/test_pretraining_dataset.py has all directories and shards that are refused.


@pytest.mark.parametrize(
    ("name", "options", "expected"),
    [
        ("nowhere", (), "nowhere does not exist. Give the --output of beam run shards_to_pretraining"),
        ("finished run", (), "electra is an output of train"),
        (
            "albert",
            ("--family", "bert"),
            "was built with --objective albert, whose labels bert cannot use. "
            "Build a set with --objective bert, or give --family albert",
        ),
        ("bert", ("--family", "albert"), "was built with --objective bert, whose labels albert cannot use"),
        (
            "electra",
            ("--max-positions", 63),
            "has rows of up to 64 tokens, more than --max-positions 63. Raise it, or build a set",
        ),
    ],
)
def test_data_that_does_not_fit_is_refused(
    name: str,
    options: tuple[object, ...],
    expected: str,
    read_error: ReadError,
    pretraining_sets: dict[str, Path],
    finished_run: Path,
    tmp_path: Path,
) -> None:
    folders = {**pretraining_sets, "nowhere": tmp_path / "nowhere", "finished run": finished_run}
    assert expected in read_error(*options, data=folders[name])
    assert not is_started(tmp_path / "out")


@pytest.mark.parametrize("split", ["train", "validation"])
def test_changed_shard_is_found_before_training(
    split: str, read_error: ReadError, data: Path, tmp_path: Path
) -> None:
    (shard,) = list_shards(data, split)
    with open(shard, "r+b") as file:
        file.seek(find_column(shard, 0, "ids"))
        file.write(b"\x07\x00")
    message = read_error(data=data)
    assert f"{shard} has changed: its SHA-256 differs from the manifest. Delete it" in message
    assert not is_started(tmp_path / "out")
    # Without verification it is accepted, as its rows are valid.
    assert run_trainer(data, tmp_path / "out", "--no-verify") == 0


def test_invalid_rows_stop_training_without_verification(
    read_error: ReadError, pretraining_sets: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    (shard,) = list_shards(data, "train")
    content = bytearray(shard.read_bytes())
    offset = find_column(shard, 0, "ids")
    content[offset : offset + 4000] = b"\xff" * 4000
    shard.write_bytes(content)
    message = read_error("--no-verify", data=data)
    assert f"{shard} is damaged at row " in message
    assert "its token 65535 exceeds the vocabulary of 300. Delete it and rerun the command" in message
    assert not list((tmp_path / "out").glob("step-*"))
    # The original shard repairs the set.
    shutil.copy(pretraining_sets["electra"] / "train" / shard.name, shard)
    assert run_trainer(data, tmp_path / "out") == 0


def test_set_without_validation_rows_is_accepted(data: Path, tmp_path: Path) -> None:
    manifest = load_manifest(data)
    manifest["outputs"] = [output for output in manifest["outputs"] if output["file"].startswith("train/")]
    save_manifest(data, manifest)
    assert run_trainer(data, tmp_path / "out") == 0
    assert {line["split"] for line in load_log(tmp_path / "out")} == {"train"}


# Vocabularies


def test_another_vocabulary_is_refused(read_error: ReadError, other_vocabulary: Path, tmp_path: Path) -> None:
    message = read_error("--vocab", other_vocabulary)
    assert f"{other_vocabulary}/tokenizer.json is not the vocabulary of this pretraining set" in message
    assert not (tmp_path / "out").exists()


def test_missing_vocabulary_can_be_given_as_an_option(
    read_error: ReadError, data: Path, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    manifest = load_manifest(data)
    manifest["run"]["vocabulary"] = str(tmp_path / "gone")
    save_manifest(data, manifest)
    message = read_error(data=data)
    assert f"{tmp_path}/gone is not a folder" in message
    assert "--vocab" in message
    assert not (tmp_path / "out").exists()
    assert run_trainer(data, tmp_path / "out", "--vocab", pretraining_sets["vocabulary"]) == 0


@pytest.mark.parametrize("text", [None, "{", "[]", "[1]"])
def test_missing_or_damaged_tokenizer_config_is_found_before_training(
    text: str | None, read_error: ReadError, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(pretraining_sets["vocabulary"], tmp_path / "vocabulary")
    settings = folder / "tokenizer_config.json"
    settings.unlink()
    if text is not None:
        settings.write_text(text)
    assert f"{settings} is missing or damaged" in read_error("--vocab", folder)
    assert not (tmp_path / "out").exists()


# --output


def test_output_directory_with_other_files_is_refused(
    read_error: ReadError, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("chapter one")
    before = published_digests(tmp_path)
    message = read_error(data=data, out=out)
    assert "is not empty and has no run.json; give another --output, or an empty folder" in message
    assert "is not empty and has no run.json" in read_error(data=data, out=data)
    assert published_digests(tmp_path) == before


@pytest.mark.parametrize("below", ["", "run"])
def test_file_as_output_is_refused(below: str, read_error: ReadError, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    message = read_error(out=tmp_path / "file" / below)
    assert f"{tmp_path}/file" in message
    assert "is a file; give a folder as --output" in message
    assert (tmp_path / "file").read_text() == "text"


def test_remote_output_is_refused(read_error: ReadError) -> None:
    for out in ("", "s3://bucket/run"):
        assert f"--output {out!r} is not a local folder" in read_error(out=out)


@pytest.mark.parametrize("error_number", [errno.EROFS, errno.EACCES])
def test_output_on_a_read_only_file_system_is_refused(
    error_number: int, read_error: ReadError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def raise_error(path: str, **_: object) -> None:
        raise OSError(error_number, os.strerror(error_number), path)

    monkeypatch.setattr("bioshards.train.checkpoint.os.makedirs", raise_error)
    assert f"{tmp_path}/out: {os.strerror(error_number)}" in read_error(code=1)


def test_locked_output_is_refused(read_error: ReadError, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with open(out / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert f"another run is writing {out}: process " in read_error(out=out)
    assert run_trainer(data, out, "--steps", 1) == 0


def test_error_lists_all_differences_of_the_recipe(read_error: ReadError, finished_run: Path) -> None:
    before = published_digests(finished_run)
    options = ("--steps", 24, "--learning-rate", 0.5, "--compile")
    message = read_error(*options, out=finished_run)
    assert f"{finished_run} was started with --" in message
    assert "--steps 12, not 24" in message
    assert "--learning-rate 0.001, not 0.5" in message
    assert "--compile False, not True" in message
    assert "Resume it with the same settings, or give another --output" in message
    assert "hidden" not in message
    assert published_digests(finished_run) == before


def test_resuming_on_other_data_or_vocabulary_is_refused(
    read_error: ReadError,
    pretraining_sets: dict[str, Path],
    finished_run: Path,
    other_vocabulary: Path,
    tmp_path: Path,
) -> None:
    message = read_error("--family", "electra", data=pretraining_sets["plain"], out=finished_run)
    assert "was started with another pretraining set, or one that was rebuilt" in message
    assert "vocabulary" not in message
    documents = write_abstracts(tmp_path / "documents", a=range(1, 61))
    other = build_pretraining_set(tmp_path / "other", "electra", documents, other_vocabulary)
    message = read_error(data=other, out=finished_run)
    assert "another pretraining set, or one that was rebuilt; another vocabulary" in message


def test_resuming_with_other_initial_weights_is_refused(read_error: ReadError, finished_run: Path) -> None:
    message = read_error("--init-checkpoint", finished_run / LAST / "hf", out=finished_run)
    assert "--start-from random, not checkpoint; other initial weights: None" in message


def test_run_of_another_version_is_refused(read_error: ReadError, finished_run: Path, tmp_path: Path) -> None:
    out = shutil.copytree(finished_run, tmp_path / "out")
    run_json = json.loads((out / "run.json").read_text())
    run_json["identity"]["format"] = 0
    del run_json["sha256"]
    checkpoint.write_run_info(LocalStorage(), str(out), run_json)
    assert "was started with another version of bioshards" in read_error(out=out)


# Options


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        *(
            (f"--{name} 0", f"--{name} 0 is below 1")
            for name in (
                "log-every",
                "save-every",
                "validate-every",
                "keep-checkpoints",
                "max-validation-rows",
                "micro-batch-size",
            )
        ),
        ("--save-every -3", "--save-every -3 is below 1"),
        ("--keep-checkpoints x", "invalid int value: 'x'"),
        ("--device gpu", "--device gpu is not supported; give cpu, cuda or cuda:1"),
        ("--device meta", "--device meta is not supported"),
        ("--device mps", "--device mps is not supported"),
        ("--device cuda:99", "--device cuda:99 is not available: "),
        ("--generator-hidden-fraction 0.001", "generator sizes: 2 layers of width 0 with 1 heads"),
    ],
)
def test_invalid_options_are_refused(
    options: str, expected: str, read_error: ReadError, tmp_path: Path
) -> None:
    assert expected in read_error(*options.split())
    assert not is_started(tmp_path / "out")


def test_missing_library_error_names_the_extra() -> None:
    for library in ("torch", "transformers"):
        code = (
            f"import sys, runpy; sys.modules[{library!r}] = None; "
            "sys.argv = ['train', 'DATA', '--output', 'R'];"
            " runpy.run_module('bioshards.train', run_name='__main__')"
        )
        completed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert completed.returncode == 2
        assert completed.stderr.startswith("train: a library is missing (")
        assert library in completed.stderr
        assert completed.stderr.endswith("'WHEEL[train]' with its wheel file\n")


# A full disk


def raise_no_space(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_full_disk_at_a_log_line(
    read_error: ReadError, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = RunLog.write

    def write_or_fail(self: RunLog, entry: dict[str, Any]) -> None:
        if entry["step"] == 8:
            raise_no_space()
        write(self, entry)

    with monkeypatch.context() as patched:
        patched.setattr(RunLog, "write", write_or_fail)
        message = read_error(code=1)
    assert "the disk is full. Free some space and run the same command again" in message
    assert load_state(tmp_path / "out" / BEFORE)["done"] == 6
    assert run_trainer(data, tmp_path / "out") == 0
    assert [line["step"] for line in load_log(tmp_path / "out")] == [4, 8, 12, 12]


# Non-finite gradients


@pytest.fixture
def make_loss_infinite(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the loss infinite at these updates, counted from 1."""

    def call(*updates: int) -> None:
        compute_loss, update_numbers = Objective.compute_loss, iter(range(1, 1000))

        def compute_infinite_loss(self: Objective, *args: Any) -> torch.Tensor:
            loss = compute_loss(self, *args)
            return loss * torch.inf if next(update_numbers) in updates else loss

        monkeypatch.setattr(Objective, "compute_loss", compute_infinite_loss)

    return call


def test_step_with_non_finite_gradient_is_skipped(
    data: Path, tmp_path: Path, make_loss_infinite: Callable[..., None]
) -> None:
    out, options = tmp_path / "out", ("--save-every", 1, "--log-every", 1, "--keep-checkpoints", 20)
    make_loss_infinite(5)
    assert run_trainer(data, out, *options) == 0
    before, skipped, after = (load_state(out / f"step-{step:07d}") for step in (4, 5, 6))
    for part in ("model", "optimiser"):
        assert is_same_state(before[part], skipped[part])
        assert not is_same_state(skipped[part], after[part])
    lines = [line for line in load_log(out) if line["split"] == "train"]
    assert [line["step"] for line in lines if line["grad_norm"] is None] == [5]
    assert all(torch.isfinite(value).all() for value in load_state(out / LAST)["model"].values())


def test_consecutive_non_finite_steps_end_the_run(
    read_error: ReadError, tmp_path: Path, make_loss_infinite: Callable[..., None]
) -> None:
    out = tmp_path / "out"
    make_loss_infinite(*range(8, 40))
    message = read_error("--steps", 40, "--save-every", 7, code=1, out=out)
    assert f"no finite gradient in {MAX_NON_FINITE_STEPS} consecutive steps up to step 17" in message
    assert "a lower --learning-rate" in message
    before, after = (load_state(out / f"step-{step:07d}") for step in (7, 14))
    assert is_same_state(before["model"], after["model"])
    assert not (out / "manifest.json").exists()
    AutoModel.from_pretrained(out / "step-0000014" / "hf")


def test_fewer_non_finite_steps_do_not_end_the_run(
    data: Path, tmp_path: Path, make_loss_infinite: Callable[..., None]
) -> None:
    make_loss_infinite(*range(2, 2 + MAX_NON_FINITE_STEPS - 1))
    assert run_trainer(data, tmp_path / "out") == 0


# A finished run


def test_finished_run_is_not_changed(
    pretraining_sets: dict[str, Path], finished_run: Path, capsys: Capture
) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in list_files(finished_run)}
    capsys.readouterr()
    assert run_trainer(pretraining_sets["electra"], finished_run) == 0
    stdout = capsys.readouterr().out
    assert f"{finished_run} is finished: there is nothing to do\n" in stdout
    assert f'transformers.AutoModel.from_pretrained("{finished_run}/{LAST}/hf")' in stdout
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in list_files(finished_run)} == before


def list_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]


@pytest.mark.parametrize("is_damaged", [False, True])
def test_missing_or_damaged_manifest_of_a_finished_run_is_written_without_training(
    is_damaged: bool, pretraining_sets: dict[str, Path], finished_run: Path, tmp_path: Path
) -> None:
    """The last log line has a null loss, which replaces a non-finite value."""
    out = shutil.copytree(finished_run, tmp_path / "out")
    damaged = json.dumps({**load_manifest(out), "final_metrics": {}})
    (out / "manifest.json").unlink()
    if is_damaged:
        (out / "manifest.json").write_text(damaged)
    lines = (out / "log.jsonl").read_text().splitlines()
    last = json.loads(lines[-2])
    lines[-2] = json.dumps({**last, "losses": {**last["losses"], "mlm": None}})
    (out / "log.jsonl").write_text("\n".join(lines) + "\n")
    assert run_trainer(pretraining_sets["electra"], out) == 0
    assert (out / "log.jsonl").read_text().splitlines() == lines
    assert load_manifest(out)["final_metrics"]["losses"]["mlm"] is None
    outputs = load_manifest(out)["outputs"]
    assert {output["file"]: output["sha256"] for output in outputs} == {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in list_files(out / LAST)
        if path.name != "run.json"  # which has times
    }
