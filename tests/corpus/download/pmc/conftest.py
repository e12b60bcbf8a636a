"""Fixtures of the tests of PMC's bucket."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from bioshards.corpus.storage import retry
from tests.support.servers.fake_pmc_bucket import FakeBucket, FolderConnection


@pytest.fixture(autouse=True)
def retry_pauses(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses before further reads of damaged content, which take no time."""
    pauses: list[float] = []
    monkeypatch.setattr(retry, "time", SimpleNamespace(sleep=pauses.append))
    return pauses


@pytest.fixture
def connection(bucket: FakeBucket) -> FolderConnection:
    """A connection to the fake bucket, which each test file defines with its own articles."""
    return FolderConnection(bucket.root)
