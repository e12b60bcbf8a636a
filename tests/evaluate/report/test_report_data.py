"""The data of a report: groups of results, scores, intervals, comparisons, and its JSON file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import msgspec
import numpy
import pytest
from msgspec import structs

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.report import bootstrap, report_pages
from bioshards.evaluate.report.published import BLURB_TASKS, PUBLISHED_TABLES
from bioshards.evaluate.report.report_data import Report, group_by_model
from bioshards.evaluate.runs import results
from bioshards.evaluate.runs.results import Result, ResultError
from tests.support.evaluate.synthetic_results import (
    DEFAULTS,
    ENTITY_F1,
    METRICS,
    build_synthetic_report,
    change_stats,
    make_provenance,
    make_result,
    make_rows,
    results_by_path,
    synthetic_tasks,
)

STORAGE = LocalStorage()
BLURB_TABLE = PUBLISHED_TABLES[0]


@pytest.fixture(autouse=True)
def use_synthetic_tasks() -> Iterator[None]:
    with synthetic_tasks():
        yield


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
    (entry,) = build_synthetic_report(*runs).scores
    f1 = [100 * run.scores["test"]["F1"] for run in runs]
    stats = [numpy.array(run.per_example_stats.test).T for run in runs]
    interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], stats)
    assert entry.seeds == [0, 1, 2]
    assert (entry.score.mean, entry.score.sd) == pytest.approx((numpy.mean(f1), numpy.std(f1)))
    assert (entry.low, entry.high) == pytest.approx((100 * interval.low, 100 * interval.high))
    assert entry.low < entry.score.mean < entry.high
    assert entry.dev["F1"].mean == pytest.approx(numpy.mean(f1) / 2)
    assert set(entry.test) == set(runs[0].scores["test"])
    assert entry.seconds == pytest.approx(3 * 60.5)


def list_published(suite: str, task: str, model: str) -> list[dict[str, Any]]:
    """List the published scores of a model on a task in the JSON of a report of that suite."""
    report = build_synthetic_report(make_result(suite=suite)).to_json()
    return [one for one in report["published"] if (one["task"], one["model"]) == (task, model)]


def test_published_scores_are_part_of_the_json_report() -> None:
    report = build_synthetic_report(make_result()).to_json()
    assert {one["suite"] for one in report["published"]} == {"blurb"}
    assert list(dict.fromkeys(one["table"] for one in report["published"])) == [
        "BLURB",
        "PubMedBERT pretrained otherwise",
        "PubMedBERT fine-tuned otherwise",
    ]
    assert list(dict.fromkeys(one["task"] for one in report["published"])) == list(BLURB_TASKS)
    (score,) = list_published("blurb", "bc5-chem", "PubMedBERT")
    assert (score["mean"], score["sd"], score["score_name"]) == (93.33, None, "F1")
    assert score["notes"] == [*BLURB_TABLE.notes_for(), *BLURB_TABLE.notes_for(task="bc5-chem")]


def test_changed_settings_are_listed_with_their_defaults() -> None:
    other = {**DEFAULTS, "learning_rate": 1e-05, "tag_scheme": "IO"}
    (entry,) = build_synthetic_report(make_result(settings=other)).scores
    assert entry.changed_settings == {
        "learning_rate": {"value": 1e-05, "default": 5e-05},
        "tag_scheme": {"value": "IO", "default": None},
    }


def test_blurb_score_of_all_tasks() -> None:
    (blurb,) = build_synthetic_report(*make_blurb_results()).to_json()["blurb"]
    f1 = 100 * METRICS[ENTITY_F1].scores_from_stats(numpy.array(draw_rows(1, 0.8)))["F1"]
    assert (blurb["model"], blurb["score"]) == ("tiny", pytest.approx(f1))
    assert blurb["missing_tasks"] == ()


def test_missing_tasks_leave_the_mean_of_shared_tasks() -> None:
    runs = [*make_blurb_results(without=("ddi", "gad")), *make_blurb_results("other", without=("ddi", "hoc"))]
    report = build_synthetic_report(*runs)
    tiny, other = report.to_json()["blurb"]
    assert (tiny["score"], other["score"]) == (None, None)
    assert tiny["missing_tasks"] == ("ddi", "gad")
    assert tiny["type_means"]["Relation extraction"] is None
    average = find_blurb_row(report, "Average over 10 of 13 tasks")
    expected = numpy.mean([86.08, 73.38, 77.24, 92.30, 71.70])  # PubMedBERT's means, without HoC's type
    assert float(average["PubMedBERT"]) == pytest.approx(expected, abs=0.006)


def find_blurb_row(report: Report, first: str) -> dict[str, str]:
    """Return the texts of a row of the table of BLURB, by column; ours come before a published namesake."""
    table = next(report_pages.build_suite_tables(report, "blurb"))
    (row,) = [row for row in table.rows if row[0].text == first]
    columns = zip(table.header, row, strict=True)
    return {f"{'our ' * header.is_ours}{header.text}": cell.text for header, cell in columns}


@pytest.mark.parametrize("name", BLURB_TABLE.models)
def test_model_named_as_a_published_one_keeps_its_own_scores(name: str) -> None:
    """Also in the average over the tasks that it has, which stands beside the published models'."""
    named, mine = (
        find_blurb_row(build_synthetic_report(*results), "Average over 12 of 13 tasks")
        for results in (make_blurb_results(label, without=("ddi",)) for label in (name, "mine"))
    )
    assert named.pop(f"our {name}") == mine.pop("our mine")
    assert named == mine


def test_models_are_compared_on_their_shared_seeds() -> None:
    first = [make_result("first", seed=seed, rows=draw_rows(seed, 0.7)) for seed in (0, 1, 2)]
    second = [make_result("second", seed=seed, rows=draw_rows(10 + seed, 0.9)) for seed in (1, 2, 3)]
    report = build_synthetic_report(*first, *second)
    (comparison,) = report.comparisons
    stats = [[numpy.array(run.per_example_stats.test).T for run in runs] for runs in (second[:2], first[1:])]
    expected = bootstrap.paired_bootstrap(METRICS[ENTITY_F1], *stats)
    assert asdict(comparison) == {
        "suite": "blurb",
        "task": "bc5-chem",
        "first": "first",
        "second": "second",
        "seeds": [1, 2],
        "unshared_seeds": [0, 3],
        "skip_reason": "",
        "difference": pytest.approx(100 * expected.score),
        "low": pytest.approx(100 * expected.low),
        "high": pytest.approx(100 * expected.high),
        "p_value": pytest.approx(expected.p_value),
    }
    means = [entry.score.mean for entry in report.scores]
    assert (expected.score > 0) == (means[1] > means[0])


@pytest.mark.parametrize(
    ("changes", "skip_reason"),
    [
        ({"seed": 5}, "no seed in common"),
        (
            {"per_example_stats": change_stats(make_result(), examples_sha256="others").per_example_stats},
            "not the same test examples",
        ),
        ({"legacy": ["lower-case"]}, "not measured alike"),
    ],
)
def test_skipped_comparison_has_a_reason(changes: Any, skip_reason: str) -> None:
    report = build_synthetic_report(make_result("first"), make_result("second", **changes))
    (comparison,) = report.comparisons
    assert (comparison.skip_reason, comparison.p_value) == (skip_reason, None)


def test_score_that_contradicts_its_statistics_is_refused() -> None:
    forged = make_result()
    forged.scores["test"]["F1"] += 0.01
    with pytest.raises(
        ResultError, match=r"the F1 of tiny on bc5-chem \(blurb\) is .* but their per-example statistics give"
    ):
        build_synthetic_report(forged)


def test_suites_and_tasks_are_in_published_order() -> None:
    report = build_synthetic_report(
        make_result(task="squad", suite="further"),
        make_result(task="linnaeus", suite="bioalbert"),
        make_result(task="zebra"),
        make_result(task="ddi"),
        make_result(task="bc2gm"),
        make_result(task="apple"),
    )
    tasks = {suite: [each.task for each in scores] for suite, scores in report.scores_by_suite().items()}
    assert list(tasks.items()) == [
        ("blurb", ["bc2gm", "ddi", "apple", "zebra"]),
        ("bioalbert", ["linnaeus"]),
        ("further", ["squad"]),
    ]


def test_models_list_library_versions_and_devices() -> None:
    later = make_result(seed=1, library_versions={"bioshards": "1.0"}, device="cuda")
    (model,) = build_synthetic_report(make_result(), later).models
    assert (model.library_versions, model.devices) == ({"bioshards": ["0.9", "1.0"]}, ["cpu", "cuda"])


def test_report_is_reproducible(tmp_path: Path) -> None:
    for run in (make_result(seed=0, rows=draw_rows(0, 0.5)), make_result(seed=1, rows=draw_rows(1, 0.5))):
        results.write_result(
            STORAGE, results.result_path(str(tmp_path / "runs"), "blurb", "bc5-chem", run.seed), run
        )
    texts = []
    for name in ("a", "b", "b"):  # the last replaces the one before
        path = tmp_path / name
        message = report_pages.write_report(STORAGE, [str(tmp_path / "runs")], str(path))
        assert message.splitlines() == [
            "BLURB       model  score         majority class",
            "  BC5-chem  tiny   F1     62.31           14.60",
            "2 results: 1 task of blurb",
            f"report: {path}/report.html",
        ]
        assert sorted(file.name for file in path.iterdir()) == ["README.md", "report.html", "report.json"]
        assert "| F1 | 62.31" in (path / "README.md").read_text(encoding="utf-8")
        assert "62.31" in (path / "report.html").read_text(encoding="utf-8")
        texts.append((path / "report.json").read_text(encoding="utf-8"))
    assert texts[0] == texts[1] == texts[2]
    assert list(json.loads(texts[0])) == [
        *("format", "score_unit", "standard_deviation", "interval"),
        *("models", "scores", "comparisons", "blurb", "published"),
    ]
    assert json.loads(texts[0])["scores"][0]["seeds"] == [0, 1]


def test_printed_scores_name_what_limits_them(tmp_path: Path) -> None:
    changed = {**DEFAULTS, "epochs": 1}
    run = make_result(rows=draw_rows(0, 0.5), settings=changed, provenance=make_provenance("invented"))
    path = results.result_path(str(tmp_path / "runs"), "blurb", "bc5-chem", run.seed)
    results.write_result(STORAGE, path, run)
    output = str(tmp_path / "report")
    message = report_pages.write_report(STORAGE, [str(tmp_path / "runs")], output)
    assert message.splitlines()[1].endswith("(invented, changed settings)")


def test_keys_of_the_json_report() -> None:
    """The keys of the JSON report are an interface for scripts."""
    report = build_synthetic_report(make_result()).to_json()
    assert list(report["scores"][0]) == [
        *("suite", "task", "title", "model", "metric", "main_score", "seeds", "score", "low", "high"),
        *("test", "dev", "majority", "sample_sizes", "file_status", "legacy", "notes"),
        *("settings", "changed_settings", "selected_steps", "seconds"),
    ]
    assert list(report["blurb"][0]) == ["model", "type_means", "score", "missing_tasks", "partial_mean"]
    assert list(report["published"][0]) == [
        *("suite", "table", "source", "task", "model", "score_name", "mean", "sd", "notes")
    ]


def test_readme_of_something_else_is_kept(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("of a laboratory")
    with pytest.raises(OutputMismatchError, match=r"README.md would be replaced, and is not of a report"):
        report_pages.write_report(STORAGE, [str(tmp_path)], str(tmp_path))
    assert (tmp_path / "README.md").read_text() == "of a laboratory"


def test_no_report_is_written_without_results(tmp_path: Path) -> None:
    with pytest.raises(ResultError, match="has no results"):
        report_pages.write_report(STORAGE, [str(tmp_path)], str(tmp_path / "report"))
    assert not list(tmp_path.iterdir())


@pytest.mark.thorough
@pytest.mark.timeout(60)
def test_report_of_two_thousand_results(tmp_path: Path) -> None:
    for seed in range(10):
        run = make_result(seed=seed, rows=draw_rows(seed, 0.8))
        for number in range(200):
            renamed = structs.replace(run, model=structs.replace(run.model, name=f"model {number}"))
            path = tmp_path / str(number) / f"seed-{seed}.json"
            path.parent.mkdir(exist_ok=True)
            path.write_text(json.dumps(msgspec.to_builtins(renamed)), encoding="utf-8")
    report_path = str(tmp_path / "report")
    message = report_pages.write_report(STORAGE, [str(tmp_path)], report_path)
    assert "\n2000 results: 1 task of blurb\n" in message


def test_bootstrap_resamples_documents() -> None:
    """Resampling 20 documents of 3 sentences each equals resampling the sums of each document."""
    documents = [number // 3 for number in range(60)]
    run = change_stats(make_result(rows=draw_rows(0, 0.7)), documents=documents)
    (entry,) = build_synthetic_report(run).scores
    stats = numpy.array(run.per_example_stats.test).T
    document_stats = numpy.array(
        [stats[[document == number for document in documents]].sum(axis=0) for number in range(20)]
    )
    interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], [document_stats])
    assert (entry.low, entry.high) == pytest.approx((100 * interval.low, 100 * interval.high))
    sentence_interval = bootstrap.bootstrap_interval(METRICS[ENTITY_F1], [stats])
    assert (interval.low, interval.high) != (sentence_interval.low, sentence_interval.high)


@pytest.mark.parametrize("documents", [[0] * 59, [60] * 60, [-1] * 60, ["a"] * 60, "x"])
def test_invalid_document_numbers_are_refused(tmp_path: Path, documents: Any) -> None:
    run = change_stats(make_result(rows=draw_rows(0, 0.7)), documents=documents)
    (tmp_path / "seed-0.json").write_text(json.dumps(msgspec.to_builtins(run)))
    with pytest.raises(ResultError, match="per_example_stats"):
        results.read_result(STORAGE, str(tmp_path / "seed-0.json"))


def test_seeds_are_ascending_and_models_in_order() -> None:
    grouped = group_by_model(
        results_by_path(
            make_result("b", seed=2),
            make_result("a", seed=1),
            make_result("b", seed=0),
            make_result("a", "ddi"),
        )
    )
    assert {key: [(group.label, group.seeds) for group in groups] for key, groups in grouped.items()} == {
        ("blurb", "bc5-chem"): [("b", [0, 2]), ("a", [1])],
        ("blurb", "ddi"): [("a", [0])],
    }


def test_score_missing_for_a_seed_has_no_mean() -> None:
    incomplete = make_result(seed=1)
    del incomplete.scores["dev"]["recall"]
    ((seeds,),) = group_by_model(results_by_path(make_result(), incomplete)).values()
    assert "recall" in seeds.summarise_scores("test")
    assert "recall" not in seeds.summarise_scores("dev")


def test_legacy_results_are_grouped_separately() -> None:
    legacy = make_result(legacy=["lower-case", "truncated"])
    ((standard, legacy_group),) = group_by_model(results_by_path(make_result(), legacy)).values()
    assert (standard.label, legacy_group.label) == ("tiny", "tiny (legacy: lower-case, truncated)")


def test_copied_result_is_counted_once() -> None:
    result = make_result(seconds=1.0, device="cuda", library_versions={})
    copy = structs.replace(result, model=structs.replace(result.model, path="elsewhere"))
    ((seeds,),) = group_by_model(results_by_path(make_result(), copy)).values()
    assert seeds.seeds == [0]


def test_conflicting_results_of_a_seed_are_refused() -> None:
    with pytest.raises(
        ResultError, match=r"0/seed-0.json and 1/seed-0.json are both seed 0 of tiny on bc5-chem"
    ):
        group_by_model(results_by_path(make_result(), make_result(rows=make_rows(3))))


def test_two_models_with_one_name_are_refused() -> None:
    other = make_result(task="ddi")
    other = structs.replace(other, model=structs.replace(other.model, sha256="0" * 64))
    with pytest.raises(ResultError, match="of two models that are both named tiny"):
        group_by_model(results_by_path(make_result(), other))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"settings": {**DEFAULTS, "learning_rate": 1e-05}},
            "settings.learning_rate is 5e-05 in one and 1e-05",
        ),
        ({"settings": {**DEFAULTS, "tag_scheme": "IO"}}, "settings.tag_scheme is None in one and 'IO'"),
        ({"sample_sizes": {"train": 1, "dev": 1, "test": 1}}, "sample_sizes is None in one and"),
        (
            {"provenance": make_provenance("differs")},
            "provenance.file_status is 'verified' in one and",
        ),
        (
            {"per_example_stats": change_stats(make_result(), examples_sha256="others").per_example_stats},
            "the test set is ('of bc5-chem', 2) in one",
        ),
    ],
)
def test_seeds_with_different_settings_are_refused(changes: Any, message: str) -> None:
    with pytest.raises(ResultError, match="so they have no mean: report them apart") as error:
        group_by_model(
            results_by_path(make_result(seed=0), make_result(seed=1), make_result(seed=2, **changes))
        )
    assert message in str(error.value)
    assert str(error.value).startswith(
        "0/seed-0.json and 2/seed-2.json are seeds of tiny on bc5-chem (blurb)"
    )
