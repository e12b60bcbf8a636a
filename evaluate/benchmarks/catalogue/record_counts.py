"""Counts that papers publish for text benchmarks: examples, labels, questions, batches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bioshards.evaluate.benchmarks.record_types import LabelledText, Question, Record, Relation

CountFunction = Callable[[Sequence[Record]], Mapping[str, int]]


def count_examples(unit: str, positive_unit: str = "", negative_labels: Sequence[str] = ()) -> CountFunction:
    """Return a function that counts examples, labels and positive examples.

    Args:
        unit: name of the count of all examples.
        positive_unit: name of the count of examples with a positive label; "": none.
        negative_labels: labels that are not positive.
    """

    def count(records: Sequence[Record]) -> Mapping[str, int]:
        labels = Counter(
            record.label
            for record in records
            if isinstance(record, LabelledText | Relation) and isinstance(record.label, str)
        )
        counts = {unit: len(records), **labels}
        if positive_unit:
            counts[positive_unit] = sum(
                label_count for label, label_count in labels.items() if label not in negative_labels
            )
        return counts

    return count


def count_abstracts(records: Sequence[Record]) -> Mapping[str, int]:
    """Count abstracts, and those with a label."""
    return {
        "abstracts": len(records),
        "with a hallmark": sum(isinstance(record, LabelledText) and bool(record.label) for record in records),
    }


def count_candidates(records: Sequence[Record]) -> Mapping[str, int]:
    """Count candidate answers, questions and right candidates."""
    texts = [text for text in records if isinstance(text, LabelledText)]
    return {
        "candidates": len(texts),
        "questions": len({text.group_id for text in texts}),
        "right candidates": sum(text.label == "1" for text in texts),
    }


def count_questions(records: Sequence[Record]) -> Mapping[str, int]:
    """Count pairs of question and passage, and distinct questions, in all and by test batch."""
    question_records = [question for question in records if isinstance(question, Question)]
    counts = {
        "pairs": len(question_records),
        "questions": len({question.question for question in question_records}),
    }
    for batch in sorted({question.test_batch for question in question_records} - {""}):
        batch_questions = [question for question in question_records if question.test_batch == batch]
        counts[f"pairs of batch {batch}"] = len(batch_questions)
        counts[f"questions of batch {batch}"] = len({question.question for question in batch_questions})
    return counts


def counts_by_split(
    train: int | None = None, dev: int | None = None, test: int | None = None
) -> dict[str, int]:
    """Return the counts of the splits that have one."""
    counts = {"train": train, "dev": dev, "test": test}
    return {split: split_count for split, split_count in counts.items() if split_count is not None}
