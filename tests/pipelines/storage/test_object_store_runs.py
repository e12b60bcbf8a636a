"""Tests of whole runs on gs://, s3:// and az://: same bytes as local runs, faults, locks, requests.

Emulated stores are reached through an ``ObjectStoreProxy``, which injects faults and counts requests.
"""

from __future__ import annotations

import contextlib
import itertools
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.download import http_client
from bioshards.corpus.errors import TransientStorageError
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.shards.document_shards import read_documents_manifest
from bioshards.corpus.storage import retry
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.corpus.ui.progress import RunProgress
from bioshards.pipelines import cli
from bioshards.pipelines.execution import executor
from bioshards.pipelines.inputs import downloads
from bioshards.pipelines.storage import store_options
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from bioshards.vocab.pretraining import pretraining_inputs
from tests.support.cloud import store_emulators
from tests.support.cloud.object_store_proxy import LostResponse, ObjectStoreProxy, UploadReset
from tests.support.corpus.manifests import put_documents
from tests.support.fork_server import kill_when, run_beam, start_beam
from tests.support.network import find_free_port
from tests.support.outputs import published_digests
from tests.support.paths import PUBMED_SAMPLE
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_faults import ConnectionReset, ServiceUnavailable, Stall, TruncatedBody
from tests.support.servers.server_faults import ServiceUnavailable as ServerBusy
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.synthetic_corpora import build_vocabulary, run_shards_to_pretraining

pytestmark = pytest.mark.thorough  # this file takes minutes

Run = Callable[..., None]
Capture = pytest.CaptureFixture[str]
FILES = RemoteStorage(StoreOptions())
HAS_AZURITE = store_emulators.find_azurite() is not None
NEEDS_AZURITE = pytest.mark.skipif(not HAS_AZURITE, reason=store_emulators.AZURITE_HINT)
SCHEMES = ["gs", "s3", pytest.param("az", marks=NEEDS_AZURITE)]


@pytest.fixture(scope="module")
def store_proxies() -> Iterator[dict[str, ObjectStoreProxy]]:
    runs = {"gs": store_emulators.run_gcs, "s3": store_emulators.run_s3}
    if HAS_AZURITE:
        runs["az"] = store_emulators.run_azure
    with contextlib.ExitStack() as stack:
        yield {
            scheme: stack.enter_context(ObjectStoreProxy(stack.enter_context(run())))
            for scheme, run in runs.items()
        }


@pytest.fixture(autouse=True)
def proxies(
    store_proxies: dict[str, ObjectStoreProxy], monkeypatch: pytest.MonkeyPatch
) -> dict[str, ObjectStoreProxy]:
    """Proxies of all stores, configured for every process of this test, with short retry pauses."""
    for proxy in store_proxies.values():
        proxy.reset()
        for name, value in proxy.store.environment.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(retry, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=4, initial_backoff=0))
    monkeypatch.setattr(store_options, "STORE_INITIAL_BACKOFF_SECONDS", 0.01)
    store_options.open_store.cache_clear()
    retry_policy = RetryPolicy(initial_backoff=0.05, max_backoff=0.2, max_attempts=4)
    monkeypatch.setattr(http_client.Server.__init__, "__defaults__", (retry_policy, None))
    monkeypatch.setattr(downloads, "INTERACTIVE_RETRY_POLICY", retry_policy)
    options = StoreOptions.from_beam(PipelineOptions(list_store_options(store_proxies)))
    monkeypatch.setattr(FILES, "_options", options)
    return store_proxies


def list_store_options(proxies: dict[str, ObjectStoreProxy]) -> list[str]:
    """Return the options with the endpoints and credentials of all stores."""
    return [option for proxy in proxies.values() for option in proxy.store.options]


@pytest.fixture
def beam_run(proxies: dict[str, ObjectStoreProxy]) -> Run:
    """``beam run NAME`` in this process, with one worker, which must end with 0 or the code given."""

    def call(name: str, *arguments: object, code: int = 0) -> None:
        command = ["run", name, "--workers", "1", *map(str, arguments), *list_store_options(proxies)]
        assert cli.main(command) == code

    return call


def upload_folder(folder: Path, url: str) -> None:
    """Upload the files of a local folder."""
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with FILES.write(f"{url}/{path.relative_to(folder)}") as file:
                file.write(path.read_bytes())


def download_folder(url: str, folder: Path) -> Path:
    """Download all objects below a URL into a local folder."""
    for remote_file in FILES.walk(url):
        path = folder / remote_file.path.removeprefix(f"{url}/")
        path.parent.mkdir(parents=True, exist_ok=True)
        with FILES.open(remote_file.path) as file:
            path.write_bytes(file.read())
    return folder


def has_no_temporary_objects(proxies: dict[str, ObjectStoreProxy]) -> bool:
    """Return True if no object in the stores has a temporary name."""
    return not [info for proxy in proxies.values() for info in FILES.glob(f"{proxy.store.url}/**/.tmp-*")]


@pytest.fixture(scope="module")
def local_outputs(reference: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Outputs of all steps on the local disk, which the same steps on a store must equal."""
    folder = tmp_path_factory.mktemp("chain")
    outputs = {name: folder / name for name in ("words", "vocabulary", "examples")}
    arguments = ("--input", reference, "--output")
    assert run_beam("run", "shards_to_words", *arguments, outputs["words"]).returncode == 0
    build_vocabulary(outputs["vocabulary"], outputs["words"], options=VOCABULARY_OPTIONS)
    options = (*PRETRAINING_OPTIONS, "--vocab", outputs["vocabulary"])
    assert run_shards_to_pretraining(*arguments, outputs["examples"], *options) == 0
    return {"abstracts": reference, **outputs}


WRITE_REQUESTS = ("PUT", "*")
VOCABULARY_OPTIONS = ("--size", "400", "--algorithm", "wordpiece")
PRETRAINING_OPTIONS = ("--validation-fraction", "0.2", "--max-seq-length", "32", "--max-shard-mb", "1")


@pytest.mark.parametrize(
    ("scheme", "other_scheme"), [("gs", "s3"), pytest.param("az", "gs", marks=NEEDS_AZURITE)]
)
def test_the_whole_chain_gives_the_same_bytes(
    proxies: dict[str, ObjectStoreProxy],
    local_outputs: dict[str, Path],
    tmp_path: Path,
    beam_run: Run,
    scheme: str,
    other_scheme: str,
) -> None:
    """Inputs and outputs are on different stores, an update file is added, and every step has faults."""
    output_url, other_url = (
        f"{proxies[name].store.url}/chain-{scheme}[1]" for name in (scheme, other_scheme)
    )
    source = Path(shutil.copytree(PUBMED_SAMPLE, tmp_path / "sample"))
    update_path = source / "pubmed26n0003.xml"
    update = update_path.read_bytes()
    update_path.unlink()
    upload_folder(source, f"{other_url}/in")
    abstracts_arguments = (
        "--input",
        f"{other_url}/in",
        "--output",
        f"{output_url}/abstracts/",
        "--keep-dropped",
    )
    beam_run("pubmed_to_shards", *abstracts_arguments)
    with FILES.write(f"{other_url}/in/{update_path.name}") as file:
        file.write(update)
    for fault in (UploadReset(100), LostResponse(), ServiceUnavailable()):
        proxies[scheme].schedule_fault(*WRITE_REQUESTS, fault)
    for read_fault in (TruncatedBody(100), ConnectionReset(50), ServiceUnavailable(status=429)):
        proxies[other_scheme].schedule_fault("GET", "*0003.xml*", read_fault)
    beam_run("pubmed_to_shards", *abstracts_arguments)

    proxies[scheme].schedule_fault("GET", "*abstracts/data/*", TruncatedBody(100), times=2)
    proxies[other_scheme].schedule_fault(*WRITE_REQUESTS, UploadReset(10), times=2)
    words_arguments = ("--input", f"{output_url}/abstracts", "--output", f"{other_url}/words")
    beam_run("shards_to_words", *words_arguments)
    words = download_folder(f"{other_url}/words", tmp_path / "words")
    vocabulary = build_vocabulary(tmp_path / "v", words, options=VOCABULARY_OPTIONS)

    proxies[scheme].schedule_fault(*WRITE_REQUESTS, ServiceUnavailable(), times=3)
    examples_arguments = ("--input", f"{output_url}/abstracts", "--output", f"{output_url}/examples")
    beam_run("shards_to_pretraining", *examples_arguments, "--vocab", vocabulary, *PRETRAINING_OPTIONS)

    assert not any(proxy.pending_fault_count() for proxy in proxies.values())
    assert has_no_temporary_objects(proxies)
    for name, url in (("abstracts", output_url), ("examples", output_url), ("words", other_url)):
        assert published_digests(
            download_folder(f"{url}/{name}", tmp_path / f"got-{name}")
        ) == published_digests(local_outputs[name]), name
    for command in (("pubmed_to_shards", *abstracts_arguments), ("shards_to_words", *words_arguments)):
        before = [remote_file.stamp for remote_file in FILES.walk(output_url) + FILES.walk(other_url)]
        beam_run(*command)
        assert before == [remote_file.stamp for remote_file in FILES.walk(output_url) + FILES.walk(other_url)]


def test_mirror_and_output_may_be_on_different_stores(
    proxies: dict[str, ObjectStoreProxy], tmp_path: Path, beam_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files come from fake servers; servers and stores both fail."""
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
    gcs_url, s3_url = (proxies[scheme].store.url for scheme in ("gs", "s3"))
    monkeypatch.setattr(store_options, "STORE_MAX_RETRIES", 1)
    with FakeServer(tmp_path / "servers") as server:
        server.schedule_fault("pubmed/baseline/*2.xml.gz", ServerBusy())
        server.schedule_fault("bucket/PMC1200001.1/*.xml", ServerBusy())
        proxies["s3"].schedule_fault(
            "PUT", "*pubmed26n0001.xml.gz", UploadReset(100), times=3
        )  # more often than the client retries
        proxies["gs"].schedule_fault("GET", "*staged*", TruncatedBody(10))
        pubmed_arguments = ("--input", "pubmed:", "--pubmed-url", f"{server.url}pubmed/", "--output")
        beam_run("pubmed_to_shards", *pubmed_arguments, f"{gcs_url}/fetched", "--mirror", f"{s3_url}/mirror")
        assert not any(proxy.pending_fault_count() for proxy in proxies.values())
        requests_before = len(server.requests_for("*.xml.gz"))
        beam_run(
            "pubmed_to_shards", *pubmed_arguments, f"{gcs_url}/fetched-2", "--mirror", f"{s3_url}/mirror"
        )
        assert len(server.requests_for("*.xml.gz")) == requests_before  # mirrored files are not fetched again
        pmc_arguments = ("--input", "pmc:", "--pmc-url", f"{server.url}bucket/", "--output")
        beam_run("pmc_to_shards", *pmc_arguments, f"{s3_url}/articles", "--mirror", f"{gcs_url}/mirror")
    local = {
        "pubmed_to_shards": tmp_path / "servers/pubmed",
        "pmc_to_shards": download_folder(f"{gcs_url}/mirror", tmp_path / "m"),
    }
    for name, folder in local.items():
        beam_run(name, "--input", folder, "--output", tmp_path / name)
    for name, url in (("pubmed_to_shards", f"{gcs_url}/fetched"), ("pmc_to_shards", f"{s3_url}/articles")):
        digests = published_digests(download_folder(url, tmp_path / f"got-{name}"))
        expected = published_digests(tmp_path / name)
        del digests["manifest.json"], expected["manifest.json"]
        assert digests == expected
        assert any(file.startswith("data/") for file in digests)


@pytest.mark.parametrize(
    ("scheme", "stalled_request"),
    [("gs", ("DELETE", "*/final_reports/*")), ("s3", ("PUT", "*/staged/*"))],
    ids=["gs", "s3"],
)
def test_killed_and_resumed_run_gives_the_same_bytes(
    proxies: dict[str, ObjectStoreProxy],
    reference: Path,
    tmp_path: Path,
    scheme: str,
    stalled_request: tuple[str, str],
) -> None:
    """Kill the run with SIGKILL during a request, then resume with two workers."""
    proxy, url = proxies[scheme], f"{proxies[scheme].store.url}/killed"
    arguments = ["pubmed_to_shards", "--keep-dropped", "--output", url]
    proxy.schedule_fault(*stalled_request, Stall(0, 600))
    kill_when(
        start_beam("run", *arguments, "--workers", 1, *list_store_options(proxies)),
        lambda: not proxy.pending_fault_count(),
    )
    assert not FILES.exists(f"{url}/manifest.json")
    again = ["run", *arguments, "--workers", 2, *list_store_options(proxies)]
    completed = run_beam(*again)
    assert completed.returncode == 2
    assert "run the same command with --force" in completed.stderr
    completed = run_beam(*again, "--force")
    assert completed.returncode == 0, completed.stderr
    assert published_digests(download_folder(url, tmp_path / "got")) == published_digests(reference)
    assert has_no_temporary_objects(proxies)


@pytest.mark.parametrize(
    ("scheme", "file", "is_taken"),
    [
        ("gs", "data/", True),
        ("gs", "manifest.json", False),
        ("disk", "data/", False),
        ("disk", "manifest.json", True),
    ],
)
def test_run_that_has_lost_its_lock_writes_nothing_more(
    proxies: dict[str, ObjectStoreProxy],
    tmp_path: Path,
    beam_run: Run,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    scheme: str,
    file: str,
    is_taken: bool,
) -> None:
    """Its lock is taken over with ``--force``, or removed, when it begins to write a file."""
    folder = tmp_path if scheme == "disk" else proxies[scheme].store.url
    output = OutputDir(f"{folder}/lost-lock-{file.rstrip('/')}-{is_taken}")
    lock_path = output.lock_path + (".json" if scheme == "gs" else "")
    storage_type: type[LocalStorage] = LocalStorage if scheme == "disk" else RemoteStorage
    write, others, listings = storage_type.write, contextlib.ExitStack(), list[object]()

    def list_files() -> list[object]:
        return [FILES.walk(path, with_hidden_files=True) for path in (output.path, output.work_folder)]

    def lose_lock_and_write(self: LocalStorage, path: str) -> contextlib.AbstractContextManager[BinaryIO]:
        if path.startswith(f"{output.path}/{file}") and not listings:
            FILES.remove(lock_path)
            if is_taken:
                others.enter_context(lock_output(FILES, output))
            listings.append(list_files())
        return write(self, path)

    monkeypatch.setattr(storage_type, "write", lose_lock_and_write)
    with others:
        beam_run("pubmed_to_shards", "--output", output.path, code=1)
        stderr = capsys.readouterr().err
        assert "nothing more is written, as" in stderr
        assert ("another run has taken over the lock" if is_taken else "is gone") in stderr
        assert [list_files()] == listings
        assert FILES.exists(lock_path) is is_taken
    monkeypatch.setattr(storage_type, "write", write)
    beam_run("pubmed_to_shards", "--output", output.path)


def test_output_claimed_by_another_run_during_preparation_is_refused(
    proxies: dict[str, ObjectStoreProxy], beam_run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the output would mix shards of two configurations."""
    command = ("pubmed_to_shards", "--output", f"{proxies['gs'].store.url}/overtaken")
    prepare_run, other_options = executor.prepare_run, ["--keep-title-only"]

    def prepare_after_other_run(*arguments: Any) -> None:
        prepare_run(*arguments)
        if other_options:
            beam_run(*command, other_options.pop())

    monkeypatch.setattr(executor, "prepare_run", prepare_after_other_run)
    beam_run(*command, code=2)
    assert "has another configuration" in capsys.readouterr().err
    beam_run(*command, "--keep-title-only")
    assert "nothing to do" in capsys.readouterr().out


def test_overlap_list_is_read_once_per_process(
    proxies: dict[str, ObjectStoreProxy], reference: Path, tmp_path: Path
) -> None:
    """Thousands of shard groups use the list, which may have millions of ids."""
    proxy, folder = proxies["gs"], tmp_path / "full"
    abstracts, full_text = f"{proxy.store.url}/listed", f"{proxy.store.url}/full"
    shards = read_documents_manifest(FILES, str(reference)).outputs
    first_ids = [read_first_id(reference / shard.file) for shard in shards]
    assert len(first_ids) > 1
    rows = [{"id": id_, "full_text_id": "pmc:PMC1.1", "matched_by": "pmid"} for id_ in first_ids]
    batches = [pa.RecordBatch.from_pylist([row], full_text_overlap.OVERLAP_SCHEMA) for row in rows]
    identity = full_text_overlap.digest_abstracts(FILES, str(reference))
    overlap_entry = full_text_overlap.write(
        FILES, str(folder / full_text_overlap.FILE_NAME), str(reference), identity, batches
    )
    put_documents(folder, [], "pmc_to_shards", [overlap_entry])
    upload_folder(reference, abstracts)
    upload_folder(folder, full_text)
    proxy.reset()
    for shard, id_ in zip(shards, first_ids, strict=True):
        assert pretraining_inputs.read_overlap_ids(
            FILES, abstracts, [(full_text, overlap_entry.sha256)], [shard]
        ).to_pylist() == [id_]
    assert (
        len([path for method, path in proxy.requests if method == "GET" and path.endswith("/overlap.arrow")])
        == 1
    )


def read_first_id(shard: Path) -> str:
    id_: str = pq.read_table(shard, columns=["id"])["id"][0].as_py()
    return id_


def test_errors_of_the_progress_monitor_do_not_stop_a_run(
    proxies: dict[str, ObjectStoreProxy], beam_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listed report may be removed before it is read, or a store may not answer."""
    monkeypatch.setattr(executor, "REMOTE_POLL_SECONDS", 0.1)
    errors = itertools.chain(
        [FileNotFoundError("it is gone"), TransientStorageError("silence")], itertools.repeat(None)
    )

    def raise_next_error(_: RunProgress) -> None:
        if error := next(errors):
            raise error

    monkeypatch.setattr(RunProgress, "update", raise_next_error)
    beam_run("pubmed_to_shards", "--output", f"{proxies['gs'].store.url}/unseen")
    assert next(errors) is None


REQUESTS_PER_FILE = {"GET": 16, "HEAD": 0, "LIST": 0, "PUT": 5, "DELETE": 2, "other": 0}
"""Requests by kind for one source file, from staging to publication, without reads of the file.

Before each object that is put or deleted, the lock is got.
"""


@pytest.mark.parametrize("scheme", SCHEMES)
def test_number_of_requests_per_source_file(
    proxies: dict[str, ObjectStoreProxy], tmp_path: Path, beam_run: Run, scheme: str
) -> None:
    request_counts = []
    for file_count in (2, 6):
        source = tmp_path / str(file_count)
        source.mkdir()
        for number in range(file_count):
            sample = (PUBMED_SAMPLE / "pubmed26n0002.xml").read_bytes()
            (source / f"pubmed26n{number:04d}.xml").write_bytes(sample)
        url = f"{proxies[scheme].store.url}/counted-{file_count}"
        proxies[scheme].reset()
        beam_run("pubmed_to_shards", "--input", source, "--output", url)
        request_counts.append(proxies[scheme].count_requests())
    few, many = request_counts
    assert {kind: (many[kind] - few[kind]) / 4 for kind in REQUESTS_PER_FILE} == REQUESTS_PER_FILE
    assert many.keys() <= REQUESTS_PER_FILE.keys()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_unusable_store_is_reported_before_the_run_starts(
    proxies: dict[str, ObjectStoreProxy], beam_run: Run, capsys: Capture, scheme: str
) -> None:
    url, proxy = proxies[scheme].store.url, proxies[scheme]
    for bucket, message in (
        (f"{scheme}://nobody-has-this", f"there is no bucket {scheme}://nobody-has-this"),
        (f"{scheme}://ab", "names no bucket"),
    ):
        beam_run("pubmed_to_shards", "--output", f"{bucket}/out", code=2)
        [line] = capsys.readouterr().err.splitlines()
        assert message in line
    for fault, expected_code, message in (
        (ServiceUnavailable(status=403), 2, "does not allow"),
        (ServiceUnavailable(status=401), 2, "cannot be used"),
        (ServiceUnavailable(), 1, "run the same command again"),
        (ConnectionReset(0), 1, "run the same command again"),
    ):
        proxy.reset()
        proxy.schedule_fault("GET", "*", fault, times=None)
        beam_run("pubmed_to_shards", "--output", f"{url}/out", code=expected_code)
        [line] = capsys.readouterr().err.splitlines()
        assert message in line
        assert len(proxy.requests) == 1  # the request is not retried
    proxy.reset()
    assert FILES.list_names(f"{url}/out") == []


def test_failing_store_of_a_vocabulary_is_a_transient_error(
    proxies: dict[str, ObjectStoreProxy],
    local_outputs: dict[str, Path],
    tmp_path: Path,
    beam_run: Run,
    capsys: Capture,
) -> None:
    url = f"{proxies['s3'].store.url}/vocabulary"
    upload_folder(local_outputs["vocabulary"], url)
    proxies["s3"].schedule_fault("GET", "*vocabulary/tokenizer.json*", ServiceUnavailable(), times=None)
    arguments = ("--input", local_outputs["abstracts"], "--output", tmp_path / "out", "--vocab", url)
    beam_run("shards_to_pretraining", *arguments, *PRETRAINING_OPTIONS, code=1)
    assert "run the same command again" in capsys.readouterr().err


def test_unreachable_and_invalid_endpoints_are_reported(
    proxies: dict[str, ObjectStoreProxy], beam_run: Run, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    unreachable_url = f"http://127.0.0.1:{find_free_port()}"
    s3_arguments = ("--output", "s3://bucket/out", "--s3_secret_access_key=hunter2", "--s3_access_key_id=x")
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", unreachable_url)
    for arguments in (
        ("--output", "gs://bucket/out"),
        (*s3_arguments, f"--s3_endpoint_url={unreachable_url}"),
    ):
        code = cli.main(["run", "pubmed_to_shards", *arguments])
        stderr = capsys.readouterr().err
        assert code == 1, stderr
        assert "run the same command again" in stderr
        assert "hunter2" not in stderr
    assert cli.main(["run", "pubmed_to_shards", *s3_arguments, "--s3_endpoint_url=nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err


def test_missing_credentials_are_reported(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (
        "STORAGE_EMULATOR_HOST",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "AWS_ACCESS_KEY_ID",
        "AWS_PROFILE",
        "AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_CONNECTION_STRING",
    ):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "CLOUDSDK_CONFIG"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    messages = {
        "gs": "gcloud auth application-default login",
        "s3": "AWS_ACCESS_KEY_ID",
        "az": "AZURE_STORAGE_ACCOUNT_NAME",
    }
    for scheme, message in messages.items():
        assert cli.main(["run", "pubmed_to_shards", "--output", f"{scheme}://bucket/out"]) == 2
        assert message in capsys.readouterr().err
