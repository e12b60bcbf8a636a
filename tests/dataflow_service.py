"""A stand-in for Google Cloud Dataflow on this machine, with as much of its interface as Beam's client uses.

    with dataflow_service.running(folder, store) as service:
        beam("run", ..., *service.options)

It takes a job as the service does, and its machine does what a worker's container does: it fetches what the
job has staged, installs the extra packages into an environment of its own, which third-party packages are
lent to but nothing of this checkout, and runs the staged pipeline there, from another folder.
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
import venv
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.stores import Store

WORKER = Path(__file__).parent / "dataflow_worker.py"
PROJECT, REGION = "bioshards-test", "us-central1"
_JOBS = f"/v1b3/projects/{PROJECT}/locations/{REGION}/jobs"


@dataclass
class Service:
    """The service, while it runs.

    Attributes:
        folder: the machine's own; ``store``: where jobs are staged.
        jobs: as they were given to it, by id, with their states.
        hold: jobs wait for it before they run.
        fails: if it is not empty, jobs do not run, but say this and fail.
        refuses: if it is not empty, who asks for the jobs is refused, in these words.
        ran: by job, how it ended and from which folders our package was imported.
    """

    folder: Path
    store: Store
    port: int = 0
    jobs: dict[str, dict[str, Any]] = field(default_factory=dict)
    hold: threading.Event = field(default_factory=threading.Event)
    fails: str = ""
    refuses: str = ""
    ran: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def options(self) -> list[str]:
        """What a ``beam run`` is given to reach it."""
        return [
            *("--runner=DataflowRunner", f"--project={PROJECT}", f"--region={REGION}"),
            *(f"--temp_location={self.store.url}/tmp", f"--dataflow_endpoint=http://localhost:{self.port}"),
            *self.store.options,
            "--experiments=disable_logging_submission_environment",  # a second of pip freeze
        ]

    def take(self, job: dict[str, Any]) -> dict[str, Any]:
        """Begin a job, or answer with the one of its name that is running, as the service does."""
        for other in self.jobs.values():
            if other["name"] == job["name"] and other["currentState"] == "JOB_STATE_RUNNING":
                return other
        identity = f"2026-11-22_00_00_00-{len(self.jobs) + 1}"
        self.jobs[identity] = {**job, "id": identity, "currentState": "JOB_STATE_RUNNING"}
        threading.Thread(target=self._run, args=(self.jobs[identity],), daemon=True).start()
        return self.jobs[identity]

    def _run(self, job: dict[str, Any]) -> None:
        self.hold.wait()
        time.sleep(0.5)  # no job ends before Beam has looked at it once
        try:
            self.ran[job["id"]] = {"error": self.fails} if self.fails else self._worked(job)
        except Exception as error:
            self.ran[job["id"]] = {"error": f"{type(error).__name__}: {error}"}
        failed = self.ran[job["id"]]["error"]
        job["currentState"] = "JOB_STATE_FAILED" if failed else "JOB_STATE_DONE"

    def _worked(self, job: dict[str, Any]) -> dict[str, Any]:
        """What a worker has to say of the job."""
        environment = job["environment"]
        options = environment["sdkPipelineOptions"]["options"]
        staged = self.folder / job["id"]
        staged.mkdir(parents=True)
        for package in environment["workerPools"][0]["packages"]:
            data = self._fetched(package["location"].partition("/")[2])
            (staged / package["name"]).write_bytes(data)
        (staged / "pipeline.pb").write_bytes(self._fetched(options["pipelineUrl"].removeprefix("gs://")))
        (staged / "options.json").write_text(json.dumps(options))
        python = self._booted(staged)
        done = subprocess.run(
            [python, WORKER, staged / "pipeline.pb", staged / "options.json"],
            cwd=staged,
            env={**self.store.environment, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            check=True,
        )
        said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
        return said

    def _booted(self, staged: Path) -> Path:
        """The Python of a new environment with the extra packages, installed as Beam's boot program does."""
        home = staged / "environment"
        venv.create(home, with_pip=False, symlinks=True)
        [packages] = home.glob("lib/python*/site-packages")
        lent = next(path for path in sys.path if path.endswith("site-packages"))
        (packages / "lent.pth").write_text(lent + "\n")
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(home / "bin/python"),
            "install",
            "--quiet",
            "--no-index",
        ]
        for name in (staged / "extra_packages.txt").read_text().split():
            for how in (["--upgrade", "--force-reinstall", "--no-deps"], []):
                command = [
                    *pip,
                    "--disable-pip-version-check",
                    "--no-cache-dir",
                    "--no-compile",
                    *how,
                    str(staged / name),
                ]
                outside = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
                subprocess.run(command, cwd=staged, env=outside, capture_output=True, text=True, check=True)
        return self.environment(staged.name)

    def environment(self, job: str) -> Path:
        """The Python of the machine that a job ran on."""
        return self.folder / job / "environment/bin/python"

    def _fetched(self, path: str) -> bytes:
        """An object of the store; ``path``: bucket and name."""
        bucket, _, name = path.partition("/")
        where = f"{self.store.endpoint}/storage/v1/b/{bucket}/o/{urllib.parse.quote(name, safe='')}?alt=media"
        with urllib.request.urlopen(where) as answer:
            data: bytes = answer.read()
        return data


@contextlib.contextmanager
def running(folder: Path, store: Store) -> Iterator[Service]:
    """The service, its jobs released from the beginning."""
    service = Service(folder, store)
    service.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].removeprefix(_JOBS).strip("/")
            identity, _, part = path.partition("/")
            if not identity and service.refuses:
                self._answer({"error": {"code": 403, "message": service.refuses}}, 403)
            elif not identity:
                active = [job for job in service.jobs.values() if job["currentState"] == "JOB_STATE_RUNNING"]
                self._answer({"jobs": [_brief(job) for job in active]})
            elif part == "messages":
                said = service.ran.get(identity, {}).get("error")
                self._answer({"jobMessages": [_message(said)] if said else []})
            else:
                self._answer(_brief(service.jobs[identity]))

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            self._answer(_brief(service.take(json.loads(data, parse_float=_whole))))

        def _answer(self, value: dict[str, Any], status: int = 200) -> None:
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
        service.hold.set()
        server.shutdown()
        server.server_close()


def _whole(number: str) -> float:
    """Options come as a Struct, in which every number is a float; the service hands whole ones on as such."""
    return int(float(number)) if float(number).is_integer() else float(number)


def _brief(job: dict[str, Any]) -> dict[str, Any]:
    return {name: job[name] for name in ("id", "name", "currentState", "clientRequestId")}


def _message(text: str) -> dict[str, str]:
    return {
        "id": "1",
        "time": "2026-11-22T00:00:00Z",
        "messageText": text,
        "messageImportance": "JOB_MESSAGE_ERROR",
    }
