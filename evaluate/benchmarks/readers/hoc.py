"""Hallmarks of Cancer (Baker et al. 2016): a file of sentences for each abstract, and one of their labels.

The labels of all sentences are on one line, each sentence's after a ``<``: none, ``NULL``, or classes of a
taxonomy joined by ``AND``, ``Resisting cell death--Apoptosis``, of which the first level counts.  An abstract
has the hallmarks that any of its sentences has (BLURB scores abstracts; LinkBERT's ``process_HOC``).
"""

from __future__ import annotations

import os
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName, RecordsBySplit, Split
from bioshards.evaluate.benchmarks.formats.text_files import read_text
from bioshards.evaluate.benchmarks.record_types import LabelledText, Record

from .split_lists import assign_splits

HALLMARKS: Final = (
    "activating invasion and metastasis",
    "avoiding immune destruction",
    "cellular energetics",
    "enabling replicative immortality",
    "evading growth suppressors",
    "genomic instability and mutation",
    "inducing angiogenesis",
    "resisting cell death",
    "sustaining proliferative signaling",
    "tumor promoting inflammation",
)
SPLIT_SIZES: Final[dict[Split, int]] = {"dev": 186, "test": 371}
_NO_LABEL: Final = ("", "null")


def read_hoc(files: PathsByName) -> RecordsBySplit:
    """All parts from the files of ``text`` and ``labels``, and ``lists`` of which abstract is in which."""
    texts, labels = ({os.path.basename(path): path for path in files[name]} for name in ("text", "labels"))
    if unpaired := sorted(texts.keys() ^ labels.keys()):
        path = texts.get(unpaired[0]) or labels[unpaired[0]]
        raise BenchmarkFileError(path, None, "of text and labels, only one has it")
    abstracts = {name.removesuffix(".txt"): read_abstract(texts[name], labels[name]) for name in texts}
    records_by_split: dict[Split, list[Record]] = {"train": [], "dev": [], "test": []}
    for pmid, split in assign_splits(abstracts, SPLIT_SIZES, files.get("lists", ())).items():
        records_by_split[split].append(abstracts[pmid])
    return records_by_split


def read_abstract(text_path: str, labels_path: str) -> LabelledText:
    """An abstract, its sentences joined by a blank, and its hallmarks.

    Raises:
        BenchmarkFileError: there are more or fewer labels than sentences, or one is no hallmark.
    """
    sentences = [line.strip() for line in read_text(text_path).split("\n") if line.strip()]
    sentence_labels = read_text(labels_path).split("<")[1:]
    if len(sentence_labels) != len(sentences):
        reason = f"labels of {len(sentence_labels)} sentences, and {text_path} has {len(sentences)}"
        raise BenchmarkFileError(labels_path, 1, reason)
    names = {
        label.partition("--")[0].strip().lower()
        for labels in sentence_labels
        for label in labels.split("AND")
    }
    hallmarks = names.difference(_NO_LABEL)
    if unknown := sorted(hallmarks.difference(HALLMARKS)):
        raise BenchmarkFileError(
            labels_path, 1, f"{unknown[0]!r} is none of the hallmarks {', '.join(HALLMARKS)}"
        )
    pmid = os.path.basename(text_path).removesuffix(".txt")
    return LabelledText(pmid, " ".join(sentences), frozenset(hallmarks), document_id=pmid)
