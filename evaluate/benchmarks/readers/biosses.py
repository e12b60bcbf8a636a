"""BIOSSES (Soğancıoğlu et al. 2017): 100 sentence pairs with similarity scores of five annotators, 0 to 4.

Distributed as two Word documents, or by BigBIO as tab-separated text. The splits are BLUE's and BLURB's;
their ids are in the code of both (BLURB's ``prepare_biosses_data``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats.docx import read_first_table
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.formats.tsv import read_rows
from bioshards.evaluate.benchmarks.readers.split_reader import check_unique_ids
from bioshards.evaluate.benchmarks.record_types import LabelledText

TEST_IDS: Final = (59, 96, 70, 22, 81, 38, 57, 23, 33, 89, 69, 49, 7, 71, 97, 25, 83, 64, 52, 20)
DEV_IDS: Final = (88, 82, 8, 63, 47, 68, 40, 90, 100, 24, 41, 91, 80, 9, 72, 2)
TRAIN_IDS: Final = tuple(sorted({*range(1, 101)}.difference(DEV_IDS, TEST_IDS)))

_ANNOTATORS: Final = tuple(f"Annotator {letter}" for letter in "ABCDE")
_Pair = tuple[int | None, str, str, str, Sequence[str]]
"""Line, id, two sentences, five scores."""


def read_tsv(files: PathsByName) -> RecordsBySplit:
    """Read all splits from BigBIO's ``table``: id, sentence1, sentence2, scores."""
    path = get_only_path(files, "table")
    numbered_rows = read_rows(path, ("id", "sentence1", "sentence2", "scores"))
    return _split_pairs(
        path, ((line, row[0], row[1], row[2], row[3].split(",")) for line, row in numbered_rows)
    )


def read_docx(files: PathsByName) -> RecordsBySplit:
    """Read all splits from the authors' two documents, ``pairs`` and ``scores``."""
    path = get_only_path(files, "scores")
    scores = {row[0]: row[1:] for row in read_first_table(path, ("Sentence No", *_ANNOTATORS))}
    pairs = read_first_table(get_only_path(files, "pairs"), ("", "Sentence 1", "Sentence 2"))
    if unscored := [row[0] for row in pairs if row[0] not in scores]:
        raise BenchmarkFileError(path, None, f"it has no scores of pair {unscored[0]!r}")
    return _split_pairs(path, ((None, row[0], row[1], row[2], scores[row[0]]) for row in pairs))


def _split_pairs(path: str, pairs: Iterable[_Pair]) -> RecordsBySplit:
    texts = {text.id: text for text in check_unique_ids(path, _make_texts(path, pairs))}
    if missing := [pair_id for pair_id in range(1, 101) if str(pair_id) not in texts]:
        raise BenchmarkFileError(path, None, f"pair {missing[0]} of 100 is missing")
    return {
        "train": [texts[str(pair_id)] for pair_id in TRAIN_IDS],
        "dev": [texts[str(pair_id)] for pair_id in DEV_IDS],
        "test": [texts[str(pair_id)] for pair_id in TEST_IDS],
    }


def _make_texts(path: str, pairs: Iterable[_Pair]) -> Iterator[LabelledText]:
    for line, pair_id, first, second, scores in pairs:
        try:
            score = fmean(map(float, scores))
        except ValueError as error:
            raise BenchmarkFileError(
                path, line, f"the scores {scores} of pair {pair_id!r} are no numbers"
            ) from error
        if not 0 <= score <= 4:
            raise BenchmarkFileError(
                path, line, f"the scores {scores} of pair {pair_id!r} are not between 0 and 4"
            )
        yield LabelledText(pair_id, first.strip(), score, text_pair=second.strip())
