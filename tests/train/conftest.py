"""Fixtures of the trainer's tests: pretraining sets of each objective."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from tests.support.shared_folders import build_once

OBJECTIVES: Final = ("electra", "bert", "albert", "plain")


@pytest.fixture(scope="session")
def pretraining_sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small pretraining set for each objective, by its name, and under "vocabulary" what they share."""
    folder = build_once(tmp_path_factory, "pretraining-sets", _build_pretraining_sets)
    return {name: folder / name for name in (*OBJECTIVES, "vocabulary")}


def _build_pretraining_sets(folder: Path) -> None:
    from tests.support.train.trainer_runs import build_pretraining_set, write_corpus_and_vocabulary

    documents, vocabulary = write_corpus_and_vocabulary(folder)
    for objective in OBJECTIVES:
        build_pretraining_set(folder / objective, objective, documents, vocabulary)
