"""Plan the update of a range before anything is fetched or removed: for the dry run, and as a guard.

PMC withdraws articles rarely.  When many of the mirror's are no longer listed or selected, an inventory is
incomplete, the metadata have another format, or the filter is not the one of the mirror: a person decides.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.download.listing import MAX_REMOVED_FRACTION, is_large_removal
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, metadata_cache
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.metadata_cache import RangeUpdate
from bioshards.corpus.download.pmc.s3_bucket import version_name
from bioshards.corpus.errors import MAX_SHOWN, RunError, shorten_list
from bioshards.corpus.storage.storage_protocol import Storage


class RemovalError(RunError):
    """An update would remove a large part of the mirror."""

    hint = "Nothing was removed"


@dataclass(frozen=True, slots=True)
class RangePlan:
    """What an update would fetch and remove of a range.

    Attributes:
        listed: articles in the inventory.
        unknown: those of them whose metadata must be read first.
        selected: selected articles among the others.
        to_fetch: those of them that are not in the mirror's list.
        mirrored: article versions in the mirror.
        removed: those of them that would be removed.
        examples: the first of these, each with the reason.
    """

    listed: int = 0
    unknown: int = 0
    selected: int = 0
    to_fetch: int = 0
    mirrored: int = 0
    removed: int = 0
    examples: tuple[str, ...] = ()

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {"articles": self.removed}


def plan_range(
    storage: Storage,
    mirror: str,
    range_number: int,
    article_filter: ArticleFilter,
    unknown_ids: Collection[int] | None = None,
) -> RangePlan:
    """Plan the update of a range by the inventory and the metadata that the mirror has.

    An older version whose newer one is new to the mirror is replaced, not removed.  Of an article whose
    metadata is unknown, nothing is removed.

    Args:
        unknown_ids: PMC ids of unknown metadata; by default those whose metadata is to be read again.
    """
    rows = bucket_inventory.read_range(storage, mirror, range_number)
    cached = metadata_cache.read_metadata(storage, mirror, range_number)
    difference = metadata_cache.compare_with_inventory(rows, cached, article_filter.versions)
    if unknown_ids is None:
        unknown_ids = set(difference.missing["pmcid"].to_pylist())
    selected = article_filter.select(difference.current).table
    mirrored = article_ranges.read_selected(storage, mirror, range_number)
    removed = _find_removed(_list_versions(mirrored), _list_versions(selected), unknown_ids)
    file_names = set(map(article_ranges.make_file_name, metadata_cache.list_articles(selected)))
    return RangePlan(
        listed=rows.num_rows - difference.older_versions,
        unknown=difference.missing.num_rows,
        selected=selected.num_rows,
        to_fetch=len(file_names.difference(mirrored["file"].to_pylist())),
        mirrored=mirrored.num_rows,
        removed=len(removed),
        examples=_explain(removed[:MAX_SHOWN], difference.current, article_filter),
    )


def find_removals(update: RangeUpdate) -> RangePlan:
    """Update the metadata of a range, and plan what :func:`~.article_ranges.fetch_range` would do.

    Raises:
        OutageError: the bucket does not answer.
    """
    failures = metadata_cache.update_metadata(update).failures
    failed_ids = {failure.pmcid for failure in failures}
    return plan_range(update.storage, update.mirror, update.number, update.article_filter, failed_ids)


def _list_versions(table: pa.Table) -> set[tuple[int, int]]:
    return set(zip(table["pmcid"].to_pylist(), table["version"].to_pylist(), strict=True))


def _find_removed(
    mirrored: set[tuple[int, int]], selected: set[tuple[int, int]], unknown_ids: Collection[int]
) -> list[tuple[int, int]]:
    """Return the mirrored versions that are not selected, nor unknown, nor replaced by a newer version."""
    new_versions = dict(sorted(selected - mirrored))  # the highest of each article
    return sorted(
        (pmcid, version)
        for pmcid, version in mirrored - selected
        if pmcid not in unknown_ids and new_versions.get(pmcid, 0) < version
    )


def _explain(
    removed: list[tuple[int, int]], metadata: pa.Table, article_filter: ArticleFilter
) -> tuple[str, ...]:
    """Return the names of removed versions, each with the reason."""
    ids = pa.array(sorted({pmcid for pmcid, _ in removed}), pa.int32())
    reasons = article_filter.find_drop_reasons(metadata.filter(pc.is_in(metadata["pmcid"], value_set=ids)))
    return tuple(
        f"{version_name(*version)}: {reasons.get(version[0], article_ranges.NOT_LISTED)}"
        for version in removed
    )


def check_removals(plans: Iterable[RangePlan], mirror: str) -> None:
    """Check that an update removes few of the mirror's articles; arguments as of :func:`describe_removals`.

    Raises:
        RemovalError: it removes many.
    """
    if problem := describe_removals(plans, mirror):
        raise RemovalError(problem)


def describe_removals(plans: Iterable[RangePlan], mirror: str) -> str | None:
    """Return why an update needs ``--allow-removals``, or None.

    Args:
        plans: those of all ranges.
        mirror: folder of the mirror.
    """
    plans = list(plans)
    mirrored, removed = sum(plan.mirrored for plan in plans), sum(plan.removed for plan in plans)
    if not is_large_removal(removed, mirrored):
        return None
    examples = sorted(example for plan in plans for example in plan.examples)
    return (
        f"{removed:,} of the {mirrored:,} articles in {mirror}/pmc would be removed from it "
        f"({shorten_list(examples, removed, '; ')}), which is more than {MAX_REMOVED_FRACTION:.0%}. If this "
        "is meant, for example by other --licences, repeat the command with --allow-removals, or choose "
        "another --mirror. If not, the bucket's inventory or metadata may be wrong: repeat the command "
        "tomorrow"
    )
