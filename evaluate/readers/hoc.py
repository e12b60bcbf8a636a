"""Hallmarks of Cancer (Baker et al. 2016): a file of sentences for each abstract, and one of their labels.

The labels of all sentences are on one line, each sentence's after a ``<``: none, ``NULL``, or classes of a
taxonomy joined by ``AND``, ``Resisting cell death--Apoptosis``, of which the first level counts.  An abstract
has the hallmarks that any of its sentences has (BLURB scores abstracts; LinkBERT's ``process_HOC``).
"""

from __future__ import annotations

import os
from typing import Final

from bioshards.evaluate.datasets import BenchmarkFileError, Files, Part, Parts
from bioshards.evaluate.records import Record, Text

from .lines import contents
from .splits import deal

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
SIZES: Final[dict[Part, int]] = {"dev": 186, "test": 371}
_NONE: Final = ("", "null")


def read(files: Files) -> Parts:
    """All parts from the files of ``text`` and ``labels``, and ``lists`` of which abstract is in which."""
    texts, labels = ({os.path.basename(path): path for path in files[name]} for name in ("text", "labels"))
    if alone := sorted(texts.keys() ^ labels.keys()):
        path = texts.get(alone[0]) or labels[alone[0]]
        raise BenchmarkFileError(path, None, "of text and labels, only one has it")
    abstracts = {name.removesuffix(".txt"): abstract(texts[name], labels[name]) for name in texts}
    parts: dict[Part, list[Record]] = {"train": [], "dev": [], "test": []}
    for pmid, part in deal(abstracts, SIZES, files.get("lists", ())).items():
        parts[part].append(abstracts[pmid])
    return parts


def abstract(text_path: str, labels_path: str) -> Text:
    """An abstract, its sentences joined by a blank, and its hallmarks.

    Raises:
        BenchmarkFileError: there are more or fewer labels than sentences, or one is no hallmark.
    """
    sentences = [line.strip() for line in contents(text_path).split("\n") if line.strip()]
    by_sentence = contents(labels_path).split("<")[1:]
    if len(by_sentence) != len(sentences):
        why = f"labels of {len(by_sentence)} sentences, and {text_path} has {len(sentences)}"
        raise BenchmarkFileError(labels_path, 1, why)
    names = {
        label.partition("--")[0].strip().lower() for labels in by_sentence for label in labels.split("AND")
    }
    hallmarks = names.difference(_NONE)
    if unknown := sorted(hallmarks.difference(HALLMARKS)):
        raise BenchmarkFileError(
            labels_path, 1, f"{unknown[0]!r} is none of the hallmarks {', '.join(HALLMARKS)}"
        )
    pmid = os.path.basename(text_path).removesuffix(".txt")
    return Text(pmid, " ".join(sentences), frozenset(hallmarks), document=pmid)
