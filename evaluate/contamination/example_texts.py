"""Texts and PMIDs of the examples of all benchmarks in a directory."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.definition import (
    Benchmark,
    BenchmarkNotFoundError,
    Split,
    load_records,
    locate_benchmark,
)
from bioshards.evaluate.benchmarks.record_types import Record, record_texts

_ENTITY_PLACEHOLDER: Final = re.compile(r"@[A-Za-z]+(?:-[A-Za-z]+)*\$|BC6(?:ENT[CG]|OTHER)")
"""Entity placeholders, which articles do not contain; texts are split there.

@GENE$, @CHEM-GENE$ (BLUE, BioBERT); BC6ENTC, BC6ENTG, BC6OTHER (Bio-ELECTRA's ChemProt).
"""
_PMID: Final = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class BenchmarkExample:
    """An example of a benchmark.

    Attributes:
        document_id: document in the benchmark's files; "" if unknown.
        pmids: PMIDs of the document, if the benchmark has PMIDs.
        text_ids: indices of its texts in ``BenchmarkExamples.texts``, with repetitions.
    """

    benchmark: str
    split: Split
    id: str
    document_id: str
    pmids: tuple[int, ...]
    text_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class BenchmarkExamples:
    """Examples of all benchmarks found, by benchmark, split and position.

    Attributes:
        texts: distinct texts of the examples.
        notes: notes on the files, by benchmark.
        missing: names of benchmarks without files.
    """

    examples: list[BenchmarkExample]
    texts: list[str]
    notes: dict[str, tuple[str, ...]]
    missing: list[str]


def read_benchmarks(
    benchmarks_dir: str, known_benchmarks: Collection[Benchmark], progress: Progress
) -> BenchmarkExamples:
    """Read all benchmarks in a directory.

    Raises:
        InputNotFoundError: the directory does not exist.
        BenchmarkNotFoundError: it has none of the benchmarks.
        BenchmarkFileError: a file is damaged.
    """
    result = BenchmarkExamples([], [], {}, [])
    id_by_text: dict[str, int] = {}
    with progress.bar("reading benchmarks", len(known_benchmarks), " benchmarks") as bar:
        for benchmark in bar.each(known_benchmarks):
            benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
            if benchmark_files is None:
                result.missing.append(benchmark.name)
                continue
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
            f"{benchmarks_dir} has none of the benchmarks {names}: give --benchmarks their directory"
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
    """Return the PMIDs in a document id, which may list several."""
    return tuple(int(word) for word in document_id.split() if _PMID.fullmatch(word))
