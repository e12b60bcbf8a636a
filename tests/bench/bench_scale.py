"""A rehearsal of scale on one machine: ``python -m tests.bench.bench_scale [PART ...]``.

    decide     versions and exact duplicates of all of PubMed's records decided
    files      1,000 small PubMed files through pubmed_to_shards; then one more; then none
    inventory  9.3 million article versions in an inventory of PMC's
    fetch      files fetched and processed at once, beside the longer of the two, from a server here
    graphs     the job graphs of the full corpora
    cluster    all of PubMed and PMC on 64 slots, on paper

Only the numbers of files, records and articles are those of the full corpora.  The other benchmarks measure
the processing of text, and tests/pipelines/test_scale.py counts the calls of a store.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from tests.bench.harness import pubmed_baseline, scale_cluster, scale_graphs
from tests.bench.harness.timing import MB, PIPELINE, BenchRunner, Figure, print_table
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.servers.fake_pmc_bucket import FakeArticle, create_bucket
from tests.support.servers.fake_server import FakeServer
from tests.support.servers.server_pages import create_pubmed_server

SMALL_FILES, SMALL_RECORDS = 1000, 30
FETCHED_FILES, FETCHED_RECORDS = 24, 5000
ARTICLES: Final = 2000
LATENCY_SECONDS: Final = 0.05
"""Of each response of the fake bucket, as of a bucket on the same continent."""


def measure_decide(bench: BenchRunner, _repeats: int) -> list[Figure]:
    """Measure the decisions on all of PubMed, and compare them with what is counted in another way."""
    outputs = {}
    for step in ("make", "decide", "read_back", "count"):
        arguments = ("-m", "tests.bench.harness.scale_steps", step, bench.work / "decide")
        outputs[step] = bench.time_python(step, *arguments, tries=1).output
    if outputs["read_back"] != outputs["count"]:
        raise SystemExit(f"the decisions are wrong: {outputs}")
    shutil.rmtree(bench.work / "decide")
    return [
        Figure("versions and duplicates of all of PubMed decided", bench.walls("decide"), "s"),
        Figure("... peak", bench.peaks("decide"), "MB", at_most=(1500,)),
    ]


def measure_files(bench: BenchRunner, _repeats: int) -> list[Figure]:
    """Measure a run over many small files, and its updates."""
    output = bench.work / "output"
    [first_file, *_] = pubmed_baseline.make_baseline(bench.work / "files", SMALL_RECORDS, SMALL_FILES)
    extra_file = first_file.with_name(f"pubmed26n{SMALL_FILES + 1:04d}.xml")
    extra_file.unlink(missing_ok=True)
    shutil.rmtree(output, ignore_errors=True)
    inputs = ("--input", first_file.parent, "--output", output)
    for name in ("first", "one more", "nothing new"):
        if name == "one more":
            revised = citation_xml(pubmed_baseline.FIRST_PMID + 7, "Revised. Since.")
            extra_file.write_bytes(pubmed_set_xml(revised, deleted=(1,)))
        bench.time_python(name, *PIPELINE, "pubmed_to_shards", "--workers", 2, *inputs, tries=1)
    return [
        Figure(f"{SMALL_FILES:,} files of {SMALL_RECORDS} records", bench.walls("first"), "s"),
        Figure("... peak of a process", bench.peaks("first"), "MB"),
        Figure("... one more file", bench.walls("one more"), "s"),
        Figure("... nothing new", bench.walls("nothing new"), "s"),
    ]


def measure_inventory(bench: BenchRunner, _repeats: int) -> list[Figure]:
    """Measure reading PMC's inventory."""
    for step in ("make_inventory", "inventory"):
        arguments = ("-m", "tests.bench.harness.scale_steps", step, bench.work)
        measured: dict[str, Any] = json.loads(bench.time_python(step, *arguments, tries=1).output)
    return [
        Figure(f"inventory of {measured['rows']:,} articles: read", [measured["seconds"]], "s"),
        Figure("... kept as", [measured["bytes"] / MB], "MB"),
        Figure("... peak", bench.peaks("inventory"), "MB"),
    ]


def measure_fetch(bench: BenchRunner, repeats: int) -> list[Figure]:
    """Measure whether downloading and processing overlap, and articles of PMC's bucket."""
    paths = pubmed_baseline.make_baseline(bench.work, FETCHED_RECORDS, FETCHED_FILES)
    total = sum(path.stat().st_size for path in paths)
    mirror, output = bench.work / "mirror", bench.work / "output"
    overlaps = []
    with tempfile.TemporaryDirectory(dir=bench.work) as folder:
        create_pubmed_server(Path(folder), {path.name: path.read_bytes() for path in paths}, {})
        articles = (FakeArticle(1_000_000 + n, text="Nothing was seen. " * 6000) for n in range(ARTICLES))
        create_bucket(Path(folder, "bucket"), articles, "2026-11-01")
        with FakeServer(Path(folder)) as server:
            options = ("--mirror", mirror, "--pubmed-url", f"{server.url}pubmed/", "--workers", 2)
            fetch = ("fetch", "--pmc-url", f"{server.url}bucket/", "--input")

            def run(name: str, *command: object) -> float:
                removed = [mirror, output]
                return bench.time_python(name, *PIPELINE, *command, *options, removed=removed).wall

            for _ in range(repeats):
                run("start", *fetch, "pubmed:baseline[1]")
                write = ("pubmed_to_shards", "--output", output, "--input")
                processing = run("process", *write, paths[0].parent)
                # Limit the server's rate so that downloading and processing take about the same time.
                server.bytes_per_second = total / processing
                fetching = run("fetch", *fetch, "pubmed:baseline")
                overlaps.append(run("both", *write, "pubmed:baseline") / max(fetching, processing))
                server.bytes_per_second, server.latency = None, LATENCY_SECONDS
                run("articles", *fetch, "pmc:")
                server.latency = 0
    rates = [2 * ARTICLES / seconds for seconds in bench.walls("articles", "start")]
    return [
        Figure("**fetch and process / the longer of the two**", overlaps, "×", at_most=(1.25,)),
        Figure("PMC's articles, objects a second", rates, ""),
    ]


def measure_graphs(bench: BenchRunner, _repeats: int) -> list[Figure]:
    """Measure the job graphs of the full corpora, which have 3,000 files, 1,400 ranges, and 10,000 shards."""
    vocabulary = scale_graphs.write_vocabulary(bench.work / "vocabulary")
    graphs = {
        "pubmed_to_shards": scale_graphs.citations_graph(0, 3000),
        "pmc_to_shards": scale_graphs.articles_graph(1400),
        "shards_to_words": scale_graphs.words_graph(10_000),
        "shards_to_pretraining": scale_graphs.pretraining_graph(10_000, vocabulary),
    }
    limit = scale_graphs.MAX_GRAPH_BYTES / MB
    return [
        Figure(f"job graph, {name}", [scale_graphs.graph_size(graph) / MB], "MB", at_most=(limit,))
        for name, graph in graphs.items()
    ]


def measure_cluster(_bench: BenchRunner, _repeats: int) -> list[Figure]:
    """Work out the full corpora on a cluster."""
    return scale_cluster.measure()


PARTS: Final = {
    "decide": measure_decide,
    "files": measure_files,
    "inventory": measure_inventory,
    "fetch": measure_fetch,
    "graphs": measure_graphs,
    "cluster": measure_cluster,
}


def main() -> None:
    """Measure the given parts, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.bench_scale", description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[[], *PARTS], metavar="PART", default=[])
    parser.add_argument("--work", type=Path, default=Path("build/bench-scale"), help="default: %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="rounds of fetch (default: %(default)s)")
    options = parser.parse_args()
    bench = BenchRunner(options.work.resolve())
    figures = [figure for part in options.parts or PARTS for figure in PARTS[part](bench, options.repeats)]
    print_table("Scale;", figures)


if __name__ == "__main__":
    main()
