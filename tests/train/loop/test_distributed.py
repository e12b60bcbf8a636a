"""Several processes that train one model: what one alone would learn, and they end together."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from bioshards.train.loop import distributed
from bioshards.train.loop.distributed import ProcessGroup
from tests.support import fork_server
from tests.support.train.trainer_processes import (
    ContextFactory,
    TrainerProcess,
    call_after_step,
    last_checkpoint,
    list_temporary_dirs,
    load_run_manifest,
    read_model_files,
    send_signal,
    trainer_options,
)
from tests.support.train.trainer_runs import (
    is_same_state,
    load_log,
    load_reproducible_log,
    load_state,
    run_trainer,
    use_torch_threads,
)

FAMILIES = ("electra", "bert", "albert")
OPTIONS = ("--log-every", 1, "--validate-every", 6)
NO_DROPOUT = ("--dropout", 0.0, "--attention-dropout", 0.0)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


def environments(world: int) -> list[dict[str, str]]:
    """What torchrun tells each of so many processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    shared = {"WORLD_SIZE": str(world), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    own = ({"RANK": str(rank), "LOCAL_RANK": str(rank)} for rank in range(world))
    return [{**shared, **each, "OMP_NUM_THREADS": "1"} for each in own]


def together(
    data: Path,
    out: Path,
    *options: object,
    world: int = 2,
    within: Mapping[int, ContextFactory] | None = None,
) -> list[TrainerProcess]:
    """Start so many processes on one run; ``within`` by rank."""
    return [
        TrainerProcess(
            trainer_options(data, out, *OPTIONS, *options),
            out.parent / f"{out.name} told by {rank}",
            (within or {}).get(rank, contextlib.nullcontext),
            env,
        )
        for rank, env in enumerate(environments(world))
    ]


def codes(children: Sequence[TrainerProcess]) -> list[int]:
    found = [child.wait() for child in children]
    print(*(child.read_output() for child in children))
    return found


def assert_close(one: Any, other: Any, tolerance: float, where: str = "") -> None:
    """Are two values, or all of two records, the same to rounding?"""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        for name in one:
            assert_close(one[name], other[name], tolerance, f"{where}/{name}")
    elif isinstance(one, torch.Tensor):
        torch.testing.assert_close(
            one, other, rtol=tolerance, atol=tolerance, msg=lambda said: f"{where} {said}"
        )
    elif isinstance(one, float):
        assert one == pytest.approx(other, rel=tolerance, abs=1e-7), where
    else:
        assert one == other, where


def assert_same_but_for_rounding(one: Path, other: Path, tolerance: float) -> None:
    """Two runs logged the same losses, figures and lengths of gradients, and have the same weights."""
    first, second = load_reproducible_log(one), load_reproducible_log(other)
    assert len(first) == len(second)
    for line, other_line in zip(first, second, strict=True):
        assert_close(line, other_line, tolerance, f"step {line['step']} {line['split']}")
    weights, others = (load_state(last_checkpoint(run))["model"] for run in (one, other))
    assert_close(weights, others, 20 * tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_two_processes_learn_what_one_does_with_the_whole_batch(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Losses, figures, the gradient's length and validation, step by step, to rounding."""
    data = pretraining_sets[family]
    assert codes(together(data, tmp_path / "two", *NO_DROPOUT)) == [0, 0]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *NO_DROPOUT) == 0
    assert_same_but_for_rounding(tmp_path / "one", tmp_path / "two", 1e-5)
    assert not list_temporary_dirs(tmp_path / "two")


@pytest.mark.parametrize("family", ["electra", "bert"])
def test_with_dropout_too_where_the_micro_batches_are_the_same(
    family: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Two of four rows each, in one process or in two: dropout's seed is the micro-batch's."""
    data, options = pretraining_sets[family], ("--micro-batch-size", 4)
    assert codes(together(data, tmp_path / "two", *options)) == [0, 0]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *options) == 0
    assert_same_but_for_rounding(tmp_path / "one", tmp_path / "two", 1e-5)
    assert run_trainer(data, tmp_path / "larger", *OPTIONS) == 0
    one, larger = (load_log(tmp_path / name)[0]["grad_norm"] for name in ("one", "larger"))
    assert one != pytest.approx(larger, rel=1e-4)


def test_three_processes_with_everything_else_too(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data = pretraining_sets["electra"]
    options = (
        *("--batch-size", 12, "--micro-batch-size", 2, "--steps", 6),
        *("--adversarial-weight", 1.0, "--final-mask-rate", 0.25, "--optimizer", "lamb"),
    )
    assert codes(together(data, tmp_path / "three", *options, world=3)) == [0, 0, 0]
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *options) == 0
    assert_same_but_for_rounding(tmp_path / "one", tmp_path / "three", 1e-4)


@pytest.mark.parametrize("rank", [0, 1])
def test_a_signal_to_one_of_two_stops_both_and_one_process_can_go_on(
    rank: int, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """With the checkpoint that the two have left, which is that of the step at which one was told."""
    data, out = pretraining_sets["electra"], tmp_path / "stopped"
    options = ("--micro-batch-size", 4)
    number = (signal.SIGINT, signal.SIGTERM)[rank]
    told_to_stop = partial(call_after_step, 4, partial(send_signal, number))
    children = together(data, out, *options, within={rank: told_to_stop})
    assert codes(children) == [130, 130]
    assert [path.name for path in out.glob("step-*")] == ["step-0000004"]
    assert [entry["step"] for entry in load_log(out)] == [1, 2, 3, 4]
    assert not list_temporary_dirs(out)
    assert run_trainer(data, out, *OPTIONS, *options) == 0
    assert run_trainer(data, tmp_path / "one", *OPTIONS, *options) == 0
    assert_same_but_for_rounding(tmp_path / "one", out, 1e-5)


def test_two_processes_that_were_stopped_go_on_to_the_bit(
    pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    """Also where a line of the log is of steps before and after."""
    data, options = pretraining_sets["bert"], ("--log-every", 5)
    assert codes(together(data, tmp_path / "whole", *options)) == [0, 0]
    stop = {1: partial(call_after_step, 7, send_signal)}
    assert codes(together(data, tmp_path / "halves", *options, within=stop)) == [130, 130]
    assert codes(together(data, tmp_path / "halves", *options)) == [0, 0]
    assert load_reproducible_log(tmp_path / "whole") == load_reproducible_log(tmp_path / "halves")
    one, other = (last_checkpoint(tmp_path / run) for run in ("whole", "halves"))
    assert is_same_state(load_state(one), load_state(other))
    assert read_model_files(one) == read_model_files(other)
    assert load_run_manifest(tmp_path / "whole") == load_run_manifest(tmp_path / "halves")


@pytest.mark.parametrize("rank", [0, 1])
def test_when_one_dies_the_other_ends_too(
    rank: int, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    dying = partial(call_after_step, 8, partial(send_signal, signal.SIGKILL))
    found = codes(together(data, out, within={rank: dying}))
    assert found[rank] == -signal.SIGKILL
    assert found[1 - rank] == 1
    assert last_checkpoint(out).name == "step-0000006"
    assert run_trainer(data, out, *OPTIONS) == 0


@pytest.mark.parametrize("what", ["another run", "a full disk"])
def test_when_the_first_cannot_go_on_the_other_ends_too(
    what: str, pretraining_sets: dict[str, Path], tmp_path: Path
) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    if what == "another run":
        with call_after_step(2, send_signal):
            assert run_trainer(data, out, "--seed", 3) == 130
        children = together(data, out)
        assert [child.wait() for child in children] == [2, 1]
        assert "was started with --seed 3, not 0" in children[0].read_output()
    else:
        children = together(data, out, within={0: broken_disk})
        assert [child.wait() for child in children] == [1, 1]
        assert "cannot write the checkpoint of step 6" in children[0].read_output()
        assert not list(out.glob("step-*"))
        assert not list_temporary_dirs(out)


def broken_disk() -> Any:
    """No state can be written."""

    def full(*_given: object) -> None:
        raise OSError(28, os.strerror(28))

    patch = pytest.MonkeyPatch()
    patch.setattr(torch, "save", full)
    return patch.context()


def test_a_finished_run_is_finished_for_all(pretraining_sets: dict[str, Path], tmp_path: Path) -> None:
    data, out = pretraining_sets["bert"], tmp_path / "run"
    assert run_trainer(data, out, *OPTIONS) == 0
    children = together(data, out)
    assert codes(children) == [0, 0]
    assert "is finished" in children[0].read_output()


# Finding one's place


@pytest.fixture
def no_torchrun(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)


def test_a_process_alone_is_the_first_and_only_one(no_torchrun: None) -> None:
    us = distributed.initialize("cpu")
    assert us == ProcessGroup(0, 1, torch.device("cpu"))
    assert us.is_main
    assert us.all_reduce([1.5, 2.0]) == [1.5, 2.0]
    us.barrier()
    us.close()


@pytest.mark.parametrize("device", ["cuda:99", "tpu", "", "cpu:x"])
def test_a_device_that_is_not_there_is_named(device: str, no_torchrun: None) -> None:
    with pytest.raises(ValueError, match=f"--device {device} (is not available: .|is not supported)"):
        distributed.initialize(device)


def test_sums_are_of_all_and_integers_exact(tmp_path: Path) -> None:
    """Up to 2**53: a run's tokens."""
    children = [_Summing(env) for env in environments(2)]
    assert [child.found() for child in children] == [[2.0**53 - 1, 0.75, 3.0]] * 2


class _Summing:
    def __init__(self, env: dict[str, str]) -> None:
        self._ours, theirs = fork_server.FORK_SERVER.Pipe()
        self._process = fork_server.FORK_SERVER.Process(target=_sum, args=(env, theirs))
        self._process.start()

    def found(self) -> Any:
        assert self._ours.poll(60)
        found = self._ours.recv()
        self._process.join(60)
        assert self._process.exitcode == 0
        return found


def _sum(env: dict[str, str], pipe: Any) -> None:
    os.environ.update(env)
    us = distributed.initialize("cpu")
    pipe.send(us.all_reduce([2.0**52, 0.5, 1.0] if us.is_main else [2.0**52 - 1, 0.25, 2.0]))
    us.close()
