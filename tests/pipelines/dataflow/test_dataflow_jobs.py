"""Jobs on Dataflow, by a stand-in for it: run with the staged wheel, left, refused, failed, described."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
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

from bioshards.pipelines import cli, pubmed_to_shards
from bioshards.pipelines.context import JobSpec
from bioshards.pipelines.dataflow import settings
from bioshards.pipelines.execution import local_runner
from bioshards.pipelines.inputs import downloads
from bioshards.pipelines.storage.routed import RoutedStorage
from tests.support.cloud import fake_dataflow, store_emulators
from tests.support.cloud.fake_dataflow import FakeDataflow
from tests.support.cloud.store_emulators import EmulatedStore
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server
from tests.support.vocab.block_factories import save_encoder
from tests.support.vocab.tiny_tokenizers import make_wordpiece

Capture = pytest.CaptureFixture[str]
SPLIT = (
    "--objective",
    "bert",
    "--max-seq-length",
    "64",
    "--validation-fraction",
    "0.2",
    "--shuffle",
    "global",
)


@pytest.fixture(scope="module")
def store() -> Iterator[EmulatedStore]:
    with store_emulators.run_gcs() as store:
        yield store


@pytest.fixture(autouse=True)
def reached(store: EmulatedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """The store is where Google's is looked for; and Beam, which looks every 5 seconds, looks more often."""
    for name, value in store.environment.items():
        monkeypatch.setenv(name, value)
    sleep = time.sleep
    quickly = SimpleNamespace(sleep=lambda seconds: sleep(min(seconds, 0.7)), time=time.time)
    monkeypatch.setattr(dataflow_runner, "time", quickly)


@pytest.fixture
def service(store: EmulatedStore, tmp_path: Path) -> Iterator[FakeDataflow]:
    with fake_dataflow.run_fake_dataflow(tmp_path / "machines", store) as service:
        yield service


@pytest.fixture(scope="module")
def citations(store: EmulatedStore) -> str:
    """The sample's citations, in the store."""
    os.environ.update(store.environment)
    for path in Path(pubmed_to_shards.sample_folder()).iterdir():
        _put(store, f"citations/{path.name}", path.read_bytes())
    return f"{store.url}/citations"


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vocabulary of single characters, which knows every English word."""
    folder = tmp_path_factory.mktemp("vocabulary")
    characters = [chr(code) for code in range(33, 127)]
    save_encoder(folder, make_wordpiece(*characters, *(f"##{character}" for character in characters)))
    return folder


def _put(store: EmulatedStore, name: str, data: bytes) -> None:
    bucket = store.url.removeprefix("gs://")
    where = (
        f"{store.endpoint}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={urllib.parse.quote(name)}"
    )
    urllib.request.urlopen(urllib.request.Request(where, data=data, method="POST")).close()


def published(folder: str | Path) -> dict[str, str]:
    """SHA-256 of what a run publishes; of the manifest, what is not about this run or where it read."""
    storage, found = RoutedStorage(), {}
    for there in storage.walk(str(folder)):
        name = there.path[len(str(folder)) + 1 :]
        if name.startswith(".bioshards"):
            continue
        with storage.open(there.path) as file:
            data = file.read()
        if name == "manifest.json":
            manifest = json.loads(data)
            del manifest["run"]
            for read in manifest["inputs"]:
                read.pop("path", None)
                read.pop("folder", None)
            data = json.dumps(manifest).encode()
        found[name] = hashlib.sha256(data).hexdigest()
    return found


# To the end


@pytest.mark.timeout(600)
def test_jobs_run_on_the_staged_wheel_and_publish_the_same_bytes(
    store: EmulatedStore,
    service: FakeDataflow,
    citations: str,
    vocabulary: Path,
    tmp_path: Path,
    capsys: Capture,
) -> None:
    abstracts, examples = f"{store.url}/abstracts", f"{store.url}/examples"
    words = ("run", "pubmed_to_shards", "--keep-dropped", "--output")
    assert cli.main([*words, abstracts, "--input", citations, *service.options]) == 0
    said = capsys.readouterr()
    job, *others = service.jobs
    assert f"job {job} is on Dataflow as bioshards-pubmed-to-shards-" in said.err
    assert f"dataflow/jobs/us-central1/{job}?project=bioshards-test" in said.err
    assert "77 documents" in said.out
    assert f"shards:   {abstracts}" in said.out
    assert not others

    # The package that did it came with the job.
    python = service.python_of_job(job)
    [whence] = service.results[job]["from"]
    assert Path(whence).is_relative_to(python.parent.parent)

    assert cli.main([*words, str(tmp_path / "abstracts"), "--workers", "1"]) == 0
    assert published(abstracts) == published(tmp_path / "abstracts")

    made = ("run", "shards_to_pretraining", "--vocab", str(vocabulary), *SPLIT, "--output")
    assert cli.main([*made, examples, "--input", abstracts, *service.options]) == 0
    job = list(service.jobs)[1]
    assert Path(service.results[job]["from"][0]).is_relative_to(service.python_of_job(job).parent.parent)
    here = (str(tmp_path / "examples"), "--input", str(tmp_path / "abstracts"), "--workers", "1")
    assert cli.main([*made, *here]) == 0
    assert published(examples) == published(tmp_path / "examples")

    # The next machine's wheel would be the same, made of the one that is installed there.
    staged = python.parent.parent.parent / "bioshards-0.1.0-py3-none-any.whl"
    again = (
        "import sys; from bioshards.pipelines.dataflow import wheel; "
        "wheel.build_wheel(sys.argv[1], wheel.pin_versions((), (), {}))"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([python, "-c", again, tmp_path], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / staged.name).read_bytes() == staged.read_bytes()


# Not to the end


def test_a_job_that_fails_says_why_and_where(
    store: EmulatedStore, service: FakeDataflow, citations: str, capsys: Capture
) -> None:
    service.failure_message = 'Traceback (most recent call last):\n  File "x.py"\nValueError: no such thing'
    words = ("run", "pubmed_to_shards", "--input", citations, "--output", f"{store.url}/failed")
    assert cli.main([*words, *service.options]) == 1
    [job] = service.jobs
    page = f"https://console.cloud.google.com/dataflow/jobs/us-central1/{job}?project=bioshards-test"
    assert capsys.readouterr().err.splitlines()[-1] == (
        f"beam: job {job} failed: ValueError: no such thing. Completed work is kept; run the same command "
        f"again to continue. {page} shows where it failed"
    )


def test_a_bucket_for_the_jobs_files_that_is_not_there_is_said_before_anything_is_begun(
    store: EmulatedStore, service: FakeDataflow, citations: str, capsys: Capture
) -> None:
    words = ("run", "pubmed_to_shards", "--input", citations, "--output", f"{store.url}/misspelt")
    assert cli.main([*words, *service.options, "--temp_location=gs://no-such-bucket/tmp"]) == 2
    assert "there is no bucket gs://no-such-bucket" in capsys.readouterr().err
    assert not RoutedStorage().list_names(f"{store.url}/misspelt/.bioshards")
    assert not service.jobs


def test_who_leaves_is_told_that_the_job_goes_on_and_nobody_starts_a_second(
    store: EmulatedStore,
    service: FakeDataflow,
    citations: str,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service.jobs_released.clear()
    output = f"{store.url}/left"
    words = ["run", "pubmed_to_shards", "--input", citations, "--output", output, *service.options]

    def interrupt() -> None:
        while not service.jobs:
            time.sleep(0.01)
        time.sleep(0.2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def end(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(local_runner, "_kill_descendants", lambda _: None)  # the store is one
    monkeypatch.setattr(os, "_exit", end)
    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(SystemExit) as left:
        cli.main(words)
    assert left.value.code == 130
    [job] = service.jobs
    said = capsys.readouterr().err
    stop = f"gcloud dataflow jobs cancel {job} --region=us-central1 --project=bioshards-test"
    assert f"job {job} GOES ON at Dataflow, and costs" in said
    assert f"It is finished when {output}/manifest.json is there" in said
    assert f"dataflow/jobs/us-central1/{job}?project=bioshards-test" in said
    assert f"To stop it: {stop}" in said

    before = published(output)
    assert cli.main(words) == 2
    assert f"job {job} is writing {output} on Dataflow" in (said := capsys.readouterr().err)
    assert stop in said
    assert list(service.jobs) == [job]
    assert published(output) == before


def test_who_may_not_ask_for_the_jobs_is_told_that_nothing_was_begun(
    store: EmulatedStore, service: FakeDataflow, citations: str, capsys: Capture
) -> None:
    service.refusal_message = "Dataflow API has not been used in project bioshards-test"
    output = f"{store.url}/unasked"
    words = ["run", "pubmed_to_shards", "--input", citations, "--output", output, *service.options]
    assert cli.main(words) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert f"whether a job is writing {output} already" in said
    assert service.refusal_message in said
    assert "Nothing was begun" in said
    assert "was done is kept" not in said
    assert not RoutedStorage().is_folder(output)
    assert not service.jobs


# Only described


@pytest.fixture(scope="module")
def abstracts(store: EmulatedStore, citations: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The sample's documents, in the store."""
    folder = tmp_path_factory.mktemp("abstracts")
    assert cli.main(["run", "pubmed_to_shards", "--workers", "1", "--output", str(folder)]) == 0
    for path in [*folder.glob("*.json"), *folder.glob("*.arrow")]:
        _put(store, f"documents/{path.name}", path.read_bytes())
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
def test_every_pipeline_can_be_a_template(
    store: EmulatedStore,
    servers: FakeServer,
    abstracts: str,
    vocabulary: Path,
    capsys: Capture,
    pipeline: str,
    workers: int,
) -> None:
    """Without credentials, and with nothing of Dataflow's there."""
    output, template = f"{store.url}/{pipeline}/out", f"{store.url}/{pipeline}/template.json"
    words = {
        "pubmed_to_shards": ["--input", "pubmed:", "--pubmed-url", f"{servers.url}pubmed/"],
        "pmc_to_shards": ["--input", "pmc:", "--pmc-url", f"{servers.url}bucket/"],
        "shards_to_words": ["--input", abstracts],
        "shards_to_pretraining": ["--input", abstracts, "--vocab", str(vocabulary), *SPLIT],
        "fetch": ["--input", "pubmed:", "--pubmed-url", f"{servers.url}pubmed/", "--mirror", output],
    }[pipeline]
    words += [] if pipeline == "fetch" else ["--output", output]
    words += ["--runner=DataflowRunner", f"--project={fake_dataflow.PROJECT}", "--region=us-central1"]
    words += [f"--temp_location={store.url}/tmp", *store.options, "--dataflow_endpoint=http://localhost:1"]
    words += ["--experiments=disable_logging_submission_environment"]  # a second of pip freeze

    assert cli.main(["run", pipeline, *words, f"--template_location={template}"]) == 0
    said = capsys.readouterr().out
    assert f"template: {template}\nNothing runs yet. To start it: gcloud dataflow jobs run bioshards-" in said
    job = RoutedStorage().read_json(template)
    [pool] = job["environment"]["workerPools"]
    assert pool["machineType"] == settings.DEFAULTS.machine_type
    assert pool["diskSizeGb"] == settings.DEFAULTS.disk_size_gb
    assert pool["numThreadsPerWorker"] == 1
    assert pool["autoscalingSettings"]["maxNumWorkers"] == workers
    assert pool["sdkHarnessContainerImages"][0]["containerImage"].endswith("_sdk:2.77.0")
    assert "use_multiple_sdk_containers" in job["environment"]["experiments"]
    assert job["labels"] == {"bioshards": "0-1-0", "pipeline": pipeline}
    assert job["name"] == settings.make_job_name(JobSpec(pipeline, output, 1))
    staged = {package["name"] for package in pool["packages"]}
    assert staged == {"bioshards-0.1.0-py3-none-any.whl", "extra_packages.txt"}
    if pipeline in ("pubmed_to_shards", "fetch"):
        _is_bounded(RoutedStorage(), job)


def _is_bounded(files: RoutedStorage, job: dict[str, Any]) -> None:
    """What downloads gets an element for each lane, from behind a Reshuffle, which Dataflow cannot split."""
    with files.open(job["environment"]["sdkPipelineOptions"]["options"]["pipelineUrl"]) as file:
        graph = beam_runner_api_pb2.Pipeline.FromString(file.read()).components
    leaves = [step for step in graph.transforms.values() if not step.subtransforms]
    [step] = [leaf for leaf in leaves if leaf.unique_name.endswith(("/FetchAndStage", "/Fetch"))]
    assert not _par_do(step).restriction_coder_id
    before = []
    while step.inputs:
        [source] = step.inputs.values()
        [step] = [leaf for leaf in leaves if source in leaf.outputs.values()]
        before.append(step)
    assert "beam:transform:group_by_key:v1" in [each.spec.urn for each in before]
    made = pickler.loads(_par_do(before[-2]).do_fn.payload)[0].process(b"")
    assert len(list(made)) == downloads.REMOTE_SLOTS


def _par_do(step: Any) -> Any:
    return beam_runner_api_pb2.ParDoPayload.FromString(step.spec.payload)
