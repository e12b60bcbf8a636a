"""The pipelines on real engines: the bytes of a local run, also after kills. ``python -m tests.engines``.

Prism, Flink and Spark are brought to build/engines and started as small clusters in namespaces of network and
processes of their own, whose end kills whatever is left. An engine that cannot be had is named in the table,
with the reason. The exit code is 0 if every cell ends with "=".
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.harness import pubmed_baseline
from tests.engines import clusters, install
from tests.engines.clusters import Cluster, Engine
from tests.support.outputs import published_digests
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server

ROOT: Final = Path(__file__).resolve().parents[2]
SAMPLE: Final = ROOT / "corpus" / "sample"
RUN_SECONDS: Final = 1800
FAULT_FILES, FAULT_RECORDS, KILL_AT = 60, 1500, 15
"""Files and records of the run in which something is killed, and when: files that are staged."""
GONE_SECONDS: Final = 60
"""How long a job whose service is gone is waited for."""
_INSIDE: Final = "BIOSHARDS_ENGINES_MISSING"
"""Set within the namespaces: the engines that cannot be had, and why."""


@dataclass(frozen=True, slots=True)
class Run:
    """A command that has ended."""

    code: int
    seconds: float
    message: str


@dataclass(frozen=True, slots=True)
class Fault:
    """What is killed during a run; with ``restart_after`` seconds it is started again during the run."""

    name: str
    kill: Callable[[Cluster], None]
    restart_after: float | None = None


def _kill(name: str) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.kill(name)


WORKER: Final = Fault("a worker", lambda _: clusters.kill_by_command(clusters.WORKERS, most=1))
EXECUTOR: Final = Fault("an executor", lambda _: clusters.kill_by_command(clusters.EXECUTORS, most=1))
TASK_MANAGER: Final = Fault("a TaskManager, another after 10 s", _kill("TaskManager 2"), 10)
POOL, JOB_SERVER = Fault("the pool", _kill("pool")), Fault("the job server", _kill("job server"))
FAULTS: Final = {
    "prism": [Fault("Prism", _kill("Prism"))],
    "flink": [WORKER, TASK_MANAGER, POOL, JOB_SERVER],
    "spark": [WORKER, EXECUTOR, JOB_SERVER],
}


class Trial:
    """Runs of the pipelines in a work folder, and what they must give."""

    def __init__(self, work: Path, server_url: str) -> None:
        self.work = work
        self.local = work / "local"
        self.digests: dict[str, str] = {}
        files = pubmed_baseline.make_baseline(work, FAULT_RECORDS, FAULT_FILES)
        self.fault_input = str(files[0].parent)
        self.pipelines: dict[str, tuple[str, ...]] = {
            "fetch": ("fetch", "--input", "pubmed:", "--pubmed-url", f"{server_url}pubmed/"),
            "text_to_shards": ("text_to_shards", "--input", f"{SAMPLE}/text"),
        }
        self._add_corpora("", (), ())
        if data := os.environ.get("BIOSHARDS_DATA"):
            bad = ("--max-rejected", "0.1", "--max-bad-files", "0.2")
            self._add_corpora(" real", ("--input", f"{data}/pubmed", *bad), ("--input", f"{data}/jats", *bad))

    def _add_corpora(self, kind: str, citations: tuple[str, ...], articles: tuple[str, ...]) -> None:
        abstracts, full_text = f"pubmed_to_shards{kind}", f"pmc_to_shards{kind}"
        shards = ("--input", str(self.local / abstracts), "--input", str(self.local / full_text))
        rows = (
            "--vocab",
            str(self.local / "vocabulary"),
            "--preset",
            "bio-electra",
            "--max-seq-length",
            "64",
        )
        self.pipelines |= {
            abstracts: ("pubmed_to_shards", *citations),
            full_text: ("pmc_to_shards", *articles),
            f"shards_to_words{kind}": ("shards_to_words", *shards),
            f"shards_to_pretraining{kind}": ("shards_to_pretraining", *shards, *rows),
        }

    def run_locally(self) -> list[str]:
        """Run everything on this machine, or continue what an earlier trial has left; return the column."""
        cells = []
        for name, words in self.pipelines.items():
            if name == "shards_to_pretraining":
                vocabulary = ("--output", str(self.local / "vocabulary"), "--size", "600")
                _check(_run("bioshards", "vocab", "build", str(self.local / "shards_to_words"), *vocabulary))
            cells.append(self._run_locally(name, words))
        return cells

    def _run_locally(self, name: str, words: tuple[str, ...]) -> str:
        run = _check(_run(*_command(words, self.local / name), "--workers", "2"))
        self.digests[name] = digest(self.local / name)
        print(f"local: {name}: {run.seconds:.0f} s", file=sys.stderr, flush=True)
        return f"{run.seconds:.0f} s ="

    def run_on(self, engine: Engine) -> list[str]:
        """Run everything on an engine; return the column."""
        cells = []
        for name, words in self.pipelines.items():
            output = self.work / engine.name / name
            shutil.rmtree(output, ignore_errors=True)
            run = _run(*_command(words, output), *engine.options)
            cells.append(self._compare(name, output, run))
            print(f"{engine.name}: {name}: {cells[-1]}", file=sys.stderr, flush=True)
        return cells

    def kill_on(self, cluster: Cluster, fault: Fault) -> list[str]:
        """Kill something in the midst of a run, run a failed command again; return the row."""
        words = ("pubmed_to_shards", "--input", self.fault_input)
        if "fault" not in self.digests:
            self._run_locally("fault", words)
        output = self.work / cluster.engine.name / "fault"
        shutil.rmtree(output, ignore_errors=True)
        command = (*_command(words, output), *cluster.engine.options)
        process = _start(*command)
        while len(list(output.glob(".bioshards/staged/*.json"))) < KILL_AT and process.poll() is None:
            time.sleep(0.05)
        fault.kill(cluster)
        if fault.restart_after is not None:
            time.sleep(fault.restart_after)
            cluster.start()
        run = _wait(process)
        cluster.start()
        story = ["it ends by itself" if run.code == 0 else f"{run.code}: {run.message}", ""]
        for _ in range(3 if run.code else 0):
            is_lost = "--force" in run.message and not _wait_for(output / "manifest.json")
            force = ("--force",) if is_lost else ()
            run = _run(*command, *force)
            story[1] += f"{' '.join(force)} {run.code}{': ' + run.message if run.code else ''}. "
            if run.code == 0:
                break
        row = [cluster.engine.title, fault.name, *story, self._compare("fault", output, run)]
        print(" / ".join(row), file=sys.stderr, flush=True)
        return row

    def _compare(self, name: str, output: Path, run: Run) -> str:
        if run.code:
            return f"FAILED: {run.message}"
        return f"{run.seconds:.0f} s {'=' if digest(output) == self.digests[name] else 'DIFFERS'}"


def digest(output: Path) -> str:
    """Return the SHA-256 of all published files; of a mirror only of its data, as records have times."""
    is_mirror = output.name == "fetch"
    digests = {
        name: sha256
        for name, sha256 in published_digests(output).items()
        if not is_mirror or name.endswith(".xml.gz")
    }
    assert digests, f"nothing is published in {output}"
    return hashlib.sha256(json.dumps(digests).encode()).hexdigest()


def _command(words: tuple[str, ...], output: Path) -> tuple[str, ...]:
    return ("beam", "run", *words, "--mirror" if words[0] == "fetch" else "--output", str(output))


def _start(*words: str) -> subprocess.Popen[str]:
    program = (str(Path(sys.executable).with_name(words[0])), *words[1:])
    return subprocess.Popen(program, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _run(*words: str) -> Run:
    return _wait(_start(*words))


def _wait(process: subprocess.Popen[str]) -> Run:
    started = time.monotonic()
    try:
        error = process.communicate(timeout=RUN_SECONDS)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        return Run(124, RUN_SECONDS, f"hangs: stopped after {RUN_SECONDS} s")
    lines = [line for line in error.splitlines() if line.strip()] or [""]
    message = next((line for line in reversed(lines) if line.startswith("beam: ")), lines[-1])
    return Run(process.returncode, time.monotonic() - started, message.replace("|", "/"))


def _check(run: Run) -> Run:
    if run.code:
        raise SystemExit(f"the local run failed: {run.message}")
    return run


def _wait_for(manifest: Path) -> bool:
    deadline = time.monotonic() + GONE_SECONDS
    while not manifest.exists() and time.monotonic() < deadline:
        time.sleep(1)
    return manifest.exists()


@contextlib.contextmanager
def serve_pubmed(folder: Path) -> Iterator[str]:
    """Serve the sample's files as NLM does; yield the address."""
    files = sorted(SAMPLE.glob("pubmed/**/*.xml*"))
    names = [f"pubmed26n{number + 1:04d}.xml.gz" for number in range(len(files))]
    contents = {name: path.read_bytes() for name, path in zip(names, files, strict=True)}
    create_pubmed_server(folder, contents, {})
    with FakeServer(folder) as server:
        yield server.url


def enter_namespaces(missing: Mapping[str, str]) -> None:
    """Start this program again with a loopback interface only, and with its own processes only."""
    user = [] if os.geteuid() == 0 else ["--map-root-user"]
    namespaces = ["unshare", *user, "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    program = [sys.executable, "-m", "tests.engines", *sys.argv[1:]]
    command = [*namespaces, "sh", "-c", 'ip link set lo up && "$@"', "sh", *program]
    os.execvpe(command[0], command, os.environ | {_INSIDE: json.dumps(missing)})


def main() -> int:
    """Run the trial and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.engines", description=__doc__)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help=f"of {', '.join(clusters.ENGINES)}")
    parser.add_argument("--work", type=Path, default=Path("build/engines"))
    options = parser.parse_args()
    work: Path = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    missing: dict[str, str] = json.loads(os.environ.get(_INSIDE, "{}"))
    engines: dict[str, Engine] = {}
    for name in options.engines or clusters.ENGINES:
        try:
            if name not in missing:
                engines[name] = clusters.ENGINES[name](work)
        except install.EngineMissingError as error:
            missing[name] = str(error)
    if _INSIDE not in os.environ:
        enter_namespaces(missing)
    faults = list[list[str]]()
    with serve_pubmed(work / "server") as url:
        trial = Trial(work, url)
        columns = {"local, 2 processes": trial.run_locally()}
        for name, engine in engines.items():
            with clusters.run_cluster(engine, work / name / "logs") as cluster:
                columns[engine.title] = trial.run_on(engine)
                faults += [trial.kill_on(cluster, fault) for fault in FAULTS[name]]
    for name, reason in missing.items():
        columns[name] = [f"NOT RUN: {reason}"] * len(trial.pipelines)
    print(format_tables(trial.pipelines, columns, faults))
    cells = [cell for column in columns.values() for cell in column] + [row[-1] for row in faults]
    return 0 if all(cell.endswith("=") for cell in cells) else 1


def format_tables(
    names: Sequence[str] | Mapping[str, object],
    columns: Mapping[str, Sequence[str]],
    faults: Sequence[Sequence[str]],
) -> str:
    """Format the table of pipelines and that of faults."""
    rows = [("run", *columns), ["---"] * (len(columns) + 1)]
    rows += zip(names, *columns.values(), strict=True)
    fault_head = [("engine", "killed", "the run", "the same command again", "output"), ["---"] * 5]
    return "\n".join(
        [
            *(f"| {' | '.join(row)} |" for row in rows),
            "",
            *(f"| {' | '.join(row)} |" for row in ([*fault_head, *faults] if faults else [])),
            f"\n=: all published files have the local run's SHA-256. Job servers: Beam {install.BEAM_JAVA}.",
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
