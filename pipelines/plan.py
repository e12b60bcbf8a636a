"""``--dry-run``: what a run would fetch and process, and for how long, from what was measured before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from bioshards.corpus.article_sources import LIST
from bioshards.corpus.download import pmc, pmc_inventory, pmc_manifest
from bioshards.corpus.download.remote import Remote
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.sources import Source
from bioshards.corpus.workspace import Workspace

from .bucket import Bucket
from .fetch import Job as FetchJob
from .fetching import Fetching, as_size, patient_with_a_person, too_little_room
from .inputs import Inputs, rate
from .job import Job

STAGE_MB_A_SECOND: Final = 8.0
"""Megabytes of PubMed's .xml.gz that one worker stages a second: 38 in 3 to 5 s (tests/bench/FIGURES.md)."""
STAGE_PACKED_MB_A_SECOND: Final = 6.0
"""The same of packages and archives of articles."""
STAGE_PLAIN_MB_A_SECOND: Final = 25.0
"""The same of articles that are not packed."""
FETCH_MB_A_SECOND: Final = 20.0
"""Megabytes fetched a second over all connections: a guess, for want of a measurement.  From 4 connections
people report 90 on a fast link."""


INVENTORY_BYTES: Final = 26.4
"""Of an inventory's compressed files, for each article version (245 MB for 9.3 million, September 2026)."""
ARTICLE_BYTES: Final = 190_000
"""Of an article's XML, in the mean of samples that people report."""
_PACKED: Final = (".gz", ".tgz", ".zip")
ARTICLES_A_SECOND: Final = 60.0
"""Objects of PMC's bucket fetched a second: a guess for 64 connections, at 0.6 to 1.6 seconds an object, as
people report for one connection."""


def of_shards(job: Job, found: Inputs, workers: int) -> str:
    """What ``beam run pubmed_to_shards`` or ``pmc_to_shards`` would do, in lines for a person."""
    staged = _staged(job.files, job.work, found.here)
    to_stage = len(found.here) + len(found.wanted) - len(staged)
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
            f"  processed: {len(staged):,} {what} before, {to_stage:,} {what} to do",
            *_estimate(job, found, staged, workers),
        ]
    return "\n".join(lines + (_articles(job.bucket) if job.bucket else []))


def of_mirror(job: FetchJob) -> str:
    """What ``beam run fetch`` would do, in lines for a person."""
    lines = ["dry run: nothing is fetched, nothing is written", f"mirror:      {job.mirror.folder}"]
    for name, listed in job.listed.items():
        lines += [f"notice: {notice}" for notice in listed.notices]
        lines += [
            f"{name + ':':12} {listed.fetching.server.base}, listed {listed.at}",
            f"  held:      {_files(list(listed.held))}",
            f"  to fetch:  {_files(listed.wanted)}",
            f"  estimate:  {_fetching(listed.wanted, listed.fetching, rate(listed.held.values()))}",
        ]
    return "\n".join(lines + (_articles(job.bucket) if job.bucket else []))


def _articles(bucket: Bucket) -> list[str]:
    mirror, server = bucket.fetching.mirror, bucket.fetching.server
    with patient_with_a_person(server).connect() as connection:
        newest = pmc_manifest.find(connection, server.base)
    known = pmc_inventory.held(mirror.files, mirror.folder)
    lines = [f"pmc:         {server.base}, newest inventory {newest.date}"]
    if known is None:
        size = sum(data.size for data in newest.data)
        return [
            *lines,
            f"  inventory: {len(newest.data)} files, {as_size(size)}, some {size / INVENTORY_BYTES:,.0f} "
            "article versions; it is read first, then the metadata of each, which says what is selected",
            f"  estimate:  {_time(size / INVENTORY_BYTES / ARTICLES_A_SECOND)} for the metadata alone, at "
            f"{ARTICLES_A_SECOND:.0f} objects a second (a guess)",
        ]
    if known.md5 != newest.md5:
        lines.append(f"  inventory: {known.date} is in the mirror and is used here; the newest is read first")
    counts = pmc.plan(mirror.files, mirror.folder, bucket.ranges, bucket.articles)
    to_fetch = counts.selected - counts.held
    seconds = (2 * counts.unknown + to_fetch) / ARTICLES_A_SECOND
    return [
        *lines,
        f"  articles:  {counts.articles:,} in {len(bucket.ranges):,} ranges of ids",
        f"  unknown:   {counts.unknown:,}, whose metadata is read first",
        f"  selected:  {counts.selected:,} of the others",
        f"  held:      {counts.held:,} of these",
        f"  to fetch:  {to_fetch:,}, some {as_size(to_fetch * ARTICLE_BYTES)}",
        f"  surplus:   {counts.surplus:,} others in the mirror, which are taken out if they are not selected",
        *(f"notice: {said}" for said in too_little_room(mirror.folder, to_fetch * ARTICLE_BYTES)),
        f"  estimate:  {_time(seconds)}, at {ARTICLES_A_SECOND:.0f} objects a second (a guess), if all "
        "unknown ones are selected",
    ]


def _files(files: Sequence[Source | Remote]) -> str:
    if not files:
        return "no files"
    names = files[0].name if len(files) == 1 else f"{files[0].name} to {files[-1].name}"
    count = sum(len(file.parts) or 1 if isinstance(file, Source) else 1 for file in files)
    return f"{count:,} files, {as_size(_total(files))} ({names})"


def _total(files: Iterable[Source | Remote]) -> int:
    return sum(file.size for file in files)


def _staged(files: LocalFiles, work: Workspace, here: Iterable[Source]) -> dict[Source, Any]:
    """The reports of the sources that were staged before."""
    names = set(files.names(f"{work.folder}/staged"))
    reports = {}
    for source in here:
        seen = work.seen(source.path, source.stamp)
        if files.exists(seen):
            report = work.staged(f"{source.stem}-{files.read_json(seen)['md5'][:8]}", "json")
            if report.rpartition("/")[2] in names:
                reports[source] = files.read_json(report)
    return reports


def _estimate(job: Job, found: Inputs, staged: dict[Source, Any], workers: int) -> list[str]:
    to_do: list[Source | Remote] = [*(source for source in found.here if source not in staged), *found.wanted]
    seconds = sum(_seconds(job, file) for file in to_do)
    took = sum(report["seconds"] for report in staged.values())
    whence = "as measured on one machine"
    if took > 1:
        seconds *= took / sum(_seconds(job, source) for source in staged)
        whence = "as here before"
    size = sum(_bytes_read(job, file) for file in to_do) / 1e6
    rate = f", {size / seconds:.1f} MB/s each ({whence})" if seconds else ""
    lines = [f"estimate:    {_time(seconds / workers)} of processing: {workers} workers{rate}"]
    if found.wanted and found.fetching:
        fetching = _fetching(found.wanted, found.fetching, found.rate)
        lines.append(f"             at the same time {fetching}")
    return lines


def _bytes_read(job: Job, file: Source | Remote) -> int:
    """The file's size, or that of the articles which it lists."""
    if isinstance(file, Source) and file.path.endswith(LIST):
        return pmc.listed_bytes(job.files, file.path)
    return file.size


def _seconds(job: Job, file: Source | Remote) -> float:
    """How long one worker stages a file, by what was measured elsewhere."""
    rate = STAGE_MB_A_SECOND
    if job.config["pipeline"] == "pmc_to_shards":
        rate = STAGE_PACKED_MB_A_SECOND if file.name.endswith(_PACKED) else STAGE_PLAIN_MB_A_SECOND
    return _bytes_read(job, file) / 1e6 / rate


def _fetching(wanted: Sequence[Remote], fetching: Fetching, measured: float) -> str:
    """How long fetching takes; ``measured`` in bytes a second over one connection, 0 if never measured."""
    connections = fetching.server.places.connections
    speed, whence = FETCH_MB_A_SECOND, "a guess"
    if measured:
        speed, whence = connections * measured / 1e6, f"as here before, {connections} connections"
    return f"{_time(_total(wanted) / 1e6 / speed)} of fetching, {speed:.1f} MB/s ({whence})"


def _time(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60:02d} min"
