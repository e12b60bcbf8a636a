"""BERT's and ALBERT's losses against Hugging Face's own, and all losses in bfloat16 and compiled."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.fx import GraphModule

from bioshards.train.batch import Batch
from bioshards.train.models.mlm_objective import MlmObjective
from tests.support.train.synthetic_batches import (
    FAMILIES,
    LENGTH,
    count_rows,
    make_batch_of_each_layout,
    make_flat_batch,
    make_objective,
    make_padded_batch,
    random_masked_rows,
    total_loss,
)

PAIRS = {"bert": "nsp", "albert": "sop"}


def pairs(family: str, labelled: bool = True) -> MlmObjective:
    found = make_objective(family, labelled)
    assert isinstance(found, MlmObjective)
    return found


# Against the library


def by_the_library(model: MlmObjective, batch: Batch, pair_labels: Tensor) -> Any:
    """The output, with its loss, of transformers' model on the padded batch."""
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
def test_the_loss_is_the_librarys(family: str, layout: str) -> None:
    given_rows, model = random_masked_rows(21), pairs(family).eval()
    with torch.no_grad():
        ours = total_loss(model, make_batch_of_each_layout(given_rows)[layout], given_rows)
        batch = make_padded_batch(given_rows)
        theirs = by_the_library(model, batch, batch.labels).loss
    assert count_rows(given_rows).labelled not in (0, len(given_rows))  # some have a label, some have none
    assert ours.item() == pytest.approx(theirs.item(), rel=1e-5)


@pytest.mark.parametrize("family", PAIRS)
def test_gradients_are_the_librarys(family: str) -> None:
    given_rows, model = random_masked_rows(22), pairs(family).eval()
    names, parameters = zip(*model.named_parameters(), strict=True)
    ours = torch.autograd.grad(total_loss(model, make_flat_batch(given_rows), given_rows), parameters)
    batch = make_padded_batch(given_rows)
    theirs = torch.autograd.grad(by_the_library(model, batch, batch.labels).loss, parameters)
    for name, one, other in zip(names, ours, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6, msg=name)


@pytest.mark.parametrize("family", PAIRS)
def test_figures_are_those_of_the_librarys_predictions(family: str) -> None:
    given_rows, model = random_masked_rows(23), pairs(family).eval()
    found = count_rows(given_rows)
    with torch.no_grad():
        sums = {name: float(value) for name, value in model(make_flat_batch(given_rows, masked=40)).items()}
        batch = make_padded_batch(given_rows)
        output = by_the_library(model, batch, batch.labels)
    guesses = output.prediction_logits.argmax(-1).flatten()[batch.masked_positions]
    logits = output.seq_relationship_logits if family == "bert" else output.sop_logits
    right = sum(
        int(guess == row.label) for guess, row in zip(logits.argmax(-1).tolist(), given_rows, strict=True)
    )
    assert model.compute_metrics(sums, found._asdict()) == pytest.approx(
        {
            "mlm_accuracy": (guesses == batch.targets).float().mean().item(),
            f"{PAIRS[family]}_accuracy": right / found.labelled,
        }
    )


# Labels


@pytest.mark.parametrize("family", PAIRS)
def test_a_batch_without_any_label_has_no_loss_of_pairs_and_is_a_number(family: str) -> None:
    given_rows, model = random_masked_rows(24, labels=False), pairs(family)
    total = total_loss(model, make_flat_batch(given_rows), given_rows)
    total.backward()  # type: ignore[no-untyped-call]
    with torch.no_grad():
        sums = model(make_flat_batch(given_rows))
    assert sums[PAIRS[family]].item() == 0
    assert total.isfinite()
    assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())
    figures = model.compute_metrics(
        {name: float(value) for name, value in sums.items()}, count_rows(given_rows)._asdict()
    )
    assert figures.keys() == {"mlm_accuracy"}


@pytest.mark.parametrize("family", PAIRS)
def test_data_without_labels_train_what_masked_language_modelling_needs(family: str) -> None:
    given_rows, model = random_masked_rows(25, labels=False), pairs(family, labelled=False)
    assert model.losses == {"mlm": (1.0, "masked")}
    total_loss(model, make_flat_batch(given_rows), given_rows).backward()  # type: ignore[no-untyped-call]
    idle = {name for name, part in model.named_parameters() if part.grad is None}
    assert idle == {name for name, part in model.named_parameters() if not part.requires_grad}
    assert len(idle) == 4
    assert all("pooler" in name or "seq_relationship" in name or "sop_classifier" in name for name in idle)
    with torch.no_grad():
        labelled = pairs(family)(make_flat_batch(given_rows))
        assert torch.equal(model(make_flat_batch(given_rows))["mlm"], labelled["mlm"])


@pytest.mark.parametrize("family", PAIRS)
def test_padding_of_masked_places_changes_nothing(family: str) -> None:
    given_rows, model = random_masked_rows(26), pairs(family)
    for few, many in (
        (make_flat_batch(given_rows), make_flat_batch(given_rows, masked=40)),
        (make_padded_batch(given_rows), make_padded_batch(given_rows, masked=40)),
    ):
        one, two = model(few), model(many)
        for name, value in one.items():
            torch.testing.assert_close(two[name], value, rtol=1e-6, atol=1e-6)


# All families


@pytest.mark.parametrize("family", FAMILIES)
def test_sums_add_up_over_micro_batches(family: str) -> None:
    given_rows, model = random_masked_rows(27), make_objective(family)
    whole = total_loss(model, make_flat_batch(given_rows), given_rows)
    divide = count_rows(given_rows)._asdict()
    parts = [
        model.compute_loss(model(make_flat_batch(part)), divide) for part in (given_rows[:2], given_rows[2:])
    ]
    torch.testing.assert_close(parts[0] + parts[1], whole)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat", "padded"])
def test_losses_in_bfloat16_are_float32_and_near(family: str, layout: str) -> None:
    model, batch = make_objective(family), make_batch_of_each_layout(random_masked_rows(28))[layout]
    exact = model(batch)
    with torch.autocast("cpu", torch.bfloat16):
        near = model(batch)
        hidden = model.compute_outputs(batch).logits
    assert hidden.dtype == torch.float32
    for name, value in near.items():
        assert value.dtype == torch.float32
        if name in model.losses:
            torch.testing.assert_close(value, exact[name], rtol=0.03, atol=0.05)
    assert not torch.equal(near["mlm"], exact["mlm"])  # it was bfloat16
    model.compute_loss(near, count_rows(random_masked_rows(28))._asdict()).backward()  # type: ignore[no-untyped-call]
    assert all(part.grad is None or part.grad.isfinite().all() for part in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("layout", ["flat, constant", "padded, constant"])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_batches_of_constant_shapes_are_compiled_once_to_one_graph(
    family: str, layout: str, dropout: float
) -> None:
    graphs: list[GraphModule] = []

    def counting(graph: GraphModule, _: Any) -> Any:
        graphs.append(graph)
        return graph.forward

    torch._dynamo.reset()
    model = make_objective(family, dropout=dropout, attention_dropout=dropout)
    compiled = torch.compile(model, backend=counting, fullgraph=True)
    for seed, lengths in enumerate([(17, 3, 40, 8, 29), (40, 40, 3, 9, 12), (5, 6, 7, 8, 9)]):
        batch = make_batch_of_each_layout(random_masked_rows(seed, lengths))[layout]
        torch.manual_seed(seed)
        found = compiled(batch)
        torch.manual_seed(seed)
        for name, value in model(batch).items():
            torch.testing.assert_close(found[name], value)
    assert len(graphs) == 1
