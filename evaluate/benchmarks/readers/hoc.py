"""Hallmarks of Cancer (Baker et al. 2016): one file of sentences and one of labels for each abstract.

The label file has one line; each sentence's labels follow a ``<``: none, ``NULL``, or taxonomy classes joined
by ``AND``, such as ``Resisting cell death--Apoptosis``, of which the first level counts. An abstract has the
hallmarks of all its sentences (BLURB scores abstracts; LinkBERT's ``process_HOC``).
"""

from __future__ import annotations

import os
from typing import Final

from bioshards.evaluate.benchmarks.definition import BenchmarkFileError, PathsByName, RecordsBySplit, Split
from bioshards.evaluate.benchmarks.formats.text_files import read_text
from bioshards.evaluate.benchmarks.readers.split_lists import assign_splits
from bioshards.evaluate.benchmarks.record_types import LabelledText, Record

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
    """Read all splits from the files of ``text`` and ``labels``, and the split from ``lists``."""
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
    """Return an abstract, its sentences joined by blanks, with its hallmarks.

    Raises:
        BenchmarkFileError: the number of labels differs from that of sentences, or a label is unknown.
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
