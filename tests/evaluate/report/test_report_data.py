"""The data of a report: scores, intervals, comparisons, published tables, and its JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report import report_file as report_file
from bioshards.evaluate.report.blurb import BLURB_TASKS
from bioshards.evaluate.report.published import PUBLISHED_TABLES
from bioshards.evaluate.report.report_data import build_report
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.results import Result, ResultError
from tests.support.evaluate.synthetic_results import (
    DEFAULTS,
    ENTITY_F1,
    METRICS,
    defaults_of,
    make_result,
    metric_of,
    results_by_path,
)

STORAGE = LocalStorage()
BLURB_TABLE = PUBLISHED_TABLES[0]


def build_test_report(*runs: Result) -> Any:
    return build_report(results_by_path(*runs), metric_of, defaults_of)


def draw_rows(seed: int, recall: float, examples: int = 60) -> list[list[float]]:
    """Draw per-example statistics of sentences with about this recall."""
    rng = numpy.random.default_rng(seed)
    gold = rng.integers(0, 4, examples)
    correct = rng.binomial(gold, recall)
    predicted = correct + rng.binomial(1, 0.2, examples)
    rows: list[list[float]] = numpy.stack([correct, predicted, gold] * 2, axis=1).astype(float).tolist()
    return rows


def make_blurb_results(model: str = "tiny", without: tuple[str, ...] = (), **fields: Any) -> list[Result]:
    """Make a result with the same statistics for each task of BLURB."""
    return [
        make_result(model, task, rows=draw_rows(1, 0.8), **fields)
        for task in BLURB_TASKS
        if task not in without
    ]


def test_scores_and_intervals_equal_numpy_and_the_bootstrap() -> None:
    runs = [make_result(seed=seed, rows=draw_rows(seed, 0.7)) for seed in range(3)]
    (suite,) = build_test_report(*runs)["suites"]
    entry = suite["tasks"]["bc5-chem"]["models"]["tiny"]
    f1 = [100 * run["scores"]["test"]["F1"] for run in runs]
    stats = [numpy.array(run["per_example_stats"]["test"]).T for run in runs]
    interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], stats)
    assert entry["seeds"] == [0, 1, 2]
    assert entry["score"] == pytest.approx(
        {
            "mean": numpy.mean(f1),
            "sd": numpy.std(f1),
            "low": 100 * interval.low,
            "high": 100 * interval.high,
        }
    )
    assert entry["score"]["low"] < entry["score"]["mean"] < entry["score"]["high"]
    assert entry["dev"]["F1"]["mean"] == pytest.approx(numpy.mean(f1) / 2)
    assert set(entry["test"]) == set(runs[0]["scores"]["test"])
    assert entry["seconds"] == pytest.approx(3 * 60.5)


def test_published_tables_are_part_of_the_suite() -> None:
    (suite,) = build_test_report(make_result())["suites"]
    first, *variants = suite["published"]
    assert first["title"] == "BLURB"
    assert [row["task"] for row in first["rows"]] == list(BLURB_TASKS)
    assert first["rows"][0]["scores"]["PubMedBERT"] == {"mean": 93.33, "sd": None, "notes": []}
    assert first["blurb_scores"]["PubMedBERT"] == 81.16
    assert [table["title"] for table in variants] == [
        "PubMedBERT pretrained otherwise",
        "PubMedBERT fine-tuned otherwise",
    ]


def test_development_set_scores_have_a_note() -> None:
    (suite,) = build_test_report(make_result(suite="bio-electra", task="ncbi-disease"))["suites"]
    (row,) = [
        row
        for row in suite["published"][0]["rows"]
        if (row["task"], row["score_name"]) == ("ncbi-disease", "F1")
    ]
    assert any("development set" in note for note in row["scores"]["Bio-ELECTRA++ optimised"]["notes"])
    assert row["scores"]["BERT-Base cased"] == {"mean": 86.24, "sd": 0.55, "notes": []}


def test_changed_settings_are_listed_with_their_defaults() -> None:
    other = {**DEFAULTS, "learning_rate": 1e-05, "tag_scheme": "IO"}
    (suite,) = build_test_report(make_result(settings=other))["suites"]
    assert suite["tasks"]["bc5-chem"]["models"]["tiny"]["changed_settings"] == {
        "learning_rate": {"value": 1e-05, "default": 5e-05},
        "tag_scheme": {"value": "IO", "default": None},
    }


def test_blurb_score_of_all_tasks() -> None:
    blurb = build_test_report(*make_blurb_results())["suites"][0]["blurb"]
    f1 = 100 * METRICS[ENTITY_F1].scores_from_stats(numpy.array(draw_rows(1, 0.8)))["F1"]
    assert blurb["models"]["tiny"]["score"] == pytest.approx(f1)
    assert blurb["models"]["tiny"]["missing_tasks"] == []
    assert blurb["shared_tasks"]["tasks"] == list(BLURB_TASKS)
    assert f"{blurb['shared_tasks']['published']['PubMedBERT']:.2f}" == "81.16"


def test_missing_tasks_leave_the_mean_of_shared_tasks() -> None:
    runs = [*make_blurb_results(without=("ddi", "gad")), *make_blurb_results("other", without=("ddi", "hoc"))]
    blurb = build_test_report(*runs)["suites"][0]["blurb"]
    assert (blurb["models"]["tiny"]["score"], blurb["models"]["other"]["score"]) == (None, None)
    assert blurb["models"]["tiny"]["missing_tasks"] == ["ddi", "gad"]
    assert blurb["models"]["tiny"]["type_means"]["Relation extraction"] is None
    assert blurb["shared_tasks"]["tasks"] == [
        task for task in BLURB_TASKS if task not in ("ddi", "gad", "hoc")
    ]
    expected = numpy.mean(
        [86.08 - 0.002, 73.38, 77.24, 92.30, 71.70]
    )  # PubMedBERT's means of types, without HoC's type
    assert blurb["shared_tasks"]["published"]["PubMedBERT"] == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize("name", BLURB_TABLE.models)
def test_model_named_as_a_published_one_keeps_its_own_scores(name: str) -> None:
    """Also in the average over the tasks that it has, which stands beside the published models'."""
    named, mine = (
        build_test_report(*make_blurb_results(label, without=("ddi",)))["suites"][0]["blurb"]
        for label in (name, "mine")
    )
    assert named["models"][name] == mine["models"]["mine"]
    assert named["shared_tasks"]["models"][name] == mine["shared_tasks"]["models"]["mine"]
    assert named["shared_tasks"]["published"] == mine["shared_tasks"]["published"]


def test_models_are_compared_on_their_shared_seeds() -> None:
    first = [make_result("first", seed=seed, rows=draw_rows(seed, 0.7)) for seed in (0, 1, 2)]
    second = [make_result("second", seed=seed, rows=draw_rows(10 + seed, 0.9)) for seed in (1, 2, 3)]
    (suite,) = build_test_report(*first, *second)["suites"]
    (comparison,) = suite["tasks"]["bc5-chem"]["comparisons"]
    stats = [
        [numpy.array(run["per_example_stats"]["test"]).T for run in runs] for runs in (second[:2], first[1:])
    ]
    expected = bootstrap.paired_bootstrap(METRICS[ENTITY_F1], *stats)
    assert comparison == {
        "first": "first",
        "second": "second",
        "seeds": [1, 2],
        "unshared_seeds": [0, 3],
        "difference": pytest.approx(100 * expected.score),
        "low": pytest.approx(100 * expected.low),
        "high": pytest.approx(100 * expected.high),
        "p_value": pytest.approx(expected.p_value),
    }
    means = [suite["tasks"]["bc5-chem"]["models"][name]["score"]["mean"] for name in ("first", "second")]
    assert (comparison["difference"] > 0) == (means[1] > means[0])


@pytest.mark.parametrize(
    ("changes", "skip_reason"),
    [
        ({"seed": 5}, "no seed in common"),
        (
            {"per_example_stats": {**make_result()["per_example_stats"], "examples_sha256": "others"}},
            "not the same test examples",
        ),
        ({"legacy": ["lower-case"]}, "not measured alike"),
    ],
)
def test_skipped_comparison_has_a_reason(changes: Any, skip_reason: str) -> None:
    (suite,) = build_test_report(make_result("first"), make_result("second", **changes))["suites"]
    (comparison,) = suite["tasks"]["bc5-chem"]["comparisons"]
    assert comparison["skip_reason"] == skip_reason
    assert "p_value" not in comparison


def test_score_that_contradicts_its_statistics_is_refused() -> None:
    forged = make_result()
    forged["scores"]["test"]["F1"] += 0.01
    with pytest.raises(
        ResultError, match=r"the F1 of tiny on bc5-chem \(blurb\) is .* but their per-example statistics give"
    ):
        build_test_report(forged)


def test_suites_and_tasks_are_in_published_order() -> None:
    report = build_test_report(
        make_result(task="squad", suite="further"),
        make_result(task="linnaeus", suite="bioalbert"),
        make_result(task="zebra"),
        make_result(task="ddi"),
        make_result(task="bc2gm"),
        make_result(task="apple"),
    )
    assert {suite["suite"]: list(suite["tasks"]) for suite in report["suites"]} == {
        "blurb": ["bc2gm", "ddi", "apple", "zebra"],
        "bioalbert": ["linnaeus"],
        "further": ["squad"],
    }
    assert [suite["suite"] for suite in report["suites"]] == ["blurb", "bioalbert", "further"]


def test_models_list_library_versions_and_devices() -> None:
    later = make_result(seed=1, library_versions={"bioshards": "1.0"}, device="cuda")
    (model,) = build_test_report(make_result(), later)["models"]
    assert (model["library_versions"], model["devices"]) == ({"bioshards": ["0.9", "1.0"]}, ["cpu", "cuda"])


def test_json_report_is_reproducible(tmp_path: Path) -> None:
    for run in (make_result(seed=0, rows=draw_rows(0, 0.5)), make_result(seed=1, rows=draw_rows(1, 0.5))):
        results.write_result(
            STORAGE, results.result_path(str(tmp_path / "runs"), "blurb", "bc5-chem", run["seed"]), run
        )
    texts = []
    for name in ("a.json", "b.JSON"):
        path = str(tmp_path / name)
        message = report_file.write_report(STORAGE, [str(tmp_path / "runs")], path, metric_of, defaults_of)
        assert message.splitlines() == [
            "BLURB       model  score         majority class",
            "  BC5-chem  tiny   F1     62.31           14.60",
            "2 results: 1 task of blurb",
            f"report: {path}",
        ]
        texts.append(Path(path).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]
    assert list(json.loads(texts[0])) == [
        "format",
        "score_unit",
        "standard_deviation",
        "interval",
        "models",
        "suites",
    ]
    assert json.loads(texts[0])["suites"][0]["tasks"]["bc5-chem"]["models"]["tiny"]["seeds"] == [0, 1]


def test_printed_scores_name_what_limits_them(tmp_path: Path) -> None:
    changed = {**DEFAULTS, "epochs": 1}
    invented = {"file_status": "invented", "notes": [], "files": {}, "counts": {}}
    run = make_result(rows=draw_rows(0, 0.5), settings=changed, provenance=invented)
    path = results.result_path(str(tmp_path / "runs"), "blurb", "bc5-chem", run["seed"])
    results.write_result(STORAGE, path, run)
    output = str(tmp_path / "report.md")
    message = report_file.write_report(STORAGE, [str(tmp_path / "runs")], output, metric_of, defaults_of)
    assert message.splitlines()[1].endswith("(invented, changed settings)")


def test_keys_of_the_json_report() -> None:
    """The keys of the JSON report are an interface for scripts."""
    (suite,) = build_test_report(make_result())["suites"]
    assert list(suite) == ["suite", "title", "tasks", "blurb", "published"]
    assert list(suite["tasks"]["bc5-chem"]) == ["title", "models", "comparisons"]
    assert list(suite["tasks"]["bc5-chem"]["models"]["tiny"]) == [
        *(
            "metric",
            "main_score",
            "seeds",
            "score",
            "test",
            "dev",
            "majority",
            "sample_sizes",
            "file_status",
            "legacy",
            "notes",
        ),
        *("settings", "changed_settings", "selected_steps", "seconds"),
    ]
    assert list(suite["blurb"]) == ["models", "published", "shared_tasks"]
    assert list(suite["published"][0]) == [
        *("title", "source", "runs_note", "notes", "models", "blurb_scores", "rows"),
    ]
    assert sorted(suite["published"][0]["models"]) == sorted(BLURB_TABLE.models)


@pytest.mark.parametrize("path", ["report", "report.txt", "report.html.gz"])
def test_unknown_report_extension_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(ValueError, match=r"a report is .html, .md or .json"):
        report_file.write_report(STORAGE, [str(tmp_path)], path, metric_of, defaults_of)


def test_no_report_is_written_without_results(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="has no results"):
        report_file.write_report(
            STORAGE, [str(tmp_path)], str(tmp_path / "report.md"), metric_of, defaults_of
        )
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.timeout(60)
def test_report_of_two_thousand_results(tmp_path: Path) -> None:
    for seed in range(10):
        run = make_result(seed=seed, rows=draw_rows(seed, 0.8))
        for number in range(200):
            renamed = {**run, "model": {**run["model"], "name": f"model {number}"}}
            path = tmp_path / str(number) / f"seed-{seed}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(renamed), encoding="utf-8")
    report_path = str(tmp_path / "report.html")
    message = report_file.write_report(STORAGE, [str(tmp_path)], report_path, metric_of, defaults_of)
    assert "\n2000 results: 1 task of blurb\n" in message


def test_bootstrap_resamples_documents() -> None:
    """Resampling 20 documents of 3 sentences each equals resampling the sums of each document."""
    run = make_result(rows=draw_rows(0, 0.7))
    documents = [number // 3 for number in range(60)]
    run["per_example_stats"]["documents"] = documents
    (suite,) = build_test_report(run)["suites"]
    score = suite["tasks"]["bc5-chem"]["models"]["tiny"]["score"]
    stats = numpy.array(run["per_example_stats"]["test"]).T
    document_stats = numpy.array(
        [stats[[document == number for document in documents]].sum(axis=0) for number in range(20)]
    )
    interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], [document_stats])
    assert (score["low"], score["high"]) == pytest.approx((100 * interval.low, 100 * interval.high))
    sentence_interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], [stats])
    assert (interval.low, interval.high) != (sentence_interval.low, sentence_interval.high)


@pytest.mark.parametrize("documents", [[0] * 59, [60] * 60, [-1] * 60, ["a"] * 60, "x"])
def test_invalid_document_numbers_are_refused(tmp_path: Path, documents: Any) -> None:
    run = make_result(rows=draw_rows(0, 0.7))
    run["per_example_stats"]["documents"] = documents
    (tmp_path / "seed-0.json").write_text(json.dumps(run))
    with pytest.raises(ResultError, match="'per_example_stats'"):
        results.read_result(STORAGE, str(tmp_path / "seed-0.json"))
