"""The full corpora on 64 slots, on paper: the items of the planner, and the measured rates of a core.

Nothing of these inputs exists. The items are those of the graphs that a runner would get; their sizes are
invented so that the totals are those of 2026: PubMed's baseline of 1,334 files, 50.5 GiB, the newest three
times as large as the oldest; 8 million articles in 1,300 ranges of ids, the newest the fullest.
"""

from __future__ import annotations

import dataclasses
import heapq
import pickle
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import AppliedPTransform, PipelineVisitor

from bioshards.corpus.download.mirror import Mirror
from bioshards.corpus.download.pmc import article_ranges
from bioshards.corpus.download.sources import SOURCES
from bioshards.corpus.jats import inputs as article_inputs
from bioshards.corpus.lifecycle.finalize import FinalizeResult
from bioshards.corpus.lifecycle.job import StageResult
from bioshards.corpus.manifest import Shard
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import FileInfo
from bioshards.pipelines.execution import executor
from bioshards.pipelines.inputs.downloads import DownloadPlan, make_download_plan, make_server
from bioshards.pipelines.steps import Done
from tests.bench.harness import scale_graphs
from tests.bench.harness.timing import MB, Figure

SLOTS: Final = 64
FILES, FILE_BYTES = 1334, 50.5 * 2**30
ARTICLES, RANGES = 8_000_000, 1300
CITATION_BYTES_PER_SECOND: Final = 6.97e6
ARTICLES_PER_SECOND: Final = 125
"""Of a core: FIGURES.md, Fetching and scale."""
LISTED_ARTICLES: Final = 9_300_000
"""Versions in PMC's inventory; each has an object of metadata, and a selected one an object of text too."""
OBJECTS_PER_SECOND: Final = 379
"""Downloaded from a server on the same machine: FIGURES.md."""
STAGE_CALLS: Final = 18
"""Calls of a store for a staged file, the looks at the lock among them: tests/pipelines/test_scale.py."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The items of a step, as the graph deals them out.

    Attributes:
        item_bytes: pickled size of the largest.
        total_bytes: of all.
        seconds: of each on one core, in the order of the graph.
    """

    name: str
    item_bytes: int
    total_bytes: int
    seconds: list[float]

    def list_figures(self) -> list[Figure]:
        """Return number, sizes and times of the items."""
        in_turn = max(sum(self.seconds[slot::SLOTS]) for slot in range(SLOTS))
        return [
            Figure(f"{self.name}: items", [len(self.seconds)], ""),
            Figure("... bytes of the largest", [self.item_bytes], "B"),
            Figure("... bytes of all", [self.total_bytes / MB], "MB"),
            Figure("... seconds of the longest", [max(self.seconds)], "s"),
            Figure("... of one core", [sum(self.seconds) / 3600], "h"),
            Figure(f"... of {SLOTS} slots, dealt out in turn (Flink)", [in_turn / 60], "min"),
            Figure(f"... of {SLOTS} slots, as they get free", [_schedule(self.seconds, SLOTS) / 60], "min"),
        ]


def _schedule(seconds: Sequence[float], slots: int) -> float:
    """Return when the last item ends if each goes to the slot that is free first."""
    ends = [0.0] * slots
    for item in seconds:
        heapq.heapreplace(ends, ends[0] + item)
    return max(ends)


def list_items(build: scale_graphs.BuildGraph, label: str) -> list[Any]:
    """Return the elements that a graph begins with under this label."""
    items = list[Any]()

    class Visitor(PipelineVisitor):  # type: ignore[misc]
        def enter_composite_transform(self, node: AppliedPTransform) -> None:
            if isinstance(node.transform, beam.Create) and node.full_label == label:
                items.extend(node.transform.values)

    root = executor.make_pipeline(None, PipelineOptions([]))
    build(root)
    root.visit(Visitor())
    assert items, f"the graph has no {label}"
    return items


def _make_plan(name: str, items: Sequence[Any], seconds: list[float]) -> Plan:
    sizes = [len(pickle.dumps(item)) for item in items]
    return Plan(name, max(sizes), sum(sizes), seconds)


def _ramp(count: int, first: float, last: float, total: float) -> list[float]:
    """Return sizes that grow evenly from one to the other, up to a factor, and add up to a total."""
    shape = [first + (last - first) * at / (count - 1) for at in range(count)]
    return [total * each / sum(shape) for each in shape]


def _make_remote_plan(source: str) -> DownloadPlan:
    """Return how a run with a runner downloads: in how many slots, with how many connections and requests."""
    limits = SOURCES[source]
    server = make_server(limits.url, None, limits.max_connections, limits.requests_per_second)
    mirror = Mirror(scale_graphs.FILES, f"{scale_graphs.BUCKET}/mirror")
    return make_download_plan(mirror, server, 1, is_local_run=False)


def make_stage_result(number: int) -> StageResult:
    """Make a report as large as a real file's."""
    source = scale_graphs.make_sources(1)[0]
    name = f"pubmed26n{number:05d}"
    md5 = scale_graphs.hash_hex(number)[:32]
    return StageResult(source, f"{name}-{md5[:8]}", md5, 30_000, 12, 30_012)


def make_finalize_result(number: int) -> FinalizeResult:
    """Make a report with as many years, languages and rules as a real file has."""
    rng = random.Random(number)
    name = f"pubmed26n{number:05d}-{scale_graphs.hash_hex(number)[:8]}"
    size = 35_000_000 + rng.randrange(10**6)
    shard = Shard(f"data/data-{name}-00000.parquet", 20_000, size, scale_graphs.hash_hex(name))
    return FinalizeResult(
        output_name=name,
        shards=[shard],
        dropped=[],
        funnel={"kept": 20_000, "no-abstract": 9_000, "superseded": 900, "deleted": 100},
        counts={"documents": 20_000, "sentences": 180_000, "words": 4_000_000, "characters": 27_000_000},
        years={str(year): rng.randrange(9999) for year in range(1966, 2027)},
        languages={language: rng.randrange(999) for language in ("eng", "fre", "ger", "jpn", "rus", "chi")},
        licences={"unknown": 20_000},
        article_types={kind: rng.randrange(9999) for kind in ("Journal Article", "Review", "Letter")},
        cleaning={rule: {"documents": 9, "characters": 99} for rule in ("copyright", "truncated", "tags")},
    )


def measure() -> list[Figure]:
    """Return the figures of the plans."""
    file_sizes = _ramp(FILES, 1, 3, FILE_BYTES)
    files = [
        dataclasses.replace(source, size=round(size))
        for source, size in zip(scale_graphs.make_sources(FILES), file_sizes, strict=True)
    ]
    dealt_files: list[SourceFile] = list_items(scale_graphs.citations_graph(0, sources=files), "sources")
    articles = _ramp(RANGES, 1, 5, ARTICLES)
    lists = [
        article_inputs.source_from_file(
            FileInfo(
                article_ranges.selected_path(f"{scale_graphs.BUCKET}/mirror", number),
                round(60 * count),
                "1-1.0",
            )
        )
        for number, count in enumerate(articles)
    ]
    dealt_lists: list[SourceFile] = list_items(scale_graphs.articles_graph(0, lists), "sources")
    range_slots: list[list[int]] = list_items(scale_graphs.articles_graph(RANGES), "ranges to update")
    plans = [
        _make_plan(
            f"pubmed_to_shards, {FILES:,} files of a mirror",
            dealt_files,
            [source.size / CITATION_BYTES_PER_SECOND for source in dealt_files],
        ),
        _make_plan(
            f"pmc_to_shards, {RANGES:,} ranges of a mirror",
            dealt_lists,
            [source.size / 60 / ARTICLES_PER_SECOND for source in dealt_lists],
        ),
        _make_plan(
            "pmc_to_shards, pmc: (downloads and stages)",
            range_slots,
            [sum(articles[number] for number in slot) / ARTICLES_PER_SECOND for slot in range_slots],
        ),
    ]
    figures = [figure for plan in plans for figure in plan.list_figures()]
    for count, name in ((FILES, "files"), (RANGES, "ranges")):
        staged, finalized = (
            sum(len(pickle.dumps(Done("stage", make(number), 1, {}))) for number in range(count))
            for make in (make_stage_result, make_finalize_result)
        )
        figures.append(Figure(f"shuffled reports of {count:,} {name}: staged", [staged / MB], "MB"))
        figures.append(Figure("... finalized", [finalized / MB], "MB"))
    stage_seconds = sum(plans[0].seconds) / FILES
    figures.append(
        Figure(f"calls of a store: {SLOTS} slots that stage", [SLOTS * STAGE_CALLS / stage_seconds], "/s")
    )
    objects = LISTED_ARTICLES + ARTICLES
    for source in ("pubmed", "pmc"):
        plan = _make_remote_plan(source)
        limiter = plan.server.rate_limiter
        figures += [
            Figure(f"{source}: slots that download", [plan.slots], ""),
            Figure("... connections", [plan.slots * limiter.max_connections], ""),
            Figure("... requests, at most", [plan.slots * limiter.requests_per_second], "/s"),
        ]
    figures += [
        Figure(f"pmc: {objects / 1e6:.1f} million objects at the limit", [objects / 1000 / 3600], "h"),
        Figure(f"... at {OBJECTS_PER_SECOND} a second", [objects / OBJECTS_PER_SECOND / 3600], "h"),
    ]
    limit = scale_graphs.MAX_GRAPH_BYTES
    for label, graph, count in (
        (f"pubmed_to_shards, {FILES:,} files", scale_graphs.citations_graph(0, sources=files), FILES),
        (f"pmc_to_shards, {RANGES:,} ranges of a mirror", scale_graphs.articles_graph(0, lists), RANGES),
    ):
        size = scale_graphs.graph_size(graph)
        figures.append(Figure(f"graph of {label}", [size / MB], "MB", at_most=(limit / MB,)))
        figures.append(Figure("... items with which it is full, about", [count * limit / size], ""))
    return figures
