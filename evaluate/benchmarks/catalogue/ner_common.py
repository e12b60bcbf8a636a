"""Shared parts of the tagging benchmarks: sources, one file per split, counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bioshards.evaluate.benchmarks.definition import SPLITS, PathsByName, RecordsBySplit, Split, TaskSpec
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.record_types import Record, TaggedSentence

CRICHTON_DOWNLOAD: Final = "https://github.com/cambridgeltl/MTL-Bioinformatics-2016, data/{}"
BLURB_TABLE_SOURCE: Final = "BLURB (Gu et al. 2021, table 3)"
ELECTRAMED_TABLE_SOURCE: Final = "ELECTRAMed (Miolo et al. 2021, table 2)"
ELECTRAMED_NER_DOWNLOAD: Final = "https://github.com/gmpoli/electramed, NER/{}"

ENTITY_TASK: Final = TaskSpec("entities", "entity_f1")
ONE_FILE_PER_SPLIT: Final[Mapping[Split, tuple[str, ...]]] = {part: (part,) for part in SPLITS}
"""Each split is one file of the same name."""


def split_patterns(pattern: str, dev_name: str = "dev") -> dict[str, str]:
    """Return the patterns of three files; the dev file is named ``dev`` or ``devel``."""
    return {"train": pattern.format("train"), "dev": pattern.format(dev_name), "test": pattern.format("test")}


def split_counts(train: int, dev: int, test: int) -> dict[str, int]:
    """Return counts by split."""
    return {"train": train, "dev": dev, "test": test}


def make_split_reader(read: Callable[[str], Sequence[Record]]) -> Callable[[PathsByName], RecordsBySplit]:
    """Return a reader that applies ``read`` to the file of each split."""

    def read_splits(paths: PathsByName) -> RecordsBySplit:
        return {split: list(read(get_only_path(paths, split))) for split in SPLITS if split in paths}

    return read_splits


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
