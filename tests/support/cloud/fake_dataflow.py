"""A fake of Google Cloud Dataflow on this machine, with the part of its interface that Beam's client uses.

    with run_fake_dataflow(folder, store, wheel) as service:
        run_beam("run", ..., *service.options)

It accepts a job as the service does.  Its worker downloads the staged files, unpacks the wheel into a folder,
and runs the staged pipeline with the package of that folder in place of this checkout's.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support.cloud.store_emulators import EmulatedStore

WORKER_SCRIPT = Path(__file__).parent / "fake_dataflow_worker.py"
PROJECT, REGION = "bioshards-test", "us-central1"
_JOBS_PATH = f"/v1b3/projects/{PROJECT}/locations/{REGION}/jobs"


@dataclass
class FakeDataflow:
    """A running fake of the service.

    Attributes:
        folder: the folder of the worker machine.
        store: the object store where jobs are staged.
        wheel: the package for workers.
        jobs: submitted jobs by id, with their states.
        jobs_released: jobs wait for this event before they run.
        messages_requested: set once the driver follows a job.
        failure_message: if not empty, every job fails with this message.
        refusal_message: if not empty, listing the jobs is refused with this message.
        results: by job, how it ended and the folders from which the package was imported.
    """

    folder: Path
    store: EmulatedStore
    wheel: Path
    port: int = 0
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    jobs_released: threading.Event = field(default_factory=threading.Event)
    messages_requested: threading.Event = field(default_factory=threading.Event)
    failure_message: str = ""
    refusal_message: str = ""
    results: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        """Options of ``beam run`` for this service."""
        return [
            *("--runner=DataflowRunner", f"--project={PROJECT}", f"--region={REGION}"),
            *(f"--temp_location={self.store.url}/tmp", f"--dataflow_endpoint=http://localhost:{self.port}"),
            *self.store.options,
            f"--extra_package={self.wheel}",
            "--experiments=disable_logging_submission_environment",  # a second of pip freeze
        ]

    def submit_job(self, job: dict[str, Any]) -> dict[str, Any]:
        """Start a job, or return the running job of the same name, as the service does."""
        for running_job in self.jobs.values():
            if running_job["name"] == job["name"] and running_job["currentState"] == "JOB_STATE_RUNNING":
                return running_job
        job_id = f"2026-11-22_00_00_00-{len(self.jobs) + 1}"
        self.jobs[job_id] = {**job, "id": job_id, "currentState": "JOB_STATE_RUNNING"}
        threading.Thread(target=self._run, args=(self.jobs[job_id],), daemon=True).start()
        return self.jobs[job_id]

    def _run(self, job: dict[str, Any]) -> None:
        self.jobs_released.wait()
        time.sleep(0.5)  # no job ends before Beam has looked at it once
        try:
            self.results[job["id"]] = (
                {"error": self.failure_message} if self.failure_message else self._run_on_worker(job)
            )
        except Exception as error:
            self.results[job["id"]] = {"error": f"{type(error).__name__}: {error}"}
        failed = self.results[job["id"]]["error"]
        job["currentState"] = "JOB_STATE_FAILED" if failed else "JOB_STATE_DONE"

    def _run_on_worker(self, job: dict[str, Any]) -> dict[str, Any]:
        """The messages of the worker of a job."""
        environment = job["environment"]
        options = environment["sdkPipelineOptions"]["options"]
        staging_dir = self.folder / job["id"]
        staging_dir.mkdir(parents=True)
        for package in environment["workerPools"][0]["packages"]:
            data = self._download_object(package["location"].partition("/")[2])
            (staging_dir / package["name"]).write_bytes(data)
        (staging_dir / "pipeline.pb").write_bytes(
            self._download_object(options["pipelineUrl"].removeprefix("gs://"))
        )
        (staging_dir / "options.json").write_text(json.dumps(options))
        (staging_dir / "package").mkdir()
        zipfile.ZipFile(staging_dir / self.wheel.name).extractall(staging_dir / "package")
        completed = subprocess.run(
            [sys.executable, WORKER_SCRIPT, staging_dir / "pipeline.pb", staging_dir / "options.json"],
            cwd=staging_dir,
            env={**os.environ, **self.store.environment, "PYTHONPATH": str(staging_dir / "package")},
            capture_output=True,
            text=True,
            check=True,
        )
        result: dict[str, Any] = json.loads(completed.stdout.splitlines()[-1])
        return result

    def _download_object(self, path: str) -> bytes:
        """Download an object of the store; ``path`` is bucket and name."""
        bucket, _, name = path.partition("/")
        url = f"{self.store.endpoint}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
        with urllib.request.urlopen(url) as response:
            data: bytes = response.read()
        return data


@contextlib.contextmanager
def run_fake_dataflow(folder: Path, store: EmulatedStore, wheel: Path) -> Iterator[FakeDataflow]:
    """Run the service; jobs start without waiting."""
    service = FakeDataflow(folder, store, wheel)
    service.jobs_released.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].removeprefix(_JOBS_PATH).strip("/")
            job_id, _, resource = path.partition("/")
            if not job_id and service.refusal_message:
                self._respond({"error": {"code": 403, "message": service.refusal_message}}, 403)
            elif not job_id:
                running_jobs = [
                    job for job in service.jobs.values() if job["currentState"] == "JOB_STATE_RUNNING"
                ]
                self._respond({"jobs": [_summarise_job(job) for job in running_jobs]})
            elif resource == "messages":
                service.messages_requested.set()
                failure = service.results.get(job_id, {}).get("error")
                self._respond({"jobMessages": [_make_error_message(failure)] if failure else []})
            else:
                self._respond(_summarise_job(service.jobs[job_id]))

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            self._respond(_summarise_job(service.submit_job(json.loads(data, parse_float=_parse_number))))

        def _respond(self, value: dict[str, Any], status: int = 200) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    service.port = server.server_port
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield service
    finally:
        service.jobs_released.set()
        server.shutdown()
        server.server_close()


def _parse_number(number: str) -> float:
    """Parse a number of the options: a Struct has floats only, and the service passes whole ones as int."""
    return int(float(number)) if float(number).is_integer() else float(number)


def _summarise_job(job: dict[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in ("id", "name", "currentState", "clientRequestId")}


def _make_error_message(text: str) -> dict[str, str]:
    return {
        "id": "1",
        "time": "2026-11-22T00:00:00Z",
        "messageText": text,
        "messageImportance": "JOB_MESSAGE_ERROR",
    }
