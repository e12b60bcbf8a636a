"""Tests of runs on job services, as Flink, Spark and Prism have: checks, same bytes, jobs that go on."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.output.work_files import write_report
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines import steps
from bioshards.pipelines.context import RunContext
from bioshards.pipelines.dataflow import job_status
from bioshards.pipelines.execution import job_service
from tests.support.cloud.portable_runner import PRISM, run_portable_services
from tests.support.fork_server import run_beam
from tests.support.outputs import published_digests
from tests.support.paths import PUBMED_SAMPLE

Run = Callable[..., int]
Capture = pytest.CaptureFixture[str]

NEEDS_PRISM = pytest.mark.skipif(
    PRISM is None, reason="no Prism: go install github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Options of a run on Beam's job service and a worker pool."""
    with run_portable_services(tmp_path_factory.mktemp("staging")) as options:
        yield options


class FlinkOverview(BaseHTTPRequestHandler):
    """What Flink's REST interface says of its slots."""

    def do_GET(self) -> None:
        body = json.dumps({"slots-total": 8, "slots-available": 2}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Stay quiet."""


# Before a run


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--runner=PortableRunner"], 2, "needs --job_endpoint=HOST:PORT"),
        (
            ["--runner=PortableRunner", "--job_endpoint=localhost:1"],
            1,
            "at localhost:1 does not answer. Look at",
        ),
        (
            ["--runner=FlinkRunner", "--flink_master=h:8081"],
            2,
            "--environment_type is not given: it says where",
        ),
        (["--runner=SparkRunner", "--spark_master_url=spark://h:7077"], 2, "--environment_type is not given"),
        (
            ["--runner=PrismRunner", "--environment_type=EXTERNAL", "--environment_config=localhost:1"],
            1,
            "no worker pool answers at --environment_config=localhost:1 (Connection refused). Start one",
        ),
    ],
)
def test_what_a_job_needs_is_checked_before_anything_is_written(
    arguments: list[str],
    code: int,
    message: str,
    run: Run,
    capsys: Capture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_service, "TIMEOUT_SECONDS", 0.1)
    assert run("--output", tmp_path / "out", *arguments) == code
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_pool_on_the_machines_of_a_cluster_is_not_looked_for_here(capsys: Capture) -> None:
    """The command may run on a machine that is none of the cluster's."""
    arguments = ("--runner=PortableRunner", "--job_endpoint=cluster:8099", "--environment_type=EXTERNAL")
    options = PipelineOptions([*arguments, "--environment_config=localhost:1"])
    job_service._check_environment(RunContext(True, False, options, LocalStorage(), ()))
    assert "notice: on this machine no worker pool answers at" in capsys.readouterr().err


def test_parallelism_is_the_number_of_free_slots_of_flink(run: Run, capsys: Capture, tmp_path: Path) -> None:
    server = HTTPServer(("localhost", 0), FlinkOverview)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    master = f"localhost:{server.server_port}"
    arguments = ("--runner=FlinkRunner", f"--flink_master={master}", "--environment_type=PROCESS")
    assert run("--output", tmp_path / "out", *arguments, "--flink_job_server_jar=/missing") == 1
    server.shutdown()
    error = capsys.readouterr().err
    assert f"notice: --parallelism=2: {master} has 2 free slots, for 3 items" in error
    assert "the run failed: Unable to parse jar URL" in error


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Traceback:\n  File x\nValueError: no room [while running 'Stage']\n", "ValueError: no room"),
        (
            "<_MultiThreadedRendezvous of RPC that terminated with:\n\tstatus = StatusCode.UNAVAILABLE\n"
            '\tdetails = "Socket closed"\n\tdebug_error_string = "UNKNOWN: x"\n>',
            "Socket closed",
        ),
        (
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.\n"
            "org.apache.spark.SparkContext.assertNotStopped(SparkContext.scala:1)\n"
            "java.base/java.lang.Thread.run(Thread.java:840)",
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext",
        ),
        (
            "java.lang.RuntimeException: job\n\tat a.B.c(B.java:1)\nCaused by: java.io.IOException: one\n"
            "\tat a.B.c(B.java:2)\nCaused by: java.net.ConnectException: Connection refused\n\t... 3 more\n",
            "java.net.ConnectException: Connection refused",
        ),
    ],
)
def test_the_reason_is_the_line_that_says_what_failed(text: str, reason: str) -> None:
    assert job_status.find_reason(text) == reason


# Runs


def test_worker_of_another_version_is_named(
    run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "__version__", "0.0.1")
    assert run("--output", tmp_path / "out") == 1
    assert "a worker has bioshards 0.0.1, and the command that started the job has" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_two_jobs_share_a_pool(services: list[str], reference: Path, tmp_path: Path) -> None:
    """Each job counts its workers from 1: the end of one must not stop those of the other."""
    results = []

    def run_job(output: Path) -> None:
        results.append(
            run_beam("run", "pubmed_to_shards", "--keep-dropped", "--output", output, *services).returncode
        )

    outputs = (tmp_path / "one", tmp_path / "two")
    jobs = [threading.Thread(target=run_job, args=(output,)) for output in outputs]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    assert results == [0, 0]
    for output in outputs:
        assert published_digests(output) == published_digests(reference)
        assert not (output / ".bioshards" / "job.json").exists()


@NEEDS_PRISM
@pytest.mark.thorough
@pytest.mark.timeout(300)
@pytest.mark.parametrize("runner", ["own", "service"])
def test_prism_gives_the_same_bytes(runner: str, reference: Path, full_text: Path, tmp_path: Path) -> None:
    with run_portable_services(tmp_path, prism=PRISM) as options:
        if runner == "own":
            options = ["--runner=PrismRunner", f"--prism_location={PRISM}"]
        for pipeline, expected in (("pubmed_to_shards", reference), ("pmc_to_shards", full_text)):
            output = tmp_path / pipeline
            completed = run_beam("run", pipeline, "--keep-dropped", "--output", output, *options)
            assert completed.returncode == 0, completed.stderr
            assert published_digests(output) == published_digests(expected)


@NEEDS_PRISM
@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_killed_service_ends_the_command_with_a_message(tmp_path: Path) -> None:
    """The workers are threads of the command, which wait for the service."""
    inputs, output = tmp_path / "inputs", tmp_path / "out"
    inputs.mkdir()
    for number in range(1, 61):
        shutil.copy(PUBMED_SAMPLE / "pubmed26n0001.xml", inputs / f"pubmed26n{number:04d}.xml")
    program = [sys.executable, "-m", "bioshards", "run", "pubmed_to_shards"]
    command = [*program, "--input", str(inputs), "--output", str(output)]
    with run_portable_services(tmp_path, prism=PRISM) as options:
        process = subprocess.Popen(
            [*command, *options[:2], "--environment_type=LOOPBACK"], stderr=subprocess.PIPE, text=True
        )
        while not list(output.glob(".bioshards/staged/*")):
            assert process.poll() is None
            time.sleep(0.05)
    error = process.communicate()[1]
    assert process.returncode == 1, error
    assert " is gone (" in error.splitlines()[-1]
    again = subprocess.run([*command, "--force"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr


# Jobs that outlive their command


def test_output_of_a_job_whose_service_is_gone_is_not_written_by_a_second_one(
    run: Run, capsys: Capture, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_service, "TIMEOUT_SECONDS", 0.1)
    assert run("--output", tmp_path) == 0
    record = tmp_path / ".bioshards" / "job.json"
    cases: list[tuple[str, list[str], int]] = [
        ("2099-01-01T00:00:00Z", [], 2),
        ("2099-01-01T00:00:00Z", ["--force"], 0),
        ("2001-01-01T00:00:00Z", [], 0),
    ]
    for submitted_at, arguments, code in cases:
        job = {"job_id": "job-7", "job_endpoint": "localhost:1", "submitted_at": submitted_at}
        write_report(LocalStorage(), str(record), job)
        capsys.readouterr()
        assert run("--output", tmp_path, *arguments) == code
        assert record.exists() == (code != 0)
        assert ("job job-7 may be writing" in capsys.readouterr().err) == (code != 0)


@pytest.mark.thorough
@pytest.mark.timeout(300)
def test_job_that_goes_on_holds_its_output(reference: Path, tmp_path: Path) -> None:
    """The job waits for a worker pool that takes the call and never answers."""
    silent_pool = socket.create_server(("localhost", 0))
    output = tmp_path / "out"
    program = [sys.executable, "-m", "bioshards", "run", "pubmed_to_shards", "--keep-dropped"]
    with silent_pool, run_portable_services(tmp_path) as options:
        pool = f"--environment_config=localhost:{silent_pool.getsockname()[1]}"
        command = [*program, "--output", str(output), *options[:-1], pool]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        while not (output / ".bioshards" / "job.json").exists():
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        error = process.communicate()[1]
        assert process.returncode == 130
        assert "this command no longer waits; job" in error
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        assert again.returncode == 2
        assert f"is writing {output} (" in again.stderr
    arguments = ("--keep-dropped", "--output", output, "--force")
    assert run_beam("run", "pubmed_to_shards", *arguments).returncode == 0
    assert published_digests(output) == published_digests(reference)
