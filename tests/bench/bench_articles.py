"""Speed of ``beam run pmc_to_shards`` and its parts: ``python -m tests.bench.bench_articles``.

As in bench_pubmed.py whole processes are timed, those of other libraries and of bioshards in turns, and their
start-up is subtracted.  The articles are those of BIOSHARDS_DATA, packed with new PMC ids into packages like
Europe PMC's.  Without it they are those of the bundled sample, and the figures are only indicative.
bench_text.py measures the text itself.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from pathlib import Path
from typing import Final

from tests.bench.harness import timing
from tests.bench.harness.article_packages import PACKAGE_COUNT
from tests.bench.harness.bench_runner import (
    TRIES,
    TWICE_SCRIPT,
    BenchRunner,
    ratios_by_round,
    subtract_startup,
)
from tests.bench.harness.timing import MB, Figure

LXML_START = "import sys; from lxml import etree"
LXML_SCRIPT = """
import sys
from lxml import etree
for path in open(sys.argv[1]).read().split("\\n"):
    with open(path, "rb") as file:
        etree.fromstring(file.read())
"""
OURS_START = """
import sys
from bioshards.corpus import jats
article_id = "<article-id pub-id-type='pmid'>1</article-id>"
jats.document(f"<article><front><article-meta>{article_id}</article-meta></front></article>".encode())
"""
OURS_SCRIPT = """
import sys
from bioshards.corpus import jats
for path in open(sys.argv[1]).read().split("\\n"):
    with open(path, "rb") as file:
        jats.document(file.read())
"""
PUBMED_PARSER_SCRIPT = """
import sys
import pubmed_parser
parts = (
    pubmed_parser.parse_pubmed_xml,
    lambda path: pubmed_parser.parse_pubmed_paragraph(path, all_paragraph=True),
    pubmed_parser.parse_pubmed_caption,
)
failed = 0
for path in open(sys.argv[1]).read().split("\\n"):
    for part in parts:
        try:
            part(path)
        except Exception:  # raised for an article without such a part
            failed += 1
print(failed)
"""
PUBGET_START = "from pubget._utils import load_stylesheet; load_stylesheet('text_extraction.xsl')"
PUBGET_SCRIPT = """
import sys
from lxml import etree
from pubget._utils import load_stylesheet
transform = load_stylesheet("text_extraction.xsl")
for path in open(sys.argv[1]).read().split("\\n"):
    text = transform(etree.parse(path))
    for part in ("title", "abstract", "body"):
        text.findtext(part)
"""
PEERS: Final = {
    "pubmed_parser": ("import pubmed_parser", PUBMED_PARSER_SCRIPT),
    "pubget": (PUBGET_START, PUBGET_SCRIPT),
}
"""Code that starts another tool, and code that reads the articles with it; compared if it is installed."""
PIPELINE = "pmc_to_shards"


def run_rounds(
    bench: BenchRunner,
    paths_file: str,
    single_articles: list[str],
    packages: list[str],
    articles: int,
    repeats: int,
    peers: list[str],
) -> None:
    """Time all commands in turns, ``repeats`` times."""
    for _ in range(repeats):
        for workers in (1, 2):
            # each worker needs a file: processes without one are not started
            bench.time_pipeline(
                f"start {workers}", single_articles[:workers], workers, workers, TRIES, PIPELINE
            )
        bench.time_python("bare start", "-c", LXML_START)
        bench.time_python("bare", "-c", LXML_SCRIPT, paths_file)
        bench.time_python("bare twice", "-c", TWICE_SCRIPT, LXML_SCRIPT, paths_file)
        bench.time_python("ours start", "-c", OURS_START)
        bench.time_python("ours", "-c", OURS_SCRIPT, paths_file)
        for peer in peers:
            start, script = PEERS[peer]
            bench.time_python(f"{peer} start", "-c", start)
            bench.time_python(peer, "-c", script, paths_file)
        bench.time_pipeline("1 package", packages[:1], 1, articles, TRIES, PIPELINE)
        for workers in (1, 2):
            bench.time_pipeline(f"4 packages {workers}", packages[:4], workers, 4 * articles, TRIES, PIPELINE)
    bench.time_pipeline(f"{PACKAGE_COUNT} packages", packages, 1, PACKAGE_COUNT * articles, TRIES, PIPELINE)


def make_figures(bench: BenchRunner, articles: int, count: int, xml: int, peers: list[str]) -> list[Figure]:
    """The table's rows."""
    bare = subtract_startup(bench.walls("bare"), bench.walls("bare start"))
    twice = subtract_startup(bench.walls("bare twice"), bench.walls("bare start"))
    ours = subtract_startup(bench.walls("ours"), bench.walls("ours start"))
    cpu = [subtract_startup(bench.cpus(name), bench.cpus(f"{name} start")) for name in ("ours", "bare")]
    one = subtract_startup(bench.walls("1 package"), bench.walls("start 1"))
    four = [
        subtract_startup(bench.walls(f"4 packages {workers}"), bench.walls(f"start {workers}"))
        for workers in (1, 2)
    ]
    rows = [
        Figure("bare lxml parse, less start-up: wall", bare, "s"),
        Figure("bare lxml parse", [xml / MB / seconds for seconds in bare], "MB/s"),
        Figure("article to document, less start-up: wall", ours, "s"),
        Figure("article to document", [count / seconds for seconds in ours], "articles/s"),
        Figure("**article to document / bare lxml, wall**", ratios_by_round(ours, bare), "×", "<=", 2.9, 2.5),
        Figure("article to document / bare lxml, CPU", ratios_by_round(*cpu), "×", "<=", 2.9, 2.5),
    ]
    for peer in peers:
        parsed = subtract_startup(bench.walls(peer), bench.walls(f"{peer} start"))
        rows.append(Figure(f"{peer}'s text / article to document, wall", ratios_by_round(parsed, ours), "×"))
    rows += [
        Figure("whole job, 1 worker, less start-up", [articles / seconds for seconds in one], "articles/s"),
        Figure("**2 workers against 1, less start-up**", ratios_by_round(*four), "×", ">=", 1.85, 1.9),
        Figure(
            "2 bare lxml parses at once against 1", ratios_by_round([2 * value for value in bare], twice), "×"
        ),
    ]
    for name in ("1 package", "4 packages 1", "4 packages 2", f"{PACKAGE_COUNT} packages"):
        rows.append(Figure(f"peak of a process, {name}", bench.peaks(name), "MB", "<=", 600, 400))
    return rows


def main() -> None:
    """Run the benchmark and print its table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_articles", description=__doc__)
    parser.add_argument("--articles", type=int, default=1000, help="in a package (default: %(default)s)")
    parser.add_argument(
        "--work", type=Path, default=Path("build/bench-articles"), help="default: %(default)s"
    )
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default: %(default)s)")
    options = parser.parse_args()
    work = options.work.resolve()
    timing.adopt_orphans()
    bench = BenchRunner(work)
    peers = [peer for peer in PEERS if importlib.util.find_spec(peer) is not None]
    data = os.environ.get("BIOSHARDS_DATA")
    package_list = bench.time_python(
        "make", "-m", "tests.bench.harness.article_packages", str(work), str(options.articles), tries=1
    ).output
    paths_file = work / "paths"
    paths = [Path(path) for path in paths_file.read_text().split("\n")]
    for code in (LXML_START, OURS_START, *(PEERS[peer][0] for peer in peers)):
        bench.time_python("untimed", "-c", code, tries=1)
    single_articles = sorted(map(str, (work / "single").iterdir()))[:2]
    bench.time_pipeline("untimed", single_articles, 2, 2, 1, PIPELINE)
    run_rounds(
        bench,
        str(paths_file),
        single_articles,
        package_list.split(),
        options.articles,
        options.repeats,
        peers,
    )
    xml = sum(path.stat().st_size for path in paths)
    rows = make_figures(bench, options.articles, len(paths), xml, peers)
    print(
        f"{len(paths):,} articles, {xml / MB:.0f} MB of XML; packages of {options.articles:,}; "
        f"{os.cpu_count()} cores, Python {sys.version.split()[0]}."
    )
    if missing := PEERS.keys() - set(peers):
        print(f"Not installed, not compared: {', '.join(sorted(missing))}.")
    if not data:
        print("BIOSHARDS_DATA is not set: the bundled sample's articles; the figures are only indicative.")
    print(f"\n{timing.format_table(rows)}")


if __name__ == "__main__":
    main()
