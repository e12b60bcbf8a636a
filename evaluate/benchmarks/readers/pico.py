"""EBM-NLP (Nye et al. 2018): tokens of each abstract, and one number per token for each of P, I and O.

Each word gets one tag, as in EBM-NLP's script (models/lstm-crf/build_data.py) and in BLURB: in the order P,
I, O the last nonzero label wins, and a sentence ends at each token that is a full stop. SciBERT's files
resolve overlaps differently (PubMedBERT, section 2.3.2); formats/iob.py reads those.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats.text_files import (
    get_only_path,
    quote_excerpt,
    read_lines,
    read_text,
)
from bioshards.evaluate.benchmarks.record_types import Record, TaggedSentence

ELEMENTS: Final = {"participants": "PAR", "interventions": "INT", "outcomes": "OUT"}
"""BLURB's tag of each PICO element, by folder name, in the order of precedence."""
_PMID: Final = re.compile(r"-DOCSTART- \((\d+)\)")

Annotations = Mapping[str, Mapping[str, str]]
"""Path of the label file by element and PMID."""


def read_original(files: PathsByName) -> RecordsBySplit:
    """Read the splits from ``tokens``, ``train ELEMENT`` and ``gold ELEMENT``, for each of :data:`ELEMENTS`.

    ``dev`` is SciBERT's file, which defines the dev split, as in BLURB. Without it every fifth abstract that
    is not gold is dev: the same number (960 of 4,802), but other abstracts.

    Raises:
        BenchmarkFileError: numbers and tokens of an abstract differ in length, or its tokens are missing.
    """
    token_paths = _index_by_pmid(files.get("tokens", ()))
    gold_paths = {element: _index_by_pmid(files.get(f"gold {element}", ())) for element in ELEMENTS}
    crowd_paths = {element: _index_by_pmid(files.get(f"train {element}", ())) for element in ELEMENTS}
    test_pmids = sorted(set().union(*gold_paths.values()), key=int)
    other_pmids = sorted(set().union(*crowd_paths.values()) - set(test_pmids), key=int)
    dev_pmids = _read_pmids(get_only_path(files, "dev")) if "dev" in files else set(other_pmids[4::5])
    return {
        "train": _read_abstracts(
            token_paths, crowd_paths, (pmid for pmid in other_pmids if pmid not in dev_pmids)
        ),
        "dev": _read_abstracts(token_paths, crowd_paths, (pmid for pmid in other_pmids if pmid in dev_pmids)),
        "test": _read_abstracts(token_paths, gold_paths, test_pmids),
    }


def _index_by_pmid(paths: Iterable[str]) -> dict[str, str]:
    """Return paths by PMID, the part of the file name before its first dot: ``10070173.AGGREGATED.ann``."""
    path_by_pmid = {os.path.basename(path).split(".")[0]: path for path in paths}
    for pmid, path in path_by_pmid.items():
        if not (pmid.isascii() and pmid.isdecimal()):
            raise BenchmarkFileError(path, None, "its name should begin with a PMID and a dot")
    return path_by_pmid


def _read_pmids(path: str) -> set[str]:
    """Return the PMIDs of one of SciBERT's files."""
    pmids = {mark.group(1) for _, row in read_lines(path) if (mark := _PMID.match(row))}
    if not pmids:
        raise BenchmarkFileError(
            path, None, "it names no abstract: a line for each should be -DOCSTART- (PMID)"
        )
    return pmids


def _read_abstracts(
    token_paths: Mapping[str, str], annotations: Annotations, pmids: Iterable[str]
) -> list[Record]:
    return [sentence for pmid in pmids for sentence in _read_abstract(token_paths, annotations, pmid)]


def _read_abstract(
    token_paths: Mapping[str, str], annotations: Annotations, pmid: str
) -> Iterator[TaggedSentence]:
    path_by_element = {element: paths[pmid] for element, paths in annotations.items() if pmid in paths}
    if pmid not in token_paths:
        raise BenchmarkFileError(
            next(iter(path_by_element.values())), None, f"there is no {pmid}.tokens for it"
        )
    words = read_text(token_paths[pmid]).split()
    tags = ["O"] * len(words)
    for element, path in path_by_element.items():
        for index, label in enumerate(_read_labels(path, len(words))):
            if label:
                tags[index] = f"I-{ELEMENTS[element]}"
    return _split_sentences(pmid, words, tags)


def _read_labels(path: str, num_words: int) -> list[int]:
    labels = read_text(path).split()
    if len(labels) != num_words:
        raise BenchmarkFileError(path, None, f"it has {len(labels)} numbers for {num_words} tokens")
    for label in labels:
        if not (label.isascii() and label.isdecimal()):
            raise BenchmarkFileError(
                path, None, f"it should hold a number for each token, not {quote_excerpt(label)}"
            )
    return [int(label) for label in labels]


def _split_sentences(pmid: str, words: Sequence[str], tags: Sequence[str]) -> Iterator[TaggedSentence]:
    start = 0
    for end in [*(index + 1 for index, word in enumerate(words) if word == "."), len(words)]:
        if end > start:
            yield TaggedSentence(f"{pmid}.{start}", tuple(words[start:end]), tuple(tags[start:end]), pmid)
        start = end
