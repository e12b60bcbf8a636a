"""``--dry-run`` of what is made of sources: what a run would fetch and process.

What it takes, here or elsewhere, and what it costs, is said by estimates.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.ahead import ahead
from bioshards.corpus.article_sources import LIST
from bioshards.corpus.download import pmc, pmc_inventory, pmc_manifest
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.sources import Source
from bioshards.corpus.workspace import Workspace

from . import cost
from .bucket import Bucket
from .fetch import Job as FetchJob
from .fetching import Fetching, as_size, patient_with_a_person, too_little_room
from .inputs import Inputs, rate
from .job import Job

FETCH_MB_A_SECOND: Final = 20.0
"""Megabytes fetched a second over all connections: a guess, for want of a measurement.  From 4 connections
people report 90 on a fast link."""
INVENTORY_BYTES: Final = 26.4
"""Of an inventory's compressed files, for each article version (245 MB for 9.3 million, September 2026)."""
ARTICLE_BYTES: Final = 190_000
"""Of an article's XML, in the mean of samples that people report."""
ARTICLES_A_SECOND: Final = 60.0
"""Objects of PMC's bucket fetched a second: a guess for 64 connections, at 0.6 to 1.6 seconds an object, as
people report for one connection."""
_PACKED: Final = (".gz", ".tgz", ".zip")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do.

    Attributes:
        lines: what there is and what is to be done, for a person.
        core_seconds: what processing takes on one core; ``size``: bytes that it reads.
        at_a_time: so many items there are that can be done at the same time.
        waiting: seconds that a store is waited for, if all lies on one.
        fetching: seconds that what is fetched meanwhile takes, and ``meanwhile``, a line about it.
        whence: where the rate is from.
    """

    lines: list[str]
    core_seconds: float
    size: float
    at_a_time: int
    waiting: float = 0
    fetching: float = 0
    meanwhile: str = ""
    whence: str = "as measured on one machine"


def of_shards(job: Job, found: Inputs) -> Plan:
    """What ``beam run pubmed_to_shards`` or ``pmc_to_shards`` would do."""
    staged = _staged(job.files, job.work, found.here)
    here = [source for source in found.here if source not in staged]
    lines = ["dry run: nothing is fetched, nothing is written"]
    lines += [f"notice: {notice}" for notice in found.notices]
    if found.fetching:
        held = [source for source in found.here if source.retrieved]
        lines += [
            f"source:      {found.fetching.server.base}, listed {found.listed}",
            f"mirror:      {found.fetching.mirror.folder}",
            f"  held:      {_files(held)}",
            f"  to fetch:  {_files(found.wanted)}",
        ]
    lines.append(f"output:      {job.work.output}")
    if found.here or found.wanted:
        what = "files" if job.config["pipeline"] == "pubmed_to_shards" else "sources"
        lines += [
            f"  input:     {_files([*found.here, *found.wanted])}",
            f"  processed: {len(staged):,} {what} before, {len(here) + len(found.wanted):,} {what} to do",
        ]
    to_do: list[Source | Remote] = [*here, *found.wanted]
    seconds, whence = sum(_seconds(job, file) for file in to_do), "as measured on one machine"
    took = sum(report["seconds"] for report in staged.values())
    if took > 1:
        seconds *= took / sum(_seconds(job, source) for source in staged)
        whence = "as here before"
    size: float = sum(_bytes_read(job, file) for file in to_do)
    waiting = cost.of_sources(len(to_do), size, sum(_single(job, source) for source in here))
    at_a_time, fetching, meanwhile = len(here), 0.0, ""
    if found.wanted and found.fetching:
        at_a_time += min(len(found.wanted), found.fetching.lanes)
        fetching, meanwhile = _fetching(found.wanted, found.fetching, found.rate)
    if job.bucket:
        articles = _articles(job.bucket)
        lines += articles.lines
        seconds, size = seconds + articles.core_seconds, size + articles.size
        at_a_time, fetching = at_a_time + articles.at_a_time, fetching + articles.fetching
        waiting += articles.waiting
    return Plan(lines, seconds, size, at_a_time, waiting, fetching, meanwhile, whence)


def of_mirror(job: FetchJob) -> Plan:
    """What ``beam run fetch`` would do."""
    lines = ["dry run: nothing is fetched, nothing is written", f"mirror:      {job.mirror.folder}"]
    seconds = fetching = 0.0
    at_a_time = 0
    for name, listed in job.listed.items():
        takes, line = _fetching(listed.wanted, listed.fetching, rate(listed.held.values()))
        lines += [f"notice: {notice}" for notice in listed.notices]
        lines += [
            f"{name + ':':12} {listed.fetching.server.base}, listed {listed.at}",
            f"  held:      {_files(list(listed.held))}",
            f"  to fetch:  {_files(listed.wanted)}",
            f"  estimate:  {line}",
        ]
        seconds += _total(listed.wanted) / 1e6 / cost.FETCHED_MEGABYTES
        fetching = max(fetching, takes)
        at_a_time += min(len(listed.wanted), listed.fetching.lanes)
    if job.bucket:
        articles = _articles(job.bucket)
        lines += articles.lines
        seconds += articles.size / ARTICLE_BYTES * cost.OBJECT_SECONDS
        fetching, at_a_time = max(fetching, articles.fetching), at_a_time + articles.at_a_time
    return Plan(lines, seconds, 0, at_a_time, fetching=fetching)


def _articles(bucket: Bucket) -> Plan:
    """What of PMC's bucket would be fetched, and then processed."""
    mirror, server, lanes = bucket.fetching.mirror, bucket.fetching.server, bucket.fetching.lanes
    with patient_with_a_person(server).connect() as connection:
        newest = pmc_manifest.find(connection, server.base)
    known = pmc_inventory.held(mirror.files, mirror.folder)
    lines = [f"pmc:         {server.base}, newest inventory {newest.date}"]
    if known is None:
        packed = sum(data.size for data in newest.data)
        articles = packed / INVENTORY_BYTES
        lines += [
            f"  inventory: {len(newest.data)} files, {as_size(packed)}, some {articles:,.0f} "
            "article versions; it is read first, then the metadata of each, which says what is selected",
            f"  estimate:  {as_time(articles / ARTICLES_A_SECOND)} for the metadata alone, at "
            f"{ARTICLES_A_SECOND:.0f} objects a second (a guess)",
        ]
        size = articles * ARTICLE_BYTES
        waiting = cost.of_sources(len(bucket.ranges), size, articles)
        fetching = 2 * articles / ARTICLES_A_SECOND
        return Plan(lines, cost.ARTICLES.seconds(size), size, lanes, waiting, fetching)
    if known.md5 != newest.md5:
        lines.append(f"  inventory: {known.date} is in the mirror and is used here; the newest is read first")
    counts = pmc.plan(mirror.files, mirror.folder, bucket.ranges, bucket.articles)
    to_fetch = counts.selected - counts.held
    seconds = (2 * counts.unknown + to_fetch) / ARTICLES_A_SECOND
    lines += [
        f"  articles:  {counts.articles:,} in {len(bucket.ranges):,} ranges of ids",
        f"  unknown:   {counts.unknown:,}, whose metadata is read first",
        f"  selected:  {counts.selected:,} of the others",
        f"  held:      {counts.held:,} of these",
        f"  to fetch:  {to_fetch:,}, some {as_size(to_fetch * ARTICLE_BYTES)}",
        f"  surplus:   {counts.surplus:,} others in the mirror, which are taken out if they are not selected",
        *(f"notice: {said}" for said in too_little_room(mirror.folder, to_fetch * ARTICLE_BYTES)),
        f"  estimate:  {as_time(seconds)}, at {ARTICLES_A_SECOND:.0f} objects a second (a guess), if all "
        "unknown ones are selected",
    ]
    articles = to_fetch + counts.unknown
    size = articles * ARTICLE_BYTES
    waiting = cost.of_sources(len(bucket.ranges), size, articles)
    return Plan(lines, cost.ARTICLES.seconds(size), size, min(len(bucket.ranges), lanes), waiting, seconds)


def _files(files: Sequence[Source | Remote]) -> str:
    if not files:
        return "no files"
    names = files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name}"
    count = sum(file.files or 1 if isinstance(file, Source) else 1 for file in files)
    return f"{count:,} files, {as_size(_total(files))} ({names})"


def _total(files: Iterable[Source | Remote]) -> int:
    return sum(file.size for file in files)


def _staged(files: LocalFiles, work: Workspace, here: Iterable[Source]) -> dict[Source, Any]:
    """The reports of the sources that were staged before."""
    seen, done = (
        {f"{work.folder}/{part}/{name}" for name in files.names(f"{work.folder}/{part}")}
        for part in ("seen", "staged")
    )
    known = {source: path for source in here if (path := work.seen(source.path, source.stamp)) in seen}
    reports = {
        source: work.staged(f"{source.stem}-{remembered['md5'][:8]}", "json")
        for source, remembered in zip(known, ahead(files, files.read_json, known.values()), strict=True)
    }
    reports = {source: report for source, report in reports.items() if report in done}
    return dict(zip(reports, ahead(files, files.read_json, reports.values()), strict=True))


def _bytes_read(job: Job, file: Source | Remote) -> int:
    """The file's size, or that of the articles which it lists."""
    if isinstance(file, Source) and file.path.endswith(LIST):
        return pmc.listed_bytes(job.files, file.path)
    return file.size


def _single(job: Job, source: Source) -> float:
    """How many articles of a source lie there by themselves, about."""
    return _bytes_read(job, source) / ARTICLE_BYTES if source.path.endswith(LIST) else source.files


def _seconds(job: Job, file: Source | Remote) -> float:
    """How long one core stages and finishes a file, by what was measured elsewhere."""
    if job.config["pipeline"] == "pubmed_to_shards":
        return cost.PUBMED.seconds(_bytes_read(job, file))
    rates = cost.PACKED if file.name.endswith(_PACKED) else cost.ARTICLES
    return rates.seconds(_bytes_read(job, file))


def _fetching(wanted: Sequence[Remote], fetching: Fetching, measured: float) -> tuple[float, str]:
    """How long fetching takes; ``measured`` in bytes a second over one connection, 0 if never measured."""
    connections = fetching.connections
    speed, whence = FETCH_MB_A_SECOND, "a guess"
    if measured:
        speed, whence = connections * measured / 1e6, f"as here before, {connections} connections"
    seconds = _total(wanted) / 1e6 / speed
    return seconds, f"{as_time(seconds)} of fetching, {speed:.1f} MB/s ({whence})"


def as_time(seconds: float) -> str:
    """Seconds for a person: ``1 h 05 min``."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
