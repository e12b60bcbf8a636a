"""The steps of counting words, called one by one."""

from __future__ import annotations

import os
import resource
from collections import Counter
from pathlib import Path

import pytest

from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting import count_steps
from bioshards.vocab.counting.count_steps import ShardCounts, WordsJob
from bioshards.vocab.counting.word_counts import NUM_BUCKETS, WordCounts, write_counts
from tests.support.corpus.manifests import of_words

FILES = LocalStorage()
SHARDS = 300


@pytest.mark.thorough
def test_merging_many_shards_opens_few_files(tmp_path: Path) -> None:
    manifest, output = of_words([]), OutputDir(str(tmp_path))
    job = WordsJob(storage=FILES, output=output, config=manifest.config, inputs=(), run=manifest.run)
    counted = []
    for number in range(SHARDS):
        sha256 = f"{number:064x}"
        words = Counter({"the": 2, f"word{number}": 1})
        write_counts(FILES, output.word_counts_path(sha256, "arrow"), WordCounts(words, Counter(), 1, 0))
        counted.append(ShardCounts(sha256, documents=1, tokens=3, distinct_words=2))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + NUM_BUCKETS + 8, hard))
    try:
        merged = [count_steps.merge_bucket(job, bucket, counted) for bucket in range(NUM_BUCKETS)]
        assert count_steps.publish(job, counted, merged).problem is None
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    lines = Path(output.path, count_steps.WORDS_FILE).read_text().splitlines()
    assert lines[0] == f"the\t{2 * SHARDS}"
    assert len(lines) == SHARDS + 1
