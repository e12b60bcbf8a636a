"""The benchmarks' examples: the PMIDs of each one's document, and the texts by which it is recognised."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from bioshards.evaluate.benchmarks.definition import (
    Benchmark,
    BenchmarkNotFoundError,
    Split,
    load_records,
    locate_benchmark,
)
from bioshards.evaluate.benchmarks.record_types import Record, record_texts

_ENTITY_PLACEHOLDER: Final = re.compile(r"@[A-Za-z]+(?:-[A-Za-z]+)*\$|BC6(?:ENT[CG]|OTHER)")
"""What stands for an entity in sets that hide them: @GENE$, @CHEM-GENE$ (BLUE, BioBERT); BC6ENTC, BC6ENTG
and BC6OTHER (Bio-ELECTRA's ChemProt).  No article has it: a text ends before it, and another one begins."""
_PMID: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class BenchmarkExample:
    """A record of a set, as far as it matters here.

    Attributes:
        document: as the set calls it; a PMID or several, or something else, or "".
        pmids: where the set's documents are PMIDs.
        texts: the numbers of its texts (Benchmarks.texts), each as often as it stands in it.
    """

    benchmark: str
    split: Split
    id: str
    document_id: str
    pmids: tuple[int, ...]
    text_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkExamples:
    """The examples of all sets that are there, by set, part and as they stand in it.

    Attributes:
        texts: the distinct texts of the examples.
        notes: by set, what its files are not (Located.notes), where there is something to say.
        absent: the names of sets of which nothing is there.
    """

    examples: list[BenchmarkExample]
    texts: list[str]
    notes: dict[str, tuple[str, ...]]
    missing: list[str]


def read_benchmarks(
    benchmarks_dir: str, known_benchmarks: Iterable[Benchmark], progress: Callable[[str], None]
) -> BenchmarkExamples:
    """Read all sets in a folder.

    Raises:
        FileNotFoundError: there is no such folder.
        BenchmarkNotFoundError: none of the sets is in it.
        BenchmarkFileError: a file is not what it must be.
    """
    result = BenchmarkExamples([], [], {}, [])
    id_by_text: dict[str, int] = {}
    for benchmark in known_benchmarks:
        benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
        if benchmark_files is None:
            result.missing.append(benchmark.name)
            continue
        progress(f"reading {benchmark.name}")
        if benchmark_files.notes:
            result.notes[benchmark.name] = benchmark_files.notes
        for split, records in load_records(benchmark_files).items():
            for record in records:
                text_ids = tuple(
                    id_by_text.setdefault(text, len(id_by_text)) for text in _split_texts(record)
                )
                pmids = _parse_pmids(record.document_id) if benchmark.has_pmids else ()
                example = BenchmarkExample(
                    benchmark.name, split, record.id, record.document_id, pmids, text_ids
                )
                result.examples.append(example)
    if not result.examples:
        names = ", ".join(result.missing)
        raise BenchmarkNotFoundError(
            f"{benchmarks_dir} holds none of the sets {names}: give --benchmarks their directory"
        )
    result.texts.extend(id_by_text)
    return result


def _split_texts(record: Record) -> list[str]:
    return [
        text
        for full_text in record_texts(record)
        for text in _ENTITY_PLACEHOLDER.split(full_text)
        if text.strip()
    ]


def _parse_pmids(document_id: str) -> tuple[int, ...]:
    """The PMIDs of a document's name, which may be several (what is put together of two abstracts)."""
    return tuple(int(word) for word in document_id.split() if _PMID.fullmatch(word))
