"""BioASQ 7b (2019): yes/no questions from BioASQ's JSON, factoid questions in SQuAD's format.

BioASQ's JSON holds a question, snippets of abstracts, and the exact answer: ``yes`` or ``no``, or the
accepted spellings of a factoid.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Sequence
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName, RecordsBySplit, Split
from bioshards.evaluate.benchmarks.formats import json_values
from bioshards.evaluate.benchmarks.formats.json_values import JsonValue
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.readers.split_lists import assign_splits
from bioshards.evaluate.benchmarks.readers.split_reader import check_unique_ids
from bioshards.evaluate.benchmarks.readers.squad import read_questions
from bioshards.evaluate.benchmarks.record_types import LabelledText, Question, Record

ANSWERS: Final = ("yes", "no")
DEV_QUESTIONS: Final = 75

_BATCH_NAME = re.compile(r"7b-(\d)\.json$")


def read_yes_no(files: PathsByName) -> RecordsBySplit:
    """Read BLURB's benchmark: ``train`` with ``dev`` taken from it, and the batches of ``test``."""
    records_by_split: dict[Split, list[LabelledText]] = {}
    if "train" in files:
        texts_by_id = {text.id: text for text in _read_yes_no_files(files["train"])}
        records_by_split = {"train": [], "dev": []}
        for question_id, split in assign_splits(
            texts_by_id, {"dev": DEV_QUESTIONS}, files.get("lists", ())
        ).items():
            records_by_split[split].append(texts_by_id[question_id])
    if "test" in files:
        records_by_split["test"] = _read_yes_no_files(files["test"])
    return records_by_split


def _read_yes_no_files(paths: Sequence[str]) -> list[LabelledText]:
    return check_unique_ids(
        paths[0], (_make_text(question) for path in paths for question in _iter_questions(path, "yesno"))
    )


def _iter_questions(path: str, question_type: str) -> Iterator[JsonValue]:
    for question in json_values.read_json(path)["questions"].items():
        if question["type"].as_text() == question_type:
            yield question


def _make_text(question: JsonValue) -> LabelledText:
    """Return a question paired with all of its snippets, joined by blanks, as in BLURB."""
    answer = question["exact_answer"].as_one_of(ANSWERS)
    snippets = " ".join(snippet["text"].as_text() for snippet in question["snippets"].items())
    question_id = question["id"].as_text()
    return LabelledText(
        question_id,
        question["body"].as_text(),
        answer,
        text_pair=snippets,
        document_id=_format_pmids(question),
    )


def _format_pmids(question: JsonValue) -> str:
    """Return the PMIDs at the end of the document URLs, separated by blanks."""
    return " ".join(address.as_text().rpartition("/")[2] for address in question["documents"].items())


def read_factoid(files: PathsByName) -> RecordsBySplit:
    """Read ELECTRAMed's benchmark: questions with one abstract each in SQuAD's JSON, ids ``question_number``.

    Accepted answers of the test batches come from the ``golden`` files; train has its own.
    """
    records_by_split: dict[Split, Sequence[Record]] = {}
    if "train" in files:
        records_by_split["train"] = read_questions(get_only_path(files, "train"), _strip_passage_number)
    if "test" in files and "golden" in files:
        golden_by_id = {
            question["id"].as_text(): question
            for path in files["golden"]
            for question in _iter_questions(path, "factoid")
        }
        records_by_split["test"] = [
            question for path in files["test"] for question in _read_batch(path, golden_by_id)
        ]
    return records_by_split


def _strip_passage_number(name: str) -> str:
    return name.rpartition("_")[0]


def _read_batch(path: str, golden_by_id: dict[str, JsonValue]) -> Iterator[Question]:
    batch_match = _BATCH_NAME.search(os.path.basename(path))
    for question in read_questions(path, _strip_passage_number):
        if question.group_id not in golden_by_id:
            raise BenchmarkFileError(
                path,
                None,
                f"the golden files have no factoid question {question.group_id!r} (id {question.id!r})",
            )
        answer = golden_by_id[question.group_id]
        yield dataclasses.replace(
            question,
            accepted_answers=tuple(_iter_spellings(answer["exact_answer"])),
            test_batch=batch_match[1] if batch_match else "",
            document_id=_format_pmids(answer),
        )


def _iter_spellings(answer: JsonValue) -> Iterator[str]:
    """Yield the spellings of an answer: ``[["one", "another"]]``, or a flat list in some years."""
    for item in answer.items():
        if isinstance(item.value, list):
            yield from (spelling.as_text() for spelling in item.items())
        else:
            yield item.as_text()
