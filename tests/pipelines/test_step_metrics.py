"""Tests of step metrics: Beam's metrics equal the manifest's ``run.steps`` and its funnel."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.errors import TransientStorageError, WorkerError
from bioshards.corpus.storage import retry
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines import cli
from bioshards.pipelines.steps import Done, run_step, sum_metrics
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.outputs import load_manifest, published_digests
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_faults import NotFound
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.tiny_tokenizers import save_character_vocabulary

pytestmark = pytest.mark.thorough  # this file takes minutes

Steps = dict[str, dict[str, int]]
RunPipeline = Callable[..., Steps]


@pytest.fixture
def run_pipeline(monkeypatch: pytest.MonkeyPatch) -> RunPipeline:
    """Run a pipeline in this process, and return its metrics in the form of the manifest."""
    results: list[Any] = []
    original_run = beam.Pipeline.run

    def run_and_record(self: beam.Pipeline, *arguments_given: Any, **keywords: Any) -> Any:
        results.append(original_run(self, *arguments_given, **keywords))
        return results[-1]

    monkeypatch.setattr(beam.Pipeline, "run", run_and_record)

    def call(pipeline: str, *arguments: object, workers: int = 1, code: int = 0) -> Steps:
        command = ["run", pipeline, "--workers", workers, *arguments]
        assert cli.main([str(word) for word in command]) == code
        return _read_beam_metrics(results[-1])

    return call


def _read_beam_metrics(result: Any) -> Steps:
    steps: Steps = {}
    query = result.metrics().query()
    for counter in query["counters"]:
        step, _, figure = counter.key.metric.name.partition("_")
        steps.setdefault(step, {})[figure] = counter.committed
    for distribution in query["distributions"]:
        step, _, figure = distribution.key.metric.name.partition("_")
        steps[step] |= {figure: distribution.committed.sum, "max_item_ms": distribution.committed.max}
    del steps["publish"]  # the step is still running when it writes the manifest
    return steps


def load_manifest_steps(output: Path) -> Steps:
    """Return the steps in the manifest of an output."""
    steps: Steps = load_manifest(output)["run"]["steps"]
    return steps


def make_funnel(steps: Steps) -> dict[str, int]:
    """Make the manifest's funnel from the metrics of the steps."""
    records = {"records": steps["stage"]["records"]}
    rejected = {name: count for name, count in steps["stage"].items() if name.startswith("rejected_")}
    outcomes = {
        name: count
        for name, count in steps["finalize"].items()
        if name.startswith("dropped_") or name == "kept"
    }
    return {name.replace("_", ": "): count for name, count in {**records, **rejected, **outcomes}.items()}


def write_update_file(path: Path, *pmids: int, rejected: bool = False) -> None:
    """Write a file of citations; with ``rejected``, add an invalid record."""
    records = [citation_xml(pmid, f"{'A word of text. ' * pmid}The end of {pmid}.") for pmid in pmids]
    path.write_bytes(
        pubmed_set_xml(*records, *(["<PubmedArticle><None/></PubmedArticle>"] if rejected else []))
    )


def test_metrics_of_all_pipelines_equal_the_manifests(run_pipeline: RunPipeline, tmp_path: Path) -> None:
    abstracts, articles = tmp_path / "abstracts", tmp_path / "articles"
    steps = run_pipeline("pubmed_to_shards", "--dedup", "exact", "--output", abstracts, workers=2)
    assert list(steps) == ["stage", "decide", "finalize"]
    assert load_manifest_steps(abstracts) == steps
    manifest = load_manifest(abstracts)
    assert make_funnel(steps) == manifest["funnel"]
    assert steps["finalize"]["sentences"] == manifest["counts"]["sentences"]
    assert steps["stage"]["items"] == steps["finalize"]["items"] == len(manifest["inputs"]) == 3

    steps = run_pipeline("pmc_to_shards", "--find-overlap-with", abstracts, "--output", articles)
    assert load_manifest_steps(articles) == steps
    assert make_funnel(steps) == load_manifest(articles)["funnel"]
    assert steps["overlap"]["abstracts"] == load_manifest(articles)["overlap"][0]["rows"]

    input_arguments = ("--input", abstracts, "--input", articles)
    word_options = ("--validation-fraction", 0.3, "--min-count", 2, "--output", tmp_path / "words")
    steps = run_pipeline("shards_to_words", *input_arguments, *word_options)
    assert load_manifest_steps(tmp_path / "words") == steps
    counts = load_manifest(tmp_path / "words")["counts"]
    assert steps["count"]["documents"] == counts["documents"]
    assert steps["count"]["tokens"] == counts["tokens"]
    assert steps["count"]["validation_tokens"] == counts["validation"]["tokens"] > 0
    assert steps["merge"]["distinct_words"] == counts["distinct_words"]
    assert steps["merge"]["pruned_distinct_words"] == counts["pruned"]["distinct_words"] > 0
    assert steps["merge"]["items"] == 64

    options = ("--vocab", save_character_vocabulary(tmp_path / "v"), "--validation-fraction", 0.2)
    steps = run_pipeline("shards_to_pretraining", *input_arguments, *options, "--output", tmp_path / "set")
    assert load_manifest_steps(tmp_path / "set") == steps
    manifest = load_manifest(tmp_path / "set")
    assert steps["build"]["documents"] == manifest["counts"]["documents"]
    for split in ("train", "validation"):
        rows = manifest["counts"][split]["rows"]
        assert rows == steps["build"][f"{split}_rows"] > 0
        assert steps["build"][f"{split}_tokens"] == manifest["counts"][split]["tokens"]


def test_metrics_of_a_resumed_run(run_pipeline: RunPipeline, tmp_path: Path) -> None:
    """Completed items count as skipped, and the funnel is complete."""
    inputs, out = tmp_path / "given", tmp_path / "out"
    inputs.mkdir()
    write_update_file(inputs / "pubmed26n0001.xml", 1, 2, 3, rejected=True)
    arguments = ("--input", inputs, "--output", out, "--max-rejected", 1)
    first = run_pipeline("pubmed_to_shards", *arguments)
    assert load_manifest_steps(out) == first
    assert first["stage"]["rejected_no-pmid"] == 1
    write_update_file(inputs / "pubmed26n0002.xml", 3, 4)
    second = run_pipeline("pubmed_to_shards", *arguments)
    assert load_manifest_steps(out) == second
    assert [second["stage"][name] for name in ("items", "skipped")] == [2, 1]
    # Document 3 is superseded in the first file.
    assert [second["finalize"][name] for name in ("items", "skipped")] == [2, 0]
    assert make_funnel(second) == load_manifest(out)["funnel"]
    before = published_digests(out)
    (out / "manifest.json").unlink()
    third = run_pipeline("pubmed_to_shards", *arguments)
    assert load_manifest(out)["run"]["finished_at"] >= load_manifest(out)["run"]["started_at"] > ""
    assert load_manifest_steps(out) == third
    for step in ("stage", "finalize"):
        assert third[step]["skipped"] == third[step]["items"] == 2
    assert make_funnel(third) == make_funnel(second)
    assert published_digests(out) == before


def test_metrics_of_fetched_files_and_ranges(run_pipeline: RunPipeline, tmp_path: Path) -> None:
    """Files and ranges, fetched by ``fetch`` and by other pipelines."""
    root = tmp_path / "servers"
    records = {f"pubmed26n000{number}.xml.gz": pubmed_set_xml(citation_xml(number)) for number in (1, 2)}
    create_pubmed_server(root, records, {})
    create_bucket(
        root / "bucket", [FakeArticle(1200001), FakeArticle(1200003, licence="CC BY-NC")], "2026-11-01"
    )
    mirror_arguments = ("--mirror", tmp_path / "mirror", "--contact", "tests@example.org")
    with FakeServer(root) as server:
        pubmed_arguments = ("--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", *mirror_arguments)
        pmc_arguments = ("--input", "pmc:", "--pmc-url", f"{server.url}bucket/", *mirror_arguments)
        server.schedule_fault("pubmed/baseline/pubmed26n0002.xml.gz", NotFound(), times=None)
        steps = run_pipeline(
            "pubmed_to_shards", *pubmed_arguments, "--output", tmp_path / "abstracts", code=3
        )
        assert [steps["fetch"][name] for name in ("items", "skipped", "failed")] == [2, 0, 1]
        assert steps["stage"]["items"] == 1
        server.clear_faults()
        steps = run_pipeline("fetch", *pubmed_arguments)
        size = (tmp_path / "mirror/pubmed/baseline/pubmed26n0002.xml.gz").stat().st_size
        assert steps["fetch"]["items"] == 1
        assert steps["fetch"]["bytes"] == size
        assert load_manifest_steps(tmp_path / "mirror") == steps
        steps = run_pipeline("pmc_to_shards", *pmc_arguments, "--output", tmp_path / "articles")
        assert load_manifest_steps(tmp_path / "articles") == steps
        assert steps["ranges"]["articles_fetched"] == 1
        assert steps["ranges"]["dropped_licence-CC-BY-NC"] == 1
        steps = run_pipeline("fetch", *pmc_arguments)
        assert load_manifest_steps(tmp_path / "mirror") == steps
        assert [steps["ranges"][f"articles_{name}"] for name in ("cached", "fetched")] == [1, 0]


# Metrics of one item


@dataclass(frozen=True)
class Sevens:
    number: int

    def counters(self) -> dict[str, int]:
        return {"sevens": self.number}


@pytest.fixture
def disable_retry_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=3, initial_backoff=0))


@pytest.mark.usefixtures("disable_retry_pauses")
def test_retried_step_is_counted_once() -> None:
    attempts = []

    def work(number: int) -> Sevens:
        attempts.append(1)
        if len(attempts) < 3:
            raise TransientStorageError("try again")
        return Sevens(number)

    done = run_step("step", work, 7)
    assert done.result == Sevens(7)
    assert done.counts == {"items": 1, "skipped": 0, "sevens": 7}
    errors = [TransientStorageError("for good")] * 3

    def fail() -> None:
        raise errors.pop()

    with pytest.raises(WorkerError, match="for good"):
        run_step("step", fail)
    assert not errors


FIGURES: st.SearchStrategy[Done[int | None]] = st.builds(
    Done,
    st.sampled_from(["stage", "finalize"]),
    st.none() | st.integers(0, 99),
    st.integers(0, 10**12),
    st.fixed_dictionaries(
        {"items": st.just(1), "skipped": st.integers(0, 1)},
        optional={"kept": st.integers(1, 10**9), "dropped_licence": st.integers(1, 10**9)},
    ),
)


@given(st.lists(FIGURES), st.randoms())
def test_sums_are_independent_of_order_and_results_can_be_pickled(
    results: list[Done[int | None]], rng: random.Random
) -> None:
    total = sum_metrics(results)
    half = rng.randint(0, len(results))
    shuffled = rng.sample(results, len(results))
    assert sum_metrics(shuffled[:half], shuffled[half:]) == total
    assert sum(step["items"] for step in total.values()) == len(results)
    for step, sums in total.items():
        times = [done.milliseconds for done in results if done.step == step]
        assert (sums["milliseconds"], sums["max_item_ms"]) == (sum(times), max(times))
    assert pickle.loads(pickle.dumps(results)) == results
