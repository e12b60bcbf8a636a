"""Adam and LAMB as the papers' code has them, which torch's optimisers have not.

ELECTRA, BERT and ALBERT were trained without Adam's bias correction, and torch has no LAMB.  Neither keeps a
learning rate: a step is told its own (schedules.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

import torch
from torch import Tensor
from torch.nn import Parameter

from bioshards.corpus.errors import InvalidValueError, RunError

from .gradients import trainable_parameters

_EMBEDDING_PATTERN: Final = re.compile(r"(^|\.)embeddings(_project)?\.|\.embedding_hidden_mapping_in\.")
_LAYER_PATTERN: Final = re.compile(r"(?:^|\.)(?:encoder\.layer|albert_layer_groups)\.(\d+)\.")
"""Names of Hugging Face's ELECTRA, BERT and ALBERT."""


class OptimizerStateError(RunError):
    """The state of an optimiser of other parameters."""


class Adam:
    """Adam (Kingma & Ba, arXiv:1412.6980) with decoupled decay (Loshchilov & Hutter, arXiv:1711.05101).

    Parameters of one dimension, which are biases and those of LayerNorm, do not decay; the papers' code
    leaves out the same by their names.
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
        """Take the parameters that are trained; frozen ones are left alone.

        Args:
            eps: 1e-6 in google-research/electra, bert and albert, with betas and decay as given here.
            bias_correction: as in the paper on Adam; the three do without, and warm up.
            scales: what to multiply a parameter's learning rate with (``layer_scales``), for every name.
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
        self._steps = 0
        self._first_moments = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._second_moments = [torch.zeros_like(parameter) for parameter in self._parameters]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Change the parameters by their gradients, which all of them have to have (``Gradients``)."""
        gradients = [
            _get_gradient(*named_parameter)
            for named_parameter in zip(self._names, self._parameters, strict=True)
        ]
        self._steps += 1
        updates = self._update_moments(gradients)
        weights = [self._parameters[index] for index in self._decayed_indices]
        if self._weight_decay and weights:
            torch._foreach_add_(
                [updates[index] for index in self._decayed_indices], weights, alpha=self._weight_decay
            )
        self._apply_trust_ratios([updates[index] for index in self._decayed_indices], weights)
        torch._foreach_mul_(updates, [-lr * scale for scale in self._lr_scales])
        torch._foreach_add_(self._parameters, updates)

    def _update_moments(self, gradients: list[Tensor]) -> list[Tensor]:
        """Take the gradients into the moments; what Adam would change for them, the decay apart."""
        beta1, beta2 = self._betas
        torch._foreach_mul_(self._first_moments, beta1)
        torch._foreach_add_(self._first_moments, gradients, alpha=1 - beta1)
        torch._foreach_mul_(self._second_moments, beta2)
        torch._foreach_addcmul_(self._second_moments, gradients, gradients, value=1 - beta2)
        roots = torch._foreach_sqrt(self._second_moments)
        if self._bias_correction:
            torch._foreach_div_(roots, (1 - beta2**self._steps) ** 0.5)
        torch._foreach_add_(roots, self._eps)
        updates = torch._foreach_div(self._first_moments, roots)
        if self._bias_correction:
            torch._foreach_div_(updates, 1 - beta1**self._steps)
        return list(updates)

    def _apply_trust_ratios(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        """Where LAMB is more than Adam: nothing to do."""

    def state_dict(self) -> dict[str, Any]:
        """The number of steps, and of every parameter by its name the two moments, which are not copies."""
        return {
            "steps": self._steps,
            "first": dict(zip(self._names, self._first_moments, strict=True)),
            "second": dict(zip(self._names, self._second_moments, strict=True)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; its moments are copied to where the parameters are.

        Raises:
            OptimizerStateError: it is of other parameters, or of other shapes or types of them; nothing is
                changed.
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
        self._steps = state["steps"]


class Lamb(Adam):
    """LAMB (You et al., arXiv:1904.00962), as google-research/albert's lamb_optimizer.py has it.

    The update of each parameter of two dimensions or more is made as large as the parameter itself, before
    the learning rate, unless the norm of either is 0; biases and LayerNorm are updated as by Adam.
    """

    def _apply_trust_ratios(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        if not weights:
            return
        # As float64: see Gradients.clip.
        weight_norms = torch.stack(torch._foreach_norm(weights, 2, torch.float64))
        update_norms = torch.stack(torch._foreach_norm(updates, 2, torch.float64))
        ratios = torch.where((weight_norms > 0) & (update_norms > 0), weight_norms / update_norms, 1.0)
        torch._foreach_mul_(updates, list(ratios.to(updates[0].dtype).unbind()))


def compute_layer_scales(
    names: Iterable[str], layer_decay: float, as_published: bool = False
) -> dict[str, float]:
    """Of every parameter what to multiply its learning rate with: less, the farther below the head it is.

    A head (whatever is neither embedding nor layer, the pooler too) has 1, the last of n layers
    ``layer_decay``, the embeddings and their projection ``decay ** (n + 1)``.  Layers are counted by their
    names, so that ALBERT's, which share their parameters, are one.

    Args:
        as_published: one power more for all but the head, as google-research/electra has it
            (model/optimization.py, ``_get_layer_lrs``: the head's depth is n + 2, the last layer's n).
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
        raise InvalidValueError(
            f"parameter {name} has no gradient; freeze it, or let Gradients give it one of zeros"
        )
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
        problems.append(f"{len(missing)} parameters of the model are not in it ({missing[0]} ...)")
    if unexpected:
        problems.append(f"{len(unexpected)} that are in it the model has not ({unexpected[0]} ...)")
    if mismatched:
        name = mismatched[0]
        problems.append(
            f"{len(mismatched)} differ ({name} is {_describe_tensor(actual[name])}, here {expected[name]})"
        )
    if problems:
        raise OptimizerStateError(
            f"the optimiser's state is not of this model: {'; '.join(problems)}. "
            "Go on with the configuration, and the version of transformers, that it was saved with"
        )
