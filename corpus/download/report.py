"""What a mirror holds after ``beam run fetch``: its manifest, written last."""

from __future__ import annotations

import collections
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import (
    FailedArticle,
    MirrorArticles,
    MirrorConfig,
    MirrorFile,
    MirrorManifest,
    MirrorRun,
    MissingFile,
    write_manifest,
)

from .mirror import Held
from .pmc import RangeReport
from .pmc_bucket import label
from .remote import Remote

NOTICE: Final = (
    "Courtesy of the U.S. National Library of Medicine. NLM neither endorses this product nor guarantees its "
    "content; what is here does not reflect the most current data available from NLM. Abstracts may be their "
    "publishers' copyright; articles are under the licence that each of them names."
)
_NAMED: Final = 100
"""So many bad articles are listed one by one; all are counted."""


@dataclass(frozen=True, slots=True)
class FetchedFile:
    """What became of a file of a source: it is held, or ``problem`` says why not."""

    source: str
    remote: Remote
    held: Held | None
    problem: str | None = None


def manifest(
    config: MirrorConfig, files: Iterable[FetchedFile], ranges: Iterable[RangeReport], run: MirrorRun
) -> MirrorManifest:
    """Describe what a run has fetched, and what it has not.

    Args:
        config: what was asked for.
    """
    in_order = sorted(files, key=lambda file: file.remote.path)
    return MirrorManifest(
        notice=NOTICE,
        config=config,
        files=tuple(_entry(file.remote, file.held) for file in in_order if file.held),
        newest_file=_newest(in_order),
        not_fetched=tuple(
            MissingFile(file.remote.path, file.remote.url, file.problem) for file in in_order if file.problem
        ),
        articles=articles(ranges),
        run=run,
    )


def articles(ranges: Iterable[RangeReport]) -> MirrorArticles | None:
    """What became of PMC's articles; None where none were asked for."""
    in_order = sorted(ranges, key=lambda report: report.number)
    if not in_order:
        return None
    dropped: collections.Counter[str] = collections.Counter()
    for report in in_order:
        dropped.update(report.dropped)
    failed = [
        FailedArticle(one.pmcid, one.version, one.reason, one.detail)
        for report in in_order
        for one in report.bad
    ]
    return MirrorArticles(
        ranges=len(in_order),
        first_range=label(in_order[0].number),
        last_range=label(in_order[-1].number),
        selected=sum(report.selected for report in in_order),
        not_selected=dict(sorted(dropped.items())),
        failed=len(failed),
        failed_articles=tuple(failed[:_NAMED]),
    )


def problem(manifest: MirrorManifest, max_rejected: float) -> str | None:
    """Why what was fetched is not complete; None where it is."""
    missing = manifest.not_fetched
    if missing:
        named = "; ".join(file.problem for file in missing[:5])
        more = f" (and {len(missing) - 5} more)" if len(missing) > 5 else ""
        return (
            f"{len(missing)} files could not be fetched ({named}{more}). All others are in the mirror; run "
            "the same command again to fetch what is missing"
        )
    found = manifest.articles
    if found and found.failed > max_rejected * (found.selected + found.failed):
        named = "; ".join(article.detail for article in found.failed_articles[:5])
        return (
            f"{found.failed} articles could not be fetched ({named}), more than --max-rejected "
            f"{max_rejected:g} allows. All others are in the mirror; run the same command again, or allow "
            "a larger share"
        )
    return None


def publish(storage: LocalFiles, path: str, manifest: MirrorManifest, max_rejected: float) -> str | None:
    """Write the manifest, unless something is missing: then say what."""
    found = problem(manifest, max_rejected)
    if found is None:
        write_manifest(storage, path, manifest)
    return found


def _entry(remote: Remote, held: Held) -> MirrorFile:
    return MirrorFile(
        file=remote.path,
        url=remote.url,
        bytes=held.found.size,
        md5=held.md5,
        md5_published=held.published,
        retrieved=held.retrieved,
    )


def _newest(files: list[FetchedFile]) -> str | None:
    """The name of PubMed's newest file: numbers go on from the baseline to the updates."""
    names = [file.remote.name for file in files if file.source == "pubmed" and file.held]
    return max(names, default=None)
