"""Speed of ``beam run pubmed_to_shards``: ``python -m tests.bench.bench_pubmed``.

The goals are ratios to other libraries, which take turns with bioshards on one machine.  Whole processes are
timed from outside.  The start-up of a process is measured on an input of one record (of a library: its
imports) and subtracted, because it does not depend on the number of files.

Set BIOSHARDS_DATA to a folder with real records in its ``pubmed/`` part for figures that count.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

from tests.bench.harness import timing
from tests.bench.harness.bench_runner import (
    CALM_CORES,
    TRIES,
    TWICE_SCRIPT,
    BenchRunner,
    ratios_by_round,
    subtract_startup,
)
from tests.bench.harness.timing import MB, Figure, TimedRun

MEMORY_BAR_MB = 600
BUCKET_MEMORY_BAR_MB = 1500
FILE_COUNT = 8
"""Files of the largest memory run, which include the four of the two-worker figure."""

UNTIMED = ("make", "untimed", "lifecycle make", "lifecycle check")

LXML_START = "import lxml.etree, gzip"
LXML_SCRIPT = """
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
PEER_SCRIPT = """
import sys
import pubmed_parser
parsed = pubmed_parser.parse_medline_xml(sys.argv[1], author_list=False, reference_list=False)
print(sum(1 for _ in parsed))
"""


def run_rounds(
    bench: BenchRunner,
    single_records: dict[str, Any],
    baseline_files: dict[str, Any],
    repeats: int,
    peer: bool,
) -> None:
    """Everything that is timed against something else, in turns, ``repeats`` times."""
    paths, records = baseline_files["paths"], baseline_files["records"]
    for path in paths:
        with open(path, "rb") as file, open(os.devnull, "wb") as nowhere:
            shutil.copyfileobj(file, nowhere)  # read all files into the page cache
    for _ in range(repeats):
        for workers in (1, 2):
            # each worker needs a file: processes without one are not started
            bench.time_pipeline(f"start {workers}", single_records["paths"][:workers], workers, workers)
        bench.time_python("lxml start", "-c", LXML_START)
        lxml = bench.time_python("lxml", "-c", LXML_SCRIPT, paths[0])
        bench.time_python("lxml twice", "-c", TWICE_SCRIPT, LXML_SCRIPT, paths[0])
        bench.time_pipeline("1 file 1", paths[:1], 1, records)
        if peer:
            bench.time_python("peer start", "-c", PEER_START)
            parsed = bench.time_python("peer", "-c", PEER_SCRIPT, paths[0])
        bench.time_pipeline("4 files 1", paths[:4], 1, 4 * records)
        bench.time_pipeline("4 files 2", paths[:4], 2, 4 * records)
        for read in [lxml, parsed] if peer else [lxml]:
            if int(read.output) != records:
                raise SystemExit(f"a peer read {read.output} records of {records}")
    for workers in (1, 2):
        bench.time_pipeline(f"{FILE_COUNT} files {workers}", paths, workers, FILE_COUNT * records)
    bench.time_pipeline("1 file 2", paths[:1], 2, records)


def run_lifecycle(bench: BenchRunner, files: int, keys: int) -> dict[str, Any]:
    """Run the decide step at scale; return the output of its phases."""
    output_dir = bench.work / f"lifecycle-{files}"
    common = ["--work", str(output_dir), "--files", str(files), "--keys", str(keys)]
    results = {}
    for step in ("make", "decide", "duplicates", "read_back", "check"):
        name = f"lifecycle {step}"
        tries = 1 if name in UNTIMED else TRIES
        run = bench.time_python(name, "-m", "tests.bench.harness.lifecycle_scale", step, *common, tries=tries)
        results[step] = json.loads(run.output)
    expected = results["check"]
    read_back = results["read_back"]
    decided = expected["records"] - read_back["dead"], read_back["duplicates"]
    if decided != (expected["living"], expected["duplicates"]):
        raise SystemExit(f"the decisions on {files} x {keys} keys are wrong: {results}")
    shutil.rmtree(output_dir)
    return results


def net_seconds(bench: BenchRunner, name: str, start: str) -> tuple[list[float], list[float]]:
    """Return wall and CPU seconds of each round, less the start-up."""
    return subtract_startup(bench.walls(name), bench.walls(start)), subtract_startup(
        bench.cpus(name), bench.cpus(start)
    )


def make_figures(
    bench: BenchRunner, baseline_files: dict[str, Any], lifecycle: dict[str, Any] | None, peer: bool
) -> list[Figure]:
    """The table's rows."""
    rows = []
    for workers in (1, 2):
        rows += [
            Figure(f"start-up, {workers} worker(s): wall", bench.walls(f"start {workers}"), "s"),
            Figure(f"start-up, {workers} worker(s): CPU", bench.cpus(f"start {workers}"), "s"),
        ]
    job, bare = net_seconds(bench, "1 file 1", "start 1"), net_seconds(bench, "lxml", "lxml start")
    four, both = net_seconds(bench, "4 files 1", "start 1"), net_seconds(bench, "4 files 2", "start 2")
    twice = net_seconds(bench, "lxml twice", "lxml start")[0]
    xml = baseline_files["xml_bytes"][0] / MB
    rows += [
        Figure("1 file, 1 worker, less start-up: wall", job[0], "s"),
        Figure("1 file, 1 worker, less start-up: CPU", job[1], "s"),
        Figure(
            "1 file, 1 worker, less start-up: records",
            [baseline_files["records"] / seconds for seconds in job[0]],
            "records/s",
        ),
        Figure("1 file, 1 worker, less start-up: XML", [xml / seconds for seconds in job[0]], "MB/s"),
        Figure("gunzip + bare lxml iterparse, less start-up: wall", bare[0], "s"),
        Figure("gunzip + bare lxml iterparse, less start-up: CPU", bare[1], "s"),
        Figure("**ours / bare lxml, wall**", ratios_by_round(job[0], bare[0]), "×", "<=", 1.25, 1.15),
        Figure("ours / bare lxml, CPU", ratios_by_round(job[1], bare[1]), "×", "<=", 1.25, 1.15),
    ]
    if peer:
        parsed = net_seconds(bench, "peer", "peer start")
        rows += [
            Figure("pubmed_parser, less start-up: wall", parsed[0], "s"),
            Figure("**pubmed_parser / ours, wall**", ratios_by_round(parsed[0], job[0]), "×", ">=", 3.2, 4.0),
            Figure("pubmed_parser / ours, CPU", ratios_by_round(parsed[1], job[1]), "×", ">=", 3.2, 4.0),
        ]
    rows += [
        Figure("4 files, 1 worker: raw wall", bench.walls("4 files 1"), "s"),
        Figure("4 files, 2 workers: raw wall", bench.walls("4 files 2"), "s"),
        Figure("4 files, 1 worker: raw CPU", bench.cpus("4 files 1"), "s"),
        Figure("4 files, 2 workers: raw CPU", bench.cpus("4 files 2"), "s"),
        Figure(
            "**2 workers against 1, less start-up**", ratios_by_round(four[0], both[0]), "×", ">=", 1.85, 1.9
        ),
        Figure(
            "2 bare lxml parses at once against 1",
            ratios_by_round([2 * value for value in bare[0]], twice),
            "×",
        ),
    ]
    for workers in (1, 2):
        for name in ("1 file", "4 files", f"{FILE_COUNT} files"):
            peaks = bench.peaks(f"{name} {workers}")
            rows.append(
                Figure(f"peak of a process, {name}, {workers} w.", peaks, "MB", "<=", MEMORY_BAR_MB, 400)
            )
    if lifecycle:
        rows += make_lifecycle_figures(bench, lifecycle)
    return rows


def make_lifecycle_figures(bench: BenchRunner, results: dict[str, Any]) -> list[Figure]:
    """Make the rows of the decide step at scale."""
    buckets = results["decide"]["buckets"]
    return [
        Figure(f"versions, all {buckets} buckets", bench.walls("lifecycle decide"), "s"),
        Figure("versions, peak", bench.peaks("lifecycle decide"), "MB", "<=", BUCKET_MEMORY_BAR_MB),
        Figure(f"versions and duplicates, all {buckets} buckets", bench.walls("lifecycle duplicates"), "s"),
        Figure("duplicates, peak", bench.peaks("lifecycle duplicates"), "MB", "<=", BUCKET_MEMORY_BAR_MB),
        Figure("decisions read back and digested, all files", bench.walls("lifecycle read_back"), "s"),
        Figure("of which digests", [results["read_back"]["digests"]], "s"),
    ]


def make_inputs(bench: BenchRunner, records: int, files: int) -> dict[str, Any]:
    """Make input files in another process, so that this one stays small: its children inherit its memory."""
    common = ["--work", str(bench.work), "--records", str(records), "--files", str(files)]
    baseline_files: dict[str, Any] = json.loads(
        bench.time_python("make", "-m", "tests.bench.harness.pubmed_baseline", *common, tries=1).output
    )
    return baseline_files


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_pubmed", description=__doc__)
    parser.add_argument(
        "--records", type=int, default=30_000, help="records in a file (default: %(default)s)"
    )
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument(
        "--keys-files",
        type=int,
        default=1600,
        help="files of 30,000 keys for the life-cycle decision, 0 for none (default: %(default)s)",
    )
    options = parser.parse_args()
    work = options.work.resolve()
    timing.adopt_orphans()
    bench = BenchRunner(work)
    peer = importlib.util.find_spec("pubmed_parser") is not None
    single_records, made = make_inputs(bench, 1, 2), make_inputs(bench, options.records, FILE_COUNT)
    for workers in (1, 2):
        bench.time_pipeline("untimed", single_records["paths"][:workers], workers, workers, tries=1)
    for code in (LXML_START, PEER_START) if peer else (LXML_START,):
        bench.time_python("untimed", "-c", code, tries=1)
    run_rounds(bench, single_records, made, options.repeats, peer)
    lifecycle = run_lifecycle(bench, options.keys_files, 30_000) if options.keys_files else None
    rows = make_figures(bench, made, lifecycle, peer)
    print_report(bench.runs, made, rows, lifecycle, peer)
    written = {
        "made": made,
        "figures": {row.name: {**dataclasses.asdict(row), "verdict": row.verdict()} for row in rows},
        "runs": {name: [dataclasses.asdict(run) for run in runs] for name, runs in bench.runs.items()},
        "lifecycle": lifecycle,
    }
    (work / "figures.json").write_text(json.dumps(written, indent=1, ensure_ascii=False) + "\n")


def print_report(
    runs: dict[str, list[TimedRun]],
    baseline_files: dict[str, Any],
    rows: list[Figure],
    lifecycle: dict[str, Any] | None,
    peer: bool,
) -> None:
    """Print the table and its conditions."""
    print(
        f"Files of {baseline_files['records']:,} records and {baseline_files['xml_bytes'][0] / MB:.0f} MB "
        "of XML, made of "
        f"{baseline_files['distinct']:,} distinct ones; {os.cpu_count()} cores, Python "
        f"{sys.version.split()[0]}."
    )
    timed = [run for name, of in runs.items() if name not in UNTIMED for run in of]
    busy_cores = [run.other_cores for run in timed if run.other_cores > CALM_CORES]
    if busy_cores:
        print(
            f"{len(busy_cores)} of {len(timed)} runs are too long: other processes kept "
            f"{max(busy_cores):.1f} cores busy."
        )
    if min(run.wall for run in runs["lxml"]) < 1:
        print("The files are too small for the ratios to mean anything.")
    if not os.environ.get("BIOSHARDS_DATA"):
        print("Made of the bundled sample (BIOSHARDS_DATA is not set): these figures are only indicative.")
    if not peer:
        print("pubmed_parser: not installed, not compared.")
    if lifecycle:
        records, living = lifecycle["check"]["records"], lifecycle["check"]["living"]
        print(
            f"Life cycle: {records:,} records at random PMIDs, {living:,} live, "
            f"{lifecycle['read_back']['duplicates']:,} of them duplicates (counted another way too)."
        )
    print(f"\n{timing.format_table(rows)}")


if __name__ == "__main__":
    main()
