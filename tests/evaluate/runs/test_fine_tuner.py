"""The fine-tuning loop against a plain loop in PyTorch, the epoch that it selects, and recipes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.records import LabelledText, Record
from bioshards.evaluate.encoder import inspect_checkpoint, load_encoder
from bioshards.evaluate.recipes import SUITES, FineTuneRecipe
from bioshards.evaluate.runs import fine_tuner
from bioshards.evaluate.runs.fine_tuner import EncoderWithHead, FineTuner, NaNLossError
from bioshards.evaluate.runs.results import CheckpointScore
from bioshards.evaluate.tasks.classification import Classification, ClassificationType
from bioshards.evaluate.tasks.task_registry import TASKS, plan_tasks

QUICK = FineTuneRecipe(batch_size=4, epochs=3, max_seq_length=32, learning_rate=1e-3, dropout=0.0)
LABELS = ("no", "yes")


pytestmark = pytest.mark.usefixtures("use_one_thread")


def make_texts(count: int) -> list[Record]:
    return [
        LabelledText(str(index), f"the {'drug' if index % 2 else 'gene'} of {index}", LABELS[index % 2])
        for index in range(count)
    ]


class RecordTuner(FineTuner):
    """A fine-tuner that tokenizes records itself."""

    def train_on(
        self, records: Sequence[Record], seed: int, score_dev: Callable[[], float] | None = None
    ) -> tuple[list[CheckpointScore], int]:
        """Return the checkpoints, and the index of the selected one."""
        examples = self.adapter.make_examples(records, is_training=True)
        self.train(examples, seed, (lambda: {"score": score_dev()}) if score_dev else None, "score")
        return self.checkpoints, [one.step for one in self.checkpoints].index(self.selected_step)

    def classify(self, records: Sequence[Record]) -> list[Any]:
        return self.predict(self.adapter.make_examples(records, is_training=False))


def make_fine_tuner(checkpoint_dir: Path, recipe: FineTuneRecipe, dropout: float = 0.0) -> RecordTuner:
    checkpoint = inspect_checkpoint(str(checkpoint_dir))
    adapter = Classification(checkpoint.load_tokenizer(), recipe, "single_label", LABELS)
    torch.manual_seed(7)
    encoder = load_encoder(checkpoint, adapter.tokenizer)
    for module in encoder.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    model = EncoderWithHead(encoder, adapter.build_head(encoder.hidden_size))
    return RecordTuner(model, adapter, recipe, Progress(None))


def copy_weights(tuner: FineTuner) -> dict[str, torch.Tensor]:
    return {name: weight.clone() for name, weight in tuner.model.state_dict().items()}


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_training_equals_adamw_with_linear_warmup_and_decay(checkpoint_dir: Path, decay: float) -> None:
    recipe = replace(QUICK, weight_decay=decay, warmup=0.25, grad_clip=0.5)
    tuner, reference = make_fine_tuner(checkpoint_dir, recipe), make_fine_tuner(checkpoint_dir, recipe)
    records = make_texts(10)
    tuner.train_on(records, 3)

    model = reference.model.train()
    examples = reference.adapter.make_examples(records, is_training=True)
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    groups = [{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}]
    adam = torch.optim.AdamW(groups, lr=recipe.learning_rate, eps=recipe.epsilon)
    total, warmup = 9, round(0.25 * 9)
    order, step = torch.Generator().manual_seed(3), 0
    for _ in range(3):
        permutation = torch.randperm(10, generator=order).tolist()
        for first in range(0, 10, 4):
            batch = model.encoder([examples[index] for index in permutation[first : first + 4]])
            adam.zero_grad()
            loss = reference.adapter.loss(model.head, batch)
            loss.backward()  # type: ignore[no-untyped-call]
            for parameter in model.parameters():
                parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            rate = step / warmup if step < warmup else (total - step) / (total - warmup)
            for group in adam.param_groups:
                group["lr"] = recipe.learning_rate * rate
            adam.step()
            step += 1
    for name, parameter in model.state_dict().items():
        assert torch.allclose(parameter, tuner.model.state_dict()[name], atol=2e-6), name


@pytest.mark.parametrize(("scores", "best"), [((0.1, 0.2), 1), ((0.0, 0.0), 0), ((-0.5, -0.4), 1)])
def test_first_of_equal_dev_scores_is_selected(
    checkpoint_dir: Path, scores: tuple[float, ...], best: int
) -> None:
    remaining_scores = iter(scores)
    _, selected = make_fine_tuner(checkpoint_dir, replace(QUICK, epochs=2)).train_on(
        make_texts(8), 0, lambda: next(remaining_scores)
    )
    assert selected == best


def test_last_epoch_is_selected_without_dev(checkpoint_dir: Path) -> None:
    checkpoints, best = make_fine_tuner(checkpoint_dir, QUICK).train_on(make_texts(8), 0)
    assert (best, len(checkpoints)) == (2, 3)
    assert all(checkpoint.dev is None for checkpoint in checkpoints)


def test_steps_can_end_within_an_epoch(checkpoint_dir: Path) -> None:
    tuner = make_fine_tuner(checkpoint_dir, replace(QUICK, steps=3))
    checkpoints, _ = tuner.train_on(make_texts(8), 0)
    assert [checkpoint.step for checkpoint in checkpoints] == [2, 3]


def test_checkpoints_can_be_scored_within_and_across_epochs(checkpoint_dir: Path) -> None:
    weights: list[dict[str, torch.Tensor]] = []
    scores = iter([0.2, 0.9, 0.1])
    tuner = make_fine_tuner(checkpoint_dir, replace(QUICK, steps=8, checkpoint_interval=3))

    def score_dev() -> float:
        weights.append(copy_weights(tuner))
        return next(scores)

    checkpoints, best = tuner.train_on(make_texts(8), 0, score_dev)  # two batches an epoch
    assert [(checkpoint.step, checkpoint.dev) for checkpoint in checkpoints] == [(3, 0.2), (6, 0.9), (8, 0.1)]
    assert best == 1
    final_weights = copy_weights(tuner)
    assert all(torch.equal(final_weights[name], weights[1][name]) for name in final_weights)
    epochs, _ = make_fine_tuner(checkpoint_dir, replace(QUICK, steps=8)).train_on(make_texts(8), 0)
    three, six, eight = (checkpoint.loss for checkpoint in checkpoints)
    assert 3 * three + 3 * six + 2 * eight == pytest.approx(2 * sum(epoch.loss for epoch in epochs), rel=1e-5)


def test_training_is_determined_by_the_seed(checkpoint_dir: Path) -> None:
    def train_weights(seed: int) -> dict[str, Any]:
        tuner = make_fine_tuner(checkpoint_dir, QUICK, dropout=0.1)
        torch.manual_seed(99 + seed)  # the state of the global generator has no effect
        tuner.train_on(make_texts(8), seed)
        return tuner.model.state_dict()

    first, same, other = train_weights(1), train_weights(1), train_weights(2)
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert any(not torch.equal(first[name], other[name]) for name in first)


def test_predictions_are_in_record_order(checkpoint_dir: Path) -> None:
    tuner = make_fine_tuner(checkpoint_dir, replace(QUICK, epochs=20, learning_rate=1e-2))
    tuner.train_on(make_texts(32), 0)
    texts: list[Record] = [
        LabelledText(str(index), f"the {'drug' if index % 3 else 'gene'} {'of ' * (index % 7)}", "")
        for index in range(150)
    ]
    assert tuner.classify(texts) == ["yes" if index % 3 else "no" for index in range(150)]


def test_layer_decay_scales_updates_by_layer(checkpoint_dir: Path) -> None:
    before = copy_weights(make_fine_tuner(checkpoint_dir, QUICK))

    def measure_weight_changes(recipe: FineTuneRecipe) -> dict[str, float]:
        tuner = make_fine_tuner(checkpoint_dir, recipe)
        tuner.train_on(make_texts(4), 0)
        after = tuner.model.state_dict()
        return {name: float((after[name] - before[name]).abs().max()) for name in after}

    base_recipe = replace(QUICK, epochs=1, batch_size=4, warmup=0.0, bias_correction=True)
    plain = measure_weight_changes(base_recipe)
    decayed = measure_weight_changes(replace(base_recipe, layer_decay=0.5))
    published = measure_weight_changes(replace(base_recipe, layer_decay=0.5, electra_layer_decay=True))
    words = "encoder.model.embeddings.word_embeddings.weight"
    layer = "encoder.model.encoder.layer.0.output.dense.weight"
    head = "head.linear.weight"
    assert decayed[head] == pytest.approx(plain[head], rel=1e-3)
    assert decayed[layer] == pytest.approx(plain[layer] / 2, rel=1e-2)
    assert decayed[words] == pytest.approx(plain[words] / 4, rel=1e-2)
    assert published[layer] == pytest.approx(plain[layer] / 4, rel=1e-2)


def test_layer_decay_is_refused_for_unknown_layer_names(checkpoint_dir: Path) -> None:
    tuner = make_fine_tuner(checkpoint_dir, replace(QUICK, layer_decay=0.8))
    model = tuner.model.encoder.model
    model.layers = model.encoder.layer  # as in ModernBERT, whose embeddings have BERT's names
    del model.encoder
    with pytest.raises(ValueError, match="names that BERT's have"):
        tuner.train_on(make_texts(4), 0)


def test_half_precision_checkpoint_is_trained_in_float32(checkpoint_dir: Path, tmp_path: Path) -> None:
    checkpoint = inspect_checkpoint(str(checkpoint_dir))
    tokenizer = checkpoint.load_tokenizer()
    load_encoder(checkpoint, tokenizer).model.to(torch.bfloat16).save_pretrained(tmp_path)
    tokenizer.hf_tokenizer.save_pretrained(tmp_path)
    tuner = make_fine_tuner(tmp_path, QUICK)
    assert {parameter.dtype for parameter in tuner.model.parameters()} == {torch.float32}
    tuner.train_on(make_texts(4), 0)


def test_bfloat16_does_not_round_scores(checkpoint_dir: Path) -> None:
    tuner = make_fine_tuner(checkpoint_dir, replace(QUICK, precision="bfloat16"))
    tuner.adapter = Classification(
        inspect_checkpoint(str(checkpoint_dir)).load_tokenizer(), tuner.recipe, "regression", ()
    )
    tuner.model.head = tuner.adapter.build_head(tuner.model.encoder.hidden_size)
    tuner.train_on(
        [replace(record, label=2.5) for record in make_texts(8) if isinstance(record, LabelledText)], 0
    )
    [prediction] = tuner.classify(make_texts(1))
    assert float(torch.tensor(prediction).bfloat16()) != prediction


@pytest.mark.parametrize("problem_type", ["single_label", "ranking"])
def test_prediction_in_bfloat16_is_that_of_float32_within_a_tolerance(
    problem_type: ClassificationType, checkpoint_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A GPU predicts in bfloat16: probabilities differ by at most 0.002 (docs/evaluation.md)."""
    tuner = make_fine_tuner(checkpoint_dir, replace(QUICK, epochs=8, learning_rate=1e-2))
    tuner.train_on(make_texts(32), 0)
    records = make_texts(100)
    tuner.adapter = replace(tuner.adapter, problem_type=problem_type)  # type: ignore[type-var]
    expected = tuner.classify(records)
    monkeypatch.setattr(fine_tuner, "predicts_in_bfloat16", lambda _: True)
    predicted = tuner.classify(records)
    if problem_type == "single_label":
        assert predicted == expected
    else:
        assert predicted != expected
        assert predicted == pytest.approx(expected, abs=0.002)


def test_nan_loss_stops_training(checkpoint_dir: Path) -> None:
    with pytest.raises(NaNLossError, match="give a lower --learning-rate"):
        make_fine_tuner(checkpoint_dir, replace(QUICK, learning_rate=1e38)).train_on(make_texts(16), 0)


# Recipes and tasks


def test_suites_cover_exactly_the_registered_tasks() -> None:
    assert {name for suite in SUITES.values() for name in suite} == set(TASKS)
    assert len(SUITES["blurb"]) == 13


def test_plan_of_suites_and_tasks() -> None:
    names = [task.name for task in plan_tasks(["blurb/gad", "bio-electra/gad", "ddi"], {})]
    assert names == ["blurb/gad", "bio-electra/gad", "blurb/ddi"]
    [task] = plan_tasks(["bio-electra/gad"], {"epochs": 7})
    assert (task.recipe.epochs, task.recipe.layer_decay) == (7, 0.8)
    assert len(plan_tasks(["blurb", "blurb/gad"], {})) == 13
    assert len(plan_tasks(list(SUITES), {})) == sum(map(len, SUITES.values()))


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
        {"checkpoint_interval": -1},
        {"answer_head": "both"},
    ],
)
def test_invalid_recipe_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="--"):
        FineTuneRecipe(**wrong)
