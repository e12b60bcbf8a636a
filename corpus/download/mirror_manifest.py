"""Build and publish the manifest of a mirror."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.download.listing import RemoteFile
from bioshards.corpus.download.mirror import MirroredFile
from bioshards.corpus.download.pmc.article_ranges import RangeReport
from bioshards.corpus.download.pmc.s3_bucket import range_label
from bioshards.corpus.errors import shorten_list
from bioshards.corpus.manifest import (
    MirrorArticles,
    MirrorConfig,
    MirrorFile,
    MirrorManifest,
    MirrorRun,
    MissingFile,
    write_manifest,
)
from bioshards.corpus.output.rejects import is_over_limit
from bioshards.corpus.storage.storage_protocol import Storage

NOTICE: Final = (
    "Courtesy of the U.S. National Library of Medicine. NLM neither endorses this product nor guarantees its "
    "content; what is here does not reflect the most current data available from NLM. Abstracts may be their "
    "publishers' copyright; articles are under the licence that each of them names."
)
_MAX_LISTED_FAILURES: Final = 100
"""Failed articles listed in the manifest; all are counted."""


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """Result of fetching a file: the mirrored file, or a ``problem``."""

    source: str
    remote_file: RemoteFile
    mirrored_file: MirroredFile | None
    problem: str | None = None


def build_manifest(
    config: MirrorConfig,
    fetched_files: Iterable[FetchedFile],
    range_reports: Iterable[RangeReport],
    run: MirrorRun,
) -> MirrorManifest:
    """Build the manifest of a mirror.

    Args:
        config: options of the run.
        fetched_files: results of PubMed's and Europe PMC's files.
        range_reports: results of PMC's ranges.
        run: facts about the run.
    """
    sorted_files = sorted(fetched_files, key=lambda fetched_file: fetched_file.remote_file.path)
    return MirrorManifest(
        notice=NOTICE,
        config=config,
        files=tuple(
            MirrorFile(
                file=fetched_file.remote_file.path,
                url=fetched_file.remote_file.url,
                bytes=mirrored.info.size,
                md5=mirrored.md5,
                md5_published=mirrored.is_md5_published,
                retrieved_at=mirrored.retrieved_at,
            )
            for fetched_file in sorted_files
            if (mirrored := fetched_file.mirrored_file)
        ),
        newest_file=_find_newest_file(sorted_files),
        not_fetched=tuple(
            MissingFile(fetched_file.remote_file.path, fetched_file.remote_file.url, fetched_file.problem)
            for fetched_file in sorted_files
            if fetched_file.problem
        ),
        articles=_summarise_articles(range_reports),
        run=run,
    )


def _summarise_articles(range_reports: Iterable[RangeReport]) -> MirrorArticles | None:
    """Sum up the results of PMC's ranges; None if no article was requested."""
    sorted_reports = sorted(range_reports, key=lambda report: report.range_number)
    if not sorted_reports:
        return None
    dropped: collections.Counter[str] = collections.Counter()
    for report in sorted_reports:
        dropped.update(report.dropped)
    failures = [failure for report in sorted_reports for failure in report.failures]
    return MirrorArticles(
        ranges=len(sorted_reports),
        first_range=range_label(sorted_reports[0].range_number),
        last_range=range_label(sorted_reports[-1].range_number),
        selected=sum(report.selected for report in sorted_reports),
        not_selected=dict(sorted(dropped.items())),
        failed=len(failures),
        failed_articles=tuple(failures[:_MAX_LISTED_FAILURES]),
    )


def find_problem(manifest: MirrorManifest, max_rejected: float) -> str | None:
    """Return the reason why the mirror is incomplete, or None."""
    missing_files = manifest.not_fetched
    if missing_files:
        details = shorten_list([file.problem for file in missing_files], separator="; ")
        return (
            f"{len(missing_files)} files could not be fetched ({details}). All others are in the "
            "mirror; rerun the command to fetch them"
        )
    article_counts = manifest.articles
    if article_counts and is_over_limit(
        article_counts.failed, article_counts.selected + article_counts.failed, max_rejected
    ):
        failures = [article.detail for article in article_counts.failed_articles]
        details = shorten_list(failures, article_counts.failed, "; ")
        return (
            f"{article_counts.failed} articles could not be fetched ({details}), more than --max-rejected "
            f"{max_rejected:g} allows. All others are in the mirror; rerun the command, or raise "
            "--max-rejected"
        )
    return None


def publish_mirror(storage: Storage, path: str, manifest: MirrorManifest, max_rejected: float) -> str | None:
    """Write the manifest if the mirror is complete, else return the reason."""
    problem = find_problem(manifest, max_rejected)
    if problem is None:
        write_manifest(storage, path, manifest)
    return problem


def _find_newest_file(fetched_files: list[FetchedFile]) -> str | None:
    """Return the name of PubMed's newest file: updates continue the numbers of the baseline."""
    names = [
        fetched_file.remote_file.name
        for fetched_file in fetched_files
        if fetched_file.source == "pubmed" and fetched_file.mirrored_file
    ]
    return max(names, default=None)
