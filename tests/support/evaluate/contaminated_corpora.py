"""Synthetic benchmarks and corpora with known overlap, and n-grams by brute force."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.catalogue import Benchmark, FileLayout
from bioshards.evaluate.benchmarks.formats import PathsByName
from bioshards.evaluate.benchmarks.records import LabelledText, Record, RecordsBySplit, Split
from bioshards.evaluate.contamination.check import check_contamination
from tests.support.corpus.synthetic_documents import make_document, write_document_dir

NGrams = list[tuple[str, ...]]


def random_prose(seed: object, word_count: int) -> str:
    """Generate words in an order that is unique to the seed."""
    rng = random.Random(f"{seed}")
    return " ".join("".join(rng.choices("abcdefghijklmnop", k=rng.randint(2, 14))) for _ in range(word_count))


def ngrams_by_brute_force(text: str) -> NGrams:
    """List all 13-grams of a text by a regular expression."""
    words = [word.lower() for word in re.findall("[A-Za-z0-9]+", text)]
    return [tuple(words[start : start + 13]) for start in range(len(words) - 12)]


def make_text(id_: str, words: str, pair: str | None = None, document: str = "") -> LabelledText:
    return LabelledText(id_, words, "yes", pair, document)


def count_records(records: Sequence[Record]) -> dict[str, int]:
    """Count the records of a split."""
    return {"records": len(records)}


def make_dataset(name: str, parts: Mapping[Split, Sequence[Record]], pmids: bool = False) -> Benchmark:
    """Make a benchmark that is located by a file of its name."""

    def read(files: PathsByName) -> RecordsBySplit:
        return {part: list(records) for part, records in parts.items()}

    layout = FileLayout({"all": name}, dict.fromkeys(parts, ("all",)), read)
    return Benchmark(name, name.title(), (layout,), {}, count_records, "us", "none", "here", pmids)


def write_benchmark_dir(folder: Path, *sets: Benchmark) -> Path:
    """Write a folder with the files of benchmarks."""
    folder.mkdir(exist_ok=True)
    for dataset in sets:
        (folder / dataset.name).touch()
    return folder


def write_corpus(
    folder: Path, texts: Mapping[str, Sequence[str]], pmids: Mapping[str, int] | None = None, **options: Any
) -> Path:
    """Write a finished directory of documents by id, given their sentences; three in a shard.

    Args:
        pmids: of articles; an abstract's is in its id.
    """
    documents = [make_document(id_, sentences, (pmids or {}).get(id_)) for id_, sentences in texts.items()]
    shards = {f"s{start:03}": documents[start : start + 3] for start in range(0, max(1, len(documents)), 3)}
    return write_document_dir(folder, shards, **{"batch_size": 2, **options})


def run_contamination_check(
    data: Path, corpora: Sequence[Path], out: Path, *sets: Benchmark, **options: Any
) -> str:
    """Check corpora for benchmarks, in this process by default."""
    arguments = {"workers": 1, "splits": ["test"], "progress": Progress(None), **options}
    return check_contamination(
        str(data), list(map(str, corpora)), str(out), known_benchmarks=sets, **arguments
    )


def check_texts(
    folder: Path, benchmark: Benchmark, texts: Mapping[str, Sequence[str]], **options: Any
) -> str:
    """Check documents for a benchmark, with all files below a folder and the report in ``out``."""
    data, corpus = write_benchmark_dir(folder / "data", benchmark), write_corpus(folder / "pubmed", texts)
    return run_contamination_check(data, [corpus], folder / "out", benchmark, **options)


def read_tsv(path: Path) -> list[dict[str, str]]:
    """Read the rows of a TSV file by column name."""
    header, *lines = path.read_text().splitlines()
    return [dict(zip(header.split("\t"), line.split("\t"), strict=True)) for line in lines]


def read_excluded_ids(out: Path) -> list[str]:
    """Read the ids of the exclusion list."""
    return [line for line in (out / "exclude-ids.txt").read_text().splitlines() if not line.startswith("#")]
