"""Records that all readers return: tagged sentences, texts, relations, questions; and subsets of them.

A record holds the authors' text, unchanged and untruncated. Tokenization and truncation happen in tasks/.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from bioshards.corpus.errors import UserError

Split = Literal["train", "dev", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "dev", "test")
Label = str | float | frozenset[str]
"""A class, a number (similarity), or a set of classes."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words with one tag each.

    Attributes:
        id: unique within the split.
        tags: BIO tags (IOB2): ``O``, ``B-Type``, ``I-Type``; PICO has ``O`` and ``I-Type``.
        document_id: document in the authors' files, a PMID if the benchmark has PMIDs; else "".
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text or a pair of texts with a label.

    Attributes:
        text_pair: second text, such as a passage; None for single texts.
        group_id: id of the question whose candidates are ranked.
    """

    id: str
    text: str
    label: Label
    text_pair: str | None = None
    document_id: str = ""
    group_id: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """Entity at characters ``start`` to ``end`` (exclusive) of a text.

    ``type`` is in capitals, such as ``CHEMICAL``.
    """

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Two entities of a text, in text order, and the label of their relation."""

    id: str
    text: str
    first: Mention
    second: Mention
    label: str
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer text and its first character in the context; -1 if the context does not contain it."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question on one passage.

    Attributes:
        answers: answers that annotators marked in this context.
        group_id: id of the question; several passages may share it.
        accepted_answers: accepted spellings of the answer to the question (BioASQ).
        test_batch: number of the test batch (BioASQ); else "".
    """

    id: str
    question: str
    context: str
    answers: tuple[Answer, ...]
    group_id: str
    accepted_answers: tuple[str, ...] = ()
    test_batch: str = ""
    document_id: str = ""


Record = TaggedSentence | LabelledText | Relation | Question
RecordsBySplit = Mapping[Split, Sequence[Record]]
_RecordT = TypeVar("_RecordT", bound=Record)


def record_texts(record: Record) -> tuple[str, ...]:
    """Return the texts of a record, each of them running text."""
    match record:
        case TaggedSentence():
            return (" ".join(record.words),)
        case LabelledText():
            return (record.text,) if record.text_pair is None else (record.text, record.text_pair)
        case Relation():
            return (record.text,)
        case Question():
            return (record.question, record.context)


class BenchmarkFileError(UserError):
    """A benchmark file has an unexpected content. The message names file, line, cause and remedy."""

    def __init__(self, path: str, line: int | None, reason: str) -> None:
        location = f"{path}, line {line}" if line else path
        super().__init__(f"{location}: {reason}. Put the authors' file there, or take this one away")


class BenchmarkNotFoundError(UserError):
    """A benchmark or one of its splits is missing.

    The message names the file patterns and the download address.
    """


DEV_FRACTION: Final = 0.1
"""Fraction of the training groups that becomes dev if a benchmark has no official dev split."""


def split_off_dev(records: Sequence[_RecordT]) -> tuple[list[_RecordT], list[_RecordT]]:
    """Split training records into (train, dev) by a hash of their groups."""
    groups = _group_records(records)
    dev_groups = set(_sort_by_hash(groups)[: max(1, round(DEV_FRACTION * len(groups)))])
    train_and_dev: tuple[list[_RecordT], list[_RecordT]] = ([], [])
    for name, members in groups.items():
        train_and_dev[name in dev_groups].extend(members)
    return train_and_dev


def sample_records(records: Sequence[_RecordT], max_records: int) -> list[_RecordT]:
    """Return at most ``max_records`` records, as whole groups in their order; at least one group."""
    groups = _group_records(records)
    remaining = max_records
    chosen_groups: set[str] = set()
    for name in _sort_by_hash(groups):
        if len(groups[name]) <= remaining or not chosen_groups:
            chosen_groups.add(name)
            remaining -= len(groups[name])
    return [record for name, members in groups.items() if name in chosen_groups for record in members]


def _group_records(records: Sequence[_RecordT]) -> dict[str, list[_RecordT]]:
    """Group records by their question; records without one are groups of their own."""
    records_by_group: dict[str, list[_RecordT]] = {}
    for record in records:
        records_by_group.setdefault(getattr(record, "group_id", "") or record.id, []).append(record)
    return records_by_group


def _sort_by_hash(names: Iterable[str]) -> list[str]:
    return sorted(names, key=lambda name: hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest())
