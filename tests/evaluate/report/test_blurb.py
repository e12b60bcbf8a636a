"""The BLURB score is PubMedBERT's of its column, and is not to be had in part."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.report.blurb import BLURB_TASKS, TASKS_BY_TYPE, compute_blurb

PUBMEDBERT = dict(
    zip(
        BLURB_TASKS,
        (93.33, 85.62, 87.82, 84.52, 79.10, 73.38, 77.24, 82.36, 83.96, 92.30, 82.32, 55.84, 87.56),
        strict=True,
    )
)
"""SOURCE: Gu et al. 2020, table 6, last column."""


def test_pubmedbert_has_81_16() -> None:
    found = compute_blurb(PUBMEDBERT)
    assert f"{found.score:.2f}" == "81.16"
    assert found.missing_tasks == ()
    assert {name: f"{of:.2f}" for name, of in found.type_means.items()} == {
        "NER": "86.08",
        "PICO": "73.38",
        "Relation extraction": "81.19",
        "Sentence similarity": "92.30",
        "Document classification": "82.32",
        "Question answering": "71.70",
    }


def test_there_are_13_sets_of_six_types() -> None:
    assert (len(BLURB_TASKS), len(set(BLURB_TASKS)), len(TASKS_BY_TYPE)) == (13, 13, 6)


@pytest.mark.parametrize("task", BLURB_TASKS)
def test_without_one_set_there_is_no_score(task: str) -> None:
    found = compute_blurb({name: score for name, score in PUBMEDBERT.items() if name != task})
    assert (found.score, found.missing_tasks) == (None, (task,))
    assert [name for name, of in found.type_means.items() if of is None] == [
        name for name, tasks in TASKS_BY_TYPE.items() if task in tasks
    ]


def test_of_nothing_there_is_nothing() -> None:
    found = compute_blurb({})
    assert (found.score, found.partial_mean, found.missing_tasks) == (None, None, BLURB_TASKS)


def test_tasks_of_other_suites_do_not_count() -> None:
    assert compute_blurb(PUBMEDBERT | {"bc4chemd": 0.0}) == compute_blurb(PUBMEDBERT)


@given(st.dictionaries(st.sampled_from(BLURB_TASKS), st.floats(-100, 100), min_size=1))
def test_in_part_it_is_the_mean_of_types_that_have_any(scores: dict[str, float]) -> None:
    of_types = [
        mean(found)
        for tasks in TASKS_BY_TYPE.values()
        if (found := [scores[task] for task in tasks if task in scores])
    ]
    assert compute_blurb(scores).partial_mean == pytest.approx(mean(of_types))
