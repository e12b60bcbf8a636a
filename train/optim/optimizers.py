"""Adam and LAMB as in the papers' code.

ELECTRA, BERT and ALBERT were trained with Adam without bias correction, which torch.optim does not offer, and
torch has no LAMB.  The learning rate is an argument of each step (schedules.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import Parameter

from bioshards.corpus.errors import InvalidValueError, RunError
from bioshards.train.optim.gradients import trainable_parameters

_EMBEDDING_PATTERN: Final = re.compile(r"(^|\.)embeddings(_project)?\.|\.embedding_hidden_mapping_in\.")
_LAYER_PATTERN: Final = re.compile(r"(?:^|\.)(?:encoder\.layer|albert_layer_groups)\.(\d+)\.")
"""Parameter names of Hugging Face's ELECTRA, BERT and ALBERT."""


class OptimizerStateError(RunError):
    """An optimizer state is of other parameters."""


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
        self._betas = betas
        self._eps = eps
        self._weight_decay = weight_decay
        self._bias_correction = bias_correction
        self._lr_scales = [1.0 if lr_scales is None else lr_scales[name] for name in self._names]
        self._decayed_indices = [
            index for index, parameter in enumerate(self._parameters) if parameter.ndim > 1
        ]
        device = self._parameters[0].device if self._parameters else None
        self._steps = torch.zeros((), dtype=torch.float64, device=device)
        self._first_moments = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._second_moments = [torch.zeros_like(parameter) for parameter in self._parameters]

    @torch.no_grad()
    def step(self, lr: float, is_applied: Tensor | None = None) -> None:
        """Update the parameters; each must have a gradient (:class:`FlatGradients`).

        Args:
            is_applied: bool[] on the parameters' device.  False: gradients are 0, and nothing changes.  A
                flag on the device decides without waiting for it.  None: True.
        """
        gradients = [
            _get_gradient(*named_parameter)
            for named_parameter in zip(self._names, self._parameters, strict=True)
        ]
        self._steps += 1 if is_applied is None else is_applied
        updates = self._update_moments(gradients, is_applied)
        weights = [self._parameters[index] for index in self._decayed_indices]
        if self._weight_decay and weights:
            torch._foreach_add_(
                [updates[index] for index in self._decayed_indices], weights, alpha=self._weight_decay
            )
        self._apply_trust_ratios([updates[index] for index in self._decayed_indices], weights)
        torch._foreach_mul_(updates, [-lr * scale for scale in self._lr_scales])
        if is_applied is not None:
            torch._foreach_mul_(updates, is_applied.to(updates[0].dtype))
        torch._foreach_add_(self._parameters, updates)

    def _update_moments(self, gradients: list[Tensor], is_applied: Tensor | None) -> list[Tensor]:
        """Update the moments and return Adam's update, without learning rate and weight decay."""
        beta1, beta2 = self._betas
        dtype = self._first_moments[0].dtype
        decay1, decay2 = (
            beta
            if is_applied is None
            else torch.where(is_applied, is_applied.new_full((), beta, dtype=dtype), 1.0)
            for beta in self._betas
        )
        steps = self._steps.clamp(min=1)  # 0 only if no step was applied
        torch._foreach_mul_(self._first_moments, decay1)
        torch._foreach_add_(self._first_moments, gradients, alpha=1 - beta1)
        torch._foreach_mul_(self._second_moments, decay2)
        torch._foreach_addcmul_(self._second_moments, gradients, gradients, value=1 - beta2)
        roots = torch._foreach_sqrt(self._second_moments)
        if self._bias_correction:
            torch._foreach_div_(roots, (1 - beta2**steps).sqrt().to(dtype))
        torch._foreach_add_(roots, self._eps)
        updates = torch._foreach_div(self._first_moments, roots)
        if self._bias_correction:
            torch._foreach_div_(updates, (1 - beta1**steps).to(dtype))
        return list(updates)

    def _apply_trust_ratios(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        """Scale the updates in place; a hook for LAMB."""

    def state_dict(self) -> dict[str, Any]:
        """Return the number of steps and both moments by parameter name; the moments are not copied."""
        return {
            "steps": int(self._steps),
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
            _check_tensors(
                {name: _describe_tensor(value) for name, value in own_state[moment].items()},
                state.get(moment, {}),
            )
        for moment in ("first", "second"):
            for name, tensor in own_state[moment].items():
                tensor.copy_(state[moment][name])
        self._steps.fill_(state["steps"])


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


def _get_gradient(name: str, parameter: Tensor) -> Tensor:
    if parameter.grad is None:
        raise InvalidValueError(f"parameter {name} has no gradient; freeze it, or create FlatGradients")
    return parameter.grad


def _describe_tensor(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _check_tensors(expected: Mapping[str, str], actual: Mapping[str, Tensor]) -> None:
    missing, unexpected = sorted(expected.keys() - actual.keys()), sorted(actual.keys() - expected.keys())
    mismatched = [
        name for name in expected if name in actual and _describe_tensor(actual[name]) != expected[name]
    ]
    problems = []
    if missing:
        problems.append(f"{len(missing)} parameters missing ({missing[0]} ...)")
    if unexpected:
        problems.append(f"{len(unexpected)} parameters unexpected ({unexpected[0]} ...)")
    if mismatched:
        name = mismatched[0]
        problems.append(
            f"{len(mismatched)} parameters differ ({name} is {_describe_tensor(actual[name])}, "
            f"not {expected[name]})"
        )
    if problems:
        raise OptimizerStateError(
            f"the optimizer state is of another model: {'; '.join(problems)}. "
            "Resume with the recipe and the version of transformers that saved it"
        )
