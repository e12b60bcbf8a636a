"""``beam run shards_to_pretraining`` as a whole, for bench_examples.py: how fast, how large, on what."""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from bioshards.corpus import shards
from bioshards.corpus.files import LocalStorage
from bioshards.vocab.inputs import load_document_inputs
from tests.bench.jobs import ROOT, Bench, less, ratios
from tests.bench.timing import MB, Figure, Run

PRESET: Final = ("--preset", "bio-electra")
KINDS: Final = {
    "electra, 256, global shuffle": (*PRESET, "--shuffle", "global"),
    "bert, 512, five passes": ("--preset", "pubmedbert"),
}
"""What else is made, once, with two workers."""


class ExampleJobs(Bench):
    """Keeps what each job's manifest counts beside what it took."""

    def __init__(self, work: Path) -> None:
        super().__init__(work)
        self.counts: dict[str, dict[str, Any]] = {}

    def examples(
        self, name: str, folder: str, vocabulary: str, workers: int, *options: str, tries: int
    ) -> Run:
        """Time the pipeline into a new output folder, and see that no token went missing."""
        output = self.work / "output"
        command = [self._beam, "run", "shards_to_pretraining", "--workers", str(workers), *options]
        command += ["--input", folder, "--vocab", vocabulary, "--output", str(output)]

        def anew() -> list[str]:
            shutil.rmtree(output, ignore_errors=True)
            return command

        run = self._run(name, anew, tries)
        counts = self.counts[name] = json.loads((output / "manifest.json").read_text())["counts"]
        for split in (counts["train"], counts["validation"]):
            text = split["tokens"] - split["special_tokens"] - split["other_document_tokens"]
            if split["input_tokens"] != text + sum(split["lost_tokens"].values()):
                raise SystemExit(f"{name}: tokens are neither in a row nor lost: {counts}")
        shutil.rmtree(output)
        return run

    def tokens(self, name: str) -> int:
        """All tokens of its rows."""
        counts = self.counts[name]
        return int(counts["train"]["tokens"] + counts["validation"]["tokens"])


def small(folder: str, out: Path) -> str:
    """A directory of one document, for what a job needs to start."""
    out.mkdir(exist_ok=True)
    batch = next(shards.read_directory(LocalStorage(), folder)).slice(0, 1)
    written = shards.write_shards(LocalStorage(), str(out), "one", iter([batch]), batch.schema, 1)
    manifest = json.loads(Path(folder, "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "outputs": [asdict(one) for one in written]}))
    return str(out)


def pipeline_figures(
    bench: ExampleJobs, folders: list[str], vocabulary: str, options: argparse.Namespace
) -> list[Figure]:
    """Run the pipeline with one worker and two, round by round; its rows."""
    large, one = str(bench.work / f"enlarged-{options.pipeline_mb:g}"), str(bench.work / "one")
    command = [sys.executable, "-m", "tests.bench.enlarged", large, str(options.pipeline_mb), *folders]
    subprocess.run(command, check=True, cwd=ROOT)
    small(large, Path(one))
    bench.examples("untimed", one, vocabulary, 1, "--validation", "0", tries=1)
    for _ in range(options.repeats):
        for workers in (1, 2):
            bench.examples(
                f"start {workers}", one, vocabulary, workers, "--validation", "0", tries=options.tries
            )
            bench.examples(f"electra {workers}", large, vocabulary, workers, *PRESET, tries=options.tries)
    for kind, chosen in KINDS.items():
        bench.examples(kind, large, vocabulary, 2, *chosen, tries=1)
    size = sum(shard.bytes for shard in load_document_inputs(LocalStorage(), [large])[0].shards)
    rows = [Figure("document shards", [size / MB], "MB")]
    rows += [row for workers in (1, 2) for row in _figures(bench, workers)]
    one_worker, two = (
        less(bench.walls(f"electra {workers}"), bench.walls(f"start {workers}")) for workers in (1, 2)
    )
    rows.append(
        Figure("**2 workers against 1, less start-up**", ratios(one_worker, two), "×", ">=", 1.7, 1.9)
    )
    seconds = [less(bench.cpus(f"electra {workers}"), bench.cpus(f"start {workers}")) for workers in (1, 2)]
    rows.append(Figure("CPU of 1 worker / CPU of 2, less start-up", ratios(*seconds), "×"))
    for name in ("electra 1", "electra 2", *KINDS):
        title = f"peak of a process, {name}{' worker(s)' if name not in KINDS else ', 2 workers'}"
        rows.append(Figure(title, bench.peaks(name), "MB", "<=", 1500, 600))
    for name in KINDS:
        rows.append(Figure(f"{name}, 2 workers, all: wall", bench.walls(name), "s"))
        rows.append(_rate(bench, name, f"{name}, 2 workers, all", bench.cpus(name)))
    return rows


def _figures(bench: ExampleJobs, workers: int) -> list[Figure]:
    name, start, title = f"electra {workers}", f"start {workers}", f"electra, 256, {workers} worker(s)"
    return [
        Figure(f"start-up, {workers} worker(s): wall", bench.walls(start), "s"),
        Figure(f"start-up, {workers} worker(s): CPU", bench.cpus(start), "s"),
        Figure(f"{title}: raw wall", bench.walls(name), "s"),
        Figure(f"{title}: raw CPU", bench.cpus(name), "s"),
        _rate(bench, name, f"{title}, less start-up", less(bench.cpus(name), bench.cpus(start))),
        Figure(
            f"cores that others kept busy, {workers} worker(s)", [run.others for run in bench.runs[name]], ""
        ),
    ]


def _rate(bench: ExampleJobs, name: str, title: str, seconds: list[float]) -> Figure:
    return Figure(f"{title}: a core", [bench.tokens(name) / MB / one for one in seconds], "M tokens/s")
