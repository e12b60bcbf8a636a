"""The processes that train one model together: one, or as many as torchrun has started."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import torch
import torch.distributed as distributed

from bioshards.corpus.errors import InvalidValueError

_PROCESS_GROUP_TIMEOUT: Final = timedelta(hours=6)
"""For which processes wait for each other: the first reads all shards before it trains, which may take longer
than NCCL's ten minutes.  Where one of them ends, torchrun ends the others."""


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """This process among those that train together.

    Attributes:
        rank, world: which it is, of how many.
        device: where it computes.
    """

    rank: int
    world_size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """Is it the one that writes and speaks?"""
        return self.rank == 0

    def all_reduce(self, values: Sequence[float]) -> list[float]:
        """The sums of each value over all processes; integers are exact up to 2**53."""
        if self.world_size == 1:
            return list(values)
        tensor = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(tensor)
        totals: list[float] = tensor.tolist()
        return totals

    def barrier(self) -> None:
        """Until all are here."""
        if self.world_size > 1:
            self.all_reduce([0.0])

    def close(self) -> None:
        if self.world_size > 1:
            distributed.destroy_process_group()


def initialize(device: str | None) -> ProcessGroup:
    """Find this process's place from the environment that torchrun sets.

    Args:
        device: "cpu", "cuda" or "cuda:1"; None: this process's own GPU, or the CPU where there is none.

    Raises:
        ValueError: there is no such device.
    """
    rank, world_size, local_rank = (
        int(os.environ.get(name, default)) for name, default in _TORCHRUN_VARIABLES
    )
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        device = f"cuda:{local_rank}"
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", device):
        raise InvalidValueError(f"--device {device} is none that is trained on: give cpu, cuda or cuda:1")
    try:
        torch_device = torch.device(device)
        torch.zeros(1, device=torch_device)
    except (RuntimeError, AssertionError) as error:
        raise InvalidValueError(
            f"--device {device} cannot be used here: {str(error).splitlines()[0]}"
        ) from error
    if torch_device.type == "cuda":
        torch.cuda.set_device(torch_device)
    if world_size > 1:
        distributed.init_process_group(
            "nccl" if torch_device.type == "cuda" else "gloo", timeout=_PROCESS_GROUP_TIMEOUT
        )
    return ProcessGroup(rank, world_size, torch_device)


_TORCHRUN_VARIABLES = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
