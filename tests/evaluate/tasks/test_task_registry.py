"""Planned tasks: recipes, legacy modes, samples, and the provenance of the data."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate import recipes
from bioshards.evaluate.recipes import SUITES, FineTuneRecipe, LegacyMode, override_recipe
from bioshards.evaluate.runs.run import load_task_data
from bioshards.evaluate.tasks.task_registry import plan_tasks
from tests.support.evaluate.evaluate_commands import load_result, run_evaluate
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.paths import BENCHMARK_SAMPLE

LEGACY_MODES: tuple[LegacyMode, ...] = get_args(LegacyMode)


def test_epochs_option_overrides_the_steps_of_a_suite() -> None:
    [task] = plan_tasks(["bioalbert/s800"], {"epochs": 2})
    assert task.recipe.total_steps(batches_per_epoch=10) == 20
    [task] = plan_tasks(["bioalbert/s800"], {})
    assert task.recipe.total_steps(batches_per_epoch=10) == 5336
    assert override_recipe(SUITES["bioalbert"]["s800"], {"epochs": 2, "steps": 7}).total_steps(10) == 7


def test_dev_selects_the_epoch_or_is_trained_on() -> None:
    [task] = plan_tasks(["bio-electra/gad"], {})
    assert (task.recipe.train_on, task.recipe.select_epoch) == ("train+dev", "last")
    [task] = plan_tasks(["bio-electra/gad"], {"select_epoch": "best"})
    assert task.recipe.train_on == "train"
    with pytest.raises(ValueError, match="add --select-epoch last"):
        plan_tasks(["bio-electra/gad"], {"select_epoch": "best", "train_on": "train+dev"})


def test_train_on_train_and_dev_joins_the_splits() -> None:
    [task] = plan_tasks(["bio-electra/gad"], {})
    [other_task] = plan_tasks(["blurb/gad"], {})
    joined = load_task_data(str(BENCHMARK_SAMPLE), task, 0, ("train", "test")).records_by_split
    separate = load_task_data(str(BENCHMARK_SAMPLE), other_task, 0, ("train", "dev", "test")).records_by_split
    assert joined["train"] == [*separate["train"], *separate["dev"]]
    assert joined["test"] == separate["test"]


SHORTER_INPUTS = {"chemprot": 256, "ddi": 256, "gad": 128}
PUBMEDBERT_SETTINGS: dict[str, tuple[str, Callable[[str, FineTuneRecipe], bool]]] = {
    "Adam, no weight decay": ("4.2", lambda _, recipe: recipe.bias_correction and not recipe.weight_decay),
    "slanted triangular schedule": ("4.2", lambda _, recipe: recipe.schedule == "triangular"),
    "warm-up in 10 % of the steps": ("4.2", lambda _, recipe: recipe.warmup == 0.1),
    "dropout 0.1": ("4.2", lambda _, recipe: recipe.dropout == 0.1),
    "2 to 60 epochs": ("4.2", lambda _, recipe: not recipe.steps and 2 <= recipe.epochs <= 60),
    "batches of 16 or 32": ("4.2", lambda _, recipe: recipe.batch_size in (16, 32)),
    "input lengths": ("4.2", lambda task, recipe: recipe.max_seq_length == SHORTER_INPUTS.get(task, 512)),
    "linear head": ("table 12", lambda _, recipe: recipe.head == "linear"),
    "BIO tags": ("table 13", lambda _, recipe: recipe.tag_scheme == "BIO"),
    "placeholders of entities": ("table 14", lambda _, recipe: recipe.entity_format == "placeholders"),
    "[CLS] of pairs": ("table 14", lambda _, recipe: recipe.relation_feature == "cls"),
}
"""Settings of PubMedBERT's paper (Gu et al. 2020, arXiv:2007.15779): section or table, and the check."""


@pytest.mark.parametrize("setting", PUBMEDBERT_SETTINGS)
def test_blurb_recipes_follow_the_paper(setting: str) -> None:
    place, is_followed = PUBMEDBERT_SETTINGS[setting]
    differing = [name for name, recipe in SUITES["blurb"].items() if not is_followed(name, recipe)]
    assert not differing, place


def test_rates_that_the_paper_leaves_open_are_of_the_published_script() -> None:
    """SOURCE: michiyasunaga/LinkBERT, src/run_examples_blurb_biolinkbert-base.sh."""
    rates = {name: recipe.learning_rate for name, recipe in SUITES["blurb"].items()}
    assert {name: rates[name] for name in ("bc2gm", "ddi", "hoc", "pubmedqa", "bioasq-yesno")} == {
        "bc2gm": 6e-5,
        "ddi": 2e-5,
        "hoc": 4e-5,
        "pubmedqa": 2e-5,
        "bioasq-yesno": 2e-5,
    }


def test_task_of_several_suites_is_asked_for_with_its_suite() -> None:
    with pytest.raises(InvalidValueError, match=r"give blurb/gad or bio-electra/gad$"):
        plan_tasks(["gad"], {})
    assert [task.name for task in plan_tasks(["hoc", "chemprot-scibert"], {})] == [
        "blurb/hoc",
        "further/chemprot-scibert",
    ]


def test_bioalbert_recipe_has_alberts_optimizer_and_the_papers_checkpoints() -> None:
    """SOURCES: Naseem et al. 2020, table III; google-research/albert, optimization.py."""
    [task] = plan_tasks(["bioalbert/s800"], {})
    recipe = task.recipe
    assert (recipe.schedule, recipe.bias_correction, recipe.epsilon) == ("bert", False, 1e-6)
    assert (recipe.weight_decay, recipe.grad_clip, recipe.checkpoint_interval) == (0.01, 1.0, 200)
    [changed] = plan_tasks(["bioalbert/s800"], {"epochs": 2})
    assert changed.recipe.checkpoint_interval == 0, "the interval belongs to the steps"


def test_electramed_recipes_have_no_weight_decay() -> None:
    """SOURCE: Miolo et al. 2021, table 5."""
    assert {recipe.weight_decay for recipe in SUITES["electramed"].values()} == {0.0}
    assert recipes.SQUAD_RECIPE.weight_decay == 0.0


def test_electras_code_answers_questions_with_its_joint_head() -> None:
    [question_task, other_task] = plan_tasks(["bio-electra/factoid-8b", "bio-electra/gad"], {})
    assert question_task.recipe.answer_head == "joint"
    assert other_task.recipe.answer_head == "independent", "no setting that has no effect is recorded"
    [factoid_7b] = plan_tasks(["electramed/factoid-7b"], {})
    assert factoid_7b.recipe.answer_head == "independent", "its run_factoid.py has BERT's head"


@pytest.mark.parametrize(
    ("task", "seeds"),
    [
        ("blurb/gad", 5),
        ("blurb/biosses", 10),
        ("blurb/pubmedqa", 10),
        ("blurb/bioasq-yesno", 10),
        ("bio-electra/gad", 10),
        ("electramed/factoid-7b", 5),
        ("bioalbert/s800", 5),
    ],
)
def test_seeds_are_as_many_as_the_paper_has(task: str, seeds: int) -> None:
    assert recipes.find_num_seeds(*task.split("/")) == seeds


def test_legacy_modes_apply_to_entity_tasks_only() -> None:
    modes_by_task = {task.task.name: task.legacy_modes for task in plan_tasks(SUITES, {}, LEGACY_MODES)}
    for name in ("gad", "hoc", "ebm-pico", "reranker", "factoid-8b", "chemprot"):
        assert modes_by_task[name] == ()
    for name in SUITES["bioalbert"]:
        assert modes_by_task[name] == tuple(sorted(LEGACY_MODES))


def test_sampled_squad_is_recorded(tmp_path: Path) -> None:
    data = shutil.copytree(BENCHMARK_SAMPLE, tmp_path / "data")
    squad = data / "squad" / "train-v1.1.json"
    articles = json.loads(squad.read_text())["data"]
    copies = [json.loads(json.dumps(articles).replace('"id": "', f'"id": "{copy}')) for copy in range(5)]
    squad.write_text(json.dumps({"data": [task for copy in copies for task in copy]}))
    [task] = plan_tasks(["electramed/factoid-7b"], {})
    full = load_task_data(str(data), task, 0, ("train", "test"))
    assert full.sample_sizes is None
    limit = max(len(records) for records in full.records_by_split.values())
    sampled = load_task_data(str(data), task, limit, ("train", "test"))
    assert sampled.records_by_split == full.records_by_split
    assert sampled.sample_sizes is not None
    assert sampled.sample_sizes["squad"] == len(sampled.squad_records) < len(full.squad_records)


def test_squad_that_is_not_as_published_spoils_the_status_of_a_task(tmp_path: Path) -> None:
    data = shutil.copytree(BENCHMARK_SAMPLE, tmp_path / "data")
    [task] = plan_tasks(["electramed/factoid-7b"], {})
    assert load_task_data(str(data), task, 0, ("train", "test")).provenance.file_status == "invented"
    for path in data.glob("electramed/QA/BioASQ/*.json"):
        path.write_text(path.read_text() + "\n")
    assert load_task_data(str(data), task, 0, ("train", "test")).provenance.file_status == "invented"
    squad = data / "squad" / "train-v1.1.json"
    squad.write_text(squad.read_text() + "\n")
    (data / "squad" / "dev-v1.1.json").unlink()
    assert load_task_data(str(data), task, 0, ("train", "test")).provenance.file_status == "differs"


def test_examples_sha256_depends_on_the_gold_labels(tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / "model")
    data = shutil.copytree(BENCHMARK_SAMPLE, tmp_path / "data")
    test = next(data.glob("**/NCBI-disease-IOB/test.tsv"))
    task, digests = "blurb/ncbi-disease", set()
    for name in ("one", "other"):
        options = ("--tasks", task, "--seeds", 1, "--epochs", 1)
        assert run_evaluate(checkpoint, tmp_path / name, *options, data=data) == 0
        digests.add(load_result(tmp_path / name, task)["per_example_stats"]["examples_sha256"])
        test.write_text(test.read_text().replace("\tB-Disease\n", "\tO\n", 1))
    assert len(digests) == 2
