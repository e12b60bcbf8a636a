"""EBM-NLP (Nye et al., 2018): tokens of each abstract, and numbers for them for each of P, I and O.

One tag a word is made of the three as EBM-NLP's own script does (models/lstm-crf/build_data.py) and
BLURB after it: looked at in the order P, I, O, the last that is not zero counts, and a sentence ends
after each token that is a full stop.  SciBERT's files of the same abstracts are of another make (iob.py
reads them): they take the words where two overlap from the larger span (PubMedBERT, section 2.3.2).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from bioshards.evaluate.datasets import BenchmarkFileError, Files, Parts
from bioshards.evaluate.records import Record, Sentence

from .lines import contents, lines, only, shown

ELEMENTS: Final = {"participants": "PAR", "interventions": "INT", "outcomes": "OUT"}
"""Names of the folders in the order in which they are looked at, and BLURB's names in its tags."""
_PMID: Final = re.compile(r"-DOCSTART- \((\d+)\)")

Annotations = Mapping[str, Mapping[str, str]]
"""By element and PMID, the path of a file with a number a token."""


def original(files: Files) -> Parts:
    """The parts from ``tokens``, ``train ELEMENT`` and ``gold ELEMENT``, for each of :data:`ELEMENTS`.

    ``dev`` is SciBERT's file, which says what dev is, as for BLURB.  Without it every fifth abstract
    that is not gold is: as many (960 of 4802), but not the same.

    Raises:
        BenchmarkFileError: a file has not as many numbers as there are tokens, or an abstract has no tokens.
    """
    tokens = _by_pmid(files.get("tokens", ()))
    gold = {element: _by_pmid(files.get(f"gold {element}", ())) for element in ELEMENTS}
    crowd = {element: _by_pmid(files.get(f"train {element}", ())) for element in ELEMENTS}
    test = sorted(set().union(*gold.values()), key=int)
    others = sorted(set().union(*crowd.values()) - set(test), key=int)
    dev = _pmids(only(files, "dev")) if "dev" in files else set(others[4::5])
    return {
        "train": _read(tokens, crowd, (pmid for pmid in others if pmid not in dev)),
        "dev": _read(tokens, crowd, (pmid for pmid in others if pmid in dev)),
        "test": _read(tokens, gold, test),
    }


def _by_pmid(paths: Iterable[str]) -> dict[str, str]:
    """Paths by what stands before the first dot of their names: ``10070173.AGGREGATED.ann``."""
    found = {os.path.basename(path).split(".")[0]: path for path in paths}
    for pmid, path in found.items():
        if not (pmid.isascii() and pmid.isdecimal()):
            raise BenchmarkFileError(path, None, "its name should begin with a PMID and a dot")
    return found


def _pmids(path: str) -> set[str]:
    """The abstracts of a file of SciBERT's."""
    found = {mark.group(1) for _, row in lines(path) if (mark := _PMID.match(row))}
    if not found:
        raise BenchmarkFileError(
            path, None, "it names no abstract: a line for each should be -DOCSTART- (PMID)"
        )
    return found


def _read(tokens: Mapping[str, str], annotations: Annotations, pmids: Iterable[str]) -> list[Record]:
    return [sentence for pmid in pmids for sentence in _abstract(tokens, annotations, pmid)]


def _abstract(tokens: Mapping[str, str], annotations: Annotations, pmid: str) -> Iterator[Sentence]:
    marked = {element: paths[pmid] for element, paths in annotations.items() if pmid in paths}
    if pmid not in tokens:
        raise BenchmarkFileError(next(iter(marked.values())), None, f"there is no {pmid}.tokens for it")
    words = contents(tokens[pmid]).split()
    tags = ["O"] * len(words)
    for element, path in marked.items():
        for place, number in enumerate(_numbers(path, len(words))):
            if number:
                tags[place] = f"I-{ELEMENTS[element]}"
    return _sentences(pmid, words, tags)


def _numbers(path: str, words: int) -> list[int]:
    found = contents(path).split()
    if len(found) != words:
        raise BenchmarkFileError(path, None, f"it has {len(found)} numbers for {words} tokens")
    for number in found:
        if not (number.isascii() and number.isdecimal()):
            raise BenchmarkFileError(
                path, None, f"it should hold a number for each token, not {shown(number)}"
            )
    return [int(number) for number in found]


def _sentences(pmid: str, words: Sequence[str], tags: Sequence[str]) -> Iterator[Sentence]:
    begin = 0
    for end in [*(place + 1 for place, word in enumerate(words) if word == "."), len(words)]:
        if end > begin:
            yield Sentence(f"{pmid}.{begin}", tuple(words[begin:end]), tuple(tags[begin:end]), pmid)
        begin = end
