"""PubMedQA's questions with experts' answers (Jin et al. 2019), split as its authors' split_dataset.py does.

The script draws with Python's generator from seed 0, so its split can be drawn again: the 500 for testing are
those whose answers are in test_ground_truth.json, in the same order.  Of its ten folds of the others, BLURB
takes the first (LinkBERT's preprocess_blurb.py).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Final

from bioshards.evaluate.datasets import BenchmarkFileError, Files, Parts
from bioshards.evaluate.records import Text

from . import json_values
from .lines import only

ANSWERS: Final = ("yes", "no", "maybe")
_FOLDS: Final = 10


def read(files: Files) -> Parts:
    """All parts from ``questions`` (ori_pqal.json) and ``answers`` (test_ground_truth.json).

    Raises:
        BenchmarkFileError: not such files, or others than the script's are to be tested.
    """
    path = only(files, "questions")
    texts = {pmid: _text(pmid, value) for pmid, value in json_values.read(path).members().items()}
    answers = json_values.read(only(files, "answers"))
    gold = {pmid: value.text() for pmid, value in answers.members().items()}
    try:
        train, dev, test = split({pmid: str(text.label) for pmid, text in texts.items()})
    except IndexError as error:  # of a fold from which to draw
        why = f"its {len(texts)} questions are too few to be split as split_dataset.py does"
        raise BenchmarkFileError(path, None, why) from error
    if {pmid: texts[pmid].label for pmid in test} != gold:
        raise answers.wrong(
            f"has other questions or answers than the {len(test)} that split_dataset.py draws"
        )
    return {
        "train": [texts[pmid] for pmid in train],
        "dev": [texts[pmid] for pmid in dev],
        "test": [texts[pmid] for pmid in test],
    }


def _text(pmid: str, value: json_values.Value) -> Text:
    """A question with its abstract but the conclusion (LONG_ANSWER), which gives the answer away."""
    contexts = " ".join(context.text() for context in value["CONTEXTS"].items())
    answer = value["final_decision"].one_of(ANSWERS)
    return Text(pmid, value["QUESTION"].text(), answer, pair=contexts, document=pmid)


def split(answers: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """The ids of train, dev and test, from the answer to each: test is one half, dev a tenth of the other."""
    draws = random.Random(0)
    others, test = _folds(answers, 2, draws)
    dev, *train = _folds({pmid: answers[pmid] for pmid in others}, _FOLDS, draws)
    return [pmid for fold in train for pmid in fold], dev, test


def _folds(answers: Mapping[str, str], folds: int, draws: random.Random) -> list[list[str]]:
    """As many folds, the same mixture of answers in each.

    Rounding up leaves the last one short: then each of the others gives it one of theirs.
    """
    found: list[list[str]] = [[] for _ in range(folds)]
    for answer in ANSWERS:
        pmids = [pmid for pmid, its in answers.items() if its == answer]
        draws.shuffle(pmids)
        size = math.ceil(len(pmids) / folds)
        for index, fold in enumerate(found):
            fold += pmids[index * size : (index + 1) * size]
    if len(found[-1]) != len(found[0]):
        for fold in found[:-1]:
            picked = draws.choice(fold)
            fold.remove(picked)
            found[-1].append(picked)
    return found
