"""The benchmarks' examples: the PMIDs of each one's document, and the texts by which it is recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from bioshards.evaluate.datasets import BenchmarkNotFoundError, DataSet, Part, load, locate
from bioshards.evaluate.records import Record, texts_of

_DUMMY: Final = re.compile(r"@[A-Za-z]+(?:-[A-Za-z]+)*\$|BC6(?:ENT[CG]|OTHER)")
"""What stands for an entity in sets that hide them: @GENE$, @CHEM-GENE$ (BLUE, BioBERT); BC6ENTC, BC6ENTG
and BC6OTHER (Bio-ELECTRA's ChemProt).  No article has it: a text ends before it, and another one begins."""
_PMID: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class Example:
    """A record of a set, as far as it matters here.

    Attributes:
        document: as the set calls it; a PMID or several, or something else, or "".
        pmids: where the set's documents are PMIDs.
        texts: the numbers of its texts (Benchmarks.texts), each as often as it stands in it.
    """

    set: str
    part: Part
    id: str
    document: str
    pmids: tuple[int, ...]
    texts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Benchmarks:
    """The examples of all sets that are there, by set, part and as they stand in it.

    Attributes:
        texts: the distinct texts of the examples.
        notes: by set, what its files are not (Located.notes), where there is something to say.
        absent: the names of sets of which nothing is there.
    """

    examples: list[Example]
    texts: list[str]
    notes: dict[str, tuple[str, ...]]
    absent: list[str]


def read(data: str, sets: Iterable[DataSet], say: Callable[[str], None]) -> Benchmarks:
    """Read all sets in a folder.

    Raises:
        FileNotFoundError: there is no such folder.
        BenchmarkNotFoundError: none of the sets is in it.
        BenchmarkFileError: a file is not what it must be.
    """
    found = Benchmarks([], [], {}, [])
    numbers: dict[str, int] = {}
    for dataset in sets:
        located = locate(data, dataset)
        if located is None:
            found.absent.append(dataset.name)
            continue
        say(f"reading {dataset.name}")
        if located.notes:
            found.notes[dataset.name] = located.notes
        for part, records in load(located).items():
            for record in records:
                texts = tuple(numbers.setdefault(text, len(numbers)) for text in _texts(record))
                pmids = _pmids(record.document) if dataset.pmids else ()
                example = Example(dataset.name, part, record.id, record.document, pmids, texts)
                found.examples.append(example)
    if not found.examples:
        names = ", ".join(found.absent)
        raise BenchmarkNotFoundError(
            f"{data} holds none of the sets {names}: give --data the folder of the benchmarks"
        )
    found.texts.extend(numbers)
    return found


def _texts(record: Record) -> list[str]:
    return [text for whole in texts_of(record) for text in _DUMMY.split(whole) if text.strip()]


def _pmids(document: str) -> tuple[int, ...]:
    """The PMIDs of a document's name, which may be several (what is put together of two abstracts)."""
    return tuple(int(one) for one in document.split() if _PMID.fullmatch(one))
