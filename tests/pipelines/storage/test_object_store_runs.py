"""The whole chain on gs:// and s3://, through failing stores, killed and continued: the bytes are the same.

A store's way (tests/support/cloud/object_store_proxy.py) makes the faults, and counts what a source file
costs.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from apache_beam.io.filesystems import FileSystems
from apache_beam.options.pipeline_options import PipelineOptions
from google.cloud.storage.retry import DEFAULT_RETRY

from bioshards.corpus.download import http_client
from bioshards.corpus.errors import OutputMismatchError, TransientStorageError
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.output import lock
from bioshards.corpus.output.lock import lock_output
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards.arrow_io import read_documents_manifest
from bioshards.corpus.storage import retry
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines import cli
from bioshards.pipelines.drivers import driver
from bioshards.pipelines.execution import executor
from bioshards.pipelines.execution.progress_monitor import ShardsProgress
from bioshards.pipelines.inputs import downloads
from bioshards.pipelines.storage import gcs, routed, s3
from bioshards.pipelines.storage.routed import RoutedStorage
from bioshards.vocab.__main__ import main as vocab
from bioshards.vocab.pretraining import overlap_filter
from tests.support.cloud import store_emulators
from tests.support.cloud.object_store_proxy import LostResponse, ObjectStoreProxy, UploadReset
from tests.support.corpus import jats_articles as articles
from tests.support.corpus.manifests import put_documents
from tests.support.corpus.overlap_sources import EXPECTED_OVERLAP, OVERLAP_ARTICLES, OVERLAP_CITATIONS
from tests.support.corpus.pubmed_xml import pubmed_set_xml
from tests.support.fork_server import kill_when, run_beam, start_beam
from tests.support.network import find_free_port
from tests.support.outputs import published_digests
from tests.support.paths import PUBMED_SAMPLE
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.fake_server import ServiceUnavailable as ServerBusy
from tests.support.servers.server_faults import ConnectionReset, ServiceUnavailable, Stall, TruncatedBody
from tests.support.servers.server_pages import create_pubmed_server

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]
FILES = RoutedStorage()


@pytest.fixture(scope="module")
def running() -> Iterator[dict[str, ObjectStoreProxy]]:
    with (
        store_emulators.run_gcs() as gs,
        store_emulators.run_s3() as s3,
        ObjectStoreProxy(gs) as way_to_gs,
        ObjectStoreProxy(s3) as way_to_s3,
    ):
        yield {"gs": way_to_gs, "s3": way_to_s3}


@pytest.fixture(autouse=True)
def ways(
    running: dict[str, ObjectStoreProxy], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ObjectStoreProxy]:
    """Both stores, reached by every process of this test; a step is done again at once."""
    for way in running.values():
        way.reset()
        for name, value in way.store.environment.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(retry, "STEP_BACKOFF_SECONDS", (0.0, 0.0, 0.0))
    monkeypatch.setattr(lock, "LEASE_RENEWAL_SECONDS", 3600)  # requests are counted
    monkeypatch.setattr(gcs, "DEFAULT_RETRY", DEFAULT_RETRY.with_delay(initial=0.01))
    monkeypatch.setattr(gcs, "GCS_RETRY_SECONDS", 5.0)
    patience = RetryPolicy(read_timeout=1, initial_backoff=0.05, max_backoff=0.2, max_attempts=4)
    monkeypatch.setattr(http_client.Server.__init__, "__defaults__", (patience,))
    monkeypatch.setattr(downloads, "INTERACTIVE_RETRY_POLICY", patience)
    routed.configure_stores(PipelineOptions(reaching(running)))
    return running


def reaching(ways: dict[str, ObjectStoreProxy]) -> list[str]:
    """The options that reach both stores."""
    return [word for way in ways.values() for word in way.store.options]


@pytest.fixture
def beam_run(ways: dict[str, ObjectStoreProxy]) -> Run:
    """``beam run NAME`` in this process, one worker."""

    def call(name: str, *words: object) -> int:
        return cli.main(["run", name, "--workers", "1", *map(str, words), *reaching(ways)])

    return call


def put(folder: Path, url: str) -> None:
    """Copy a folder into a store."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with FILES.write(f"{url}/{path.relative_to(folder)}") as file:
                file.write(path.read_bytes())


def get(url: str, folder: Path) -> Path:
    """What lies at a place, as a folder here."""
    for found in FILES.walk(url):
        path = folder / found.path.removeprefix(f"{url}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        with FILES.open(found.path) as file:
            path.write_bytes(file.read())
    return folder


def published(folder: Path) -> dict[str, str]:
    """SHA-256 of what a run publishes; of its manifest, all but where its inputs lie."""
    found = published_digests(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    for listed in manifest["inputs"]:
        for name in ("path", "folder"):
            listed.pop(name, None)
    del manifest["run"]
    found["manifest.json"] = hashlib.sha256(json.dumps(manifest).encode()).hexdigest()
    return found


def no_leftovers(ways: dict[str, ObjectStoreProxy]) -> bool:
    """Is nothing in the stores under a temporary name?"""
    urls = [way.store.url for way in ways.values()]
    return not [
        found.path
        for url in urls
        for found in routed.get_store(url).list_prefix(url)
        if "/.tmp-" in found.path
    ]


@pytest.fixture(scope="module")
def here(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The chain on this machine's disk: what its steps must publish on every store."""
    folder = tmp_path_factory.mktemp("chain")
    made = {name: folder / name for name in ("words", "vocabulary", "examples")}
    words = ["--workers", "1", "--input", str(reference), "--output"]
    assert cli.main(["run", "shards_to_words", *words, str(made["words"])]) == 0
    assert vocab(["build", str(made["words"]), "--output", str(made["vocabulary"]), *SIZE]) == 0
    shaped = [*EXAMPLES, "--vocab", str(made["vocabulary"])]
    assert cli.main(["run", "shards_to_pretraining", *words, str(made["examples"]), *shaped]) == 0
    return {"abstracts": reference, **made}


WRITE = {"gs": ("POST", "/upload/*"), "s3": ("PUT", "*")}
SIZE = ("--size", "400", "--algorithm", "wordpiece")
EXAMPLES = (
    "--shuffle",
    "global",
    "--validation-fraction",
    "0.2",
    "--max-seq-length",
    "32",
    "--max-shard-mb",
    "1",
)


@pytest.mark.parametrize(("on", "other"), [("gs", "s3"), ("s3", "gs")])
def test_the_whole_chain_gives_the_same_bytes(
    ways: dict[str, ObjectStoreProxy],
    here: dict[str, Path],
    tmp_path: Path,
    beam_run: Run,
    on: str,
    other: str,
) -> None:
    """Inputs on one store, outputs on the other, an update file that comes later; faults in every step."""
    store, second = ways[on].store.url + "/chain[1]", ways[other].store.url + "/chain[1]"
    source = Path(shutil.copytree(PUBMED_SAMPLE, tmp_path / "sample"))
    later = source / "pubmed26n0003.xml"
    update = later.read_bytes()
    later.unlink()
    put(source, f"{second}/in")
    abstracts = ("--input", f"{second}/in", "--output", f"{store}/abstracts/", "--keep-dropped")
    assert beam_run("pubmed_to_shards", *abstracts) == 0
    with FILES.write(f"{second}/in/{later.name}") as file:
        file.write(update)
    for broken in (UploadReset(100), LostResponse(), ServiceUnavailable()):
        ways[on].schedule_fault(*WRITE[on], broken)
    for cut in (TruncatedBody(100), ConnectionReset(50), ServiceUnavailable(status=429)):
        ways[other].schedule_fault("GET", "*0003.xml*", cut)
    assert beam_run("pubmed_to_shards", *abstracts) == 0

    ways[on].schedule_fault("GET", "*abstracts/data-*", TruncatedBody(100), times=2)
    ways[other].schedule_fault(*WRITE[other], UploadReset(10), times=2)
    words = ("--input", f"{store}/abstracts", "--output", f"{second}/words")
    assert beam_run("shards_to_words", *words) == 0
    assert (
        vocab(
            ["build", str(get(f"{second}/words", tmp_path / "words")), "--output", str(tmp_path / "v"), *SIZE]
        )
        == 0
    )

    ways[on].schedule_fault(*WRITE[on], ServiceUnavailable(), times=3)
    examples = ("--input", f"{store}/abstracts", "--output", f"{store}/examples", "--vocab", tmp_path / "v")
    assert beam_run("shards_to_pretraining", *examples, *EXAMPLES) == 0

    assert [way.pending_fault_count() for way in ways.values()] == [0, 0]
    assert no_leftovers(ways)
    for name, url in (("abstracts", store), ("examples", store), ("words", second)):
        assert published(get(f"{url}/{name}", tmp_path / f"got-{name}")) == published(here[name]), name
    for command in (("pubmed_to_shards", *abstracts), ("shards_to_words", *words)):
        before = [found.stamp for found in FILES.walk(store) + FILES.walk(second)]
        assert beam_run(*command) == 0
        assert before == [found.stamp for found in FILES.walk(store) + FILES.walk(second)]


@pytest.mark.parametrize("on", ["gs", "s3"])
def test_full_text_gives_the_same_bytes(
    ways: dict[str, ObjectStoreProxy], full_text: Path, tmp_path: Path, beam_run: Run, on: str
) -> None:
    url = f"{ways[on].store.url}/full-text"
    assert beam_run("pmc_to_shards", "--keep-dropped", "--output", url) == 0
    assert published(get(url, tmp_path / "got")) == published(full_text)


@pytest.mark.usefixtures("own_temporary_folder")
@pytest.mark.parametrize("on", ["gs", "s3"])
def test_abstracts_on_a_store_that_articles_hold_in_full(
    ways: dict[str, ObjectStoreProxy], tmp_path: Path, beam_run: Run, on: str
) -> None:
    """The same list as on a disk; of the abstracts each shard is read once."""
    sources = articles.write_files(
        tmp_path / "pubmed", {"pubmed26n0001.xml": pubmed_set_xml(*OVERLAP_CITATIONS)}
    )
    assert beam_run("pubmed_to_shards", "--input", sources, "--output", tmp_path / "abstracts") == 0
    holding = ("--input", articles.write_files(tmp_path / "in", OVERLAP_ARTICLES), "--find-overlap-with")
    assert beam_run("pmc_to_shards", *holding, tmp_path / "abstracts", "--output", tmp_path / "out") == 0
    url = ways[on].store.url
    put(tmp_path / "abstracts", f"{url}/dropped-in")
    ways[on].reset()
    assert beam_run("pmc_to_shards", *holding, f"{url}/dropped-in", "--output", f"{url}/holding") == 0
    read = [path for method, path in ways[on].requests if method == "GET" and "dropped-in/data-" in path]
    assert len(read) == len(list((tmp_path / "abstracts").glob("data-*"))) == 1
    found = get(f"{url}/holding", tmp_path / "got")
    held = full_text_overlap.read(LocalStorage(), str(found), str(tmp_path / "abstracts"))
    assert [tuple(row.values()) for row in held.to_pylist()] == EXPECTED_OVERLAP
    for name in ("overlap.arrow", "state.json"):
        assert (found / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_a_mirror_on_one_store_and_an_output_on_the_other(
    ways: dict[str, ObjectStoreProxy], tmp_path: Path, beam_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the servers' stand-ins, which fail as the stores do."""
    xml = {f"{path.name}.gz": path.read_bytes() for path in sorted(PUBMED_SAMPLE.glob("*.xml"))}
    first, second, update = xml
    create_pubmed_server(
        tmp_path / "servers", {first: xml[first], second: xml[second]}, {update: xml[update]}
    )
    articles = [
        FakeArticle(1200001, pmid=41),
        FakeArticle(1200002, licence="CC0"),
        FakeArticle(12900001, version=2),
    ]
    create_bucket(tmp_path / "servers/bucket", articles, "2026-11-01")
    gs, s3_url = (way.store.url for way in ways.values())
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 2)
    with FakeServer(tmp_path / "servers") as server:
        server.schedule_fault("pubmed/baseline/*2.xml.gz", ServerBusy())
        server.schedule_fault("bucket/PMC1200001.1/*.xml", ServerBusy())
        ways["s3"].schedule_fault(
            "PUT", "*pubmed26n0001.xml.gz", UploadReset(100), times=3
        )  # more than it is tried
        ways["gs"].schedule_fault("GET", "*staged*", TruncatedBody(10))
        pubmed = ("--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", "--output")
        assert beam_run("pubmed_to_shards", *pubmed, f"{gs}/fetched", "--mirror", f"{s3_url}/mirror") == 0
        assert [way.pending_fault_count() for way in ways.values()] == [0, 0]
        asked = len(server.requests_for("*.xml.gz"))
        assert beam_run("pubmed_to_shards", *pubmed, f"{gs}/fetched-2", "--mirror", f"{s3_url}/mirror") == 0
        assert len(server.requests_for("*.xml.gz")) == asked  # what the mirror holds is not fetched again
        pmc = ("--input", "pmc:", "--pmc-url", f"{server.url}bucket/", "--output")
        assert beam_run("pmc_to_shards", *pmc, f"{s3_url}/articles", "--mirror", f"{gs}/mirror") == 0
    local = {
        "pubmed_to_shards": tmp_path / "servers/pubmed",
        "pmc_to_shards": get(f"{gs}/mirror", tmp_path / "m"),
    }
    for name, folder in local.items():
        assert beam_run(name, "--input", folder, "--output", tmp_path / name) == 0
    for name, url in (("pubmed_to_shards", f"{gs}/fetched"), ("pmc_to_shards", f"{s3_url}/articles")):
        got, same = published(get(url, tmp_path / f"got-{name}")), published(tmp_path / name)
        del got["manifest.json"], same["manifest.json"]
        assert got == same
        assert any(shard.startswith("data-") for shard in got)


@pytest.mark.parametrize(
    ("on", "asking"),
    [("gs", ("DELETE", "*/final_reports/*")), ("s3", ("PUT", "*/staged/*"))],
    ids=["gs", "s3"],
)
def test_killed_and_continued_it_ends_with_the_same_bytes(
    ways: dict[str, ObjectStoreProxy],
    reference: Path,
    tmp_path: Path,
    on: str,
    asking: tuple[str, str],
) -> None:
    """``kill -9`` while a request is under way; two workers go on."""
    way, url = ways[on], f"{ways[on].store.url}/killed"
    words = ["pubmed_to_shards", "--keep-dropped", "--output", url]
    way.schedule_fault(*asking, Stall(0, 600))
    kill_when(
        start_beam("run", *words, "--workers", 1, *reaching(ways)), lambda: not way.pending_fault_count()
    )
    assert not FILES.exists(f"{url}/manifest.json")
    done = run_beam("run", *words, "--workers", 2, *reaching(ways))
    assert done.returncode == 0, done.stderr
    assert published(get(url, tmp_path / "got")) == published(reference)
    assert no_leftovers(ways)


@pytest.mark.parametrize("on", ["gs", "s3"])
def test_a_second_run_of_an_output_does_not_begin(
    ways: dict[str, ObjectStoreProxy], beam_run: Run, capsys: Capture, on: str
) -> None:
    url = f"{ways[on].store.url}/locked"
    command = ("pubmed_to_shards", "--output", url)
    with lock_output(FILES, OutputDir(url)):
        assert beam_run(*command) == 2
        said = capsys.readouterr().err
        assert f"another run is writing {url}: process {os.getpid()} of {socket.gethostname()}" in said
        assert FILES.list_names(f"{url}/.bioshards") == ["lock.json"]
    assert beam_run(*command) == 0
    assert "lock.json" not in FILES.list_names(f"{url}/.bioshards")


@pytest.mark.parametrize("on", ["gs", "disk"])
def test_an_output_that_is_begun_while_another_run_looks_for_its_inputs_is_that_run_s_no_more(
    ways: dict[str, ObjectStoreProxy],
    tmp_path: Path,
    beam_run: Run,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    on: str,
) -> None:
    """Else it would have the one's shards by the other's configuration."""
    url = f"{ways[on].store.url}/overtaken" if on == "gs" else str(tmp_path / "overtaken")
    command = ("pubmed_to_shards", "--output", url)
    prepare, quicker = executor.prepare_run, ["--keep-title-only"]

    def prepared(*given: Any) -> None:
        prepare(*given)
        if quicker:
            assert beam_run(*command, quicker.pop()) == 0

    monkeypatch.setattr(driver, "prepare_run", prepared)
    assert beam_run(*command) == 2
    assert "has another configuration" in capsys.readouterr().err
    assert beam_run(*command, "--keep-title-only") == 0
    assert "nothing to do" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("host", "since", "begins"),
    [
        ("elsewhere", 100, False),
        ("elsewhere", 130, True),
        ("elsewhere", -130, True),
        ("here", 0, True),
        ("ours", 0, True),
    ],
)
def test_a_killed_run_stops_nobody_for_long(
    ways: dict[str, ObjectStoreProxy], host: str, since: int, begins: bool
) -> None:
    """And one of this machine nobody at all: its process is there no more, or we have its number, as in a
    container that is started again."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    output_dir = OutputDir(f"{ways['gs'].store.url}/noted-{host}-{since}")
    note = {
        "host": host if host == "elsewhere" else socket.gethostname(),
        "pid": os.getpid() if host == "ours" else ended.pid,
        "renewed_at": int(time.time()) - since,
    }
    FILES.write_json(output_dir.lock_path, note)
    with contextlib.ExitStack() as stack:
        if not begins:
            stack.enter_context(
                pytest.raises(OutputMismatchError, match=r"if it was killed, rerun the command in \d+ sec")
            )
        stack.enter_context(lock_output(FILES, output_dir))
    assert FILES.exists(output_dir.lock_path) is not begins


def test_a_run_says_that_it_goes_on_also_when_it_could_not_for_a_moment(
    ways: dict[str, ObjectStoreProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "LEASE_RENEWAL_SECONDS", 0.1)
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 1)
    routed.configure_stores(PipelineOptions(reaching(ways)))
    way = ways["s3"]
    output_dir = OutputDir(f"{way.store.url}/renewed")
    with lock_output(FILES, output_dir):
        way.schedule_fault("PUT", "*/lock.json", ServiceUnavailable(), times=2)
        before = FILES.read_json(output_dir.lock_path)["renewed_at"]
        deadline = time.monotonic() + 60
        while FILES.read_json(output_dir.lock_path)["renewed_at"] == before:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert not way.pending_fault_count()
    assert not FILES.exists(output_dir.lock_path)


def test_a_run_of_a_store_that_is_silent_is_left_at_once(
    ways: dict[str, ObjectStoreProxy], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lock, "RELEASE_TIMEOUT_SECONDS", 0.1)
    way = ways["gs"]
    output_dir = OutputDir(f"{way.store.url}/silent")
    with lock_output(FILES, output_dir):
        way.schedule_fault("DELETE", "*lock.json*", Stall(0, 4))
        began = time.monotonic()
    assert time.monotonic() - began < 3
    assert FILES.exists(output_dir.lock_path)
    while FILES.exists(output_dir.lock_path):  # the answer comes at last
        assert time.monotonic() - began < 60
        time.sleep(0.05)
    assert not way.pending_fault_count()


def test_a_process_reads_a_list_of_what_is_held_in_full_once(
    ways: dict[str, ObjectStoreProxy], reference: Path, tmp_path: Path
) -> None:
    """Thousands of portions ask for it, and it may have the ids of millions of abstracts."""
    way, folder = ways["gs"], tmp_path / "full"
    abstracts, full = f"{way.store.url}/listed", f"{way.store.url}/full"
    listed = read_documents_manifest(FILES, str(reference)).outputs
    firsts = [first_id(reference / shard.file) for shard in listed]
    assert len(firsts) > 1
    rows = [{"id": id_, "full_text_id": "pmc:PMC1.1", "matched_by": "pmid"} for id_ in firsts]
    batches = [pa.RecordBatch.from_pylist([row], full_text_overlap.OVERLAP_SCHEMA) for row in rows]
    identity = full_text_overlap.digest_abstracts(FILES, str(reference))
    listing = full_text_overlap.write(
        FILES, str(folder / full_text_overlap.FILE_NAME), str(reference), identity, batches
    )
    put_documents(folder, [], "pmc_to_shards", [listing])
    put(reference, abstracts)
    put(folder, full)
    way.reset()
    for shard, id_ in zip(listed, firsts, strict=True):
        assert overlap_filter.read_overlap_ids(
            FILES, abstracts, [(full, listing.rows_sha256)], [shard]
        ).to_pylist() == [id_]
    assert (
        len(
            [
                path
                for method, path in way.requests
                if method == "GET" and "download" in path and "overlap" in path
            ]
        )
        == 1
    )


def first_id(shard: Path) -> str:
    with pa.ipc.open_stream(shard) as stream:
        id_: str = stream.read_next_batch()["id"][0].as_py()
        return id_


def test_a_copy_goes_on_when_a_store_fails_for_longer_than_its_client_asks(
    ways: dict[str, ObjectStoreProxy], reference: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a step does: else hours of copying end, and all that is there is read anew."""
    monkeypatch.setattr(s3, "S3_MAX_ATTEMPTS", 2)
    url = f"{ways['s3'].store.url}/copied"
    ways["s3"].schedule_fault("PUT", "*/data-*", UploadReset(100), times=3)
    ways["s3"].schedule_fault("PUT", "*/manifest.json", ServiceUnavailable(), times=3)
    assert cli.main(["copy", str(reference), url, *reaching(ways)]) == 0
    assert not ways["s3"].pending_fault_count()
    ways["s3"].schedule_fault("GET", "*/data-*", TruncatedBody(10), times=3)
    assert cli.main(["copy", url, str(tmp_path / "back"), *reaching(ways)]) == 0
    assert not ways["s3"].pending_fault_count()
    assert published_digests(tmp_path / "back") == published_digests(reference)


def test_a_run_goes_on_when_nobody_can_look_at_it(
    ways: dict[str, ObjectStoreProxy], beam_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A report that was listed may be gone when it is read, a store may be silent."""
    monkeypatch.setattr(executor, "REMOTE_POLL_SECONDS", 0.1)
    errors = itertools.chain(
        [FileNotFoundError("it is gone"), TransientStorageError("silence")], itertools.repeat(None)
    )

    def tick(_: ShardsProgress) -> None:
        if error := next(errors):
            raise error

    monkeypatch.setattr(ShardsProgress, "update", tick)
    assert beam_run("pubmed_to_shards", "--output", f"{ways['gs'].store.url}/unseen") == 0
    assert next(errors) is None


PER_FILE = {"GET": 5, "HEAD": 3, "LIST": 0, "PUT": 5, "DELETE": 2, "other": 0}
"""What a source file costs in requests until it is published; reading it comes on top."""


@pytest.mark.parametrize("on", ["gs", "s3"])
def test_a_source_file_costs_so_many_requests_and_no_more(
    ways: dict[str, ObjectStoreProxy], tmp_path: Path, beam_run: Run, on: str
) -> None:
    counted = []
    for files in (2, 6):
        source = tmp_path / str(files)
        source.mkdir()
        for number in range(files):
            sample = (PUBMED_SAMPLE / "pubmed26n0002.xml").read_bytes()
            (source / f"pubmed26n{number:04d}.xml").write_bytes(sample)
        url = f"{ways[on].store.url}/counted-{files}"
        ways[on].reset()
        assert beam_run("pubmed_to_shards", "--input", source, "--output", url) == 0
        counted.append(ways[on].count_requests())
    few, many = counted
    assert {kind: (many[kind] - few[kind]) / 4 for kind in PER_FILE} == PER_FILE
    assert many.keys() <= PER_FILE.keys()


def refused(beam_run: Run, capsys: Capture, *words: object) -> tuple[int, str]:
    code = beam_run("pubmed_to_shards", *words)
    said = capsys.readouterr().err
    assert "hunter2" not in said
    assert said.count("\n") == 1
    return code, said


@pytest.mark.parametrize("on", ["gs", "s3"])
def test_a_store_that_cannot_be_used_is_said_before_anything_begins(
    ways: dict[str, ObjectStoreProxy], beam_run: Run, capsys: Capture, on: str
) -> None:
    url, way = ways[on].store.url, ways[on]
    code, said = refused(beam_run, capsys, "--output", f"{on}://nobody-has-this/out")
    assert code == 2
    assert f"there is no bucket {on}://nobody-has-this" in said
    code, said = refused(beam_run, capsys, "--output", f"{on}://ab/out")
    assert code == 2
    assert "names no bucket" in said
    for fault, wanted, words in (
        (ServiceUnavailable(status=403), 2, "does not allow"),
        (ServiceUnavailable(status=401), 2, "cannot be used"),
        (ServiceUnavailable(), 1, "run the same command again"),
        (ConnectionReset(0), 1, "run the same command again"),
    ):
        way.reset()
        way.schedule_fault("GET", "*", fault, times=None)
        code, said = refused(beam_run, capsys, "--output", f"{url}/out")
        assert code == wanted, said
        assert words in said
        assert len(way.requests) == 1  # nobody waits for it to be tried again
    way.reset()
    assert FILES.list_names(f"{url}/out") == []


@pytest.mark.parametrize("file", ["tokenizer.json", "manifest.json"])
def test_a_vocabulary_on_a_store_that_fails_is_not_a_wrong_one(
    ways: dict[str, ObjectStoreProxy],
    here: dict[str, Path],
    tmp_path: Path,
    beam_run: Run,
    capsys: Capture,
    file: str,
) -> None:
    url = f"{ways['s3'].store.url}/vocabulary"
    put(here["vocabulary"], url)
    ways["s3"].schedule_fault("GET", f"*vocabulary/{file}*", ServiceUnavailable(), times=None)
    words = ("--input", here["abstracts"], "--output", tmp_path / "out", "--vocab", url)
    assert beam_run("shards_to_pretraining", *words, *EXAMPLES) == 1
    assert "run the same command again" in capsys.readouterr().err


def test_an_address_where_nothing_listens_and_one_that_is_none(
    ways: dict[str, ObjectStoreProxy], beam_run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = f"http://127.0.0.1:{find_free_port()}"
    to_s3 = ("--output", "s3://bucket/out", "--s3_secret_access_key=hunter2", "--s3_access_key_id=x")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", nowhere)
    for words in (("--output", "gs://bucket/out"), (*to_s3, f"--s3_endpoint_url={nowhere}")):
        code = cli.main(["run", "pubmed_to_shards", *words])
        said = capsys.readouterr().err
        assert code == 1, said
        assert "run the same command again" in said
        assert "hunter2" not in said
    assert cli.main(["run", "pubmed_to_shards", *to_s3, "--s3_endpoint_url=nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_what_is_no_object_store_is_said_to_be_none(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hadoop's has folders, lists one at a time, and renames over nothing; its client is not even here."""
    command = ["run", "pubmed_to_shards", "--output", "hdfs://folder/out"]
    assert cli.main(command) == 2
    assert "nothing here can open hdfs://folder/out" in capsys.readouterr().err
    monkeypatch.setattr(FileSystems, "get_filesystem", lambda _: SimpleNamespace(has_dirs=lambda: True))
    assert cli.main(command) == 2
    assert "hdfs:// is no object store. Mount it" in capsys.readouterr().err


def test_missing_credentials_are_asked_for(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (
        "STORAGE_EMULATOR_HOST",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for scheme, wanted in (("gs", "gcloud auth application-default login"), ("s3", "AWS_ACCESS_KEY_ID")):
        assert cli.main(["run", "pubmed_to_shards", "--output", f"{scheme}://bucket/out"]) == 2
        assert wanted in capsys.readouterr().err
