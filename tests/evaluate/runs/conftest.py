"""Fixtures of the tests of evaluation runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.evaluate.tiny_checkpoints import save_tiny_checkpoint


@pytest.fixture(scope="module")
def checkpoint_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint of a tiny ELECTRA model."""
    return save_tiny_checkpoint(tmp_path_factory.mktemp("model") / "electra")
