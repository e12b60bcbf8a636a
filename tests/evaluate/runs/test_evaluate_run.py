"""Every task from a checkpoint to its result on the bundled sample, and what each option does to it."""

from __future__ import annotations

import hashlib
import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.definition import load_records, locate_benchmark
from bioshards.evaluate.config.suites import SUITES
from bioshards.evaluate.runs import evaluate_job as runs
from bioshards.evaluate.runs import results as result_files
from bioshards.evaluate.tasks.task_registry import TASKS
from tests.support.evaluate.evaluate_commands import (
    list_temporary_files,
    load_result,
    load_results,
    run_evaluate,
)
from tests.support.evaluate.tiny_checkpoints import Family, save_tiny_checkpoint
from tests.support.paths import BENCHMARK_SAMPLE
from tests.support.train.trainer_runs import use_torch_threads

Capture = pytest.CaptureFixture[str]
PLANNED = [f"{suite}/{task}" for suite, recipes in SUITES.items() for task in recipes]
OF_EACH_KIND = (
    *("blurb/ncbi-disease", "blurb/chemprot", "blurb/hoc", "blurb/biosses", "bio-electra/reranker"),
    *("bio-electra/factoid-8b", "electramed/factoid-7b"),
)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    with use_torch_threads(1):
        yield


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")


@pytest.fixture(scope="module")
def whole(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all suites."""
    out = tmp_path_factory.mktemp("whole")
    assert run_evaluate(model, out, "--tasks", *SUITES, "--seeds", 1, "--first-seed", 3) == 0
    return out


# All tasks


def test_every_task_of_every_suite_has_a_result(whole: Path) -> None:
    assert {str(path.relative_to(whole)) for path in whole.rglob("seed-3.json")} == {
        f"{name}/seed-3.json" for name in PLANNED
    }
    assert not list_temporary_files(whole)


@pytest.mark.parametrize("name", PLANNED)
def test_a_result_says_what_was_done_with_what(whole: Path, model: Path, name: str) -> None:
    suite, task_name = name.split("/")
    task, found = TASKS[task_name], load_result(whole, name, 3)
    located = locate_benchmark(str(BENCHMARK_SAMPLE), BENCHMARKS[task.benchmark])
    assert located is not None
    parts = load_records(located)
    assert (found["suite"], found["task"], found["seed"]) == (suite, task_name, 3)
    assert (found["model"]["name"], found["model"]["type"]) == ("electra", "electra")
    assert (found["metric"], found["main_score"]) == (task.metric.name, task.metric.main_score)
    assert (found["sample_sizes"], found["legacy"], found["device"]) == (None, [], "cpu")
    assert found["settings"]["max_seq_length"] == 64
    assert found["settings"]["learning_rate"] == SUITES[suite][task_name].learning_rate
    chosen = found["settings"]["select_epoch"] == "best"
    assert {*found["scores"]} == ({"dev", "test"} if chosen else {"test"})
    assert all((one["dev"] is not None) is chosen for one in found["epochs"])
    assert found["provenance"]["verified"] is (task.benchmark == "biosses")
    for path, digest in found["provenance"]["files"].items():
        if (BENCHMARK_SAMPLE / path).is_file():
            assert hashlib.sha256((BENCHMARK_SAMPLE / path).read_bytes()).hexdigest() == digest
    told = (whole / name / "seed-3.predictions.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in told]
    by_group = task.problem_type == "span_per_question"
    assert ids == list(dict.fromkeys(one.group_id if by_group else one.id for one in parts["test"]))  # type: ignore[union-attr]
    assert {len(column) for column in found["per_example_stats"]["test"]} == {
        len({one.group_id for one in parts["test"]}) if task.problem_type == "ranking" else len(ids)  # type: ignore[union-attr]
    }


def test_the_same_command_again_does_nothing(
    whole: Path, model: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object) -> None:
        raise AssertionError("a model is fine-tuned")

    monkeypatch.setattr(runs, "fine_tune", never)
    before = {path: path.stat().st_mtime_ns for path in whole.rglob("seed-*")}
    assert run_evaluate(model, whole, "--tasks", *SUITES, "--seeds", 1, "--first-seed", 3) == 0
    assert {path: path.stat().st_mtime_ns for path in whole.rglob("seed-*")} == before
    assert f"0 results written, {len(PLANNED)} skipped" in capsys.readouterr().out


def test_results_are_the_same_to_the_bit_and_others_with_another_seed(
    whole: Path, model: Path, tmp_path: Path
) -> None:
    assert run_evaluate(model, tmp_path, "--tasks", *OF_EACH_KIND, "--seeds", 2, "--first-seed", 3) == 0
    again, first = load_results(tmp_path), load_results(whole)
    for name in OF_EACH_KIND:
        for ending in ("json", "predictions.jsonl"):
            path = f"{name}/seed-3.{ending}"
            assert again[path] == first[path]
        assert load_result(tmp_path, name, 3)["epochs"] != load_result(tmp_path, name, 4)["epochs"]


def test_every_result_is_one_that_reports_take(whole: Path) -> None:
    assert len(result_files.find_results(LocalStorage(), [str(whole)])) == len(PLANNED)


def test_nothing_is_fetched(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", lambda _self, address: asked.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *given, **_: asked.append(given))
    assert run_evaluate(model, tmp_path, "--tasks", "gad", "factoid-7b", "--seeds", 1) == 0
    assert not asked


# Options


TRIED = ("--seeds", 1, "--max-examples", 12, "--batch-size", 4, "--learning-rate", 0.01)
"""A few updates on a few examples."""
TAGGED, RELATIONS, QUESTIONS = "blurb/ncbi-disease", "blurb/chemprot", "electramed/factoid-7b"


@pytest.fixture(scope="module")
def plain(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What three tasks come to with no option."""
    out = tmp_path_factory.mktemp("plain")
    assert (
        run_evaluate(model, out, "--tasks", TAGGED, RELATIONS, QUESTIONS, *TRIED, "--squad-transfer", "no")
        == 0
    )
    return out


def _changed(model: Path, plain: Path, out: Path, task: str, *options: object) -> dict[str, Any]:
    """The result with options, which have to change what is learned."""
    squad = () if "--squad-transfer" in options else ("--squad-transfer", "no")
    assert run_evaluate(model, out, "--tasks", task, *TRIED, *squad, *options) == 0
    found, before = load_result(out, task), load_result(plain, task)
    assert [one["loss"] for one in found["epochs"]] != [one["loss"] for one in before["epochs"]]
    assert found["settings"] != before["settings"]
    return found


@pytest.mark.parametrize("head", ["linear", "bilstm", "crf", "bilstm-crf"])
@pytest.mark.parametrize("tags", ["BIO", "BIOUL", "IO"])
def test_tags_and_heads(model: Path, plain: Path, tmp_path: Path, tags: str, head: str) -> None:
    if (tags, head) != ("BIO", "linear"):
        found = _changed(model, plain, tmp_path, TAGGED, "--tag-scheme", tags, "--head", head)
        assert (found["settings"]["tag_scheme"], found["settings"]["head"]) == (tags, head)


@pytest.mark.parametrize("feature", ["cls", "mention", "start"])
@pytest.mark.parametrize("entities", ["placeholders", "markers", "original"])
def test_entities_and_features(model: Path, plain: Path, tmp_path: Path, entities: str, feature: str) -> None:
    if (entities, feature) != ("placeholders", "cls"):
        _changed(
            model, plain, tmp_path, RELATIONS, "--entity-format", entities, "--relation-feature", feature
        )


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (RELATIONS, ("--class-weights", "balanced")),
        (RELATIONS, ("--class-weights", "1,2,2,2,2,2")),
        (RELATIONS, ("--head", "bilstm")),
        (RELATIONS, ("--layer-decay", 0.5)),
        (RELATIONS, ("--schedule", "electra", "--warmup", 2)),
        (RELATIONS, ("--warmup", 2)),
        (RELATIONS, ("--no-bias-correction",)),
        (RELATIONS, ("--epsilon", 0.01)),
        (RELATIONS, ("--weight-decay", 0.5)),
        (RELATIONS, ("--dropout", 0.5)),
        (RELATIONS, ("--grad-clip", 0.01)),
        (RELATIONS, ("--max-seq-length", 8)),
        (RELATIONS, ("--batch-size", 5)),
        (TAGGED, ("--max-seq-length", 8)),
        (TAGGED, ("--precision", "bfloat16")),
        (TAGGED, ("--precision", "bfloat16", "--head", "bilstm-crf")),
        (TAGGED, ("--epochs", 2)),
        (TAGGED, ("--steps", 7)),
        (QUESTIONS, ("--squad-transfer", "first")),
        (QUESTIONS, ("--squad-transfer", "joint")),
        (QUESTIONS, ("--max-seq-length", 48, "--stride", 4)),
        (QUESTIONS, ("--precision", "bfloat16")),
    ],
    ids=str,
)
def test_other_options(
    model: Path, plain: Path, tmp_path: Path, task: str, options: tuple[object, ...]
) -> None:
    _changed(model, plain, tmp_path, task, *options)


def test_the_last_epoch_needs_no_dev(model: Path, tmp_path: Path) -> None:
    assert (
        run_evaluate(model, tmp_path, "--tasks", TAGGED, *TRIED, "--select-epoch", "last", "--epochs", 3) == 0
    )
    found = load_result(tmp_path, TAGGED)
    assert found["selected_epoch"] == 3
    assert "dev" not in found["scores"]


def test_one_power_more_of_layer_decay(model: Path, tmp_path: Path) -> None:
    decay = ("--tasks", RELATIONS, *TRIED, "--layer-decay", 0.5)
    assert run_evaluate(model, tmp_path / "one", *decay) == 0
    assert run_evaluate(model, tmp_path / "other", *decay, "--electra-layer-decay") == 0
    assert (
        load_result(tmp_path / "one", RELATIONS)["epochs"]
        != load_result(tmp_path / "other", RELATIONS)["epochs"]
    )


@pytest.mark.parametrize("length", [8, 16])
def test_however_little_is_read_at_once_all_is_scored(
    model: Path, whole: Path, tmp_path: Path, length: int
) -> None:
    tasks = OF_EACH_KIND if length > 8 else OF_EACH_KIND[:-2]  # no answer is of so few letters
    assert run_evaluate(model, tmp_path, "--tasks", *tasks, "--seeds", 1, "--max-seq-length", length) == 0
    for name in tasks:
        here, there = (
            load_result(tmp_path, name)["per_example_stats"],
            load_result(whole, name, 3)["per_example_stats"],
        )
        assert here["examples_sha256"] == there["examples_sha256"]
        for statistic, column, other in zip(here["names"], here["test"], there["test"], strict=True):
            if statistic in ("gold", "n"):
                assert column == other


def test_a_sample_is_said_to_be_one(model: Path, tmp_path: Path) -> None:
    options = ("--tasks", TAGGED, "--seeds", 1)
    assert run_evaluate(model, tmp_path / "some", *options, "--max-examples", 5) == 0
    assert load_result(tmp_path / "some", TAGGED)["sample_sizes"] == {"train": 5, "dev": 5, "test": 5}
    assert run_evaluate(model, tmp_path / "all", *options, "--max-examples", 1000) == 0
    assert load_result(tmp_path / "all", TAGGED)["sample_sizes"] is None


def test_a_sample_of_squad_alone_is_one_too(model: Path, tmp_path: Path) -> None:
    """The set is small, and SQuAD is not."""
    options = ("--tasks", "factoid-8b", "--seeds", 1, "--max-examples", 18)
    assert run_evaluate(model, tmp_path, *options) == 0
    assert load_result(tmp_path, "bio-electra/factoid-8b")["sample_sizes"] is not None


@pytest.mark.parametrize("way", ["electra-truncation", "lower-case", "merged-types", "biobert-tags"])
def test_the_papers_own_ways_are_for_entities_and_recorded(model: Path, tmp_path: Path, way: str) -> None:
    tasks = ("jnlpba-typed", "gad", "ebm-pico")
    options = ("--tasks", *tasks, "--seeds", 1, "--max-seq-length", 16)
    assert run_evaluate(model, tmp_path, *options, "--legacy", way) == 0
    assert load_result(tmp_path, "electramed/jnlpba-typed")["legacy"] == [way]
    for other in ("gad", "ebm-pico"):
        assert load_result(tmp_path, f"blurb/{other}")["legacy"] == []
        assert load_result(tmp_path, f"blurb/{other}")["metric"] == TASKS[other].metric.name
    if way == "electra-truncation":
        found = load_result(tmp_path, "electramed/jnlpba-typed")
        gold = found["per_example_stats"]["names"].index("gold")
        assert sum(found["per_example_stats"]["test"][gold]) < 28


@pytest.mark.parametrize("family", ["bert", "albert", "roberta"])
def test_any_family_will_do(family: Family, tmp_path: Path) -> None:
    folder = save_tiny_checkpoint(tmp_path / family, family)
    tasks = ("blurb/ncbi-disease", "blurb/chemprot", "blurb/pubmedqa", "electramed/factoid-7b")
    markers = ("--entity-format", "markers", "--relation-feature", "start")
    assert run_evaluate(folder, tmp_path / "out", "--tasks", *tasks, "--seeds", 1) == 0
    assert (
        run_evaluate(folder, tmp_path / "marked", "--tasks", "chemprot", "ddi", "--seeds", 1, *markers) == 0
    )
