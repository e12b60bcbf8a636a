"""Distributed training: several processes train like one, and end together."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import torch
from torch.distributed import HashStore  # type: ignore[attr-defined,unused-ignore]

from bioshards.train import distributed
from bioshards.train.distributed import LostProcessError, ProcessGroup, ProcessMismatchError
from tests.support.train.trainer_processes import (
    ContextFactory,
    TrainerProcess,
    assert_same_runs,
    call_after_step,
    last_checkpoint,
    list_temporary_dirs,
    send_signal,
    trainer_options,
)
from tests.support.train.trainer_runs import (
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
)

pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("single_thread")]

FAMILIES = ("electra", "bert", "albert")
OPTIONS = ("--log-every", 1, "--validate-every", 6)
NO_DROPOUT = ("--dropout", 0.0, "--attention-dropout", 0.0)


def make_environments(world_size: int) -> list[dict[str, str]]:
    """Return the environment variables that torchrun sets for each process."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    shared_env = {"WORLD_SIZE": str(world_size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    process_envs = ({"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world_size))
    return [{**shared_env, **process_env, "OMP_NUM_THREADS": "1"} for process_env in process_envs]


@contextlib.contextmanager
def lose_hanging_processes(seconds: float) -> Iterator[None]:
    """Set the time for which the processes wait for one that hangs."""
    distributed._COLLECTIVE_TIMEOUT = timedelta(seconds=seconds)  # type: ignore[misc]
    yield


def start_processes(
    data: Path,
    out: Path,
    *options: object,
    world_size: int = 2,
    contexts: Mapping[int, ContextFactory] | None = None,
) -> list[TrainerProcess]:
    """Start the processes of one run; ``contexts`` maps a rank to the context that it runs in."""
    return [
        TrainerProcess(
            trainer_options(data, out, *OPTIONS, *options),
            out.parent / f"{out.name} told by {rank}",
            (contexts or {}).get(rank, contextlib.nullcontext),
            env,
        )
        for rank, env in enumerate(make_environments(world_size))
    ]


def wait_for_exit_codes(children: Sequence[TrainerProcess]) -> list[int]:
    exit_codes = [child.wait() for child in children]
    print(*(child.read_output() for child in children))
    return exit_codes


def assert_close(one: Any, other: Any, tolerance: float, where: str = "") -> None:
    """Check that two values, or all values of two dicts, are equal except for rounding."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_close(one[name], other[name], tolerance, f"{where}/{name}")
    elif isinstance(one, torch.Tensor):
        torch.testing.assert_close(
            one, other, rtol=tolerance, atol=tolerance, msg=lambda message: f"{where} {message}"
        )
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=tolerance, abs=1e-7), where
    else:
        assert one == other, where


def assert_runs_close(one: Path, other: Path, tolerance: float) -> None:
    """Check that two runs have equal logs and weights except for rounding."""
    first, second = load_reproducible_log(one), load_reproducible_log(other)
    assert len(first) == len(second)
    for line, other_line in zip(first, second, strict=True):
        assert_close(line, other_line, tolerance, f"step {line['step']} {line['split']}")
    weights, others = (load_state(last_checkpoint(run))["model"] for run in (one, other))
    assert_close(weights, others, 20 * tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_two_processes_train_like_one_process(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Compare losses, metrics, gradient norms and validation at each step."""
    data = pretraining_sets[family]
    assert wait_for_exit_codes(start_processes(data, tmp_path / "two", *NO_DROPOUT)) == [0, 0]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *NO_DROPOUT) == 0
    assert_runs_close(tmp_path / "one", tmp_path / "two", 1e-5)
    assert not list_temporary_dirs(tmp_path / "two")


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_two_processes_with_dropout_train_like_one_with_the_same_micro_batches(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Two micro-batches of four rows, in one process or in two; the seed of dropout is the micro-batch's."""
    data, options = pretraining_sets[family], ("--micro-batch-size", 4)
    assert wait_for_exit_codes(start_processes(data, tmp_path / "two", *options)) == [0, 0]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *options) == 0
    assert_runs_close(tmp_path / "one", tmp_path / "two", 1e-5)
    assert run_trainer(data, tmp_path / "larger", *OPTIONS) == 0
    one, larger = (load_log(tmp_path / name)[0]["grad_norm"] for name in ("one", "larger"))
    assert one != pytest.approx(larger, rel=1e-4)


def test_three_processes_with_other_options_train_like_one(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data = pretraining_sets["electra"]
    batches = ("--batch-size", 12, "--micro-batch-size", 2, "--steps", 6)
    options = (*batches, "--adversarial-weight", 1.0, "--final-mask-rate", 0.25, "--optimizer", "lamb")
    assert wait_for_exit_codes(start_processes(data, tmp_path / "three", *options, world_size=3)) == [0, 0, 0]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *options) == 0
    assert_runs_close(tmp_path / "one", tmp_path / "three", 1e-4)


@pytest.mark.parametrize("rank", [0, 1])
def test_signal_to_one_process_stops_both_and_one_process_resumes(
    rank: int, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """The checkpoint is of the step at which the signal came."""
    data, out = pretraining_sets["electra"], tmp_path / "stopped"
    options = ("--micro-batch-size", 4)
    number = (signal.SIGINT, signal.SIGTERM)[rank]
    told_to_stop = partial(call_after_step, 4, partial(send_signal, number))
    children = start_processes(data, out, *options, contexts={rank: told_to_stop})
    assert wait_for_exit_codes(children) == [130, 130]
    assert [path.name for path in out.glob("step-*")] == ["step-0000004"]
    assert [entry["step"] for entry in load_log(out)] == [1, 2, 3, 4]
    assert not list_temporary_dirs(out)
    assert run_trainer(data, out, *OPTIONS, *options) == 0
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *options) == 0
    assert_runs_close(tmp_path / "one", out, 1e-5)


def test_two_processes_resume_bit_by_bit(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    """A log line averages steps before and after the stop."""
    data, options = pretraining_sets["bert"], ("--log-every", 5)
    assert wait_for_exit_codes(start_processes(data, tmp_path / "whole", *options)) == [0, 0]
    stop = {1: partial(call_after_step, 7, send_signal)}
    children = start_processes(data, tmp_path / "halves", *options, contexts=stop)
    assert wait_for_exit_codes(children) == [130, 130]
    assert wait_for_exit_codes(start_processes(data, tmp_path / "halves", *options)) == [0, 0]
    assert_same_runs(tmp_path / "whole", tmp_path / "halves")


@pytest.mark.parametrize("rank", [0, 1])
def test_killed_process_ends_the_other_at_once(
    rank: int, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    kill = {rank: partial(call_after_step, 8, partial(send_signal, signal.SIGKILL))}
    children = start_processes(data, out, *NO_DROPOUT, contexts=kill)
    exit_codes = wait_for_exit_codes(children)
    assert exit_codes[rank] == -signal.SIGKILL
    assert exit_codes[1 - rank] == 1
    message = children[1 - rank].read_output()
    assert "another process of the run is lost or has failed (" in message
    assert "Rerun the command in all processes to resume from the last checkpoint" in message
    assert last_checkpoint(out).name == "step-0000006"
    assert run_trainer(data, out, *OPTIONS, *NO_DROPOUT) == 0
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *NO_DROPOUT) == 0
    assert_runs_close(tmp_path / "one", out, 1e-5)


def test_process_that_hangs_ends_the_others(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    """As on a machine that is switched off, connections stay open and collective operations wait."""
    stop = partial(call_after_step, 3, partial(send_signal, signal.SIGSTOP))
    contexts = {0: stop, **dict.fromkeys((1, 2), partial(lose_hanging_processes, 5))}
    options = ("--batch-size", 12)
    main, *others = start_processes(
        pretraining_sets["bert"], tmp_path / "run", *options, world_size=3, contexts=contexts
    )
    assert wait_for_exit_codes(others) == [1, 1]
    main.process.kill()
    for child in others:
        assert "another process of the run is lost or has failed (" in child.read_output()


@pytest.mark.parametrize("failure", ["another run", "a full disk"])
def test_failure_of_the_main_process_ends_the_other(
    failure: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    if failure == "another run":
        with call_after_step(2, send_signal):
            assert run_trainer(data, out, "--seed", 3) == 130
        children = start_processes(data, out)
        assert [child.wait() for child in children] == [2, 2]
        assert "was started with --seed 3, not 0" in children[0].read_output()
        assert "process 0 cannot start: " in children[1].read_output()
        assert "was started with --seed 3, not 0" in children[1].read_output()
    else:
        children = start_processes(data, out, contexts={0: patch_full_disk})
        assert [child.wait() for child in children] == [1, 1]
        assert "cannot write the checkpoint of step 6" in children[0].read_output()
        assert not list(out.glob("step-*"))
        assert not list_temporary_dirs(out)


def patch_full_disk() -> Any:
    """Make ``torch.save`` raise as on a full disk."""

    def raise_no_space(*_given: object) -> None:
        raise OSError(28, os.strerror(28))

    patch = pytest.MonkeyPatch()
    patch.setattr(torch, "save", raise_no_space)
    return patch.context()


def test_finished_run_ends_all_processes(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    assert run_trainer(data, out, *OPTIONS) == 0
    connected = tmp_path / "connected"
    children = start_processes(data, out, contexts={0: partial(patch_slow_connection, connected)})
    assert children[1].wait() == 0
    assert connected.exists()  # nobody leaves while another connects
    assert children[0].wait() == 0
    assert "is finished" in children[0].read_output()


def patch_slow_connection(connected: Path) -> Any:
    """Make ``init_process_group`` take seconds longer, and create a file at its end."""
    connect = torch.distributed.init_process_group

    def connect_slowly(*given: Any, **options: Any) -> None:
        connect(*given, **options)
        time.sleep(5)
        connected.touch()

    patch = pytest.MonkeyPatch()
    patch.setattr(torch.distributed, "init_process_group", connect_slowly)
    return patch.context()


# Machines without a shared folder


def start_machines(*commands: Sequence[object]) -> list[TrainerProcess]:
    """Start a run of several machines; each has its pretraining set, its folder of runs and its options."""
    return [
        TrainerProcess(
            trainer_options(Path(str(data)), Path(str(out)), *OPTIONS, *options),
            Path(f"{out} says"),
            contextlib.nullcontext,
            env,
        )
        for (data, out, *options), env in zip(commands, make_environments(len(commands)), strict=True)
    ]


def test_machines_without_a_shared_folder_train_and_resume_from_copies(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, copy = pretraining_sets["bert"], tmp_path / "copy"
    shutil.copytree(data, copy)
    first, second = tmp_path / "first", tmp_path / "second"
    with call_after_step(4, send_signal):
        assert run_trainer(data, first, *OPTIONS, *NO_DROPOUT) == 130
    commands = [(data, first, *NO_DROPOUT), (copy, second, *NO_DROPOUT)]
    children = start_machines(*commands)
    assert wait_for_exit_codes(children) == [2, 2]
    for child in children:
        message = child.read_output()
        assert "step 4 in process 0 and 0 in process 1" in message
        assert "as a shared folder or a copy" in message
    assert not second.exists()
    shutil.copytree(first, second)
    assert wait_for_exit_codes(start_machines(*commands)) == [0, 0]
    assert [path.name for path in second.glob("step-*")] == ["step-0000004"]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *NO_DROPOUT) == 0
    assert_runs_close(tmp_path / "one", first, 1e-5)


def test_machines_with_other_inputs_do_not_start(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data, outs = pretraining_sets["bert"], (tmp_path / "first", tmp_path / "second")
    weights = tmp_path / "weights"
    assert run_trainer(data, tmp_path / "run", "--steps", 1, "--warmup", 0) == 0
    shutil.copytree(last_checkpoint(tmp_path / "run") / "hf", weights)
    other_weights = tmp_path / "elsewhere" / "weights"
    assert run_trainer(data, tmp_path / "other", "--steps", 1, "--warmup", 0, "--seed", 5) == 0
    shutil.copytree(last_checkpoint(tmp_path / "other") / "hf", other_weights)
    others = ("--family", "bert", "--init-checkpoint", other_weights, "--save-every", 5)
    children = start_machines(
        (data, outs[0], "--init-checkpoint", weights), (pretraining_sets["electra"], outs[1], *others)
    )
    assert wait_for_exit_codes(children) == [2, 2]
    for child in children:
        assert "the processes do not begin with the same: " in child.read_output()
        for difference in ("recipe ", "pretraining set ", "weights "):
            assert difference in child.read_output()
    assert not [path for path in outs[0].iterdir() if path.name != ".lock"]


def test_error_of_one_machine_is_that_of_all(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data = pretraining_sets["bert"]
    children = start_machines((data, tmp_path / "first"), (tmp_path / "nowhere", tmp_path / "second"))
    assert wait_for_exit_codes(children) == [2, 2]
    assert "nowhere" in children[1].read_output()
    assert "process 1 cannot start: " in children[0].read_output()
    assert "nowhere" in children[0].read_output()


# Process groups


@pytest.mark.parametrize(
    ("other", "own", "message"),
    [
        (
            {"step": "0", "type of device": "cuda"},
            {"step": "0"},
            "device cpu in process 0 and cuda in process 1",
        ),
        (
            {"step": "finished"},
            {"recipe": "0a", "step": "6"},
            "step 6 in process 0 and finished in process 1",
        ),
    ],
)
def test_processes_that_begin_differently_are_refused(
    other: dict[str, str], own: dict[str, str], message: str
) -> None:
    """One machine of a run may have lost its GPU, or have finished the run."""
    store = HashStore()
    store.set("bioshards/report/1", json.dumps({"type of device": "cpu", **other}))
    store.set("bioshards/read/1", "")
    group = ProcessGroup(0, 2, torch.device("cpu"), store, os.getppid())
    with pytest.raises(ProcessMismatchError, match=message):
        group.start_together(own, "run", Event())


def test_process_that_waits_for_others_notices_a_signal_and_a_killed_torchrun() -> None:
    stop = Event()
    stop.set()
    store, device = HashStore(), torch.device("cpu")
    with pytest.raises(KeyboardInterrupt):
        ProcessGroup(0, 2, device, store, os.getppid()).start_together({}, "run", stop)
    by_hand = ProcessGroup(0, 2, device, store)  # its shell may end
    assert not by_hand.is_orphaned
    with pytest.raises(LostProcessError, match="torchrun has ended before all processes came"):
        ProcessGroup(0, 2, device, store, os.getppid() + 1).start_together({}, "run", Event())


@pytest.mark.parametrize(
    ("siblings", "quota", "cores"),
    [
        (["0,2", "1,3", "0,2", "1,3"], 8, 2),
        (["0", "1", "2", "3"], 8, 4),
        (["0", "1", "2", "3"], 1, 1),
        ([None, None, None, None], 8, 4),
    ],
)
def test_threads_are_the_physical_cores_that_a_process_may_use(
    siblings: list[str | None],
    quota: int,
    cores: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for cpu, text in enumerate(siblings):
        if text is not None:
            (tmp_path / str(cpu)).write_text(text)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    monkeypatch.setattr(distributed, "_SIBLINGS_FILE", f"{tmp_path}/{{}}")
    monkeypatch.setattr(distributed, "count_cpus", lambda: quota)
    assert distributed.count_cores() == cores
    monkeypatch.setattr(torch, "set_num_threads", lambda _: None)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "2")
    share = max(1, cores // 2)
    assert distributed.set_threads(None).startswith(f"{share} thread")
    assert distributed.set_threads(3) == "3 threads (--threads)"
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    assert distributed.set_threads(None).endswith("(OMP_NUM_THREADS)")


def test_no_process_waits_for_one_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """The main process waits until the others have read its error, but not for the one that failed."""
    monkeypatch.setattr(distributed, "_ERROR_SECONDS", math.inf)
    store, device = HashStore(), torch.device("cpu")
    main, other = (ProcessGroup(rank, 2, device, store) for rank in range(2))
    other.report_error(ValueError("no shards"))
    with pytest.raises(ProcessMismatchError, match="process 1 cannot start: no shards") as error:
        main.start_together({"recipe": "1"}, "run", Event())
    main.report_error(error.value)


def test_all_reduce_sums_integers_exactly(tmp_path: Path) -> None:
    """Integers up to 2**53, such as token counts, are exact."""
    children = [
        TrainerProcess([], tmp_path / f"told by {rank}", env=env, command=print_sums)
        for rank, env in enumerate(make_environments(2))
    ]
    assert wait_for_exit_codes(children) == [0, 0]
    for child in children:
        assert child.read_output().splitlines()[-1] == str([2.0**53 - 1, 0.75, 3.0])


def print_sums(_argv: list[str]) -> int:
    with distributed.join("cpu") as group:
        group.start_together({}, "run", Event())
        print(group.all_reduce([2.0**52, 0.5, 1.0] if group.is_main else [2.0**52 - 1, 0.25, 2.0]))
    return 0
