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
from bioshards.corpus.files import LocalFiles
from bioshards.vocab.inputs import find

from .jobs import ROOT, Bench, less, ratios
from .timing import MB, Figure, Run

ELECTRA: Final = ("--preset", "bio-electra")
KINDS: Final = {
    "electra, 256": ELECTRA,
    "bert, 512, dupe factor 5": ("--preset", "pubmedbert"),
    "electra, 256, global shuffle": (*ELECTRA, "--shuffle", "global"),
}


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
            text = split["tokens"] - split["special"] - split["borrowed"]
            if split["read"] != text + sum(split["lost"].values()):
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
    batch = next(shards.read(LocalFiles(), folder)).slice(0, 1)
    written = shards.write(LocalFiles(), str(out), "one", iter([batch]), batch.schema, 1)
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
    for _ in range(options.repeats):
        for workers in (1, 2):
            bench.examples(
                f"start {workers}", one, vocabulary, workers, "--validation", "0", tries=options.tries
            )
            for kind, chosen in KINDS.items():
                bench.examples(f"{kind} {workers}", large, vocabulary, workers, *chosen, tries=options.tries)
    size = sum(shard.bytes for shard in find(LocalFiles(), [large])[0].shards)
    rows = [Figure("document shards", [size / MB], "MB")]
    for workers in (1, 2):
        rows += [
            Figure(f"start-up, {workers} worker(s): wall", bench.walls(f"start {workers}"), "s"),
            Figure(f"start-up, {workers} worker(s): CPU", bench.cpus(f"start {workers}"), "s"),
        ]
    return rows + [row for kind in KINDS for row in _figures(bench, kind)]


def _figures(bench: ExampleJobs, kind: str) -> list[Figure]:
    rows = []
    walls = {}
    for workers in (1, 2):
        name = f"{kind} {workers}"
        cpu = less(bench.cpus(name), bench.cpus(f"start {workers}"))
        walls[workers] = less(bench.walls(name), bench.walls(f"start {workers}"))
        tokens = bench.tokens(name)
        rows += [
            Figure(f"{kind}, {workers} worker(s): raw wall", bench.walls(name), "s"),
            Figure(f"{kind}, {workers} worker(s): raw CPU", bench.cpus(name), "s"),
            Figure(
                f"{kind}, {workers} worker(s): a core, less start-up",
                [tokens / one / 1e6 for one in cpu],
                "M tokens/s",
            ),
        ]
    rows.append(
        Figure(
            f"**{kind}: 2 workers against 1, less start-up**", ratios(walls[1], walls[2]), "×", ">=", 1.7, 1.9
        )
    )
    for workers in (1, 2):
        peaks = bench.peaks(f"{kind} {workers}")
        rows.append(Figure(f"{kind}: peak of a process, {workers} w.", peaks, "MB", "<=", 1500, 600))
    return rows
