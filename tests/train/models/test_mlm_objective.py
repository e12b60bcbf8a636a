"""Losses of BERT and ALBERT, compared with Hugging Face; all losses in bfloat16 and compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from bioshards.train.batch import Batch
from bioshards.train.models.objectives import MlmObjective
from tests.support.train.synthetic_batches import (
    FAMILIES,
    LENGTH,
    MASK,
    DatasetInfo,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    make_padded_batch,
    random_masked_rows,
    total_loss,
)

PAIRS = {"bert": "nsp", "albert": "sop"}


def make_mlm_objective(family: str, labelled: bool = True) -> MlmObjective:
    objective = make_objective(family, labelled)
    assert isinstance(objective, MlmObjective)
    return objective


# Comparison with the library


def run_library_model(model: MlmObjective, batch: Batch, pair_labels: Tensor) -> Any:
    """Run the transformers model on a padded batch, and return its output with the loss."""
    shape = (len(batch.row_starts), LENGTH)
    labels = torch.full_like(batch.ids, -100).scatter(0, batch.masked_positions, batch.targets)
    model.model.set_attn_implementation("eager")
    name = "next_sentence_label" if model.pair_task == "nsp" else "sentence_order_label"
    return model.model(
        batch.ids.view(shape),
        attention_mask=batch.is_token.view(shape),
        token_type_ids=batch.token_type_ids.view(shape),
        labels=labels.view(shape),
        **{name: pair_labels},
    )


@pytest.mark.parametrize("family", PAIRS)
@pytest.mark.parametrize("layout", ["flat", "padded", "flat, constant"])
def test_loss_equals_that_of_the_library(family: str, layout: str) -> None:
    rows, model = random_masked_rows(21), make_mlm_objective(family).eval()
    with torch.no_grad():
        loss = total_loss(model, make_batch_of_each_layout(rows)[layout], rows)
        batch = make_padded_batch(rows)
        library_loss = run_library_model(model, batch, batch.labels).loss
    assert count_rows(rows).labelled not in (0, len(rows))  # some have a label, some have none
    assert loss.item() == pytest.approx(library_loss.item(), rel=1e-5)


@pytest.mark.parametrize("family", PAIRS)
def test_gradients_equal_those_of_the_library(family: str) -> None:
    rows, model = random_masked_rows(22), make_mlm_objective(family).eval()
    names, parameters = zip(*model.named_parameters(), strict=True)
    gradients = torch.autograd.grad(total_loss(model, make_flat_batch(rows), rows), parameters)
    batch = make_padded_batch(rows)
    library_gradients = torch.autograd.grad(run_library_model(model, batch, batch.labels).loss, parameters)
    for name, gradient, library_gradient in zip(names, gradients, library_gradients, strict=True):
        torch.testing.assert_close(gradient, library_gradient, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("family", PAIRS)
def test_metrics_equal_those_of_the_library_predictions(family: str) -> None:
    rows, model = random_masked_rows(23), make_mlm_objective(family).eval()
    counts = count_rows(rows)
    with torch.no_grad():
        sums = {name: float(value) for name, value in model(make_flat_batch(rows, masked=40)).items()}
        batch = make_padded_batch(rows)
        output = run_library_model(model, batch, batch.labels)
    guesses = output.prediction_logits.argmax(-1).flatten()[batch.masked_positions]
    is_hidden = batch.ids.flatten()[batch.masked_positions] == MASK
    assert 0 < is_hidden.sum() < len(is_hidden)
    logits = output.seq_relationship_logits if family == "bert" else output.sop_logits
    targets, num_correct = batch.targets[is_hidden], int((logits.argmax(-1) == batch.labels).sum())
    assert model.compute_metrics(sums, counts._asdict()) == pytest.approx(
        {
            "mlm_accuracy": (guesses[is_hidden] == targets).float().mean().item(),
            "mlm_baseline": (targets == DatasetInfo().most_frequent_id).float().mean().item(),
            f"{PAIRS[family]}_accuracy": num_correct / counts.labelled,
        }
    )


# Labels


@pytest.mark.parametrize("family", PAIRS)
def test_batch_without_labels_has_no_pair_loss_and_is_finite(family: str) -> None:
    rows, model = random_masked_rows(24, labels=False), make_mlm_objective(family)
    total = total_loss(model, make_flat_batch(rows), rows)
    total.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        sums = model(make_flat_batch(rows))
    assert sums[PAIRS[family]].item() == 0
    assert total.isfinite()
    assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())
    metrics = model.compute_metrics(
        {name: float(value) for name, value in sums.items()}, count_rows(rows)._asdict()
    )
    assert metrics.keys() == {"mlm_accuracy", "mlm_baseline"}


@pytest.mark.parametrize("family", PAIRS)
def test_pair_head_is_not_trained_without_labels(family: str) -> None:
    rows, model = random_masked_rows(25, labels=False), make_mlm_objective(family, labelled=False)
    assert model.losses == {"mlm": (1.0, "masked")}
    total_loss(model, make_flat_batch(rows), rows).backward()  # type: ignore[no-untyped-call]
    untrained = {name for name, part in model.named_parameters() if part.grad is None}
    assert untrained == {name for name, part in model.named_parameters() if not part.requires_grad}
    assert len(untrained) == 4
    assert all(
        "pooler" in name or "seq_relationship" in name or "sop_classifier" in name for name in untrained
    )
    with torch.no_grad():
        labelled = make_mlm_objective(family)(make_flat_batch(rows))
        assert torch.equal(model(make_flat_batch(rows))["mlm"], labelled["mlm"])


# All families


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_add_up_over_micro_batches(family: str) -> None:
    rows, model = random_masked_rows(27), make_objective(family)
    expected = total_loss(model, make_flat_batch(rows), rows)
    counts = count_rows(rows)._asdict()
    losses = [model.compute_loss(model(make_flat_batch(part)), counts) for part in (rows[:2], rows[2:])]
    torch.testing.assert_close(losses[0] + losses[1], expected)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat", "padded"])
def test_bfloat16_losses_are_float32_and_close(family: str, layout: str) -> None:
    model, batch = make_objective(family), make_batch_of_each_layout(random_masked_rows(28))[layout]
    float32_sums = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        bfloat16_sums = model(batch)
        hidden = model.compute_outputs(batch).logits
    assert hidden.dtype == torch.float32
    for name, value in bfloat16_sums.items():
        assert value.dtype == torch.float32
        if name in model.losses:
            torch.testing.assert_close(value, float32_sums[name], rtol=0.03, atol=0.05)
    assert not torch.equal(bfloat16_sums["mlm"], float32_sums["mlm"])  # it was bfloat16
    model.compute_loss(bfloat16_sums, count_rows(random_masked_rows(28))._asdict()).backward()  # type: ignore[no-untyped-call]
    assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())


@pytest.mark.thorough
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat, constant", "padded, constant"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_constant_shapes_compile_once_to_one_graph(family: str, layout: str, dropout: float) -> None:
    graphs: list[GraphModule] = []

    def record_graph(graph: GraphModule, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    model = make_objective(family, dropout=dropout, attention_dropout=dropout)
    compiled = torch.compile(model, backend=record_graph, fullgraph=True)
    for seed, lengths in enumerate([(17, 3, 40, 8, 29), (40, 40, 3, 9, 12), (5, 6, 7, 8, 9)]):
        batch = make_batch_of_each_layout(random_masked_rows(seed, lengths))[layout]
        torch.manual_seed(seed)
        sums = compiled(batch)
        torch.manual_seed(seed)
        for name, value in model(batch).items():
            torch.testing.assert_close(sums[name], value)
    assert len(graphs) == 1
