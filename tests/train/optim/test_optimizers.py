"""Adam and LAMB, compared with the formulas of the papers computed number by number."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from bioshards.train.optim import Adam, Lamb, OptimizerStateError, compute_layer_scales

Numbers = list[float]
DECAYED = {"dense": (3, 4), "embedding": (5, 2)}
OTHERS = {"bias": (4,), "norm": (2,)}


def make_parameters(dtype: torch.dtype = torch.float64, seed: int = 0) -> dict[str, nn.Parameter]:
    generator = torch.Generator().manual_seed(seed)
    shapes: dict[str, tuple[int, ...]] = {**DECAYED, **OTHERS}
    return {
        name: nn.Parameter(torch.randn(shape, generator=generator, dtype=dtype))
        for name, shape in shapes.items()
    }


def make_gradients(parameters: Mapping[str, nn.Parameter], step: int) -> dict[str, Tensor]:
    """Make gradients whose sizes differ widely by parameter and step, with some zeros."""
    generator = torch.Generator().manual_seed(1000 + step)
    gradients = {}
    for index, (name, parameter) in enumerate(parameters.items()):
        values = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
        gradients[name] = values.where(values.abs() > 0.3, 0) * 10.0 ** ((index + step) % 5 - 3)
    return gradients


def take_steps(
    parameters: Mapping[str, nn.Parameter], optimizer: Adam, steps: Sequence[int], lr: float = 0.01
) -> None:
    for step in steps:
        for name, gradient in make_gradients(parameters, step).items():
            parameters[name].grad = gradient
        optimizer.step(lr * (1 + step % 3))


def compute_reference(
    steps: int,
    weight_decay: float = 0.01,
    lamb: bool = False,
    bias_correction: bool = False,
    scales: Mapping[str, float] | None = None,
) -> dict[str, Numbers]:
    """Compute the same steps, number by number.

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  u = m / (sqrt(v) + eps), of m and v over (1 - b^t) where
    corrected;  u += wd w for what decays;  LAMB: r = |w| / |u| where both are above 0;  w -= lr r u.
    """
    b1, b2, eps = 0.9, 0.999, 1e-6
    models = make_parameters()
    values: dict[str, Numbers] = {name: one.detach().flatten().tolist() for name, one in models.items()}
    first, second = ({name: [0.0] * len(one) for name, one in values.items()} for _ in range(2))
    for step in range(steps):
        lr = 0.01 * (1 + step % 3)
        for name, tensor in make_gradients(models, step).items():
            weights, m, v = values[name], first[name], second[name]
            update = []
            for index, gradient in enumerate(tensor.flatten().tolist()):
                m[index] = b1 * m[index] + (1 - b1) * gradient
                v[index] = b2 * v[index] + (1 - b2) * gradient * gradient
                up, down = m[index], v[index]
                if bias_correction:
                    up /= 1 - b1 ** (step + 1)
                    down /= 1 - b2 ** (step + 1)
                decay = weight_decay * weights[index] if name in DECAYED else 0.0
                update.append(up / (math.sqrt(down) + eps) + decay)
            ratio = 1.0
            if lamb and name in DECAYED:
                weight_norm, update_norm = math.hypot(*weights), math.hypot(*update)
                if weight_norm > 0 and update_norm > 0:
                    ratio = weight_norm / update_norm
            for index in range(len(weights)):
                weights[index] -= lr * (scales or {}).get(name, 1.0) * ratio * update[index]
    return values


def assert_same(parameters: Mapping[str, nn.Parameter], expected: Mapping[str, Numbers]) -> None:
    for name, parameter in parameters.items():
        assert parameter.detach().flatten().tolist() == pytest.approx(expected[name], rel=1e-12, abs=1e-12)


def assert_equal(
    parameters: Mapping[str, nn.Parameter], other_parameters: Mapping[str, nn.Parameter]
) -> None:
    for name in parameters:
        assert torch.equal(parameters[name], other_parameters[name]), name


@pytest.mark.parametrize("kind", [Adam, Lamb])
@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01, 0.5])
def test_updates_equal_the_formula(weight_decay: float, bias_correction: bool, kind: type[Adam]) -> None:
    parameters = make_parameters()
    optimizer = kind(parameters.items(), weight_decay=weight_decay, bias_correction=bias_correction)
    take_steps(parameters, optimizer, range(20))
    assert_same(parameters, compute_reference(20, weight_decay, kind is Lamb, bias_correction))


@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_scales_multiply_the_learning_rate(kind: type[Adam]) -> None:
    parameters = make_parameters()
    scales = {"dense": 0.5, "embedding": 0.1, "bias": 2.0, "norm": 0.0}
    take_steps(parameters, kind(parameters.items(), lr_scales=scales), range(20))
    assert_same(parameters, compute_reference(20, lamb=kind is Lamb, scales=scales))
    assert torch.equal(parameters["norm"], make_parameters()["norm"])


@pytest.mark.parametrize(("weight", "gradient"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_lamb_equals_adam_if_a_norm_is_0(weight: float, gradient: float) -> None:
    parameters, other_parameters = (nn.Parameter(torch.full((2, 3), weight)) for _ in range(2))
    for kind, parameter in ((Lamb, parameters), (Adam, other_parameters)):
        optimizer = kind([("one", parameter)], weight_decay=0.0)
        for _ in range(3):
            parameter.grad = torch.full((2, 3), gradient)
            optimizer.step(0.1)
            if gradient:
                break  # the weight is not 0 any more
    assert torch.isfinite(parameters).all()
    assert torch.equal(parameters, other_parameters)


@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_frozen_parameter_is_not_updated(kind: type[Adam]) -> None:
    parameters = make_parameters()
    parameters["dense"].requires_grad_(False)
    parameters["dense"].grad = torch.ones_like(parameters["dense"])
    optimizer = kind(parameters.items())
    for name in ("embedding", "bias", "norm"):
        parameters[name].grad = torch.ones_like(parameters[name])
    optimizer.step(0.1)
    assert torch.equal(parameters["dense"], make_parameters()["dense"])
    assert not torch.equal(parameters["embedding"], make_parameters()["embedding"])
    assert list(optimizer.state_dict()["first"]) == ["embedding", "bias", "norm"]


def test_a_shared_parameter_is_updated_once() -> None:
    parameters, other_parameters = make_parameters(), make_parameters()
    take_steps(parameters, Adam([*parameters.items(), ("tied", parameters["embedding"])]), range(3))
    take_steps(other_parameters, Adam(other_parameters.items()), range(3))
    assert_equal(parameters, other_parameters)


def test_lamb_trains_a_model_of_biases_only() -> None:
    parameters, other_parameters = (nn.Parameter(torch.ones(3)) for _ in range(2))
    parameters.grad = other_parameters.grad = torch.tensor([1.0, -1.0, 0.0])
    Lamb([("bias", parameters)]).step(0.1)
    Adam([("bias", other_parameters)]).step(0.1)
    assert torch.equal(parameters, other_parameters)


def test_error_names_parameter_without_gradient() -> None:
    parameters = make_parameters()
    adam = Adam(parameters.items())
    parameters["dense"].grad = torch.ones_like(parameters["dense"])
    with pytest.raises(ValueError, match="parameter embedding has no gradient; freeze it"):
        adam.step(0.1)


@pytest.mark.parametrize("bias_correction", [False, True])
@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_resumed_optimizer_equals_an_uninterrupted_one(
    tmp_path: Path, kind: type[Adam], bias_correction: bool
) -> None:
    uninterrupted = make_parameters(torch.float32)
    take_steps(uninterrupted, kind(uninterrupted.items(), bias_correction=bias_correction), range(20))

    saved = make_parameters(torch.float32)
    first = kind(saved.items(), bias_correction=bias_correction)
    take_steps(saved, first, range(10))
    torch.save(first.state_dict(), tmp_path / "state.pt")
    resumed = copy.deepcopy(saved)
    second = kind(resumed.items(), bias_correction=bias_correction)
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    take_steps(resumed, second, range(10, 20))
    assert_equal(uninterrupted, resumed)
    assert second.state_dict()["steps"] == 20


def test_loaded_state_is_copied_in_place() -> None:
    parameters = make_parameters()
    adam = Adam(parameters.items())
    take_steps(parameters, adam, range(2))
    state = copy.deepcopy(adam.state_dict())
    other = Adam(make_parameters().items())
    pointers = [tensor.data_ptr() for tensor in other.state_dict()["first"].values()]
    other.load_state_dict(state)
    assert [tensor.data_ptr() for tensor in other.state_dict()["first"].values()] == pointers
    for moment in ("first", "second"):
        for name, tensor in state[moment].items():
            assert torch.equal(other.state_dict()[moment][name], tensor)


def change_state(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    state = copy.deepcopy(Adam(make_parameters().items()).state_dict())
    change(state)
    return state


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (change_state(lambda s: s["first"].pop("bias")), r"1 parameters missing \(bias"),
        (change_state(lambda s: s["second"].update(more=torch.ones(1))), r"1 parameters unexpected \(more"),
        (
            change_state(lambda s: s["first"].update(dense=torch.ones(4, 4, dtype=torch.float64))),
            r"dense is float64\[4, 4\], not float64\[3, 4\]",
        ),
        (
            change_state(lambda s: s["second"].update(norm=torch.ones(2))),
            r"norm is float32\[2\], not float64",
        ),
        ({"state": {}, "param_groups": []}, "4 parameters missing"),
    ],
)
def test_state_of_another_model_is_refused_without_changes(state: dict[str, Any], message: str) -> None:
    parameters = make_parameters()
    adam = Adam(parameters.items())
    take_steps(parameters, adam, range(2))
    before = copy.deepcopy(adam.state_dict())
    with pytest.raises(OptimizerStateError, match=message):
        adam.load_state_dict(state)
    after = adam.state_dict()
    assert after["steps"] == before["steps"] == 2
    for moment in ("first", "second"):
        assert all(torch.equal(after[moment][name], tensor) for name, tensor in before[moment].items())


@pytest.fixture(scope="module")
def models() -> dict[str, nn.Module]:
    """Tiny models of transformers with three layers, and an ALBERT with three groups."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    import transformers as hf

    size: dict[str, Any] = {
        "vocab_size": 11,
        "hidden_size": 4,
        "num_hidden_layers": 3,
        "num_attention_heads": 1,
        "intermediate_size": 8,
        "max_position_embeddings": 8,
    }
    return {
        "electra": hf.ElectraForPreTraining(hf.ElectraConfig(**size, embedding_size=2)),
        "generator": hf.ElectraForMaskedLM(hf.ElectraConfig(**size, embedding_size=2)),
        "encoder": hf.ElectraModel(hf.ElectraConfig(**size, embedding_size=2)),
        "bert": hf.BertForPreTraining(hf.BertConfig(**size)),
        "albert": hf.AlbertForPreTraining(hf.AlbertConfig(**size, embedding_size=2)),
        "groups": hf.AlbertModel(hf.AlbertConfig(**size, embedding_size=2, num_hidden_groups=3)),
    }


LAYERS = {"electra": 3, "generator": 3, "encoder": 3, "bert": 3, "albert": 1, "groups": 3}


def get_depth(name: str, layers: int) -> int:
    """Return the depth of a parameter as in google-research/electra, without its gap below the head."""
    for layer in range(layers):
        if f"layer.{layer}." in name or f"layer_groups.{layer}." in name:
            return layer + 1
    return 0 if "embedding" in name else layers + 1


@pytest.mark.parametrize("kind", LAYERS)
def test_layer_scales_decay_from_the_head_down(models: dict[str, nn.Module], kind: str) -> None:
    """The published ones have one more power below the head."""
    names = [name for name, _ in models[kind].named_parameters()]
    layers = LAYERS[kind]
    scales, published = compute_layer_scales(names, 0.8), compute_layer_scales(names, 0.8, as_published=True)
    assert list(scales) == list(published) == names
    for name in names:
        power = layers + 1 - get_depth(name, layers)
        assert scales[name] == pytest.approx(0.8**power), name
        assert published[name] == pytest.approx(0.8 ** (power + 1 if power else 0)), name
    assert {get_depth(name, layers) for name in names} >= set(range(layers + 1))


def test_electra_scales_equal_the_published_formula() -> None:
    """The power is n + 2 - depth. The depth is 0 for embeddings, k + 1 for layer k and n + 2 for the head."""
    names = {
        "electra.embeddings.word_embeddings.weight": 0.5**5,
        "electra.embeddings_project.weight": 0.5**5,
        "electra.encoder.layer.0.attention.self.query.weight": 0.5**4,
        "electra.encoder.layer.2.output.LayerNorm.bias": 0.5**2,
        "classifier.dense.weight": 1.0,
    }
    assert compute_layer_scales(names, 0.5, as_published=True) == names


def test_embeddings_of_a_model_without_layers_are_one_below_the_head() -> None:
    names = {"electra.embeddings.word_embeddings.weight": 0.5, "head.weight": 1.0}
    assert compute_layer_scales(names, 0.5) == names


def test_layer_numbers_with_two_digits() -> None:
    scales = compute_layer_scales([f"bert.encoder.layer.{layer}.x" for layer in range(12)], 0.9)
    assert list(scales.values()) == pytest.approx([0.9 ** (12 - layer) for layer in range(12)])
