"""Speed of downloads beside curl, wget and processing: ``python -m tests.bench.bench_download``.

All files come from the fake server of the tests on this machine, so no figure depends on a network.  Measured
are the cost of checksums, decompression, lock files and records, and whether downloading and processing
overlap.  The files are smaller than PubMed's 1,600, so that the last few do not dominate.  They have real
records if BIOSHARDS_DATA is set.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.bench.harness import pubmed_baseline, timing
from tests.bench.harness.timing import MB, Figure, TimedRun
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server

ROOT = Path(__file__).resolve().parents[2]
BEAM = [sys.executable, "-m", "bioshards.pipelines.cli", "run"]
RECORDS = 5000
ARTICLES = 2000
LATENCY_SECONDS = 0.05
"""Of each response of the fake bucket, as of a bucket on the same continent."""


class DownloadBench:
    """Runs of download commands, each into a new folder."""

    def __init__(self, work: Path, server: FakeServer) -> None:
        self.work, self.server = work, server
        self.mirror, self.output = work / "mirror", work / "output"

    def run(self, *command: object, keep_mirror: bool = False) -> TimedRun:
        shutil.rmtree(self.output, ignore_errors=True)
        if not keep_mirror:
            shutil.rmtree(self.mirror, ignore_errors=True)
        os.sync()
        argv = [str(word) for word in command]
        timed_run = timing.time_command(argv, dict(os.environ), ROOT, self.work / "stderr.log")
        print(
            f"{' '.join(argv[:6])[-90:]}: {timed_run.wall:.2f} s, CPU {timed_run.cpu:.2f} s", file=sys.stderr
        )
        return timed_run

    def fetch(self, name: str, workers: int, keep_mirror: bool = False) -> TimedRun:
        return self.run(
            *(*BEAM, "fetch", "--input", name, "--workers", workers, "--mirror", self.mirror),
            *("--pubmed-url", f"{self.server.url}pubmed/", "--pmc-url", f"{self.server.url}bucket/"),
            keep_mirror=keep_mirror,
        )

    def shards(self, source: object, workers: int) -> TimedRun:
        return self.run(
            *(*BEAM, "pubmed_to_shards", "--input", source, "--workers", workers, "--output", self.output),
            *("--mirror", self.mirror, "--pubmed-url", f"{self.server.url}pubmed/"),
        )

    def curl(self, paths: list[Path]) -> TimedRun:
        """Time curl with four connections and without checks."""
        urls = [f"{self.server.url}pubmed/baseline/{path.name}" for path in paths]
        into = ("--create-dirs", "--output-dir", self.mirror, "--remote-name-all")
        return self.run("curl", "-sSf", "-Z", "--parallel-max", 4, *into, *urls)

    def wget(self) -> TimedRun:
        """Time wget with one connection and without checks."""
        url = f"{self.server.url}pubmed/baseline/"
        return self.run("wget", "-q", "-r", "-np", "-nd", "-A", "pubmed*.gz", "-P", self.mirror, url)


def measure(work: Path, files: int, repeats: int) -> list[Figure]:
    baseline_files = pubmed_baseline.make_baseline(work, RECORDS, files)
    paths = [Path(path) for path in baseline_files.paths]
    total = sum(path.stat().st_size for path in paths)
    root = Path(tempfile.mkdtemp(dir=work))
    create_pubmed_server(root, {path.name: path.read_bytes() for path in paths}, {})
    text = "Nothing was seen. " * 6000
    create_bucket(
        root / "bucket", (FakeArticle(1_000_000 + n, text=text) for n in range(ARTICLES)), "2026-11-01"
    )
    try:
        with FakeServer(root) as server:
            return _run_rounds(DownloadBench(work, server), paths, total, repeats)
    finally:
        shutil.rmtree(root)


def _run_rounds(bench: DownloadBench, paths: list[Path], total: int, repeats: int) -> list[Figure]:
    server = bench.server
    walls: dict[str, list[float]] = defaultdict(list)
    cpus: dict[str, list[float]] = defaultdict(list)

    def record(name: str, run: TimedRun) -> float:
        walls[name].append(run.wall)
        cpus[name].append(run.cpu)
        return run.wall

    for _ in range(repeats):
        record("start", bench.fetch("pubmed:baseline[1]", 2))
        record("again", bench.fetch("pubmed:baseline[1]", 2, keep_mirror=True))
        record("fetch", bench.fetch("pubmed:baseline", 2))
        record("curl", bench.curl(paths))
        record("wget", bench.wget())
        for workers in (1, 2):
            processing = record(f"process {workers}", bench.shards(paths[0].parent, workers))
            # Limit the server's rate so that downloading and processing take about the same time.
            server.bytes_per_second = total / processing
            fetching = record(f"slow fetch {workers}", bench.fetch("pubmed:baseline", workers))
            both = record(f"both {workers}", bench.shards("pubmed:baseline", workers))
            walls[f"overlap {workers}"].append(both / max(fetching, processing))
            server.bytes_per_second = None
        server.latency = LATENCY_SECONDS
        record("articles", bench.fetch("pmc:", 2))
        server.latency = 0
    return make_figures(walls, cpus, len(paths), total)


def make_figures(
    walls: dict[str, list[float]], cpus: dict[str, list[float]], files: int, total: int
) -> list[Figure]:
    start = min(walls["start"])
    rows = [
        Figure("a mirror of one file, from nothing", walls["start"], "s"),
        Figure("... and again, nothing new", walls["again"], "s"),
        Figure(
            f"fetch {files} files, {total / MB:.0f} MB, at 8 requests a second: wall", walls["fetch"], "s"
        ),
        Figure("... less start-up", [total / MB / (wall - start) for wall in walls["fetch"]], "MB/s"),
        Figure("... CPU", cpus["fetch"], "s"),
        Figure("curl, 4 connections, nothing checked: wall", walls["curl"], "s"),
        Figure("wget, 1 connection, nothing checked: wall", walls["wget"], "s"),
    ]
    for workers in (1, 2):
        rows += [
            Figure(f"process what is here, {workers} worker(s)", walls[f"process {workers}"], "s"),
            Figure("fetch alone, from a server as slow as that", walls[f"slow fetch {workers}"], "s"),
            Figure("fetch and process", walls[f"both {workers}"], "s"),
            Figure("**... / the longer of the two**", walls[f"overlap {workers}"], "×", "<=", 1.25),
        ]
    objects = 2 * ARTICLES
    return [
        *rows,
        Figure(f"{ARTICLES:,} PMC articles and their metadata", walls["articles"], "s"),
        Figure(
            "... objects a second, less start-up",
            [objects / (wall - start) for wall in walls["articles"]],
            "",
        ),
        Figure(
            "... CPU an object, less start-up",
            [1000 * (cpu - min(cpus["start"])) / objects for cpu in cpus["articles"]],
            "ms",
        ),
    ]


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_download", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/bench"))
    parser.add_argument("--files", type=int, default=24)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    timing.adopt_orphans()
    print(f"\n{timing.format_table(measure(work, options.files, options.repeats))}")


if __name__ == "__main__":
    main()
