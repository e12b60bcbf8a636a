"""A rehearsal of scale on one machine: ``python -m tests.bench.bench_scale [PART ...]``.

    files    1,000 small PubMed files through pubmed_to_shards; then one more; then none
    listing  a listing of 1,600 real names, first with an empty and then with a complete mirror
    ranges   1 million article versions in an inventory of PMC's, and 9.3 million
    shards   10,000 shards in a manifest; the words of 1,000 counted
    graphs   the job graphs of the full corpora, and of twice as much
    calls    storage calls of a run, and their time on an object store
    cluster  all of PubMed and PMC on 64 slots, on paper

Only the numbers of files, shards and records are those of the full corpora.  The other benchmarks measure the
processing of text.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.download import pubmed
from bioshards.corpus.download.mirror import Mirror, MirroredFile
from bioshards.corpus.download.sources import parse_source_spec
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import MAX_CONCURRENT_CALLS
from bioshards.pipelines.inputs.downloads import make_server
from tests.bench.harness import pubmed_baseline, scale_cluster, scale_graphs, timing
from tests.bench.harness.timing import MB, Figure, TimedRun
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server

ROOT: Final = Path(__file__).resolve().parents[2]
SMALL_FILES, SMALL_RECORDS = 1000, 30
BASELINE, UPDATES = 1334, 266
"""Files of PubMed's baseline of 2026, and of updates by the autumn."""
LISTED_TIMESTAMP: Final = 1_768_000_000
"""Modification time of the listed files, January 2026; a changed file has another time in the listing."""
CALL_SECONDS: Final = 0.04
"""Assumed time of a call to an object store; 20 to 50 ms are usual in the same region."""
FULL_SCALE: Final = {"files": 3000, "ranges": 1400, "shards": 10_000}
"""Twice PubMed's files with a year's updates, PMC's ranges of ids, twice the shards of both."""


class ScaleBench:
    """Runs of commands in the work folder."""

    def __init__(self, work: Path) -> None:
        self.work = work

    def run_pipeline(self, *words: object) -> TimedRun:
        return self._run("bioshards.pipelines.cli", "run", *words)

    def run_step(self, step: str, count: int) -> tuple[dict[str, Any], TimedRun]:
        """Run a step of scale_steps.py; return its printed figures."""
        run = self._run("tests.bench.harness.scale_steps", step, count, "--work", self.work)
        return json.loads(run.output), run

    def _run(self, module: str, *words: object) -> TimedRun:
        command = [sys.executable, "-m", module, *map(str, words)]
        run = timing.time_command(command, dict(os.environ), ROOT, self.work / "stderr.log")
        print(
            f"{module} {' '.join(command[3:6])}: {run.wall:.1f} s, CPU {run.cpu:.1f} s, {run.peak_mb:.0f} MB,"
            f" others {run.other_cores:.1f} cores",
            file=sys.stderr,
        )
        return run


def measure_files(bench: ScaleBench) -> list[Figure]:
    """Measure a run over many small files."""
    work = bench.work / "files"
    made = pubmed_baseline.make_baseline(work, SMALL_RECORDS, SMALL_FILES)
    input_dir, output = Path(made.paths[0]).parent, work / "output"
    extra_file = input_dir / f"pubmed26n{SMALL_FILES + 1:04d}.xml"
    extra_file.unlink(missing_ok=True)
    shutil.rmtree(output, ignore_errors=True)
    command = ("pubmed_to_shards", "--workers", 2, "--input", input_dir, "--output", output)
    first = bench.run_pipeline(*command)
    step_seconds = _step_seconds(output)
    extra_file.write_bytes(
        pubmed_set_xml(citation_xml(pubmed_baseline.FIRST_PMID + 7, "Revised. Since."), deleted=(1,))
    )
    update = bench.run_pipeline(*command)
    update_step_seconds = _step_seconds(output)
    unchanged = bench.run_pipeline(*command)
    size = sum(path.stat().st_size for path in map(Path, made.paths)) / MB
    return [
        Figure(f"{SMALL_FILES:,} files of {SMALL_RECORDS} records, {size:.0f} MB: wall", [first.wall], "s"),
        *(Figure(f"... {step}", [seconds], "s") for step, seconds in step_seconds.items()),
        Figure("... peak of the driver", [first.processes_mb[0]], "MB"),
        Figure("... peak of a worker", [max(first.processes_mb[1:], default=0)], "MB"),
        Figure("one more file: wall", [update.wall], "s"),
        *(Figure(f"... {step}", [seconds], "s") for step, seconds in update_step_seconds.items()),
        Figure("nothing new: wall", [unchanged.wall], "s"),
    ]


def _step_seconds(output: Path) -> dict[str, float]:
    """Return the duration of each step, by the modification time of its last file."""
    work = output / ".bioshards"
    step_ends = {"begun": (work / "config.json").stat().st_mtime}
    for step, pattern in (
        ("staging", "staged/*.json"),
        ("deciding", "verdicts/*"),
        ("finishing", "finished/*"),
    ):
        step_ends[step] = max(path.stat().st_mtime for path in work.glob(pattern))
    step_ends["publishing"] = (output / "manifest.json").stat().st_mtime
    names, times = list(step_ends), [max(list(step_ends.values())[: at + 1]) for at in range(len(step_ends))]
    return {name: times[at] - times[at - 1] for at, name in enumerate(names) if at}


def measure_listing(bench: ScaleBench) -> list[Figure]:
    """Measure a listing with PubMed's file names."""
    work = bench.work / "listing"
    shutil.rmtree(work, ignore_errors=True)
    names = [f"pubmed26n{number:04d}.xml.gz" for number in range(1, BASELINE + UPDATES + 1)]
    data = pubmed_set_xml(citation_xml(1))
    create_pubmed_server(
        work / "root", dict.fromkeys(names[:BASELINE], data), dict.fromkeys(names[BASELINE:], data)
    )
    for path in (work / "root").rglob("*"):
        os.utime(path, (LISTED_TIMESTAMP, LISTED_TIMESTAMP))
    with FakeServer(work / "root") as server:
        url = f"{server.url}pubmed/"
        command = (
            *("pubmed_to_shards", "--input", "pubmed:", "--pubmed-url", url, "--dry-run"),
            *("--mirror", work / "mirror", "--output", work / "output"),
        )
        missing_run = bench.run_pipeline(*command)
        _write_mirror(work / "mirror", url)
        before = len(server.requests)
        held_run = bench.run_pipeline(*command)
        requests = len(server.requests) - before
    return [
        Figure(f"{len(names):,} files listed, none in the mirror: dry run", [missing_run.wall], "s"),
        Figure("... all in the mirror: dry run", [held_run.wall], "s"),
        Figure("... requests", [requests], ""),
        Figure("... peak", [held_run.peak_mb], "MB"),
    ]


def _write_mirror(folder: Path, url: str) -> None:
    """Write a complete mirror of the listed files."""
    mirror, wanted = Mirror(LocalStorage(), str(folder)), parse_source_spec("pubmed:")
    assert wanted
    with make_server(url, None, 4, 8.0).connect() as connection:
        chosen = pubmed.list_files(connection, url, wanted, (), False).files
    for remote in chosen:
        path = Path(mirror.path(remote))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x1f\x8b")
        [found] = mirror.storage.glob(str(path))
        mirror._save_record(remote, MirroredFile(found, "0" * 32, True, "2026-11-01T10:00:00Z"))


def measure_ranges(bench: ScaleBench) -> list[Figure]:
    """Measure reading PMC's inventory."""
    figures = []
    for rows in (1_000_000, 9_300_000):
        bench.run_step("inventory", rows)  # makes it
        measured, run = bench.run_step("inventory", rows)
        figures += [
            Figure(
                f"inventory of {rows:,} articles, {measured['ranges']:,} ranges: read",
                [measured["read"]],
                "s",
            ),
            Figure("... kept as", [measured["bytes"] / MB], "MB"),
            Figure("... the ranges listed again", [measured["list ranges"]], "s"),
            Figure("... the articles of one range", [measured["read a range"]], "s"),
            Figure("... peak", [run.peak_mb], "MB"),
        ]
    return figures


def measure_shards(bench: ScaleBench) -> list[Figure]:
    """Measure manifests of many shards."""
    count, tiny_count = FULL_SCALE["shards"], 1000
    measured, run = bench.run_step("manifest", count)
    bench.run_step("tiny", tiny_count)
    tiny, work = bench.work / f"tiny-{tiny_count}", bench.work / "shards"
    shutil.rmtree(work, ignore_errors=True)
    words = bench.run_pipeline(
        *("shards_to_words", "--workers", 2, "--input", tiny, "--output", work / "words"),
    )
    progress_times = bench.run_step("watch", FULL_SCALE["files"])[0]
    return [
        Figure(f"{count:,} shards: publish", [measured["publish"]], "s"),
        Figure("... the manifest", [measured["manifest"] / MB], "MB"),
        Figure("... read", [measured["read"]], "s"),
        Figure("... found as an input", [measured["find"]], "s"),
        Figure("... dealt out to portions", [measured["portions"]], "s"),
        Figure("... peak of a process that does all of this", [run.peak_mb], "MB"),
        Figure("reports as side inputs: of what is staged", [measured["staged"] * count / MB], "MB"),
        Figure("... of what is finished", [measured["finished"] * count / MB], "MB"),
        Figure(f"shards_to_words of {tiny_count:,} tiny shards: wall", [words.wall], "s"),
        Figure("... peak of the driver", [words.processes_mb[0]], "MB"),
        Figure(
            f"progress of {FULL_SCALE['files']:,} files: a look", [1000 * progress_times["next look"]], "ms"
        ),
    ]


def measure_graphs(bench: ScaleBench) -> list[Figure]:
    """Measure the job graphs of the full corpora."""
    vocabulary = scale_graphs.write_vocabulary(bench.work / "vocabulary")
    jobs: dict[str, tuple[Callable[[int], scale_graphs.BuildGraph], list[int]]] = {
        "pubmed_to_shards, files here": (scale_graphs.citations_graph, [1600, 3000]),
        "pubmed_to_shards, files to fetch": (
            lambda count: scale_graphs.citations_graph(0, count),
            [1600, 3000],
        ),
        "pmc_to_shards, ranges": (scale_graphs.articles_graph, [1400, 2800]),
        "shards_to_words, shards": (scale_graphs.words_graph, [5000, 10_000]),
        "shards_to_pretraining, portions": (
            lambda count: scale_graphs.pretraining_graph(count, vocabulary),
            [5000, 10_000],
        ),
    }
    limit = scale_graphs.MAX_GRAPH_BYTES / MB
    return [
        Figure(f"graph of {name}: {count:,}", [scale_graphs.graph_size(of(count)) / MB], "MB", "<=", limit)
        for name, (of, counts) in jobs.items()
        for count in counts
    ]


def measure_calls(bench: ScaleBench) -> list[Figure]:
    """Measure the time of the storage calls of each step in one process at full scale.

    The calls of each further file or shard are the difference of two small runs.
    """
    few, many = 20, 60
    calls_by_count = {count: bench.run_step("calls", count)[0] for count in (few, many)}
    figures = []
    for run, steps in calls_by_count[many].items():
        full = FULL_SCALE["shards" if run == "words" else "files"]
        for step, now in steps.items():
            before = calls_by_count[few][run][step]
            serial, ahead = ((now[at] - before[at]) / (many - few) for at in range(2))
            fixed_calls = now[0] - many * serial
            total = [fixed_calls + full * (serial + ahead / at_once) for at_once in (MAX_CONCURRENT_CALLS, 1)]
            minutes = [of * CALL_SECONDS / 60 for of in total]
            name = f"{run}, {step}: {fixed_calls:.0f} calls, and for each of {full:,} {serial:g}"
            figures.append(Figure(f"{name} and {ahead:g} ahead", minutes[:1], "min"))
            if ahead:
                figures.append(Figure("... if none were ahead", minutes[1:], "min"))
    return figures


def measure_cluster(bench: ScaleBench) -> list[Figure]:
    """Work out the full corpora on a cluster."""
    return scale_cluster.measure()


PARTS: Final = {
    part.__name__: part
    for part in (
        measure_files,
        measure_listing,
        measure_ranges,
        measure_shards,
        measure_graphs,
        measure_calls,
        measure_cluster,
    )
}


def main() -> None:
    """Measure the given parts, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_scale", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", default=[])
    parser.add_argument("--work", type=Path, default=Path("build/bench/scale"))
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    timing.adopt_orphans()
    rehearsal = ScaleBench(work)
    figures = [figure for part in options.parts or PARTS for figure in PARTS[part](rehearsal)]
    print(f"\n{timing.format_table(figures)}")


if __name__ == "__main__":
    main()
