"""Checkpoints: atomic writing, removal of old ones, and resuming after failures."""

from __future__ import annotations

import contextlib
import errno
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

from bioshards.corpus.errors import RunError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.train import checkpoint
from bioshards.train.checkpoint import CheckpointError
from tests.support import fork_server
from tests.support.bit_flips import flip_bits
from tests.support.train.trainer_processes import (
    TrainerProcess,
    assert_same_runs,
    call_after_step,
    last_checkpoint,
    list_temporary_dirs,
    send_signal,
    trainer_options,
)
from tests.support.train.trainer_runs import load_log, load_state, run_trainer, use_torch_threads

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

SAVE_OPTIONS = ("--save-every", 3, "--log-every", 1)


# Checkpoint directories


def write_files(text: str, folder: str) -> None:
    """Write files in a directory tree like that of a model."""
    os.makedirs(f"{folder}/hf/generator")
    for name in ("hf/config.json", "hf/generator/model", "state.pt"):
        Path(folder, name).write_text(f"{name} {text}")


def is_whole(folder: Path, text: str) -> bool:
    files = {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}
    return files == {name: f"{name} {text}" for name in ("hf/config.json", "hf/generator/model", "state.pt")}


def save_checkpoints(run: Path, *steps: int, keep: int = 3) -> None:
    for step in steps:
        checkpoint.save(LocalStorage(), str(run), step, partial(write_files, str(step)), keep)


def list_names(run: Path) -> list[str]:
    return sorted(path.name for path in run.iterdir())


@pytest.mark.parametrize("keep", [1, 2, 3, 10])
def test_last_checkpoints_are_kept(keep: int, tmp_path: Path) -> None:
    steps = (5, 10, 100, 9_999_999, 10_000_000, 123_456_789)
    for number, step in enumerate(steps, 1):
        save_checkpoints(tmp_path, step, keep=keep)
        assert len(list_names(tmp_path)) == min(number, keep)
        assert checkpoint.find_latest(str(tmp_path)) == f"{tmp_path}/step-{step:07d}"
        assert is_whole(tmp_path / f"step-{step:07d}", str(step))
    names = [os.path.basename(path) for path in checkpoint.list_checkpoints(str(tmp_path))]
    assert names == [f"step-{step:07d}" for step in steps[-keep:]]


def test_similar_names_are_ignored_and_kept(tmp_path: Path) -> None:
    for name in ("step-000001", "step-0000001.old", "my-step-0000001", "step-000000x", "notes.txt"):
        (tmp_path / name).mkdir()
    assert checkpoint.find_latest(str(tmp_path)) is None
    save_checkpoints(tmp_path, 1, 2, keep=1)
    assert len(list_names(tmp_path)) == 6
    assert checkpoint.find_latest(str(tmp_path)) == f"{tmp_path}/step-0000002"
    assert checkpoint.find_latest(str(tmp_path / "nowhere")) is None


def test_existing_checkpoint_is_not_rewritten(tmp_path: Path) -> None:
    save_checkpoints(tmp_path, 1)

    def fail_if_called(_folder: str) -> None:
        raise AssertionError

    assert checkpoint.save(LocalStorage(), str(tmp_path), 1, fail_if_called, 3) == f"{tmp_path}/step-0000001"


def test_sweep_removes_only_temporary_files(tmp_path: Path) -> None:
    save_checkpoints(tmp_path, 1)
    write_files("half", str(tmp_path / ".tmp-0a"))
    (tmp_path / ".tmp-0b").write_text("half a run.json")
    for name in ("run.json", "log.jsonl", ".lock", "tmp-notes"):
        (tmp_path / name).touch()
    with checkpoint.claim(str(tmp_path)):
        pass
    assert list_names(tmp_path) == [".lock", "log.jsonl", "run.json", "step-0000001", "tmp-notes"]
    assert is_whole(tmp_path / "step-0000001", "1")


def test_process_that_has_lost_the_lock_of_its_run_writes_no_checkpoint(tmp_path: Path) -> None:
    with checkpoint.claim(str(tmp_path)) as storage:
        os.remove(tmp_path / ".lock")
        with pytest.raises(RunError, match=r"nothing more is written.*is gone"):
            checkpoint.save(storage, str(tmp_path), 1, partial(write_files, "1"), 3)
    assert list_names(tmp_path) == []


def checkpoint_folders(run: Path) -> list[Path]:
    return sorted(run.glob("step-*"))


def _save_and_die(run: str, num_operations: int) -> None:
    """Write a third checkpoint and remove the first; kill the process at the n-th file operation."""
    remaining = num_operations

    def kill_after_operations(event: str, args: tuple[Any, ...]) -> None:
        nonlocal remaining
        if event in ("open", "os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.scandir", "os.listdir"):
            remaining -= 1
            if remaining == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(kill_after_operations)
    save_checkpoints(Path(run), 3, keep=2)
    os._exit(0)


def test_killed_process_leaves_whole_checkpoints(tmp_path: Path) -> None:
    """Kill the process at every single open, rename and removal."""
    final_steps, codes = set(), []
    for moment in range(1, 200):
        run = tmp_path / str(moment)
        run.mkdir()
        save_checkpoints(run, 1, 2)
        process = fork_server.FORK_SERVER.Process(target=_save_and_die, args=(str(run), moment))
        process.start()
        process.join()
        codes.append(process.exitcode)
        for folder in run.glob("step-*"):
            assert is_whole(folder, folder.name[-1])
        (run / "run.json").touch()
        with checkpoint.claim(str(run)):
            assert not list_temporary_dirs(run)
        final_steps.add(tuple(path.name[-1] for path in checkpoint_folders(run)))
        save_checkpoints(run, 3, 4, keep=2)
        assert [path.name for path in checkpoint_folders(run)] == ["step-0000003", "step-0000004"]
        if codes[-1] == 0:
            break
    assert codes[-1] == 0
    assert set(codes[:-1]) == {-signal.SIGKILL}
    assert len(codes) > 15
    assert final_steps == {("1", "2"), ("1", "2", "3"), ("2", "3")}


def test_files_are_synced_before_the_rename(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All files and directories are synced before the rename, and the run directory after it."""
    operations: list[str] = []
    fsync, rename = os.fsync, os.rename

    def record_fsync(handle: int) -> None:
        operations.append(os.readlink(f"/proc/self/fd/{handle}"))
        fsync(handle)

    def record_rename(before: str, after: str) -> None:
        operations.append("rename")
        rename(before, after)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "rename", record_rename)
    save_checkpoints(tmp_path, 1)
    rename_index = operations.index("rename")
    synced_paths = {os.path.relpath(path, tmp_path).partition("/")[2] for path in operations[:rename_index]}
    assert synced_paths == {"", "hf", "hf/config.json", "hf/generator", "hf/generator/model", "state.pt"}
    assert operations[rename_index + 1 :] == [str(tmp_path)]


@pytest.mark.parametrize("moment", ["makedirs", "write", "fsync", "rename"])
def test_failed_write_keeps_the_previous_checkpoint(
    moment: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_checkpoints(tmp_path, 1, 2)

    def raise_no_space(*_given: object, **_named: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    if moment == "write":
        monkeypatch.setattr(Path, "write_text", raise_no_space)
    else:
        monkeypatch.setattr(os, moment, raise_no_space)
    with pytest.raises(CheckpointError) as error_info:
        save_checkpoints(tmp_path, 3, keep=1)
    monkeypatch.undo()
    assert "cannot write the checkpoint of step 3" in str(error_info.value)
    assert f"to {tmp_path} (No space left on device)" in str(error_info.value)
    assert f"{tmp_path}/step-0000002 is complete. " in str(error_info.value)
    assert "MB are free there" in str(error_info.value)
    assert list_names(tmp_path) == ["step-0000001", "step-0000002"]
    assert all(is_whole(tmp_path / name, name[-1]) for name in list_names(tmp_path))
    save_checkpoints(tmp_path, 3, keep=1)
    assert list_names(tmp_path) == ["step-0000003"]


# Checkpoints of a run


@pytest.fixture(scope="module")
def stopped_run(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was stopped after 9 of 12 steps, with checkpoints at 3, 6 and 9."""
    out = tmp_path_factory.mktemp("half") / "run"
    with use_torch_threads(1), call_after_step(9, send_signal):
        assert run_trainer(pretraining_sets["bert"], out, *SAVE_OPTIONS) == 130
    return out


@pytest.fixture(scope="module")
def whole_run(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the same options that nothing has interrupted."""
    out = tmp_path_factory.mktemp("whole") / "run"
    with use_torch_threads(1):
        assert run_trainer(pretraining_sets["bert"], out, *SAVE_OPTIONS) == 0
    return out


def write_half_file(error: Exception, _state: object, file: Any) -> None:
    file.write(b"half")
    raise error


def write_half_model(error: Exception, folder: str, **_given: object) -> None:
    os.makedirs(folder, exist_ok=True)
    Path(folder, "model.safetensors").write_bytes(b"half")
    raise error


NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
FAULTS: dict[str, tuple[object, str, Callable[..., None], Exception, str]] = {
    "full, seen by Python": (torch, "save", write_half_file, NO_SPACE, "No space left on device"),
    "full, seen by PyTorch": (
        *(torch, "save", write_half_file),
        RuntimeError("PytorchStreamWriter failed writing file data/7: file write failed\nframe #0: ..."),
        "PytorchStreamWriter failed writing file data/7: file write failed",
    ),
    "full, seen by safetensors": (
        *(PreTrainedModel, "save_pretrained", write_half_model),
        SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)"),
        "Error while serializing: I/O error: No space left on device (os error 28)",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_run_with_a_failed_checkpoint_can_be_resumed(
    fault: str,
    whole_run: Path,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    owner, name, writer, error, reason = FAULTS[fault]

    def patch_writer() -> None:
        monkeypatch.setattr(owner, name, partial(writer, error))

    with call_after_step(8, patch_writer):
        assert run_trainer(data, out, *SAVE_OPTIONS) == 1
    stderr = capsys.readouterr().err
    assert f"train: cannot write the checkpoint of step 9 to {out} ({reason})" in stderr
    assert f"{out}/step-0000006 is complete" in stderr
    assert "MB are free there; fix that and rerun the command to resume" in stderr
    assert "frame" not in stderr
    assert not list_temporary_dirs(out)
    assert [path.name for path in sorted(out.glob("step-*"))] == ["step-0000003", "step-0000006"]
    assert load_state(last_checkpoint(out))["done"] == 6
    monkeypatch.undo()
    assert run_trainer(data, out, *SAVE_OPTIONS) == 0
    assert_same_runs(whole_run, out)


@contextlib.contextmanager
def _limit_file_size(size: int) -> Iterator[None]:
    """Set RLIMIT_FSIZE, so that longer writes fail."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
    yield


@pytest.mark.parametrize("share", ["of the weights", "of the state"])
def test_file_size_limit_stops_the_run(
    share: str, stopped_run: Path, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The operating system enforces the limit. The state is larger than the weights and fails after them."""
    data, out = pretraining_sets["bert"], tmp_path / "run"
    name = "hf/model.safetensors" if share == "of the weights" else "state.pt"
    size = (stopped_run / "step-0000003" / name).stat().st_size * 3 // 4
    child = TrainerProcess(
        trainer_options(data, out, *SAVE_OPTIONS), tmp_path / "told", partial(_limit_file_size, size)
    )
    assert child.wait() == 1
    output = child.read_output()
    assert f"train: cannot write the checkpoint of step 3 to {out} (" in output
    assert ("os error 27" in output) == (share == "of the weights")  # which is how safetensors says it
    assert "os error 27" in output or "File too large" in output or "file write failed" in output
    assert "There is no earlier one" in output
    assert not list(out.glob("step-*"))
    assert not list_temporary_dirs(out)
    assert run_trainer(data, out, *SAVE_OPTIONS) == 0


def test_interrupted_run_on_a_full_disk_reports_the_lost_checkpoint(
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The interrupt is Ctrl-C."""
    monkeypatch.setattr(torch, "save", partial(write_half_file, NO_SPACE))
    with call_after_step(2, send_signal):
        assert run_trainer(pretraining_sets["bert"], tmp_path / "run") == 1
    assert "cannot write the checkpoint of step 2" in capsys.readouterr().err


# Damage


@pytest.mark.parametrize(
    "damage",
    [
        lambda path: os.truncate(path, path.stat().st_size // 2),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"this is no checkpoint at all"),
        lambda path: torch.save({"weights": torch.zeros(3)}, path),
        lambda path: torch.save([1, 2, 3], path),
        Path.unlink,
    ],
)
def test_error_names_damaged_state(
    damage: Callable[[Path], object],
    stopped_run: Path,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    shutil.copytree(stopped_run, out)
    last = out / "step-0000009"
    damage(last / "state.pt")
    before = load_log(out)
    assert run_trainer(data, out, *SAVE_OPTIONS) == 2
    stderr = capsys.readouterr().err
    assert stderr.startswith(f"train: {last}/state.pt is missing or damaged (")
    assert stderr.count("\n") == 1
    assert f"Remove {last} and rerun the command to resume from the checkpoint before" in stderr
    assert load_log(out) == before


def test_run_resumes_from_the_checkpoint_before_one_that_was_removed(
    stopped_run: Path, whole_run: Path, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    out = shutil.copytree(stopped_run, tmp_path / "run")
    shutil.rmtree(out / "step-0000009")
    assert run_trainer(pretraining_sets["bert"], out, *SAVE_OPTIONS) == 0
    assert_same_runs(whole_run, out)


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "{}", '{"identity": {}}', '{"identity": null}', '{"identity": {"recipe": null}}', "\xff"],
)
def test_error_names_damaged_run_json(
    text: str,
    stopped_run: Path,
    pretraining_sets: dict[str, Path],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    shutil.copytree(stopped_run, tmp_path / "run")
    (tmp_path / "run" / "run.json").write_bytes(text.encode("latin-1"))
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *SAVE_OPTIONS) == 2
    stderr = capsys.readouterr().err
    assert f"train: {tmp_path}/run/run.json is damaged (" in stderr
    assert "give another --output" in stderr


def test_flipped_bit_in_initial_weights_is_noticed(
    stopped_run: Path, pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "step-0000009"
    shutil.copytree(stopped_run / folder.name, folder)
    [flipped] = flip_bits(folder / "hf/model.safetensors", 1)
    (folder / "hf/model.safetensors").write_bytes(flipped)
    options = ("--init-checkpoint", folder / "hf")
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *options) == 2
    stderr = capsys.readouterr().err
    assert f"--init-checkpoint: {folder}/hf/model.safetensors is damaged or was edited: its SHA-256" in stderr
    assert f"copy {folder}/hf elsewhere" in stderr
    shutil.copytree(folder / "hf", tmp_path / "elsewhere")
    assert checkpoint.describe_damage(str(tmp_path / "elsewhere")) is None


def test_state_with_other_tensors_is_refused(
    stopped_run: Path, pretraining_sets: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Such a state comes from a checkpoint that was copied from another run."""
    shutil.copytree(stopped_run, tmp_path / "run")
    path = tmp_path / "run" / "step-0000009" / "state.pt"
    state = load_state(path.parent)
    name = next(iter(state["model"]))
    state["model"][name] = torch.zeros(2, 2)
    torch.save(state, path)
    (path.parent / "run.json").unlink()  # as of an earlier version, which wrote no checksum
    assert run_trainer(pretraining_sets["bert"], tmp_path / "run", *SAVE_OPTIONS) == 2
    stderr = capsys.readouterr().err
    assert f"train: cannot resume from {path}: " in stderr
    assert name in stderr
