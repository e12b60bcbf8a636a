"""Optimizers and learning rate schedules as in the papers' code.

ELECTRA, BERT and ALBERT were trained with Adam without bias correction, which torch.optim does not offer, and
torch has no LAMB.  Gradients lie in one flat tensor; the learning rate is an argument of each step.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import torch
import torch.distributed
from torch import Tensor
from torch.nn import Parameter

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.train.recipe import SCHEDULES, Schedule

_ALIGNMENT: Final = 64
"""Each gradient starts at a multiple of this many elements; fast kernels need multiples of 16 bytes."""
_NORM_CHUNK: Final = 1 << 22
"""Gradients whose norm is taken at once; a norm in float64 can copy them to float64."""
_EPSILON: Final = 1e-6
"""Added to the norm before dividing by it, as by ``torch.nn.utils.clip_grad_norm_``."""
_EMBEDDING_PATTERN: Final = re.compile(r"(^|\.)embeddings(_project)?\.|\.embedding_hidden_mapping_in\.")
_LAYER_PATTERN: Final = re.compile(r"(?:^|\.)(?:encoder\.layer|albert_layer_groups)\.(\d+)\.")
"""Parameter names of Hugging Face's ELECTRA, BERT and ALBERT."""


class OptimizerStateError(RunError):
    """An optimizer state is of other parameters."""


def trainable_parameters(named_parameters: Iterable[tuple[str, Parameter]]) -> dict[str, Parameter]:
    """Return the trainable parameters; shared ones once, under their first name."""
    names: dict[Parameter, str] = {}
    for name, parameter in named_parameters:
        if parameter.requires_grad:
            names.setdefault(parameter, name)
    return {name: parameter for parameter, name in names.items()}


class FlatGradients:
    """Gradients of parameters of one dtype on one device; the parameters must stay there.

    Every parameter's ``.grad`` is a view of one flat tensor: one call each for all-reduce and clipping.  The
    order of summation then depends on the model only.  DistributedDataParallel rebuilds its buckets after the
    first step, so with more than two processes a resumed run would round differently from an uninterrupted
    one.

    Attributes:
        flat: all gradients, with zeros between parameters for alignment.
    """

    def __init__(self, named_parameters: Iterable[tuple[str, Parameter]]) -> None:
        """Set the gradient of each trainable parameter to a view of zeros.

        Raises:
            InvalidValueError: there are none, or they have several dtypes or devices.
        """
        self._parameters = list(trainable_parameters(named_parameters).values())
        dtypes_and_devices = {(parameter.dtype, parameter.device) for parameter in self._parameters}
        if len(dtypes_and_devices) != 1:
            raise InvalidValueError(
                f"parameters must have one dtype and device, not {dtypes_and_devices or 'none'}"
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
        """Set all gradients to 0, and restore the views of parameters whose ``.grad`` was replaced."""
        self.flat.zero_()
        for parameter, view in zip(self._parameters, self._gradient_views, strict=True):
            parameter.grad = view

    def all_reduce(self) -> None:
        """Sum the gradients over all processes."""
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(self.flat)

    def clip(self, max_norm: float, loss_scale: float = 1.0) -> Tensor:
        """Divide the gradients by the loss scale, and scale them to a norm of at most ``max_norm``.

        Args:
            loss_scale: a power of 2, by which the loss was multiplied.

        Returns:
            the norm before clipping, float64[] on the parameters' device.  If it is not finite, the gradients
            are undefined and the step must be skipped.
        """
        # float64: on a CPU a float32 sum of squares loses 0.1 % over 2^24 numbers, 5 % over 10^8.
        norms = torch._foreach_norm(torch.split(self.flat, _NORM_CHUNK), 2, torch.float64)
        norm: Tensor = torch.linalg.vector_norm(torch.stack(norms)) / loss_scale
        self.flat.mul_((max_norm / (norm + _EPSILON)).clamp(max=1.0) / loss_scale)
        return norm


class Adam:
    """Adam (Kingma & Ba, arXiv:1412.6980) with decoupled weight decay (Loshchilov & Hutter,
    arXiv:1711.05101).

    One-dimensional parameters (biases and LayerNorm) do not decay; the papers' code excludes the same ones by
    name.
    """

    def __init__(
        self,
        named_parameters: Iterable[tuple[str, Parameter]],
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-6,
        weight_decay: float = 0.01,
        bias_correction: bool = False,
        lr_scales: Mapping[str, float] | None = None,
    ) -> None:
        """Create zero moments for the trainable parameters.

        Args:
            betas, eps, weight_decay: the defaults are those of google-research/electra, bert and albert.
            bias_correction: as in Adam's paper; the three repositories omit it.
            lr_scales: factor of the learning rate by parameter name (:func:`compute_layer_scales`).
        """
        parameters = trainable_parameters(named_parameters)
        self._names = list(parameters)
        self._parameters: list[Tensor] = list(parameters.values())
        self._betas, self._eps, self._weight_decay = betas, eps, weight_decay
        self._bias_correction = bias_correction
        self._lr_scales = [1.0 if lr_scales is None else lr_scales[name] for name in self._names]
        self._decayed_indices = [index for index, value in enumerate(self._parameters) if value.ndim > 1]
        self._steps = 0
        self._first_moments = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._second_moments = [torch.zeros_like(parameter) for parameter in self._parameters]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Update the parameters; each must have a gradient (:class:`FlatGradients`)."""
        gradients = list(map(_get_gradient, self._names, self._parameters))
        self._steps += 1
        beta1, beta2 = self._betas
        torch._foreach_mul_(self._first_moments, beta1)
        torch._foreach_add_(self._first_moments, gradients, alpha=1 - beta1)
        torch._foreach_mul_(self._second_moments, beta2)
        torch._foreach_addcmul_(self._second_moments, gradients, gradients, value=1 - beta2)
        roots = torch._foreach_sqrt(self._second_moments)
        if self._bias_correction:
            torch._foreach_div_(roots, math.sqrt(1 - beta2**self._steps))
        torch._foreach_add_(roots, self._eps)
        updates = list(torch._foreach_div(self._first_moments, roots))
        if self._bias_correction:
            torch._foreach_div_(updates, 1 - beta1**self._steps)
        decayed_updates = [updates[index] for index in self._decayed_indices]
        decayed_weights = [self._parameters[index] for index in self._decayed_indices]
        if self._weight_decay and decayed_weights:
            torch._foreach_add_(decayed_updates, decayed_weights, alpha=self._weight_decay)
        self._apply_trust_ratios(decayed_updates, decayed_weights)
        torch._foreach_mul_(updates, [-lr * scale for scale in self._lr_scales])
        torch._foreach_add_(self._parameters, updates)

    def _apply_trust_ratios(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        """Scale the updates in place; a hook for LAMB."""

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and both moments by parameter name; the moments are not copied."""
        return {
            "steps": self._steps,
            "first": dict(zip(self._names, self._first_moments, strict=True)),
            "second": dict(zip(self._names, self._second_moments, strict=True)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a state; its moments are copied to the parameters' device.

        Raises:
            OptimizerStateError: names, shapes or dtypes differ; nothing is changed.
        """
        own_state = self.state_dict()
        for moment in ("first", "second"):
            _check_tensors(own_state[moment], state.get(moment, {}))
        for moment in ("first", "second"):
            for name, tensor in own_state[moment].items():
                tensor.copy_(state[moment][name])
        self._steps = state["steps"]


class Lamb(Adam):
    """LAMB (You et al., arXiv:1904.00962), as in google-research/albert's lamb_optimizer.py.

    The update of each parameter with two or more dimensions is scaled to the norm of the parameter, unless
    either norm is 0.  Biases and LayerNorm are updated as by Adam.
    """

    def _apply_trust_ratios(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        if not weights:
            return
        # float64: see FlatGradients.clip.
        weight_norms = torch.stack(torch._foreach_norm(weights, 2, torch.float64))
        update_norms = torch.stack(torch._foreach_norm(updates, 2, torch.float64))
        ratios = torch.where((weight_norms > 0) & (update_norms > 0), weight_norms / update_norms, 1.0)
        torch._foreach_mul_(updates, list(ratios.to(updates[0].dtype).unbind()))


def compute_layer_scales(
    names: Iterable[str], layer_decay: float, as_published: bool = False
) -> dict[str, float]:
    """Return the learning-rate factor of every parameter for layer-wise decay.

    The factor is 1 for heads (all parameters outside embeddings and layers, the pooler included),
    ``layer_decay`` for the last of n layers, and ``layer_decay ** (n + 1)`` for the embeddings and their
    projection.  ALBERT's layers share their parameters and count as one.

    Args:
        as_published: raise all factors but the head's by one power, as google-research/electra does
            (model/optimization.py, ``_get_layer_lrs``: the head has depth n + 2, the last layer n).
    """
    names = list(names)
    layer_numbers = {name: 1 + int(match[1]) for name in names if (match := _LAYER_PATTERN.search(name))}
    top = 1 + max(layer_numbers.values(), default=0)
    embedding_depth = top + 1 if as_published else top

    def scale(name: str) -> float:
        if name in layer_numbers:
            return layer_decay ** (embedding_depth - layer_numbers[name])
        return layer_decay**embedding_depth if _EMBEDDING_PATTERN.search(name) else 1.0

    return {name: scale(name) for name in names}


def learning_rate(schedule: Schedule, step: int, steps: int, warmup: int, peak_rate: float) -> float:
    """Return the learning rate of a step.

    Steps count from 0, as in the papers' code: the first update is step 0, with a learning rate of 0 if there
    is warm-up, and the last one is ``steps - 1``.

    Args:
        schedule: ``electra``: product of warm-up and decay, both from step 0, so that the peak is never
            reached (google-research/electra, model/optimization.py).  ``bert``: warm-up to the peak, then the
            decay counted from step 0, a drop by ``warmup / steps`` of the peak (google-research/bert and
            albert, optimization.py).  ``triangular``: linear to the peak, then linear to 0 (PubMedBERT,
            arXiv:2007.15779, section 3.1).  ``constant``: linear to the peak, which then stays, so that a run
            may end at any step.
        step: from 0; the learning rate is 0 from ``steps`` on, except if it is constant.
        steps: total number of steps.
        warmup: steps of linear warm-up; 0: step 0 has the peak rate.
        peak_rate: the learning rate of the papers.

    Raises:
        InvalidValueError: the arguments are out of range, or the schedule is unknown.
    """
    if steps < 1 or not 0 <= warmup <= steps or step < 0:
        raise InvalidValueError(
            f"step {step} of {steps} with {warmup} warm-up steps: expected 0 <= warmup <= steps"
        )
    warmup_factor = step / warmup if step < warmup else 1.0
    remaining = max(0.0, 1 - step / steps)
    match schedule:
        case "electra":
            return peak_rate * warmup_factor * remaining
        case "bert":
            return peak_rate * (warmup_factor if step < warmup else remaining)
        case "triangular":
            decay = max(0, steps - step) / max(1, steps - warmup)
            return peak_rate * (warmup_factor if step < warmup else decay)
        case "constant":
            return peak_rate * warmup_factor
        case _:
            raise InvalidValueError(f"unknown schedule {schedule!r}; choose from {', '.join(SCHEDULES)}")


def _get_gradient(name: str, parameter: Tensor) -> Tensor:
    if parameter.grad is None:
        raise InvalidValueError(f"parameter {name} has no gradient; freeze it, or create FlatGradients")
    return parameter.grad


def _describe_tensor(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _check_tensors(expected: Mapping[str, Tensor], actual: Mapping[str, Tensor]) -> None:
    """Check that two states have tensors of the same names, shapes and dtypes."""
    missing, unexpected = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
    differing = [
        f"{name} is {_describe_tensor(actual[name])}, not {_describe_tensor(tensor)}"
        for name, tensor in expected.items()
        if name in actual and _describe_tensor(actual[name]) != _describe_tensor(tensor)
    ]
    problems = [
        *(f"{len(missing)} parameters missing ({name} ...)" for name in missing[:1]),
        *(f"{len(unexpected)} parameters unexpected ({name} ...)" for name in unexpected[:1]),
        *(f"{len(differing)} parameters differ ({difference})" for difference in differing[:1]),
    ]
    if problems:
        raise OptimizerStateError(
            f"the optimizer state is of another model: {'; '.join(problems)}. "
            "Resume with the recipe and the version of transformers that saved it"
        )
