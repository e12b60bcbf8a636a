"""The fine-tuning loop against a plain one in torch, and what it keeps."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bioshards.evaluate.benchmarks.record_types import LabelledText, Record
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe
from bioshards.evaluate.config.suites import SUITES
from bioshards.evaluate.modeling import batches, pretrained
from bioshards.evaluate.runs.fine_tuner import EncoderWithHead, FineTuner, NaNLossError
from bioshards.evaluate.tasks.classification import Classification
from bioshards.evaluate.tasks.task_registry import TASKS, plan_tasks
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint

CPU = torch.device("cpu")
QUICK = FineTuneRecipe(batch_size=4, epochs=3, max_seq_length=32, learning_rate=1e-3, dropout=0.0)
LABELS = ("no", "yes")


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")


def _texts(n: int) -> list[Record]:
    return [
        LabelledText(str(at), f"the {'drug' if at % 2 else 'gene'} of {at}", LABELS[at % 2])
        for at in range(n)
    ]


def _tuning(folder: Path, recipe: FineTuneRecipe, dropout: float = 0.0) -> FineTuner:
    look = pretrained.inspect_checkpoint(str(folder))
    problem = Classification(look.load_tokenizer(), recipe, "single_label", LABELS)
    torch.manual_seed(7)
    body = pretrained.load_encoder(look)
    for module in body.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    return FineTuner(
        EncoderWithHead(body, problem.build_head(body.hidden_size)), problem, recipe, 0, CPU, lambda _: None
    )


def _weights(tuning: FineTuner) -> dict[str, torch.Tensor]:
    return {name: one.clone() for name, one in tuning.model.state_dict().items()}


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_it_is_adamw_with_a_triangular_rate(folder: Path, decay: float) -> None:
    recipe = replace(QUICK, weight_decay=decay, warmup=0.25, grad_clip=0.5)
    tuning, plain = _tuning(folder, recipe), _tuning(folder, recipe)
    records = _texts(10)
    tuning.train(records, 3, None)

    model = plain.model.train()
    read = plain.adapter.make_examples(records, is_training=True)
    groups = [
        {"params": [one for one in model.parameters() if one.ndim > 1], "weight_decay": decay},
        {"params": [one for one in model.parameters() if one.ndim == 1], "weight_decay": 0.0},
    ]
    adam = torch.optim.AdamW(groups, lr=recipe.learning_rate, eps=recipe.epsilon)
    total, warmup = 9, round(0.25 * 9)
    order, step = torch.Generator().manual_seed(3), 0
    for _ in range(3):
        places = torch.randperm(10, generator=order).tolist()
        for first in range(0, 10, 4):
            batch = batches.collate([read[at] for at in places[first : first + 4]], 0, CPU)
            adam.zero_grad()
            loss = plain.adapter.loss(model.head, model.encoder(batch), batch)
            loss.backward()  # type: ignore[no-untyped-call]
            for one in model.parameters():
                one.grad = torch.zeros_like(one) if one.grad is None else one.grad
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            rate = step / warmup if step < warmup else (total - step) / (total - warmup)
            for group in adam.param_groups:
                group["lr"] = recipe.learning_rate * rate
            adam.step()
            step += 1
    for name, one in model.state_dict().items():
        assert torch.allclose(one, tuning.model.state_dict()[name], atol=2e-6), name


def test_the_weights_are_those_of_the_best_epoch(folder: Path) -> None:
    seen: list[dict[str, torch.Tensor]] = []
    tuning = _tuning(folder, replace(QUICK, epochs=4))
    scores = iter([0.2, 0.5, 0.5, 0.1])

    def dev() -> float:
        seen.append(_weights(tuning))
        return next(scores)

    epochs, best = tuning.train(_texts(8), 0, dev)
    assert best == 2
    assert [one.dev for one in epochs] == [0.2, 0.5, 0.5, 0.1]
    kept = _weights(tuning)
    assert all(torch.equal(kept[name], seen[1][name]) for name in kept)
    assert any(not torch.equal(kept[name], seen[3][name]) for name in kept)


@pytest.mark.parametrize(("scores", "best"), [((0.1, 0.2), 2), ((0.0, 0.0), 1), ((-0.5, -0.4), 2)])
def test_the_first_of_equals_is_the_best_and_a_score_may_be_negative(
    folder: Path, scores: tuple[float, ...], best: int
) -> None:
    found = iter(scores)
    _, number = _tuning(folder, replace(QUICK, epochs=2)).train(_texts(8), 0, lambda: next(found))
    assert number == best


def test_without_dev_the_last_epoch_stays(folder: Path) -> None:
    epochs, best = _tuning(folder, QUICK).train(_texts(8), 0, None)
    assert best == len(epochs) == 3
    assert all(one.dev is None for one in epochs)


def test_steps_end_in_the_middle_of_an_epoch(folder: Path) -> None:
    tuning = _tuning(folder, replace(QUICK, steps=3))
    epochs, _ = tuning.train(_texts(8), 0, None)
    assert [one.epoch for one in epochs] == [1, 2]


def test_it_learns_what_can_be_learned(folder: Path) -> None:
    tuning = _tuning(folder, replace(QUICK, epochs=20, learning_rate=1e-2))
    tuning.train(_texts(32), 0, None)
    unseen = [
        replace(one, text=one.text + " patients") for one in _texts(12) if isinstance(one, LabelledText)
    ]
    assert tuning.predict(unseen) == [one.label for one in unseen]


def test_a_seed_decides_order_and_dropout_and_nothing_else_does(folder: Path) -> None:
    def learned(seed: int) -> dict[str, Any]:
        tuning = _tuning(folder, QUICK, dropout=0.1)
        torch.manual_seed(99 + seed)  # whatever was drawn before
        tuning.train(_texts(8), seed, None)
        return tuning.model.state_dict()

    one, same, other = learned(1), learned(1), learned(2)
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_predictions_are_in_the_records_order_whatever_their_lengths(folder: Path) -> None:
    tuning = _tuning(folder, replace(QUICK, epochs=20, learning_rate=1e-2))
    tuning.train(_texts(32), 0, None)
    texts: list[Record] = [
        LabelledText(str(at), f"the {'drug' if at % 3 else 'gene'} {'of ' * (at % 7)}", "")
        for at in range(150)
    ]
    assert tuning.predict(texts) == ["yes" if at % 3 else "no" for at in range(150)]


def test_lower_layers_learn_less(folder: Path) -> None:
    before = _weights(_tuning(folder, QUICK))

    def moved(recipe: FineTuneRecipe) -> dict[str, float]:
        tuning = _tuning(folder, recipe)
        tuning.train(_texts(4), 0, None)
        after = tuning.model.state_dict()
        return {name: float((after[name] - before[name]).abs().max()) for name in after}

    one = replace(QUICK, epochs=1, batch_size=4, warmup=0.0, bias_correction=True)
    plain, decayed = moved(one), moved(replace(one, layer_decay=0.5))
    published = moved(replace(one, layer_decay=0.5, electra_layer_decay=True))
    words = "encoder.model.embeddings.word_embeddings.weight"
    layer = "encoder.model.encoder.layer.0.output.dense.weight"
    head = "head.pooled.linear.weight"
    assert decayed[head] == pytest.approx(plain[head], rel=1e-3)
    assert decayed[layer] == pytest.approx(plain[layer] / 2, rel=1e-2)
    assert decayed[words] == pytest.approx(plain[words] / 4, rel=1e-2)
    assert published[layer] == pytest.approx(plain[layer] / 4, rel=1e-2)


def test_layer_decay_is_refused_where_no_layer_is_known_by_its_name(folder: Path) -> None:
    tuning = _tuning(folder, replace(QUICK, layer_decay=0.8))
    model = tuning.model.encoder.model
    model.layers = model.encoder.layer  # as in ModernBERT, whose embeddings are called as BERT's
    del model.encoder
    with pytest.raises(ValueError, match="names that BERT's have"):
        tuning.train(_texts(4), 0, None)


def test_a_checkpoint_in_half_precision_is_tuned_in_float32(folder: Path, tmp_path: Path) -> None:
    look = pretrained.inspect_checkpoint(str(folder))
    pretrained.load_encoder(look).model.to(torch.bfloat16).save_pretrained(tmp_path)
    look.load_tokenizer().hf_tokenizer.save_pretrained(tmp_path)
    tuning = _tuning(tmp_path, QUICK)
    assert {one.dtype for one in tuning.model.parameters()} == {torch.float32}
    tuning.train(_texts(4), 0, None)


def test_bfloat16_does_not_round_scores(folder: Path) -> None:
    tuning = _tuning(folder, replace(QUICK, precision="bfloat16"))
    tuning.adapter = Classification(
        pretrained.inspect_checkpoint(str(folder)).load_tokenizer(), tuning.recipe, "regression", ()
    )
    tuning.model.head = tuning.adapter.build_head(tuning.model.encoder.hidden_size)
    tuning.train([replace(one, label=2.5) for one in _texts(8) if isinstance(one, LabelledText)], 0, None)
    [found] = tuning.predict(_texts(1))
    assert float(torch.tensor(found).bfloat16()) != found


def test_a_loss_that_is_no_number_ends_it(folder: Path) -> None:
    with pytest.raises(NaNLossError, match="give a lower --learning-rate"):
        _tuning(folder, replace(QUICK, learning_rate=1e38)).train(_texts(16), 0, None)


def test_no_score_is_made_of_what_is_no_number(folder: Path) -> None:
    tuning = _tuning(folder, replace(QUICK, learning_rate=1e38, epochs=1, batch_size=8, warmup=0.0))
    tuning.train(_texts(8), 0, None)  # one update, after a loss that is a number
    with pytest.raises(NaNLossError, match="give a lower --learning-rate"):
        tuning.predict(_texts(2))


# Recipes and tasks


def test_every_task_of_a_suite_is_known_and_every_task_is_of_a_suite() -> None:
    assert {name for suite in SUITES.values() for name in suite} == set(TASKS)
    assert len(SUITES["blurb"]) == 13


def test_what_is_planned() -> None:
    names = [one.name for one in plan_tasks(["gad", "bio-electra/gad", "blurb/ddi"], {})]
    assert names == ["blurb/gad", "bio-electra/gad", "blurb/ddi"]
    [one] = plan_tasks(["bio-electra/gad"], {"epochs": 7})
    assert (one.recipe.epochs, one.recipe.layer_decay) == (7, 0.8)
    assert len(plan_tasks(["blurb", "gad"], {})) == 13
    assert len(plan_tasks(list(SUITES), {})) == sum(map(len, SUITES.values()))


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("blrub", "blurb is meant"),
        ("bio-electra/hoc", "no such suite or task"),
        ("bc5chem", "bc5-chem is meant"),
    ],
)
def test_an_unknown_task_is_named(word: str, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        plan_tasks([word], {})


@pytest.mark.parametrize(
    "wrong",
    [
        {"learning_rate": -1.0},
        {"learning_rate": math.nan},
        {"batch_size": 0},
        {"epochs": 0},
        {"max_seq_length": 7},
        {"layer_decay": 0.0},
        {"layer_decay": 1.1},
        {"dropout": 1.0},
        {"class_weights": "1,-2"},
        {"tag_scheme": "BILOU"},
        {"epochs": 1.5},
        {"steps": -1},
    ],
)
def test_a_recipe_that_cannot_be_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="--"):
        FineTuneRecipe(**wrong)
