"""Fixtures of the tests of object stores."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.cloud import store_emulators
from tests.support.cloud.object_store_proxy import ObjectStoreProxy


@pytest.fixture(scope="module", params=["gcs", "s3", "azure"])
def store_proxy(request: pytest.FixtureRequest) -> Iterator[ObjectStoreProxy]:
    """An emulator of each object store behind a proxy that injects faults."""
    with (
        getattr(store_emulators, f"run_{request.param}")() as emulated_store,
        ObjectStoreProxy(emulated_store) as proxy,
    ):
        yield proxy
