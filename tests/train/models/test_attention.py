"""Attention of flat batches: equal results in all layouts, and separation of rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bioshards.train.models import attention
from tests.support.hypothesis_profiles import examples
from tests.support.train.synthetic_batches import (
    CLS,
    FAMILIES,
    LENGTHS,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    random_masked_rows,
    run_dense,
    total_loss,
)


@pytest.mark.parametrize("family", FAMILIES)
def test_losses_metrics_and_gradients_are_equal_in_all_layouts(family: str) -> None:
    rows = random_masked_rows(1)
    results: dict[str, tuple[dict[str, Tensor], dict[str, Tensor]]] = {}
    for name, batch in make_batch_of_each_layout(rows).items():
        model = make_objective(family)
        sums = model(batch)
        model.compute_loss(sums, count_rows(rows)._asdict()).backward()  # type: ignore[no-untyped-call]
        gradients = {key: part.grad for key, part in model.named_parameters() if part.grad is not None}
        results[name] = sums, gradients
    sums, gradients = results.pop("padded")
    for name, (other_sums, other_gradients) in results.items():
        torch.testing.assert_close(other_sums, sums, rtol=1e-6, atol=1e-6, msg=name)
        assert other_gradients.keys() == gradients.keys()
        for key, gradient in gradients.items():
            scale = max(1e-3, gradient.abs().max().item())
            assert (other_gradients[key] - gradient).abs().max().item() < 1e-5 * scale, f"{name}: {key}"


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant"])
def test_rows_do_not_attend_to_each_other(family: str, layout: str) -> None:
    encoder, rows = make_objective(family).encoder, random_masked_rows(3)
    other_ids = (CLS, *(token % 50 + 6 for token in rows[2].ids[1:]))
    changed_rows = [*rows[:2], replace(rows[2], ids=other_ids, masked={}, noise=()), *rows[3:]]
    batch, changed_batch = (make_batch_of_each_layout(text)[layout] for text in (rows, changed_rows))
    with torch.no_grad():
        before, after = attention.encode(encoder, batch), attention.encode(encoder, changed_batch)
    row_numbers = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    before, after = before[batch.is_token], after[changed_batch.is_token]
    assert torch.equal(before[row_numbers != 2], after[row_numbers != 2])
    assert not torch.isclose(before[row_numbers == 2], after[row_numbers == 2]).any(-1).all()


@pytest.mark.parametrize("layout", ["flat", "padded"])
def test_attention_dropout_applies_only_in_training(layout: str) -> None:
    encoder = make_objective("electra", attention_dropout=0.5).encoder
    batch = make_batch_of_each_layout(random_masked_rows(5))[layout]

    def encode_with_seed(seed: int) -> Tensor:
        torch.manual_seed(seed)
        with torch.no_grad():
            return attention.encode(encoder, batch)[batch.is_token]

    assert torch.equal(encode_with_seed(1), encode_with_seed(1))
    assert not torch.allclose(encode_with_seed(1), encode_with_seed(2))
    encoder.train(False)
    assert torch.equal(encode_with_seed(1), encode_with_seed(2))


@settings(max_examples=examples(40))
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 25), st.integers(0, 3))
def test_pad_and_unpad_indices_are_inverse(sizes: list[int], num_padding: int, num_empty: int) -> None:
    """Compare the index maps with a plain computation, with padding and empty segments."""
    segment_sizes = [*sizes, *[9] * (num_padding // 9), num_padding % 9, *[0] * num_empty]
    bounds = torch.tensor([0, *segment_sizes]).cumsum(0).to(torch.int32)
    tokens = int(bounds[-1])
    batch = make_flat_batch(random_masked_rows(0))._replace(
        ids=torch.zeros(tokens, dtype=torch.int64), cu_seqlens=bounds, max_seqlen=9
    )
    segments = attention.build_segments(batch)
    assert segments.pad_index[segments.unpad_index].tolist() == list(range(tokens))
    keys = segments.key_mask[:, 0, 0]
    assert keys.sum(1).tolist() == [max(1, size) for size in segment_sizes]
    expected = [
        token
        for begin, size in zip(bounds.tolist(), segment_sizes, strict=False)
        for token in range(begin, begin + size)
    ]
    assert (
        segments.pad_index.view(-1, 9)[keys & (torch.tensor(segment_sizes)[:, None] > 0)].tolist() == expected
    )


# Kernels of GPUs


@pytest.mark.parametrize(("family", "kernel"), [("electra", "flash"), ("albert", "efficient")])
def test_kernels_have_the_losses_and_gradients_of_padded_attention(
    family: str, kernel: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With padding, segments that only fill a constant size, and empty segments."""
    rows = random_masked_rows(1)
    results = []
    for name in (kernel, "padded"):
        monkeypatch.setattr(attention, "forced_kernel", name)
        monkeypatch.setattr(attention, f"_run_{kernel}", run_dense)
        model = make_objective(family)
        loss = total_loss(model, make_flat_batch(rows, tokens=448, masked=32), rows)
        loss.backward()  # type: ignore[no-untyped-call]
        gradients = [part.grad for part in model.parameters() if part.grad is not None]
        results.append((loss.detach(), torch.cat([gradient.flatten() for gradient in gradients])))
    torch.testing.assert_close(*results, rtol=1e-4, atol=1e-5)


def test_padded_attention_leaves_out_segments_that_fill_a_constant_size() -> None:
    rows = random_masked_rows(1)
    batch = make_flat_batch(rows, tokens=448)
    segments = attention.build_segments(batch)
    assert len(batch.cu_seqlens) - 1 == len(rows) + 13
    assert len(segments.key_mask) == len(rows) + 4  # 128 tokens of padding, in segments of 40
    is_token = batch.is_token.nonzero()[:, 0]
    assert torch.equal(segments.pad_index[segments.unpad_index][is_token], is_token)


@pytest.mark.parametrize("run", [attention._run_flash, attention._run_efficient])
def test_kernels_of_this_torch_accept_the_arguments(run: Callable[..., Tensor]) -> None:
    """On the device "meta" operations check their arguments and compute shapes only."""
    query, key, value = (
        torch.empty(303, 2, 64, dtype=torch.float16, device="meta", requires_grad=True) for _ in range(3)
    )
    output = run(query, key, value, torch.empty(9, dtype=torch.int32, device="meta"), 128, 0.1)
    assert (output.shape, output.dtype) == (query.shape, query.dtype)
    output.sum().backward()  # type: ignore[no-untyped-call]
    for tensor in (query, key, value):
        assert tensor.grad is not None
        assert tensor.grad.shape == tensor.shape


def test_kernel_is_chosen_by_device_and_precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (9, 0))
    gpu, cpu = torch.device("cuda:0"), torch.device("cpu")
    assert attention.choose_kernel(gpu, torch.bfloat16, 64) == "flash"
    assert attention.choose_kernel(gpu, torch.float32, 64) == "efficient"
    for head_size in (20, 264):  # sizes that the kernels do not take
        assert attention.choose_kernel(gpu, torch.bfloat16, head_size) == "padded"
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda _: (7, 5))
    assert attention.choose_kernel(gpu, torch.float16, 64) == "efficient"
    assert attention.choose_kernel(cpu, torch.bfloat16, 64) == "padded"
    assert attention.choose_kernels(make_objective("electra"), cpu, torch.float32) == "padded"


@pytest.mark.thorough
def test_compiled_attention_does_not_trace_the_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The choice asks the device, and must not become part of the compiled graph."""
    batch = make_flat_batch(random_masked_rows(6))
    segments = attention.build_segments(batch)
    query, key, value = torch.randn(3, 1, 2, len(batch.ids), 16)

    def choose(*_args: object) -> str:
        assert type(torch.zeros(1)) is Tensor  # neither traced nor fake
        return "padded"

    constant: Any = torch.compiler.assume_constant_result  # its annotations are missing
    monkeypatch.setattr(attention, "choose_kernel", constant(choose))
    attend = torch.compile(attention.attend, dynamic=False, backend="eager", fullgraph=True)
    output, _ = attend(torch.nn.Module(), query, key, value, None, segments=segments)
    expected, _ = attention.attend(torch.nn.Module(), query, key, value, None, segments=segments)
    assert torch.equal(output, expected)
