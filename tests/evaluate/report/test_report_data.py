"""The report's data: every number is what the results, the papers and the bootstrap give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy
import pytest

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.report import bootstrap
from bioshards.evaluate.report import report_file as reporting
from bioshards.evaluate.report.blurb import BLURB_TASKS
from bioshards.evaluate.report.published import BLURB_TABLE
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

FILES = LocalStorage()


def report(*found: Result) -> Any:
    return build_report(results_by_path(*found), metric_of, defaults_of)


def drawn(seed: int, share: float, examples: int = 60) -> list[list[float]]:
    """Sentences of which about a share of the entities is found."""
    random = numpy.random.default_rng(seed)
    gold = random.integers(0, 4, examples)
    correct = random.binomial(gold, share)
    predicted = correct + random.binomial(1, 0.2, examples)
    rows: list[list[float]] = numpy.stack([correct, predicted, gold] * 2, axis=1).astype(float).tolist()
    return rows


def blurb_results(model: str = "tiny", without: tuple[str, ...] = (), **others: Any) -> list[Result]:
    """A result for each set of BLURB, the same for all."""
    return [
        make_result(model, task, rows=drawn(1, 0.8), **others) for task in BLURB_TASKS if task not in without
    ]


def test_scores_are_numpys_and_the_bootstraps() -> None:
    runs = [make_result(seed=seed, rows=drawn(seed, 0.7)) for seed in range(3)]
    (suite,) = report(*runs)["suites"]
    found = suite["tasks"]["bc5-chem"]["models"]["tiny"]
    f1 = [100 * one["scores"]["test"]["F1"] for one in runs]
    units = [numpy.array(one["per_example_stats"]["test"]).T for one in runs]
    interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], units)
    assert found["seeds"] == [0, 1, 2]
    assert found["score"] == pytest.approx(
        {
            "mean": numpy.mean(f1),
            "sd": numpy.std(f1),
            "low": 100 * interval.low,
            "high": 100 * interval.high,
        }
    )
    assert found["score"]["low"] < found["score"]["mean"] < found["score"]["high"]
    assert found["dev"]["F1"]["mean"] == pytest.approx(numpy.mean(f1) / 2)
    assert set(found["test"]) == set(runs[0]["scores"]["test"])
    assert found["seconds"] == pytest.approx(3 * 60.5)


def test_published_scores_are_beside_ours() -> None:
    (suite,) = report(make_result())["suites"]
    first, *variants = suite["published"]
    assert first["title"] == "BLURB"
    assert [row["task"] for row in first["rows"]] == list(BLURB_TASKS)
    assert first["rows"][0]["scores"]["PubMedBERT"] == {"mean": 93.33, "sd": None, "notes": []}
    assert first["blurb_scores"]["PubMedBERT"] == 81.16
    assert [table["title"] for table in variants] == [
        "PubMedBERT pretrained otherwise",
        "PubMedBERT fine-tuned otherwise",
    ]


def test_notes_of_development_scores_are_at_their_cells() -> None:
    (suite,) = report(make_result(suite="bio-electra", task="ncbi-disease"))["suites"]
    (row,) = [
        row
        for row in suite["published"][0]["rows"]
        if (row["task"], row["score_name"]) == ("ncbi-disease", "F1")
    ]
    assert any("development set" in note for note in row["scores"]["Bio-ELECTRA++ optimised"]["notes"])
    assert row["scores"]["BERT-Base cased"] == {"mean": 86.24, "sd": 0.55, "notes": []}


def test_settings_that_differ_are_named_with_the_suites_own() -> None:
    other = {**DEFAULTS, "learning_rate": 1e-05, "tag_scheme": "IO"}
    (suite,) = report(make_result(settings=other))["suites"]
    assert suite["tasks"]["bc5-chem"]["models"]["tiny"]["changed_settings"] == {
        "learning_rate": {"value": 1e-05, "default": 5e-05},
        "tag_scheme": {"value": "IO", "default": None},
    }


def test_with_all_sets_there_is_a_blurb_score() -> None:
    found = report(*blurb_results())["suites"][0]["blurb"]
    f1 = 100 * METRICS[ENTITY_F1].scores_from_stats(numpy.array(drawn(1, 0.8)))["F1"]
    assert found["models"]["tiny"]["score"] == pytest.approx(f1)
    assert found["models"]["tiny"]["missing_tasks"] == []
    assert found["shared_tasks"]["tasks"] == list(BLURB_TASKS)
    assert f"{found['shared_tasks']['models']['PubMedBERT']:.2f}" == "81.16"


def test_with_a_set_missing_there_is_none_but_what_all_have_compares() -> None:
    runs = [*blurb_results(without=("ddi", "gad")), *blurb_results("other", without=("ddi", "hoc"))]
    found = report(*runs)["suites"][0]["blurb"]
    assert (found["models"]["tiny"]["score"], found["models"]["other"]["score"]) == (None, None)
    assert found["models"]["tiny"]["missing_tasks"] == ["ddi", "gad"]
    assert found["models"]["tiny"]["type_means"]["Relation extraction"] is None
    assert found["shared_tasks"]["tasks"] == [
        task for task in BLURB_TASKS if task not in ("ddi", "gad", "hoc")
    ]
    by_hand = numpy.mean(
        [86.08 - 0.002, 73.38, 77.24, 92.30, 71.70]
    )  # of PubMedBERT, without the type of HoC
    assert found["shared_tasks"]["models"]["PubMedBERT"] == pytest.approx(by_hand, abs=0.001)


def test_models_are_compared_with_the_first_on_the_seeds_that_both_have() -> None:
    first = [make_result("first", seed=seed, rows=drawn(seed, 0.7)) for seed in (0, 1, 2)]
    second = [make_result("second", seed=seed, rows=drawn(10 + seed, 0.9)) for seed in (1, 2, 3)]
    (suite,) = report(*first, *second)["suites"]
    (compared,) = suite["tasks"]["bc5-chem"]["comparisons"]
    units = [
        [numpy.array(one["per_example_stats"]["test"]).T for one in of] for of in (second[:2], first[1:])
    ]
    expected = bootstrap.paired_bootstrap(METRICS[ENTITY_F1], *units)
    assert compared == {
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
    assert (compared["difference"] > 0) == (means[1] > means[0])


@pytest.mark.parametrize(
    ("other", "why_not"),
    [
        ({"seed": 5}, "no seed in common"),
        (
            {"per_example_stats": {**make_result()["per_example_stats"], "examples_sha256": "others"}},
            "not the same test examples",
        ),
        ({"legacy": ["lower-case"]}, "not measured alike"),
    ],
)
def test_what_does_not_compare_is_said(other: Any, why_not: str) -> None:
    (suite,) = report(make_result("first"), make_result("second", **other))["suites"]
    (compared,) = suite["tasks"]["bc5-chem"]["comparisons"]
    assert compared["skip_reason"] == why_not
    assert "p_value" not in compared


def test_a_score_that_its_units_do_not_give_is_refused() -> None:
    forged = make_result()
    forged["scores"]["test"]["F1"] += 0.01
    with pytest.raises(
        ResultError, match=r"the F1 of tiny on bc5-chem \(blurb\) is .* but their per-example statistics give"
    ):
        report(forged)


def test_suites_and_tasks_are_in_the_papers_order() -> None:
    found = report(
        make_result(task="squad", suite="further"),
        make_result(task="linnaeus", suite="bioalbert"),
        make_result(task="zebra"),
        make_result(task="ddi"),
        make_result(task="bc2gm"),
        make_result(task="apple"),
    )
    assert {suite["suite"]: list(suite["tasks"]) for suite in found["suites"]} == {
        "blurb": ["bc2gm", "ddi", "apple", "zebra"],
        "bioalbert": ["linnaeus"],
        "further": ["squad"],
    }
    assert [suite["suite"] for suite in found["suites"]] == ["blurb", "bioalbert", "further"]


def test_models_tell_with_what_they_were_tuned() -> None:
    later = make_result(seed=1, library_versions={"bioshards": "1.0"}, device="cuda")
    (model,) = report(make_result(), later)["models"]
    assert (model["library_versions"], model["devices"]) == ({"bioshards": ["0.9", "1.0"]}, ["cpu", "cuda"])


def test_the_json_is_the_same_for_the_same_results(tmp_path: Path) -> None:
    for one in (make_result(seed=0, rows=drawn(0, 0.5)), make_result(seed=1, rows=drawn(1, 0.5))):
        results.write_result(
            FILES, results.result_path(str(tmp_path / "runs"), "blurb", "bc5-chem", one["seed"]), one
        )
    texts = []
    for name in ("a.json", "b.JSON"):
        out = str(tmp_path / name)
        told = reporting.write_report(FILES, [str(tmp_path / "runs")], out, metric_of, defaults_of)
        assert told == f"2 results: 1 task of blurb\nreport: {out}"
        texts.append(Path(out).read_text(encoding="utf-8"))
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


def test_keys_of_the_json() -> None:
    """Scripts hold on to these."""
    (suite,) = report(make_result())["suites"]
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
            "sample_sizes",
            "verified",
            "legacy",
            "notes",
        ),
        *("settings", "changed_settings", "selected_epochs", "seconds"),
    ]
    assert list(suite["blurb"]) == ["models", "published", "shared_tasks"]
    assert list(suite["published"][0]) == [
        *("title", "source", "runs_note", "notes", "models", "charted_models", "blurb_scores", "rows"),
    ]
    assert list(suite["published"][0]["models"]) == list(BLURB_TABLE.models)


@pytest.mark.parametrize("out", ["report", "report.txt", "report.html.gz"])
def test_other_kinds_of_files_are_refused(tmp_path: Path, out: str) -> None:
    with pytest.raises(ValueError, match=r"a report is .html, .md or .json"):
        reporting.write_report(FILES, [str(tmp_path)], out, metric_of, defaults_of)


def test_nothing_is_written_where_there_are_no_results(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="has no results"):
        reporting.write_report(FILES, [str(tmp_path)], str(tmp_path / "report.md"), metric_of, defaults_of)
    assert not list(tmp_path.iterdir())


@pytest.mark.timeout(60)
def test_two_thousand_results_are_no_trouble(tmp_path: Path) -> None:
    for seed in range(10):
        one = make_result(seed=seed, rows=drawn(seed, 0.8))
        for number in range(200):
            named = {**one, "model": {**one["model"], "name": f"model {number}"}}
            path = tmp_path / str(number) / f"seed-{seed}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(named), encoding="utf-8")
    out = str(tmp_path / "report.html")
    told = reporting.write_report(FILES, [str(tmp_path)], out, metric_of, defaults_of)
    assert told.startswith("2000 results: 1 task of blurb")


def test_intervals_draw_documents_where_files_name_them() -> None:
    """Sixty sentences of twenty documents: summed by document first, the bootstrap is that of the sums."""
    run = make_result(rows=drawn(0, 0.7))
    documents = [at // 3 for at in range(60)]
    run["per_example_stats"]["documents"] = documents
    (suite,) = report(run)["suites"]
    found = suite["tasks"]["bc5-chem"]["models"]["tiny"]["score"]
    units = numpy.array(run["per_example_stats"]["test"]).T
    summed = numpy.array([units[[one == at for one in documents]].sum(axis=0) for at in range(20)])
    interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], [summed])
    assert (found["low"], found["high"]) == pytest.approx((100 * interval.low, 100 * interval.high))
    alone = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], [units])
    assert (interval.low, interval.high) != (alone.low, alone.high)


@pytest.mark.parametrize("documents", [[0] * 59, [60] * 60, [-1] * 60, ["a"] * 60, "x"])
def test_documents_that_cannot_be_are_refused(tmp_path: Path, documents: Any) -> None:
    run = make_result(rows=drawn(0, 0.7))
    run["per_example_stats"]["documents"] = documents
    (tmp_path / "seed-0.json").write_text(json.dumps(run))
    with pytest.raises(ResultError, match="'per_example_stats'"):
        results.read_result(FILES, str(tmp_path / "seed-0.json"))
