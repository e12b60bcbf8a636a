"""PubMedQA's expert-labelled questions (Jin et al. 2019), split as in its authors' split_dataset.py.

The script draws with Python's random generator from seed 0. The 500 test questions are checked against
test_ground_truth.json. Of the ten folds of the others BLURB uses the first (LinkBERT's preprocess_blurb.py).
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats import json_values
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.record_types import LabelledText

ANSWERS: Final = ("yes", "no", "maybe")
_NUM_FOLDS: Final = 10


def read_pubmedqa(files: PathsByName) -> RecordsBySplit:
    """Read all splits from ``questions`` (ori_pqal.json) and ``answers`` (test_ground_truth.json).

    Raises:
        BenchmarkFileError: the files have another form, or their test questions differ from the script's.
    """
    path = get_only_path(files, "questions")
    texts = {pmid: _make_text(pmid, value) for pmid, value in json_values.read_json(path).members().items()}
    answers = json_values.read_json(get_only_path(files, "answers"))
    gold = {pmid: value.as_text() for pmid, value in answers.members().items()}
    try:
        train, dev, test = split_ids({pmid: str(text.label) for pmid, text in texts.items()})
    except IndexError as error:  # of a fold from which to draw
        reason = f"its {len(texts)} questions are too few to be split as split_dataset.py does"
        raise BenchmarkFileError(path, None, reason) from error
    if {pmid: texts[pmid].label for pmid in test} != gold:
        raise answers.make_error(
            f"has other questions or answers than the {len(test)} that split_dataset.py draws"
        )
    return {
        "train": [texts[pmid] for pmid in train],
        "dev": [texts[pmid] for pmid in dev],
        "test": [texts[pmid] for pmid in test],
    }


def _make_text(pmid: str, value: json_values.JsonValue) -> LabelledText:
    """Return a question paired with its abstract without the conclusion (LONG_ANSWER).

    The conclusion contains the answer.
    """
    contexts = " ".join(context.as_text() for context in value["CONTEXTS"].items())
    answer = value["final_decision"].as_one_of(ANSWERS)
    return LabelledText(pmid, value["QUESTION"].as_text(), answer, text_pair=contexts, document_id=pmid)


def split_ids(answers: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """Return the ids of train, dev and test: test is one half, dev a tenth of the other half."""
    rng = random.Random(0)
    train_and_dev, test = _make_folds(answers, 2, rng)
    dev, *train = _make_folds({pmid: answers[pmid] for pmid in train_and_dev}, _NUM_FOLDS, rng)
    return [pmid for fold in train for pmid in fold], dev, test


def _make_folds(answers: Mapping[str, str], num_folds: int, rng: random.Random) -> list[list[str]]:
    """Draw folds with the same mixture of answers.

    Rounding up leaves the last fold short; each other fold then gives it one id.
    """
    fold_ids: list[list[str]] = [[] for _ in range(num_folds)]
    for answer in ANSWERS:
        pmids = [pmid for pmid, given_answer in answers.items() if given_answer == answer]
        rng.shuffle(pmids)
        size = math.ceil(len(pmids) / num_folds)
        for index, fold in enumerate(fold_ids):
            fold += pmids[index * size : (index + 1) * size]
    if len(fold_ids[-1]) != len(fold_ids[0]):
        for fold in fold_ids[:-1]:
            moved_pmid = rng.choice(fold)
            fold.remove(moved_pmid)
            fold_ids[-1].append(moved_pmid)
    return fold_ids
