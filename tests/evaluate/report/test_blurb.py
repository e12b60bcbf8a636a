"""The BLURB score: PubMedBERT's published score, and results with missing tasks."""

from __future__ import annotations

from statistics import mean

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.report.published import BLURB_TASKS, TASKS_BY_TYPE, compute_blurb

PUBMEDBERT = dict(
    zip(
        BLURB_TASKS,
        (93.33, 85.62, 87.82, 84.52, 79.10, 73.38, 77.24, 82.36, 83.96, 92.30, 82.32, 55.84, 87.56),
        strict=True,
    )
)
"""SOURCE: Gu et al. 2020, table 6, last column."""


def test_pubmedbert_has_its_published_score() -> None:
    blurb = compute_blurb(PUBMEDBERT)
    assert f"{blurb.score:.2f}" == "81.16"
    assert blurb.missing_tasks == ()
    assert {name: f"{value:.2f}" for name, value in blurb.type_means.items()} == {
        "NER": "86.08",
        "PICO": "73.38",
        "Relation extraction": "81.19",
        "Sentence similarity": "92.30",
        "Document classification": "82.32",
        "Question answering": "71.70",
    }


def test_blurb_has_13_tasks_of_6_types() -> None:
    assert (len(BLURB_TASKS), len(set(BLURB_TASKS)), len(TASKS_BY_TYPE)) == (13, 13, 6)


@pytest.mark.parametrize("task", BLURB_TASKS)
def test_missing_task_leaves_no_score(task: str) -> None:
    blurb = compute_blurb({name: score for name, score in PUBMEDBERT.items() if name != task})
    assert (blurb.score, blurb.missing_tasks) == (None, (task,))
    assert [name for name, value in blurb.type_means.items() if value is None] == [
        name for name, tasks in TASKS_BY_TYPE.items() if task in tasks
    ]


def test_no_scores_give_no_mean() -> None:
    blurb = compute_blurb({})
    assert (blurb.score, blurb.partial_mean, blurb.missing_tasks) == (None, None, BLURB_TASKS)


def test_tasks_of_other_suites_are_ignored() -> None:
    assert compute_blurb(PUBMEDBERT | {"bc4chemd": 0.0}) == compute_blurb(PUBMEDBERT)


@given(st.dictionaries(st.sampled_from(BLURB_TASKS), st.floats(-100, 100), min_size=1))
def test_partial_mean_is_the_mean_of_available_types(scores: dict[str, float]) -> None:
    type_means = [
        mean(task_scores)
        for tasks in TASKS_BY_TYPE.values()
        if (task_scores := [scores[task] for task in tasks if task in scores])
    ]
    assert compute_blurb(scores).partial_mean == pytest.approx(mean(type_means))
