"""Check how many of the mirror's articles an update would remove, before it removes any.

PMC withdraws articles rarely.  When many of them are no longer listed or selected, an inventory is
incomplete, the metadata have another format, or the filter is not the one of the mirror: a person decides.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.download.pool import DownloadPool
from bioshards.corpus.errors import RunError
from bioshards.corpus.storage.storage_protocol import Storage

from . import article_ranges
from .article_filter import ArticleFilter
from .s3_bucket import version_name

MAX_REMOVED_FRACTION: Final = 0.01
MAX_REMOVED_ARTICLES: Final = 5
"""Without ``--allow-removals`` a run removes at most so many articles, or this fraction of the mirror's."""

_MAX_SHOWN: Final = 5
_NOT_LISTED: Final = "not in the bucket"


class RemovalError(RunError):
    """An update would remove a large part of the mirror."""

    hint = "Nothing was removed"


@dataclass(frozen=True, slots=True)
class RangeRemovals:
    """Article versions of a range that an update would remove from the mirror.

    Attributes:
        mirrored: number of article versions in the mirror.
        removed: number of those that would be removed.
        examples: the first of these, each with the reason.
    """

    mirrored: int
    removed: int
    examples: tuple[str, ...]


def find_removals(
    storage: Storage,
    mirror: str,
    base_url: str,
    pool: DownloadPool,
    range_number: int,
    article_filter: ArticleFilter,
    today: date,
) -> RangeRemovals:
    """Update the metadata of a range and find what :func:`~.article_ranges.fetch_range` would remove of it.

    An older version whose newer one is new to the mirror is replaced, not removed.  Of an article whose
    metadata cannot be read, nothing is removed.

    Raises:
        OutageError: the bucket does not answer.
    """
    update, selected = article_ranges.select_articles(
        storage, mirror, base_url, pool, range_number, article_filter, today
    )
    mirrored_versions = _list_versions(article_ranges.read_selected(storage, mirror, range_number))
    selected_versions = _list_versions(selected.table)
    new_versions = dict(sorted(selected_versions - mirrored_versions))  # the highest of each article
    failed_ids = {failure.pmcid for failure in update.failures}
    removed = sorted(
        (pmcid, version)
        for pmcid, version in mirrored_versions - selected_versions
        if pmcid not in failed_ids and new_versions.get(pmcid, 0) < version
    )
    shown = removed[:_MAX_SHOWN]
    is_shown = pc.is_in(
        update.table["pmcid"], value_set=pa.array(sorted({pmcid for pmcid, _ in shown}), pa.int32())
    )
    reasons = article_filter.find_drop_reasons(update.table.filter(is_shown))
    examples = (f"{version_name(*version)}: {reasons.get(version[0], _NOT_LISTED)}" for version in shown)
    return RangeRemovals(len(mirrored_versions), len(removed), tuple(examples))


def check_removals(range_removals: Iterable[RangeRemovals], mirror: str) -> None:
    """Check that an update removes few of the mirror's articles.

    Args:
        range_removals: those of all ranges.
        mirror: folder of the mirror.

    Raises:
        RemovalError: it removes more than :data:`MAX_REMOVED_ARTICLES`, and more than
            :data:`MAX_REMOVED_FRACTION` of them.
    """
    ranges = list(range_removals)
    mirrored = sum(removals.mirrored for removals in ranges)
    removed = sum(removals.removed for removals in ranges)
    if not is_large_removal(removed, mirrored):
        return
    examples = sorted(example for removals in ranges for example in removals.examples)[:_MAX_SHOWN]
    more = f"; and {removed - len(examples):,} more" if removed > len(examples) else ""
    raise RemovalError(
        f"{removed:,} of the {mirrored:,} articles in {mirror}/pmc would be removed from it "
        f"({'; '.join(examples)}{more}), which is more than {MAX_REMOVED_FRACTION:.0%}. If this is meant, "
        "for example by other --licences, repeat the command with --allow-removals, or choose another "
        "--mirror. If not, the bucket's inventory or metadata may be wrong: repeat the command tomorrow"
    )


def is_large_removal(removed: int, mirrored: int) -> bool:
    """Return True if so many of the mirror's articles or files are removed only with ``--allow-removals``."""
    return removed > max(MAX_REMOVED_ARTICLES, MAX_REMOVED_FRACTION * mirrored)


def _list_versions(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(table["pmcid"].to_pylist(), table["version"].to_pylist(), strict=True))
