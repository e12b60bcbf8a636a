"""Fixtures of the trainer's tests: pretraining sets of each objective."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def pretraining_sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A small pretraining set for each objective, by its name, and under "vocabulary" what they share."""
    from tests.support.train.trainer_runs import build_pretraining_set, write_corpus_and_vocabulary

    folder = tmp_path_factory.mktemp("pretraining-sets")
    documents, vocabulary = write_corpus_and_vocabulary(folder)
    outputs = {
        objective: build_pretraining_set(folder / objective, objective, documents, vocabulary)
        for objective in ("electra", "bert", "albert", "plain")
    }
    return {**outputs, "vocabulary": vocabulary}
