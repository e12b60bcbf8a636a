"""Check how many of the mirror's articles an update would remove, before it removes any.

PMC withdraws articles rarely.  When many of them are no longer listed or selected, an inventory is
incomplete, the metadata have another format, or the filter is not the one of the mirror: a person decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, metadata_cache
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.article_ranges import RangeUpdate
from bioshards.corpus.download.pmc.s3_bucket import version_name
from bioshards.corpus.errors import MAX_SHOWN, RunError, shorten_list
from bioshards.corpus.storage.storage_protocol import Storage

MAX_REMOVED_FRACTION: Final = 0.01
MAX_REMOVED_ARTICLES: Final = 5
"""Without ``--allow-removals`` a run removes at most so many articles, or this fraction of the mirror's."""

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

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {"articles": self.removed}


def find_removals(update: RangeUpdate) -> RangeRemovals:
    """Update the metadata of a range and find what :func:`~.article_ranges.fetch_range` would remove of it.

    An older version whose newer one is new to the mirror is replaced, not removed.  Of an article whose
    metadata cannot be read, nothing is removed.

    Raises:
        OutageError: the bucket does not answer.
    """
    metadata = article_ranges.update_metadata(update)
    selected = update.article_filter.select(metadata.table)
    failed_ids = {failure.pmcid for failure in metadata.failures}
    mirrored = article_ranges.read_selected(update.storage, update.mirror, update.number)
    return _compare_with_mirror(mirrored, selected.table, failed_ids, metadata.table, update.article_filter)


def forecast_removals(
    storage: Storage, mirror: str, range_number: int, article_filter: ArticleFilter
) -> RangeRemovals:
    """Find what of a range would be removed, by the inventory and the metadata that the mirror has.

    Of an article whose metadata must be read first, nothing is counted.
    """
    rows = bucket_inventory.read_range(storage, mirror, range_number)
    metadata = metadata_cache.read_metadata(storage, mirror, range_number)
    difference = metadata_cache.compare_with_inventory(rows, metadata, article_filter.versions)
    return _compare_with_mirror(
        article_ranges.read_selected(storage, mirror, range_number),
        article_filter.select(difference.current).table,
        set(difference.missing["pmcid"].to_pylist()),
        difference.current,
        article_filter,
    )


def _compare_with_mirror(
    mirrored: pa.Table,
    selected: pa.Table,
    unknown_ids: Collection[int],
    metadata: pa.Table,
    article_filter: ArticleFilter,
) -> RangeRemovals:
    """Return the mirrored articles that are not selected, nor unknown, nor replaced by a newer version."""
    mirrored_versions, selected_versions = _list_versions(mirrored), _list_versions(selected)
    new_versions = dict(sorted(selected_versions - mirrored_versions))  # the highest of each article
    removed = sorted(
        (pmcid, version)
        for pmcid, version in mirrored_versions - selected_versions
        if pmcid not in unknown_ids and new_versions.get(pmcid, 0) < version
    )
    shown = removed[:MAX_SHOWN]
    is_shown = pc.is_in(
        metadata["pmcid"], value_set=pa.array(sorted({pmcid for pmcid, _ in shown}), pa.int32())
    )
    reasons = article_filter.find_drop_reasons(metadata.filter(is_shown))
    examples = (f"{version_name(*version)}: {reasons.get(version[0], _NOT_LISTED)}" for version in shown)
    return RangeRemovals(len(mirrored_versions), len(removed), tuple(examples))


def check_removals(range_removals: Iterable[RangeRemovals], mirror: str) -> None:
    """Check that an update removes few of the mirror's articles; arguments as of :func:`describe_removals`.

    Raises:
        RemovalError: it removes many.
    """
    if problem := describe_removals(range_removals, mirror):
        raise RemovalError(problem)


def describe_removals(range_removals: Iterable[RangeRemovals], mirror: str) -> str | None:
    """Return why an update needs ``--allow-removals``, or None.

    It does if it removes more than :data:`MAX_REMOVED_ARTICLES` of the mirror's articles, and more than
    :data:`MAX_REMOVED_FRACTION` of them.

    Args:
        range_removals: those of all ranges.
        mirror: folder of the mirror.
    """
    ranges = list(range_removals)
    mirrored = sum(removals.mirrored for removals in ranges)
    removed = sum(removals.removed for removals in ranges)
    if not is_large_removal(removed, mirrored):
        return None
    examples = sorted(example for removals in ranges for example in removals.examples)
    return (
        f"{removed:,} of the {mirrored:,} articles in {mirror}/pmc would be removed from it "
        f"({shorten_list(examples, removed, '; ')}), which is more than {MAX_REMOVED_FRACTION:.0%}. If this "
        "is meant, for example by other --licences, repeat the command with --allow-removals, or choose "
        "another --mirror. If not, the bucket's inventory or metadata may be wrong: repeat the command "
        "tomorrow"
    )


def is_large_removal(removed: int, mirrored: int) -> bool:
    """Return True if so many of the mirror's articles or files are removed only with ``--allow-removals``."""
    return removed > max(MAX_REMOVED_ARTICLES, MAX_REMOVED_FRACTION * mirrored)


def _list_versions(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(table["pmcid"].to_pylist(), table["version"].to_pylist(), strict=True))
