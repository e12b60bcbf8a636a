"""Fixtures of the tests of evaluation runs, which import torch on first use."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def checkpoint_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a tiny ELECTRA model."""
    from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint

    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")
