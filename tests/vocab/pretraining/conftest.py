"""Fixtures of the tests of pretraining sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining.build import ShardGroup
from tests.support.vocab.block_factories import (
    make_abstracts,
    make_single_group,
    make_word_encoder,
    write_documents,
)


@pytest.fixture(scope="session")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Encoder:
    """Encoder of a vocabulary of 300 words."""
    return make_word_encoder(tmp_path_factory.mktemp("vocabulary"))


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Output directory that does not exist yet."""
    return tmp_path / "out"


@pytest.fixture
def shard_group(tmp_path: Path) -> ShardGroup:
    """Two shards of abstracts as one group."""
    documents = {"a": make_abstracts(1, 50), "b": make_abstracts(50, 80)}
    return make_single_group(write_documents(tmp_path / "abstracts", documents))
