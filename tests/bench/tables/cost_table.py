"""Rates of each pipeline on one core, for pipelines/dry_run/cost.py: ``python -m
tests.bench.tables.cost_table``.

Each pipeline is run as a whole process with one worker on the text of BIOSHARDS_DATA, made larger, and what a
process needs to start is taken off.  CPU seconds count.  On a shared machine even these depend on what else
runs there, by twice and more, and not alike for all work.  So between the runs goes a yardstick, a bare parse
of citations by lxml: rates are to be believed where it reads about ``cost.YARDSTICK`` records a second.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.shards.input_dirs import load_document_inputs
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.pipelines.dry_run import cost
from tests.bench.bench_pubmed import LXML_SCRIPT, LXML_START
from tests.bench.harness import pubmed_baseline, timing
from tests.bench.harness.bench_runner import ROOT, BenchRunner
from tests.bench.harness.pretraining_set_runs import write_single_document
from tests.bench.harness.text_corpora import build_document_dirs, get_data_dir
from tests.bench.harness.timing import MB

RECORDS: Final = 30_000
"""In a file of PubMed's baseline."""
OBJECTIVES: Final = {
    "electra": ("--preset", "bio-electra"),
    "bert": ("--preset", "pubmedbert"),
    "albert": ("--preset", "bioalbert"),
    "plain": ("--objective", "plain"),
}
PASSES: Final = (1, 5)
HEAD: Final = (
    "| pipeline | items | input | one core | yardstick | items a core | input a core |\n"
    "|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class CostRow:
    """The cost of a pipeline on one core, less the start-up.

    Attributes:
        size: bytes of its input.
        seconds: of CPU, and ``yardstick``, records that were parsed in a second meanwhile.
    """

    name: str
    what: str
    items: int
    size: int
    seconds: float
    yardstick: float

    def format_row(self) -> str:
        """The row as Markdown."""
        return (
            f"| {self.name} | {self.items:,} {self.what} | {self.size / MB:,.1f} MB | {self.seconds:.1f} s "
            f"| {self.yardstick:,.0f} | {self.items / self.seconds:,.0f} {self.what}/s "
            f"| {self.size / MB / self.seconds:.2f} MB/s |"
        )


class CostBench(BenchRunner):
    """Runs of pipelines with one worker, with the yardstick between them."""

    def __init__(self, work: Path, tries: int) -> None:
        super().__init__(work)
        self._tries = tries
        self._baseline = pubmed_baseline.make_baseline(work, RECORDS, 2)
        self._lxml_start = self.time_python("lxml start", "-c", LXML_START, tries=tries).cpu
        self._yardstick = self._measure_yardstick()
        # The first run compiles its imports.
        self.measure("warm", "pmc_to_shards")

    def _measure_yardstick(self) -> float:
        seconds = self.time_python("lxml", "-c", LXML_SCRIPT, self._baseline.paths[0], tries=self._tries).cpu
        return RECORDS / (seconds - self._lxml_start)

    def citation_files(self) -> list[str]:
        """Two files like PubMed's."""
        return self._baseline.paths

    def measure(self, name: str, pipeline: str, *options: str) -> tuple[float, float, dict[str, Any]]:
        """Return the CPU seconds of a run, the yardstick before and after it, and its manifest."""
        output = self.work / "output"
        command = [self._beam, "run", pipeline, "--workers", "1", *options, "--output", str(output)]

        def prepare_command() -> list[str]:
            shutil.rmtree(output, ignore_errors=True)
            return command

        run, before = self._time_command(name, prepare_command, self._tries), self._yardstick
        self._yardstick = self._measure_yardstick()
        manifest: dict[str, Any] = json.loads((output / "manifest.json").read_text())
        shutil.rmtree(output)
        return run.cpu, (before + self._yardstick) / 2, manifest

    def measure_row(
        self, name: str, what: str, pipeline: str, minimal_input: list[str], words: list[str]
    ) -> CostRow:
        """Measure the row of a job; ``minimal_input`` are the options of a run on minimal input."""
        start, start_yardstick, _ = self.measure(f"{name}, start", pipeline, *minimal_input)
        seconds, yardstick, manifest = self.measure(name, pipeline, *words)
        if "funnel" in manifest:
            items, size = (
                manifest["funnel"]["records"],
                sum(minimal_input["bytes"] for minimal_input in manifest["inputs"]),
            )
        else:
            items = sum(minimal_input["documents"] for minimal_input in manifest["inputs"])
            size = sum(
                minimal_input.bytes
                for minimal_input in load_document_inputs(LocalStorage(), manifest["run"]["inputs"])[0].shards
            )
        return CostRow(name, what, items, size, seconds - start * start_yardstick / yardstick, yardstick)


def measure_source_pipelines(costs: CostBench, minimal_input: str) -> list[CostRow]:
    """Measure citations and articles to documents."""
    citations = [word for path in costs.citation_files() for word in ("--input", path)]
    articles = [
        "--input",
        f"{get_data_dir()}/jats",
        "--licences",
        "all",
        "--languages",
        "",
        "--max-rejected",
        "0.01",
    ]
    return [
        costs.measure_row(
            "pubmed_to_shards", "records", "pubmed_to_shards", ["--input", minimal_input], citations
        ),
        costs.measure_row("pmc_to_shards", "articles", "pmc_to_shards", [], articles),
    ]


def measure_document_pipelines(
    costs: CostBench, text_type: str, folder: str, vocabulary: str, minimal_input: str
) -> list[CostRow]:
    """Measure documents to words and to rows of each objective, in one pass and in several."""
    inputs = (["--input", minimal_input], ["--input", folder])
    rows = [costs.measure_row(f"shards_to_words, {text_type}", "documents", "shards_to_words", *inputs)]
    for objective, words in (
        OBJECTIVES.items() if text_type == "abstracts" else [("electra", OBJECTIVES["electra"])]
    ):
        for passes in PASSES if text_type == "abstracts" else PASSES[:1]:
            options = [
                *words,
                "--dupe-factor",
                str(passes),
                "--vocab",
                vocabulary,
                "--validation-fraction",
                "0",
            ]
            name = f"shards_to_pretraining, {text_type}, {objective}, passes: {passes}"
            each = ([*where, *options] for where in inputs)
            rows.append(costs.measure_row(name, "documents", "shards_to_pretraining", *each))
    return rows


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.tables.cost_table", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/bench/cost"), help="default: %(default)s")
    parser.add_argument("--mb", type=float, default=150, help="of document shards (default: %(default)s)")
    parser.add_argument(
        "--tries", type=int, default=4, help="of a run while the machine is busy (default: %(default)s)"
    )
    options = parser.parse_args()
    work = options.work.resolve()
    timing.adopt_orphans()
    texts, vocabulary = build_document_dirs([], work), str(work / "vocabulary")
    if not Path(vocabulary, "manifest.json").exists():
        command = [sys.executable, "-m", "bioshards.vocab", "build", *texts, "--output", vocabulary]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    costs = CostBench(work, options.tries)
    print(
        f"The yardstick of the rates in cost.py is {cost.REFERENCE_RECORDS_PER_SECOND:,} "
        f"records/s.\n\n{HEAD}",
        flush=True,
    )
    for row in measure_source_pipelines(costs, pubmed_baseline.make_baseline(work, 1, 1).paths[0]):
        print(row.format_row(), flush=True)
    for kind, folder in zip(("abstracts", "articles"), texts, strict=True):
        large = str(work / f"{kind}-{options.mb:g}")
        command = [
            sys.executable,
            "-m",
            "tests.bench.harness.enlarged_shards",
            large,
            str(options.mb),
            folder,
        ]
        subprocess.run(command, check=True, cwd=ROOT)
        for row in measure_document_pipelines(
            costs, kind, large, vocabulary, write_single_document(large, 0, work / f"one-{kind}")
        ):
            print(row.format_row(), flush=True)


if __name__ == "__main__":
    main()
