"""Processes of data-parallel training, one or those that torchrun started; their devices and precision."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import os
import re
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Event
from typing import Any, Final, Literal

import torch
import torch.distributed as distributed
from torch.distributed.distributed_c10d import Store
from torch.distributed.rendezvous import rendezvous

from bioshards.corpus.cpus import count_cpus
from bioshards.corpus.errors import InvalidValueError, RunError, UserError, shorten_list

Precision = Literal["float32", "bfloat16", "float16"]

_START_TIMEOUT: Final = timedelta(hours=6)
"""Time for the start, in which the main process verifies all shards."""
_COLLECTIVE_TIMEOUT: Final = timedelta(minutes=10)
"""Time for a checkpoint, for which the others wait.  A process that hangs ends the run after it; one that was
killed ends it at once, as its connections are closed."""
_ERROR_SECONDS: Final = 60
"""Time in which other processes read why the main one, with which the store may end, has failed."""
_POLL_SECONDS: Final = 0.1
_RESUME_HINT: Final = "Rerun the command in all processes to resume from the last checkpoint"
_DIGEST_LENGTH: Final = 12
_TORCHRUN_VARIABLES: Final = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
_TORCHRUN_ID: Final = "TORCHELASTIC_RUN_ID"
"""Variable that torchrun alone sets.  The shell that started a process by hand may end before it."""
_SIBLINGS_FILE: Final = "/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list"


class LostProcessError(RunError):
    """Another process of the run is lost or has failed."""


class ProcessMismatchError(UserError):
    """The processes of a run cannot begin together; every process raises it, or the error of its own."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Rank and device of this process.

    Attributes:
        rank: index of this process, from 0.
        world_size: number of processes.
        device: device of this process.
        store: store by which the processes meet; None for a single process.
        torchrun: process id of torchrun; None: the processes were started otherwise.
    """

    rank: int
    world_size: int
    device: torch.device
    store: Store | None = None
    torchrun: int | None = None

    @property
    def is_main(self) -> bool:
        """True for the process that writes files and prints."""
        return self.rank == 0

    @property
    def is_orphaned(self) -> bool:
        """True if torchrun was killed: its processes have sessions of their own, and would go on."""
        return self.torchrun is not None and os.getppid() != self.torchrun

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes; integers are exact up to 2**53."""
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)  # on the CPU, so that no GPU is waited for
        distributed.all_reduce(tensor)
        totals: list[float] = tensor.tolist()
        return totals

    def start_together(self, facts: Mapping[str, str], run: str, stop: Event) -> None:
        """Compare facts with the other processes, and begin to communicate.

        Machines without a shared folder have copies of the pretraining set, of the vocabulary and of the run.
        If one copy is another, or lacks the last checkpoint, the processes would train different models, or
        wait for each other for hours.

        Args:
            facts: what all processes must share, by its name.
            run: folder of the run, for the message.
            stop: set to stop waiting.

        Raises:
            ProcessMismatchError: facts differ, or another process has failed.
            KeyboardInterrupt: ``stop`` was set.
            LostProcessError: torchrun was killed.
        """
        if self.store is None:
            return
        keys = [f"bioshards/report/{rank}" for rank in range(self.world_size)]
        own_report = {**facts, "type of device": self.device.type}
        self.store.set(keys[self.rank], json.dumps(own_report))
        self._wait_for(keys, stop)
        reports = [json.loads(value) for value in self.store.multi_get(keys)]
        self.store.set(f"bioshards/read/{self.rank}", "")
        if self.is_main:  # the store may end with this process
            readers = [rank for rank in range(1, self.world_size) if "error" not in reports[rank]]
            self._wait_for([f"bioshards/read/{rank}" for rank in readers], stop)
        for rank, report in enumerate(reports):
            if "error" in report:
                raise ProcessMismatchError(f"process {rank} cannot start: {report['error']}")
        differences = [
            f"{name} {reports[0][name]} in process 0 and {report[name]} in process {rank}"
            for name in own_report
            for rank, report in enumerate(reports)
            if name in report and name in reports[0] and report[name] != reports[0][name]
        ]
        if differences:
            raise ProcessMismatchError(
                f"the processes do not begin with the same: {shorten_list(differences, separator='; ')}. "
                f"Give every machine the same command, pretraining set and vocabulary; "
                f"{run} as a shared folder or a copy; and to each process a GPU, or --device cpu"
            )
        distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if self.device.type == "cuda" else "gloo",
            store=self.store,
            rank=self.rank,
            world_size=self.world_size,
            timeout=_COLLECTIVE_TIMEOUT,
        )
        self.all_reduce([0.0])  # a process that left now would cut off one that still connects

    def report_error(self, error: Exception) -> None:
        """Tell the processes that wait in :meth:`start_together` why this one does not come."""
        if self.store is None or distributed.is_initialized():
            return
        with contextlib.suppress(RuntimeError, LostProcessError):
            report = {"error": str(error) or repr(error)}
            self.store.set(f"bioshards/report/{self.rank}", json.dumps(report))
            self.store.set(f"bioshards/read/{self.rank}", "")  # nobody has to wait for this process
            if self.is_main:
                readers = [f"bioshards/read/{rank}" for rank in range(1, self.world_size)]
                self._wait_for(readers, Event(), _ERROR_SECONDS)

    def _wait_for(self, keys: Sequence[str], stop: Event, seconds: float = math.inf) -> None:
        """Wait for keys in the store.  ``Store.wait`` would not notice a signal or a killed torchrun."""
        assert self.store is not None
        deadline = time.monotonic() + seconds
        while not self.store.check(list(keys)) and time.monotonic() < deadline:
            if stop.is_set():
                raise KeyboardInterrupt
            if self.is_orphaned:
                raise LostProcessError(f"torchrun has ended before all processes came. {_RESUME_HINT}")
            time.sleep(_POLL_SECONDS)


@contextlib.contextmanager
def join(device: str | None) -> Iterator[ProcessGroup]:
    """Meet the processes that torchrun's environment variables describe.

    An error inside the ``with`` block is told to the other processes.  They communicate after
    :meth:`ProcessGroup.start_together`.

    Args:
        device: "cpu", "cuda" or "cuda:1"; None: the GPU of this process's local rank, or the CPU without one.

    Raises:
        InvalidValueError: the device does not exist.
        LostProcessError: communication failed, because another process is lost.
    """
    rank, world_size, local_rank = (
        int(os.environ.get(name, default)) for name, default in _TORCHRUN_VARIABLES
    )
    torch_device = find_device(device, local_rank)
    processes = ProcessGroup(rank, world_size, torch_device)
    try:
        if world_size > 1:
            torchrun = os.getppid() if _TORCHRUN_ID in os.environ else None
            store, _, _ = next(rendezvous("env://", timeout=_START_TIMEOUT))
            processes = ProcessGroup(rank, world_size, torch_device, store, torchrun)
        yield processes
    except Exception as error:
        processes.report_error(error)
        frames = traceback.walk_tb(error.__traceback__)
        if isinstance(error, distributed.DistError) or any(
            frame.f_globals.get("__name__", "").startswith("torch.distributed") for frame, _ in frames
        ):
            raise LostProcessError(
                f"another process of the run is lost or has failed ({str(error).splitlines()[0]}). "
                f"{_RESUME_HINT}"
            ) from error
        raise
    if distributed.is_initialized():  # only after success: after an error it would wait for the others
        distributed.destroy_process_group()


def find_device(device: str | None, local_rank: int = 0) -> torch.device:
    """Return the device of a name; without one a GPU, or the CPU if there is none.

    Args:
        device: ``cpu``, ``cuda``, which is the GPU with the number ``local_rank``, or ``cuda:1``.

    Raises:
        InvalidValueError: the device does not exist.
    """
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        device = f"cuda:{local_rank}"
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", device):
        raise InvalidValueError(f"--device {device} is not supported; give cpu, cuda or cuda:1")
    try:
        torch_device = torch.device(device)
        torch.zeros(1, device=torch_device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidValueError(
            f"--device {device} is not available: {str(error).splitlines()[0]}"
        ) from error
    if torch_device.type == "cuda":
        torch.cuda.set_device(torch_device)
    return torch_device


def digest_json(value: Any) -> str:
    """Return a digest of a JSON value, for :meth:`ProcessGroup.start_together`."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:_DIGEST_LENGTH]


def digest_weights(state: Mapping[str, torch.Tensor]) -> str:
    """Return a digest of the names and values of tensors."""
    digest = hashlib.sha256()
    for name in sorted(state):
        digest.update(name.encode())
        digest.update(state[name].detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()[:_DIGEST_LENGTH]


def set_threads(requested: int | None) -> str:
    """Set the threads of this process, and return how many there are and why, for the log.

    They are the requested ones, or OMP_NUM_THREADS, which torchrun sets, or the process's share of the
    physical cores that it may use.  A second thread on the same core, or more threads than a container has
    cores, make a step several times slower.
    """
    if requested is not None:
        threads, reason = requested, "--threads"
    elif "OMP_NUM_THREADS" in os.environ:
        threads, reason = torch.get_num_threads(), "OMP_NUM_THREADS"
    else:
        threads = max(1, count_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", "1")))
        reason = "its physical cores; --threads sets another number"
    torch.set_num_threads(threads)
    return f"{threads} thread{'s' * (threads > 1)} ({reason})"


def count_cores() -> int:
    """Return the number of physical cores that this process may use, by its affinity and its container."""
    cores = set()
    for cpu in os.sched_getaffinity(0):
        try:
            with open(_SIBLINGS_FILE.format(cpu)) as file:
                cores.add(file.read())
        except OSError:
            cores.add(str(cpu))
    return min(len(cores), count_cpus())


def choose_precision(device: torch.device) -> Precision:
    """Return the fastest precision of a device: bfloat16 if a GPU has it, float16 on older ones."""
    if device.type == "cpu":
        return "float32"
    return "bfloat16" if has_bfloat16(device) else "float16"


def check_precision(precision: str, device: torch.device, reason: str) -> None:
    """Check that a device has a precision.

    Args:
        reason: what asks for the precision, for the message.

    Raises:
        InvalidValueError: the device is a GPU that emulates bfloat16 only.
    """
    if precision == "bfloat16" and not has_bfloat16(device):
        raise InvalidValueError(
            f"{reason} bfloat16, which the GPU {torch.cuda.get_device_name(device)} lacks. Use a GPU of "
            "compute capability 8.0 or later, or start a run with --precision float16 and another --output"
        )


def has_bfloat16(device: torch.device) -> bool:
    """Return True for a CPU, and for a GPU that computes in bfloat16 without emulation."""
    return device.type == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False)


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Return a context in which matrix products have a precision; weights stay in float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))
