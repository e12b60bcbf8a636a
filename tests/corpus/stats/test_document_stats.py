"""Distributions: exact statistics, and bins that partition the numbers."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.shards.document_shards import read_documents_manifest
from bioshards.corpus.stats.document_stats import (
    MAX_BINS,
    DocumentTally,
    draw_documents,
    summarise_distribution,
)
from tests.support.corpus.manifests import FILES
from tests.support.corpus.synthetic_documents import make_document, write_document_dir

NUMBERS = st.lists(st.one_of(st.integers(0, 30), st.integers(0, 100_000)), min_size=1, max_size=200)


def summarise(*numbers: int) -> dict[str, Any]:
    return summarise_distribution(Counter(numbers))


def test_outliers_share_a_last_bin() -> None:
    histogram = summarise(*range(1, 400), 123_456)["histogram"]
    assert histogram["width"] == 10
    assert histogram["bins"][0] == {"from": 1, "to": 10, "count": 10}
    assert histogram["bins"][-2] == {"from": 391, "to": 400, "count": 9}
    assert histogram["bins"][-1] == {"from": 401, "to": 123_456, "count": 1}


def test_empty_distribution_has_no_statistics() -> None:
    summary = summarise()
    assert summary.pop("count") == summary.pop("sum") == 0
    assert set(summary.values()) == {None}


@pytest.mark.parametrize(("greatest", "width"), [(40, 1), (41, 2), (80, 2), (81, 5), (200, 5), (201, 10)])
def test_bin_widths_are_round(greatest: int, width: int) -> None:
    assert summarise(greatest)["histogram"]["width"] == width


@given(NUMBERS)
def test_statistics_equal_those_of_the_sorted_numbers(numbers: list[int]) -> None:
    summary, ordered = summarise(*numbers), sorted(numbers)
    assert summary["count"] == len(numbers)
    assert summary["sum"] == sum(numbers)
    assert summary["mean"] == sum(numbers) / len(numbers)
    assert (summary["min"], summary["max"]) == (ordered[0], ordered[-1])
    for name, percent in (("p5", 5), ("median", 50), ("p95", 95)):
        assert summary[name] == ordered[math.ceil(percent * len(ordered) / 100) - 1]


@given(NUMBERS)
def test_every_number_is_in_one_bin(numbers: list[int]) -> None:
    histogram = summarise(*numbers)["histogram"]
    bins, width = histogram["bins"], histogram["width"]
    assert len(bins) <= MAX_BINS + 1
    assert bins[0]["from"] == (0 if 0 in numbers else 1)
    for interval in bins:
        assert interval["count"] == sum(interval["from"] <= number <= interval["to"] for number in numbers)
    for left, right in itertools.pairwise(bins):
        assert right["from"] == left["to"] + 1 == left["from"] + width
    assert bins[-1]["to"] == max(numbers)


def test_drawn_documents_are_of_all_shards_and_the_same_each_time(tmp_path: Path) -> None:
    shards = {
        name: [make_document(f"pubmed:{number}", ["A title.", *["It grew."] * number]) for number in numbers]
        for name, numbers in (("one", range(1, 3)), ("two", range(3, 60)), ("three", range(60, 90)))
    }
    folder = write_document_dir(tmp_path / "documents", shards)
    outputs = read_documents_manifest(FILES, str(folder)).outputs
    drawn = draw_documents(FILES, str(folder), outputs)
    assert drawn == draw_documents(FILES, str(folder), outputs)
    numbers = [int(document["id"].removeprefix("pubmed:")) for document in drawn]
    assert numbers == sorted(set(numbers))
    assert len(numbers) == 10
    assert [document["num_sentences"] for document in drawn] == [number + 1 for number in numbers]
    assert [len(document["sentences"]) for document in drawn] == [min(8, number + 1) for number in numbers]
    assert len(draw_documents(FILES, str(folder), outputs[:1])) == 2
    assert draw_documents(FILES, str(folder), ()) == []


SENTENCES = st.text("ab", min_size=1, max_size=14)
SHARDS = st.lists(st.lists(st.lists(SENTENCES, max_size=6), max_size=12), max_size=4)


@given(SHARDS)
def test_shortest_and_longest_sentences_are_those_of_all_shards_in_any_order(
    shards: list[list[list[str]]],
) -> None:
    tallies = []
    first_ids: dict[str, str] = {}
    for number, shard in enumerate(shards):
        tally, ids = DocumentTally(), [f"own:{number}-{index:02}" for index in range(len(shard))]
        id_array, sentence_array = pa.array(ids, pa.string()), pa.array(shard, pa.list_(pa.string()))
        for start in range(0, len(shard), 3):
            tally.add_sentences(id_array[start : start + 3], sentence_array[start : start + 3])
        tallies.append(tally.to_json())
        for document_id, sentences in zip(ids, shard, strict=True):
            for sentence in sentences:
                first_ids.setdefault(sentence, document_id)
    shortest = sorted(first_ids, key=lambda text: (len(text), text))[:10]
    longest = sorted(first_ids, key=lambda text: (-len(text), text))[:10]
    for ordered in (tallies, tallies[::-1]):
        merged = DocumentTally()
        for tally_json in ordered:
            merged.add_json(tally_json)
        for kept, expected in ((merged.shortest, shortest), (merged.longest, longest)):
            assert kept == [(len(text), text, first_ids[text]) for text in expected]


def test_a_sentence_of_a_million_characters_is_stored_by_its_beginning() -> None:
    tally = DocumentTally()
    tally.add_sentences(pa.array(["own:1"]), pa.array([["x" * 1_000_000]]))
    assert [(one.characters, one.text) for one in tally.longest] == [(1_000_000, "x" * 400)]
