"""ELECTRA against the formulas of its paper, and what has to hold for every batch."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import ElectraForMaskedLM, ElectraForPreTraining

from bioshards.train.models import attention
from bioshards.train.models.electra_objective import ElectraObjective, corrupt, sample_tokens
from tests.support.train.synthetic_batches import (
    VOCABULARY,
    MaskedRow,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    make_padded_batch,
    random_masked_rows,
    total_loss,
)


def electra(dropout: float = 0.0) -> ElectraObjective:
    found = make_objective("electra", dropout=dropout)
    assert isinstance(found, ElectraObjective)
    return found


# The paper's formulas


def by_the_paper(
    generator: ElectraForMaskedLM, discriminator: ElectraForPreTraining, text: MaskedRow, drawn: list[int]
) -> tuple[float, float]:
    """Equations of section 2, for one text x: its L_MLM and L_Disc, sums over their positions."""
    x = list(text.ids)
    m = sorted(text.masked)
    x_masked = [text.masked.get(t, token) for t, token in enumerate(x)]
    types = [[int(0 < text.split <= t) for t in range(len(x))]]

    # p_G(x_t | x) = exp(e(x_t)^T h_G(x)_t) / sum over x' of exp(e(x')^T h_G(x)_t)
    g = generator(torch.tensor([x_masked]), token_type_ids=torch.tensor(types)).logits[0].double()
    l_mlm = 0.0
    for t in m:
        normaliser = sum(math.exp(float(g[t, token])) for token in range(VOCABULARY))
        l_mlm += -math.log(math.exp(float(g[t, x[t]])) / normaliser)

    # x_corrupt = REPLACE(x, m, x^), x^_t drawn from p_G(x_t | x_masked)
    x_corrupt = list(x)
    for t, token in zip(m, drawn, strict=True):
        x_corrupt[t] = token

    # D(x_corrupt, t) = sigmoid(w^T h_D(x_corrupt)_t)
    d = discriminator(torch.tensor([x_corrupt]), token_type_ids=torch.tensor(types)).logits[0].double()
    l_disc = 0.0
    for t in range(len(x)):
        probability = 1 / (1 + math.exp(-float(d[t])))
        l_disc += -math.log(1 - probability if x_corrupt[t] == x[t] else probability)
    return l_mlm, l_disc


@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant"])
def test_losses_are_those_of_the_paper(layout: str) -> None:
    given_rows, model = random_masked_rows(11), electra().eval()
    with torch.no_grad():
        batch = make_batch_of_each_layout(given_rows)[layout]
        sums = model(batch)
        total = total_loss(model, batch, given_rows)
        drawn = iter(sample_tokens(model.compute_generator_logits(batch), batch.noise).tolist())
        model.generator.set_attn_implementation("eager")
        model.discriminator.set_attn_implementation("eager")
        parts = [
            by_the_paper(model.generator, model.discriminator, row, [next(drawn) for _ in row.masked])
            for row in given_rows
        ]
    l_mlm, l_disc = (sum(part) for part in zip(*parts, strict=True))
    assert sums["mlm"].item() == pytest.approx(l_mlm, rel=1e-5)
    assert sums["rtd"].item() == pytest.approx(l_disc, rel=1e-5)
    # min over both of L_MLM + lambda L_Disc, means over what they are of, lambda = 50
    found = count_rows(given_rows)
    assert total.item() == pytest.approx(l_mlm / found.masked + 50 * l_disc / found.tokens, rel=1e-5)


# Drawing


def test_drawn_tokens_follow_the_softmax() -> None:
    """Pearson's statistic over 9 tokens: above 26.1 by chance once in 1,000 times (8 degrees of freedom)."""
    torch.manual_seed(3)
    logits, number = torch.randn(9) * 2, 20_000
    drawn = sample_tokens(logits.expand(number, 9), torch.rand(number))
    expected = logits.softmax(0) * number
    assert (((drawn.bincount(minlength=9) - expected) ** 2) / expected).sum().item() < 26.1


@given(
    st.lists(st.floats(-80, 80, width=32), min_size=1, max_size=40),
    st.floats(0, 1, width=32, exclude_max=True),
)
def test_a_drawn_token_is_the_one_that_the_noise_falls_on(logits: list[float], noise: float) -> None:
    drawn = int(sample_tokens(torch.tensor([logits]), torch.tensor([noise])))
    probabilities = torch.tensor(logits, dtype=torch.float64).softmax(0)
    assert probabilities[drawn] > 0
    assert probabilities[:drawn].sum() <= noise + 1e-5
    assert noise <= probabilities[: drawn + 1].sum() + 1e-5


@pytest.mark.parametrize("size", [1, 2, 61, 30_522])
@pytest.mark.parametrize("scale", [0.0, 1.0, 30.0, 1e4])
def test_noise_at_its_ends_gives_a_token_that_can_be(size: int, scale: float) -> None:
    logits = torch.randn(4, size, generator=torch.Generator().manual_seed(size)) * scale
    for noise in (0.0, 1e-45, 1 - 2**-24):
        drawn = sample_tokens(logits, torch.full((4,), noise))
        assert ((drawn >= 0) & (drawn < size)).all()
        assert (logits.softmax(-1).gather(1, drawn[:, None]) > 0).all()


# What the discriminator is given


@settings(max_examples=50, deadline=None)
@given(
    st.integers(0, 1000), st.sampled_from(["flat", "padded", "flat, constant", "padded, constant"]), st.data()
)
def test_every_masked_place_gets_its_drawn_token_and_an_equal_one_is_real(
    seed: int, layout: str, data: st.DataObject
) -> None:
    given_rows = random_masked_rows(seed)
    batch = make_batch_of_each_layout(given_rows)[layout]
    places = len(batch.masked_positions)
    drawn = torch.tensor(data.draw(st.lists(st.integers(5, 9), min_size=places, max_size=places)))
    right = torch.tensor(data.draw(st.lists(st.booleans(), min_size=places, max_size=places)))
    drawn = torch.where(right & (batch.targets >= 0), batch.targets, drawn)
    ids, replaced = corrupt(batch, drawn)
    expected = {int(at): int(token) for at, token in zip(batch.masked_positions, drawn, strict=True) if at}
    text = {
        int(at): int(token) for at, token in zip(batch.masked_positions, batch.targets, strict=True) if at
    }
    for place in range(len(batch.ids)):
        unmasked = int(batch.ids[place])
        assert ids[place] == expected.get(place, unmasked)
        assert replaced[place] == (expected.get(place, unmasked) != text.get(place, unmasked))


def test_padding_of_masked_places_changes_nothing() -> None:
    given_rows, model = random_masked_rows(12), electra()
    for few, many in (
        (make_flat_batch(given_rows), make_flat_batch(given_rows, masked=40)),
        (make_padded_batch(given_rows), make_padded_batch(given_rows, masked=40)),
    ):
        one, two = model(few), model(many)
        for name, value in one.items():
            torch.testing.assert_close(two[name], value, rtol=1e-6, atol=1e-6)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 1000), st.sampled_from(["padded", "flat, constant"]))
def test_only_what_is_no_padding_is_in_the_losses(seed: int, layout: str) -> None:
    model, batch = electra(), make_batch_of_each_layout(random_masked_rows(seed))[layout]
    other = torch.randint(0, VOCABULARY, batch.ids.shape, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        one = model(batch)
        two = model(batch._replace(ids=torch.where(batch.is_token, batch.ids, other)))
    for name, value in one.items():
        assert torch.equal(value, two[name])


# Two models, one embedding


def test_embeddings_and_their_norm_are_one_and_the_same() -> None:
    model = electra()
    assert model.generator.electra.embeddings is model.discriminator.electra.embeddings
    words = model.discriminator.electra.embeddings.word_embeddings.weight
    assert model.generator.generator_lm_head.weight is words
    names = [name for name, _ in model.named_parameters()]
    assert sum("word_embeddings" in name for name in names) == 1
    assert sum("embeddings.LayerNorm.weight" in name for name in names) == 1
    assert not any("lm_head.weight" in name for name in names)
    assert model.generator.electra.encoder is not model.discriminator.electra.encoder


@pytest.mark.parametrize("layout", ["flat", "padded"])
def test_the_discriminators_loss_reaches_no_layer_of_the_generator(layout: str) -> None:
    model = electra()
    model(make_batch_of_each_layout(random_masked_rows(13))[layout])["rtd"].backward()
    for name, parameter in model.named_parameters():
        moved = parameter.grad is not None and bool(parameter.grad.any())
        own = name.startswith("generator.") and ".embeddings." not in name
        assert moved is not own, name


def test_the_generators_loss_reaches_no_layer_of_the_discriminator() -> None:
    model = electra()
    model(make_flat_batch(random_masked_rows(13)))["mlm"].backward()
    for name, parameter in model.named_parameters():
        moved = parameter.grad is not None and bool(parameter.grad.any())
        own = name.startswith("generator.") or ".embeddings." in name
        assert moved is own, name


# Figures


def test_figures_are_counted_as_their_names_say() -> None:
    given_rows, model = random_masked_rows(14), electra()
    batch = make_flat_batch(given_rows, tokens=192, masked=32)
    with torch.no_grad():
        sums = {name: float(value) for name, value in model(batch).items()}
        guesses = model.compute_generator_logits(batch)
        ids, replaced = corrupt(batch, sample_tokens(guesses, batch.noise))
        flagged = model.predict(batch._replace(ids=ids)) > 0
    real, found = batch.is_token.tolist(), count_rows(given_rows)
    truth = [is_it for is_it, counts_it in zip(replaced.tolist(), real, strict=True) if counts_it]
    said = [is_it for is_it, counts_it in zip(flagged.tolist(), real, strict=True) if counts_it]
    both = sum(one and other for one, other in zip(truth, said, strict=True))
    right = [int(best == target) for best, target in zip(guesses.argmax(-1), batch.targets, strict=True)]
    share = sum(truth) / found.tokens
    assert both
    assert model.compute_metrics(sums, found._asdict()) == pytest.approx(
        {
            "mlm_accuracy": sum(right) / found.masked,
            "rtd_accuracy": sum(t == s for t, s in zip(truth, said, strict=True)) / found.tokens,
            "rtd_precision": both / sum(said),
            "rtd_recall": both / sum(truth),
            "replaced": share,
            "replaced_entropy": -share * math.log(share) - (1 - share) * math.log(1 - share),
        }
    )


def test_a_discriminator_that_only_knows_the_share_has_its_entropy_as_loss() -> None:
    given_rows, model = random_masked_rows(15), electra()
    batch = make_flat_batch(given_rows)
    tokens = count_rows(given_rows).tokens
    share = float(model(batch)["replaced"]) / tokens
    with torch.no_grad():
        last = model.discriminator.discriminator_predictions.dense_prediction
        last.weight.zero_()
        last.bias.fill_(math.log(share / (1 - share)))
        sums = {name: float(value) for name, value in model(batch).items()}
    figures = model.compute_metrics(sums, count_rows(given_rows)._asdict())
    assert sums["rtd"] / tokens == pytest.approx(figures["replaced_entropy"], rel=1e-5)


def test_a_share_of_nothing_is_no_figure() -> None:
    nothing = dict.fromkeys(("mlm_right", "rtd_right", "replaced", "flagged", "caught"), 0.0)
    assert electra().compute_metrics(nothing, {"masked": 0, "tokens": 0}) == {}
    figures = electra().compute_metrics(nothing, {"masked": 9, "tokens": 50})
    assert figures == {"mlm_accuracy": 0, "rtd_accuracy": 0, "replaced": 0, "replaced_entropy": 0}


def test_noise_decides_the_draw_and_the_devices_chance_does_not() -> None:
    model, batch = electra(), make_flat_batch(random_masked_rows(16))
    found: list[Tensor] = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        found.append(model.compute_outputs(batch).encoder_batch.ids)
    assert torch.equal(*found)
    other = batch._replace(noise=batch.noise.flip(0))
    assert not torch.equal(model.compute_outputs(other).encoder_batch.ids, found[0])


def test_the_discriminator_sees_what_clean_says_that_it_saw() -> None:
    model, batch = electra(), make_flat_batch(random_masked_rows(17), tokens=192, masked=32)
    clean = model.compute_outputs(batch)
    assert torch.equal(model.predict(clean.encoder_batch), clean.logits)
    assert torch.equal(clean.loss_mask, batch.is_token)
    hidden = attention.encode(model.encoder, clean.encoder_batch)
    assert torch.equal(model.discriminator.discriminator_predictions(hidden), clean.logits)
