"""Record types that all readers return: tagged sentences, texts, relations, questions.

A record holds the authors' text, unchanged and untruncated. Tokenization and truncation happen in tasks/.
"""

from __future__ import annotations

from dataclasses import dataclass

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
