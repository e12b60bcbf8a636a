"""Tests that the steps which the benchmarks time in processes of their own still run, on invented text."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.bench import bench_pretraining_sets, bench_vocab
from tests.bench.harness import scale_steps, subword_training
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


def test_both_counters_count_the_same_words(documents: str, capsys: pytest.CaptureFixture[str]) -> None:
    for way, total in (("read", 0), ("ours", 30), ("library", 30)):
        bench_vocab.count_once(way, [documents])
        assert int(capsys.readouterr().out) == total


def test_both_encoders_give_the_same_ids(
    documents: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_encoder(tmp_path, make_wordpiece("gulls", "ate", "the", "crumbs", "were", "stale", "."))
    digests = set()
    for way in ("ours", "library"):
        bench_vocab.encode_once(way, str(tmp_path), [documents])
        digests.add(json.loads(capsys.readouterr().out)["ids"])
    assert len(digests) == 1


@pytest.mark.parametrize("way", ["ours", "library"])
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


def test_lists_of_words_are_made(documents: str, tmp_path: Path) -> None:
    subword_training.make_lists(tmp_path, [documents], distinct=8)
    words = subword_training.read_words(tmp_path / subword_training.WORDS)
    assert (words["crumbs"], words["."]) == (6, 6)
    assert len(subword_training.read_words(tmp_path / subword_training.MADE_WORDS)) == 8


def test_decisions_at_scale_are_those_counted_in_another_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"FILES": 4, "RECORDS": 300, "HIGHEST_PMID": 900, "NUM_TEXTS": 9000}.items():
        monkeypatch.setattr(scale_steps, name, value)
    scale_steps.make_keys(tmp_path)
    scale_steps.decide(tmp_path)
    scale_steps.read_back(tmp_path)
    scale_steps.count(tmp_path)
    by_decisions, expected = capsys.readouterr().out.splitlines()
    assert by_decisions == expected
    assert min(json.loads(expected)) > 0
