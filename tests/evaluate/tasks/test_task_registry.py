"""What a task takes of what is asked for: recipes, the papers' ways of counting, samples."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import get_args

import pytest
import torch

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.benchmarks.definition import SPLITS
from bioshards.evaluate.benchmarks.record_types import TaggedSentence
from bioshards.evaluate.config.fine_tune_recipe import FineTuneRecipe, override_recipe
from bioshards.evaluate.config.suites import SUITES
from bioshards.evaluate.modeling import batches, pretrained
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.evaluate_job import EvaluateJob, run_evaluation
from bioshards.evaluate.runs.task_data import load_task_data
from bioshards.evaluate.tasks.task_registry import TASKS, LegacyMode, plan_tasks
from bioshards.evaluate.tasks.token_classification import TokenClassification, find_entity_types
from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint
from tests.support.paths import BENCHMARK_SAMPLE
from tests.support.real_data import DATA, needs_data

BENCHMARKS = Path(str(DATA), "benchmarks")
NOT_ENTITIES = sorted(
    name for name, task in TASKS.items() if not task.applicable_legacy_modes(get_args(LegacyMode))
)


def test_epochs_that_are_asked_for_are_not_overruled_by_steps() -> None:
    [one] = plan_tasks(["bioalbert/s800"], {"epochs": 2})
    assert one.recipe.total_steps(batches_per_epoch=10) == 20
    [one] = plan_tasks(["bioalbert/s800"], {})
    assert one.recipe.total_steps(batches_per_epoch=10) == 5336
    assert override_recipe(SUITES["bioalbert"]["s800"], {"epochs": 2, "steps": 7}).total_steps(10) == 7


def test_dev_is_not_learned_from_where_it_is_to_choose() -> None:
    [one] = plan_tasks(["bio-electra/gad"], {})
    assert (one.recipe.train_on, one.recipe.select_epoch) == ("train+dev", "last")
    [one] = plan_tasks(["bio-electra/gad"], {"select_epoch": "best"})
    assert one.recipe.train_on == "train"
    with pytest.raises(ValueError, match="add --select-epoch last"):
        plan_tasks(["bio-electra/gad"], {"select_epoch": "best", "train_on": "train+dev"})


def test_dev_is_learned_from_only_if_that_is_asked_for() -> None:
    [one] = plan_tasks(["bio-electra/gad"], {})
    [other] = plan_tasks(["blurb/gad"], {})
    both = load_task_data(str(BENCHMARK_SAMPLE), one, 0, ("train", "test")).records_by_split
    apart = load_task_data(str(BENCHMARK_SAMPLE), other, 0, ("train", "dev", "test")).records_by_split
    assert both["train"] == [*apart["train"], *apart["dev"]]
    assert both["test"] == apart["test"]


def test_recipes_are_those_of_the_published_scripts() -> None:
    """michiyasunaga/LinkBERT, src/run_examples_blurb_biolinkbert-base.sh."""
    assert {
        name: one.max_seq_length for name, one in SUITES["blurb"].items() if one.max_seq_length != 512
    } == {
        "chemprot": 256,
        "ddi": 256,
        "gad": 256,
    }
    assert {name for name, one in SUITES["blurb"].items() if one.warmup == 100} == {
        "pubmedqa",
        "bioasq-yesno",
    }


def test_ways_of_counting_entities_are_for_entities_only() -> None:
    assert {"gad", "hoc", "ebm-pico", "reranker", "factoid-8b", "chemprot"} <= {*NOT_ENTITIES}
    assert all(
        {*TASKS[name].applicable_legacy_modes(get_args(LegacyMode))} == {*get_args(LegacyMode)}
        for name in SUITES["bioalbert"]
    )


def test_a_run_with_them_scores_other_tasks_as_ever(tmp_path: Path) -> None:
    model = pretrained.inspect_checkpoint(str(save_tiny_checkpoint(tmp_path / "model")))
    notes: list[str] = []
    ways: tuple[LegacyMode, ...] = get_args(LegacyMode)
    tasks = plan_tasks(["gad", "ebm-pico"], {"epochs": 1})
    job = EvaluateJob(
        *(model, str(BENCHMARK_SAMPLE), str(tmp_path / "out"), tasks, [0], torch.device("cpu")),
        progress=notes.append,
        log=notes.append,
        legacy_modes=ways,
    )
    assert run_evaluation(job).written == 2, notes
    plain = run_evaluation(
        EvaluateJob(
            *(model, str(BENCHMARK_SAMPLE), job.output, tasks, [0], job.device), progress=print, log=print
        )
    )
    assert (plain.skipped, plain.failed) == (2, {})


def test_a_sample_of_squad_is_a_sample(tmp_path: Path) -> None:
    data = shutil.copytree(BENCHMARK_SAMPLE, tmp_path / "data")
    squad = data / "squad" / "train-v1.1.json"
    articles = json.loads(squad.read_text())["data"]
    copies = [json.loads(json.dumps(articles).replace('"id": "', f'"id": "{copy}')) for copy in range(5)]
    squad.write_text(json.dumps({"data": [one for copy in copies for one in copy]}))
    [one] = plan_tasks(["electramed/factoid-7b"], {})
    whole = load_task_data(str(data), one, 0, ("train", "test"))
    assert whole.sample_sizes is None
    most = max(len(records) for records in whole.records_by_split.values())
    found = load_task_data(str(data), one, most, ("train", "test"))
    assert found.records_by_split == whole.records_by_split
    assert found.sample_sizes is not None
    assert found.sample_sizes["squad"] == len(found.squad_records) < len(whole.squad_records)


@needs_data
def test_a_set_that_a_paper_counted_otherwise_is_the_papers() -> None:
    [one, other] = plan_tasks(["bc5-disease", "jnlpba"], {})
    parts = SPLITS
    assert load_task_data(str(BENCHMARKS), one, 0, parts).provenance["verified"]
    assert not load_task_data(str(BENCHMARKS), other, 0, parts).provenance["verified"]


def test_results_on_other_gold_are_of_other_examples(tmp_path: Path) -> None:
    model = pretrained.inspect_checkpoint(str(save_tiny_checkpoint(tmp_path / "model")))
    data = shutil.copytree(BENCHMARK_SAMPLE, tmp_path / "data")
    test = next(data.glob("**/NCBI-disease-IOB/test.tsv"))
    ids = []
    for out in ("one", "other"):
        path = str(tmp_path / out)
        tasks = plan_tasks(["ncbi-disease"], {"epochs": 1})
        job = EvaluateJob(model, str(data), path, tasks, [0], torch.device("cpu"), progress=print, log=print)
        assert run_evaluation(job).failed == {}
        result = results.read_result(LocalStorage(), results.result_path(path, "blurb", "ncbi-disease", 0))
        ids.append(result["per_example_stats"]["examples_sha256"])
        test.write_text(test.read_text().replace("\tB-Disease\n", "\tO\n", 1))
    assert ids[0] != ids[1]


def test_a_type_that_train_has_not_can_be_predicted_on(tmp_path: Path) -> None:
    tokens = pretrained.inspect_checkpoint(str(save_tiny_checkpoint(tmp_path))).load_tokenizer()
    train = [TaggedSentence("1", ("the", "gene"), ("O", "B-Gene"))]
    test = [TaggedSentence("2", ("the", "drug"), ("O", "B-Drug"))]
    problem = TokenClassification(tokens, FineTuneRecipe(), find_entity_types(train))
    read = problem.make_examples(test, is_training=False)
    assert batches.collate(read, 0, torch.device("cpu")).mask.any()
    assert problem.gold_labels(test) == [["O", "B-Drug"]]
    with pytest.raises(KeyError):
        problem.make_examples(test, is_training=True)
