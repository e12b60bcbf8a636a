"""Reference cases, generated documents and scripted random numbers for the tests of row builders."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, Final, Self

from bioshards.vocab.pretraining.objectives import ExampleRow, TokenRange
from tests.support.paths import GOLDEN

_GOLDEN_DIR: Final = GOLDEN / "pretraining"
_FIRST_TOKEN: Final = 2
"""Position of the first document's first token, after [CLS] and [SEP]."""


def load_golden(name: str) -> Any:
    """Load recorded output of a reference implementation; "about" in the file tells how it was recorded."""
    return json.loads((_GOLDEN_DIR / f"{name}.json").read_text())


def sentence_offsets(sentences: Sequence[int], first_token: int = _FIRST_TOKEN) -> list[int]:
    """Return the sentence edges of a document, given the number of tokens of each sentence."""
    return list(accumulate(filter(None, sentences), initial=first_token))


def document_offsets(documents: Sequence[Sequence[int]]) -> list[list[int]]:
    """Return the sentence edges of consecutive documents."""
    offsets: list[list[int]] = []
    for sentences in documents:
        offsets.append(sentence_offsets(sentences, offsets[-1][-1] if offsets else _FIRST_TOKEN))
    return offsets


class ScriptedRandom(random.Random):
    """Random source with given draws: floats for ``random()``, integers for ``randint()``."""

    def __new__(cls, *draws: float) -> Self:
        return super().__new__(cls)

    def __init__(self, *draws: float) -> None:
        super().__init__()
        self.remaining = list(draws)

    def random(self) -> float:
        draw = self.remaining.pop(0)
        assert isinstance(draw, float), f"random() was asked for, randint() expected ({draw})"
        return draw

    def randint(self, a: int, b: int) -> int:
        draw = self.remaining.pop(0)
        assert isinstance(draw, int), f"randint({a}, {b}) was asked for, random() expected ({draw})"
        assert a <= draw <= b
        return draw


def expand_ranges(ranges: Sequence[TokenRange]) -> list[int]:
    """Return the positions of all tokens in ranges."""
    return [token for start, stop in ranges for token in range(start, stop)]


def input_positions(row: ExampleRow) -> list[int]:
    """Return the positions of a row's tokens as in ``input_ids``; [CLS] is 0, [SEP] is 1."""
    second = [*expand_ranges(row.segment_b), 1] if row.segment_b else []
    return [0, *expand_ranges(row.segment_a), 1, *second]
