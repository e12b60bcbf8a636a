"""Adam and LAMB against loops over single numbers, written from the papers' formulas."""

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

from bioshards.train.optim.optimizers import Adam, Lamb, OptimizerStateError, compute_layer_scales

Numbers = list[float]
DECAYED = {"dense": (3, 4), "embedding": (5, 2)}
OTHERS = {"bias": (4,), "norm": (2,)}


def parameters(dtype: torch.dtype = torch.float64, seed: int = 0) -> dict[str, nn.Parameter]:
    chance = torch.Generator().manual_seed(seed)
    shapes: dict[str, tuple[int, ...]] = {**DECAYED, **OTHERS}
    return {
        name: nn.Parameter(torch.randn(shape, generator=chance, dtype=dtype))
        for name, shape in shapes.items()
    }


def gradients(of: Mapping[str, nn.Parameter], step: int) -> dict[str, Tensor]:
    """Of very different sizes, by parameter and by step; some numbers are 0."""
    chance = torch.Generator().manual_seed(1000 + step)
    found = {}
    for at, (name, parameter) in enumerate(of.items()):
        drawn = torch.randn(parameter.shape, generator=chance, dtype=parameter.dtype)
        found[name] = drawn.where(drawn.abs() > 0.3, 0) * 10.0 ** ((at + step) % 5 - 3)
    return found


def take(of: Mapping[str, nn.Parameter], optimiser: Adam, steps: Sequence[int], lr: float = 0.01) -> None:
    for step in steps:
        for name, gradient in gradients(of, step).items():
            of[name].grad = gradient
        optimiser.step(lr * (1 + step % 3))


def reference(
    steps: int,
    weight_decay: float = 0.01,
    lamb: bool = False,
    corrected: bool = False,
    scales: Mapping[str, float] | None = None,
) -> dict[str, Numbers]:
    """The same steps, number by number.

    m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  u = m / (sqrt(v) + eps), of m and v over (1 - b^t) where
    corrected;  u += wd w for what decays;  LAMB: r = |w| / |u| where both are above 0;  w -= lr r u.
    """
    b1, b2, eps = 0.9, 0.999, 1e-6
    models = parameters()
    shown: dict[str, Numbers] = {name: one.detach().flatten().tolist() for name, one in models.items()}
    first = {name: [0.0] * len(one) for name, one in shown.items()}
    second = {name: [0.0] * len(one) for name, one in shown.items()}
    for step in range(steps):
        lr = 0.01 * (1 + step % 3)
        for name, tensor in gradients(models, step).items():
            weights, m, v = shown[name], first[name], second[name]
            update = []
            for i, g in enumerate(tensor.flatten().tolist()):
                m[i] = b1 * m[i] + (1 - b1) * g
                v[i] = b2 * v[i] + (1 - b2) * g * g
                up, down = m[i], v[i]
                if corrected:
                    up /= 1 - b1 ** (step + 1)
                    down /= 1 - b2 ** (step + 1)
                decay = weight_decay * weights[i] if name in DECAYED else 0.0
                update.append(up / (math.sqrt(down) + eps) + decay)
            ratio = 1.0
            if lamb and name in DECAYED:
                of_weights, of_update = (math.sqrt(sum(x * x for x in one)) for one in (weights, update))
                if of_weights > 0 and of_update > 0:
                    ratio = of_weights / of_update
            for i in range(len(weights)):
                weights[i] -= lr * (scales or {}).get(name, 1.0) * ratio * update[i]
    return shown


def assert_same(
    of: Mapping[str, nn.Parameter], expected: Mapping[str, Numbers], within: float = 1e-12
) -> None:
    for name, parameter in of.items():
        assert parameter.detach().flatten().tolist() == pytest.approx(expected[name], rel=within, abs=within)


def assert_equal(ours: Mapping[str, nn.Parameter], theirs: Mapping[str, nn.Parameter]) -> None:
    for name in ours:
        assert torch.equal(ours[name], theirs[name]), name


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01, 0.5])
def test_adam_is_its_formula(weight_decay: float, corrected: bool) -> None:
    ours = parameters()
    adam = Adam(ours.items(), weight_decay=weight_decay, bias_correction=corrected)
    take(ours, adam, range(20))
    assert_same(ours, reference(20, weight_decay, corrected=corrected))


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_lamb_is_its_formula(weight_decay: float, corrected: bool) -> None:
    ours = parameters()
    take(ours, Lamb(ours.items(), weight_decay=weight_decay, bias_correction=corrected), range(20))
    assert_same(ours, reference(20, weight_decay, lamb=True, corrected=corrected))


@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_scales_multiply_the_learning_rate(kind: type[Adam]) -> None:
    ours = parameters()
    scales = {"dense": 0.5, "embedding": 0.1, "bias": 2.0, "norm": 0.0}
    take(ours, kind(ours.items(), lr_scales=scales), range(20))
    assert_same(ours, reference(20, lamb=kind is Lamb, scales=scales))
    assert torch.equal(ours["norm"], parameters()["norm"])


def test_with_bias_correction_adam_is_torchs() -> None:
    ours, theirs = parameters(), parameters()
    groups = [
        {"params": [theirs[name] for name in DECAYED], "weight_decay": 0.1},
        {"params": [theirs[name] for name in OTHERS], "weight_decay": 0.0},
    ]
    peer = torch.optim.AdamW(groups, lr=0.01, eps=1e-6)
    adam = Adam(ours.items(), weight_decay=0.1, bias_correction=True)
    for step in range(20):
        for name, gradient in gradients(ours, step).items():
            ours[name].grad, theirs[name].grad = gradient, gradient
        adam.step(0.01)
        peer.step()
    for name in ours:
        torch.testing.assert_close(ours[name], theirs[name], rtol=1e-12, atol=1e-12)


def test_in_float32_adam_is_near_its_formula() -> None:
    ours = parameters()
    single = {name: nn.Parameter(one.detach().float()) for name, one in ours.items()}
    adam = Adam(single.items())
    for step in range(20):
        for name, gradient in gradients(ours, step).items():
            single[name].grad = gradient.float()
        adam.step(0.01 * (1 + step % 3))
    assert_same(single, reference(20), within=1e-5)


@pytest.mark.parametrize(("weight", "gradient"), [(0.0, 1.0), (1.0, 0.0), (0.0, 0.0)])
def test_where_a_norm_is_0_lamb_is_adam(weight: float, gradient: float) -> None:
    ours, theirs = (nn.Parameter(torch.full((2, 3), weight)) for _ in range(2))
    for kind, parameter in ((Lamb, ours), (Adam, theirs)):
        optimiser = kind([("one", parameter)], weight_decay=0.0)
        for _ in range(3):
            parameter.grad = torch.full((2, 3), gradient)
            optimiser.step(0.1)
            if gradient:
                break  # the weight is not 0 any more
    assert torch.isfinite(ours).all()
    assert torch.equal(ours, theirs)


def test_lambs_first_step_is_as_long_as_the_parameter() -> None:
    weight = nn.Parameter(torch.tensor([[3.0, 4.0]], dtype=torch.float64))
    weight.grad = torch.tensor([[1e-3, 1e3]], dtype=torch.float64)
    before = weight.detach().clone()
    Lamb([("one", weight)]).step(0.01)
    assert float((weight.detach() - before).norm()) == pytest.approx(0.01 * 5)


@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_parameters_of_one_dimension_only_do_not_decay(kind: type[Adam]) -> None:
    ours = parameters()
    optimiser = kind(ours.items(), weight_decay=0.1)
    for parameter in ours.values():
        parameter.grad = torch.zeros_like(parameter)
    optimiser.step(0.5)
    before = parameters()
    for name in OTHERS:
        assert torch.equal(ours[name], before[name])
    for name in DECAYED:
        # LAMB makes the decay, an update like another, as large as the parameter.
        torch.testing.assert_close(ours[name], before[name] * (0.95 if kind is Adam else 0.5))


@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_a_frozen_parameter_is_left_alone(kind: type[Adam]) -> None:
    ours = parameters()
    ours["dense"].requires_grad_(False)
    ours["dense"].grad = torch.ones_like(ours["dense"])
    optimiser = kind(ours.items())
    for name in ("embedding", "bias", "norm"):
        ours[name].grad = torch.ones_like(ours[name])
    optimiser.step(0.1)
    assert torch.equal(ours["dense"], parameters()["dense"])
    assert not torch.equal(ours["embedding"], parameters()["embedding"])
    assert list(optimiser.state_dict()["first"]) == ["embedding", "bias", "norm"]


def test_a_shared_parameter_is_updated_once() -> None:
    ours, theirs = parameters(), parameters()
    take(ours, Adam([*ours.items(), ("tied", ours["embedding"])]), range(3))
    take(theirs, Adam(theirs.items()), range(3))
    assert_equal(ours, theirs)


def test_a_model_of_biases_only_can_be_trained_by_lamb() -> None:
    ours, theirs = (nn.Parameter(torch.ones(3)) for _ in range(2))
    ours.grad = theirs.grad = torch.tensor([1.0, -1.0, 0.0])
    Lamb([("bias", ours)]).step(0.1)
    Adam([("bias", theirs)]).step(0.1)
    assert torch.equal(ours, theirs)


def test_a_parameter_without_a_gradient_is_named() -> None:
    ours = parameters()
    adam = Adam(ours.items())
    ours["dense"].grad = torch.ones_like(ours["dense"])
    with pytest.raises(ValueError, match="parameter embedding has no gradient; freeze it"):
        adam.step(0.1)


@pytest.mark.parametrize("corrected", [False, True])
@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_ten_steps_saved_and_ten_more_are_twenty_to_the_bit(
    tmp_path: Path, kind: type[Adam], corrected: bool
) -> None:
    whole = parameters(torch.float32)
    take(whole, kind(whole.items(), bias_correction=corrected), range(20))

    begun = parameters(torch.float32)
    first = kind(begun.items(), bias_correction=corrected)
    take(begun, first, range(10))
    torch.save(first.state_dict(), tmp_path / "state.pt")
    ended = copy.deepcopy(begun)
    second = kind(ended.items(), bias_correction=corrected)
    second.load_state_dict(torch.load(tmp_path / "state.pt", weights_only=True))
    take(ended, second, range(10, 20))
    assert_equal(whole, ended)
    assert second.state_dict()["steps"] == 20


def test_a_loaded_state_is_a_copy_on_the_parameters_own_device() -> None:
    ours = parameters()
    adam = Adam(ours.items())
    take(ours, adam, range(2))
    state = copy.deepcopy(adam.state_dict())
    other = Adam(parameters().items())
    places = [one.data_ptr() for one in other.state_dict()["first"].values()]
    other.load_state_dict(state)
    assert [one.data_ptr() for one in other.state_dict()["first"].values()] == places
    for moment in ("first", "second"):
        for name, tensor in state[moment].items():
            assert torch.equal(other.state_dict()[moment][name], tensor)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
@pytest.mark.parametrize("kind", [Adam, Lamb])
def test_a_state_from_the_cpu_goes_on_on_a_gpu(kind: type[Adam]) -> None:
    ours = parameters()
    optimiser = kind(ours.items())
    take(ours, optimiser, range(3))
    moved = {name: nn.Parameter(one.detach().cuda()) for name, one in ours.items()}
    on_gpu = kind(moved.items())
    on_gpu.load_state_dict(optimiser.state_dict())
    for name, gradient in gradients(ours, 3).items():
        ours[name].grad, moved[name].grad = gradient, gradient.cuda()
    optimiser.step(0.1)
    on_gpu.step(0.1)
    for name in ours:
        torch.testing.assert_close(moved[name].cpu(), ours[name])


def changed(change: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
    state = copy.deepcopy(Adam(parameters().items()).state_dict())
    change(state)
    return state


@pytest.mark.parametrize(
    ("state", "said"),
    [
        (changed(lambda s: s["first"].pop("bias")), r"1 parameters missing \(bias"),
        (changed(lambda s: s["second"].update(more=torch.ones(1))), r"1 parameters unexpected \(more"),
        (
            changed(lambda s: s["first"].update(dense=torch.ones(4, 4, dtype=torch.float64))),
            r"dense is float64\[4, 4\], not float64\[3, 4\]",
        ),
        (changed(lambda s: s["second"].update(norm=torch.ones(2))), r"norm is float32\[2\], not float64"),
        ({"state": {}, "param_groups": []}, "4 parameters missing"),
    ],
)
def test_another_models_state_is_refused_and_changes_nothing(state: dict[str, Any], said: str) -> None:
    ours = parameters()
    adam = Adam(ours.items())
    take(ours, adam, range(2))
    before = copy.deepcopy(adam.state_dict())
    with pytest.raises(OptimizerStateError, match=said):
        adam.load_state_dict(state)
    after = adam.state_dict()
    assert after["steps"] == before["steps"] == 2
    for moment in ("first", "second"):
        assert all(torch.equal(after[moment][name], one) for name, one in before[moment].items())


@pytest.fixture(scope="module")
def models() -> dict[str, nn.Module]:
    """Tiny models of the library itself, of three layers, and of ALBERT with three groups besides."""
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


def depth(name: str, layers: int) -> int:
    """As google-research/electra counts, without its gap below the head."""
    for layer in range(layers):
        if f"layer.{layer}." in name or f"layer_groups.{layer}." in name:
            return layer + 1
    return 0 if "embedding" in name else layers + 1


@pytest.mark.parametrize("kind", LAYERS)
def test_learning_rates_decay_layer_by_layer_from_the_head_down(
    models: dict[str, nn.Module], kind: str
) -> None:
    names = [name for name, _ in models[kind].named_parameters()]
    layers = LAYERS[kind]
    scales = compute_layer_scales(names, 0.8)
    assert list(scales) == names
    for name, scale in scales.items():
        assert scale == pytest.approx(0.8 ** (layers + 1 - depth(name, layers))), name
    assert {depth(name, layers) for name in names} >= set(range(layers + 1))


@pytest.mark.parametrize("kind", LAYERS)
def test_as_published_there_is_one_more_power_below_the_head(models: dict[str, nn.Module], kind: str) -> None:
    names = [name for name, _ in models[kind].named_parameters()]
    plain, published = compute_layer_scales(names, 0.8), compute_layer_scales(names, 0.8, as_published=True)
    for name in names:
        head = depth(name, LAYERS[kind]) == LAYERS[kind] + 1
        assert published[name] == pytest.approx(1 if head else 0.8 * plain[name]), name


def test_electras_scales_are_those_of_the_published_formula() -> None:
    """The power is n + 2 - depth: embeddings and their projection have 0, layer k k + 1, the head n + 2."""
    names = {
        "electra.embeddings.word_embeddings.weight": 0.5**5,
        "electra.embeddings_project.weight": 0.5**5,
        "electra.encoder.layer.0.attention.self.query.weight": 0.5**4,
        "electra.encoder.layer.2.output.LayerNorm.bias": 0.5**2,
        "classifier.dense.weight": 1.0,
    }
    assert compute_layer_scales(names, 0.5, as_published=True) == names


def test_a_tenth_layer_is_not_the_first() -> None:
    scales = compute_layer_scales([f"bert.encoder.layer.{layer}.x" for layer in range(12)], 0.9)
    assert list(scales.values()) == pytest.approx([0.9 ** (12 - layer) for layer in range(12)])


def test_tied_weights_have_the_scale_of_the_embeddings(models: dict[str, nn.Module]) -> None:
    named = dict(models["generator"].named_parameters())
    assert "generator_lm_head.weight" not in named
    assert compute_layer_scales(named, 0.5)["electra.embeddings.word_embeddings.weight"] == 0.5**4
