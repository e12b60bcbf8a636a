"""Fixtures of the tests of PMC's bucket."""

from __future__ import annotations

import pytest

from tests.support.servers.fake_pmc_bucket import FakeBucket, FolderConnection


@pytest.fixture
def connection(bucket: FakeBucket) -> FolderConnection:
    """A connection to the fake bucket, which each test file defines with its own articles."""
    return FolderConnection(bucket.root)
