"""JNLPBA (Kim et al. 2004): the shared task's files, and a rebuilt train that includes dev's abstracts.

The task had no dev split. Crichton et al. and BLURB take the end of the training file, after line 465,497
(BLURB's data_generation, preprocessor.py). Document numbers are MEDLINE UIs, not PMIDs.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from bioshards.evaluate.benchmarks.definition import SPLITS, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats import iob
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path, read_lines
from bioshards.evaluate.benchmarks.record_types import TaggedSentence

TRAIN_LINES: Final = 465_497
"""Lines of Genia4ERtask2.iob2 that belong to train; the rest is dev."""
_MIN_SHARED_CHARACTERS: Final = 40
"""Minimum length, without blanks, of a sentence that identifies an abstract; shorter ones may be headings."""


def read_original(files: PathsByName, entity_type: str | None = None) -> RecordsBySplit:
    """Read the shared task's files: ``training`` becomes train and dev, ``test`` stays."""
    training_path = get_only_path(files, "training")
    numbered_lines = read_lines(training_path)
    return {
        "train": list(iob.parse_sentences(training_path, numbered_lines[:TRAIN_LINES], entity_type)),
        "dev": list(iob.parse_sentences(training_path, numbered_lines[TRAIN_LINES:], entity_type)),
        "test": list(iob.read_sentences(get_only_path(files, "test"), entity_type)),
    }


def read_rebuilt(files: PathsByName, entity_type: str | None = None) -> RecordsBySplit:
    """Read ``train`` without the abstracts of dev, ``dev`` and ``test``."""
    sentences_by_split = {
        split: iob.read_sentences(get_only_path(files, split), entity_type) for split in files
    }
    if "train" in sentences_by_split and "dev" in sentences_by_split:
        sentences_by_split["train"] = exclude_shared_documents(
            sentences_by_split["train"], sentences_by_split["dev"]
        )
    return {split: [*sentences_by_split[split]] for split in SPLITS if split in sentences_by_split}


def exclude_shared_documents(
    sentences: Iterable[TaggedSentence], excluded_sentences: Iterable[TaggedSentence]
) -> list[TaggedSentence]:
    """Return the sentences of documents that share no long sentence with ``excluded_sentences``."""
    sentences = list(sentences)
    excluded_texts = {
        text
        for sentence in excluded_sentences
        if len(text := "".join(sentence.words)) >= _MIN_SHARED_CHARACTERS
    }
    shared_documents = {
        sentence.document_id for sentence in sentences if "".join(sentence.words) in excluded_texts
    }
    return [sentence for sentence in sentences if sentence.document_id not in shared_documents]
