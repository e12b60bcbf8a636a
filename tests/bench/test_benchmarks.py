"""Tests that the steps which the benchmarks time in processes of their own still run, on invented text."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.bench import bench_pretraining_sets, bench_words
from tests.bench.harness import subword_training
from tests.support.corpus.stats_directories import make_stats_document, write_document_shards
from tests.support.vocab.block_factories import save_encoder
from tests.support.vocab.tiny_tokenizers import make_wordpiece

SENTENCES = ["Gulls ate the crumbs.", "The crumbs were stale."]


@pytest.fixture
def documents(tmp_path: Path) -> str:
    """A finished directory of three documents."""
    return str(
        write_document_shards(
            tmp_path / "documents", [[make_stats_document(number, SENTENCES) for number in range(3)]]
        )
    )


def test_all_counters_count_the_same_words(documents: str, capsys: pytest.CaptureFixture[str]) -> None:
    totals = {}
    for counter in bench_words.COUNTERS:
        bench_words.count_once(counter, [documents])
        totals[counter] = int(capsys.readouterr().out)
    assert totals == {"ours": 30, "library": 30, "blanks": 24}


@pytest.mark.parametrize("way", ["ours", "library", "ours_bert"])
def test_builders_of_rows_run(
    way: str,
    documents: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    save_encoder(tmp_path, make_wordpiece("gulls", "ate", "the", "crumbs", "were", "stale", "."))
    bench_pretraining_sets.write_texts([documents], tmp_path, 1)
    once = [way, str(tmp_path / "all.arrow"), str(tmp_path), ""]
    monkeypatch.setattr(sys, "argv", ["bench_pretraining_sets", "--once", *once])
    bench_pretraining_sets.main()
    assert json.loads(capsys.readouterr().out)["cpu"]


def test_words_of_a_list_are_read(tmp_path: Path) -> None:
    words = tmp_path / "words.tsv"
    words.write_text("gulls\t3\ncrumbs\t2\n")
    assert subword_training.read_words(words) == {"gulls": 3, "crumbs": 2}
