"""The committed file of topics is the output of its generator."""

from __future__ import annotations

import gzip

from tests.support.corpus.topic_abstracts import topic_file
from tests.support.paths import TOPIC_SAMPLE


def test_committed_file_is_generated() -> None:
    assert gzip.decompress(TOPIC_SAMPLE.read_bytes()).decode() == topic_file(), (
        "run python -m tests.support.corpus.topic_abstracts"
    )
