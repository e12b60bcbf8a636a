"""Questions in the JSON of SQuAD v1.1 (Rajpurkar et al. 2016), in which BioASQ's are distributed, too."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bioshards.evaluate.records import Answer, Question

from . import json_values
from .parts import unique


def questions(path: str, group: Callable[[str], str] = lambda name: name) -> list[Question]:
    """The questions of a file, each with one passage.

    Args:
        group: from the id of a question with its passage to the question's own.

    Raises:
        BenchmarkFileError: no such file.
    """
    return unique(path, _questions(json_values.read(path), group))


def _questions(file: json_values.Value, group: Callable[[str], str]) -> Iterator[Question]:
    for article in file["data"].items():
        for paragraph in article["paragraphs"].items():
            context = paragraph["context"].text()
            for asked in paragraph["qas"].items():
                answers = asked["answers"].items() if "answers" in asked else ()
                name = asked["id"].text()
                yield Question(
                    id=name,
                    question=asked["question"].text(),
                    context=context,
                    answers=tuple(_answer(answer, context) for answer in answers),
                    group=group(name),
                )


def _answer(answer: json_values.Value, context: str) -> Answer:
    """An answer; one that does not stand at its ``answer_start`` counts as not in the context."""
    text, start = answer["text"].text(), answer["answer_start"].number()
    return Answer(text, start if start >= 0 and context.startswith(text, start) else -1)
