"""Fixtures of the tests of training runs, which import torch on first use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def single_thread() -> Iterator[None]:
    """Run PyTorch on one thread."""
    from tests.support.train.trainer_runs import use_torch_threads

    with use_torch_threads(1):
        yield


@pytest.fixture(scope="session")
def runs(pretraining_sets: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A finished run of each family, shared by all tests: copy it before a change."""
    from tests.support.train.trainer_runs import run_trainer, use_torch_threads

    folder = tmp_path_factory.mktemp("runs")
    with use_torch_threads(1):
        for family in ("electra", "bert", "albert"):
            assert run_trainer(pretraining_sets[family], folder / family) == 0
    return {family: folder / family for family in ("electra", "bert", "albert")}
