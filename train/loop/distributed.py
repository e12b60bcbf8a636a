"""Process group of data-parallel training: one process, or those that torchrun started."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import torch
import torch.distributed as distributed
from torch.distributed.rendezvous import rendezvous

from bioshards.corpus.errors import InvalidValueError
from bioshards.train.loop.process_monitor import ProcessMonitor

_START_TIMEOUT: Final = timedelta(hours=6)
"""Time for the start, in which the main process verifies all shards."""
_COLLECTIVE_TIMEOUT: Final = timedelta(minutes=30)
"""Time for a checkpoint, for which the others wait.  ProcessMonitor ends the run before if one is lost."""
_TORCHRUN_VARIABLES: Final = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Rank and device of this process.

    Attributes:
        rank: index of this process, from 0.
        world_size: number of processes.
        device: device of this process.
        monitor: None for a single process.
    """

    rank: int
    world_size: int
    device: torch.device
    monitor: ProcessMonitor | None = None

    @property
    def is_main(self) -> bool:
        """True for the process that writes files and prints."""
        return self.rank == 0

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes; integers are exact up to 2**53."""
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64)  # on the CPU, so that no GPU is waited for
        distributed.all_reduce(tensor)
        totals: list[float] = tensor.tolist()
        return totals

    def gather_start(self, value: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the values of all processes, by rank.  It waits for hours, and can be called once."""
        assert self.monitor
        return [json.loads(other) for other in self.monitor.gather("start", json.dumps(dict(value)))]

    def measure_memory(self) -> dict[str, int]:
        """Return the peak of allocated GPU memory of this process, as a field of the log; empty on a CPU."""
        if self.device.type != "cuda":
            return {}
        return {"device_memory_bytes": torch.cuda.max_memory_allocated(self.device)}

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            self.all_reduce([0.0])

    @contextlib.contextmanager
    def report_errors(self) -> Iterator[None]:
        """Tell the other processes of an error inside a ``with`` block.

        Raises:
            LostProcessError: communication failed, because another process is lost.
        """
        try:
            yield
        except Exception as error:
            if self.monitor is None:
                raise
            cause = self.monitor.explain(error)
            self.monitor.stop(str(cause) or repr(cause))
            if cause is error:
                raise
            raise cause from error
        except KeyboardInterrupt:
            if self.monitor:
                self.monitor.stop("it was stopped")
            raise

    def close(self) -> None:
        """Leave the process group."""
        if self.monitor:
            self.monitor.stop("")
            distributed.destroy_process_group()


def initialize(device: str | None) -> ProcessGroup:
    """Join the process group that torchrun's environment variables describe.

    Args:
        device: "cpu", "cuda" or "cuda:1"; None: the GPU of this process's local rank, or the CPU without one.

    Raises:
        InvalidValueError: the device does not exist, or processes have devices of different types.
    """
    rank, world_size, local_rank = (
        int(os.environ.get(name, default)) for name, default in _TORCHRUN_VARIABLES
    )
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
    if world_size == 1:
        return ProcessGroup(rank, world_size, torch_device)
    store, _, _ = next(rendezvous("env://", timeout=_START_TIMEOUT))
    processes = ProcessGroup(rank, world_size, torch_device, ProcessMonitor(store, rank, world_size))
    with processes.report_errors():
        check_device_types(processes)
        backend = "cpu:gloo,cuda:nccl" if torch_device.type == "cuda" else "gloo"
        distributed.init_process_group(
            backend, store=store, rank=rank, world_size=world_size, timeout=_COLLECTIVE_TIMEOUT
        )
    return processes


def check_device_types(processes: ProcessGroup) -> None:
    """Check that all processes have a GPU, or none: they communicate by different libraries.

    Raises:
        InvalidValueError: their devices are of different types.
    """
    assert processes.monitor
    types = processes.monitor.gather("device", processes.device.type)
    if len(set(types)) > 1:
        devices = ", ".join(f"process {rank}: {device_type}" for rank, device_type in enumerate(types))
        raise InvalidValueError(
            f"the processes have devices of different types ({devices}): give --device cpu, or a GPU to each"
        )
