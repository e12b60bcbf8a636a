"""A rehearsal of scale on one machine: ``python -m tests.bench.scale [PART ...]``.

    files    1,000 small files of PubMed's, by reference, through pubmed_to_shards; then one more; then none
    listing  1,600 real names in a listing, none of them in the mirror and then all
    ranges   1 million article versions in an inventory of PMC's, and 9.3 million
    shards   10,000 shards in a manifest; the words of 1,000 counted
    graphs   the job graphs of the full corpora, and of twice as much
    calls    what a run asks of its storage, and how long that takes where each call takes a while

Nothing is as large as it will be but the numbers of things.  How long text takes is in the other benchmarks.
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

from bioshards.corpus.ahead import MAX_CONCURRENT_CALLS
from bioshards.corpus.download import pubmed
from bioshards.corpus.download.mirror import Mirror, MirroredFile
from bioshards.corpus.download.named import parse_source_spec
from bioshards.corpus.files import LocalStorage
from bioshards.pipelines.fetching import make_server
from tests.bench.timing import MB, Figure, Run
from tests.conftest import citation, pubmed_set
from tests.standin import StandIn
from tests.standin_pages import arrange_pubmed

from . import baseline, scale_graphs, timing

ROOT: Final = Path(__file__).resolve().parents[2]
SMALL_FILES, SMALL_RECORDS = 1000, 30
BASELINE, UPDATES = 1334, 266
"""Files of PubMed's baseline of 2026, and of updates by the autumn."""
PUT_THERE: Final = 1_768_000_000
"""When the listed files were put there, in January 2026: the listing alone says whether one has changed."""
CALL_SECONDS: Final = 0.04
"""Of a call to an object store: an assumption; 20 to 50 ms are usual in the same region."""
FULL: Final = {"files": 3000, "ranges": 1400, "shards": 10_000}
"""Twice PubMed's files with a year's updates, PMC's ranges of ids, twice the shards of both."""


class Rehearsal:
    """Runs commands in the work folder."""

    def __init__(self, work: Path) -> None:
        self.work = work

    def beam(self, *words: object) -> Run:
        return self._run("bioshards.pipelines.cli", "run", *words)

    def step(self, step: str, count: int) -> tuple[dict[str, Any], Run]:
        """What a step of scale_steps.py says of itself."""
        run = self._run("tests.bench.scale_steps", step, count, "--work", self.work)
        return json.loads(run.output), run

    def _run(self, module: str, *words: object) -> Run:
        command = [sys.executable, "-m", module, *map(str, words)]
        run = timing.run(command, dict(os.environ), ROOT, self.work / "stderr.log")
        print(
            f"{module} {' '.join(command[3:6])}: {run.wall:.1f} s, CPU {run.cpu:.1f} s, {run.peak_mb:.0f} MB,"
            f" others {run.others:.1f} cores",
            file=sys.stderr,
        )
        return run


def files(rehearsal: Rehearsal) -> list[Figure]:
    """Many small files, by reference."""
    work = rehearsal.work / "files"
    made = baseline.make(work, SMALL_RECORDS, SMALL_FILES)
    given, output = Path(made.paths[0]).parent, work / "output"
    more = given / f"pubmed26n{SMALL_FILES + 1:04d}.xml"
    more.unlink(missing_ok=True)
    shutil.rmtree(output, ignore_errors=True)
    command = ("pubmed_to_shards", "--workers", 2, "--input", given, "--output", output)
    first = rehearsal.beam(*command)
    ended = _ends(output)
    more.write_bytes(pubmed_set(citation(baseline.FIRST_PMID + 7, "Revised. Since."), deleted=(1,)))
    update = rehearsal.beam(*command)
    ended_again = _ends(output)
    nothing = rehearsal.beam(*command)
    size = sum(path.stat().st_size for path in map(Path, made.paths)) / MB
    return [
        Figure(f"{SMALL_FILES:,} files of {SMALL_RECORDS} records, {size:.0f} MB: wall", [first.wall], "s"),
        *(Figure(f"... {step}", [seconds], "s") for step, seconds in ended.items()),
        Figure("... peak of the driver", [first.processes_mb[0]], "MB"),
        Figure("... peak of a worker", [max(first.processes_mb[1:], default=0)], "MB"),
        Figure("one more file: wall", [update.wall], "s"),
        *(Figure(f"... {step}", [seconds], "s") for step, seconds in ended_again.items()),
        Figure("nothing new: wall", [nothing.wall], "s"),
    ]


def _ends(output: Path) -> dict[str, float]:
    """How long each step took, by when it left its last file."""
    work = output / ".bioshards"
    ends = {"begun": (work / "config.json").stat().st_mtime}
    for step, pattern in (
        ("staging", "staged/*.json"),
        ("deciding", "verdicts/*"),
        ("finishing", "finished/*"),
    ):
        ends[step] = max(path.stat().st_mtime for path in work.glob(pattern))
    ends["publishing"] = (output / "manifest.json").stat().st_mtime
    names, times = list(ends), [max(list(ends.values())[: at + 1]) for at in range(len(ends))]
    return {name: times[at] - times[at - 1] for at, name in enumerate(names) if at}


def listing(rehearsal: Rehearsal) -> list[Figure]:
    """PubMed's own names in a listing like its own."""
    work = rehearsal.work / "listing"
    shutil.rmtree(work, ignore_errors=True)
    names = [f"pubmed26n{number:04d}.xml.gz" for number in range(1, BASELINE + UPDATES + 1)]
    data = pubmed_set(citation(1))
    arrange_pubmed(
        work / "root", dict.fromkeys(names[:BASELINE], data), dict.fromkeys(names[BASELINE:], data)
    )
    for path in (work / "root").rglob("*"):
        os.utime(path, (PUT_THERE, PUT_THERE))
    with StandIn(work / "root") as server:
        url = f"{server.url}pubmed/"
        command = (
            *("pubmed_to_shards", "--input", "pubmed:", "--pubmed-url", url, "--dry-run"),
            *("--mirror", work / "mirror", "--output", work / "output"),
        )
        missing = rehearsal.beam(*command)
        _hold(work / "mirror", url)
        before = len(server.requests)
        held = rehearsal.beam(*command)
        asked = len(server.requests) - before
    return [
        Figure(f"{len(names):,} files listed, none in the mirror: dry run", [missing.wall], "s"),
        Figure("... all in the mirror: dry run", [held.wall], "s"),
        Figure("... requests", [asked], ""),
        Figure("... peak", [held.peak_mb], "MB"),
    ]


def _hold(folder: Path, url: str) -> None:
    """A mirror that holds all that is listed, as a run leaves it."""
    mirror, wanted = Mirror(LocalStorage(), str(folder)), parse_source_spec("pubmed:")
    assert wanted
    with make_server(url, None, 4, 8.0).connect() as connection:
        chosen = pubmed.list_files(connection, url, wanted).files
    for remote in chosen:
        path = Path(mirror.path(remote))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"\x1f\x8b")
        [found] = mirror.storage.glob(str(path))
        mirror._write_record(remote, MirroredFile(found, "0" * 32, True, "2026-11-01T10:00:00Z"))


def ranges(rehearsal: Rehearsal) -> list[Figure]:
    """PMC's inventory."""
    figures = []
    for rows in (1_000_000, 9_300_000):
        rehearsal.step("inventory", rows)  # makes it
        said, run = rehearsal.step("inventory", rows)
        figures += [
            Figure(f"inventory of {rows:,} articles, {said['ranges']:,} ranges: read", [said["read"]], "s"),
            Figure("... kept as", [said["bytes"] / MB], "MB"),
            Figure("... the ranges listed again", [said["list ranges"]], "s"),
            Figure("... the articles of one range", [said["read a range"]], "s"),
            Figure("... peak", [run.peak_mb], "MB"),
        ]
    return figures


def shards(rehearsal: Rehearsal) -> list[Figure]:
    """Many shards in one manifest."""
    count, some = FULL["shards"], 1000
    said, run = rehearsal.step("manifest", count)
    rehearsal.step("tiny", some)
    tiny, work = rehearsal.work / f"tiny-{some}", rehearsal.work / "shards"
    shutil.rmtree(work, ignore_errors=True)
    words = rehearsal.beam(
        *("shards_to_words", "--workers", 2, "--input", tiny, "--output", work / "words"),
    )
    watched = rehearsal.step("watch", FULL["files"])[0]
    return [
        Figure(f"{count:,} shards: publish", [said["publish"]], "s"),
        Figure("... the manifest", [said["manifest"] / MB], "MB"),
        Figure("... read", [said["read"]], "s"),
        Figure("... found as an input", [said["find"]], "s"),
        Figure("... dealt out to portions", [said["portions"]], "s"),
        Figure("... peak of a process that does all of this", [run.peak_mb], "MB"),
        Figure("reports as side inputs: of what is staged", [said["staged"] * count / MB], "MB"),
        Figure("... of what is finished", [said["finished"] * count / MB], "MB"),
        Figure(f"shards_to_words of {some:,} tiny shards: wall", [words.wall], "s"),
        Figure("... peak of the driver", [words.processes_mb[0]], "MB"),
        Figure(f"progress of {FULL['files']:,} files: a look", [1000 * watched["next look"]], "ms"),
    ]


def graphs(rehearsal: Rehearsal) -> list[Figure]:
    """The graphs of the full corpora."""
    vocabulary = scale_graphs.vocabulary(rehearsal.work / "vocabulary")
    jobs: dict[str, tuple[Callable[[int], scale_graphs.Build], list[int]]] = {
        "pubmed_to_shards, files here": (scale_graphs.citations, [1600, 3000]),
        "pubmed_to_shards, files to fetch": (lambda count: scale_graphs.citations(0, count), [1600, 3000]),
        "pmc_to_shards, ranges": (scale_graphs.articles, [1400, 2800]),
        "shards_to_words, shards": (scale_graphs.words, [5000, 10_000]),
        "shards_to_pretraining, portions": (
            lambda count: scale_graphs.examples(count, vocabulary),
            [5000, 10_000],
        ),
    }
    limit = scale_graphs.LIMIT / MB
    return [
        Figure(f"graph of {name}: {count:,}", [scale_graphs.size(of(count)) / MB], "MB", "<=", limit)
        for name, (of, counts) in jobs.items()
        for count in counts
    ]


def calls(rehearsal: Rehearsal) -> list[Figure]:
    """How long the calls of a step take in one process at the full size, by themselves.

    Of two small runs, the difference is what each further file or shard asks for.
    """
    few, many = 20, 60
    said = {count: rehearsal.step("calls", count)[0] for count in (few, many)}
    figures = []
    for run, steps in said[many].items():
        full = FULL["shards" if run == "words" else "files"]
        for step, now in steps.items():
            before = said[few][run][step]
            serial, ahead = ((now[at] - before[at]) / (many - few) for at in range(2))
            once = now[0] - many * serial
            total = [once + full * (serial + ahead / at_once) for at_once in (MAX_CONCURRENT_CALLS, 1)]
            minutes = [of * CALL_SECONDS / 60 for of in total]
            name = f"{run}, {step}: {once:.0f} calls, and for each of {full:,} {serial:g}"
            figures.append(Figure(f"{name} and {ahead:g} ahead", minutes[:1], "min"))
            if ahead:
                figures.append(Figure("... if none were ahead", minutes[1:], "min"))
    return figures


PARTS: Final = {part.__name__: part for part in (files, listing, ranges, shards, graphs, calls)}


def main() -> None:
    """Measure what is asked for, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.scale", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", default=[])
    parser.add_argument("--work", type=Path, default=Path("build/bench/scale"))
    options = parser.parse_args()
    work = options.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    timing.adopt_orphans()
    rehearsal = Rehearsal(work)
    figures = [figure for part in options.parts or PARTS for figure in PARTS[part](rehearsal)]
    print(f"\n{timing.table(figures)}")


if __name__ == "__main__":
    main()
