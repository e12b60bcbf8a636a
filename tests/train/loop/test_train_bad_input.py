"""Training on what cannot be trained on, and where it cannot be written: each message says what, where, why
and what to do, and the last good checkpoint is as it was."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
import torch
from transformers import AutoModel

from bioshards.train.__main__ import main
from bioshards.train.loop import training_run
from bioshards.train.loop.checkpoint import LoopState
from bioshards.train.loop.metrics_log import MetricsLog
from bioshards.train.loop.training_loop import MAX_NON_FINITE_STEPS
from bioshards.train.models.objective import Objective
from tests.support.full_disk import limit_file_size
from tests.support.outputs import load_manifest, published_digests
from tests.support.train.trainer_runs import (
    SMALL_MODEL_OPTIONS,
    build_pretraining_set,
    is_same_state,
    load_log,
    load_state,
    run_trainer,
    use_torch_threads,
)
from tests.support.vocab.synthetic_corpora import build_vocabulary, list_shards, write_abstracts

Capture = pytest.CaptureFixture[str]
Says = Callable[..., str]
LAST, BEFORE = "step-0000012", "step-0000006"


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


@pytest.fixture
def data(pretraining_sets: dict[str, Path], tmp_path: Path) -> Path:
    """A pretraining set to be damaged."""
    folder: Path = shutil.copytree(pretraining_sets["electra"], tmp_path / "data")
    return folder


@pytest.fixture(scope="module")
def finished(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run; whoever changes it copies it first."""
    folder = tmp_path_factory.mktemp("finished") / "run"
    with use_torch_threads(1):
        assert run_trainer(pretraining_sets["electra"], folder) == 0
    return folder


@pytest.fixture(scope="module")
def other_vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("other-vocabulary")
    return build_vocabulary(
        folder / "v", write_abstracts(folder / "in", a=range(900, 960)), options=("--size", "280")
    )


@pytest.fixture
def says(capsys: Capture) -> Says:
    """What a run says that ends with 2, or with ``code``."""

    def call(data: object, out: object, *options: object, code: int = 2) -> str:
        capsys.readouterr()
        try:
            ended = main([str(data), "--output", str(out), *SMALL_MODEL_OPTIONS, *map(str, options)])
        except SystemExit as error:  # argparse's own
            ended = error.code  # type: ignore[assignment]
        said = capsys.readouterr()
        assert ended == code, said.err
        assert "Traceback" not in said.err
        assert "BIOSHARDS_TRACEBACK" not in said.err  # nothing that nobody has thought of
        assert not said.out
        last = said.err.splitlines()[-1]
        assert last.startswith(("train: ", "python -m bioshards.train: error: "))
        assert ".." not in last.replace("...", "")
        return last

    return call


def begun(out: Path) -> bool:
    """Has a run been begun there?"""
    return (out / "run.json").exists()


# Data


def test_no_such_folder(says: Says, tmp_path: Path) -> None:
    said = says(tmp_path / "nowhere", tmp_path / "out")
    assert "nowhere does not exist. Give the --output of beam run shards_to_pretraining" in said
    assert not (tmp_path / "out").exists()


def test_a_file_instead_of_a_folder(says: Says, data: Path, tmp_path: Path) -> None:
    assert "manifest.json" in says(data / "manifest.json", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_documents_instead_of_a_set(says: Says, tmp_path: Path) -> None:
    folder = write_abstracts(tmp_path / "documents", a=range(1, 3))
    said = says(folder, tmp_path / "out")
    assert f"{folder} is an output of pubmed_to_shards" in said
    assert f"Build a pretraining set from it: beam run shards_to_pretraining --input {folder}" in said


def test_the_folder_of_a_split(says: Says, data: Path, tmp_path: Path) -> None:
    said = says(data / "train", tmp_path / "out")
    assert f"has no manifest.json, but its parent folder has one: give {data}" in said


def test_an_unfinished_set(says: Says, data: Path, tmp_path: Path) -> None:
    (data / "manifest.json").unlink()
    assert "it is not a finished pretraining set" in says(data, tmp_path / "out")


def test_a_run_instead_of_a_set(says: Says, finished: Path, tmp_path: Path) -> None:
    assert f"{finished} is an output of train" in says(finished, tmp_path / "out")


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"pipeline": "shards_to_pretraining"}'])
def test_a_manifest_that_is_none(text: str, says: Says, data: Path, tmp_path: Path) -> None:
    (data / "manifest.json").write_text(text)
    assert says(data, tmp_path / "out").startswith(f"train: {data}")


def test_a_set_on_a_server(says: Says, tmp_path: Path) -> None:
    assert "Copy it first" in says("s3://bucket/set", tmp_path / "out")


def test_a_shard_that_is_gone(says: Says, data: Path, tmp_path: Path) -> None:
    (shard,) = list_shards(data, "train")
    shard.unlink()
    assert f"{shard} is missing, but the manifest lists it" in says(data, tmp_path / "out")


def test_a_shard_that_is_cut(says: Says, data: Path, tmp_path: Path) -> None:
    (shard,) = list_shards(data, "train")
    whole = shard.read_bytes()
    shard.write_bytes(whole[:-100])
    assert f"has {len(whole) - 100:,} bytes, but the manifest lists {len(whole):,}" in says(
        data, tmp_path / "out"
    )
    assert not begun(tmp_path / "out")


def test_a_changed_shard_is_found_before_anything_is_learned(says: Says, data: Path, tmp_path: Path) -> None:
    (shard,) = list_shards(data, "train")
    with open(shard, "r+b") as file:
        file.seek(tokens_of(shard))
        file.write(b"\x07\x00")
    said = says(data, tmp_path / "out")
    assert f"{shard} has changed: its SHA-256 differs from the manifest. Delete it" in said
    assert not begun(tmp_path / "out")
    # Unless that is not wanted: its rows make sense.
    assert run_trainer(data, tmp_path / "out", "--no-verify") == 0


def test_a_shard_of_nonsense_is_not_learned_even_unverified(
    says: Says, pretraining_sets: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    (shard,) = list_shards(data, "train")
    whole = bytearray(shard.read_bytes())
    at = tokens_of(shard)
    whole[at : at + 4000] = b"\xff" * 4000
    shard.write_bytes(whole)
    said = says(data, tmp_path / "out", "--no-verify")
    assert f"{shard} is damaged at row " in said
    assert (
        "its token 65535 exceeds the vocabulary of 300. Delete it and rerun the command that built the set"
        in said
    )
    assert not list((tmp_path / "out").glob("step-*"))
    # The right bytes mend it.
    shutil.copy(pretraining_sets["electra"] / "train" / shard.name, shard)
    assert run_trainer(data, tmp_path / "out") == 0


def tokens_of(shard: Path) -> int:
    """Where in a shard the tokens of its first record batch begin."""
    with pa.memory_map(str(shard)) as file:
        mapped = file.read_buffer()
    with pa.ipc.open_stream(mapped) as stream:
        column = stream.read_next_batch().column("input_ids")
    begin: int = column.buffers()[3].address - mapped.address
    return begin


def test_a_set_without_rows_to_validate_on_is_trained_on(
    pretraining_sets: dict[str, Path], data: Path, tmp_path: Path
) -> None:
    facts = load_manifest(data)
    facts["outputs"] = [one for one in facts["outputs"] if one["file"].startswith("train/")]
    (data / "manifest.json").write_text(json.dumps(facts))
    assert run_trainer(data, tmp_path / "out") == 0
    assert {line["split"] for line in load_log(tmp_path / "out")} == {"train"}


def test_a_set_without_rows_to_train_on(says: Says, data: Path, tmp_path: Path) -> None:
    facts = load_manifest(data)
    facts["outputs"] = [one for one in facts["outputs"] if not one["file"].startswith("train/")]
    (data / "manifest.json").write_text(json.dumps(facts))
    assert f"{data} has no rows in the split train" in says(data, tmp_path / "out")


@pytest.mark.parametrize(("built_for", "family"), [("albert", "bert"), ("bert", "albert")])
def test_labels_of_the_other_kind(
    built_for: str, family: str, says: Says, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    said = says(pretraining_sets[built_for], tmp_path / "out", "--family", family)
    assert f"was built with --objective {built_for}, whose labels {family} cannot use" in said
    assert f"Build a set with --objective {family}, or give --family {built_for}" in said


def test_rows_longer_than_the_model_can_take(says: Says, data: Path, tmp_path: Path) -> None:
    said = says(data, tmp_path / "out", "--max-positions", 63)
    assert "has rows of up to 64 tokens, more than --max-positions 63. Raise it, or build a set" in said


# Vocabularies


def test_another_vocabulary(says: Says, data: Path, other_vocabulary: Path, tmp_path: Path) -> None:
    said = says(data, tmp_path / "out", "--vocab", other_vocabulary)
    assert f"{other_vocabulary}/tokenizer.json is not the vocabulary of this pretraining set" in said
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_that_is_no_longer_where_it_was(
    says: Says, data: Path, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    facts = load_manifest(data)
    facts["run"]["vocabulary"] = str(tmp_path / "gone")
    (data / "manifest.json").write_text(json.dumps(facts))
    said = says(data, tmp_path / "out")
    assert f"{tmp_path}/gone is not a folder" in said
    assert "--vocab" in said
    assert not (tmp_path / "out").exists()
    assert run_trainer(data, tmp_path / "out", "--vocab", pretraining_sets["vocabulary"]) == 0


def test_a_set_that_does_not_say_where_its_vocabulary_was(says: Says, data: Path, tmp_path: Path) -> None:
    facts = load_manifest(data)
    for name in ("vocabulary", "run"):
        facts.get("run", {}).pop(name, None)
        facts.pop(name, None)
        (data / "manifest.json").write_text(json.dumps(facts))
        assert ": the field is missing)" in says(data, tmp_path / "out")


@pytest.mark.parametrize("text", [None, "{", "[]", "[1]"])
def test_a_vocabulary_without_settings_is_found_before_training(
    text: str | None, says: Says, data: Path, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(pretraining_sets["vocabulary"], tmp_path / "vocabulary")
    settings = folder / "tokenizer_config.json"
    settings.unlink()
    if text is not None:
        settings.write_text(text)
    assert f"{settings} is missing or damaged" in says(data, tmp_path / "out", "--vocab", folder)
    assert not (tmp_path / "out").exists()


# --output


def test_a_folder_of_something_else(says: Says, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "thesis.tex").write_text("chapter one")
    before = published_digests(tmp_path)
    assert "is not empty and has no run.json; give another --output, or an empty folder" in says(data, out)
    assert "is not empty and has no run.json" in says(data, data)
    assert published_digests(tmp_path) == before


def test_an_empty_folder_will_do(data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    assert run_trainer(data, tmp_path / "out", "--steps", 1) == 0


@pytest.mark.parametrize("below", ["", "run"])
def test_a_file_as_out(below: str, says: Says, data: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    said = says(data, tmp_path / "file" / below)
    assert f"{tmp_path}/file" in said
    assert "is a file; give a folder as --output" in said
    assert (tmp_path / "file").read_text() == "text"


def test_an_out_that_is_no_folder_of_this_machine(says: Says, data: Path) -> None:
    for out in ("", "s3://bucket/run"):
        assert f"--output {out!r} is not a local folder" in says(data, out)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES])
def test_an_out_that_cannot_be_written(
    number: int, says: Says, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: str, **_: object) -> None:
        raise OSError(number, os.strerror(number), path)

    monkeypatch.setattr("bioshards.train.loop.run_dir.os.makedirs", refuse)
    assert f"{tmp_path}/out: {os.strerror(number)}" in says(data, tmp_path / "out", code=1)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_may_not_be_written(says: Says, data: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir(mode=0o500)
    assert "Permission denied" in says(data, tmp_path / "out", code=1)


def test_a_folder_in_which_another_process_trains(says: Says, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    with open(out / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert f"another process trains in {out}; wait for it or stop it" in says(data, out)
    assert run_trainer(data, out, "--steps", 1) == 0


def test_a_run_of_another_recipe_says_every_difference(
    says: Says, pretraining_sets: dict[str, Path], finished: Path
) -> None:
    before = published_digests(finished)
    said = says(pretraining_sets["electra"], finished, "--steps", 24, "--learning-rate", 0.5, "--pad-rows")
    assert f"{finished} was started with --steps 12, not 24; " in said
    assert "--learning-rate 0.001, not 0.5" in said
    assert "--pad-rows False, not True" in said
    assert "Resume it with the same settings, or give another --output" in said
    assert "hidden" not in said
    assert published_digests(finished) == before


def test_a_run_on_other_data_or_of_another_vocabulary(
    says: Says, pretraining_sets: dict[str, Path], finished: Path, other_vocabulary: Path, tmp_path: Path
) -> None:
    said = says(pretraining_sets["plain"], finished, "--family", "electra")
    assert "was started with another pretraining set, or one that was rebuilt" in said
    assert "vocabulary" not in said
    documents = write_abstracts(tmp_path / "documents", a=range(1, 61))
    other = build_pretraining_set(tmp_path / "other", "electra", documents, other_vocabulary)
    said = says(other, finished)
    assert "another pretraining set, or one that was rebuilt; another vocabulary" in said


def test_a_run_from_other_weights(says: Says, pretraining_sets: dict[str, Path], finished: Path) -> None:
    said = says(pretraining_sets["electra"], finished, "--init-checkpoint", finished / LAST / "hf")
    assert "--start-from random, not checkpoint; other initial weights: None" in said


def test_a_run_that_another_version_has_begun(
    says: Says, pretraining_sets: dict[str, Path], finished: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(finished, tmp_path / "out")
    about = json.loads((out / "run.json").read_text())
    about["identity"]["format"] = 0
    (out / "run.json").write_text(json.dumps(about))
    assert "was started with another version of bioshards" in says(pretraining_sets["electra"], out)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"identity": {"recipe": null}}'])
def test_a_damaged_run_json(
    text: str, says: Says, pretraining_sets: dict[str, Path], finished: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(finished, tmp_path / "out")
    (out / "run.json").write_text(text)
    assert f"{out}/run.json is damaged" in says(pretraining_sets["electra"], out)


@pytest.mark.parametrize("how", ["cut", "empty", "gone", "nonsense"])
def test_a_damaged_checkpoint_names_itself_and_the_one_before_goes_on(
    how: str, says: Says, pretraining_sets: dict[str, Path], finished: Path, tmp_path: Path
) -> None:
    out = shutil.copytree(finished, tmp_path / "out")
    (out / "manifest.json").unlink()
    path = out / LAST / "state.pt"
    whole = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes({"cut": whole[: len(whole) // 2], "empty": b"", "nonsense": b"state " * 99}[how])
    said = says(pretraining_sets["electra"], out)
    assert f"{path} is missing or damaged (" in said
    assert f"Remove {out / LAST} and rerun the command to resume from the checkpoint before" in said
    shutil.rmtree(out / LAST)
    assert run_trainer(pretraining_sets["electra"], out) == 0
    assert is_same_state(load_state(out / LAST), load_state(finished / LAST))


# How it is run


@pytest.mark.parametrize(
    ("options", "said"),
    [
        *(
            (f"--{name} 0", f"--{name} 0 is below 1")
            for name in (
                "log-every",
                "save-every",
                "validate-every",
                "keep-checkpoints",
                "max-validation-rows",
            )
        ),
        *(
            (f"--{name} -3", f"--{name} -3 is below 1")
            for name in ("log-every", "save-every", "keep-checkpoints")
        ),
        ("--keep-checkpoints x", "invalid int value: 'x'"),
        ("--micro-batch-size 0", "--micro-batch-size 0 is below 1"),
        ("--micro-batch-size -2", "--micro-batch-size -2 is below 1"),
        ("--device gpu", "--device gpu is not supported; give cpu, cuda or cuda:1"),
        ("--device meta", "--device meta is not supported"),
        ("--device mps", "--device mps is not supported"),
        ("--device cuda:99", "--device cuda:99 is not available: "),
        (
            "--generator-hidden-fraction 0.001",
            "invalid generator sizes: 2 layers of width 0 with 1 heads",
        ),
    ],
)
def test_options_that_make_no_sense(options: str, said: str, says: Says, data: Path, tmp_path: Path) -> None:
    assert said in says(data, tmp_path / "out", *options.split())
    assert not begun(tmp_path / "out")


def test_a_library_that_is_missing() -> None:
    for library in ("torch", "transformers"):
        code = (
            f"import sys, runpy; sys.modules[{library!r}] = None; "
            "sys.argv = ['train', 'DATA', '--output', 'R'];"
            " runpy.run_module('bioshards.train', run_name='__main__')"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert done.stderr.startswith("train: a library is missing (")
        assert library in done.stderr
        assert done.stderr.endswith("pip install 'bioshards[train]'\n")


# A full disk


def is_whole(run: Path, checkpoint: str) -> bool:
    """Is the checkpoint the run's last, nothing half written beside it, and does it load?"""
    there = sorted(path.name for path in run.iterdir() if path.name.startswith(("step-", ".bioshards")))
    AutoModel.from_pretrained(run / checkpoint / "hf")
    return there == [checkpoint] and load_state(run / checkpoint)["done"] == 6


@pytest.mark.parametrize("size", [20_000, 200_000])  # of hf/model.safetensors, of state.pt
def test_a_disk_that_fills_up_at_a_checkpoint(
    size: int, says: Says, data: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    write = training_run._TrainingRun._write_checkpoint

    def filling(self: Any, folder: str, trainer: Any, now: LoopState) -> None:
        with limit_file_size(size) if now.steps_done == 12 else contextlib.nullcontext():
            write(self, folder, trainer, now)

    with monkeypatch.context() as patched:
        patched.setattr(training_run._TrainingRun, "_write_checkpoint", filling)
        said = says(data, out, code=1)
    assert f"cannot write the checkpoint of step 12 to {out} (" in said
    assert f"{out}/{BEFORE} is complete. " in said
    assert "MB are free there; fix that and rerun the command to resume" in said
    assert is_whole(out, BEFORE)
    assert not (out / "manifest.json").exists()
    assert run_trainer(data, out) == 0
    assert is_same_state(load_state(out / LAST), load_state(finished / LAST))


def full(*_: object, **__: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize(
    "name", ["checkpoint.os.rename", "checkpoint._fsync", "tokenizer_files.shutil.copyfile"]
)
def test_a_disk_that_is_full_in_the_middle_of_a_checkpoint(
    name: str, says: Says, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    assert run_trainer(data, out) == 0
    shutil.rmtree(out / LAST)
    (out / "manifest.json").unlink()
    with monkeypatch.context() as patched:
        patched.setattr(f"bioshards.train.loop.{name}", full)
        said = says(data, out, code=1)
    assert f"step 12 to {out} (No space left on device). {out}/{BEFORE} is complete" in said
    assert is_whole(out, BEFORE)
    assert run_trainer(data, out) == 0


def test_a_disk_that_is_full_at_the_first_checkpoint(
    says: Says, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bioshards.train.loop.checkpoint._fsync_tree", full)
    said = says(data, tmp_path / "out", code=1)
    assert "cannot write the checkpoint of step 6" in said
    assert "There is no earlier one. " in said
    assert not list((tmp_path / "out").glob("step-*"))
    assert not list((tmp_path / "out").glob(".bioshards*"))


def test_a_disk_that_is_full_at_a_line_of_the_log(
    says: Says, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = MetricsLog.write

    def filling(self: MetricsLog, entry: dict[str, Any]) -> None:
        if entry["step"] == 8:
            full()
        write(self, entry)

    with monkeypatch.context() as patched:
        patched.setattr(MetricsLog, "write", filling)
        said = says(data, tmp_path / "out", code=1)
    assert "the disk is full. Free some space and run the same command again" in said
    assert is_whole(tmp_path / "out", BEFORE)
    assert run_trainer(data, tmp_path / "out") == 0
    assert [line["step"] for line in load_log(tmp_path / "out")] == [4, 8, 12, 12]


# Gradients that are no numbers


@pytest.fixture
def poisoned(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Make the loss of these updates, counted from 1, infinite."""

    def call(*updates: int) -> None:
        total, seen = Objective.compute_loss, iter(range(1, 1000))

        def infinite(self: Objective, *given: Any) -> torch.Tensor:
            loss = total(self, *given)
            return loss * torch.inf if next(seen) in updates else loss

        monkeypatch.setattr(Objective, "compute_loss", infinite)

    return call


def test_a_step_without_a_finite_gradient_is_left_out(
    data: Path, tmp_path: Path, poisoned: Callable[..., None]
) -> None:
    out, every = tmp_path / "out", ("--save-every", 1, "--log-every", 1, "--keep-checkpoints", 20)
    poisoned(5)
    assert run_trainer(data, out, *every) == 0
    before, left_out, after = (load_state(out / f"step-{step:07d}") for step in (4, 5, 6))
    for part in ("model", "optimiser"):
        assert is_same_state(before[part], left_out[part])
        assert not is_same_state(left_out[part], after[part])
    lines = [line for line in load_log(out) if line["split"] == "train"]
    assert [line["step"] for line in lines if line["grad_norm"] is None] == [5]
    assert all(torch.isfinite(value).all() for value in load_state(out / LAST)["model"].values())


def test_so_many_in_a_row_end_the_run(
    says: Says, data: Path, tmp_path: Path, poisoned: Callable[..., None]
) -> None:
    out = tmp_path / "out"
    poisoned(*range(8, 40))
    said = says(data, out, "--steps", 40, "--save-every", 7, code=1)
    assert f"no finite gradient in {MAX_NON_FINITE_STEPS} consecutive steps up to step 17" in said
    assert "a lower --learning-rate" in said
    before, after = (load_state(out / f"step-{step:07d}") for step in (7, 14))
    assert is_same_state(before["model"], after["model"])
    assert not (out / "manifest.json").exists()
    AutoModel.from_pretrained(out / "step-0000014" / "hf")


def test_one_less_does_not(data: Path, tmp_path: Path, poisoned: Callable[..., None]) -> None:
    poisoned(*range(2, 2 + MAX_NON_FINITE_STEPS - 1))
    assert run_trainer(data, tmp_path / "out") == 0


def test_a_learning_rate_beyond_all_sense(says: Says, data: Path, tmp_path: Path) -> None:
    said = says(data, tmp_path / "out", "--learning-rate", 1e30, "--steps", 40, code=1)
    assert "training diverged" in said
    assert not (tmp_path / "out" / "manifest.json").exists()


# A finished run


def test_a_finished_run_is_left_as_it_is(
    pretraining_sets: dict[str, Path], finished: Path, capsys: Capture
) -> None:
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files(finished)}
    capsys.readouterr()
    assert run_trainer(pretraining_sets["electra"], finished) == 0
    said = capsys.readouterr().out
    assert f"{finished} is finished: there is nothing to do\n" in said
    assert f'transformers.AutoModel.from_pretrained("{finished}/{LAST}/hf")' in said
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files(finished)} == before


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.name != ".lock"]


def test_a_run_killed_before_its_manifest_ends_without_another_step(
    pretraining_sets: dict[str, Path], finished: Path, tmp_path: Path
) -> None:
    """Even if the last line of its log has a number that JSON does not have."""
    out = shutil.copytree(finished, tmp_path / "out")
    (out / "manifest.json").unlink()
    lines = (out / "log.jsonl").read_text().splitlines()
    last = json.loads(lines[-2])
    lines[-2] = json.dumps({**last, "losses": {**last["losses"], "mlm": None}})
    (out / "log.jsonl").write_text("\n".join(lines) + "\n")
    assert run_trainer(pretraining_sets["electra"], out) == 0
    assert (out / "log.jsonl").read_text().splitlines() == lines
    told = load_manifest(out)["outputs"]
    assert {one["file"]: one["sha256"] for one in told} == {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files(out / LAST)
        if path.name != "run.json"  # which has times
    }
