"""Questions in the JSON of SQuAD v1.1 (Rajpurkar et al. 2016), in which BioASQ's are distributed, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bioshards.evaluate.benchmarks.formats import json_values
from bioshards.evaluate.benchmarks.record_types import Answer, Question

from .split_reader import check_unique_ids


def read_questions(path: str, group_id_of: Callable[[str], str] = lambda name: name) -> list[Question]:
    """The questions of a file, each with one passage.

    Args:
        group: from the id of a question with its passage to the question's own.

    Raises:
        BenchmarkFileError: no such file.
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
    """An answer; one that does not stand at its ``answer_start`` counts as not in the context."""
    text, start = answer["text"].as_text(), answer["answer_start"].as_int()
    return Answer(text, start if start >= 0 and context.startswith(text, start) else -1)
