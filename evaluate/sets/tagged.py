"""What the sets of tagged sentences have in common: sources, and how three files become three parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from bioshards.evaluate.datasets import PARTS, Files, Part, Parts
from bioshards.evaluate.readers.lines import only
from bioshards.evaluate.records import Record, Sentence

CRICHTON: Final = "https://github.com/cambridgeltl/MTL-Bioinformatics-2016, data/{}"
BLURB: Final = "BLURB (Gu et al. 2021, table 3)"
ELECTRAMED: Final = "ELECTRAMed (Miolo et al. 2021, table 2)"
ELECTRAMED_FILES: Final = "https://github.com/gmpoli/electramed, NER/{}"

EACH: Final[Mapping[Part, tuple[str, ...]]] = {part: (part,) for part in PARTS}
"""Every part is one file of the same name."""


def files(pattern: str, dev: str = "dev") -> dict[str, str]:
    """The patterns of three files, of which the development part's is called ``dev`` or ``devel``."""
    return {"train": pattern.format("train"), "dev": pattern.format(dev), "test": pattern.format("test")}


def three(train: int, dev: int, test: int) -> dict[str, int]:
    """Counts by part."""
    return {"train": train, "dev": dev, "test": test}


def reading(read: Callable[[str], Sequence[Record]]) -> Callable[[Files], Parts]:
    """What reads the files ``train``, ``dev`` and ``test``, each with ``read``."""

    def parts(paths: Files) -> Parts:
        return {part: list(read(only(paths, part))) for part in PARTS if part in paths}

    return parts


def sizes(records: Sequence[Record]) -> dict[str, int]:
    """What can be counted in tagged sentences: mentions are tags ``B-``, as the papers count them;
    documents only where the files name them."""
    sentences = [record for record in records if isinstance(record, Sentence)]
    tags = Counter(tag[0] for sentence in sentences for tag in sentence.tags)
    found = {
        "sentences": len(sentences),
        "mentions": tags["B"],
        "labelled words": tags["B"] + tags["I"],
    }
    documents = {sentence.document for sentence in sentences} - {""}
    return {**found, "documents": len(documents)} if documents else found
