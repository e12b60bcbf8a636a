"""At scale: what grows with the number of inputs, counted and not timed.

A graph has a limit (10 MB at Dataflow), and of calls that wait for each other an object store takes 20 to 50
milliseconds each.  tests/bench/bench_scale.py has the figures for the full corpora.
"""

from __future__ import annotations

import itertools
import json
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import part_lists
from bioshards.corpus.manifest import PretrainingRun, encode
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import MAX_CONCURRENT_CALLS, parallel_for_each, prefetch_map
from bioshards.corpus.storage.source_file import SourceFile, SourcePart
from bioshards.pipelines import cli, pmc_to_shards
from bioshards.vocab.pretraining import pretraining_dir
from bioshards.vocab.pretraining.build_result import BuildResult
from tests.bench.harness import scale_graphs as graphs
from tests.support.corpus.manifests import of_pretraining
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.corpus.small_articles import small_article, write_byte_files
from tests.support.storage_calls import StorageCalls, count_storage_calls

PROFILE = settings(derandomize=True, deadline=None, database=None, max_examples=25)
FILES = LocalStorage()


class Far(LocalStorage):
    """Files that are waited for."""

    is_remote = True


FAR = Far()

# Ahead


@PROFILE
@given(st.lists(st.integers(), max_size=3 * MAX_CONCURRENT_CALLS))
def test_results_come_in_the_order_of_the_items(items: list[int]) -> None:
    assert list(prefetch_map(FAR, lambda item: item + 1, items)) == [item + 1 for item in items]


def test_a_few_are_under_way_at_a_time_and_no_more_than_that_wait() -> None:
    begun: list[int] = []
    together = threading.Barrier(MAX_CONCURRENT_CALLS, timeout=10)

    def work(item: int) -> int:
        begun.append(item)
        if item < MAX_CONCURRENT_CALLS:
            together.wait()  # passes only if so many are here at once
        return item

    for at, result in enumerate(
        itertools.islice(prefetch_map(FAR, work, itertools.count()), 3 * MAX_CONCURRENT_CALLS)
    ):
        assert result == at
        assert max(begun) <= at + MAX_CONCURRENT_CALLS


def test_an_error_is_raised_when_it_is_that_items_turn_and_nothing_is_begun_then() -> None:
    begun: list[int] = []

    def work(item: int) -> int:
        begun.append(item)
        if item == 2:
            raise OSError("item 2")
        return item

    results = prefetch_map(FAR, work, itertools.count())
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(OSError, match="item 2"):
        next(results)
    assert list(results) == []
    assert max(begun) < 2 + MAX_CONCURRENT_CALLS
    with pytest.raises(OSError, match="item 2"):
        parallel_for_each(FAR, work, range(3))


# Calls


def run_on(folder: Path, count: int, *options: str) -> tuple[StorageCalls, StorageCalls]:
    """What a run on so many files asks of its storage, and what one that has nothing to do."""
    given = folder / f"in-{count}"
    given.mkdir()
    for number in range(1, count + 1):
        records = citation_xml(number), citation_xml(1000 + number, "The same. In all."), "<PubmedArticle/>"
        (given / f"pubmed26n{number:04d}.xml").write_bytes(pubmed_set_xml(*records))
    words = ["--workers", "1", "--input", str(given), "--output", str(folder / f"out-{count}"), *options]
    asked = []
    for _ in range(2):
        with count_storage_calls() as calls:
            assert cli.main(["run", "pubmed_to_shards", *words]) == 0
        asked.append(calls)
    return asked[0], asked[1]


def test_what_is_done_once_asks_no_more_of_a_store_one_after_the_other_for_more_files(tmp_path: Path) -> None:
    few, many = (run_on(tmp_path, count, "--dedup", "exact", "--max-rejected", "1") for count in (2, 7))
    for step in ("publish", "versions", "duplicates"):
        assert few[0].sequential(step) == many[0].sequential(step) <= 10
        assert few[0].concurrent(step) < many[0].concurrent(step)
    assert few[1].sequential("driver") == many[1].sequential("driver") <= 10, "there is nothing to do"
    for step, most in (("stage", 12), ("finalize", 7)):  # these are done for many files at once
        assert few[0].sequential(step) == 2 * most
        assert many[0].sequential(step) == 7 * most


@pytest.mark.parametrize("count", [3, 40])
def test_the_leftovers_of_many_portions_are_removed_some_at_a_time(tmp_path: Path, count: int) -> None:
    output_dir = OutputDir(str(tmp_path / "out"))
    for number in range(count):
        for path in (
            output_dir.build_report_path(f"old{number}", "json"),
            output_dir.shuffle_spill_path(f"train-{number}.arrow"),
        ):
            FILES.write_json(path, {})
    splits = {"train": {"rows": 1, "tokens": 5, "input_tokens": 5, "documents": 1}, "validation": {}}
    listed = {"file": "train/data-new-00000.arrow", "rows": 1, "bytes": 2, "sha256": "0"}
    made = BuildResult.from_dict({"name": "new", "documents": 1, "split_counts": splits, "outputs": [listed]})
    FILES.write_json(output_dir.build_report_path("new", "json"), {})
    config = encode(of_pretraining([]).config)
    run = PretrainingRun(command=("test",), inputs=(), vocabulary="nowhere")
    with count_storage_calls() as calls:
        assert (
            pretraining_dir.publish_pretraining_set(FILES, output_dir, config, [], [made], [], run, 0) is None
        )
    assert FILES.list_names(f"{output_dir.work_folder}/build_reports") == ["new.json"]
    assert FILES.list_names(f"{output_dir.work_folder}/shuffle_spill") == []
    assert calls.counts["publish", "remove", True] == 2 * count
    assert calls.sequential("driver") == 14


# Graphs


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return graphs.write_vocabulary(tmp_path_factory.mktemp("vocabulary"))


@pytest.mark.parametrize(
    ("of", "full"),
    [
        pytest.param(lambda count: graphs.citations_graph(count // 2, count // 2), 3000, id="files"),
        pytest.param(graphs.articles_graph, 1400, id="ranges"),
        pytest.param(graphs.words_graph, 10_000, id="words"),
    ],
)
def test_a_graph_of_twice_the_full_corpora_is_far_below_the_limit(
    of: Callable[[int], graphs.BuildGraph], full: int
) -> None:
    """A twentieth of it is made, next to what every graph has."""
    assert graphs.graph_size(of(2 * full // 20)) - 150_000 < graphs.MAX_GRAPH_BYTES / 20


def test_a_graph_has_the_vocabulary_a_few_times_and_not_for_each_portion(vocabulary: Path) -> None:
    size = graphs.graph_size(graphs.pretraining_graph(1000, vocabulary))
    pieces = (vocabulary / "tokenizer.json").stat().st_size
    assert size < 1.5 * pieces + 1000 * graphs.MAX_GRAPH_BYTES / 20_000


# Sources of many files


def test_parts_are_taken_up_as_they_were_laid_aside_whatever_their_names(tmp_path: Path) -> None:
    output_dir = OutputDir(str(tmp_path))
    odd = SourcePart("a?.xml", 'folder/a\udce9"\\\n.xml', 7, "7-1")
    source = SourceFile(0, 0, "articles", "folder/articles", 7, "0123", parts=(odd,), num_files=1)
    plain = replace(source, parts=(), num_files=0, stamp="4567")
    part_lists.save_part_lists(FILES, output_dir, [source, plain])
    aside = part_lists.without_parts([source, plain])
    assert [one.parts for one in aside] == [(), ()]
    assert [part_lists.load_parts(FILES, output_dir, one) for one in aside] == [source, plain]
    assert FILES.list_names(f"{output_dir.work_folder}/part_lists") == ["0123.json"]


def test_a_run_on_single_articles_lays_them_aside_and_forgets_those_that_are_gone(tmp_path: Path) -> None:
    folder, output = tmp_path / "in", tmp_path / "out"
    write_byte_files(folder, {f"PMC{number}.xml": small_article(number) for number in (1, 2, 20_000)})
    words = ["run", "pmc_to_shards", "--workers", "1", "--licences", "all", "--languages", ""]
    words += ["--input", str(folder), "--output", str(output), "--max-rejected", "1"]
    with mock.patch.object(pmc_to_shards, "build", wraps=pmc_to_shards.build) as build:
        assert cli.main(words) == 0
    [_, job] = build.call_args.args
    assert [one.parts for one in job.sources] == [(), ()], "they are no part of the graph"
    before = aside(output)
    assert [len(json.loads(one.read_text())) for one in before] == [2, 1]
    listed = json.loads((output / "manifest.json").read_text())["inputs"]
    assert [(one["file"], one["num_files"]) for one in listed] == [("PMC0000xxxx", 2), ("PMC0002xxxx", 1)]
    write_byte_files(folder, {"PMC3.xml": small_article(3)})
    assert cli.main(words) == 0
    after = aside(output)
    assert [len(json.loads(one.read_text())) for one in after] == [3, 1]
    assert before[1] == after[1]


def aside(output: Path) -> list[Path]:
    """What is laid aside, the source of most files first."""
    found = (output / ".bioshards" / "part_lists").iterdir()
    return sorted(found, key=lambda path: -path.stat().st_size)
