"""Plans of ranges: what would be fetched and removed, and how much stops a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from bioshards.corpus.download.http_client import NotFoundError
from bioshards.corpus.download.pmc import article_ranges, bucket_inventory, range_plan
from bioshards.corpus.download.pmc.article_filter import ArticleFilter
from bioshards.corpus.download.pmc.metadata_cache import RangeUpdate
from bioshards.corpus.download.pmc.range_plan import RangePlan, RemovalError, plan_range
from bioshards.corpus.storage.local_storage import LocalStorage
from tests.support.servers.fake_pmc_bucket import (
    BASE_URL,
    TODAY,
    FakeArticle,
    FakeBucket,
    FolderConnection,
    SequentialPool,
    create_bucket,
)

FILES = LocalStorage()
DEFAULT = ArticleFilter()
FindRemovals = Callable[..., RangePlan]


@pytest.fixture
def bucket(tmp_path: Path) -> FakeBucket:
    articles = [*(FakeArticle(number) for number in (1, 2, 3, 4)), FakeArticle(5, 1), FakeArticle(5, 2)]
    return create_bucket(tmp_path / "bucket", articles, "2026-09-04")


@pytest.fixture
def find_removals(tmp_path: Path, bucket: FakeBucket, connection: FolderConnection) -> FindRemovals:
    """Return a function that finds the removals from a mirror of the bucket, after changes of the bucket."""
    mirror, pool = str(tmp_path / "mirror"), SequentialPool(connection)

    def call(
        *changes: Callable[[], object], before: ArticleFilter = DEFAULT, after: ArticleFilter = DEFAULT
    ) -> RangePlan:
        bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL)
        article_ranges.fetch_range(RangeUpdate(FILES, mirror, pool, 0, before, TODAY))
        mirrored = sorted(Path(mirror, "pmc/xml").rglob("*.xml"))
        for change in changes:
            change()
        bucket.publish_inventory("2026-09-05")
        bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL, allow_removals=True)
        plan = range_plan.find_removals(RangeUpdate(FILES, mirror, pool, 0, after, TODAY))
        assert sorted(Path(mirror, "pmc/xml").rglob("*.xml")) == mirrored
        report = article_ranges.fetch_range(RangeUpdate(FILES, mirror, pool, 0, after, TODAY))
        assert plan.removed <= report.removed
        assert plan.to_fetch == report.fetched
        return plan

    return call


def test_removals_are_counted_with_their_reasons(bucket: FakeBucket, find_removals: FindRemovals) -> None:
    plan = find_removals(
        lambda: bucket.remove(1),
        lambda: bucket.put_article(FakeArticle(2, licence="CC BY-NC")),
        lambda: bucket.put_article(FakeArticle(3, 2, licence=None)),
    )
    assert (plan.mirrored, plan.removed) == (5, 3)
    assert plan.examples == (
        "PMC1.1: not in the bucket",
        "PMC2.1: licence:CC-BY-NC",
        "PMC3.1: licence:unknown",
    )


def test_replaced_and_unreadable_articles_are_not_removed(
    bucket: FakeBucket, find_removals: FindRemovals
) -> None:
    plan = find_removals(
        lambda: bucket.put_article(FakeArticle(1, text="Revised.")),
        lambda: bucket.put_article(FakeArticle(2, 2)),
        lambda: bucket.put_article(FakeArticle(3), is_retracted=None),
        lambda: bucket.put_article(FakeArticle(4, 3), license_code=7),
    )
    assert (plan.unknown, plan.mirrored, plan.removed, plan.examples) == (2, 5, 0, ())


def test_other_options_remove_articles(find_removals: FindRemovals) -> None:
    assert find_removals(after=ArticleFilter(licences=frozenset({"CC0"}))).removed == 5


def test_older_versions_of_a_mirror_of_all_versions_are_removed(find_removals: FindRemovals) -> None:
    plan = find_removals(before=ArticleFilter(versions="all"))
    assert (plan.mirrored, plan.removed, plan.examples) == (6, 1, ("PMC5.1: not-newest",))


def test_metadata_that_is_gone_counts_as_a_removal(
    bucket: FakeBucket, connection: FolderConnection, find_removals: FindRemovals
) -> None:
    """The inventory lists a changed object that the bucket does not have any more."""

    def withdraw_after_the_inventory() -> None:
        bucket.put_article(FakeArticle(1, text="Revised."))
        connection.faults["metadata/PMC1.1.json"] = [NotFoundError("404")] * 2

    assert find_removals(withdraw_after_the_inventory).examples == ("PMC1.1: not in the bucket",)


def test_plan_by_the_mirror_alone_writes_nothing(
    tmp_path: Path, bucket: FakeBucket, connection: FolderConnection, monkeypatch: pytest.MonkeyPatch
) -> None:
    mirror = str(tmp_path / "mirror")
    bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL)
    assert plan_range(FILES, mirror, 0, DEFAULT) == RangePlan(listed=5, unknown=5)
    article_ranges.fetch_range(RangeUpdate(FILES, mirror, SequentialPool(connection), 0, DEFAULT, TODAY))
    bucket.put_article(FakeArticle(1, text="Revised."))
    bucket.put_article(FakeArticle(9))
    bucket.remove(2)
    bucket.publish_inventory("2026-09-05")
    bucket_inventory.update_inventory(FILES, mirror, connection, BASE_URL, allow_removals=True)
    connection.requests.clear()
    monkeypatch.setattr(LocalStorage, "write", None)
    assert plan_range(FILES, mirror, 0, DEFAULT) == RangePlan(
        listed=5, unknown=2, selected=3, mirrored=5, removed=1, examples=("PMC2.1: not in the bucket",)
    )
    none = ArticleFilter(licences=frozenset({"TDM"}))
    assert plan_range(FILES, mirror, 0, none).removed == 4, "of the unknown one nothing is removed"
    assert plan_range(FILES, mirror, 1, DEFAULT) == RangePlan()
    assert connection.requests == []


@pytest.mark.parametrize(
    ("mirrored", "removed", "is_error"),
    [(6, 5, False), (6, 6, True), (600, 6, False), (599, 6, True), (1000, 10, False), (0, 0, False)],
)
def test_more_than_a_hundredth_stops_the_run(mirrored: int, removed: int, is_error: bool) -> None:
    examples = tuple(f"PMC{number}.1: licence:unknown" for number in range(1, min(removed, 5)))
    ranges = [
        RangePlan(mirrored=mirrored, removed=removed - min(removed, 1), examples=examples),
        RangePlan(removed=min(removed, 1), examples=("PMC9.1: retracted",) * min(removed, 1)),
    ]
    if not is_error:
        range_plan.check_removals(ranges, "mirror")
        return
    with pytest.raises(RemovalError) as caught:
        range_plan.check_removals(ranges, "mirror")
    message = str(caught.value)
    assert f"{removed} of the {mirrored} articles in mirror/pmc would be removed" in message
    assert "PMC1.1: licence:unknown" in message
    assert "--allow-removals" in message
