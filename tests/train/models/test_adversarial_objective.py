"""Adversarial pretraining: perturbation and loss, for every objective."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from bioshards.train.models.adversarial import AdversarialObjective, kl_divergence
from tests.support.train.synthetic_batches import (
    FAMILIES,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    random_masked_rows,
)

ETA = 1e-3


def make_adversarial_objective(family: str, alpha: float = 1.0, dropout: float = 0.0) -> AdversarialObjective:
    return AdversarialObjective(make_objective(family, dropout=dropout), alpha)


def compute_probabilities(logits: Tensor) -> list[float]:
    """Return the class probabilities of a token. A single logit is that of the second of two classes."""
    if logits.ndim == 0:
        return [1 / (1 + math.exp(float(logits))), 1 / (1 + math.exp(-float(logits)))]
    values: list[float] = logits.softmax(0).tolist()
    return values


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant", "padded, constant"])
def test_loss_is_the_symmetric_divergence_of_predictions(family: str, layout: str) -> None:
    """Sum (p - q)(log p - log q) over the counted tokens and the classes."""
    batch = make_batch_of_each_layout(random_masked_rows(31))[layout]
    model = AdversarialObjective(make_objective(family), step_size=0.3)  # so that both divergences differ
    with torch.no_grad():
        torch.manual_seed(1)
        sums = model(batch)
        torch.manual_seed(1)
        clean = model.objective.compute_outputs(batch)
        words = model.objective.encoder.get_input_embeddings()(clean.encoder_batch.ids)
        perturbation = model.find_perturbation(clean, words)
        perturbed_logits = model.objective.predict(clean.encoder_batch, words + perturbation)
    expected = 0.0
    for logits, other_logits, counted in zip(
        clean.logits.double(), perturbed_logits.double(), clean.loss_mask, strict=True
    ):
        if counted:
            p, q = compute_probabilities(logits), compute_probabilities(other_logits)
            expected += sum((a - b) * (math.log(a) - math.log(b)) for a, b in zip(p, q, strict=True))
    assert expected > 0.1
    assert sums["adversarial"].item() == pytest.approx(expected, rel=1e-4)
    for name in model.objective.losses:
        assert torch.equal(sums[name], clean.sums[name])


@pytest.mark.parametrize("family", FAMILIES)
def test_perturbation_has_step_size_and_leaves_padding(family: str) -> None:
    model = make_adversarial_objective(family)
    batch = make_batch_of_each_layout(random_masked_rows(32))["flat, constant"]
    clean = model.objective.compute_outputs(batch)
    words = model.objective.encoder.get_input_embeddings()(clean.encoder_batch.ids).detach()
    perturbation = model.find_perturbation(clean, words)
    assert not perturbation.requires_grad
    largest = perturbation.abs().amax(-1)
    assert ((largest[batch.is_token] - ETA).abs() <= 6 * model.noise_std).all()
    assert (largest[~batch.is_token] <= 6 * model.noise_std).all()
    assert all(part.grad is None for part in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_perturbation_changes_predictions_more_than_random_signs(family: str) -> None:
    model, batch = make_adversarial_objective(family), make_flat_batch(random_masked_rows(33))
    with torch.no_grad():
        clean = model.objective.compute_outputs(batch)
        words = model.objective.encoder.get_input_embeddings()(clean.encoder_batch.ids)

        def compute_distance(change: Tensor) -> float:
            here = model.objective.log_probabilities(clean.logits)
            there = model.objective.log_probabilities(
                model.objective.predict(clean.encoder_batch, words + change)
            )
            return kl_divergence(here, there, clean.loss_mask).item()

        change = model.find_perturbation(clean, words)
        signs = [torch.randint(0, 2, change.shape) * 2 - 1 for _ in range(10)]
        random_distances = [compute_distance(change.abs() * sign) for sign in signs]
    assert compute_distance(change) > 2 * max(random_distances)


@pytest.mark.parametrize("family", FAMILIES)
def test_zero_weight_keeps_loss_and_gradients_of_the_objective(family: str) -> None:
    rows = random_masked_rows(34)
    counts, batch = count_rows(rows)._asdict(), make_flat_batch(rows)
    plain, model = make_objective(family), make_adversarial_objective(family, alpha=0.0)
    plain_loss, adversarial_loss = (one.compute_loss(one(batch), counts) for one in (plain, model))
    assert torch.equal(plain_loss, adversarial_loss)
    plain_loss.backward()  # type: ignore[no-untyped-call]
    adversarial_loss.backward()  # type: ignore[no-untyped-call]
    for left, right in zip(plain.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(left.grad, right.grad)


@pytest.mark.parametrize("family", FAMILIES)
def test_loss_is_averaged_over_the_judged_tokens(family: str) -> None:
    model = make_adversarial_objective(family, alpha=3.0)
    assert model.losses["adversarial"] == (3.0, "tokens" if family == "electra" else "masked")
    assert {name for name in model.losses if name != "adversarial"} == set(model.objective.losses)


@pytest.mark.parametrize("family", FAMILIES)
def test_gradient_reaches_the_predicting_parameters(family: str) -> None:
    model = make_adversarial_objective(family)
    model(make_flat_batch(random_masked_rows(35)))["adversarial"].backward()
    for name, parameter in model.named_parameters():
        has_gradient = parameter.grad is not None and bool(parameter.grad.any())
        pair_heads = ("pooler", "seq_relationship", "sop_classifier")
        is_generator_only = ".generator." in name and ".embeddings." not in name
        assert has_gradient is not (is_generator_only or any(word in name for word in pair_heads)), name


def test_bfloat16_loss_and_gradients_are_finite() -> None:
    for family in FAMILIES:
        model, rows = make_adversarial_objective(family, dropout=0.1), random_masked_rows(39)
        with torch.autocast("cpu", torch.bfloat16):
            sums = model(make_flat_batch(rows))
        model.compute_loss(sums, count_rows(rows)._asdict()).backward()  # type: ignore[no-untyped-call]
        assert all(value.isfinite() and value.dtype == torch.float32 for value in sums.values())
        assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())
