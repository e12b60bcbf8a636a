"""What papers count in sets of texts: examples, those of each label, questions, and questions of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from bioshards.evaluate.records import Question, Record, Relation, Text

Count = Callable[[Sequence[Record]], Mapping[str, int]]


def examples(unit: str, positive: str = "", negatives: Sequence[str] = ()) -> Count:
    """Counts examples as ``unit``, each label, and as ``positive`` all whose label is no negative one."""

    def count(records: Sequence[Record]) -> Mapping[str, int]:
        labels = Counter(
            one.label for one in records if isinstance(one, Text | Relation) and isinstance(one.label, str)
        )
        found = {unit: len(records), **labels}
        if positive:
            found[positive] = sum(number for label, number in labels.items() if label not in negatives)
        return found

    return count


def abstracts(records: Sequence[Record]) -> Mapping[str, int]:
    """Abstracts, and those that have a label."""
    return {
        "abstracts": len(records),
        "with a hallmark": sum(isinstance(one, Text) and bool(one.label) for one in records),
    }


def candidates(records: Sequence[Record]) -> Mapping[str, int]:
    """Answers to rank, the questions that they are answers to, and the right ones among them."""
    texts = [one for one in records if isinstance(one, Text)]
    return {
        "candidates": len(texts),
        "questions": len({one.group for one in texts}),
        "right candidates": sum(one.label == "1" for one in texts),
    }


def questions(records: Sequence[Record]) -> Mapping[str, int]:
    """Questions with a passage (pairs), and different questions; of batches, each batch's, too."""
    asked = [one for one in records if isinstance(one, Question)]
    found = {"pairs": len(asked), "questions": len({one.question for one in asked})}
    for batch in sorted({one.batch for one in asked} - {""}):
        its = [one for one in asked if one.batch == batch]
        found[f"pairs of batch {batch}"] = len(its)
        found[f"questions of batch {batch}"] = len({one.question for one in its})
    return found


def by_parts(train: int | None = None, dev: int | None = None, test: int | None = None) -> dict[str, int]:
    """Numbers of the parts that have one."""
    numbers = {"train": train, "dev": dev, "test": test}
    return {part: number for part, number in numbers.items() if number is not None}
