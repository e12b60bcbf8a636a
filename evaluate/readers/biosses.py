"""BIOSSES (Soğancıoğlu et al. 2017): 100 pairs of sentences, how similar five annotators found them, 0 to 4.

Its authors distribute two Word documents with a table each, BigBIO the same as tab-separated text.  The parts
are those of BLUE, which BLURB took over; the ids are in the code of both (BLURB's ``prepare_biosses_data``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean
from typing import Final

from bioshards.evaluate.datasets import BenchmarkFileError, Files, Parts
from bioshards.evaluate.records import Text

from .docx import table
from .lines import only
from .parts import unique
from .tables import rows

TEST: Final = (59, 96, 70, 22, 81, 38, 57, 23, 33, 89, 69, 49, 7, 71, 97, 25, 83, 64, 52, 20)
DEV: Final = (88, 82, 8, 63, 47, 68, 40, 90, 100, 24, 41, 91, 80, 9, 72, 2)
TRAIN: Final = tuple(sorted({*range(1, 101)}.difference(DEV, TEST)))

_ANNOTATORS: Final = tuple(f"Annotator {letter}" for letter in "ABCDE")
_Pair = tuple[int | None, str, str, str, Sequence[str]]
"""Line, id, two sentences, five scores."""


def from_table(files: Files) -> Parts:
    """All parts from BigBIO's ``table``: id, sentence1, sentence2, scores."""
    path = only(files, "table")
    found = rows(path, ("id", "sentence1", "sentence2", "scores"))
    return _parts(path, ((line, row[0], row[1], row[2], row[3].split(",")) for line, row in found))


def from_documents(files: Files) -> Parts:
    """All parts from the authors' two documents, ``pairs`` and ``scores``."""
    path = only(files, "scores")
    scores = {row[0]: row[1:] for row in table(path, ("Sentence No", *_ANNOTATORS))}
    pairs = table(only(files, "pairs"), ("", "Sentence 1", "Sentence 2"))
    if unscored := [row[0] for row in pairs if row[0] not in scores]:
        raise BenchmarkFileError(path, None, f"it has no scores of pair {unscored[0]!r}")
    return _parts(path, ((None, row[0], row[1], row[2], scores[row[0]]) for row in pairs))


def _parts(path: str, pairs: Iterable[_Pair]) -> Parts:
    texts = {text.id: text for text in unique(path, _texts(path, pairs))}
    if missing := [name for name in range(1, 101) if str(name) not in texts]:
        raise BenchmarkFileError(path, None, f"pair {missing[0]} of 100 is missing")
    return {
        "train": [texts[str(name)] for name in TRAIN],
        "dev": [texts[str(name)] for name in DEV],
        "test": [texts[str(name)] for name in TEST],
    }


def _texts(path: str, pairs: Iterable[_Pair]) -> Iterator[Text]:
    for line, name, first, second, scores in pairs:
        try:
            score = fmean(map(float, scores))
        except ValueError as error:
            raise BenchmarkFileError(
                path, line, f"the scores {scores} of pair {name!r} are no numbers"
            ) from error
        if not 0 <= score <= 4:
            raise BenchmarkFileError(
                path, line, f"the scores {scores} of pair {name!r} are not between 0 and 4"
            )
        yield Text(name, first.strip(), score, pair=second.strip())
