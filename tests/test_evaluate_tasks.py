"""What a task takes of what is asked for: recipes, the papers' ways of counting, samples."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import get_args

import pytest
import torch

from bioshards.corpus.files import LocalFiles
from bioshards.evaluate import encoder, examples, results
from bioshards.evaluate.datasets import PARTS
from bioshards.evaluate.prepare import prepare
from bioshards.evaluate.recipes import SUITES, Recipe, changed
from bioshards.evaluate.records import Sentence
from bioshards.evaluate.run import Job, run
from bioshards.evaluate.tagging import Tagging, types_of
from bioshards.evaluate.tasks import TASKS, Legacy, plan
from tests.conftest import DATA, needs_data
from tests.evaluation_models import checkpoint
from tests.evaluation_sample import SAMPLE

BENCHMARKS = Path(str(DATA), "benchmarks")
NOT_ENTITIES = sorted(name for name, task in TASKS.items() if not task.ways(get_args(Legacy)))


def test_epochs_that_are_asked_for_are_not_overruled_by_steps() -> None:
    [one] = plan(["bioalbert/s800"], {"epochs": 2})
    assert one.recipe.total(batches=10) == 20
    [one] = plan(["bioalbert/s800"], {})
    assert one.recipe.total(batches=10) == 5336
    assert changed(SUITES["bioalbert"]["s800"], {"epochs": 2, "steps": 7}).total(10) == 7


def test_dev_is_not_learned_from_where_it_is_to_choose() -> None:
    [one] = plan(["bio-electra/gad"], {})
    assert (one.recipe.learn_from, one.recipe.keep) == ("train+dev", "last")
    [one] = plan(["bio-electra/gad"], {"keep": "best"})
    assert one.recipe.learn_from == "train"
    with pytest.raises(ValueError, match="add --keep last"):
        plan(["bio-electra/gad"], {"keep": "best", "learn_from": "train+dev"})


def test_dev_is_learned_from_only_if_that_is_asked_for() -> None:
    [one] = plan(["bio-electra/gad"], {})
    [other] = plan(["blurb/gad"], {})
    both = prepare(str(SAMPLE), one, 0, ("train", "test")).parts
    apart = prepare(str(SAMPLE), other, 0, ("train", "dev", "test")).parts
    assert both["train"] == [*apart["train"], *apart["dev"]]
    assert both["test"] == apart["test"]


def test_recipes_are_those_of_the_published_scripts() -> None:
    """michiyasunaga/LinkBERT, src/run_examples_blurb_biolinkbert-base.sh."""
    assert {name: one.length for name, one in SUITES["blurb"].items() if one.length != 512} == {
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
    assert all({*TASKS[name].ways(get_args(Legacy))} == {*get_args(Legacy)} for name in SUITES["bioalbert"])


def test_a_run_with_them_scores_other_tasks_as_ever(tmp_path: Path) -> None:
    model = encoder.look(str(checkpoint(tmp_path / "model")))
    notes: list[str] = []
    ways: tuple[Legacy, ...] = get_args(Legacy)
    tasks = plan(["gad", "ebm-pico"], {"epochs": 1})
    job = Job(
        *(model, str(SAMPLE), str(tmp_path / "out"), tasks, [0], torch.device("cpu")),
        say=notes.append,
        note=notes.append,
        ways=ways,
    )
    assert run(job).made == 2, notes
    plain = run(Job(*(model, str(SAMPLE), job.out, tasks, [0], job.device), say=print, note=print))
    assert (plain.there, plain.failed) == (2, {})


def test_a_sample_of_squad_is_a_sample(tmp_path: Path) -> None:
    data = shutil.copytree(SAMPLE, tmp_path / "data")
    squad = data / "squad" / "train-v1.1.json"
    articles = json.loads(squad.read_text())["data"]
    copies = [json.loads(json.dumps(articles).replace('"id": "', f'"id": "{copy}')) for copy in range(5)]
    squad.write_text(json.dumps({"data": [one for copy in copies for one in copy]}))
    [one] = plan(["electramed/factoid-7b"], {})
    whole = prepare(str(data), one, 0, ("train", "test"))
    assert whole.sampled is None
    most = max(len(records) for records in whole.parts.values())
    found = prepare(str(data), one, most, ("train", "test"))
    assert found.parts == whole.parts
    assert found.sampled is not None
    assert found.sampled["squad"] == len(found.squad) < len(whole.squad)


@needs_data
def test_a_set_that_a_paper_counted_otherwise_is_the_papers() -> None:
    [one, other] = plan(["bc5-disease", "jnlpba"], {})
    parts = PARTS
    assert prepare(str(BENCHMARKS), one, 0, parts).data["verified"]
    assert not prepare(str(BENCHMARKS), other, 0, parts).data["verified"]


def test_results_on_other_gold_are_of_other_examples(tmp_path: Path) -> None:
    model = encoder.look(str(checkpoint(tmp_path / "model")))
    data = shutil.copytree(SAMPLE, tmp_path / "data")
    test = next(data.glob("**/NCBI-disease-IOB/test.tsv"))
    ids = []
    for out in ("one", "other"):
        path = str(tmp_path / out)
        tasks = plan(["ncbi-disease"], {"epochs": 1})
        job = Job(model, str(data), path, tasks, [0], torch.device("cpu"), say=print, note=print)
        assert run(job).failed == {}
        result = results.read(LocalFiles(), results.path(path, "blurb", "ncbi-disease", 0))
        ids.append(result["units"]["ids"])
        test.write_text(test.read_text().replace("\tB-Disease\n", "\tO\n", 1))
    assert ids[0] != ids[1]


def test_a_type_that_train_has_not_can_be_predicted_on(tmp_path: Path) -> None:
    tokens = encoder.look(str(checkpoint(tmp_path))).tokens()
    train = [Sentence("1", ("the", "gene"), ("O", "B-Gene"))]
    test = [Sentence("2", ("the", "drug"), ("O", "B-Drug"))]
    problem = Tagging(tokens, Recipe(), types_of(train))
    read = problem.examples(test, learn=False)
    assert examples.batch(read, 0, torch.device("cpu")).mask.any()
    assert problem.gold(test) == [["O", "B-Drug"]]
    with pytest.raises(KeyError):
        problem.examples(test, learn=True)
