"""BioASQ's questions of 2019 (7b): yes/no from its own JSON, factoid in SQuAD's with golden answers.

Its JSON has a question, snippets of abstracts that answer it, and the exact answer: ``yes``, or for a factoid
the spellings that are accepted.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from bioshards.evaluate.datasets import BenchmarkFileError, Files, Part, Parts
from bioshards.evaluate.records import Question, Record, Text

from . import json_values
from .json_values import Value
from .lines import only
from .parts import unique
from .splits import deal
from .squad import questions

ANSWERS: Final = ("yes", "no")
DEV_QUESTIONS: Final = 75

_BATCH = re.compile(r"7b-(\d)\.json$")


def yes_no(files: Files) -> Parts:
    """BLURB's set: ``train`` (the training file), of which ``dev`` is a part, and the batches of ``test``."""
    parts: dict[Part, list[Text]] = {}
    if "train" in files:
        pool = {text.id: text for text in _yes_no(files["train"])}
        parts = {"train": [], "dev": []}
        for name, part in deal(pool, {"dev": DEV_QUESTIONS}, files.get("lists", ())).items():
            parts[part].append(pool[name])
    if "test" in files:
        parts["test"] = _yes_no(files["test"])
    return parts


def _yes_no(paths: Sequence[str]) -> list[Text]:
    return unique(paths[0], (_text(one) for path in paths for one in _asked(path, "yesno")))


def _asked(path: str, kind: str) -> Iterator[Value]:
    for question in json_values.read(path)["questions"].items():
        if question["type"].text() == kind:
            yield question


def _text(question: Value) -> Text:
    """A question with all of its snippets, joined by a blank, as BLURB has it."""
    answer = question["exact_answer"].one_of(ANSWERS)
    snippets = " ".join(snippet["text"].text() for snippet in question["snippets"].items())
    name = question["id"].text()
    return Text(name, question["body"].text(), answer, pair=snippets, document=_pmids(question))


def _pmids(question: Value) -> str:
    """The PMIDs of the abstracts that answer a question, which their addresses end with."""
    return " ".join(address.text().rpartition("/")[2] for address in question["documents"].items())


def factoid(files: Files) -> Parts:
    """ELECTRAMed's set: questions with an abstract each in SQuAD's JSON, ids ``question_number``.

    The answers of the five batches of ``test`` are in the ``golden`` files, those of ``train`` in its own.
    """
    parts: dict[Part, Sequence[Record]] = {}
    if "train" in files:
        parts["train"] = questions(only(files, "train"), _question_id)
    if "test" in files and "golden" in files:
        golden = {one["id"].text(): one for path in files["golden"] for one in _asked(path, "factoid")}
        parts["test"] = [one for path in files["test"] for one in _batch(path, golden)]
    return parts


def _question_id(name: str) -> str:
    return name.rpartition("_")[0]


def _batch(path: str, golden: dict[str, Value]) -> Iterator[Question]:
    number = _BATCH.search(os.path.basename(path))
    for one in questions(path, _question_id):
        if one.group not in golden:
            raise BenchmarkFileError(
                path, None, f"the golden files have no factoid question {one.group!r} (id {one.id!r})"
            )
        answer = golden[one.group]
        yield dataclasses.replace(
            one,
            accepted=tuple(_spellings(answer["exact_answer"])),
            batch=number[1] if number else "",
            document=_pmids(answer),
        )


def _spellings(answer: Value) -> Iterator[str]:
    """The spellings of an answer: ``[["one", "another"]]``, in some years without the inner list."""
    for one in answer.items():
        if isinstance(one.value, list):
            yield from (spelling.text() for spelling in one.items())
        else:
            yield one.text()
