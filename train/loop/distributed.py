"""Process group of data-parallel training: one process, or those that torchrun started."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as distributed

from bioshards.corpus.errors import InvalidValueError

_PROCESS_GROUP_TIMEOUT: Final = timedelta(hours=6)
"""Longer than NCCL's default of 10 minutes, because the main process verifies all shards first.  If one
process fails, torchrun ends the others."""
_TORCHRUN_VARIABLES: Final = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """Rank and device of this process.

    Attributes:
        rank: index of this process, from 0.
        world_size: number of processes.
        device: device of this process.
    """

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """True for the process that writes files and prints."""
        return self.rank == 0

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        """Return the sum of each value over all processes; integers are exact up to 2**53."""
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor)
        totals: list[float] = tensor.tolist()
        return totals

    def all_gather(self, value: Mapping[str, str]) -> list[dict[str, str]]:
        """Return the values of all processes, by rank."""
        values: list[Any] = [None] * self.world_size
        distributed.all_gather_object(values, dict(value))
        return values

    def barrier(self) -> None:
        """Wait for all processes."""
        if self.world_size > 1:
            self.all_reduce([0.0])

    def close(self) -> None:
        """Leave the process group."""
        if self.world_size > 1:
            distributed.destroy_process_group()


def initialize(device: str | None) -> ProcessGroup:
    """Join the process group that torchrun's environment variables describe.

    Args:
        device: "cpu", "cuda" or "cuda:1"; None: the GPU of this process's local rank, or the CPU without one.

    Raises:
        InvalidValueError: the device does not exist.
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
    if world_size > 1:
        distributed.init_process_group(
            "nccl" if torch_device.type == "cuda" else "gloo", timeout=_PROCESS_GROUP_TIMEOUT
        )
    return ProcessGroup(rank, world_size, torch_device)
