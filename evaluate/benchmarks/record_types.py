"""What every reader gives, whatever the file's format: tagged sentences, texts, relations, questions.

A record holds what its author wrote, unchanged and untruncated: what a model reads of it is for batches.py
to say, and what is measured is always all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

Label = str | float | frozenset[str]
"""A class, a number (similarity), or the classes of a text that may have several or none."""


@dataclass(frozen=True, slots=True)
class TaggedSentence:
    """Words with a tag each.

    Attributes:
        id: unique within its part of the set.
        tags: one a word: ``O``, ``B-Type`` and ``I-Type`` (BIO, also called IOB2); of PICO ``O`` and
            ``I-Type``.
        document: what the file calls the document (a PMID where the set's documents have one), else "".
    """

    id: str
    words: tuple[str, ...]
    tags: tuple[str, ...]
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class LabelledText:
    """A text or two, with a label.

    Attributes:
        pair: the second text, where there are two (question and passage, two sentences).
        group: what the texts are ranked within: a question's id.
    """

    id: str
    text: str
    label: Label
    text_pair: str | None = None
    document_id: str = ""
    group_id: str = ""


@dataclass(frozen=True, slots=True)
class Mention:
    """An entity in a text, from character ``start`` to before ``end``; ``type`` in capitals: ``CHEMICAL``."""

    start: int
    end: int
    type: str


@dataclass(frozen=True, slots=True)
class Relation:
    """Two entities of a text, in the order in which they stand there, and how they are related."""

    id: str
    text: str
    first: Mention
    second: Mention
    label: str
    document_id: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer and the character at which it starts in the context; -1 where it is not in it."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question to one passage.

    Attributes:
        answers: those that annotators marked in this context.
        group: the id of the question; several passages can be asked the same.
        accepted: spellings of the right answer to the question as a whole (BioASQ), wherever they stand.
        batch: which of several test batches it is in, if any.
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


def record_text(record: Record) -> str:
    """All that a record says, labels apart, its parts joined by a blank."""
    return " ".join(record_texts(record))


def record_texts(record: Record) -> tuple[str, ...]:
    """The parts of what a record says, each of them running text: a pair's texts, question and context."""
    match record:
        case TaggedSentence():
            return (" ".join(record.words),)
        case LabelledText():
            return (record.text,) if record.text_pair is None else (record.text, record.text_pair)
        case Relation():
            return (record.text,)
        case Question():
            return (record.question, record.context)
