"""Gradients in one flat tensor: views that stay, clipping as torch's, and sums over two real processes."""

from __future__ import annotations

import math
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from bioshards.train.optim.gradients import FlatGradients, trainable_parameters


class Net(nn.Module):
    """Embeddings that the last layer shares, a layer that is frozen, one that may be left out, odd sizes."""

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


def net() -> Net:
    torch.manual_seed(0)
    return Net()


IDS = torch.tensor([0, 3, 3, 6])


def assert_views(gradients: FlatGradients, model: nn.Module) -> None:
    inside = gradients.flat.untyped_storage().data_ptr()
    for name, parameter in trainable_parameters(model.named_parameters()).items():
        assert parameter.grad is not None, name
        assert parameter.grad.untyped_storage().data_ptr() == inside, name
        assert parameter.grad.shape == parameter.shape, name


def test_backward_adds_to_the_flat_tensor_and_zero_empties_it() -> None:
    ours, theirs = net(), net()
    gradients = FlatGradients(ours.named_parameters())
    assert_views(gradients, ours)
    for _ in range(2):
        gradients.zero()
        theirs.zero_grad()
        for part in (IDS[:2], IDS[2:]):  # micro-batches add up
            ours(part).backward()
            theirs(part).backward()
        assert_views(gradients, ours)
        for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
            if other.grad is not None:
                assert one.grad is not None
                assert torch.equal(one.grad, other.grad)
    gradients.zero()
    assert not gradients.flat.any()
    assert_views(gradients, ours)


def test_what_got_no_gradient_has_zeros_and_what_is_frozen_none() -> None:
    model = net()
    FlatGradients(model.named_parameters())
    model(IDS).backward()
    assert model.unused.weight.grad is not None
    assert not model.unused.weight.grad.any()
    assert model.frozen.weight.grad is None


def test_views_that_were_replaced_are_put_back() -> None:
    model = net()
    gradients = FlatGradients(model.named_parameters())
    model.zero_grad(set_to_none=True)
    gradients.zero()
    model(IDS).backward()
    assert_views(gradients, model)
    assert gradients.flat.any()


def test_parts_begin_where_kernels_like_it_and_do_not_overlap() -> None:
    model = net()
    gradients = FlatGradients(model.named_parameters())
    for at, parameter in enumerate(trainable_parameters(model.named_parameters()).values(), start=1):
        assert parameter.grad is not None
        assert parameter.grad.storage_offset() % 64 == 0
        parameter.grad.fill_(at)
    sizes = {at: int((gradients.flat == at).sum()) for at in range(1, 7)}
    assert sizes == {1: 21, 2: 9, 3: 3, 4: 15, 5: 5, 6: 7}
    assert int((gradients.flat == 0).sum()) == gradients.flat.numel() - 60


def test_shared_parameters_are_there_once_under_their_first_name() -> None:
    model = net()
    every = model.named_parameters(remove_duplicate=False)
    assert list(trainable_parameters(every)) == [
        *("embeddings.weight", "inner.weight", "inner.bias", "unused.weight", "unused.bias", "head.bias")
    ]
    gradients = FlatGradients(model.named_parameters(remove_duplicate=False))
    model(IDS).backward()
    norm = gradients.clip(1e9)
    other = net()
    other(IDS).backward()
    assert float(norm) == pytest.approx(float(nn.utils.clip_grad_norm_(other.parameters(), 1e9)), rel=1e-6)


@settings(derandomize=True, deadline=None, database=None)
@given(st.floats(1e-3, 1e3), st.floats(-6, 6))
def test_clipping_is_torchs(max_norm: float, magnitude: float) -> None:
    ours, theirs = net(), net()
    gradients = FlatGradients(ours.named_parameters())
    for model in (ours, theirs):
        (model(IDS) * 10**magnitude).backward()
    norm = gradients.clip(max_norm)
    torch.testing.assert_close(norm.float(), nn.utils.clip_grad_norm_(theirs.parameters(), max_norm))
    assert float(gradients.flat.norm()) <= max_norm * (1 + 1e-5)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        if other.grad is not None:
            torch.testing.assert_close(one.grad, other.grad)


def test_gradients_below_the_bound_keep_every_bit() -> None:
    model = net()
    gradients = FlatGradients(model.named_parameters())
    model(IDS).backward()
    before = gradients.flat.clone()
    norm = gradients.clip(float(before.norm()) * 1.01)
    assert torch.equal(gradients.flat, before)
    assert norm.shape == ()


def test_gradients_of_zero_stay_zero() -> None:
    gradients = FlatGradients(net().named_parameters())
    assert float(gradients.clip(1.0)) == 0
    assert not gradients.flat.any()


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["embeddings.weight", "head.bias"])
def test_the_norm_is_not_finite_where_one_gradient_is_not(value: float, name: str) -> None:
    model = net()
    gradients = FlatGradients(model.named_parameters())
    gradient = dict(model.named_parameters())[name].grad
    assert gradient is not None
    gradient.view(-1)[-1] = value
    assert not torch.isfinite(gradients.clip(1.0))
    gradients.zero()
    assert float(gradients.clip(1.0)) == 0


def test_the_norm_of_very_many_numbers_is_exact_and_of_large_ones_finite() -> None:
    parameter = nn.Parameter(torch.zeros(1 << 24))
    gradients = FlatGradients([("many", parameter)])
    gradients.flat.fill_(0.1)
    assert float(gradients.clip(1e9)) == pytest.approx(0.1 * 2**12, rel=1e-6)
    gradients.flat.fill_(1e30)
    assert float(gradients.clip(1.0)) == pytest.approx(1e30 * 2**12)
    assert float(gradients.flat[0]) == pytest.approx(2**-12)


def test_parameters_of_two_kinds_or_none_are_refused() -> None:
    half = [("a", nn.Parameter(torch.zeros(2))), ("b", nn.Parameter(torch.zeros(2, dtype=torch.float16)))]
    with pytest.raises(ValueError, match="must have one dtype and device"):
        FlatGradients(half)
    with pytest.raises(ValueError, match="not none"):
        FlatGradients(Net().requires_grad_(False).named_parameters())


def test_one_process_has_nothing_to_sum() -> None:
    model = net()
    gradients = FlatGradients(model.named_parameters())
    model(IDS).backward()
    before = gradients.flat.clone()
    gradients.all_reduce()
    assert torch.equal(gradients.flat, before)


PROCESS = """
import sys

import torch

from bioshards.train.optim.gradients import FlatGradients

rank, place = int(sys.argv[1]), sys.argv[2]
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{place}/meet", rank=rank, world_size=2)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Linear(2, 1))
gradients = FlatGradients(model.named_parameters())
inputs = torch.arange(12.0).view(4, 3)
model(inputs[2 * rank : 2 * rank + 2]).square().sum().backward()
gradients.all_reduce()
norm = gradients.clip(1.0)
torch.save({"norm": norm, "all": [one.grad for one in model.parameters()]}, f"{place}/{rank}.pt")
torch.distributed.destroy_process_group()
"""


def test_two_processes_have_the_gradients_of_one_with_both_batches(tmp_path: Path) -> None:
    running = [
        subprocess.Popen([sys.executable, "-c", PROCESS, str(rank), str(tmp_path)], stderr=subprocess.PIPE)
        for rank in range(2)
    ]
    for process in running:
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said.decode()

    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    gradients = FlatGradients(model.named_parameters())
    model(torch.arange(12.0).view(4, 3)).square().sum().backward()
    norm = gradients.clip(1.0)
    first, second = (torch.load(tmp_path / f"{rank}.pt", weights_only=True) for rank in range(2))
    torch.testing.assert_close(first["norm"], norm)
    assert torch.equal(first["norm"], second["norm"])
    for one, other, alone in zip(first["all"], second["all"], model.parameters(), strict=True):
        assert torch.equal(one, other)
        torch.testing.assert_close(one, alone.grad)
