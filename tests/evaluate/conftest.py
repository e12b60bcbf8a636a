"""Fixtures of the evaluation tests, which import torch on first use."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def use_one_thread() -> Iterator[None]:
    """Run PyTorch on one thread, and restore the SIGTERM handler that a run replaces."""
    from tests.support.train.trainer_runs import use_torch_threads

    handler = signal.getsignal(signal.SIGTERM)
    with use_torch_threads(1):
        yield
    signal.signal(signal.SIGTERM, handler)
