"""``beam run pubmed_to_shards`` against its bars: ``python -m tests.bench.bench_pubmed``.

The bars (DESIGN.md section 7) are ratios to peers, so peers and ours take turns in one run on one
machine and only their ratio is judged.  Everything is a whole process timed from outside.  What a
process needs merely to start is measured apart, on an input of one record (for a peer: its imports),
and taken off, because it is the same for a file and for a thousand.

Set BIOSHARDS_DATA to a folder with real records in its ``pubmed/`` part for figures that count.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import shutil
import statistics
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from . import timing
from .timing import MB, Figure, Run

ROOT = Path(__file__).resolve().parents[2]
MEMORY_BAR_MB = 1500
BUCKET_MEMORY_BAR_MB = 1500
MANY = 8
"""Files of the largest memory run; the four of the two-worker figure are among them."""

LXML_START = "import lxml.etree, gzip"
LXML = """
import gzip, sys
from lxml import etree
records = 0
with gzip.open(sys.argv[1]) as file:
    for _, record in etree.iterparse(file, tag="PubmedArticle", resolve_entities=False, no_network=True):
        records += 1
        record.clear()
        while record.getprevious() is not None:
            del record.getparent()[0]
print(records)
"""
PEER_START = "import pubmed_parser"
PEER = """
import sys
import pubmed_parser
parsed = pubmed_parser.parse_medline_xml(sys.argv[1], author_list=False, reference_list=False)
print(sum(1 for _ in parsed))
"""


class Bench:
    """Runs the commands in the work folder and keeps their measurements by name."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.runs: dict[str, list[Run]] = {}
        beam = Path(sys.executable).with_name("beam")
        self._beam = str(beam) if beam.exists() else shutil.which("beam") or "beam"
        self._env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        self._env["PYTHONPYCACHEPREFIX"] = str(work / "pycache")  # nobody compiles but the first, untimed
        self._env["TMPDIR"] = str(work / "tmp")
        shutil.rmtree(work / "tmp", ignore_errors=True)
        (work / "tmp").mkdir(parents=True)

    def python(self, name: str, *arguments: str) -> Run:
        """Time a Python process."""
        return self._run(name, [sys.executable, *arguments])

    def job(self, name: str, inputs: list[str], workers: int, records: int) -> Run:
        """Time ``beam run`` into a new output folder and see that no record was left out."""
        output = self.work / "output"
        shutil.rmtree(output, ignore_errors=True)
        command = [self._beam, "run", "pubmed_to_shards", "--workers", str(workers), "--output", str(output)]
        run = self._run(name, command + [word for path in inputs for word in ("--input", path)])
        manifest = json.loads((output / "manifest.json").read_text())
        if sum(sum(source["funnel"].values()) for source in manifest["inputs"]) != records:
            raise SystemExit(
                f"{name}: not all of the {records} records are in its funnel: {manifest['funnel']}"
            )
        shutil.rmtree(output)
        return run

    def _run(self, name: str, command: list[str]) -> Run:
        os.sync()  # what the last run wrote is not this one's to wait for
        run = timing.run(command, self._env, ROOT, self.work / "stderr.log")
        print(
            f"{name}: {run.wall:.2f} s, CPU {run.cpu:.2f} s, {run.peak_mb:.0f} MB",
            file=sys.stderr,
            flush=True,
        )
        self.runs.setdefault(name, []).append(run)
        return run

    def walls(self, name: str) -> list[float]:
        return [run.wall for run in self.runs[name]]

    def cpus(self, name: str) -> list[float]:
        return [run.cpu for run in self.runs[name]]

    def peaks(self, name: str) -> list[float]:
        return [run.peak_mb for run in self.runs[name]]


def less(values: list[float], start: list[float]) -> list[float]:
    """Values without the start-up: its median is taken off, so that its scatter does not add up."""
    return [value - statistics.median(start) for value in values]


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Round by round: the two of a round ran one after the other, on the machine as it was then."""
    return [one / other for one, other in zip(above, below, strict=True)]


def run_rounds(bench: Bench, one: dict[str, Any], made: dict[str, Any], repeats: int, peer: bool) -> None:
    """Everything that is timed against something else, in turns, ``repeats`` times."""
    paths, records = made["paths"], made["records"]
    for path in paths:
        Path(path).read_bytes()  # into the page cache, for all alike
    for _ in range(repeats):
        bench.job("start 1", one["paths"], 1, 1)
        bench.job("start 2", one["paths"], 2, 1)
        bench.python("lxml start", "-c", LXML_START)
        lxml = bench.python("lxml", "-c", LXML, paths[0])
        bench.job("1 file 1", paths[:1], 1, records)
        if peer:
            bench.python("peer start", "-c", PEER_START)
            parsed = bench.python("peer", "-c", PEER, paths[0])
        bench.job("4 files 1", paths[:4], 1, 4 * records)
        bench.job("4 files 2", paths[:4], 2, 4 * records)
        for read in [lxml, parsed] if peer else [lxml]:
            if int(read.output) != records:
                raise SystemExit(f"a peer read {read.output} records of {records}")
    for workers in (1, 2):
        bench.job(f"{MANY} files {workers}", paths, workers, MANY * records)
    bench.job("1 file 2", paths[:1], 2, records)


def run_lifecycle(bench: Bench, files: int, keys: int) -> dict[str, Any]:
    """The decision at scale; what its steps said."""
    home = bench.work / f"lifecycle-{files}"
    common = ["--work", str(home), "--files", str(files), "--keys", str(keys)]
    said = {}
    for step in ("make", "decide", "read_back", "check"):
        run = bench.python(f"lifecycle {step}", "-m", "tests.bench.lifecycle_scale", step, *common)
        said[step] = json.loads(run.output)
    if said["check"]["records"] - said["read_back"]["dead"] != said["check"]["living"]:
        raise SystemExit(f"the verdicts on {files} x {keys} keys are wrong: {said}")
    shutil.rmtree(home)
    return said


def figures(bench: Bench, made: dict[str, Any], lifecycle: dict[str, Any] | None, peer: bool) -> list[Figure]:
    """The table's rows."""
    rows = []
    for workers in (1, 2):
        rows += [
            Figure(f"start-up, {workers} worker(s): wall", bench.walls(f"start {workers}"), "s"),
            Figure(f"start-up, {workers} worker(s): CPU", bench.cpus(f"start {workers}"), "s"),
        ]
    job, bare, parsed, four, both = ([[], []] for _ in range(5))
    for which, values in enumerate[Callable[[str], list[float]]]([bench.walls, bench.cpus]):
        job[which] = less(values("1 file 1"), values("start 1"))
        bare[which] = less(values("lxml"), values("lxml start"))
        parsed[which] = less(values("peer"), values("peer start")) if peer else []
        four[which] = less(values("4 files 1"), values("start 1"))
        both[which] = less(values("4 files 2"), values("start 2"))
    xml = made["xml_bytes"][0] / MB
    rows += [
        Figure("1 file, 1 worker, less start-up: wall", job[0], "s"),
        Figure("1 file, 1 worker, less start-up: CPU", job[1], "s"),
        Figure("… records a second", [made["records"] / seconds for seconds in job[0]], "records/s"),
        Figure("… XML a second", [xml / seconds for seconds in job[0]], "MB/s"),
        Figure("gunzip + bare lxml iterparse, less start-up: wall", bare[0], "s"),
        Figure("gunzip + bare lxml iterparse, less start-up: CPU", bare[1], "s"),
        Figure("**ours / bare lxml, wall**", ratios(job[0], bare[0]), "×", "<=", 1.6, 1.0),
        Figure("ours / bare lxml, CPU", ratios(job[1], bare[1]), "×", "<=", 1.6, 1.0),
    ]
    if peer:
        rows += [
            Figure("pubmed_parser, less start-up: wall", parsed[0], "s"),
            Figure("**pubmed_parser / ours, wall**", ratios(parsed[0], job[0]), "×", ">=", 2.5, 4.0),
            Figure("pubmed_parser / ours, CPU", ratios(parsed[1], job[1]), "×", ">=", 2.5, 4.0),
        ]
    rows += [
        Figure("4 files, 1 worker: raw wall", bench.walls("4 files 1"), "s"),
        Figure("4 files, 2 workers: raw wall", bench.walls("4 files 2"), "s"),
        Figure("4 files, 1 worker: raw CPU", bench.cpus("4 files 1"), "s"),
        Figure("4 files, 2 workers: raw CPU", bench.cpus("4 files 2"), "s"),
        Figure("**2 workers against 1, less start-up**", ratios(four[0], both[0]), "×", ">=", 1.7, 1.9),
    ]
    for workers in (1, 2):
        for name in ("1 file", "4 files", f"{MANY} files"):
            peaks = bench.peaks(f"{name} {workers}")
            rows.append(
                Figure(f"peak of a process, {name}, {workers} w.", peaks, "MB", "<=", MEMORY_BAR_MB, 600)
            )
    if lifecycle:
        rows += lifecycle_figures(bench, lifecycle)
    return rows


def lifecycle_figures(bench: Bench, said: dict[str, Any]) -> list[Figure]:
    """The rows of the decision at scale."""
    buckets = said["decide"]["buckets"]
    return [
        Figure(f"life cycle, all {buckets} buckets", bench.walls("lifecycle decide"), "s"),
        Figure("… a bucket", said["decide"]["seconds"], "s"),
        Figure("… peak", bench.peaks("lifecycle decide"), "MB", "<=", BUCKET_MEMORY_BAR_MB),
        Figure("… verdicts read back for every file", bench.walls("lifecycle read_back"), "s"),
        Figure("… of it fingerprints", [said["read_back"]["fingerprints"]], "s"),
    ]


def make(bench: Bench, records: int, files: int) -> dict[str, Any]:
    """Input files, made by a process of its own: what this one holds, its children start with."""
    common = ["--work", str(bench.work), "--records", str(records), "--files", str(files)]
    made: dict[str, Any] = json.loads(bench.python("make", "-m", "tests.bench.baseline", *common).output)
    return made


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_pubmed", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=30_000, help="records in a file (default: %(default)s)"
    )
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="rounds (default: %(default)s)")
    parser.add_argument(
        "--keys-files",
        type=int,
        default=1600,
        help="files of 30,000 keys for the life-cycle decision, 0 for none (default: %(default)s)",
    )
    options = parser.parse_args()
    work = options.work.resolve()
    timing.adopt_orphans()
    bench = Bench(work)
    peer = importlib.util.find_spec("pubmed_parser") is not None
    one, made = make(bench, 1, 1), make(bench, options.records, MANY)
    for workers in (1, 2):
        bench.job("untimed", one["paths"], workers, 1)
    for code in (LXML_START, PEER_START) if peer else (LXML_START,):
        bench.python("untimed", "-c", code)
    run_rounds(bench, one, made, options.repeats, peer)
    lifecycle = run_lifecycle(bench, options.keys_files, 30_000) if options.keys_files else None
    rows = figures(bench, made, lifecycle, peer)
    say(made, rows, lifecycle, peer)
    written = {
        "made": made,
        "figures": {row.name: {**dataclasses.asdict(row), "verdict": row.verdict()} for row in rows},
        "runs": {name: [dataclasses.asdict(run) for run in runs] for name, runs in bench.runs.items()},
        "lifecycle": lifecycle,
    }
    (work / "figures.json").write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


def say(made: dict[str, Any], rows: list[Figure], lifecycle: dict[str, Any] | None, peer: bool) -> None:
    """Print the table and what one must know to read it."""
    print(
        f"Files of {made['records']:,} records and {made['xml_bytes'][0] / MB:.0f} MB of XML, made of "
        f"{made['distinct']:,} distinct ones; {os.cpu_count()} cores, Python {sys.version.split()[0]}."
    )
    if made["indicative"]:
        print("Made of the bundled sample (BIOSHARDS_DATA is not set): these figures are only indicative.")
    if not peer:
        print("pubmed_parser: not installed, not compared.")
    if lifecycle:
        records, living = lifecycle["check"]["records"], lifecycle["check"]["living"]
        print(f"Life cycle: {records:,} records at random PMIDs, {living:,} live (counted another way too).")
    print(f"\n{timing.table(rows)}")


if __name__ == "__main__":
    main()
