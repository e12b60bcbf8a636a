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

_PATIENCE: Final = timedelta(hours=6)
"""For which processes wait for each other: the first reads all shards before it trains, which may take longer
than NCCL's ten minutes.  Where one of them ends, torchrun ends the others."""


@dataclass(frozen=True, slots=True)
class Processes:
    """This process among those that train together.

    Attributes:
        rank, world: which it is, of how many.
        device: where it computes.
    """

    rank: int
    world: int
    device: torch.device

    @property
    def first(self) -> bool:
        """Is it the one that writes and speaks?"""
        return self.rank == 0

    def sums(self, values: Sequence[float]) -> list[float]:
        """The sums of each value over all processes; integers are exact up to 2**53."""
        if self.world == 1:
            return list(values)
        shared = torch.tensor(values, dtype=torch.float64, device=self.device)
        distributed.all_reduce(shared)
        summed: list[float] = shared.tolist()
        return summed

    def wait(self) -> None:
        """Until all are here."""
        if self.world > 1:
            self.sums([0.0])

    def close(self) -> None:
        if self.world > 1:
            distributed.destroy_process_group()


def start(device: str | None) -> Processes:
    """Find this process's place from the environment that torchrun sets.

    Args:
        device: "cpu", "cuda" or "cuda:1"; None: this process's own GPU, or the CPU where there is none.

    Raises:
        ValueError: there is no such device.
    """
    rank, world, local = (int(os.environ.get(name, given)) for name, given in _ENVIRONMENT)
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        device = f"cuda:{local}"
    if not re.fullmatch(r"(cpu|cuda)(:\d+)?", device):
        raise InvalidValueError(f"--device {device} is none that is trained on: give cpu, cuda or cuda:1")
    try:
        found = torch.device(device)
        torch.zeros(1, device=found)
    except (RuntimeError, AssertionError) as error:
        raise InvalidValueError(
            f"--device {device} cannot be used here: {str(error).splitlines()[0]}"
        ) from error
    if found.type == "cuda":
        torch.cuda.set_device(found)
    if world > 1:
        distributed.init_process_group("nccl" if found.type == "cuda" else "gloo", timeout=_PATIENCE)
    return Processes(rank, world, found)


_ENVIRONMENT = (("RANK", "0"), ("WORLD_SIZE", "1"), ("LOCAL_RANK", "0"))
