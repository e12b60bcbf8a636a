"""Tests of jobs on a fake Dataflow: the wheel on workers, failures, interruption, refusal, settings."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from apache_beam.internal import pickler
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.dataflow import dataflow_runner

from bioshards.pipelines import cli
from bioshards.pipelines.context import JobSpec
from bioshards.pipelines.dataflow import settings
from bioshards.pipelines.inputs import downloads
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions, open_store
from tests.support.cloud import fake_dataflow, store_emulators
from tests.support.cloud.fake_dataflow import FakeDataflow
from tests.support.cloud.store_emulators import EmulatedStore
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.distributions import build_distributions
from tests.support.outputs import published_digests, remove_run_facts
from tests.support.paths import PUBMED_SAMPLE
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.tiny_tokenizers import save_character_vocabulary

pytestmark = pytest.mark.thorough  # this file takes minutes

Capture = pytest.CaptureFixture[str]
PRETRAINING_OPTIONS = ("--objective", "bert", "--max-seq-length", "64", "--validation-fraction", "0.2")


@pytest.fixture(scope="module")
def store() -> Iterator[EmulatedStore]:
    with store_emulators.run_gcs() as store:
        yield store


@pytest.fixture(autouse=True)
def use_fake_store_and_short_polls(store: EmulatedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use the emulated store instead of Google's, and let Beam poll more often than every 5 seconds."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    open_store.cache_clear()
    sleep = time.sleep
    short_time = SimpleNamespace(sleep=lambda seconds: sleep(min(seconds, 0.7)), time=time.time)
    monkeypatch.setattr(dataflow_runner, "time", short_time)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_distributions(tmp_path_factory.mktemp("dist"))[1]


@pytest.fixture
def service(store: EmulatedStore, wheel: Path, tmp_path: Path) -> Iterator[FakeDataflow]:
    with fake_dataflow.run_fake_dataflow(tmp_path / "machines", store, wheel) as service:
        yield service


@pytest.fixture(scope="module")
def citations(store: EmulatedStore) -> str:
    """The sample's citations, in the store."""
    os.environ.update(store.environment)
    for path in PUBMED_SAMPLE.iterdir():
        _upload_object(store, f"citations/{path.name}", path.read_bytes())
    return f"{store.url}/citations"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_character_vocabulary(tmp_path_factory.mktemp("vocabulary"))


def _upload_object(store: EmulatedStore, name: str, data: bytes) -> None:
    bucket = store.url.removeprefix("gs://")
    url = f"{store.endpoint}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={urllib.parse.quote(name)}"
    urllib.request.urlopen(urllib.request.Request(url, data=data, method="POST")).close()


def digest_remote(url: str) -> dict[str, str]:
    """Return the SHA-256 of published files, without the facts on the run and the paths of its inputs."""
    storage, digests = RemoteStorage(StoreOptions()), {}
    for info in storage.walk(url):
        name = info.path.removeprefix(f"{url}/")
        with storage.open(info.path) as file:
            digests[name] = hashlib.sha256(remove_run_facts(name, file.read())).hexdigest()
    return digests


# Successful jobs


@pytest.mark.timeout(600)
def test_jobs_run_on_the_wheel_and_publish_the_same_bytes(
    store: EmulatedStore,
    service: FakeDataflow,
    citations: str,
    vocabulary: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    abstracts, examples = f"{store.url}/abstracts", f"{store.url}/examples"
    abstracts_command = ("run", "pubmed_to_shards", "--keep-dropped", "--output")
    assert cli.main([*abstracts_command, abstracts, "--input", citations, *service.options]) == 0
    captured = capsys.readouterr()
    job, *others = service.jobs
    assert f"job {job} is on Dataflow as bioshards-pubmed-to-shards-" in captured.err
    assert f"dataflow/jobs/us-central1/{job}?project=bioshards-test" in captured.err
    assert "77 documents" in captured.out
    assert f"shards:   {abstracts}" in captured.out
    assert not others

    # Workers imported the staged package.
    assert service.results[job]["from"] == [str(service.folder / job / "package")]

    assert cli.main([*abstracts_command, str(tmp_path / "abstracts"), "--workers", "1"]) == 0
    assert digest_remote(abstracts) == published_digests(tmp_path / "abstracts")

    options = ("--vocab", str(vocabulary), *PRETRAINING_OPTIONS)
    examples_command = ("run", "shards_to_pretraining", *options, "--output")
    assert cli.main([*examples_command, examples, "--input", abstracts, *service.options]) == 0
    local_arguments = (str(tmp_path / "examples"), "--input", str(tmp_path / "abstracts"), "--workers", "1")
    assert cli.main([*examples_command, *local_arguments]) == 0
    assert digest_remote(examples) == published_digests(tmp_path / "examples")


# Failed, refused and interrupted jobs


def test_failed_job_is_reported_with_cause_and_page(
    store: EmulatedStore, service: FakeDataflow, citations: str, capsys: Capture
) -> None:
    service.failure_message = 'Traceback (most recent call last):\n  File "x.py"\nValueError: no such thing'
    arguments = ("run", "pubmed_to_shards", "--input", citations, "--output", f"{store.url}/failed")
    assert cli.main([*arguments, *service.options]) == 1
    [job] = service.jobs
    page = f"https://console.cloud.google.com/dataflow/jobs/us-central1/{job}?project=bioshards-test"
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"beam: job {job} failed: ValueError: no such thing. Completed work is kept; run the same command "
        f"again to continue. {page} shows where it failed"
    )


def test_missing_temp_bucket_is_refused_before_writing(
    store: EmulatedStore, service: FakeDataflow, citations: str, capsys: Capture
) -> None:
    arguments = ("run", "pubmed_to_shards", "--input", citations, "--output", f"{store.url}/misspelt")
    assert cli.main([*arguments, *service.options, "--temp_location=gs://no-such-bucket/tmp"]) == 2
    assert "there is no bucket gs://no-such-bucket" in capsys.readouterr().err
    assert not RemoteStorage(StoreOptions()).list_names(f"{store.url}/misspelt/.bioshards")
    assert not service.jobs


def test_interrupted_driver_leaves_the_job_running_and_a_second_run_is_refused(
    store: EmulatedStore,
    service: FakeDataflow,
    citations: str,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.jobs_released.clear()
    output = f"{store.url}/left"
    arguments = ["run", "pubmed_to_shards", "--input", citations, "--output", output, *service.options]

    def interrupt_main_thread() -> None:
        service.messages_requested.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def raise_system_exit(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", raise_system_exit)
    threading.Thread(target=interrupt_main_thread, daemon=True).start()
    with pytest.raises(SystemExit) as raised:
        cli.main(arguments)
    assert raised.value.code == 130
    [job] = service.jobs
    stderr = capsys.readouterr().err
    cancel_command = f"gcloud dataflow jobs cancel {job} --region=us-central1 --project=bioshards-test"
    assert f"job {job} GOES ON at Dataflow, and costs" in stderr
    assert f"It is finished when {output}/manifest.json is there" in stderr
    assert f"dataflow/jobs/us-central1/{job}?project=bioshards-test" in stderr
    assert f"To stop it: {cancel_command}" in stderr

    before = digest_remote(output)
    assert cli.main(arguments) == 2
    assert f"job {job} is writing {output} on Dataflow" in (stderr := capsys.readouterr().err)
    assert cancel_command in stderr
    assert list(service.jobs) == [job]
    assert digest_remote(output) == before


def test_denied_job_listing_stops_the_run_before_writing(
    store: EmulatedStore, service: FakeDataflow, citations: str, capsys: Capture
) -> None:
    service.refusal_message = "Dataflow API has not been used in project bioshards-test"
    output = f"{store.url}/unasked"
    arguments = ["run", "pubmed_to_shards", "--input", citations, "--output", output, *service.options]
    assert cli.main(arguments) == 1
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 1
    assert f"whether a job is writing {output} already" in stderr
    assert service.refusal_message in stderr
    assert "Nothing was begun" in stderr
    assert "was done is kept" not in stderr
    assert not RemoteStorage(StoreOptions()).is_folder(output)
    assert not service.jobs


# What a job says


@pytest.fixture(scope="module")
def abstracts(store: EmulatedStore, citations: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample's documents, in the store."""
    folder = tmp_path_factory.mktemp("abstracts")
    assert cli.main(["run", "pubmed_to_shards", "--workers", "1", "--output", str(folder)]) == 0
    for path in [*folder.glob("*.json"), *folder.glob("*.arrow")]:
        _upload_object(store, f"documents/{path.name}", path.read_bytes())
    return f"{store.url}/documents"


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeServer]:
    root = tmp_path_factory.mktemp("servers")
    files = {f"pubmed26n{number:04d}.xml.gz": pubmed_set_xml(citation_xml(number)) for number in range(1, 8)}
    create_pubmed_server(root, files, {})
    create_bucket(root / "bucket", [FakeArticle(1200001)], "2026-09-01")
    with FakeServer(root) as server:
        yield server


@pytest.mark.parametrize(
    ("pipeline", "workers"),
    [
        ("pubmed_to_shards", 2),
        ("pmc_to_shards", 1),
        ("shards_to_words", 1),
        ("shards_to_pretraining", 1),
        ("fetch", 1),
    ],
)
def test_job_of_every_pipeline_has_the_default_settings(
    store: EmulatedStore,
    service: FakeDataflow,
    servers: FakeServer,
    abstracts: str,
    vocabulary: Path,
    pipeline: str,
    workers: int,
) -> None:
    output = f"{store.url}/{pipeline}/out"
    service.failure_message = "the job is looked at, and not run"
    arguments = {
        "pubmed_to_shards": ["--input", "pubmed:", "--pubmed-url", f"{servers.url}pubmed/"],
        "pmc_to_shards": ["--input", "pmc:", "--pmc-url", f"{servers.url}bucket/"],
        "shards_to_words": ["--input", abstracts],
        "shards_to_pretraining": ["--input", abstracts, "--vocab", str(vocabulary), *PRETRAINING_OPTIONS],
        "fetch": ["--input", "pubmed:", "--pubmed-url", f"{servers.url}pubmed/", "--mirror", output],
    }[pipeline]
    arguments += [] if pipeline == "fetch" else ["--output", output]

    assert cli.main(["run", pipeline, *arguments, *service.options]) == 1
    [job] = service.jobs.values()
    [pool] = job["environment"]["workerPools"]
    assert pool["machineType"] == settings.MACHINE_TYPE
    assert pool["diskSizeGb"] == settings.DISK_SIZE_GB
    assert pool["numThreadsPerWorker"] == 1
    assert pool["autoscalingSettings"]["maxNumWorkers"] == workers
    assert pool["sdkHarnessContainerImages"][0]["containerImage"].endswith("_sdk:2.77.0")
    assert "use_multiple_sdk_containers" in job["environment"]["experiments"]
    assert job["labels"] == {"bioshards": "0-2-0", "pipeline": pipeline}
    assert job["name"] == settings.make_job_name(JobSpec(pipeline, output, 1))
    staged = {package["name"] for package in pool["packages"]}
    assert staged == {service.wheel.name, "extra_packages.txt", "requirements.txt"}
    if pipeline in ("pubmed_to_shards", "fetch"):
        _assert_downloads_are_bounded(RemoteStorage(StoreOptions()), job)


def _assert_downloads_are_bounded(files: RemoteStorage, job: dict[str, Any]) -> None:
    """Assert that the download step has one element for each slot, after a Reshuffle, and cannot be split."""
    with files.open(job["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]) as file:
        graph = beam_runner_api_pb2.Pipeline.FromString(file.read()).components
    leaves = [step for step in graph.transforms.values() if not step.subtransforms]
    [step] = [leaf for leaf in leaves if leaf.unique_name.startswith("fetch pubmed")]
    assert not _parse_par_do(step).restriction_coder_id
    upstream = []
    while step.inputs:
        side_inputs = _parse_par_do(step).side_inputs if "pardo" in step.spec.urn else ()
        [source] = [collection for name, collection in step.inputs.items() if name not in side_inputs]
        [step] = [leaf for leaf in leaves if source in leaf.outputs.values()]
        upstream.append(step)
    assert "beam:transform:group_by_key:v1" in [upstream_step.spec.urn for upstream_step in upstream]
    elements = pickler.loads(_parse_par_do(upstream[-2]).do_fn.payload)[0].process(b"")
    assert len(list(elements)) == downloads.REMOTE_SLOTS


def _parse_par_do(step: Any) -> Any:
    return beam_runner_api_pb2.ParDoPayload.FromString(step.spec.payload)
