"""``evaluate run`` on the bundled sample: the result of every task, and the effect of each option."""

from __future__ import annotations

import hashlib
import json
import socket
from pathlib import Path
from typing import Any

import pytest

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, load_records, locate_benchmark
from bioshards.evaluate.recipes import SUITES
from bioshards.evaluate.runs import run
from bioshards.evaluate.runs.run import load_task_data
from bioshards.evaluate.tasks.classification import Classification
from bioshards.evaluate.tasks.task_registry import TASKS
from tests.support.evaluate.evaluate_commands import (
    list_temporary_files,
    load_result,
    load_results,
    run_evaluate,
)
from tests.support.evaluate.tiny_checkpoints import Family, save_tiny_checkpoint
from tests.support.paths import BENCHMARK_SAMPLE

Capture = pytest.CaptureFixture[str]
ALL_TASKS = [f"{suite}/{task}" for suite, recipes in SUITES.items() for task in recipes]
TASK_OF_EACH_TYPE = (
    *("blurb/ncbi-disease", "blurb/chemprot", "blurb/hoc", "blurb/biosses", "bio-electra/reranker"),
    *("bio-electra/factoid-8b", "electramed/factoid-7b"),
)


pytestmark = [pytest.mark.thorough, pytest.mark.usefixtures("use_one_thread")]


@pytest.fixture(scope="module")
def all_results(checkpoint_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of all suites."""
    output_dir = tmp_path_factory.mktemp("whole")
    assert run_evaluate(checkpoint_dir, output_dir, "--tasks", *SUITES, "--seeds", 1, "--first-seed", 3) == 0
    return output_dir


# All tasks


def test_every_task_of_every_suite_has_a_result(all_results: Path) -> None:
    assert {str(path.relative_to(all_results)) for path in all_results.rglob("seed-3.json")} == {
        f"{name}/seed-3.json" for name in ALL_TASKS
    }
    assert not list_temporary_files(all_results)


@pytest.mark.parametrize("name", ALL_TASKS)
def test_result_records_task_settings_and_provenance(
    all_results: Path, checkpoint_dir: Path, name: str
) -> None:
    suite, task_name = name.split("/")
    task, result = TASKS[task_name], load_result(all_results, name, 3)
    files = locate_benchmark(str(BENCHMARK_SAMPLE), BENCHMARKS[task.benchmark])
    assert files is not None
    parts = load_records(files)
    assert (result["suite"], result["task"], result["seed"]) == (suite, task_name, 3)
    assert (result["model"]["name"], result["model"]["type"]) == ("electra", "electra")
    assert (result["metric"], result["main_score"]) == (task.metric.name, task.metric.main_score)
    assert (result["sample_sizes"], result["legacy"], result["device"]) == (None, [], "cpu")
    assert result["settings"]["max_seq_length"] == 64
    assert result["settings"]["learning_rate"] == SUITES[suite][task_name].learning_rate
    has_dev = result["settings"]["select_epoch"] == "best"
    assert {*result["scores"]} == {"test", "majority"} | ({"dev"} if has_dev else set())
    assert result["scores"]["majority"].keys() <= result["scores"]["test"].keys()
    assert all((checkpoint["dev"] is not None) is has_dev for checkpoint in result["checkpoints"])
    assert result["provenance"]["file_status"] == "invented"
    for path, digest in result["provenance"]["files"].items():
        if (BENCHMARK_SAMPLE / path).is_file():
            assert hashlib.sha256((BENCHMARK_SAMPLE / path).read_bytes()).hexdigest() == digest
    prediction_lines = (all_results / name / "seed-3.predictions.jsonl").read_text().splitlines()
    ids = [json.loads(line)["id"] for line in prediction_lines]
    by_group = task.spec.problem_type == "span_per_question"
    assert ids == list(dict.fromkeys(record.group_id if by_group else record.id for record in parts["test"]))  # type: ignore[union-attr]
    is_ranking = task.spec.problem_type == "ranking"
    assert {len(column) for column in result["per_example_stats"]["test"]} == {
        len({record.group_id for record in parts["test"]}) if is_ranking else len(ids)  # type: ignore[union-attr]
    }


def test_repeated_command_runs_nothing(
    all_results: Path, checkpoint_dir: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_if_called(*_: object) -> None:
        raise AssertionError("a model is fine-tuned")

    monkeypatch.setattr(run, "fine_tune", fail_if_called)
    before = {path: path.stat().st_mtime_ns for path in all_results.rglob("seed-*")}
    assert run_evaluate(checkpoint_dir, all_results, "--tasks", *SUITES, "--seeds", 1, "--first-seed", 3) == 0
    assert {path: path.stat().st_mtime_ns for path in all_results.rglob("seed-*")} == before
    assert f"0 results written, {len(ALL_TASKS)} skipped" in capsys.readouterr().out


def test_results_are_reproducible_and_depend_on_the_seed(
    all_results: Path, checkpoint_dir: Path, tmp_path: Path
) -> None:
    seeds = ("--seeds", 2, "--first-seed", 3)
    assert run_evaluate(checkpoint_dir, tmp_path, "--tasks", *TASK_OF_EACH_TYPE, *seeds) == 0
    again, first = load_results(tmp_path), load_results(all_results)
    for name in TASK_OF_EACH_TYPE:
        for ending in ("json", "predictions.jsonl"):
            path = f"{name}/seed-3.{ending}"
            assert again[path] == first[path]
        assert load_result(tmp_path, name, 3)["checkpoints"] != load_result(tmp_path, name, 4)["checkpoints"]


def test_seeds_share_records_and_tokenized_examples(
    checkpoint_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each split is read and tokenized once, whatever the number of seeds and epochs."""
    read, tokenized = [], []
    make_examples = Classification.make_examples

    def count_reads(*given: Any) -> Any:
        read.append(given[1].name)
        return load_task_data(*given)

    def count_examples(adapter: Classification, records: Any, is_training: bool) -> Any:
        tokenized.append((len(records), is_training))
        return make_examples(adapter, records, is_training)

    monkeypatch.setattr(run, "load_task_data", count_reads)
    monkeypatch.setattr(Classification, "make_examples", count_examples)
    options = ("--tasks", "blurb/hoc", "--seeds", 2, "--epochs", 2)
    assert run_evaluate(checkpoint_dir, tmp_path, *options) == 0
    assert len(load_results(tmp_path)) == 4
    assert read == ["blurb/hoc"]
    assert [is_training for _, is_training in tokenized] == [True, False, False]  # train, dev, test


def test_run_opens_no_connection(
    checkpoint_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    addresses: list[Any] = []
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(socket.socket, "connect", lambda _self, address: addresses.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *arguments, **_: addresses.append(arguments))
    assert run_evaluate(checkpoint_dir, tmp_path, "--tasks", "blurb/gad", "factoid-7b", "--seeds", 1) == 0
    assert not addresses


# Options


QUICK_TRAINING = ("--seeds", 1, "--max-examples", 12, "--batch-size", 4, "--learning-rate", 0.01)
"""A few updates on a few examples."""
TAGGED, RELATIONS, QUESTIONS = "blurb/ncbi-disease", "blurb/chemprot", "electramed/factoid-7b"


@pytest.fixture(scope="module")
def baseline_results(checkpoint_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of three tasks without the option under test."""
    output_dir = tmp_path_factory.mktemp("plain")
    options = ("--tasks", TAGGED, RELATIONS, QUESTIONS, *QUICK_TRAINING, "--squad-transfer", "no")
    assert run_evaluate(checkpoint_dir, output_dir, *options) == 0
    return output_dir


def run_with_changed_training(
    checkpoint_dir: Path, baseline_results: Path, output_dir: Path, task: str, *options: object
) -> dict[str, Any]:
    """Run a task with options, check that the training losses changed, and return the result."""
    squad = () if "--squad-transfer" in options else ("--squad-transfer", "no")
    assert run_evaluate(checkpoint_dir, output_dir, "--tasks", task, *QUICK_TRAINING, *squad, *options) == 0
    result, before = load_result(output_dir, task), load_result(baseline_results, task)
    assert [one["loss"] for one in result["checkpoints"]] != [one["loss"] for one in before["checkpoints"]]
    assert result["settings"] != before["settings"]
    return result


@pytest.mark.parametrize("head", ["linear", "bilstm", "crf", "bilstm-crf"])
@pytest.mark.parametrize("tag_scheme", ["BIO", "BIOUL", "IO"])
def test_tag_scheme_and_head_change_training(
    checkpoint_dir: Path, baseline_results: Path, tmp_path: Path, tag_scheme: str, head: str
) -> None:
    if (tag_scheme, head) != ("BIO", "linear"):
        result = run_with_changed_training(
            checkpoint_dir, baseline_results, tmp_path, TAGGED, "--tag-scheme", tag_scheme, "--head", head
        )
        assert (result["settings"]["tag_scheme"], result["settings"]["head"]) == (tag_scheme, head)


@pytest.mark.parametrize("feature", ["cls", "mention", "start"])
@pytest.mark.parametrize("entity_format", ["placeholders", "markers", "original"])
def test_entity_format_and_relation_feature_change_training(
    checkpoint_dir: Path, baseline_results: Path, tmp_path: Path, entity_format: str, feature: str
) -> None:
    if (entity_format, feature) != ("placeholders", "cls"):
        options = ("--entity-format", entity_format, "--relation-feature", feature)
        run_with_changed_training(checkpoint_dir, baseline_results, tmp_path, RELATIONS, *options)


@pytest.mark.parametrize(
    ("task", "options"),
    [
        (RELATIONS, ("--class-weights", "balanced")),
        (RELATIONS, ("--class-weights", "1,2,2,2,2,2")),
        (RELATIONS, ("--head", "bilstm")),
        (RELATIONS, ("--layer-decay", 0.5)),
        (RELATIONS, ("--layer-decay", 0.5, "--electra-layer-decay")),
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
def test_option_changes_training(
    checkpoint_dir: Path, baseline_results: Path, tmp_path: Path, task: str, options: tuple[object, ...]
) -> None:
    run_with_changed_training(checkpoint_dir, baseline_results, tmp_path, task, *options)


@pytest.mark.parametrize("length", [8, 16])
def test_short_inputs_still_score_every_example(
    checkpoint_dir: Path, all_results: Path, tmp_path: Path, length: int
) -> None:
    tasks = TASK_OF_EACH_TYPE if length > 8 else TASK_OF_EACH_TYPE[:-2]  # no answer fits into 8 tokens
    options = ("--seeds", 1, "--max-seq-length", length)
    assert run_evaluate(checkpoint_dir, tmp_path, "--tasks", *tasks, *options) == 0
    for name in tasks:
        short_stats = load_result(tmp_path, name)["per_example_stats"]
        full_stats = load_result(all_results, name, 3)["per_example_stats"]
        assert short_stats["examples_sha256"] == full_stats["examples_sha256"]
        for statistic, column, full_column in zip(
            short_stats["names"], short_stats["test"], full_stats["test"], strict=True
        ):
            if statistic in ("gold", "n"):
                assert column == full_column


def test_result_records_sample_sizes(checkpoint_dir: Path, tmp_path: Path) -> None:
    options = ("--tasks", TAGGED, "--seeds", 1)
    assert run_evaluate(checkpoint_dir, tmp_path / "some", *options, "--max-examples", 5) == 0
    assert load_result(tmp_path / "some", TAGGED)["sample_sizes"] == {"train": 5, "dev": 5, "test": 5}
    assert run_evaluate(checkpoint_dir, tmp_path / "all", *options, "--max-examples", 1000) == 0
    assert load_result(tmp_path / "all", TAGGED)["sample_sizes"] is None


@pytest.mark.parametrize("legacy_mode", ["electra-truncation", "lower-case", "merged-types", "biobert-tags"])
def test_legacy_mode_applies_to_typed_entities_and_is_recorded(
    checkpoint_dir: Path, tmp_path: Path, legacy_mode: str
) -> None:
    tasks = ("jnlpba-typed", "blurb/gad", "ebm-pico")
    options = ("--tasks", *tasks, "--seeds", 1, "--max-seq-length", 16)
    assert run_evaluate(checkpoint_dir, tmp_path, *options, "--legacy", legacy_mode) == 0
    assert load_result(tmp_path, "electramed/jnlpba-typed")["legacy"] == [legacy_mode]
    for other in ("gad", "ebm-pico"):
        assert load_result(tmp_path, f"blurb/{other}")["legacy"] == []
        assert load_result(tmp_path, f"blurb/{other}")["metric"] == TASKS[other].metric.name
    if legacy_mode == "electra-truncation":
        result = load_result(tmp_path, "electramed/jnlpba-typed")
        gold = result["per_example_stats"]["names"].index("gold")
        assert sum(result["per_example_stats"]["test"][gold]) < 28


@pytest.mark.parametrize("family", ["bert", "albert", "roberta"])
def test_other_model_families_are_supported(family: Family, tmp_path: Path) -> None:
    checkpoint = save_tiny_checkpoint(tmp_path / family, family)
    tasks = ("blurb/ncbi-disease", "blurb/chemprot", "blurb/pubmedqa", "electramed/factoid-7b")
    assert run_evaluate(checkpoint, tmp_path / "out", "--tasks", *tasks, "--seeds", 1) == 0
    marked = ("--tasks", "ddi", "--seeds", 1, "--entity-format", "markers", "--relation-feature", "start")
    assert run_evaluate(checkpoint, tmp_path / "marked", *marked) == 0
