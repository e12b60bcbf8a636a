"""Attention of flat batches: the layout changes nothing, and no row sees another."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bioshards.train.models import attention
from tests.support.train.synthetic_batches import (
    CLS,
    FAMILIES,
    LENGTH,
    LENGTHS,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    make_padded_batch,
    random_masked_rows,
    total_loss,
)


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_and_every_gradient_are_the_same_in_every_layout(family: str) -> None:
    given_rows = random_masked_rows(1)
    found: dict[str, tuple[Tensor, dict[str, Tensor]]] = {}
    for name, batch in make_batch_of_each_layout(given_rows).items():
        model = make_objective(family)
        value = total_loss(model, batch, given_rows)
        value.backward()  # type: ignore[no-untyped-call]
        gradients = {key: part.grad for key, part in model.named_parameters() if part.grad is not None}
        found[name] = value.detach(), gradients
    value, gradients = found.pop("padded")
    for name, (other, theirs) in found.items():
        torch.testing.assert_close(other, value, rtol=1e-6, atol=0, msg=name)
        assert theirs.keys() == gradients.keys()
        for key, gradient in gradients.items():
            scale = max(1e-3, gradient.abs().max().item())
            assert (theirs[key] - gradient).abs().max().item() < 1e-5 * scale, f"{name}: {key}"


@pytest.mark.parametrize("family", FAMILIES)
def test_every_sum_is_the_same_in_every_layout(family: str) -> None:
    model = make_objective(family)
    with torch.no_grad():
        found = [model(batch) for batch in make_batch_of_each_layout(random_masked_rows(2)).values()]
    for sums in found[1:]:
        assert sums.keys() == found[0].keys()
        for name, value in sums.items():
            torch.testing.assert_close(value, found[0][name], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant"])
def test_no_row_sees_another(family: str, layout: str) -> None:
    encoder, given_rows = make_objective(family).encoder, random_masked_rows(3)
    other_ids = (CLS, *(token % 50 + 6 for token in given_rows[2].ids[1:]))
    changed = [*given_rows[:2], replace(given_rows[2], ids=other_ids, masked={}, noise=()), *given_rows[3:]]
    one, two = make_batch_of_each_layout(given_rows)[layout], make_batch_of_each_layout(changed)[layout]
    with torch.no_grad():
        before, after = attention.encode(encoder, one), attention.encode(encoder, two)
    row = torch.repeat_interleave(torch.arange(len(LENGTHS)), torch.tensor(LENGTHS))
    before, after = before[one.is_token], after[two.is_token]
    assert torch.equal(before[row != 2], after[row != 2])
    assert not torch.isclose(before[row == 2], after[row == 2]).any(-1).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_it_is_the_attention_of_the_library(family: str) -> None:
    encoder, given_rows = make_objective(family).encoder.train(False), random_masked_rows(4)
    batch = make_padded_batch(given_rows)
    with torch.no_grad():
        ours = attention.encode(encoder, batch)[batch.is_token]
        encoder.set_attn_implementation("eager")
        shape = (len(given_rows), LENGTH)
        theirs = encoder(
            batch.ids.view(shape),
            attention_mask=batch.is_token.view(shape),
            token_type_ids=batch.token_type_ids.view(shape),
        ).last_hidden_state
    torch.testing.assert_close(ours, theirs.flatten(0, 1)[batch.is_token], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("layout", ["flat", "padded"])
def test_attention_drops_out_in_training_and_only_there(layout: str) -> None:
    encoder = make_objective("electra", attention_dropout=0.5).encoder
    batch = make_batch_of_each_layout(random_masked_rows(5))[layout]

    def encoded(seed: int) -> Tensor:
        torch.manual_seed(seed)
        with torch.no_grad():
            return attention.encode(encoder, batch)[batch.is_token]

    assert torch.equal(encoded(1), encoded(1))
    assert not torch.allclose(encoded(1), encoded(2))
    encoder.train(False)
    assert torch.equal(encoded(1), encoded(2))


def test_dropped_probabilities_are_made_up_for_by_the_others() -> None:
    batch = make_flat_batch(random_masked_rows(6, lengths=(12, 5)))
    query, key, value = torch.randn(3, 1, 2, 17, 8)
    segments = attention.build_segments(batch)
    module = torch.nn.Module()
    torch.manual_seed(0)
    whole, _ = attention.attend(module, query, key, value, None, segments=segments)
    many = [
        attention.attend(module, query, key, value, None, dropout=0.3, segments=segments)[0]
        for _ in range(3000)
    ]
    assert (torch.stack(many).mean(0) - whole).abs().max().item() < 0.1


def test_embeddings_can_be_given_instead_of_ids() -> None:
    for family in FAMILIES:
        encoder, batch = make_objective(family).encoder, make_flat_batch(random_masked_rows(7))
        with torch.no_grad():
            words = encoder.get_input_embeddings()(batch.ids)
            assert torch.equal(attention.encode(encoder, batch, words), attention.encode(encoder, batch))


@settings(max_examples=40, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 25), st.integers(0, 3))
def test_tokens_go_to_their_segments_and_come_back(sizes: list[int], fill: int, empty: int) -> None:
    """The map of a batch as one draws it: also with padding, and with segments of nothing."""
    ends = [*sizes, *[9] * (fill // 9), *([fill % 9] if fill % 9 else []), *[0] * empty]
    bounds = torch.tensor([0, *ends]).cumsum(0).to(torch.int32)
    tokens = int(bounds[-1])
    batch = make_flat_batch(random_masked_rows(0))._replace(
        ids=torch.zeros(tokens, dtype=torch.int64), cu_seqlens=bounds, max_seqlen=9
    )
    found = attention.build_segments(batch)
    assert found.pad_index is not None
    assert found.unpad_index is not None
    assert found.pad_index[found.unpad_index].tolist() == list(range(tokens))
    keys = found.key_mask[:, 0, 0]
    assert keys.sum(1).tolist() == [max(1, size) for size in ends]
    expected = [
        token
        for begin, size in zip(bounds.tolist(), ends, strict=False)
        for token in range(begin, begin + size)
    ]
    assert found.pad_index.view(-1, 9)[keys & (torch.tensor(ends)[:, None] > 0)].tolist() == expected
