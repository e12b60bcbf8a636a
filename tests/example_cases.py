"""What the tests of the examples' builders share: cases of the references, invented documents, chances."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import accumulate, pairwise
from math import sqrt
from pathlib import Path
from typing import Any, Final

from bioshards.vocab.examples.rows import ExampleRow, TokenRange

_GOLDEN: Final = Path(__file__).parent / "golden" / "examples"
_FIRST: Final = 2
"""The position of the first document's first token: before it are [CLS] and [SEP]."""


def golden(name: str) -> Any:
    """What was recorded of a reference's own code; "about" in the file says how."""
    return json.loads((_GOLDEN / f"{name}.json").read_text())


def edges(sentences: Sequence[int], first: int = _FIRST) -> list[int]:
    """A document, given how many tokens its sentences have; those without any are left out."""
    return list(accumulate(filter(None, sentences), initial=first))


def pool(documents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Documents one after the other."""
    found: list[list[int]] = []
    for sentences in documents:
        found.append(edges(sentences, found[-1][-1] if found else _FIRST))
    return found


def documents(count: int, seed: int) -> list[list[int]]:
    """Documents of a sentence or more, as many of up to 8 as of more; half of the sentences of 23."""
    source = random.Random(seed)
    return [
        [
            1 + min(int(source.lognormvariate(3.1, 0.6)), 250)
            for _ in range(1 + int(source.expovariate(1 / 11)))
        ]
        for _ in range(count)
    ]


class Scripted:
    """A source of chances that are given one by one: floats for ``random()``, integers for ``randint()``."""

    def __init__(self, *chances: float) -> None:
        self.left = list(chances)

    def random(self) -> float:
        chance = self.left.pop(0)
        assert isinstance(chance, float), f"random() was asked for, randint() expected ({chance})"
        return chance

    def randint(self, a: int, b: int) -> int:
        chance = self.left.pop(0)
        assert isinstance(chance, int), f"randint({a}, {b}) was asked for, random() expected ({chance})"
        assert a <= chance <= b
        return chance


def positions(ranges: Sequence[TokenRange]) -> list[int]:
    """The tokens, one by one."""
    return [token for start, stop in ranges for token in range(start, stop)]


def laid_out(row: ExampleRow) -> list[int]:
    """The tokens of a row as they will stand in ``input_ids``; [CLS] is 0, [SEP] is 1."""
    second = [*positions(row.segment_b), 1] if row.segment_b else []
    return [0, *positions(row.segment_a), 1, *second]


def check_spans(row: ExampleRow, whole: Sequence[Sequence[int]]) -> None:
    """Spans begin where they say, follow one another, and name the sentences of their tokens, no others.

    Args:
        whole: the edges of all documents, by the numbers that spans have for them.
    """
    tokens = laid_out(row)
    starts = [span.start for span in row.spans]
    assert starts[0] == 1
    assert starts == sorted(set(starts))
    for span, (start, stop) in zip(row.spans, pairwise([*starts, len(tokens)]), strict=True):
        text = [token for token in tokens[start:stop] if token >= _FIRST]
        assert text
        assert text[0] == tokens[start]
        bounds = whole[span.document]
        assert bounds[span.first_sentence] <= min(text) < bounds[span.first_sentence + 1]
        assert bounds[span.end_sentence - 1] <= max(text) < bounds[span.end_sentence]


def about(found: int, times: int, chance: float) -> bool:
    """Has what happens with this chance happened as often as it should, within five standard deviations?"""
    return abs(found - times * chance) <= 5 * sqrt(times * chance * (1 - chance))


def like(found: float, recorded: Sequence[float]) -> bool:
    """Is it a figure like those of the reference, within five standard deviations of the difference?

    Args:
        recorded: the mean and the standard deviation of twelve runs.
    """
    mean, deviation = recorded
    return abs(found - mean) <= 5 * deviation * sqrt(1 + 1 / 12)
