"""Speed and memory of ``pubmed_to_shards`` and ``pmc_to_shards``: ``python -m tests.bench.bench_corpus``.

The goals are ratios to a bare parse of the same XML by lxml and to other libraries, which take turns with
bioshards on one machine.  Whole processes are timed from outside.  The start-up of a process is measured on
an input of one record (of a library: its imports) and subtracted, because it does not depend on the number of
files.

Set BIOSHARDS_DATA to a folder of real records and articles for figures that count.  bench_text.py measures
the text itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.bench.harness.timing import (
    MB,
    PIPELINE,
    TWICE_SCRIPT,
    BenchRunner,
    Figure,
    print_table,
    ratios_by_round,
)

LXML_FILE: Final = """
import gzip, sys
from lxml import etree
with gzip.open(sys.argv[1]) as file:
    for _, record in etree.iterparse(file, tag="PubmedArticle", resolve_entities=False, no_network=True):
        record.clear()
        while record.getprevious() is not None:
            del record.getparent()[0]
"""
PUBMED_PARSER_FILE: Final = """
import sys
import pubmed_parser
for record in pubmed_parser.parse_medline_xml(sys.argv[1], author_list=False, reference_list=False):
    pass
"""
LXML_ARTICLES: Final = """
import sys
from lxml import etree
for path in open(sys.argv[1]).read().split("\\n"):
    with open(path, "rb") as file:
        etree.fromstring(file.read(), etree.XMLParser(recover=True))  # the sample has undeclared entities
"""
OURS_ARTICLES: Final = """
import sys
from bioshards.corpus import jats
for path in open(sys.argv[1]).read().split("\\n"):
    with open(path, "rb") as file:
        jats.document(file.read())
"""
OURS_START: Final = """
from bioshards.corpus import jats
article_id = "<article-id pub-id-type='pmid'>1</article-id>"
jats.document(f"<article><front><article-meta>{article_id}</article-meta></front></article>".encode())
"""
PUBMED_PARSER_ARTICLES: Final = """
import contextlib, sys
import pubmed_parser
for path in open(sys.argv[1]).read().split("\\n"):
    with contextlib.suppress(Exception):  # raised for an article without such a part
        pubmed_parser.parse_pubmed_xml(path)
        pubmed_parser.parse_pubmed_paragraph(path, all_paragraph=True)
        pubmed_parser.parse_pubmed_caption(path)
"""
PUBGET_START: Final = "from pubget._utils import load_stylesheet; load_stylesheet('text_extraction.xsl')"
PUBGET_ARTICLES: Final = """
import sys
from lxml import etree
from pubget._utils import load_stylesheet
transform = load_stylesheet("text_extraction.xsl")
for path in open(sys.argv[1]).read().split("\\n"):
    text = transform(etree.parse(path))
    for part in ("title", "abstract", "body"):
        text.findtext(part)
"""


@dataclass(frozen=True)
class Corpus:
    """A pipeline, what it is compared with, and the bars.

    Attributes:
        maker: the module that makes its input files.
        units: records in each of them.
        scripts: code that starts a tool, and code that reads the same text with it, by name; "ours" is the
            part of bioshards that is compared instead of the whole job.
        max_ratio: of ours to "bare".
        min_ratios: of other tools to ours.
        max_peak_mb: of a process.
    """

    pipeline: str
    maker: str
    units: int
    scripts: Mapping[str, tuple[str, str]]
    max_ratio: float
    min_ratios: Mapping[str, float]
    max_peak_mb: tuple[float, ...]


CORPORA: Final = (
    Corpus(
        "pubmed_to_shards",
        "tests.bench.harness.pubmed_baseline",
        30_000,
        {
            "bare": ("import lxml.etree, gzip", LXML_FILE),
            "pubmed_parser": ("import pubmed_parser", PUBMED_PARSER_FILE),
        },
        1.25,
        {"pubmed_parser": 3.2},
        (400,),
    ),
    Corpus(
        "pmc_to_shards",
        "tests.bench.harness.article_packages",
        1000,
        {
            "bare": ("import lxml.etree", LXML_ARTICLES),
            "ours": (OURS_START, OURS_ARTICLES),
            "pubmed_parser": ("import pubmed_parser", PUBMED_PARSER_ARTICLES),
            "pubget": (PUBGET_START, PUBGET_ARTICLES),
        },
        2.9,
        {},
        (600, 400),
    ),
)


def measure(corpus: Corpus, work: Path, repeats: int, units: int) -> list[Figure]:
    """Time all commands of a corpus in turns, and return the rows of its table."""
    bench = BenchRunner(work / corpus.pipeline)
    made = bench.time_python("make", "-m", corpus.maker, bench.work, units, tries=1)
    inputs: dict[str, Any] = json.loads(made.output)
    scripts = dict(corpus.scripts)
    for tool in scripts.keys() - {"bare", "ours"}:
        if importlib.util.find_spec(tool) is None:
            print(f"{tool} is not installed and not compared.")
            del scripts[tool]
    for start, _ in scripts.values():  # compiles what it imports
        bench.time_python("untimed", "-c", start, tries=1)
    run_pipeline(bench, corpus, "untimed", inputs["single"], 2, 2)
    for _ in range(repeats):
        for workers in (1, 2):
            # each worker needs a file: processes without one are not started
            run_pipeline(bench, corpus, f"start {workers}", inputs["single"][:workers], workers, workers)
        for name, (start, code) in scripts.items():
            bench.time_python(f"{name} start", "-c", start)
            bench.time_python(name, "-c", code, inputs["script_input"])
        bench.time_python("bare twice", "-c", TWICE_SCRIPT, scripts["bare"][1], inputs["script_input"])
        run_pipeline(bench, corpus, "1 file", inputs["files"][:1], 1, units)
        for workers in (1, 2):
            run_pipeline(bench, corpus, f"4 files {workers}", inputs["files"][:4], workers, 4 * units)
    run_pipeline(bench, corpus, "all files", inputs["files"], 1, len(inputs["files"]) * units)
    return make_figures(bench, corpus, inputs, list(scripts), units)


def run_pipeline(
    bench: BenchRunner, corpus: Corpus, name: str, files: list[str], workers: int, units: int
) -> None:
    """Time ``beam run`` into a new output folder, and check that no record was left out."""
    output = bench.work / "output"
    inputs = [word for path in files for word in ("--input", path)]
    command = (*PIPELINE, corpus.pipeline, *inputs, "--workers", workers, "--output", output)
    bench.time_python(name, *command, removed=[output])
    manifest = json.loads((output / "manifest.json").read_text())
    if sum(sum(source["funnel"].values()) for source in manifest["inputs"]) != units:
        raise SystemExit(f"{name}: not all of the {units} records are in its funnel: {manifest['funnel']}")


def make_figures(
    bench: BenchRunner, corpus: Corpus, inputs: dict[str, Any], scripts: list[str], units: int
) -> list[Figure]:
    """Make the rows of the table, less start-up."""
    ours, ours_start = ("ours", "ours start") if "ours" in scripts else ("1 file", "start 1")
    wall, bare = bench.walls(ours, ours_start), bench.walls("bare", "bare start")
    cpus = bench.cpus(ours, ours_start), bench.cpus("bare", "bare start")
    job = bench.walls("1 file", "start 1")
    rows = [
        Figure("ours", [inputs["script_units"] / seconds for seconds in wall], "units/s"),
        Figure("ours, XML", [inputs["xml_bytes"] / MB / seconds for seconds in wall], "MB/s"),
        Figure("**ours / bare lxml, wall**", ratios_by_round(wall, bare), "×", at_most=(corpus.max_ratio,)),
        Figure("ours / bare lxml, CPU", ratios_by_round(*cpus), "×", at_most=(corpus.max_ratio,)),
    ]
    for tool in scripts:
        if tool not in ("bare", "ours"):
            bars = (corpus.min_ratios[tool],) if tool in corpus.min_ratios else ()
            ratios = ratios_by_round(bench.walls(tool, f"{tool} start"), wall)
            rows.append(Figure(f"**{tool} / ours, wall**", ratios, "×", at_least=bars))
    four = [bench.walls(f"4 files {workers}", f"start {workers}") for workers in (1, 2)]
    twice = bench.walls("bare twice", "bare start")
    rows += [
        Figure("whole job, 1 worker", [units / seconds for seconds in job], "units/s"),
        Figure("**2 workers against 1**", ratios_by_round(*four), "×", at_least=(1.85,)),
        Figure("2 bare parses at once against 1", ratios_by_round([2 * one for one in bare], twice), "×"),
    ]
    for name in ("1 file", "4 files 2", "all files"):
        rows.append(Figure(f"peak of a process, {name}", bench.peaks(name), "MB", at_most=corpus.max_peak_mb))
    return rows


def main() -> None:
    """Run the benchmark and print its tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_corpus", description=__doc__)
    parser.add_argument("--work", type=Path, default=Path("build/bench"), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: %(default)s)")
    parser.add_argument("--units", type=int, help="records in a file (default: 30,000, or 1,000 articles)")
    options = parser.parse_args()
    if not os.environ.get("BIOSHARDS_DATA"):
        print("BIOSHARDS_DATA is not set: the records are the bundled sample's, the figures only indicative.")
    for corpus in CORPORA:
        units = options.units or corpus.units
        figures = measure(corpus, options.work.resolve(), options.repeats, units)
        print_table(f"\n{corpus.pipeline}, files of {units:,} records;", figures)


if __name__ == "__main__":
    main()
