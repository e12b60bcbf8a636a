"""Write the texts of the benchmarks as a model reads them (``evaluate texts``), for other programs."""

from __future__ import annotations

import json
from collections.abc import Collection

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.catalogue import Benchmark, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import BenchmarkNotFoundError, Record, Relation, record_texts
from bioshards.evaluate.tasks.relations import build_relation_input


def write_input_texts(
    benchmarks_dir: str, output: str, known_benchmarks: Collection[Benchmark], progress: Progress
) -> str:
    """Write ``output/NAME.jsonl`` for each benchmark that is found, and return a summary.

    A line is an input: a JSON list of one text or two.  The entities of a relation are placeholders.

    Raises:
        InputNotFoundError: the directory does not exist.
        BenchmarkNotFoundError: it has none of the benchmarks.
        BenchmarkFileError: a file is damaged.
    """
    storage, lines = LocalStorage(), []
    with progress.bar("reading benchmarks", len(known_benchmarks), " benchmarks") as bar:
        for benchmark in bar.each(known_benchmarks):
            benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
            if benchmark.task is None or benchmark_files is None:
                continue
            records = [record for split in load_records(benchmark_files).values() for record in split]
            with storage.write(f"{output}/{benchmark.name}.jsonl") as file:
                for record in records:
                    file.write(f"{json.dumps(list_texts(record), ensure_ascii=False)}\n".encode())
            lines.append(f"{benchmark.name}: {len(records):,} inputs ({', '.join(benchmark_files.splits)})")
    if not lines:
        raise BenchmarkNotFoundError(f"{benchmarks_dir} has no benchmark: give the directory above its files")
    return "\n".join([*lines, f"texts: {output}"])


def list_texts(record: Record) -> tuple[str, ...]:
    """Return the texts of an input as a model reads them."""
    if isinstance(record, Relation):
        return (build_relation_input(record, "placeholders").text,)
    return record_texts(record)
