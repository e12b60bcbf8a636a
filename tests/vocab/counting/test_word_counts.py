"""Counts of words: exact for any batches, buckets and order; validation documents counted separately."""

from __future__ import annotations

import io
import random
from collections import Counter
from pathlib import Path
from unicodedata import normalize

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.word_counts import CountConfig, WordCounts
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer

FILES = LocalStorage()
texts = st.lists(st.text(st.sampled_from("aAbé.-β \u4e2d\u0301\u00a0\t"), max_size=20), max_size=4)
counts_by_word = st.dictionaries(
    st.text(st.sampled_from("abzé中β.\u2028"), min_size=1, max_size=4), st.integers(1, 9), max_size=30
).map(Counter)


def batch(
    documents: list[list[str]], first: int = 0, pmids: list[int | None] | None = None
) -> pa.RecordBatch:
    ids = [f"pmc:PMC{first + number}.1" for number in range(len(documents))]
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.string()),
            "pmid": pa.array(pmids or [None] * len(documents), pa.int32()),
            "sentences": pa.array(documents, pa.list_(pa.string())),
        }
    )


def one_by_one(documents: list[list[str]], words: Pretokenizer) -> Counter[str]:
    """The oracle: every sentence of every document by itself."""
    sentences = (sentence for document in documents for sentence in document)
    return Counter(word for sentence in sentences for word in words(normalize("NFC", sentence)))


def test_words_are_counted_as_written() -> None:
    found = word_counts.count_words([batch([["IL-6 binds IL-6.", "Il-6"], ["β-Cells, 中文"]])], CountConfig())
    expected = {
        "IL": 2,
        "Il": 1,
        "-": 4,
        "6": 3,
        "binds": 1,
        ".": 1,
        "β": 1,
        "Cells": 1,
        ",": 1,
        "中": 1,
        "文": 1,
    }
    assert found == WordCounts(Counter(expected), Counter(), 2, 0)


def test_decomposed_letters_are_composed() -> None:
    found = word_counts.count_words([batch([["e\u0301 é"]])], CountConfig())
    assert found.words == {"é": 2}


def test_words_between_white_space_keep_their_marks() -> None:
    found = word_counts.count_words([batch([["(IL-6), a\u00a0b IL-6"]])], CountConfig("white-space"))
    assert found.words == {"(IL-6),": 1, "a": 1, "b": 1, "IL-6": 1}


def test_words_of_bert_are_made_of_words_between_white_space() -> None:
    documents = [["(IL-6), a\u00a0b IL-6 中文"], ["NF-κB."]]
    chunks = word_counts.count_words([batch(documents)], CountConfig("white-space")).words
    assert (
        word_counts.convert_counts(chunks, Pretokenizer())
        == word_counts.count_words([batch(documents)], CountConfig()).words
    )


@given(st.lists(texts, max_size=6), st.integers(0, 6))
def test_batches_make_no_difference_and_every_word_counts_once(documents: list[list[str]], cut: int) -> None:
    whole = word_counts.count_words([batch(documents)], CountConfig())
    parts = word_counts.count_words(
        [batch(documents[:cut]), batch(documents[cut:], first=cut)], CountConfig()
    )
    words = Pretokenizer()
    expected = Counter(
        word for document in documents for text in document for word in words(normalize("NFC", text))
    )
    assert whole.words == parts.words == expected
    assert whole.documents == parts.documents == len(documents)


@given(st.lists(texts, max_size=6), st.sampled_from([Casing(True), Casing(True, True), Casing(False, True)]))
def test_the_counts_of_another_casing_are_made_of_these(documents: list[list[str]], casing: Casing) -> None:
    words = Pretokenizer(casing)
    expected = Counter(
        word for document in documents for text in document for word in words(normalize("NFC", text))
    )
    assert (
        word_counts.convert_counts(word_counts.count_words([batch(documents)], CountConfig()).words, words)
        == expected
    )


def test_nothing_to_count() -> None:
    assert word_counts.count_words([], CountConfig()) == WordCounts(Counter(), Counter(), 0, 0)
    assert word_counts.count_words([batch([[], [""]])], CountConfig()) == WordCounts(
        Counter(), Counter(), 2, 0
    )


# Held out


def test_held_out_documents_are_counted_apart_and_nothing_is_lost() -> None:
    documents = [[f"word{number} common"] for number in range(1000)]
    found = word_counts.count_words([batch(documents)], CountConfig(validation_fraction=0.1))
    everything = word_counts.count_words([batch(documents)], CountConfig())
    assert found.words + found.validation_words == everything.words
    assert found.documents + found.validation_documents == 1000
    assert found.validation_words["common"] == found.validation_documents
    assert 60 < found.validation_documents < 140


def test_whether_a_document_is_held_out_depends_on_its_name_and_the_seed_alone() -> None:
    ids = [f"pmc:PMC{number}.1" for number in range(1000)]
    held = {id_ for id_ in ids if CountConfig(validation_fraction=0.1).is_validation(id_)}
    assert held <= {id_ for id_ in ids if CountConfig(validation_fraction=0.2).is_validation(id_)}
    assert held != {id_ for id_ in ids if CountConfig(validation_fraction=0.1, seed=1).is_validation(id_)}
    assert held == {
        id_ for id_ in ids if CountConfig("white-space", validation_fraction=0.1).is_validation(id_)
    }
    assert not any(CountConfig().is_validation(id_) for id_ in ids)


def test_documents_of_one_pmid_are_held_out_together_and_those_of_none_by_their_ids() -> None:
    counting = CountConfig(validation_fraction=0.3)
    for pmid in range(200):
        assert counting.is_validation(f"pubmed:{pmid}", pmid) is counting.is_validation(
            f"pmc:PMC{pmid}.1", pmid
        )
    documents = [[f"word{number}"] for number in range(200)]
    pmids = [number if number % 2 else None for number in range(200)]
    abstracts = word_counts.count_words([batch(documents, first=1000, pmids=pmids)], counting)
    articles = word_counts.count_words([batch(documents, first=5000, pmids=pmids)], counting)
    odd = {f"word{number}" for number in range(1, 200, 2)}
    assert abstracts.validation_words.keys() & odd == articles.validation_words.keys() & odd
    assert 15 < len(articles.validation_words.keys() & odd) < 45
    assert abstracts.validation_words.keys() - odd != articles.validation_words.keys() - odd


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan")])
def test_a_share_that_is_none(share: float) -> None:
    with pytest.raises(ValueError, match=r"is not in \[0, 1\)"):
        CountConfig(validation_fraction=share)


def test_a_kind_that_is_none() -> None:
    with pytest.raises(ValueError, match="bert, white-space"):
        CountConfig("bytes")


# Files of counts


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(counts_by_word, counts_by_word), max_size=4))
def test_counts_written_and_merged_are_their_sum(
    tmp_path_factory: pytest.TempPathFactory, parts: list[tuple[Counter[str], Counter[str]]]
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    paths = [f"{folder}/{number}.arrow" for number in range(len(parts))]
    for path, (words, held_out) in zip(paths, parts, strict=True):
        word_counts.write_counts(FILES, path, WordCounts(words, held_out, 1, 1))
    merged = [
        word_counts.merge_bucket_counts(FILES, paths, bucket) for bucket in range(word_counts.NUM_BUCKETS)
    ]
    for column, which in (("count", 0), ("validation_count", 1)):
        lines = list(
            word_counts.merge_lines([word_counts.lines_from_table(table, column) for table in merged])
        )
        assert lines == list(word_counts.lines_from_counts(sum((part[which] for part in parts), Counter())))


def test_many_rows_are_added_up_while_they_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_counts, "_MAX_PENDING_ROWS", 10)
    random.seed(3)
    parts = [Counter({f"w{random.randrange(40)}": 1 for _ in range(25)}) for _ in range(8)]
    paths = [str(tmp_path / f"{number}.arrow") for number in range(8)]
    for path, part in zip(paths, parts, strict=True):
        word_counts.write_counts(FILES, path, WordCounts(part, Counter(), 1, 0))
    merged = [
        word_counts.merge_bucket_counts(FILES, paths, bucket) for bucket in range(word_counts.NUM_BUCKETS)
    ]
    lines = list(word_counts.merge_lines([word_counts.lines_from_table(table, "count") for table in merged]))
    assert lines == list(word_counts.lines_from_counts(sum(parts, Counter())))


def test_the_order_of_counting_makes_no_difference_to_a_file(tmp_path: Path) -> None:
    for name, order in (("a", ["x", "y", "z"]), ("b", ["z", "x", "y"])):
        word_counts.write_counts(
            FILES, str(tmp_path / name), WordCounts(Counter(order), Counter(order[:1]), 1, 1)
        )
    a, b = (pa.ipc.open_file(str(tmp_path / name)).read_all() for name in "ab")
    assert a.select(["word", "count"]).equals(b.select(["word", "count"]))


# Lines


def test_lines_are_sorted_by_count_and_then_by_word() -> None:
    found = Counter({"b": 2, "a": 2, "é": 2, "z": 9, "\U0001f600": 2, "\ufb01": 2, "c": 1})
    expected = ["z\t9", "a\t2", "b\t2", "é\t2", "\ufb01\t2", "\U0001f600\t2", "c\t1"]
    assert [line.decode().rstrip("\n") for line in word_counts.lines_from_counts(found)] == expected
    assert (
        list(word_counts.lines_from_counts(found, min_count=2))
        == list(word_counts.lines_from_counts(found))[:-1]
    )


@given(counts_by_word)
def test_lines_are_read_back(found: Counter[str]) -> None:
    assert word_counts.read_counts(io.BytesIO(b"".join(word_counts.lines_from_counts(found)))) == found


def test_of_the_most_frequent_none_is_as_rare_as_one_left_out() -> None:
    data = b"a\t5\nb\t3\nc\t3\nd\t1\n"
    for max_words, expected in (
        (4, ({"a": 5, "b": 3, "c": 3, "d": 1}, 1)),
        (3, ({"a": 5, "b": 3, "c": 3}, 2)),
        (2, ({"a": 5}, 4)),
        (1, ({"a": 5}, 4)),
    ):
        assert word_counts.read_frequent_counts(io.BytesIO(data), max_words) == expected


def test_nothing_is_read_behind_the_most_frequent() -> None:
    file = io.BytesIO(b"a\t5\nb\t3\nno line\n")
    assert word_counts.read_frequent_counts(file, 1) == ({"a": 5}, 4)


@pytest.mark.parametrize("data", [b"a 5\n", b"a\tx\n", b"\t5\n", b"a\t1\nb\t2\n", b"a\t-1\n", b"a\t\n"])
def test_what_is_no_file_of_counts_is_said(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"line [12] is not a word, a tab and a count"):
        word_counts.read_counts(io.BytesIO(data))


def test_of_shard_reads_a_finished_directory(reference: Path) -> None:
    listed = arrow_io.read_documents_manifest(FILES, str(reference)).outputs
    found: Counter[str] = Counter()
    for shard in listed:
        found += word_counts.count_shard_words(FILES, str(reference), shard, CountConfig()).words
    words = Pretokenizer()
    expected: Counter[str] = Counter()
    for read in arrow_io.read_directory(FILES, str(reference)):
        for sentences in read["sentences"].to_pylist():
            for sentence in sentences:
                expected.update(words(sentence))
    assert found == expected
