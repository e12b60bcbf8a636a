"""Runs of the contamination check: workers, interrupts, and the errors for bad corpora and benchmarks."""

from __future__ import annotations

import multiprocessing
import os
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from bioshards.corpus.lifecycle import id_lists
from bioshards.corpus.manifest import write_manifest
from bioshards.corpus.shards.document_shards import DamagedShardError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import ProgressBar
from bioshards.evaluate.benchmarks.catalogue import Benchmark
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, BenchmarkNotFoundError
from bioshards.evaluate.contamination import corpus_scan
from bioshards.evaluate.contamination.corpus_scan import CorpusError
from tests.support.corpus.damaged_shards import delete_shard, flip_bit_of_page, truncate_shard
from tests.support.corpus.manifests import of_words
from tests.support.evaluate.contaminated_corpora import (
    check_texts,
    make_dataset,
    make_text,
    random_prose,
    read_excluded_ids,
    run_contamination_check,
    write_benchmark_dir,
    write_corpus,
)


@pytest.fixture
def benchmark() -> Benchmark:
    test = [make_text(str(number), random_prose(number, 30), document=str(number)) for number in range(1, 15)]
    return make_dataset(
        "set", {"test": test, "train": [make_text("train", random_prose("train", 20))]}, pmids=True
    )


@pytest.fixture
def abstracts(tmp_path: Path) -> Path:
    """Abstracts 10 to 24, of which five have the PMID of an example and one also its text.

    Abstract 30 has the text of another example.
    """
    texts = {
        f"pubmed:{pmid}": [f"Title {pmid}", random_prose(pmid, 30 if pmid == 12 else 25 + pmid)]
        for pmid in range(10, 25)
    }
    return write_corpus(tmp_path / "pubmed", texts | {"pubmed:30": [random_prose(3, 60)]})


@pytest.fixture
def check(tmp_path: Path, benchmark: Benchmark, abstracts: Path) -> Callable[..., str]:
    """Check the abstracts for the benchmark; return what is printed."""
    data = write_benchmark_dir(tmp_path / "data", benchmark)

    def run(out: str = "out", corpora: Sequence[Path] = (abstracts,), **options: Any) -> str:
        return run_contamination_check(data, corpora, tmp_path / out, benchmark, **options)

    return run


def read_output_files(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


OUTPUT_FILES = ["documents.tsv", "examples.tsv", "exclude-ids.txt", "report.html", "report.json"]


def test_worker_count_does_not_change_the_output(check: Callable[..., str], tmp_path: Path) -> None:
    outputs = [check(f"out{workers}", workers=workers) for workers in (1, 2)]
    first, second = (read_output_files(tmp_path / f"out{workers}") for workers in (1, 2))
    assert first == second
    assert list(first) == OUTPUT_FILES
    assert outputs[0].replace("out1", "out2") == outputs[1]
    assert read_excluded_ids(tmp_path / "out1") == [
        *(f"pubmed:{number}" for number in range(10, 15)),
        "pubmed:30",
    ]


def test_exclusion_list_is_accepted_by_the_pipelines(
    check: Callable[..., str], abstracts: Path, tmp_path: Path
) -> None:
    articles = {"pmc:PMC7.2": [random_prose(4, 30)], "doi:10.5555/ab": [random_prose(5, 30)]}
    article_corpus = write_corpus(tmp_path / "pmc", articles, pipeline="pmc_to_shards")
    check(corpora=[abstracts, article_corpus])
    with open(tmp_path / "out/exclude-ids.txt", "rb") as file:
        ids = id_lists.parse(file, file.name).to_pylist()
    assert ids == sorted([*(str(pmid) for pmid in range(10, 15)), "30", "PMC7", "doi:10.5555/ab"])


@pytest.mark.parametrize("workers", [1, 2])
def test_interrupted_run_starts_over_with_the_same_output(
    check: Callable[..., str], tmp_path: Path, workers: int
) -> None:
    def interrupt(_bar: ProgressBar, _count: int, note: str = "") -> None:
        if note.startswith("2/"):
            raise KeyboardInterrupt

    with mock.patch.object(ProgressBar, "advance", interrupt), pytest.raises(KeyboardInterrupt):
        check(workers=workers)
    assert read_output_files(tmp_path / "out") == {}
    check(workers=workers)
    first = read_output_files(tmp_path / "out")
    check()
    check("whole")
    assert first == read_output_files(tmp_path / "out") == read_output_files(tmp_path / "whole")


def test_dead_worker_fails_the_run(check: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_scan, "_scan_shard", lambda *_: os._exit(9))
    with pytest.raises(CorpusError, match="a lower --workers"):
        check(workers=2)


def test_workers_end_when_the_run_is_killed(check: Callable[..., str], tmp_path: Path) -> None:
    def run_with_sleeping_workers() -> None:
        with pytest.MonkeyPatch.context() as monkeypatch:
            monkeypatch.setattr(corpus_scan, "_scan_shard", lambda *_: time.sleep(100))
            check(workers=2)

    process = multiprocessing.get_context("fork").Process(target=run_with_sleeping_workers)
    process.start()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    workers = wait_until(lambda: pids if len(pids := children.read_text().split()) == 2 else None)
    process.kill()
    process.join()
    assert wait_until(lambda: not any(is_running(worker) for worker in workers or []))
    assert read_output_files(tmp_path / "out") == {}


def wait_until(condition: Callable[[], Any]) -> Any:
    """Poll a condition for ten seconds; return its first true value, or None."""
    for _ in range(100):
        if value := condition():
            return value
        time.sleep(0.1)
    return None


def is_running(pid: str) -> bool:
    """Return True if a process runs; a zombie has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def write_words_manifest(folder: Path) -> None:
    write_manifest(LocalStorage(), f"{folder}/manifest.json", of_words([]))


def make_shard_change(change: Callable[[Path], object]) -> Callable[[Path], None]:
    def change_shard(folder: Path) -> None:
        change(sorted(folder.glob("data/*.parquet"))[0])

    return change_shard


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (shutil.rmtree, "does not exist: it is not a finished output.*--output of a completed run"),
        (
            write_words_manifest,
            "does not hold documents: .* made by shards_to_words. Give the --output of beam run",
        ),
        (make_shard_change(delete_shard), r"parquet is damaged: No such file.*Copy it again, or delete it"),
        (make_shard_change(truncate_shard), r"parquet is damaged: it has .* bytes, and its manifest lists"),
        (make_shard_change(flip_bit_of_page), r"parquet is damaged: its SHA-256 is not"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_bad_corpus_is_refused(
    check: Callable[..., str], abstracts: Path, damage: Callable[[Path], None], message: str, workers: int
) -> None:
    damage(abstracts)
    with pytest.raises((CorpusError, DamagedShardError), match=message) as error:
        check(workers=workers)
    assert str(abstracts) in str(error.value)


def test_missing_benchmarks_are_refused(abstracts: Path, tmp_path: Path, benchmark: Benchmark) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
        run_contamination_check(tmp_path / "nowhere", [abstracts], tmp_path / "out", benchmark)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BenchmarkNotFoundError, match="none of the benchmarks set: give --benchmarks"):
        run_contamination_check(tmp_path / "empty", [abstracts], tmp_path / "out", benchmark)


def test_empty_benchmark_is_refused(tmp_path: Path) -> None:
    empty = make_dataset("set", {"test": []})
    with pytest.raises(BenchmarkFileError, match="it holds nothing for test"):
        check_texts(tmp_path, empty, {})


def test_min_shared_ngrams_below_one_is_refused(check: Callable[..., str]) -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        check(min_shared_ngrams=0)


def test_corpus_without_documents_excludes_nothing(tmp_path: Path, benchmark: Benchmark) -> None:
    output = check_texts(tmp_path, benchmark, {})
    assert "0 documents to exclude" in output
    assert read_excluded_ids(tmp_path / "out") == []
