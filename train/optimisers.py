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

from .gradients import trainable

_EMBEDDINGS: Final = re.compile(r"(^|\.)embeddings(_project)?\.|\.embedding_hidden_mapping_in\.")
_LAYER: Final = re.compile(r"(?:^|\.)(?:encoder\.layer|albert_layer_groups)\.(\d+)\.")
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
        scales: Mapping[str, float] | None = None,
    ) -> None:
        """Take the parameters that are trained; frozen ones are left alone.

        Args:
            eps: 1e-6 in google-research/electra, bert and albert, with betas and decay as given here.
            bias_correction: as in the paper on Adam; the three do without, and warm up.
            scales: what to multiply a parameter's learning rate with (``layer_scales``), for every name.
        """
        parameters = trainable(named_parameters)
        self._names = list(parameters)
        self._parameters: list[Tensor] = list(parameters.values())
        self._betas = betas
        self._eps = eps
        self._weight_decay = weight_decay
        self._bias_correction = bias_correction
        self._scales = [1.0 if scales is None else scales[name] for name in self._names]
        self._decayed = [at for at, parameter in enumerate(self._parameters) if parameter.ndim > 1]
        self._steps = 0
        self._first = [torch.zeros_like(parameter) for parameter in self._parameters]
        self._second = [torch.zeros_like(parameter) for parameter in self._parameters]

    @torch.no_grad()
    def step(self, lr: float) -> None:
        """Change the parameters by their gradients, which all of them have to have (``Gradients``)."""
        gradients = [_gradient(*one) for one in zip(self._names, self._parameters, strict=True)]
        self._steps += 1
        updates = self._moments(gradients)
        weights = [self._parameters[at] for at in self._decayed]
        if self._weight_decay and weights:
            torch._foreach_add_([updates[at] for at in self._decayed], weights, alpha=self._weight_decay)
        self._adapt([updates[at] for at in self._decayed], weights)
        torch._foreach_mul_(updates, [-lr * scale for scale in self._scales])
        torch._foreach_add_(self._parameters, updates)

    def _moments(self, gradients: list[Tensor]) -> list[Tensor]:
        """Take the gradients into the moments; what Adam would change for them, the decay apart."""
        first, second = self._betas
        torch._foreach_mul_(self._first, first)
        torch._foreach_add_(self._first, gradients, alpha=1 - first)
        torch._foreach_mul_(self._second, second)
        torch._foreach_addcmul_(self._second, gradients, gradients, value=1 - second)
        roots = torch._foreach_sqrt(self._second)
        if self._bias_correction:
            torch._foreach_div_(roots, (1 - second**self._steps) ** 0.5)
        torch._foreach_add_(roots, self._eps)
        updates = torch._foreach_div(self._first, roots)
        if self._bias_correction:
            torch._foreach_div_(updates, 1 - first**self._steps)
        return list(updates)

    def _adapt(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        """Where LAMB is more than Adam: nothing to do."""

    def state_dict(self) -> dict[str, Any]:
        """The number of steps, and of every parameter by its name the two moments, which are not copies."""
        return {
            "steps": self._steps,
            "first": dict(zip(self._names, self._first, strict=True)),
            "second": dict(zip(self._names, self._second, strict=True)),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a state; its moments are copied to where the parameters are.

        Raises:
            OptimizerStateError: it is of other parameters, or of other shapes or types of them; nothing is
                changed.
        """
        ours = self.state_dict()
        for moment in ("first", "second"):
            _compare({name: _kind(one) for name, one in ours[moment].items()}, state.get(moment, {}))
        for moment in ("first", "second"):
            for name, tensor in ours[moment].items():
                tensor.copy_(state[moment][name])
        self._steps = state["steps"]


class Lamb(Adam):
    """LAMB (You et al., arXiv:1904.00962), as google-research/albert's lamb_optimizer.py has it.

    The update of each parameter of two dimensions or more is made as large as the parameter itself, before
    the learning rate, unless the norm of either is 0; biases and LayerNorm are updated as by Adam.
    """

    def _adapt(self, updates: list[Tensor], weights: list[Tensor]) -> None:
        if not weights:
            return
        # As float64: see Gradients.clip.
        of_weights = torch.stack(torch._foreach_norm(weights, 2, torch.float64))
        of_updates = torch.stack(torch._foreach_norm(updates, 2, torch.float64))
        ratios = torch.where((of_weights > 0) & (of_updates > 0), of_weights / of_updates, 1.0)
        torch._foreach_mul_(updates, list(ratios.to(updates[0].dtype).unbind()))


def layer_scales(names: Iterable[str], decay: float, as_published: bool = False) -> dict[str, float]:
    """Of every parameter what to multiply its learning rate with: less, the farther below the head it is.

    A head (whatever is neither embedding nor layer, the pooler too) has 1, the last of n layers ``decay``,
    the embeddings and their projection ``decay ** (n + 1)``.  Layers are counted by their names, so that
    ALBERT's, which share their parameters, are one.

    Args:
        as_published: one power more for all but the head, as google-research/electra has it
            (model/optimization.py, ``_get_layer_lrs``: the head's depth is n + 2, the last layer's n).
    """
    names = list(names)
    of_layers = {name: 1 + int(found[1]) for name in names if (found := _LAYER.search(name))}
    top = 1 + max(of_layers.values(), default=0)
    below = top + 1 if as_published else top

    def scale(name: str) -> float:
        if name in of_layers:
            return decay ** (below - of_layers[name])
        return decay**below if _EMBEDDINGS.search(name) else 1.0

    return {name: scale(name) for name in names}


def _gradient(name: str, parameter: Tensor) -> Tensor:
    if parameter.grad is None:
        raise InvalidValueError(
            f"parameter {name} has no gradient; freeze it, or let Gradients give it one of zeros"
        )
    return parameter.grad


def _kind(tensor: Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')}{list(tensor.shape)}"


def _compare(ours: Mapping[str, str], theirs: Mapping[str, Tensor]) -> None:
    missing, more = sorted(ours.keys() - theirs.keys()), sorted(theirs.keys() - ours.keys())
    other = [name for name in ours if name in theirs and _kind(theirs[name]) != ours[name]]
    said = []
    if missing:
        said.append(f"{len(missing)} parameters of the model are not in it ({missing[0]} ...)")
    if more:
        said.append(f"{len(more)} that are in it the model has not ({more[0]} ...)")
    if other:
        name = other[0]
        said.append(f"{len(other)} differ ({name} is {_kind(theirs[name])}, here {ours[name]})")
    if said:
        raise OptimizerStateError(
            f"the optimiser's state is not of this model: {'; '.join(said)}. "
            "Go on with the configuration, and the version of transformers, that it was saved with"
        )
