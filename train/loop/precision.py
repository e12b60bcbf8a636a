"""Precision of matrix products, chosen by the device, and the loss scale of float16."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Final, Literal

import torch
from torch import Tensor

from bioshards.corpus.errors import InvalidValueError

Precision = Literal["float32", "bfloat16", "float16"]

INITIAL_SCALE: Final = 2.0**16
MAX_SCALE: Final = 2.0**24
GROWTH_INTERVAL: Final = 2000
"""Initial loss scale and steps until it is doubled, as in torch.amp.GradScaler."""


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


def enable_tf32(device: torch.device) -> None:
    """Let a GPU multiply float32 matrices in TF32, which has the range of float32 and 10 bits of mantissa."""
    if device.type == "cuda":
        torch.set_float32_matmul_precision("high")


def autocast(precision: str, device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Return a context in which matrix products have a precision; weights stay in float32."""
    if precision == "float32":
        return contextlib.nullcontext()
    return torch.autocast(device.type, getattr(torch, precision))


class LossScaler:
    """Factor of the loss that keeps small gradients above the smallest numbers of float16.

    It is halved after a step without a finite gradient, down to 1, and doubled after
    ``GROWTH_INTERVAL`` finite ones (Micikevicius et al. 2018, arXiv:1710.03740, section 3.2).  In the other
    precisions, which have the range of float32, it stays 1.  All state is on the device.

    Attributes:
        scale: float32[].
    """

    def __init__(self, precision: str, device: torch.device) -> None:
        self._is_enabled = precision == "float16"
        self.scale = torch.full((), INITIAL_SCALE if self._is_enabled else 1.0, device=device)
        self._finite_steps = torch.zeros((), dtype=torch.int64, device=device)

    def update(self, is_finite: Tensor) -> None:
        """Adapt the scale after a step.

        Args:
            is_finite: bool[], the step's gradient was finite.
        """
        if not self._is_enabled:
            return
        finite_steps = torch.where(is_finite, self._finite_steps + 1, 0)
        factor = torch.where(is_finite, torch.where(finite_steps == GROWTH_INTERVAL, 2.0, 1.0), 0.5)
        self.scale = (self.scale * factor).clamp(1.0, MAX_SCALE)
        self._finite_steps = finite_steps % GROWTH_INTERVAL

    def state_dict(self) -> dict[str, Any]:
        """Return the state for state.pt; empty without scaling."""
        if not self._is_enabled:
            return {}
        return {"loss_scale": {"scale": float(self.scale), "finite_steps": int(self._finite_steps)}}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the state of :meth:`state_dict`; unchanged if a run in another precision saved it."""
        if self._is_enabled and "loss_scale" in state:
            self.scale.fill_(state["loss_scale"]["scale"])
            self._finite_steps.fill_(state["loss_scale"]["finite_steps"])


def has_bfloat16(device: torch.device) -> bool:
    """Return True for a CPU, and for a GPU that computes in bfloat16 without emulation."""
    return device.type == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False)
