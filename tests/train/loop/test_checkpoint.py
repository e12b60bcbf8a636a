"""Checkpoints: whole or not there, whatever goes wrong while they are written."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from transformers import PreTrainedModel

from bioshards.train.loop import checkpoint
from bioshards.train.loop.checkpoint import CheckpointError
from tests.support import fork_server
from tests.support.train.trainer_processes import (
    TrainerProcess,
    assert_same_runs,
    call_after_step,
    last_checkpoint,
    list_temporary_dirs,
    read_model_files,
    send_signal,
    trainer_options,
)
from tests.support.train.trainer_runs import load_log, load_state, run_trainer, use_torch_threads

OFTEN = ("--save-every", 3, "--log-every", 1)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


# The folder alone


def write(text: str, folder: str) -> None:
    """Files in folders, as those of a model are."""
    os.makedirs(f"{folder}/hf/generator")
    for name in ("hf/config.json", "hf/generator/model", "state.pt"):
        Path(folder, name).write_text(f"{name} {text}")


def is_whole(folder: Path, text: str) -> bool:
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return files == {name: f"{name} {text}" for name in ("hf/config.json", "hf/generator/model", "state.pt")}


def save(run: Path, *steps: int, keep: int = 3) -> None:
    for step in steps:
        checkpoint.save(str(run), step, partial(write, str(step)), keep)


def names(run: Path) -> list[str]:
    return sorted(path.name for path in run.iterdir())


@pytest.mark.parametrize("keep", [1, 2, 3, 10])
def test_the_last_ones_stay(keep: int, tmp_path: Path) -> None:
    for number, step in enumerate((5, 10, 100, 9_999_999, 10_000_000, 123_456_789), 1):
        save(tmp_path, step, keep=keep)
        assert len(names(tmp_path)) == min(number, keep)
        assert checkpoint.find_latest(str(tmp_path)) == f"{tmp_path}/step-{step:07d}"
        assert is_whole(tmp_path / f"step-{step:07d}", str(step))
    found = checkpoint.list_checkpoints(str(tmp_path))
    assert [int(path.rsplit("-")[-1]) for path in found] == [
        *(5, 10, 100, 9_999_999, 10_000_000, 123_456_789)
    ][-keep:]


def test_fewer_stay_at_once_when_fewer_are_asked_for(tmp_path: Path) -> None:
    save(tmp_path, 1, 2, 3, 4, keep=10)
    save(tmp_path, 5, keep=2)
    assert names(tmp_path) == ["step-0000004", "step-0000005"]


def test_what_only_looks_like_one_is_none_and_stays(tmp_path: Path) -> None:
    for name in ("step-000001", "step-0000001.old", "my-step-0000001", "step-000000x", "notes.txt"):
        (tmp_path / name).mkdir()
    assert checkpoint.find_latest(str(tmp_path)) is None
    save(tmp_path, 1, 2, keep=1)
    checkpoint.sweep(str(tmp_path))
    assert len(names(tmp_path)) == 6
    assert checkpoint.find_latest(str(tmp_path)) == f"{tmp_path}/step-0000002"
    assert checkpoint.find_latest(str(tmp_path / "nowhere")) is None


def test_one_that_is_there_is_not_written_again(tmp_path: Path) -> None:
    save(tmp_path, 1)

    def never(_folder: str) -> None:
        raise AssertionError

    assert checkpoint.save(str(tmp_path), 1, never, 3) == f"{tmp_path}/step-0000001"


def test_leftovers_are_swept_and_nothing_else(tmp_path: Path) -> None:
    save(tmp_path, 1)
    write("half", str(tmp_path / ".tmp-0a"))
    (tmp_path / ".tmp-0b").write_text("half a run.json")
    for name in ("run.json", "log.jsonl", ".lock", "tmp-notes"):
        (tmp_path / name).touch()
    checkpoint.sweep(str(tmp_path))
    assert names(tmp_path) == [".lock", "log.jsonl", "run.json", "step-0000001", "tmp-notes"]
    assert is_whole(tmp_path / "step-0000001", "1")


def _save_and_die(run: str, moment: int) -> None:
    """Write a third checkpoint, of which the first of two goes; die at the so-manieth thing done to files."""
    left = moment

    def watch(event: str, given: tuple[Any, ...]) -> None:
        nonlocal left
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.scandir", "os.listdir"):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)
    save(Path(run), 3, keep=2)
    os._exit(0)


def test_wherever_a_process_dies_the_last_checkpoint_is_whole(tmp_path: Path) -> None:
    """At every single open, rename and removal in turn."""
    ends, codes = set(), []
    for moment in range(1, 200):
        run = tmp_path / str(moment)
        run.mkdir()
        save(run, 1, 2)
        process = fork_server.FORK_SERVER.Process(target=_save_and_die, args=(str(run), moment))
        process.start()
        process.join()
        codes.append(process.exitcode)
        for folder in run.glob("step-*"):
            assert is_whole(folder, folder.name[-1])
        checkpoint.sweep(str(run))
        assert not list_temporary_dirs(run)
        ends.add(tuple(name[-1] for name in names(run)))
        save(run, 3, 4, keep=2)
        assert names(run) == ["step-0000003", "step-0000004"]
        if codes[-1] == 0:
            break
    assert codes[-1] == 0
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert len(codes) > 15
    assert ends == {("1", "2"), ("1", "2", "3"), ("2", "3")}


def test_everything_is_brought_to_disk_before_it_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file, each folder, and after the renaming the run's folder, in which the new name stands."""
    done: list[str] = []
    fsync, rename = os.fsync, os.rename

    def synced(handle: int) -> None:
        done.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def renamed(before: str, after: str) -> None:
        done.append("rename")
        rename(before, after)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    save(tmp_path, 1)
    at = done.index("rename")
    found = {os.path.relpath(path, tmp_path).partition("/")[2] for path in done[:at]}
    assert found == {"", "hf", "hf/config.json", "hf/generator", "hf/generator/model", "state.pt"}
    assert done[at + 1 :] == [str(tmp_path)]


@pytest.mark.parametrize("moment", ["makedirs", "write", "fsync", "rename"])
def test_what_fails_leaves_the_one_before_and_says_what_to_do(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 1, 2)

    def full(*_given: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if moment == "write":
        monkeypatch.setattr(Path, "write_text", full)
    else:
        monkeypatch.setattr(os, moment, full)
    with pytest.raises(CheckpointError) as failed:
        save(tmp_path, 3, keep=1)
    monkeypatch.undo()
    assert "cannot write the checkpoint of step 3" in str(failed.value)
    assert f"to {tmp_path} (No space left on device)" in str(failed.value)
    assert f"{tmp_path}/step-0000002 is complete. " in str(failed.value)
    assert "MB are free there" in str(failed.value)
    assert names(tmp_path) == ["step-0000001", "step-0000002"]
    assert all(is_whole(tmp_path / name, name[-1]) for name in names(tmp_path))
    save(tmp_path, 3, keep=1)
    assert names(tmp_path) == ["step-0000003"]


# Those of a run


@pytest.fixture(scope="module")
def half(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after 9 of 12 steps, with checkpoints of 3, 6 and 9."""
    out = tmp_path_factory.mktemp("half") / "run"
    with use_torch_threads(1), call_after_step(9, send_signal):
        assert run_trainer(pretraining_sets["bert"], out, *OFTEN) == 130
    return out


def half_a_file(error: Exception, _state: object, file: Any) -> None:
    file.write(b"half")
    raise error


def half_a_model(error: Exception, folder: str, **_given: object) -> None:
    os.makedirs(folder, exist_ok=True)
    Path(folder, "model.safetensors").write_bytes(b"half")
    raise error


NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
FAULTS: dict[str, tuple[object, str, Callable[..., None], Exception, str]] = {
    "full, seen by Python": (torch, "save", half_a_file, NO_SPACE, "No space left on device"),
    "full, seen by PyTorch": (
        *(torch, "save", half_a_file),
        RuntimeError("PytorchStreamWriter failed writing file data/7: file write failed\nframe #0: ..."),
        "PytorchStreamWriter failed writing file data/7: file write failed",
    ),
    "full, seen by safetensors": (
        *(PreTrainedModel, "save_pretrained", half_a_model),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        "Error while serializing: I/O error: No space left on device (os error 28)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_run_whose_checkpoint_fails_ends_and_goes_on_by_the_same_command(
    fault: str,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = pretraining_sets["electra"], tmp_path / "run"
    where, name, fails, error, reason = FAULTS[fault]

    def broken() -> None:
        monkeypatch.setattr(where, name, partial(fails, error))

    with call_after_step(8, broken):
        assert run_trainer(data, out, *OFTEN) == 1
    said = capsys.readouterr().err
    assert f"train: cannot write the checkpoint of step 9 to {out} ({reason})" in said
    assert f"{out}/step-0000006 is complete" in said
    assert "MB are free there; fix that and rerun the command to resume" in said
    assert "frame" not in said
    assert not list_temporary_dirs(out)
    assert [path.name for path in sorted(out.glob("step-*"))] == ["step-0000003", "step-0000006"]
    assert load_state(last_checkpoint(out))["done"] == 6
    monkeypatch.undo()
    assert run_trainer(data, out, *OFTEN) == 0
    assert run_trainer(data, tmp_path / "whole", *OFTEN) == 0
    assert_same_runs(tmp_path / "whole", out)


@contextlib.contextmanager
def _small_files(size: int) -> Iterator[None]:
    """No file of this process may be larger: the system refuses what is written beyond."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    yield


@pytest.mark.parametrize("share", ["of the weights", "of the state"])
def test_a_system_that_takes_no_more_bytes(
    share: str, half: Path, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Nothing is pretended here; the state is three times the weights, so that it fails after them."""
    data, out = pretraining_sets["bert"], tmp_path / "run"
    name = "hf/model.safetensors" if share == "of the weights" else "state.pt"
    size = (half / "step-0000003" / name).stat().st_size * 3 // 4
    child = TrainerProcess(trainer_options(data, out, *OFTEN), tmp_path / "told", partial(_small_files, size))
    assert child.wait() == 1
    said = child.read_output()
    assert f"train: cannot write the checkpoint of step 3 to {out} (" in said
    assert ("os error 27" in said) == (share == "of the weights")  # which is how safetensors says it
    assert "os error 27" in said or "File too large" in said or "file write failed" in said
    assert "There is no earlier one" in said
    assert not list(out.glob("step-*"))
    assert not list_temporary_dirs(out)
    assert run_trainer(data, out, *OFTEN) == 0


def test_a_run_that_is_stopped_where_nothing_can_be_written_says_so(
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Ctrl-C on a full disk: what is lost is said."""
    monkeypatch.setattr(torch, "save", partial(half_a_file, NO_SPACE))
    with call_after_step(2, send_signal):
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run") == 1
    assert "cannot write the checkpoint of step 2" in capsys.readouterr().err


def test_a_run_keeps_the_last_ones_and_each_can_be_gone_on_from(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, options = pretraining_sets["bert"], ("--save-every", 2, "--keep-checkpoints", 3, "--log-every", 1)
    assert run_trainer(data, tmp_path / "whole", *options) == 0
    assert [path.name for path in sorted((tmp_path / "whole").glob("step-*"))] == [
        f"step-{step:07d}" for step in (8, 10, 12)
    ]
    shutil.copytree(tmp_path / "whole", tmp_path / "again")
    for name in ("manifest.json", "step-0000012", "step-0000010"):
        path = tmp_path / "again" / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert run_trainer(data, tmp_path / "again", *options) == 0
    assert_same_runs(tmp_path / "whole", tmp_path / "again")
    for step in (8, 10, 12):
        one, other = (tmp_path / run / f"step-{step:07d}" for run in ("whole", "again"))
        assert read_model_files(one) == read_model_files(other)
        assert (one / "state.pt").read_bytes() == (other / "state.pt").read_bytes()


# Damage


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    path.write_bytes(b"this is no checkpoint at all")


def _other(path: Path) -> None:
    torch.save({"weights": torch.zeros(3)}, path)


def _no_dict(path: Path) -> None:
    torch.save([1, 2, 3], path)


@pytest.mark.parametrize("damage", [_cut, _empty, _foreign, _other, _no_dict, Path.unlink])
def test_a_damaged_state_is_named_and_the_one_before_can_be_gone_on_from(
    damage: Callable[[Path], None],
    half: Path,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    shutil.copytree(half, out)
    last = out / "step-0000009"
    damage(last / "state.pt")
    before = load_log(out)
    assert run_trainer(data, out, *OFTEN) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"train: {last}/state.pt is missing or damaged (")
    assert said.count("\n") == 1
    assert f"Remove {last} and rerun the command to resume from the checkpoint before" in said
    assert load_log(out) == before
    shutil.rmtree(last)
    assert run_trainer(data, out, *OFTEN) == 0
    assert run_trainer(data, tmp_path / "whole", *OFTEN) == 0
    assert_same_runs(tmp_path / "whole", out)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"identity": {}}', '{"identity": null}', "\xff"])
def test_a_damaged_run_json_is_named(
    text: str,
    half: Path,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(half, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_bytes(text.encode("latin-1"))
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *OFTEN) == 2
    said = capsys.readouterr().err
    assert f"train: {tmp_path}/run/run.json is damaged (" in said
    assert "give another --output" in said


def test_without_its_run_json_a_folder_is_no_runs(
    half: Path, pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(half, tmp_path / "run")
    (tmp_path / "run" / "run.json").unlink()
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *OFTEN) == 2
    assert (
        "is not empty and has no run.json; give another --output, or an empty folder"
        in capsys.readouterr().err
    )


def test_another_model_is_refused_before_anything_is_touched(
    half: Path, pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(half, tmp_path / "run")
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    for options in (("--hidden-size", 64), ("--seed", 1), ("--steps", 13)):
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *OFTEN, *options) == 2
        name, value = options
        assert f"{name} {before_of(half, name)}, not {value}" in capsys.readouterr().err
    after = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    assert after == before


def before_of(run: Path, option: str) -> object:
    """What a run was begun with."""
    recipe = json.loads((run / "run.json").read_text())["identity"]["recipe"]
    return recipe[option.removeprefix("--").replace("-", "_")]


def test_a_state_of_other_tensors_is_refused(
    half: Path, pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As that of a checkpoint that was copied here from another run."""
    shutil.copytree(half, tmp_path / "run")
    path = tmp_path / "run" / "step-0000009" / "state.pt"
    found = load_state(path.parent)
    name = next(iter(found["model"]))
    found["model"][name] = torch.zeros(2, 2)
    torch.save(found, path)
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *OFTEN) == 2
    said = capsys.readouterr().err
    assert f"train: cannot resume from {path}: " in said
    assert name in said
