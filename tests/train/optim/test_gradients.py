"""Gradients in one flat tensor: views and clipping."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from bioshards.train.optim import FlatGradients, trainable_parameters


class Net(nn.Module):
    """Model with tied embeddings, a frozen layer, an unused layer and odd sizes."""

    def __init__(self) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(7, 3)
        self.inner = nn.Linear(3, 3)
        self.unused = nn.Linear(3, 5)
        self.frozen = nn.Linear(3, 3).requires_grad_(False)
        self.head = nn.Linear(3, 7)
        self.head.weight = self.embeddings.weight

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.frozen(torch.tanh(self.inner(self.embeddings(ids)))))
        return logits.logsumexp(1).sum()


def make_net() -> Net:
    torch.manual_seed(0)
    return Net()


IDS = torch.tensor([0, 3, 3, 6])


def assert_views(gradients: FlatGradients, model: nn.Module) -> None:
    storage = gradients.flat.untyped_storage().data_ptr()
    for name, parameter in trainable_parameters(model.named_parameters()).items():
        assert parameter.grad is not None, name
        assert parameter.grad.untyped_storage().data_ptr() == storage, name
        assert parameter.grad.shape == parameter.shape, name


def test_backward_accumulates_in_the_flat_tensor_and_zero_clears_it() -> None:
    model, plain_model = make_net(), make_net()
    gradients = FlatGradients(model.named_parameters())
    assert_views(gradients, model)
    for _ in range(2):
        gradients.zero()
        plain_model.zero_grad()
        for micro_batch in (IDS[:2], IDS[2:]):  # micro-batches add up
            model(micro_batch).backward()
            plain_model(micro_batch).backward()
        assert_views(gradients, model)
        for parameter, plain_parameter in zip(model.parameters(), plain_model.parameters(), strict=True):
            if plain_parameter.grad is not None:
                assert parameter.grad is not None
                assert torch.equal(parameter.grad, plain_parameter.grad)
    gradients.zero()
    assert not gradients.flat.any()
    assert_views(gradients, model)


def test_unused_parameters_have_zero_and_frozen_ones_no_gradient() -> None:
    model = make_net()
    FlatGradients(model.named_parameters())
    model(IDS).backward()
    assert model.unused.weight.grad is not None
    assert not model.unused.weight.grad.any()
    assert model.frozen.weight.grad is None


def test_replaced_views_are_restored() -> None:
    model = make_net()
    gradients = FlatGradients(model.named_parameters())
    model.zero_grad(set_to_none=True)
    gradients.zero()
    model(IDS).backward()
    assert_views(gradients, model)
    assert gradients.flat.any()


def test_gradients_are_aligned_and_do_not_overlap() -> None:
    model = make_net()
    gradients = FlatGradients(model.named_parameters())
    for number, parameter in enumerate(trainable_parameters(model.named_parameters()).values(), start=1):
        assert parameter.grad is not None
        assert parameter.grad.storage_offset() % 64 == 0
        parameter.grad.fill_(number)
    sizes = {number: int((gradients.flat == number).sum()) for number in range(1, 7)}
    assert sizes == {1: 21, 2: 9, 3: 3, 4: 15, 5: 5, 6: 7}
    assert int((gradients.flat == 0).sum()) == gradients.flat.numel() - 60


def test_shared_parameters_occur_once_under_their_first_name() -> None:
    model = make_net()
    named = model.named_parameters(remove_duplicate=False)
    assert list(trainable_parameters(named)) == [
        *("embeddings.weight", "inner.weight", "inner.bias", "unused.weight", "unused.bias", "head.bias")
    ]
    gradients = FlatGradients(model.named_parameters(remove_duplicate=False))
    model(IDS).backward()
    norm = gradients.clip(1e9)
    other_model = make_net()
    other_model(IDS).backward()
    assert float(norm) == pytest.approx(
        float(nn.utils.clip_grad_norm_(other_model.parameters(), 1e9)), rel=1e-6
    )


@given(st.floats(1e-3, 1e3), st.floats(-6, 6))
def test_clipping_equals_that_of_torch(max_norm: float, magnitude: float) -> None:
    clipped_model, plain_model = make_net(), make_net()
    gradients = FlatGradients(clipped_model.named_parameters())
    for model in (clipped_model, plain_model):
        (model(IDS) * 10**magnitude).backward()
    norm = gradients.clip(max_norm)
    torch.testing.assert_close(norm.float(), nn.utils.clip_grad_norm_(plain_model.parameters(), max_norm))
    assert float(gradients.flat.norm()) <= max_norm * (1 + 1e-5)
    for parameter, plain_parameter in zip(clipped_model.parameters(), plain_model.parameters(), strict=True):
        if plain_parameter.grad is not None:
            torch.testing.assert_close(parameter.grad, plain_parameter.grad)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["embeddings.weight", "head.bias"])
def test_norm_is_not_finite_if_a_gradient_is_not(value: float, name: str) -> None:
    model = make_net()
    gradients = FlatGradients(model.named_parameters())
    gradient = dict(model.named_parameters())[name].grad
    assert gradient is not None
    gradient.view(-1)[-1] = value
    assert not torch.isfinite(gradients.clip(1.0))
    gradients.zero()
    assert float(gradients.clip(1.0)) == 0


def test_norm_of_many_and_of_large_numbers() -> None:
    parameter = nn.Parameter(torch.zeros(1 << 24))
    gradients = FlatGradients([("many", parameter)])
    gradients.flat.fill_(0.1)
    assert float(gradients.clip(1e9)) == pytest.approx(0.1 * 2**12, rel=1e-6)
    gradients.flat.fill_(1e30)
    assert float(gradients.clip(1.0)) == pytest.approx(1e30 * 2**12)
    assert float(gradients.flat[0]) == pytest.approx(2**-12)


def test_norm_copies_few_gradients_at_once() -> None:
    gradients = FlatGradients([("many", nn.Parameter(torch.zeros(3 << 22)))])
    gradients.flat[:: 1 << 20] = 2.0
    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True
    ) as profile:
        assert float(gradients.clip(1e9)) == 2.0 * 12**0.5
    assert max(event.cpu_memory_usage for event in profile.events()) <= 8 << 22


def test_gradients_of_a_scaled_loss_are_unscaled() -> None:
    scaled, plain = (FlatGradients(make_net().named_parameters()) for _ in range(2))
    values = torch.randn(len(plain.flat), generator=torch.Generator().manual_seed(0))
    plain.flat.copy_(values)
    scaled.flat.copy_(values * 2.0**12)
    assert scaled.clip(1.0, 2.0**12) == plain.clip(1.0)
    torch.testing.assert_close(scaled.flat, plain.flat, rtol=1e-6, atol=0)


def test_mixed_dtypes_or_no_parameters_are_refused() -> None:
    half = [("a", nn.Parameter(torch.zeros(2))), ("b", nn.Parameter(torch.zeros(2, dtype=torch.float16)))]
    with pytest.raises(ValueError, match="must have one dtype and device"):
        FlatGradients(half)
    with pytest.raises(ValueError, match="not none"):
        FlatGradients(Net().requires_grad_(False).named_parameters())
