"""Grouping of results by model: means over seeds, and the errors for seeds that cannot be averaged."""

from __future__ import annotations

from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from bioshards.evaluate.report.report_data import group_by_model
from bioshards.evaluate.runs.results import ResultError
from tests.support.evaluate.synthetic_results import (
    DEFAULTS,
    change_stats,
    make_provenance,
    make_result,
    results_by_path,
)


def make_rows(correct: int) -> list[tuple[int, ...]]:
    return [(correct, 10, 10, correct, 10, 10)]


@given(st.lists(st.integers(0, 10), min_size=1, max_size=8))
def test_mean_and_standard_deviation_equal_numpy(correct: list[int]) -> None:
    results = [make_result(seed=seed, rows=make_rows(count)) for seed, count in enumerate(correct)]
    ((seeds,),) = group_by_model(results_by_path(*results)).values()
    f1 = seeds.summarise_scores("test")["F1"]
    values = numpy.array(correct) * 10.0
    assert f1.mean == pytest.approx(values.mean())
    assert f1.sd == pytest.approx(values.std(ddof=0))


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
