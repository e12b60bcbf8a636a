"""Shared parts of the tagging benchmarks: sources, one file per split, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from bioshards.evaluate.benchmarks.definition import SPLITS, Split, TaskSpec
from bioshards.evaluate.benchmarks.record_types import Record, TaggedSentence

CRICHTON_DOWNLOAD: Final = "https://github.com/cambridgeltl/MTL-Bioinformatics-2016, data/{}"
BLURB_TABLE_SOURCE: Final = "BLURB (Gu et al. 2021, table 3)"
ELECTRAMED_TABLE_SOURCE: Final = "ELECTRAMed (Miolo et al. 2021, table 2)"
ELECTRAMED_NER_DOWNLOAD: Final = "https://github.com/gmpoli/electramed, NER/{}"

ENTITY_TASK: Final = TaskSpec("entities", "entity_f1")
ONE_FILE_PER_SPLIT: Final[Mapping[Split, tuple[str, ...]]] = {split: (split,) for split in SPLITS}
"""Each split is one file of the same name."""


def split_patterns(pattern: str, dev_name: str = "dev") -> dict[str, str]:
    """Return the patterns of three files; the dev file is named ``dev`` or ``devel``."""
    return {"train": pattern.format("train"), "dev": pattern.format(dev_name), "test": pattern.format("test")}


def count_tagged_sentences(records: Sequence[Record]) -> dict[str, int]:
    """Count sentences, mentions (``B-`` tags), labelled words, and documents if the files name them."""
    sentences = [record for record in records if isinstance(record, TaggedSentence)]
    tag_counts = Counter(tag[0] for sentence in sentences for tag in sentence.tags)
    counts = {
        "sentences": len(sentences),
        "mentions": tag_counts["B"],
        "labelled words": tag_counts["B"] + tag_counts["I"],
    }
    document_ids = {sentence.document_id for sentence in sentences} - {""}
    return {**counts, "documents": len(document_ids)} if document_ids else counts
