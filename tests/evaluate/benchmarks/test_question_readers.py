"""Questions to passages in SQuAD's JSON, and BioASQ's own, on a few of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError
from bioshards.evaluate.benchmarks.readers import squad
from bioshards.evaluate.benchmarks.record_types import Answer, LabelledText, Question
from tests.support.evaluate.benchmark_files import find_benchmark_files, load_splits, write_file

QA = "electramed/QA/BioASQ"


def squad_json(*asked: tuple[str, dict[str, Any]]) -> str:
    """SQuAD's JSON of passages with a question each."""
    paragraphs = [{"context": context, "qas": [question]} for context, question in asked]
    return json.dumps({"version": "1.1", "data": [{"title": "It", "paragraphs": paragraphs}]})


def question(name: str, *answers: tuple[str, int]) -> dict[str, Any]:
    marked = [{"text": text, "answer_start": start} for text, start in answers]
    return {"id": name, "question": "What moves?", "answers": marked}


def golden(name: str, kind: str, answer: object, *snippets: str) -> dict[str, Any]:
    return {
        "id": name,
        "type": kind,
        "body": f"What of {name}?",
        "exact_answer": answer,
        "documents": ["http://www.ncbi.nlm.nih.gov/pubmed/12", "http://www.ncbi.nlm.nih.gov/pubmed/7"],
        "snippets": [{"text": snippet} for snippet in snippets],
    }


def batch(*asked: dict[str, Any]) -> str:
    return json.dumps({"questions": asked})


def test_answers_are_where_they_are_said_to_be_or_nowhere(tmp_path: Path) -> None:
    context = "Cells move. Cells rest."
    asked = question("q1", ("Cells", 12), ("move", 0), ("rest.", 99), ("cells", 0), ("Cells", -11))
    write_file(
        tmp_path, "squad/dev-v1.1.json", squad_json((context, asked), ("No.", {"id": "q2", "question": "?"}))
    )
    answers = (Answer("Cells", 12), *(Answer(text, -1) for text in ("move", "rest.", "cells", "Cells")))
    assert load_splits(tmp_path, "squad") == {
        "dev": [
            Question("q1", "What moves?", context, answers, group_id="q1"),
            Question("q2", "?", "No.", (), group_id="q2"),
        ]
    }


def test_the_rebuilt_squad_is_second_choice_and_says_so(tmp_path: Path) -> None:
    write_file(tmp_path, "squad/dev-v1.1-rebuilt.json", squad_json(("It moves.", question("rebuilt"))))
    assert "rebuilt" in " ".join(find_benchmark_files(tmp_path, "squad").notes)
    write_file(tmp_path, "squad/dev-v1.1.json", squad_json(("It moves.", question("original"))))
    assert [one.id for one in load_splits(tmp_path, "squad")["dev"]] == ["original"]


def test_several_passages_of_a_question_are_a_group(tmp_path: Path) -> None:
    passages = (("It.", question("58:1")), ("That.", question("58:2")), ("This.", question("59:1")))
    write_file(tmp_path, "bio_electra/bioasq/dev.json", squad_json(*passages))
    test = load_splits(tmp_path, "factoid-8b")["test"]
    assert [one.group_id for one in test if isinstance(one, Question)] == ["58", "58", "59"]


def test_factoids_accept_the_golden_answers_of_all_batches(tmp_path: Path) -> None:
    write_file(tmp_path, f"{QA}/BioASQ-test-factoid-7b-1.json", squad_json(("It.", question("a_000"))))
    write_file(
        tmp_path,
        f"{QA}/BioASQ-test-factoid-7b-3.json",
        squad_json(("I.", question("b_000")), ("We.", question("b_001"))),
    )
    write_file(
        tmp_path,
        f"{QA}/7B1_golden.json",
        batch(golden("a", "factoid", [["one", "1"]]), golden("x", "summary", 5)),
    )
    write_file(tmp_path, f"{QA}/7B3_golden.json", batch(golden("b", "factoid", ["two"])))
    write_file(
        tmp_path, f"{QA}/BioASQ-train-factoid-7b.json", squad_json(("It is.", question("c_004", ("is", 3))))
    )
    found = load_splits(tmp_path, "factoid-7b")
    assert found["train"] == [Question("c_004", "What moves?", "It is.", (Answer("is", 3),), group_id="c")]
    of = {"document_id": "12 7"}
    assert found["test"] == [
        Question("a_000", "What moves?", "It.", (), "a", ("one", "1"), "1", **of),
        Question("b_000", "What moves?", "I.", (), "b", ("two",), "3", **of),
        Question("b_001", "What moves?", "We.", (), "b", ("two",), "3", **of),
    ]
    write_file(tmp_path, f"{QA}/7B3_golden.json", batch(golden("b", "list", [["two"]])))
    with pytest.raises(BenchmarkFileError, match="no factoid question 'b'"):
        load_splits(tmp_path, "factoid-7b")


def test_without_golden_answers_there_is_no_test(tmp_path: Path) -> None:
    write_file(tmp_path, f"{QA}/BioASQ-test-factoid-7b-1.json", squad_json(("It.", question("a_000"))))
    write_file(
        tmp_path,
        f"{QA}/BioASQ-train-factoid-7b-full-annotated.json",
        squad_json(("It is.", question("c_004"))),
    )
    assert find_benchmark_files(tmp_path, "factoid-7b").splits == ("train",)
    assert list(load_splits(tmp_path, "factoid-7b")) == ["train"]


def test_yes_or_no_is_asked_of_all_snippets(tmp_path: Path) -> None:
    train = batch(*(golden(f"q{number}", "yesno", "yes", "It is.", "It\nis.") for number in range(100)))
    write_file(tmp_path, "downloads/BioASQ-training7b/trainining7b.json", train)
    write_file(
        tmp_path,
        f"{QA}/7B1_golden.json",
        batch(golden("t1", "yesno", "no"), golden("f", "factoid", [["it"]])),
    )
    write_file(tmp_path, f"{QA}/7B2_golden.json", batch(golden("t2", "yesno", "yes", "It.")))
    found = load_splits(tmp_path, "bioasq-yesno")
    assert [len(found[part]) for part in ("train", "dev", "test")] == [25, 75, 2]
    assert found["test"] == [
        LabelledText("t1", "What of t1?", "no", text_pair="", document_id="12 7"),
        LabelledText("t2", "What of t2?", "yes", text_pair="It.", document_id="12 7"),
    ]
    (first,) = [one for one in (*found["train"], *found["dev"]) if one.id == "q0"]
    assert first == LabelledText("q0", "What of q0?", "yes", text_pair="It is. It\nis.", document_id="12 7")
    assert find_benchmark_files(tmp_path, "bioasq-yesno").own_splits == {"train", "dev"}
    write_file(tmp_path, "indexing/BioASQ/train_id.tsv", ",".join(f"q{number}" for number in range(2, 100)))
    write_file(tmp_path, "indexing/BioASQ/dev_id.tsv", "q1,q0")
    assert [one.id for one in load_splits(tmp_path, "bioasq-yesno")["dev"]] == ["q1", "q0"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("maybe", "questions[1].exact_answer should be one of yes, no, but is 'maybe'"),
        (["yes"], "questions[1].exact_answer should be a text, but is a list"),
    ],
)
def test_errors_of_bioasq_name_the_place(tmp_path: Path, answer: object, why: str) -> None:
    path = write_file(
        tmp_path, f"{QA}/7B2_golden.json", batch(golden("a", "yesno", "no"), golden("b", "yesno", answer))
    )
    with pytest.raises(BenchmarkFileError) as error:
        load_splits(tmp_path, "bioasq-yesno")
    assert str(error.value).startswith(f"{path}: {why}")


def test_a_question_of_two_batches_is_refused(tmp_path: Path) -> None:
    for number in (1, 2):
        write_file(tmp_path, f"{QA}/7B{number}_golden.json", batch(golden("a", "yesno", "no")))
    with pytest.raises(BenchmarkFileError, match="the id 'a' is given twice"):
        load_splits(tmp_path, "bioasq-yesno")


WRONG: dict[str, tuple[str | bytes, str]] = {
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
        squad_json(("It.", question("q"))).replace('"answers": []', '"answers": [{"text": 3}]'),
        "data[0].paragraphs[0].qas[0].answers[0].text should be a text, but is 3",
    ),
    "start": (
        squad_json(("It.", question("q", ("It", 0)))).replace('"answer_start": 0', '"answer_start": true'),
        "answers[0].answer_start should be a whole number, but is True",
    ),
    "twice": (squad_json(("It.", question("q")), ("We.", question("q"))), "the id 'q' is given twice"),
    "latin-1": ('{\n"data": "é"}'.encode("latin-1"), "line 2: it is not UTF-8"),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_of_squad_name_the_place(tmp_path: Path, name: str) -> None:
    content, why = WRONG[name]
    path = write_file(tmp_path, "squad.json", content)
    with pytest.raises(BenchmarkFileError) as error:
        squad.read_questions(path)
    assert str(error.value).startswith(path)
    assert why in str(error.value)
