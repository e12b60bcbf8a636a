"""``beam run shards_to_pretraining`` as a whole, for bench_pretraining_sets.py: how fast, how large, on
what.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.shards import document_shards
from bioshards.corpus.shards.input_dirs import load_document_inputs
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.bench.harness.bench_runner import ROOT, BenchRunner, ratios_by_round, subtract_startup
from tests.bench.harness.timing import MB, Figure, TimedRun

PRESET: Final = ("--preset", "bio-electra")
EXTRA_RUNS: Final = {
    "bert, 512, five passes": ("--preset", "pubmedbert"),
}
"""Further runs, once each, with two workers."""


class PretrainingSetBench(BenchRunner):
    """Timed runs of the pipeline, with the counts of their manifests."""

    def __init__(self, work: Path) -> None:
        super().__init__(work)
        self.counts: dict[str, dict[str, Any]] = {}

    def time_build(
        self, name: str, folders: list[str], vocabulary: str, workers: int, *options: str, tries: int
    ) -> TimedRun:
        """Time the pipeline into a new output folder, and check that no token is lost."""
        output = self.work / "output"
        command = [self._beam, "run", "shards_to_pretraining", "--workers", str(workers), *options]
        for folder in folders:
            command += ["--input", folder]
        command += ["--vocab", vocabulary, "--output", str(output)]

        def prepare_command() -> list[str]:
            shutil.rmtree(output, ignore_errors=True)
            return command

        run = self._time_command(name, prepare_command, tries)
        counts = self.counts[name] = json.loads((output / "manifest.json").read_text())["counts"]
        for split in (counts["train"], counts["validation"]):
            text = split["tokens"] - split["special_tokens"] - split["other_document_tokens"]
            if split["input_tokens"] != text + sum(split["lost_tokens"].values()):
                raise SystemExit(f"{name}: tokens are neither in a row nor lost: {counts}")
        shutil.rmtree(output)
        return run

    def count_tokens(self, name: str) -> int:
        """Count the tokens of all rows."""
        counts = self.counts[name]
        return int(counts["train"]["tokens"] + counts["validation"]["tokens"])


def write_single_document(folder: str, index: int, out: Path) -> str:
    """Write a directory of the first document of a record batch, to measure the start-up."""
    out.mkdir(exist_ok=True)
    batch = next(itertools.islice(document_shards.read_directory(LocalStorage(), folder), index, None)).slice(
        0, 1
    )
    written = document_shards.write_shards(LocalStorage(), str(out), "one", iter([batch]), batch.schema, 1)
    manifest = json.loads(Path(folder, "manifest.json").read_text())
    (out / "manifest.json").write_text(
        json.dumps({**manifest, "outputs": [asdict(shard) for shard in written]})
    )
    return str(out)


def measure_pipeline(
    bench: PretrainingSetBench, folders: list[str], vocabulary: str, options: argparse.Namespace
) -> list[Figure]:
    """Run the pipeline with one worker and two in turns; return the rows of the table."""
    enlarged_dir = str(bench.work / f"enlarged-{options.pipeline_mb:g}")
    command = [
        sys.executable,
        "-m",
        "tests.bench.harness.enlarged_shards",
        enlarged_dir,
        str(options.pipeline_mb),
        *folders,
    ]
    subprocess.run(command, check=True, cwd=ROOT)
    # each worker needs a directory: processes without a group of shards are not started
    single_documents = [
        write_single_document(enlarged_dir, index, bench.work / f"one-{index}") for index in range(2)
    ]
    bench.time_build("untimed", single_documents, vocabulary, 2, "--validation-fraction", "0", tries=1)
    for _ in range(options.repeats):
        for workers in (1, 2):
            bench.time_build(
                f"start {workers}",
                single_documents[:workers],
                vocabulary,
                workers,
                "--validation-fraction",
                "0",
                tries=options.tries,
            )
            bench.time_build(
                f"electra {workers}", [enlarged_dir], vocabulary, workers, *PRESET, tries=options.tries
            )
    for kind, preset_options in EXTRA_RUNS.items():
        bench.time_build(kind, [enlarged_dir], vocabulary, 2, *preset_options, tries=1)
    size = sum(shard.bytes for shard in load_document_inputs(LocalStorage(), [enlarged_dir])[0].shards)
    rows = [Figure("document shards", [size / MB], "MB")]
    rows += [row for workers in (1, 2) for row in _worker_figures(bench, workers)]
    one_worker, two = (
        subtract_startup(bench.walls(f"electra {workers}"), bench.walls(f"start {workers}"))
        for workers in (1, 2)
    )
    rows.append(
        Figure(
            "**2 workers against 1, less start-up**", ratios_by_round(one_worker, two), "×", ">=", 1.7, 1.9
        )
    )
    seconds = [
        subtract_startup(bench.cpus(f"electra {workers}"), bench.cpus(f"start {workers}"))
        for workers in (1, 2)
    ]
    rows.append(Figure("CPU of 1 worker / CPU of 2, less start-up", ratios_by_round(*seconds), "×"))
    for name in ("electra 1", "electra 2", *EXTRA_RUNS):
        title = f"peak of a process, {name}{' worker(s)' if name not in EXTRA_RUNS else ', 2 workers'}"
        rows.append(Figure(title, bench.peaks(name), "MB", "<=", 1500, 600))
    for name in EXTRA_RUNS:
        rows.append(Figure(f"{name}, 2 workers, all: wall", bench.walls(name), "s"))
        rows.append(_rate_figure(bench, name, f"{name}, 2 workers, all", bench.cpus(name)))
    return rows


def _worker_figures(bench: PretrainingSetBench, workers: int) -> list[Figure]:
    name, start, title = f"electra {workers}", f"start {workers}", f"electra, 256, {workers} worker(s)"
    return [
        Figure(f"start-up, {workers} worker(s): wall", bench.walls(start), "s"),
        Figure(f"start-up, {workers} worker(s): CPU", bench.cpus(start), "s"),
        Figure(f"{title}: raw wall", bench.walls(name), "s"),
        Figure(f"{title}: raw CPU", bench.cpus(name), "s"),
        _rate_figure(
            bench, name, f"{title}, less start-up", subtract_startup(bench.cpus(name), bench.cpus(start))
        ),
        Figure(
            f"cores that others kept busy, {workers} worker(s)",
            [run.other_cores for run in bench.runs[name]],
            "",
        ),
    ]


def _rate_figure(bench: PretrainingSetBench, name: str, title: str, seconds: list[float]) -> Figure:
    return Figure(f"{title}: a core", [bench.count_tokens(name) / MB / one for one in seconds], "M tokens/s")
