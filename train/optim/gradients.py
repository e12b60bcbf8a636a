"""The gradients of a model as one flat tensor, so that summing over processes and clipping are one call each.

Every parameter's ``.grad`` is a view of the flat tensor.  What is summed, and in which order, then depends on
the model only; DistributedDataParallel's buckets are dealt anew after its first step, so that with more than
two processes a resumed run would not add up as the uninterrupted one did.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import torch
import torch.distributed
from torch import Tensor
from torch.nn import Parameter

from bioshards.corpus.errors import InvalidValueError

_ALIGNMENT: Final = 64
"""Each parameter begins at a multiple of so many numbers: fast kernels want multiples of 16 bytes."""
_EPSILON: Final = 1e-6
"""Added to the norm before dividing by it, as by ``torch.nn.utils.clip_grad_norm_``."""


def trainable_parameters(named_parameters: Iterable[tuple[str, Parameter]]) -> dict[str, Parameter]:
    """The parameters that are trained, those that several modules share once, under their first name."""
    names: dict[Parameter, str] = {}
    for name, parameter in named_parameters:
        if parameter.requires_grad:
            names.setdefault(parameter, name)
    return {name: parameter for parameter, name in names.items()}


class FlatGradients:
    """The gradients of some parameters, all of one type and on one device, which they must not leave.

    Attributes:
        flat: all gradients, one parameter after another, with zeros between them.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, Parameter]]) -> None:
        """Give each parameter that is trained a gradient of zeros; there has to be one at least."""
        self._parameters = list(trainable_parameters(named_parameters).values())
        dtypes_and_devices = {(parameter.dtype, parameter.device) for parameter in self._parameters}
        if len(dtypes_and_devices) != 1:
            raise InvalidValueError(
                f"parameters have to be of one type, on one device, and not of {dtypes_and_devices or 'none'}"
            )
        [(dtype, device)] = dtypes_and_devices
        sizes = [parameter.numel() for parameter in self._parameters]
        padded_sizes = [-(-size // _ALIGNMENT) * _ALIGNMENT for size in sizes]
        self.flat = torch.zeros(sum(padded_sizes), dtype=dtype, device=device)
        self._gradient_views = [
            padded_view[:size].view(parameter.shape)
            for padded_view, size, parameter in zip(
                torch.split(self.flat, padded_sizes), sizes, self._parameters, strict=True
            )
        ]
        self.zero()

    def zero(self) -> None:
        """Begin a step: all gradients are 0, and views again where something has replaced them."""
        self.flat.zero_()
        for parameter, view in zip(self._parameters, self._gradient_views, strict=True):
            parameter.grad = view

    def all_reduce(self) -> None:
        """Sum the gradients over all processes; with one process there is nothing to do."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(self.flat)

    def clip(self, max_norm: float) -> Tensor:
        """Scale the gradients so that their norm is ``max_norm`` at most.

        Returns:
            The norm before, float64[] on the parameters' device.  It is not finite where any gradient is not;
            what is in the gradients then means nothing, and the step has to be left out.
        """
        # Squares are added up as float64: on a CPU float32 loses 0.1 % over 2^24 numbers, 5 % over 10^8.
        norm: Tensor = torch.linalg.vector_norm(self.flat, dtype=torch.float64)
        self.flat.mul_((max_norm / (norm + _EPSILON)).clamp(max=1.0))
        return norm
