"""The ELECTRA objective, compared with the formulas of its paper, and invariants."""

from __future__ import annotations

import math
import operator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import ElectraForMaskedLM, ElectraForPreTraining

from bioshards.train.models import attention
from bioshards.train.models.objectives import ElectraObjective, corrupt, sample_tokens
from tests.support.hypothesis_profiles import examples
from tests.support.train.synthetic_batches import (
    MASK,
    VOCABULARY,
    DatasetInfo,
    MaskedRow,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    random_masked_rows,
    total_loss,
)


def make_electra_objective(dropout: float = 0.0) -> ElectraObjective:
    objective = make_objective("electra", dropout=dropout)
    assert isinstance(objective, ElectraObjective)
    return objective


# The paper's formulas


def compute_paper_losses(
    generator: ElectraForMaskedLM,
    discriminator: ElectraForPreTraining,
    text: MaskedRow,
    drawn_tokens: list[int],
) -> tuple[float, float]:
    """Compute L_MLM and L_Disc of section 2 for one text x, as sums over positions."""
    x = list(text.ids)
    masked_positions = sorted(text.masked)
    x_masked = [text.masked.get(t, token) for t, token in enumerate(x)]
    types_tensor = torch.tensor([[int(0 < text.split <= t) for t in range(len(x))]])

    # p_G(x_t | x) = exp(e(x_t)^T h_G(x)_t) / sum over x' of exp(e(x')^T h_G(x)_t)
    generator_logits = generator(torch.tensor([x_masked]), token_type_ids=types_tensor).logits[0].double()
    l_mlm = 0.0
    for t in masked_positions:
        normalizer = sum(math.exp(float(generator_logits[t, token])) for token in range(VOCABULARY))
        l_mlm += -math.log(math.exp(float(generator_logits[t, x[t]])) / normalizer)

    # x_corrupt = REPLACE(x, m, x^), x^_t drawn from p_G(x_t | x_masked)
    x_corrupt = list(x)
    for t, token in zip(masked_positions, drawn_tokens, strict=True):
        x_corrupt[t] = token

    # D(x_corrupt, t) = sigmoid(w^T h_D(x_corrupt)_t)
    discriminator_logits = discriminator(torch.tensor([x_corrupt]), token_type_ids=types_tensor).logits[0]
    discriminator_logits = discriminator_logits.double()
    l_disc = 0.0
    for t in range(len(x)):
        probability = 1 / (1 + math.exp(-float(discriminator_logits[t])))
        l_disc += -math.log(1 - probability if x_corrupt[t] == x[t] else probability)
    return l_mlm, l_disc


@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant"])
def test_losses_equal_the_formulas_of_the_paper(layout: str) -> None:
    rows, model = random_masked_rows(11), make_electra_objective().eval()
    with torch.no_grad():
        batch = make_batch_of_each_layout(rows)[layout]
        sums = model(batch)
        total = total_loss(model, batch, rows)
        drawn_tokens = iter(sample_tokens(model.compute_generator_logits(batch), batch.noise).tolist())
        model.generator.set_attn_implementation("eager")
        model.discriminator.set_attn_implementation("eager")
        parts = [
            compute_paper_losses(
                model.generator, model.discriminator, row, [next(drawn_tokens) for _ in row.masked]
            )
            for row in rows
        ]
    l_mlm, l_disc = (sum(part) for part in zip(*parts, strict=True))
    assert sums["mlm"].item() == pytest.approx(l_mlm, rel=1e-5)
    assert sums["rtd"].item() == pytest.approx(l_disc, rel=1e-5)
    # L_MLM + lambda L_Disc with lambda = 50, as means over masked positions and over tokens
    counts = count_rows(rows)
    assert total.item() == pytest.approx(l_mlm / counts.masked + 50 * l_disc / counts.tokens, rel=1e-5)


# Sampling


@given(
    st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=40),
    st.floats(0, 1, width=32, exclude_max=True),
)
def test_drawn_token_is_at_the_quantile_of_the_noise(logits: list[float], noise: float) -> None:
    drawn = int(sample_tokens(torch.tensor([logits]), torch.tensor([noise])))
    probabilities = torch.tensor(logits, dtype=torch.float64).softmax(0)
    assert probabilities[drawn] > 0
    assert probabilities[:drawn].sum() <= noise + 1e-5
    assert noise <= probabilities[: drawn + 1].sum() + 1e-5


@pytest.mark.parametrize("size", [1, 2, 61, 30_522])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_extreme_noise_draws_a_possible_token(size: int, scale: float) -> None:
    logits = torch.randn(4, size, generator=torch.Generator().manual_seed(size)) * scale
    for noise in (0.0, 1e-45, 1 - 2**-24):
        drawn = sample_tokens(logits, torch.full((4,), noise))
        assert ((drawn >= 0) & (drawn < size)).all()
        assert (logits.softmax(-1).gather(1, drawn[:, None]) > 0).all()


# Corrupted inputs


@settings(max_examples=examples(50))
@given(
    st.integers(0, 1000), st.sampled_from(["flat", "padded", "flat, constant", "padded, constant"]), st.data()
)
def test_masked_positions_get_drawn_tokens_and_equal_ones_are_original(
    seed: int, layout: str, data: st.DataObject
) -> None:
    rows = random_masked_rows(seed)
    batch = make_batch_of_each_layout(rows)[layout]
    num_masked = len(batch.masked_positions)
    drawn = torch.tensor(data.draw(st.lists(st.integers(5, 9), min_size=num_masked, max_size=num_masked)))
    is_correct = torch.tensor(data.draw(st.lists(st.booleans(), min_size=num_masked, max_size=num_masked)))
    drawn = torch.where(is_correct & (batch.targets >= 0), batch.targets, drawn)
    ids, replaced = corrupt(batch, drawn)
    expected, original = batch.ids.tolist(), batch.ids.tolist()
    for position, token, target in zip(
        batch.masked_positions.tolist(), drawn.tolist(), batch.targets.tolist(), strict=True
    ):
        if position:  # not padding
            expected[position], original[position] = token, target
    assert ids.tolist() == expected
    assert replaced.tolist() == [token != target for token, target in zip(expected, original, strict=True)]


# Shared embeddings


def test_embeddings_and_their_norm_are_shared() -> None:
    model = make_electra_objective()
    assert model.generator.electra.embeddings is model.discriminator.electra.embeddings
    words = model.discriminator.electra.embeddings.word_embeddings.weight
    assert model.generator.generator_lm_head.weight is words
    names = [name for name, _ in model.named_parameters()]
    assert sum("word_embeddings" in name for name in names) == 1
    assert sum("embeddings.LayerNorm.weight" in name for name in names) == 1
    assert not any("lm_head.weight" in name for name in names)
    assert model.generator.electra.encoder is not model.discriminator.electra.encoder


@pytest.mark.parametrize("layout", ["flat", "padded"])
def test_each_loss_has_gradients_in_its_model_and_the_embeddings(layout: str) -> None:
    for loss in ("mlm", "rtd"):
        model = make_electra_objective()
        model(make_batch_of_each_layout(random_masked_rows(13))[layout])[loss].backward()
        for name, parameter in model.named_parameters():
            has_gradient = parameter.grad is not None and bool(parameter.grad.any())
            is_generator = name.startswith("generator.")
            assert has_gradient is (".embeddings." in name or is_generator is (loss == "mlm")), name


# Metrics


def test_metrics_equal_their_definitions() -> None:
    rows, model = random_masked_rows(14), make_electra_objective()
    batch = make_flat_batch(rows, tokens=192, masked=32)
    with torch.no_grad():
        sums = {name: float(value) for name, value in model(batch).items()}
        generator_logits = model.compute_generator_logits(batch)
        ids, replaced = corrupt(batch, sample_tokens(generator_logits, batch.noise))
        flagged = model.predict(batch._replace(ids=ids)) > 0
    counts = count_rows(rows)
    actual, predicted = replaced[batch.is_token].tolist(), flagged[batch.is_token].tolist()
    true_positives = sum(map(operator.and_, actual, predicted))
    hidden = batch.ids[batch.masked_positions] == MASK
    assert 0 < hidden.sum() < counts.masked
    correct = (generator_logits.argmax(-1) == batch.targets)[hidden].float().mean()
    frequent = (batch.targets == DatasetInfo().most_frequent_id)[hidden].float().mean()
    share = sum(actual) / counts.tokens
    assert true_positives
    assert model.compute_metrics(sums, counts._asdict()) == pytest.approx(
        {
            "mlm_accuracy": correct.item(),
            "mlm_baseline": frequent.item(),
            "rtd_accuracy": sum(map(operator.eq, actual, predicted)) / counts.tokens,
            "rtd_precision": true_positives / sum(predicted),
            "rtd_recall": true_positives / sum(actual),
            "replaced": share,
            "replaced_entropy": -share * math.log(share) - (1 - share) * math.log(1 - share),
        }
    )


def test_metrics_without_tokens_are_omitted() -> None:
    names = ("mlm_hidden", "mlm_right", "mlm_most_frequent", "rtd_right", "replaced", "flagged", "caught")
    zero_sums = dict.fromkeys(names, 0.0)
    assert make_electra_objective().compute_metrics(zero_sums, {"masked": 0, "tokens": 0}) == {}
    metrics = make_electra_objective().compute_metrics(zero_sums, {"masked": 9, "tokens": 50})
    assert metrics == {"rtd_accuracy": 0, "replaced": 0, "replaced_entropy": 0}


def test_draws_depend_on_noise_and_not_on_the_torch_seed() -> None:
    model, batch = make_electra_objective(), make_flat_batch(random_masked_rows(16))
    drawn_ids: list[Tensor] = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        drawn_ids.append(model.compute_outputs(batch).encoder_batch.ids)
    assert torch.equal(*drawn_ids)
    other = batch._replace(noise=batch.noise.flip(0))
    assert not torch.equal(model.compute_outputs(other).encoder_batch.ids, drawn_ids[0])


def test_clean_outputs_equal_the_discriminator_outputs() -> None:
    model, batch = make_electra_objective(), make_flat_batch(random_masked_rows(17), tokens=192, masked=32)
    clean = model.compute_outputs(batch)
    assert torch.equal(model.predict(clean.encoder_batch), clean.logits)
    assert torch.equal(clean.loss_mask, batch.is_token)
    hidden = attention.encode(model.encoder, clean.encoder_batch)
    assert torch.equal(model.discriminator.discriminator_predictions(hidden), clean.logits)
