"""Readers of questions in the JSON of SQuAD and of BioASQ."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bioshards.evaluate.benchmarks.readers import read_squad
from bioshards.evaluate.benchmarks.records import Answer, BenchmarkFileError, LabelledText, Question
from tests.support.evaluate.benchmark_files import assert_refused, find_files, load_splits, write_file

QA = "electramed/QA/BioASQ"


def format_squad_json(*questions: tuple[str, dict[str, Any]]) -> str:
    """Format passages with a question each as SQuAD's JSON."""
    paragraphs = [{"context": context, "qas": [question]} for context, question in questions]
    return json.dumps({"version": "1.1", "data": [{"title": "It", "paragraphs": paragraphs}]})


def make_question(name: str, *answers: tuple[str, int]) -> dict[str, Any]:
    answer_entries = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": "What moves?", "answers": answer_entries}


def make_golden_question(name: str, kind: str, answer: object, *snippets: str) -> dict[str, Any]:
    return {
        "id": name,
        "type": kind,
        "body": f"What of {name}?",
        "exact_answer": answer,
        "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/12", "http://www.ncbi.nlm.nih.gov/pubmed/7"],
        "snippets": [{"text": snippet} for snippet in snippets],
    }


def write_squad(folder: Path, name: str, *questions: tuple[str, dict[str, Any]]) -> str:
    return write_file(folder, name, format_squad_json(*questions))


def write_bioasq(folder: Path, name: str, *questions: dict[str, Any]) -> str:
    return write_file(folder, name, json.dumps({"questions": questions}))


def test_wrong_answer_start_is_read_as_unknown(tmp_path: Path) -> None:
    context = "Cells move. Cells rest."
    first_question = make_question(
        "q1", ("Cells", 12), ("move", 0), ("rest.", 99), ("cells", 0), ("Cells", -11)
    )
    write_squad(
        tmp_path, "squad/dev-v1.1.json", (context, first_question), ("No.", {"id": "q2", "question": "?"})
    )
    answers = (Answer("Cells", 12), *(Answer(text, -1) for text in ("move", "rest.", "cells", "Cells")))
    assert load_splits(tmp_path, "squad") == {
        "dev": [
            Question("q1", "What moves?", context, answers, group_id="q1"),
            Question("q2", "?", "No.", (), group_id="q2"),
        ]
    }


def test_passages_of_one_question_share_a_group(tmp_path: Path) -> None:
    passages = (
        ("It.", make_question("58:1")),
        ("That.", make_question("58:2")),
        ("This.", make_question("59:1")),
    )
    write_squad(tmp_path, "bio_electra/bioasq/dev.json", *passages)
    test = load_splits(tmp_path, "factoid-8b")["test"]
    assert [record.group_id for record in test if isinstance(record, Question)] == ["58", "58", "59"]


def test_factoid_questions_get_the_golden_answers_of_their_batch(tmp_path: Path) -> None:
    write_squad(tmp_path, f"{QA}/BioASQ-test-factoid-7b-1.json", ("It.", make_question("a_000")))
    write_squad(
        tmp_path,
        f"{QA}/BioASQ-test-factoid-7b-3.json",
        ("I.", make_question("b_000")),
        ("We.", make_question("b_001")),
    )
    write_bioasq(
        tmp_path,
        f"{QA}/7B1_golden.json",
        make_golden_question("a", "factoid", [["one", "1"]]),
        make_golden_question("x", "summary", 5),
    )
    write_bioasq(tmp_path, f"{QA}/7B3_golden.json", make_golden_question("b", "factoid", ["two"]))
    write_squad(tmp_path, f"{QA}/BioASQ-train-factoid-7b.json", ("It is.", make_question("c_004", ("is", 3))))
    records = load_splits(tmp_path, "factoid-7b")
    assert records["train"] == [Question("c_004", "What moves?", "It is.", (Answer("is", 3),), group_id="c")]
    documents = {"document_id": "12 7"}
    assert records["test"] == [
        Question("a_000", "What moves?", "It.", (), "a", ("one", "1"), "1", **documents),
        Question("b_000", "What moves?", "I.", (), "b", ("two",), "3", **documents),
        Question("b_001", "What moves?", "We.", (), "b", ("two",), "3", **documents),
    ]
    write_bioasq(tmp_path, f"{QA}/7B3_golden.json", make_golden_question("b", "list", [["two"]]))
    assert_refused(tmp_path, "factoid-7b", "no factoid question 'b'")


def test_missing_golden_answers_leave_no_test_split(tmp_path: Path) -> None:
    write_squad(tmp_path, f"{QA}/BioASQ-test-factoid-7b-1.json", ("It.", make_question("a_000")))
    write_squad(
        tmp_path, f"{QA}/BioASQ-train-factoid-7b-full-annotated.json", ("It is.", make_question("c_004"))
    )
    assert find_files(tmp_path, "factoid-7b").splits == ("train",)
    assert list(load_splits(tmp_path, "factoid-7b")) == ["train"]


def test_yes_no_questions_are_read_with_all_snippets(tmp_path: Path) -> None:
    snippets = ("It is.", "It\nis.")
    questions = (make_golden_question(f"q{number}", "yesno", "yes", *snippets) for number in range(100))
    write_bioasq(tmp_path, "downloads/BioASQ-training7b/trainining7b.json", *questions)
    write_bioasq(
        tmp_path,
        f"{QA}/7B1_golden.json",
        make_golden_question("t1", "yesno", "no"),
        make_golden_question("f", "factoid", [["it"]]),
    )
    write_bioasq(tmp_path, f"{QA}/7B2_golden.json", make_golden_question("t2", "yesno", "yes", "It."))
    records = load_splits(tmp_path, "bioasq-yesno")
    assert [len(records[split]) for split in ("train", "dev", "test")] == [25, 75, 2]
    assert records["test"] == [
        LabelledText("t1", "What of t1?", "no", text_pair="", document_id="12 7"),
        LabelledText("t2", "What of t2?", "yes", text_pair="It.", document_id="12 7"),
    ]
    (first,) = [record for record in (*records["train"], *records["dev"]) if record.id == "q0"]
    assert first == LabelledText("q0", "What of q0?", "yes", text_pair="It is. It\nis.", document_id="12 7")
    assert find_files(tmp_path, "bioasq-yesno").own_splits == {"train", "dev"}
    write_file(tmp_path, "indexing/BioASQ/train_id.tsv", ",".join(f"q{number}" for number in range(2, 100)))
    write_file(tmp_path, "indexing/BioASQ/dev_id.tsv", "q1,q0")
    assert [record.id for record in load_splits(tmp_path, "bioasq-yesno")["dev"]] == ["q1", "q0"]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("maybe", "questions[1].exact_answer should be one of yes, no, but is 'maybe'"),
        (["yes"], "questions[1].exact_answer should be a text, but is a list"),
    ],
)
def test_bad_bioasq_answer_is_refused(tmp_path: Path, answer: object, message: str) -> None:
    path = write_bioasq(
        tmp_path,
        f"{QA}/7B2_golden.json",
        make_golden_question("a", "yesno", "no"),
        make_golden_question("b", "yesno", answer),
    )
    with pytest.raises(BenchmarkFileError) as error:
        load_splits(tmp_path, "bioasq-yesno")
    assert str(error.value).startswith(f"{path}: {message}")


def test_question_in_two_batches_is_refused(tmp_path: Path) -> None:
    for number in (1, 2):
        write_bioasq(tmp_path, f"{QA}/7B{number}_golden.json", make_golden_question("a", "yesno", "no"))
    assert_refused(tmp_path, "bioasq-yesno", "the id 'a' is given twice")


BAD_JSON: dict[str, tuple[str | bytes, str]] = {
    "cut off": ('{"data": [\n{"title": "It",\n', "line 3: it is not JSON"),
    "empty": ("", "line 1: it is not JSON"),
    "no data": ("{}", "its JSON has no 'data'"),
    "no list": ('{"data": 5}', "data should be a list, but is 5"),
    "no context": ('{"data": [{"paragraphs": [{"qas": []}]}]}', "data[0].paragraphs[0] has no 'context'"),
    "null": ('{"data": [{"paragraphs": [null]}]}', "data[0].paragraphs[0] should be an object, but is null"),
    "no id": (
        '{"data": [{"paragraphs": [{"context": "It.", "qas": [{"question": "?"}]}]}]}',
        "data[0].paragraphs[0].qas[0] has no 'id'",
    ),
    "number": (
        format_squad_json(("It.", make_question("q"))).replace('"answers": []', '"answers": [{"text": 3}]'),
        "data[0].paragraphs[0].qas[0].answers[0].text should be a text, but is 3",
    ),
    "start": (
        format_squad_json(("It.", make_question("q", ("It", 0)))).replace(
            '"answer_start": 0', '"answer_start": true'
        ),
        "answers[0].answer_start should be a whole number, but is True",
    ),
    "twice": (
        format_squad_json(("It.", make_question("q")), ("We.", make_question("q"))),
        "the id 'q' is given twice",
    ),
    "latin-1": ('{\n"data": "é"}'.encode("latin-1"), "line 2: it is not UTF-8"),
}


@pytest.mark.parametrize("name", BAD_JSON)
def test_bad_squad_json_is_refused(tmp_path: Path, name: str) -> None:
    content, message = BAD_JSON[name]
    path = write_file(tmp_path, "squad.json", content)
    with pytest.raises(BenchmarkFileError) as error:
        read_squad(path)
    assert str(error.value).startswith(path)
    assert message in str(error.value)
