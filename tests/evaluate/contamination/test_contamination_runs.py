"""A run that looks for benchmarks: the same bytes whoever does it, and what is said of wrong inputs."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from bioshards.corpus.lifecycle import exclusion_list as excluding
from bioshards.corpus.manifest import write_manifest
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.evaluate.benchmarks.definition import Benchmark, BenchmarkFileError, BenchmarkNotFoundError
from bioshards.evaluate.contamination import corpus_scan as contamination_corpus
from bioshards.evaluate.contamination.corpus_scan import CorpusError
from tests.support.corpus.manifests import of_words
from tests.support.evaluate.contaminated_corpora import (
    make_dataset,
    make_text,
    random_prose,
    read_excluded_ids,
    run_contamination_check,
    write_benchmark_dir,
    write_corpus,
)


@pytest.fixture
def ours() -> Benchmark:
    test = [make_text(str(at), random_prose(at, 30), document=str(at)) for at in range(1, 15)]
    return make_dataset(
        "set", {"test": test, "train": [make_text("train", random_prose("train", 20))]}, pmids=True
    )


@pytest.fixture
def data(tmp_path: Path, ours: Benchmark) -> Path:
    return write_benchmark_dir(tmp_path / "data", ours)


@pytest.fixture
def abstracts(tmp_path: Path) -> Path:
    """Abstracts 10 to 24, five with an example's PMID and one with its text; and one with another's text."""
    texts = {
        f"pubmed:{at}": [f"Title {at}", random_prose(at, 30 if at == 12 else 25 + at)] for at in range(10, 25)
    }
    return write_corpus(tmp_path / "pubmed", texts | {"pubmed:30": [random_prose(3, 60)]})


def written(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.iterdir())}


FILES = ["documents.tsv", "examples.tsv", "exclude-ids.txt", "report.html", "report.json"]


def test_two_workers_write_what_one_does(
    data: Path, abstracts: Path, tmp_path: Path, ours: Benchmark
) -> None:
    said = [run_contamination_check(data, [abstracts], tmp_path / f"out{n}", ours, workers=n) for n in (1, 2)]
    one, two = (written(tmp_path / f"out{n}") for n in (1, 2))
    assert one == two
    assert list(one) == FILES
    assert said[0].replace("out1", "out2") == said[1]
    assert read_excluded_ids(tmp_path / "out1") == [*(f"pubmed:{at}" for at in range(10, 15)), "pubmed:30"]


def test_the_pipelines_take_the_list(data: Path, abstracts: Path, tmp_path: Path, ours: Benchmark) -> None:
    articles = {"pmc:PMC7.2": [random_prose(4, 30)], "doi:10.5555/ab": [random_prose(5, 30)]}
    full = write_corpus(tmp_path / "pmc", articles, pipeline="pmc_to_shards")
    run_contamination_check(data, [abstracts, full], tmp_path / "out", ours)
    with open(tmp_path / "out/exclude-ids.txt", "rb") as file:
        ids = excluding.parse(file, file.name).to_pylist()
    assert ids == sorted([*(str(at) for at in range(10, 15)), "30", "PMC7", "doi:10.5555/ab"])


@pytest.mark.parametrize("workers", [1, 2])
def test_a_run_that_was_stopped_is_run_again(
    data: Path, abstracts: Path, tmp_path: Path, ours: Benchmark, workers: int
) -> None:
    def stop(line: str) -> None:
        if line.startswith("scanned 2"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_contamination_check(data, [abstracts], tmp_path / "out", ours, progress=stop, workers=workers)
    assert written(tmp_path / "out") == {}
    run_contamination_check(data, [abstracts], tmp_path / "out", ours, workers=workers)
    first = written(tmp_path / "out")
    run_contamination_check(data, [abstracts], tmp_path / "out", ours)
    run_contamination_check(data, [abstracts], tmp_path / "whole", ours)
    assert first == written(tmp_path / "out") == written(tmp_path / "whole")


def test_a_worker_that_dies_is_not_waited_for(
    data: Path, abstracts: Path, tmp_path: Path, ours: Benchmark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contamination_corpus, "_scan_shard", lambda *_: os._exit(9))
    with pytest.raises(CorpusError, match="a lower --workers"):
        run_contamination_check(data, [abstracts], tmp_path / "out", ours, workers=2)


def test_workers_end_when_the_run_is_killed(
    data: Path, abstracts: Path, tmp_path: Path, ours: Benchmark
) -> None:
    def run() -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(contamination_corpus, "_scan_shard", lambda *_: time.sleep(100))
            run_contamination_check(data, [abstracts], tmp_path / "out", ours, workers=2)

    killed = multiprocessing.get_context("fork").Process(target=run)
    killed.start()
    children = Path(f"/proc/{killed.pid}/task/{killed.pid}/children")
    workers = _until(lambda: pids if len(pids := children.read_text().split()) == 2 else None)
    killed.kill()
    killed.join()
    assert _until(lambda: not any(_runs(worker) for worker in workers or []))
    assert written(tmp_path / "out") == {}


def _until(done: Callable[[], Any]) -> Any:
    """What it says at last, within ten seconds."""
    for _ in range(100):
        if found := done():
            return found
        time.sleep(0.1)
    return None


def _runs(pid: str) -> bool:
    """Whether a process runs; one that has ended may wait for somebody to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def no_manifest(folder: Path) -> None:
    (folder / "manifest.json").unlink()


def manifest(**changes: Any) -> Callable[[Path], None]:
    """Change a manifest; ``whole`` is all of it."""

    def change(folder: Path) -> None:
        path = folder / "manifest.json"
        path.write_text(
            changes["whole"] if "whole" in changes else json.dumps(json.loads(path.read_text()) | changes)
        )

    return change


def words_manifest(folder: Path) -> None:
    write_manifest(LocalStorage(), f"{folder}/manifest.json", of_words([]))


def shard(change: Callable[[Path], None]) -> Callable[[Path], None]:
    return lambda folder: change(sorted(folder.glob("*.arrow"))[0])


def _truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _garble(path: Path) -> None:
    path.write_bytes(b"\xff" * path.stat().st_size)


def _without_sentences(path: Path) -> None:
    with pa.ipc.open_stream(path.read_bytes()) as stream:
        table = stream.read_all().drop_columns(["sentences"])
    with pa.ipc.new_stream(str(path), table.schema) as out:
        out.write_table(table)
    listed = path.parent / "manifest.json"
    found = json.loads(listed.read_text())
    for output in found["outputs"]:
        if output["file"] == path.name:
            output["bytes"] = path.stat().st_size
    listed.write_text(json.dumps(found))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (shutil.rmtree, "no manifest.json.*--output of a completed run"),
        (no_manifest, "no manifest.json.*--output of a completed run"),
        (manifest(whole="{"), r"manifest.json cannot be read.*Give --corpus the --output"),
        (manifest(whole="[]"), r"is not of bioshards.*Give --corpus the --output"),
        (manifest(outputs=None), r"manifest.json is not as .*Give --corpus the --output"),
        (words_manifest, "holds no documents, it was made by shards_to_words"),
        (shard(Path.unlink), r"arrow cannot be read .*Delete it and run"),
        (shard(_truncate), r"arrow cannot be read \(it has .* bytes, and its manifest lists"),
        (shard(_garble), r"arrow cannot be read .*Delete it and run"),
        (shard(_without_sentences), "has no column sentences .*Make it anew"),
    ],
)
@pytest.mark.parametrize("workers", [1, 2])
def test_a_corpus_that_is_none_or_damaged_is_refused(
    data: Path,
    abstracts: Path,
    tmp_path: Path,
    ours: Benchmark,
    damage: Callable[[Path], None],
    said: str,
    workers: int,
) -> None:
    damage(abstracts)
    with pytest.raises(CorpusError, match=said) as error:
        run_contamination_check(data, [abstracts], tmp_path / "out", ours, workers=workers)
    assert str(abstracts) in str(error.value)


def test_benchmarks_that_are_not_there_are_asked_for(
    abstracts: Path, tmp_path: Path, ours: Benchmark
) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere"):
        run_contamination_check(tmp_path / "nowhere", [abstracts], tmp_path / "out", ours)
    (tmp_path / "empty").mkdir()
    with pytest.raises(BenchmarkNotFoundError, match="none of the benchmarks set: give --benchmarks"):
        run_contamination_check(tmp_path / "empty", [abstracts], tmp_path / "out", ours)


def test_a_damaged_benchmark_is_not_passed_over(abstracts: Path, tmp_path: Path) -> None:
    empty = make_dataset("set", {"test": []})
    with pytest.raises(BenchmarkFileError, match="it holds nothing for test"):
        run_contamination_check(
            write_benchmark_dir(tmp_path / "data", empty), [abstracts], tmp_path / "out", empty
        )


def test_a_bound_below_one_is_none(data: Path, abstracts: Path, tmp_path: Path, ours: Benchmark) -> None:
    with pytest.raises(ValueError, match="give 1 or more"):
        run_contamination_check(data, [abstracts], tmp_path / "out", ours, min_shared_ngrams=0)


def test_a_corpus_without_a_document_holds_nothing(data: Path, tmp_path: Path, ours: Benchmark) -> None:
    said = run_contamination_check(data, [write_corpus(tmp_path / "pubmed", {})], tmp_path / "out", ours)
    assert "0 documents to exclude" in said
    assert read_excluded_ids(tmp_path / "out") == []
