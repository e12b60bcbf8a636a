"""Adversarial pretraining: the change that is made, and the loss that it makes, for every objective."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bioshards.train.models.adversarial_objective import AdversarialObjective, kl_divergence
from tests.support.train.synthetic_batches import (
    FAMILIES,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    random_masked_rows,
)

ETA = 1e-3


def adversarial(
    family: str, alpha: float = 1.0, dropout: float = 0.0, labelled: bool = True
) -> AdversarialObjective:
    return AdversarialObjective(make_objective(family, labelled, dropout), alpha)


def probabilities(logits: Tensor) -> list[float]:
    """Of a token's classes; a single logit is that of the second of two."""
    if logits.ndim == 0:
        return [1 / (1 + math.exp(float(logits))), 1 / (1 + math.exp(-float(logits)))]
    found: list[float] = logits.softmax(0).tolist()
    return found


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant", "padded, constant"])
def test_the_loss_is_the_distance_of_predictions_both_ways(family: str, layout: str) -> None:
    """Written out: the sum over what counts, and over classes, of (p - q)(log p - log q)."""
    batch = make_batch_of_each_layout(random_masked_rows(31))[layout]
    model = AdversarialObjective(make_objective(family), step_size=0.3)  # large, so that both ways differ
    with torch.no_grad():
        torch.manual_seed(1)
        sums = model(batch)
        torch.manual_seed(1)
        clean = model.objective.compute_outputs(batch)
        words = model.encoder.get_input_embeddings()(clean.encoder_batch.ids)
        change = model.find_perturbation(clean, words)
        moved = model.predict(clean.encoder_batch, words + change)
    expected = 0.0
    for here, there, counted in zip(clean.logits.double(), moved.double(), clean.loss_mask, strict=True):
        if counted:
            p, q = probabilities(here), probabilities(there)
            expected += sum((a - b) * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))
    assert expected > 0.1
    assert sums["adversarial"].item() == pytest.approx(expected, rel=1e-4)
    for name in model.objective.losses:
        assert torch.equal(sums[name], clean.sums[name])


@pytest.mark.parametrize("family", FAMILIES)
def test_the_change_of_a_token_is_a_step_long_and_padding_has_none(family: str) -> None:
    model, batch = adversarial(family), make_batch_of_each_layout(random_masked_rows(32))["flat, constant"]
    clean = model.objective.compute_outputs(batch)
    words = model.encoder.get_input_embeddings()(clean.encoder_batch.ids).detach()
    change = model.find_perturbation(clean, words)
    assert not change.requires_grad
    largest = change.abs().amax(-1)
    assert ((largest[batch.is_token] - ETA).abs() <= 6 * model.noise_std).all()
    assert (largest[~batch.is_token] <= 6 * model.noise_std).all()


@pytest.mark.parametrize("family", FAMILIES)
def test_it_moves_predictions_more_than_chance_does(family: str) -> None:
    model, batch = adversarial(family), make_flat_batch(random_masked_rows(33))
    with torch.no_grad():
        clean = model.objective.compute_outputs(batch)
        words = model.encoder.get_input_embeddings()(clean.encoder_batch.ids)

        def distance(change: Tensor) -> float:
            here = model.log_probabilities(clean.logits)
            there = model.log_probabilities(model.predict(clean.encoder_batch, words + change))
            return kl_divergence(here, there, clean.loss_mask).item()

        change = model.find_perturbation(clean, words)
        signs = [torch.randint(0, 2, change.shape) * 2 - 1 for _ in range(10)]
        by_chance = [distance(change.abs() * sign) for sign in signs]
    assert distance(change) > 2 * max(by_chance)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_weight_of_nothing_leaves_the_objectives_own_loss_and_gradients(family: str) -> None:
    given_rows = random_masked_rows(34)
    divide, batch = count_rows(given_rows)._asdict(), make_flat_batch(given_rows)
    plain, model = make_objective(family), adversarial(family, alpha=0.0)
    one, two = plain.compute_loss(plain(batch), divide), model.compute_loss(model(batch), divide)
    assert torch.equal(one, two)
    one.backward()  # type: ignore[no-untyped-call]
    two.backward()  # type: ignore[no-untyped-call]
    for left, right in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_divided_as_what_was_judged_is_counted(family: str) -> None:
    model = adversarial(family, alpha=3.0)
    assert model.losses["adversarial"] == (3.0, "tokens" if family == "electra" else "masked")
    assert {name for name in model.losses if name != "adversarial"} == set(model.objective.losses)


@pytest.mark.parametrize("family", FAMILIES)
def test_its_gradient_reaches_what_makes_the_predictions(family: str) -> None:
    model = adversarial(family)
    model(make_flat_batch(random_masked_rows(35)))["adversarial"].backward()
    for name, parameter in model.named_parameters():
        moved = parameter.grad is not None and bool(parameter.grad.any())
        judge = ("pooler", "seq_relationship", "sop_classifier")
        own = ".generator." in name and ".embeddings." not in name
        assert moved is not (own or any(word in name for word in judge)), name


@pytest.mark.parametrize("family", FAMILIES)
def test_the_search_leaves_no_gradient_behind(family: str) -> None:
    model, batch = adversarial(family), make_flat_batch(random_masked_rows(36))
    clean = model.objective.compute_outputs(batch)
    model.find_perturbation(clean, model.encoder.get_input_embeddings()(clean.encoder_batch.ids).detach())
    assert all(part.grad is None for part in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_seed_gives_the_same_sums(family: str) -> None:
    model, batch = adversarial(family, dropout=0.1), make_flat_batch(random_masked_rows(37))
    found = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        found.append(model(batch)["adversarial"])
    assert torch.equal(found[0], found[1])
    assert not torch.equal(found[0], found[2])


def test_it_is_there_in_validation_too_and_without_labels() -> None:
    for family in FAMILIES:
        model, batch = (
            adversarial(family, labelled=False).eval(),
            make_flat_batch(random_masked_rows(38, labels=False)),
        )
        with torch.no_grad():
            assert model(batch)["adversarial"].item() > 0


def test_in_bfloat16_it_is_a_number() -> None:
    for family in FAMILIES:
        model, given_rows = adversarial(family, dropout=0.1), random_masked_rows(39)
        with torch.autocast("cpu", torch.bfloat16):
            sums = model(make_flat_batch(given_rows))
        model.compute_loss(sums, count_rows(given_rows)._asdict()).backward()  # type: ignore[no-untyped-call]
        assert all(value.isfinite() and value.dtype == torch.float32 for value in sums.values())
        assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())
