"""Tests of how storage calls and job graphs grow with the number of inputs.

Dataflow limits a graph to 10 MB, and each sequential call of an object store takes 20 to 50 milliseconds.
tests/bench/bench_scale.py measures the full corpora.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import to_builtins

from bioshards.corpus.lifecycle import inputs as source_lists
from bioshards.corpus.manifest import PretrainingRun, convert
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards.pretraining_schema import make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import MAX_CONCURRENT_CALLS, parallel_for_each, prefetch_map
from bioshards.corpus.storage.source_file import SourceFile, SourcePart
from bioshards.pipelines import cli, shards, steps
from bioshards.vocab.pretraining import build, pretraining_dir
from bioshards.vocab.pretraining.build import BuildResult, PretrainingJob
from tests.bench.harness import scale_graphs as graphs
from tests.support.corpus.arrow_streams import write_stream
from tests.support.corpus.jats_articles import write_files
from tests.support.corpus.manifests import of_pretraining
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.corpus.shard_jobs import make_shards_job
from tests.support.corpus.small_articles import small_article
from tests.support.hypothesis_profiles import examples
from tests.support.storage_calls import StorageCalls, count_storage_calls
from tests.support.vocab.block_factories import make_word_encoder

FILES = LocalStorage()


class RemoteStorage(LocalStorage):
    """Local files that are treated as remote ones."""

    is_remote = True


REMOTE = RemoteStorage()

# Prefetching


@settings(max_examples=examples(25))
@given(st.lists(st.integers(), max_size=3 * MAX_CONCURRENT_CALLS))
def test_prefetch_map_keeps_the_order_of_items(items: list[int]) -> None:
    assert list(prefetch_map(REMOTE, lambda item: item + 1, items)) == [item + 1 for item in items]


def test_prefetch_map_runs_a_bounded_number_of_calls_at_once() -> None:
    started: list[int] = []
    barrier = threading.Barrier(MAX_CONCURRENT_CALLS, timeout=60)

    def record_and_wait(item: int) -> int:
        started.append(item)
        if item < MAX_CONCURRENT_CALLS:
            barrier.wait()  # passes only if all of them run at once
        return item

    for index, result in enumerate(
        itertools.islice(prefetch_map(REMOTE, record_and_wait, itertools.count()), 3 * MAX_CONCURRENT_CALLS)
    ):
        assert result == index
        assert max(started) <= index + MAX_CONCURRENT_CALLS


def test_error_is_raised_in_order_and_stops_further_calls() -> None:
    started: list[int] = []

    def record_or_fail(item: int) -> int:
        started.append(item)
        if item == 2:
            raise OSError("item 2")
        return item

    results = prefetch_map(REMOTE, record_or_fail, itertools.count())
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(OSError, match="item 2"):
        next(results)
    assert list(results) == []
    assert max(started) < 2 + MAX_CONCURRENT_CALLS
    with pytest.raises(OSError, match="item 2"):
        parallel_for_each(REMOTE, record_or_fail, range(3))


# Storage calls


def count_calls_of_runs(folder: Path, count: int, *options: str) -> tuple[StorageCalls, StorageCalls]:
    """Return the storage calls of a run on ``count`` files, and of its rerun."""
    inputs = folder / f"in-{count}"
    inputs.mkdir()
    for number in range(1, count + 1):
        records = citation_xml(number), citation_xml(1000 + number, "The same. In all."), "<PubmedArticle/>"
        (inputs / f"pubmed26n{number:04d}.xml").write_bytes(pubmed_set_xml(*records))
    arguments = ["--workers", "1", "--input", str(inputs), "--output", str(folder / f"out-{count}"), *options]
    calls_of_runs = []
    for _ in range(2):
        with count_storage_calls() as calls:
            assert cli.main(["run", "pubmed_to_shards", *arguments]) == 0
        calls_of_runs.append(calls)
    return calls_of_runs[0], calls_of_runs[1]


def test_sequential_calls_of_single_steps_do_not_grow_with_files(tmp_path: Path) -> None:
    few, many = (
        count_calls_of_runs(tmp_path, count, "--dedup", "exact", "--max-rejected", "1") for count in (2, 7)
    )
    for step in ("publish", "decide"):
        assert few[0].sequential(step) == many[0].sequential(step) <= 16
        assert few[0].concurrent(step) < many[0].concurrent(step)
    assert few[1].sequential("driver") == many[1].sequential("driver") <= 11, "there is nothing to do"
    # Steps of one file; before each write comes a look at the lock.
    for step, calls_per_file in (("stage", 18), ("finalize", 12)):
        assert few[0].sequential(step) == 2 * calls_per_file
        assert many[0].sequential(step) == 7 * calls_per_file


@pytest.mark.parametrize("count", [3, 40])
def test_leftovers_of_many_shard_groups_are_removed_concurrently(
    tmp_path: Path, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    output_dir = OutputDir(str(tmp_path / "out"))
    for number in range(count):
        FILES.write_json(output_dir.work_path(f"build_reports/old{number}.json"), {})
    splits = {"train": {"rows": 1, "tokens": 5, "input_tokens": 5, "documents": 1}, "validation": {}}
    schema = make_schema(100, False, {})
    rows = pa.record_batch([[[2, 9, 3, 9, 3]], [3]], schema=schema)
    entry = to_builtins(write_stream(tmp_path / "out", "train/data-new-00000.arrow", [rows], schema))
    fields = {"name": "new", "documents": 1, "split_counts": splits, "outputs": [entry]}
    monkeypatch.setitem(build._encoders, "5" * 64, make_word_encoder(tmp_path / "vocabulary"))
    result = convert(fields, BuildResult)
    FILES.write_json(output_dir.work_path("build_reports/new.json"), {})
    job = PretrainingJob(
        storage=FILES,
        output=output_dir,
        config=of_pretraining([]).config,
        inputs=(),
        run=PretrainingRun(command=("test",), inputs=(), vocabulary="nowhere"),
        max_rejected=0,
    )
    with count_storage_calls() as calls:
        done = steps.run_step("publish", pretraining_dir.publish, job, [result])
    assert done.result.problem is None
    assert FILES.list_names(f"{output_dir.work_folder}/build_reports") == ["new.json"]
    assert calls.counts["publish", "remove", True] == count
    assert calls.sequential("driver") == 7


# Job graphs


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphs.write_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.mark.parametrize(
    ("build_graph", "full_count"),
    [
        pytest.param(lambda count: graphs.citations_graph(count // 2, count // 2), 3000, id="files"),
        pytest.param(graphs.articles_graph, 1400, id="ranges"),
        pytest.param(graphs.words_graph, 10_000, id="words"),
    ],
)
def test_job_graph_of_twice_the_full_corpora_is_far_below_the_limit(
    build_graph: Callable[[int], graphs.BuildGraph], full_count: int
) -> None:
    """A twentieth of the graph is built; 150 kB is the constant size of any graph."""
    assert graphs.graph_size(build_graph(2 * full_count // 20)) - 150_000 < graphs.MAX_GRAPH_BYTES / 20


def test_job_graph_is_without_the_vocabulary(vocabulary: Path) -> None:
    size = graphs.graph_size(graphs.pretraining_graph(1000, vocabulary))
    pieces = (vocabulary / "tokenizer.json").stat().st_size
    assert size < 1000 * graphs.MAX_GRAPH_BYTES / 20_000 + 150_000 < pieces


# Source files of many parts


def test_part_lists_are_loaded_as_saved_with_any_file_names(tmp_path: Path) -> None:
    job = make_shards_job(tmp_path)
    part = SourcePart("a?.xml", 'folder/a\udce9"\\\n.xml', 7, "7-1")
    source = SourceFile(0, 0, "articles", "folder/articles", 7, "0123", parts=(part,), num_files=1)
    single_file = replace(source, parts=(), num_files=0, stamp="4567")
    source_lists.save_part_lists(job, [source, single_file])
    without_parts = source_lists.without_parts([source, single_file])
    assert [stored.parts for stored in without_parts] == [(), ()]
    assert [source_lists.load_parts(job, stored) for stored in without_parts] == [source, single_file]
    assert FILES.list_names(f"{job.output.work_folder}/part_lists") == ["0123.json"]


def test_part_lists_of_single_articles_are_updated(tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write_files(folder, {f"PMC{number}.xml": small_article(number) for number in (1, 2, 20_000)})
    arguments = ["run", "pmc_to_shards", "--workers", "1", "--licences", "all", "--languages", ""]
    arguments += ["--input", str(folder), "--output", str(output), "--max-rejected", "1"]
    with mock.patch.object(shards, "create", wraps=steps.create) as create:
        assert cli.main(arguments) == 0
    [sources] = [call.args[2] for call in create.call_args_list if call.args[1] == "sources"]
    assert [item.parts for item in sources] == [(), ()], "they are no part of the graph"
    before = list_part_lists(output)
    assert [len(json.loads(item.read_text())["value"]) for item in before] == [2, 1]
    inputs = json.loads((output / "manifest.json").read_text())["inputs"]
    assert [(item["file"], item["num_files"]) for item in inputs] == [("PMC0000xxxx", 2), ("PMC0002xxxx", 1)]
    write_files(folder, {"PMC3.xml": small_article(3)})
    assert cli.main(arguments) == 0
    after = list_part_lists(output)
    assert [len(json.loads(item.read_text())["value"]) for item in after] == [3, 1]
    assert before[1] == after[1]


def list_part_lists(output: Path) -> list[Path]:
    """Return the paths of the part lists, the largest first."""
    paths = (output / ".bioshards" / "part_lists").iterdir()
    return sorted(paths, key=lambda path: -path.stat().st_size)
