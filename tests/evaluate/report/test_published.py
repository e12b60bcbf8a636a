"""Published tables: scores as printed, consistent sums, notes on the right cells, and the BLURB score."""

from __future__ import annotations

from statistics import mean

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.report.published import (
    BLURB_TASKS,
    PUBLISHED_TABLES,
    TASK_TITLES,
    TASKS_BY_TYPE,
    PublishedTable,
    Score,
    compute_blurb,
    parse_rows,
)

(
    BLURB_TABLE,
    PRETRAINING_TABLE,
    FINE_TUNING_TABLE,
    BIO_ELECTRA_TABLE,
    ELECTRAMED_TABLE,
    BIOALBERT_TABLE,
) = PUBLISHED_TABLES


@pytest.mark.parametrize(
    ("table", "model"),
    [(table, model) for table in (BLURB_TABLE, PRETRAINING_TABLE) for model in table.models],
)
def test_blurb_scores_are_as_printed(table: PublishedTable, model: str) -> None:
    scores = {task: by_model[model].mean for (task, _), by_model in table.scores.items()}
    printed = table.blurb_scores[model]
    assert tuple(scores) == BLURB_TASKS
    assert f"{compute_blurb(scores).score:.2f}" == f"{printed:.2f}"


@pytest.mark.parametrize(
    "table", [BIO_ELECTRA_TABLE, ELECTRAMED_TABLE, BIOALBERT_TABLE], ids=lambda table: table.suite
)
def test_f1_is_consistent_with_precision_and_recall(table: PublishedTable) -> None:
    """F1 of one run is the harmonic mean of both; F1 averaged over runs differs more with a larger sd."""
    checked = 0
    for (task, score_name), scores in table.scores.items():
        prefix = score_name.removesuffix("F1")
        if score_name == prefix or (task, f"{prefix}precision") not in table.scores:
            continue
        for model, f1 in scores.items():
            precision = table.scores[task, f"{prefix}precision"][model].mean
            recall = table.scores[task, f"{prefix}recall"][model].mean
            difference = abs(f1.mean - 2 * precision * recall / (precision + recall))
            assert difference < max(0.08, 0.2 * (f1.sd or 0)), (task, score_name, model)
            checked += 1
    assert checked == {"bio-electra": 37, "electramed": 5, "bioalbert": 64}[table.suite]


@pytest.mark.parametrize(
    ("table", "task", "score_name", "model", "mean", "sd"),
    [
        (BLURB_TABLE, "pubmedqa", "accuracy", "PubMedBERT", 55.84, None),
        (BLURB_TABLE, "bc5-chem", "F1", "PubMedBERT + PMC, longer", 93.34, None),
        (BLURB_TABLE, "bioasq-yesno", "accuracy", "BERT uncased", 70.36, None),
        (PRETRAINING_TABLE, "ddi", "F1", "Adversarial", 83.62, None),
        (FINE_TUNING_TABLE, "ddi", "F1", "Original, [CLS]", 37.00, None),
        (FINE_TUNING_TABLE, "chemprot", "F1", "Markers, entity start", 77.58, None),
        (FINE_TUNING_TABLE, "gad", "F1", "BiLSTM", 83.42, None),
        (BIO_ELECTRA_TABLE, "ncbi-disease", "F1", "Bio-ELECTRA++ optimised", 84.85, 0.65),
        (BIO_ELECTRA_TABLE, "yesno-ideal", "no F1", "Bio-ELECTRA", 58.18, 19.91),
        (BIO_ELECTRA_TABLE, "factoid-8b", "exact match", "BERT-Base cased", 59.98, 0.66),
        (BIO_ELECTRA_TABLE, "reranker", "MRR", "Bio-ELECTRA++", 33.5, 1.7),
        (BIO_ELECTRA_TABLE, "chemprot-lim-kang", "F1", "BERT-Base cased", 69.80, 1.36),
        (ELECTRAMED_TABLE, "jnlpba-typed", "F1", "ELECTRAMed", 73.65, None),
        (BIOALBERT_TABLE, "linnaeus", "F1", "BioALBERT 1.1 PubMed + PMC", 99.73, None),
        (BIOALBERT_TABLE, "s800", "F1", "BioBERT 1.1 PubMed", 74.06, None),
    ],
)
def test_cells_are_as_printed(
    table: PublishedTable, task: str, score_name: str, model: str, mean: float, sd: float | None
) -> None:
    assert table.scores[task, score_name][model] == Score(mean, sd)


def test_recall_that_two_tables_print_differently_is_that_of_the_f1() -> None:
    """Ozyurt 2020, BERT on BC4CHEMD: a recall of 89.46 in table 4, of 89.96 in table 7."""
    precision, recall, f1 = (
        BIO_ELECTRA_TABLE.scores["bc4chemd", name]["BERT-Base cased"].mean
        for name in ("precision", "recall", "F1")
    )
    assert f"{2 * precision * recall / (precision + recall):.2f}" == f"{f1:.2f}" == "90.40"
    assert f"{2 * precision * 89.96 / (precision + 89.96):.2f}" == "90.65"
    [note] = BIO_ELECTRA_TABLE.notes_for("BERT-Base cased", "bc4chemd")
    assert "89.46" in note
    assert "89.96" in note


def test_missing_cells_are_left_out() -> None:
    assert "BERT-Base cased" not in BIO_ELECTRA_TABLE.scores["reranker-weighted", "MRR"]
    assert "Bio-ELECTRA++ optimised" not in BIO_ELECTRA_TABLE.scores["gad", "F1"]
    assert list(FINE_TUNING_TABLE.scores["gad", "F1"]) == ["BiLSTM"]


def test_electramed_batches_are_weighted_by_questions() -> None:
    """SOURCE: Miolo et al. 2021: questions by batch (table 4), SACC, LACC and MRR (table 9)."""
    batches = numpy.array(
        [
            (39, 44.62, 51.28, 47.95),
            (25, 46.40, 62.40, 53.16),
            (29, 37.93, 58.62, 46.62),
            (34, 61.18, 82.35, 69.55),
            (35, 24.57, 44.00, 31.42),
        ]
    )
    means = numpy.average(batches[:, 1:], axis=0, weights=batches[:, 0])
    assert {
        name: scores["ELECTRAMed"].mean
        for (task, name), scores in ELECTRAMED_TABLE.scores.items()
        if task == "factoid-7b"
    } == dict(zip(("SACC", "LACC", "MRR"), means.round(2), strict=True))


def test_row_with_a_missing_cell_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        parse_rows(("one", "two"), "ddi F1 80.00")


def test_every_task_has_a_title() -> None:
    assert {task for table in PUBLISHED_TABLES for task in table.tasks} <= {*TASK_TITLES, *BENCHMARKS}


@pytest.mark.parametrize("table", PUBLISHED_TABLES, ids=lambda table: table.title)
def test_notes_refer_to_existing_models_and_tasks(table: PublishedTable) -> None:
    for note in table.notes:
        assert set(note.models) <= set(table.models)
        assert set(note.tasks) <= set(table.tasks)
    assert set(table.own_models) <= set(table.models)


def test_development_set_scores_have_notes() -> None:
    def has_development_note(model: str, task: str) -> bool:
        return any("development set" in text for text in BIO_ELECTRA_TABLE.notes_for(model, task))

    cells = [
        (model, task)
        for model in BIO_ELECTRA_TABLE.models
        for task in BIO_ELECTRA_TABLE.tasks
        if has_development_note(model, task)
    ]
    assert cells == [("Bio-ELECTRA++ optimised", "ncbi-disease"), ("Bio-ELECTRA++ optimised", "linnaeus")]


def test_only_bioalbert_columns_have_the_implausible_note() -> None:
    models_with_note = [
        model
        for model in BIOALBERT_TABLE.models
        if any("mplausible" in note for note in BIOALBERT_TABLE.notes_for(model))
    ]
    assert models_with_note == [model for model in BIOALBERT_TABLE.models if model.startswith("BioALBERT")]


def test_note_is_listed_in_one_place() -> None:
    """A note on a table or a row is listed there only, and is left out of the notes on cells."""
    assert len(BLURB_TABLE.notes_for()) == 1
    assert BLURB_TABLE.notes_for("PubMedBERT") == []
    assert BLURB_TABLE.notes_for("PubMedBERT", "gad") == []
    assert len(BLURB_TABLE.notes_for(task="gad")) == 1


PUBMEDBERT = {task: by_model["PubMedBERT"].mean for (task, _), by_model in BLURB_TABLE.scores.items()}


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
