"""Readers of the Hallmarks of Cancer, BIOSSES and PubMedQA, and their splits."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.readers import (
    BIOSSES_DEV_IDS,
    BIOSSES_TEST_IDS,
    BIOSSES_TRAIN_IDS,
    PUBMEDQA_ANSWERS,
    read_hoc_abstract,
    split_pubmedqa,
    split_records,
)
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, LabelledText, Split
from tests.support.evaluate.benchmark_files import assert_refused, find_files, load_splits, write_file
from tests.support.hypothesis_profiles import examples

# Hallmarks of Cancer

SENTENCES = "Cells did not die .\nThey moved .\r\n\nNothing else .\nWe think so .\n"
LABELS = (
    "< Resisting cell death--Apoptosis ANDSustaining proliferative signaling--Receptors"
    "<  Activating invasion and metastasis< < NULL"
)


HALLMARKS = (
    "activating invasion and metastasis",
    "resisting cell death",
    "sustaining proliferative signaling",
)


def test_abstract_has_the_hallmarks_of_its_sentences(tmp_path: Path) -> None:
    text, labels = (
        write_file(tmp_path, "text/11.txt", SENTENCES),
        write_file(tmp_path, "labels/11.txt", LABELS),
    )
    assert read_hoc_abstract(text, labels, HALLMARKS) == LabelledText(
        "11",
        "Cells did not die . They moved . Nothing else . We think so .",
        frozenset(HALLMARKS),
        document_id="11",
    )


def write_abstracts(folder: Path, count: int) -> None:
    for pmid in range(100, 100 + count):
        write_file(folder, f"hallmarks-of-cancer/text/{pmid}.txt", "A sentence .\n")
        write_file(folder, f"hallmarks-of-cancer/labels/{pmid}.txt", "< ")


def test_abstracts_are_split_by_pmid_or_by_lists(tmp_path: Path) -> None:
    write_abstracts(tmp_path, 600)
    records_by_split = load_splits(tmp_path, "hoc")
    assert {split: len(records) for split, records in records_by_split.items()} == {
        "train": 43,
        "dev": 186,
        "test": 371,
    }
    assert find_files(tmp_path, "hoc").own_splits == {"train", "dev", "test"}
    write_abstracts(tmp_path / "listed", 5)
    for split, pmids in {"train": "103.txt,100.txt,104.txt", "dev": "102.txt\n", "test": "101"}.items():
        write_file(tmp_path / "listed", f"data_generation/indexing/HoC/{split}_pmid.tsv", pmids)
    records_by_split = load_splits(tmp_path / "listed", "hoc")
    assert [[record.id for record in records_by_split[split]] for split in ("dev", "test")] == [
        ["102"],
        ["101"],
    ]
    assert {record.id for record in records_by_split["train"]} == {"100", "103", "104"}
    assert find_files(tmp_path / "listed", "hoc").notes == ()


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ("< < < ", "labels of 3 sentences, and "),
        ("", "labels of 0 sentences, and "),
        ("< < < <Smoking--Cigars", "'smoking' is none of the hallmarks activating invasion"),
        (b"< < < <\xe9", "it is not UTF-8"),
    ],
)
def test_bad_hallmark_labels_are_refused_with_their_file(
    tmp_path: Path, labels: str | bytes, message: str
) -> None:
    write_file(tmp_path, "hallmarks-of-cancer/text/11.txt", SENTENCES)
    path = write_file(tmp_path, "hallmarks-of-cancer/labels/11.txt", labels)
    assert_refused(tmp_path, "hoc", f"{path}, line 1: ", message)


def test_text_without_labels_is_refused(tmp_path: Path) -> None:
    write_abstracts(tmp_path, 2)
    path = write_file(tmp_path, "hallmarks-of-cancer/text/12.txt", "Alone .")
    with pytest.raises(BenchmarkFileError, match="of text and labels, only one has it") as error:
        load_splits(tmp_path, "hoc")
    assert path in str(error.value)


# Splits


def split_names(
    names: list[str], split_sizes: dict[Split, int], list_paths: Sequence[str] = ()
) -> dict[Split, list[str]]:
    """Split records that have no more than a name."""
    records = {name: [LabelledText(name, "", "")] for name in names}
    by_split = split_records(records, split_sizes, list_paths)
    return {split: [record.id for record in records_of_split] for split, records_of_split in by_split.items()}


@settings(max_examples=examples(25))
@given(
    st.sets(st.text("aä.1", min_size=1), max_size=30), st.integers(0, 20), st.randoms(use_true_random=False)
)
def test_split_assignment_does_not_depend_on_order(names: set[str], dev: int, rng: random.Random) -> None:
    shuffled = sorted(names)
    rng.shuffle(shuffled)
    by_split = split_names(shuffled, {"dev": dev, "test": 3})
    assert len(by_split["dev"]) == min(dev, len(names))
    assert len(by_split["test"]) == min(3, len(names) - len(by_split["dev"]))
    by_split_of_sorted = split_names(sorted(names), {"dev": dev, "test": 3})
    for split, split_names_in_order in by_split.items():
        assert sorted(split_names_in_order) == by_split_of_sorted[split]
        assert split_names_in_order == [name for name in shuffled if name in by_split_of_sorted[split]]


@pytest.mark.parametrize(
    ("train", "dev", "message"),
    [
        ("a,b", "b", "dev_id.tsv, line 1: 'b' is in another list, too"),
        ("a\nc", "b", "train_id.tsv, line 2: 'c' is not in the set's files"),
        ("a", "", "neither it nor the lists beside it have 'b'"),
    ],
)
def test_inconsistent_lists_are_refused(tmp_path: Path, train: str, dev: str, message: str) -> None:
    lists = [write_file(tmp_path, "dev_id.tsv", dev), write_file(tmp_path, "train_id.tsv", train)]
    with pytest.raises(BenchmarkFileError) as error:
        split_names(["a", "b"], {"dev": 1}, lists)
    assert message in str(error.value)


# BIOSSES

SCORES = {number: [number % 5, 2, 2, 3, 4] for number in range(1, 101)}


def format_biosses_table(rows: dict[int, list[int]]) -> str:
    lines = [
        f"{number}\tFirst {number}.\tSecond {number}. \t{','.join(f'{score}.0' for score in scores)}\t0\n"
        for number, scores in rows.items()
    ]
    return "".join(["id\tsentence1\tsentence2\tscores\tmean\n", *lines])


def test_biosses_pairs_have_mean_scores_and_blue_splits(tmp_path: Path) -> None:
    write_file(tmp_path, "biosses/biosses.tsv", format_biosses_table(SCORES))
    records_by_split = load_splits(tmp_path, "biosses")
    assert [len(records_by_split[split]) for split in ("train", "dev", "test")] == [64, 16, 20]
    assert records_by_split["test"][0] == LabelledText(
        "59", "First 59.", fmean([4, 2, 2, 3, 4]), text_pair="Second 59."
    )
    assert sorted({*BIOSSES_TRAIN_IDS, *BIOSSES_DEV_IDS, *BIOSSES_TEST_IDS}) == [*range(1, 101)]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {**SCORES, 7: [5, 5, 5, 5, 5]},
            "line 8: the scores ['5.0', '5.0', '5.0', '5.0', '5.0'] of pair '7'",
        ),
        ({number: SCORES[number] for number in range(1, 100)}, "pair 100 of 100 is missing"),
        ({number: SCORES[number] for number in range(2, 101)}, "pair 1 of 100 is missing"),
    ],
)
def test_bad_biosses_scores_are_refused(tmp_path: Path, rows: dict[int, list[int]], message: str) -> None:
    path = write_file(tmp_path, "biosses/biosses.tsv", format_biosses_table(rows))
    assert_refused(tmp_path, "biosses", path, message)


def test_non_numeric_and_repeated_biosses_rows_are_refused(tmp_path: Path) -> None:
    table = format_biosses_table(SCORES)
    write_file(tmp_path, "biosses/biosses.tsv", table.replace("2.0,3.0,4.0\t0\n", "2.0,high\t0\n", 1))
    with pytest.raises(BenchmarkFileError, match=r"line 2: the scores .*'high'.* of pair '1' are no numbers"):
        load_splits(tmp_path, "biosses")
    write_file(tmp_path, "biosses/biosses.tsv", table + table.split("\n")[3] + "\n")
    assert_refused(tmp_path, "biosses", "the id '3' is given twice")


# PubMedQA


def make_question(answer: str) -> dict[str, Any]:
    return {
        "QUESTION": "Does it?",
        "CONTEXTS": ["We looked.", "It moved."],
        "LONG_ANSWER": "It does.",
        "final_decision": answer,
    }


def write_pubmedqa(folder: Path, answers: dict[str, str], gold: dict[str, str] | None = None) -> None:
    test = split_pubmedqa(answers)[2]
    questions = {pmid: make_question(answer) for pmid, answer in answers.items()}
    write_file(folder, "pubmedqa/data/ori_pqal.json", json.dumps(questions))
    ground_truth = gold if gold is not None else {pmid: answers[pmid] for pmid in test}
    write_file(folder, "pubmedqa/data/test_ground_truth.json", json.dumps(ground_truth))


ANSWERS = {str(number): ("yes", "no", "yes", "maybe")[number % 4] for number in range(1000)}


def test_pubmedqa_context_excludes_the_conclusion(tmp_path: Path) -> None:
    write_pubmedqa(tmp_path, ANSWERS)
    records_by_split = load_splits(tmp_path, "pubmedqa")
    assert [len(records_by_split[split]) for split in ("train", "dev", "test")] == [450, 50, 500]
    first = records_by_split["dev"][0]
    assert first == LabelledText(
        first.id, "Does it?", ANSWERS[first.id], "We looked. It moved.", document_id=first.id
    )


@settings(max_examples=examples(20))
@given(st.integers(0, 1000), st.integers(0, 1000))
def test_pubmedqa_split_is_complete_and_stratified(first: int, second: int) -> None:
    """``first`` and ``second`` are the boundaries between yes, no and maybe."""
    yes_end, no_end = sorted((first, second))
    answers = ["yes"] * yes_end + ["no"] * (no_end - yes_end) + ["maybe"] * (1000 - no_end)
    answer_by_id = {str(number): answer for number, answer in enumerate(answers)}
    train, dev, test = split_pubmedqa(answer_by_id)
    assert sorted([*train, *dev, *test], key=int) == list(answer_by_id)
    assert abs(len(test) - 500) <= 3
    assert 49 <= len(dev) <= 53
    for answer in PUBMEDQA_ANSWERS:
        assert abs(sum(answer_by_id[pmid] == answer for pmid in test) - answers.count(answer) / 2) <= 2


@pytest.mark.parametrize(
    ("questions", "message"),
    [
        ('{"1": {"QUESTION": "Does it?"}}', "1 has no 'CONTEXTS'"),
        ('{"1": {"QUESTION": "Does it?", "CONTEXTS": "We"}}', "1.CONTEXTS should be a list, but is a text"),
        ('{"1": {"QUESTION": "?", "CONTEXTS": ["We", 2]}}', "1.CONTEXTS[1] should be a text, but is 2"),
        (
            json.dumps({"1": make_question("perhaps")}),
            "final_decision should be one of yes, no, maybe, but is 'perhaps'",
        ),
        ('{"1": {},\n "1": {}}', "an object has '1' twice"),
        ('{"1": {},\n "2": {', "line 2: it is not JSON"),
        (
            json.dumps({str(number): make_question("yes") for number in range(12)}),
            "its 12 questions are too few to be split as split_dataset.py does",
        ),
        ("[]", "its JSON should be an object, but is a list"),
        ("[" * 100_000, "its JSON is not used"),
    ],
)
def test_bad_pubmedqa_json_is_refused(tmp_path: Path, questions: str, message: str) -> None:
    write_pubmedqa(tmp_path, ANSWERS)
    path = write_file(tmp_path, "pubmedqa/data/ori_pqal.json", questions)
    assert_refused(tmp_path, "pubmedqa", path, message)


def test_pubmedqa_test_ids_must_equal_the_drawn_ids(tmp_path: Path) -> None:
    write_pubmedqa(tmp_path, ANSWERS, gold={"1": "no"})
    with pytest.raises(BenchmarkFileError, match=r"than the 500 that split_dataset\.py draws"):
        load_splits(tmp_path, "pubmedqa")
