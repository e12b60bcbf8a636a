"""What a run says of its steps: Beam's metrics, the manifest's ``run.steps`` and its funnel are one."""

from __future__ import annotations

import io
import pickle
import random
import string
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.errors import TransientStorageError, WorkerError
from bioshards.corpus.storage import retry
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import cli
from bioshards.pipelines.transforms.step_metrics import (
    StepMetrics,
    StepResult,
    run_step,
    sum_metrics,
    unwrap_results,
)
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.outputs import load_manifest, published_digests
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer, NotFound
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.tiny_tokenizers import make_wordpiece

Steps = dict[str, dict[str, int]]
Ran = Callable[..., Steps]


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> Ran:
    """Runs a pipeline in this process; returns its metrics, shaped as the manifest has them."""
    kept: list[Any] = []
    original = beam.Pipeline.run

    def run(self: beam.Pipeline, *given: Any, **named: Any) -> Any:
        kept.append(original(self, *given, **named))
        return kept[-1]

    monkeypatch.setattr(beam.Pipeline, "run", run)

    def call(pipeline: str, *arguments: object, workers: int = 1, code: int = 0) -> Steps:
        words = ["run", pipeline, "--workers", workers, *arguments]
        assert cli.main([str(word) for word in words]) == code
        return _metrics(kept[-1])

    return call


def _metrics(result: Any) -> Steps:
    found: Steps = {}
    query = result.metrics().query()
    for counter in query["counters"]:
        step, _, figure = counter.key.metric.name.partition("_")
        found.setdefault(step, {})[figure] = counter.committed
    for distribution in query["distributions"]:
        step, _, figure = distribution.key.metric.name.partition("_")
        found[step] |= {figure: distribution.committed.sum, "max_item_ms": distribution.committed.max}
    del found["publish"]  # has not ended when it writes the manifest
    return found


def said(output: Path) -> Steps:
    """What the manifest says of the steps of the run that made it."""
    found: Steps = load_manifest(output)["run"]["steps"]
    return found


def funnel(found: Steps) -> dict[str, int]:
    """The manifest's funnel, of the figures of the steps."""
    records = {"records": found["stage"]["records"]}
    rejected = {name: count for name, count in found["stage"].items() if name.startswith("rejected_")}
    became = {
        name: count
        for name, count in found["finalize"].items()
        if name.startswith("dropped_") or name == "kept"
    }
    return {name.replace("_", ": "): count for name, count in {**records, **rejected, **became}.items()}


def source(path: Path, *pmids: int, rejected: bool = False) -> None:
    """A file of update records, the last of which is no record at all."""
    records = [citation_xml(pmid, f"{'A word of text. ' * pmid}The end of {pmid}.") for pmid in pmids]
    path.write_bytes(
        pubmed_set_xml(*records, *(["<PubmedArticle><None/></PubmedArticle>"] if rejected else []))
    )


def test_the_whole_chain(ran: Ran, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bioshards.pipelines.drivers import pretraining_driver

    abstracts, articles = tmp_path / "abstracts", tmp_path / "articles"
    found = ran("pubmed_to_shards", "--dedup", "exact", "--output", abstracts)
    assert list(found) == ["stage", "versions", "duplicates", "finalize"]
    assert said(abstracts) == found
    facts = load_manifest(abstracts)
    assert funnel(found) == facts["funnel"]
    assert found["finalize"]["sentences"] == facts["counts"]["sentences"]
    assert found["stage"]["items"] == found["finalize"]["items"] == len(facts["inputs"]) == 3
    assert found["stage"]["bytes_in"] >= sum(one["bytes"] for one in facts["inputs"])
    assert found["finalize"]["bytes_out"] > sum(one["bytes"] for one in facts["outputs"])

    found = ran("pmc_to_shards", "--find-overlap-with", abstracts, "--output", articles)
    assert said(articles) == found
    assert funnel(found) == load_manifest(articles)["funnel"]
    assert found["overlap"]["abstracts"] == load_manifest(articles)["overlap"][0]["rows"]
    assert found["keys"]["items"] == len(facts["outputs"]) + len(load_manifest(articles)["outputs"])

    both = ("--input", abstracts, "--input", articles)
    found = ran(
        "shards_to_words",
        *both,
        "--validation-fraction",
        0.3,
        "--min-count",
        2,
        "--output",
        tmp_path / "words",
    )
    assert said(tmp_path / "words") == found
    counts = load_manifest(tmp_path / "words")["counts"]
    assert found["count"]["documents"] == counts["documents"]
    assert found["count"]["tokens"] == counts["tokens"]
    assert found["count"]["validation_tokens"] == counts["validation"]["tokens"] > 0
    assert found["merge"]["distinct_words"] == counts["distinct_words"]
    assert found["merge"]["pruned_distinct_words"] == counts["pruned"]["distinct_words"] > 0
    assert found["merge"]["items"] == 64

    monkeypatch.setattr(pretraining_driver, "_TOKENS_PER_BYTE", 9000.0)  # several shards, as of large inputs
    letters = string.ascii_letters + string.digits
    vocabulary = make_wordpiece(*letters, *(f"##{letter}" for letter in letters), *"()-.,:;%=<>/+")
    (tmp_path / "v").mkdir()
    vocabulary.save(str(tmp_path / "v" / "tokenizer.json"))
    options = ("--vocab", tmp_path / "v", "--shuffle", "global", "--validation-fraction", 0.2)
    found = ran("shards_to_pretraining", *both, *options, "--output", tmp_path / "set")
    assert said(tmp_path / "set") == found
    facts = load_manifest(tmp_path / "set")
    assert found["build"]["documents"] == facts["counts"]["documents"]
    assert found["merge"]["items"] > 2
    for split in ("train", "validation"):
        rows = facts["counts"][split]["rows"]
        assert rows == found["build"][f"{split}_rows"] == found["merge"][f"{split}_rows"] > 0
        assert found["build"][f"{split}_tokens"] == facts["counts"][split]["tokens"]


def test_a_run_that_is_continued(ran: Ran, tmp_path: Path) -> None:
    """What stood is counted as such, and the funnel is whole all the same."""
    given, out = tmp_path / "given", tmp_path / "out"
    given.mkdir()
    source(given / "pubmed26n0001.xml", 1, 2, 3, rejected=True)
    words = ("--input", given, "--output", out, "--max-rejected", 1)
    first = ran("pubmed_to_shards", *words)
    assert said(out) == first
    assert first["stage"]["rejected_no-pmid"] == 1
    source(given / "pubmed26n0002.xml", 3, 4)
    second = ran("pubmed_to_shards", *words)
    assert said(out) == second
    assert [second["stage"][name] for name in ("items", "skipped")] == [2, 1]
    assert [second["finalize"][name] for name in ("items", "skipped")] == [
        2,
        0,
    ]  # 3 is superseded in the first
    assert funnel(second) == load_manifest(out)["funnel"]
    before = published_digests(out)
    (out / "manifest.json").unlink()
    third = ran("pubmed_to_shards", *words)
    assert said(out) == third
    for step in ("stage", "finalize"):
        assert third[step]["skipped"] == third[step]["items"] == 2
        assert third[step]["bytes_out"] == 0
    assert funnel(third) == funnel(second)
    assert published_digests(out) == before


def test_two_workers(ran: Ran, reference: Path, tmp_path: Path) -> None:
    """What they tell the runner from two processes is what the manifest has, and what one would count."""
    out = tmp_path / "out"
    found = ran("pubmed_to_shards", "--keep-dropped", "--output", out, workers=2)
    assert said(out) == found
    # Reports say how many seconds were taken, in more digits or fewer.
    timed = {"milliseconds", "max_item_ms", "bytes_in", "bytes_out"}
    for step, figures in said(reference).items():
        assert {name: figures[name] for name in figures.keys() - timed} == {
            name: found[step][name] for name in found[step].keys() - timed
        }
    assert published_digests(out) == published_digests(reference)


def test_what_is_fetched(ran: Ran, tmp_path: Path) -> None:
    """Of files and ranges, by ``fetch`` and by the pipelines that fetch for themselves."""
    root = tmp_path / "servers"
    records = {f"pubmed26n000{number}.xml.gz": pubmed_set_xml(citation_xml(number)) for number in (1, 2)}
    create_pubmed_server(root, records, {})
    create_bucket(
        root / "bucket", [FakeArticle(1200001), FakeArticle(1200003, licence="CC BY-NC")], "2026-11-01"
    )
    mirror = ("--mirror", tmp_path / "mirror", "--contact", "tests@example.org")
    with FakeServer(root) as server:
        nlm = ("--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", *mirror)
        pmc = ("--input", "pmc:", "--pmc-url", f"{server.url}bucket/", *mirror)
        server.schedule_fault("pubmed/baseline/pubmed26n0002.xml.gz", NotFound(), times=None)
        found = ran("pubmed_to_shards", *nlm, "--output", tmp_path / "abstracts", code=3)
        assert [found["fetch"][name] for name in ("items", "skipped", "failed")] == [2, 0, 1]
        assert found["stage"]["items"] == 1
        server.clear_faults()
        found = ran("fetch", *nlm)
        size = (tmp_path / "mirror/pubmed/baseline/pubmed26n0002.xml.gz").stat().st_size
        assert found["fetch"]["items"] == 1
        assert found["fetch"]["bytes_in"] == found["fetch"]["bytes_out"] == size
        assert said(tmp_path / "mirror") == found
        found = ran("pmc_to_shards", *pmc, "--output", tmp_path / "articles")
        assert said(tmp_path / "articles") == found
        assert found["ranges"]["articles_fetched"] == 1
        assert found["ranges"]["dropped_licence-CC-BY-NC"] == 1
        found = ran("fetch", *pmc)
        assert said(tmp_path / "mirror") == found
        assert [found["ranges"][f"articles_{name}"] for name in ("cached", "fetched")] == [1, 0]


# One measure


@pytest.fixture
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retry, "STEP_BACKOFF_SECONDS", (0.0, 0.0))


@pytest.mark.usefixtures("no_pauses")
def test_a_store_that_fails_for_a_moment_is_counted_once(tmp_path: Path) -> None:
    tries = []

    def work(storage: LocalStorage) -> int:
        with storage.write(str(tmp_path / "file")) as file:
            file.write(b"12345")
        tries.append(1)
        if len(tries) < 3:
            raise TransientStorageError("try again")
        return 7

    done = run_step("step", LocalStorage(), work, lambda result: {"sevens": result})
    assert done.result == 7
    [figures] = done.metrics
    assert figures.counters() == {"items": 1, "skipped": 0, "bytes_in": 0, "bytes_out": 15, "sevens": 7}
    tries.clear()
    monkey = [TransientStorageError("for good")] * 3
    with pytest.raises(WorkerError, match="for good"):
        run_step("step", LocalStorage(), lambda _: (_ for _ in ()).throw(monkey.pop()), lambda _: {})
    assert not monkey


def test_bytes_are_counted_however_they_are_read_and_written(tmp_path: Path) -> None:
    table = pa.table({"number": list(range(10_000))})
    lines = [b"line %d\n" % number for number in range(50)]

    def work(storage: LocalStorage) -> tuple[int, int]:
        with storage.write(str(tmp_path / "table")) as out, pa.ipc.new_file(out, table.schema) as writer:
            writer.write_table(table)
        storage.write_json(str(tmp_path / "json"), {"one": 1})
        with storage.write(str(tmp_path / "lines")) as file:
            file.write(memoryview(b"".join(lines)))
        written = sum(path.stat().st_size for path in tmp_path.iterdir())
        with storage.open(str(tmp_path / "table")) as file, pa.ipc.open_file(file) as reader:
            assert reader.read_all() == table
        assert storage.read_json(str(tmp_path / "json")) == {"one": 1}
        with storage.open(str(tmp_path / "lines")) as file:
            assert list(file) == lines
        with storage.open(str(tmp_path / "lines")) as file:
            assert file.read(10) == lines[0] + b"lin"
            assert io.BufferedReader(file).read() == b"".join(lines)[10:]  # type: ignore[type-var]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda _: storage.read_json(str(tmp_path / "json")), range(400)))
        size = (tmp_path / "json").stat().st_size
        return written, 401 * size + 2 * sum(map(len, lines))

    done = run_step("step", LocalStorage(), work, lambda _: {})
    [figures] = done.metrics
    assert figures.bytes_out == done.result[0]
    read = figures.bytes_in - done.result[1]
    assert 80_000 < read < 81_500  # Arrow reads the end of a file more than once


def test_stood_is_what_wrote_nothing_and_is_not_bad() -> None:
    [stood] = run_step("step", LocalStorage(), lambda _: None, lambda _: {}).metrics
    [bad] = run_step("step", LocalStorage(), lambda _: None, lambda _: {"failed": 1}).metrics
    assert (stood.skipped, bad.skipped) == (True, False)


FIGURES = st.builds(
    StepMetrics,
    st.sampled_from(["stage", "finalize"]),
    st.booleans(),
    *[st.integers(0, 10**12)] * 3,
    st.dictionaries(st.sampled_from(["kept", "dropped_licence"]), st.integers(1, 10**9)),
)


@given(st.lists(FIGURES), st.randoms())
def test_sums_depend_on_no_order_and_travel(figures: list[StepMetrics], chance: random.Random) -> None:
    done: list[StepResult[int | None]] = [
        StepResult(number if number % 3 else None, (one,)) for number, one in enumerate(figures)
    ]
    total = sum_metrics(done)
    half = chance.randint(0, len(done))
    mixed = chance.sample(done, len(done))
    assert sum_metrics(mixed[:half], mixed[half:]) == total
    assert sum(step["items"] for step in total.values()) == len(figures)
    for step, found in total.items():
        times = [one.milliseconds for one in figures if one.step == step]
        assert (found["milliseconds"], found["max_item_ms"]) == (sum(times), max(times))
    assert pickle.loads(pickle.dumps(done)) == done
    assert unwrap_results(done) == [number for number in range(len(done)) if number % 3]
