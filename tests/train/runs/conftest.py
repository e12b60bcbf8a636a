"""Fixtures of the tests of training runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.train.trainer_runs import use_torch_threads


@pytest.fixture(scope="module")
def single_thread() -> Iterator[None]:
    """Run PyTorch on one thread."""
    with use_torch_threads(1):
        yield
