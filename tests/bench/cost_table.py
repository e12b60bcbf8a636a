"""What one core does of each pipeline, for pipelines/cost.py: ``python -m tests.bench.cost_table``.

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

from bioshards.corpus.files import LocalStorage
from bioshards.pipelines import cost
from bioshards.vocab.inputs import load_document_inputs
from tests.bench.bench_pubmed import LXML, LXML_START
from tests.bench.corpora import data, documents
from tests.bench.example_jobs import small
from tests.bench.jobs import ROOT, Bench
from tests.bench.timing import MB

from . import baseline, timing

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
class Row:
    """What a pipeline took of one core, its start-up taken off.

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

    def line(self) -> str:
        """The row as Markdown."""
        return (
            f"| {self.name} | {self.items:,} {self.what} | {self.size / MB:,.1f} MB | {self.seconds:.1f} s "
            f"| {self.yardstick:,.0f} | {self.items / self.seconds:,.0f} {self.what}/s "
            f"| {self.size / MB / self.seconds:.2f} MB/s |"
        )


class Costs(Bench):
    """Runs pipelines with one worker, and between them the yardstick."""

    def __init__(self, work: Path, tries: int) -> None:
        super().__init__(work)
        self._tries = tries
        self._made = baseline.make(work, RECORDS, 2)
        self._lxml_start = self.python("lxml start", "-c", LXML_START, tries=tries).cpu
        self._yardstick = self._parsed()
        # The first run of all compiles what it imports.
        self.took("warm", "pmc_to_shards")

    def _parsed(self) -> float:
        seconds = self.python("lxml", "-c", LXML, self._made.paths[0], tries=self._tries).cpu
        return RECORDS / (seconds - self._lxml_start)

    def citations(self) -> list[str]:
        """Two files like PubMed's."""
        return self._made.paths

    def took(self, name: str, pipeline: str, *words: str) -> tuple[float, float, dict[str, Any]]:
        """CPU seconds of a run into a new folder, the yardstick before and after it, its manifest."""
        output = self.work / "output"
        command = [self._beam, "run", pipeline, "--workers", "1", *words, "--output", str(output)]

        def anew() -> list[str]:
            shutil.rmtree(output, ignore_errors=True)
            return command

        run, before = self._run(name, anew, self._tries), self._yardstick
        self._yardstick = self._parsed()
        manifest: dict[str, Any] = json.loads((output / "manifest.json").read_text())
        shutil.rmtree(output)
        return run.cpu, (before + self._yardstick) / 2, manifest

    def row(self, name: str, what: str, pipeline: str, one: list[str], words: list[str]) -> Row:
        """A job's row; ``one`` are the words of one that does next to nothing."""
        start, slow, _ = self.took(f"{name}, start", pipeline, *one)
        seconds, yardstick, manifest = self.took(name, pipeline, *words)
        if "funnel" in manifest:
            items, size = manifest["funnel"]["records"], sum(one["bytes"] for one in manifest["inputs"])
        else:
            items = sum(one["documents"] for one in manifest["inputs"])
            size = sum(
                one.bytes for one in load_document_inputs(LocalStorage(), manifest["run"]["inputs"])[0].shards
            )
        return Row(name, what, items, size, seconds - start * slow / yardstick, yardstick)


def of_sources(costs: Costs, one: str) -> list[Row]:
    """Citations and articles to documents."""
    citations = [word for path in costs.citations() for word in ("--input", path)]
    articles = ["--input", f"{data()}/jats", "--licences", "all", "--languages", "", "--max-rejected", "0.01"]
    return [
        costs.row("pubmed_to_shards", "records", "pubmed_to_shards", ["--input", one], citations),
        costs.row("pmc_to_shards", "articles", "pmc_to_shards", [], articles),
    ]


def of_documents(costs: Costs, kind: str, folder: str, vocabulary: str, one: str) -> list[Row]:
    """Documents to words and to examples; of abstracts, each objective, in one pass and in several."""
    inputs = (["--input", one], ["--input", folder])
    rows = [costs.row(f"shards_to_words, {kind}", "documents", "shards_to_words", *inputs)]
    for objective, words in (
        OBJECTIVES.items() if kind == "abstracts" else [("electra", OBJECTIVES["electra"])]
    ):
        for passes in PASSES if kind == "abstracts" else PASSES[:1]:
            given = [*words, "--dupe-factor", str(passes), "--vocab", vocabulary, "--validation", "0"]
            name = f"shards_to_pretraining, {kind}, {objective}, passes: {passes}"
            each = ([*where, *given] for where in inputs)
            rows.append(costs.row(name, "documents", "shards_to_pretraining", *each))
    return rows


def main() -> None:
    """Run everything and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.cost_table", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/bench/cost"), help="default: %(default)s")
    parser.add_argument("--mb", type=float, default=150, help="of document shards (default: %(default)s)")
    parser.add_argument(
        "--tries", type=int, default=4, help="of a run while the machine is busy (default: %(default)s)"
    )
    options = parser.parse_args()
    work = options.work.resolve()
    timing.adopt_orphans()
    texts, vocabulary = documents([], work), str(work / "vocabulary")
    if not Path(vocabulary, "manifest.json").exists():
        command = [sys.executable, "-m", "bioshards.vocab", "build", *texts, "--out", vocabulary]
        subprocess.run(command, check=True, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    costs = Costs(work, options.tries)
    print(
        f"The yardstick of the rates in cost.py is {cost.REFERENCE_RECORDS_PER_SECOND:,} records/s.\n\n{HEAD}",
        flush=True,
    )
    for row in of_sources(costs, baseline.make(work, 1, 1).paths[0]):
        print(row.line(), flush=True)
    for kind, folder in zip(("abstracts", "articles"), texts, strict=True):
        large = str(work / f"{kind}-{options.mb:g}")
        command = [sys.executable, "-m", "tests.bench.enlarged", large, str(options.mb), folder]
        subprocess.run(command, check=True, cwd=ROOT)
        for row in of_documents(costs, kind, large, vocabulary, small(large, work / f"one-{kind}")):
            print(row.line(), flush=True)


if __name__ == "__main__":
    main()
