"""Questions in the JSON of SQuAD v1.1 (Rajpurkar et al. 2016), which BioASQ's participants use too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bioshards.evaluate.benchmarks.formats import json_values
from bioshards.evaluate.benchmarks.readers.split_reader import check_unique_ids
from bioshards.evaluate.benchmarks.record_types import Answer, Question


def read_questions(path: str, group_id_of: Callable[[str], str] = lambda name: name) -> list[Question]:
    """Read the questions of a file, each with one passage.

    Args:
        group_id_of: function from the id of a question with its passage to the id of the question.

    Raises:
        BenchmarkFileError: the file has another form.
    """
    return check_unique_ids(path, _iter_questions(json_values.read_json(path), group_id_of))


def _iter_questions(file: json_values.JsonValue, group_id_of: Callable[[str], str]) -> Iterator[Question]:
    for article in file["data"].items():
        for paragraph in article["paragraphs"].items():
            context = paragraph["context"].as_text()
            for question in paragraph["qas"].items():
                answers = question["answers"].items() if "answers" in question else ()
                passage_id = question["id"].as_text()
                yield Question(
                    id=passage_id,
                    question=question["question"].as_text(),
                    context=context,
                    answers=tuple(_make_answer(answer, context) for answer in answers),
                    group_id=group_id_of(passage_id),
                )


def _make_answer(answer: json_values.JsonValue, context: str) -> Answer:
    """Return an answer; its start is -1 if the context does not have it at ``answer_start``."""
    text, start = answer["text"].as_text(), answer["answer_start"].as_int()
    return Answer(text, start if start >= 0 and context.startswith(text, start) else -1)
