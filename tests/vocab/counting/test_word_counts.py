"""Counts of words: exact for any batches, buckets and order; validation documents counted separately."""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path
from unicodedata import normalize

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.counting import word_counts
from bioshards.vocab.counting.word_counts import CountConfig, WordCounts
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer
from tests.support.hypothesis_profiles import examples

FILES = LocalStorage()
texts = st.lists(st.text(st.sampled_from("aAbé.-β \u4e2d\u0301\u00a0\t"), max_size=20), max_size=4)
counts_by_word = st.dictionaries(
    st.text(st.sampled_from("abzé中β.\u2028"), min_size=1, max_size=4), st.integers(1, 9), max_size=30
).map(Counter)


def make_batch(
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


def test_words_are_counted_as_written() -> None:
    documents = [["IL-6 binds.", "Il-6"], ["β, 中文"]]
    words = Counter(["IL", "-", "6", "binds", ".", "Il", "-", "6", "β", ",", "中", "文"])
    found = word_counts.count_words([make_batch(documents)], CountConfig())
    assert found == WordCounts(words, Counter(), 2, 0)


def test_words_between_white_space_keep_their_marks() -> None:
    found = word_counts.count_words([make_batch([["(IL-6), a\u00a0b IL-6"]])], CountConfig("white-space"))
    assert found.words == {"(IL-6),": 1, "a": 1, "b": 1, "IL-6": 1}


def test_white_space_counts_convert_to_bert_counts() -> None:
    documents = [["(IL-6), a\u00a0b IL-6 中文"], ["NF-κB."]]
    chunks = word_counts.count_words([make_batch(documents)], CountConfig("white-space")).words
    assert (
        word_counts.convert_counts(chunks, Pretokenizer())
        == word_counts.count_words([make_batch(documents)], CountConfig()).words
    )


@given(st.lists(texts, max_size=6), st.integers(0, 6))
def test_counts_are_independent_of_batching(documents: list[list[str]], cut: int) -> None:
    whole = word_counts.count_words([make_batch(documents)], CountConfig())
    parts = word_counts.count_words(
        [make_batch(documents[:cut]), make_batch(documents[cut:], first=cut)], CountConfig()
    )
    pretokenize = Pretokenizer()
    expected = Counter(
        word for document in documents for text in document for word in pretokenize(normalize("NFC", text))
    )
    assert whole.words == parts.words == expected
    assert whole.documents == parts.documents == len(documents)


@given(st.lists(texts, max_size=6), st.sampled_from([Casing(True), Casing(True, True), Casing(False, True)]))
def test_counts_convert_to_another_casing(documents: list[list[str]], casing: Casing) -> None:
    pretokenize = Pretokenizer(casing)
    expected = Counter(
        word for document in documents for text in document for word in pretokenize(normalize("NFC", text))
    )
    assert (
        word_counts.convert_counts(
            word_counts.count_words([make_batch(documents)], CountConfig()).words, pretokenize
        )
        == expected
    )


# Validation split


def test_validation_words_are_counted_separately_and_completely() -> None:
    documents = [[f"word{number} common"] for number in range(1000)]
    found = word_counts.count_words([make_batch(documents)], CountConfig(validation_fraction=0.1))
    everything = word_counts.count_words([make_batch(documents)], CountConfig())
    assert found.words + found.validation_words == everything.words
    assert found.documents + found.validation_documents == 1000
    assert found.validation_words["common"] == found.validation_documents
    assert 60 < found.validation_documents < 140


def test_validation_split_depends_on_id_and_seed_only() -> None:
    ids = [f"pmc:PMC{number}.1" for number in range(1000)]
    validation_ids = {id_ for id_ in ids if CountConfig(validation_fraction=0.1).is_validation(id_)}
    assert validation_ids <= {id_ for id_ in ids if CountConfig(validation_fraction=0.2).is_validation(id_)}
    assert validation_ids != {
        id_ for id_ in ids if CountConfig(validation_fraction=0.1, seed=1).is_validation(id_)
    }
    assert validation_ids == {
        id_ for id_ in ids if CountConfig("white-space", validation_fraction=0.1).is_validation(id_)
    }
    assert not any(CountConfig().is_validation(id_) for id_ in ids)


def test_validation_split_is_by_pmid_or_else_by_id() -> None:
    counting = CountConfig(validation_fraction=0.3)
    for pmid in range(200):
        assert counting.is_validation(f"pubmed:{pmid}", pmid) is counting.is_validation(
            f"pmc:PMC{pmid}.1", pmid
        )
    documents = [[f"word{number}"] for number in range(200)]
    pmids = [number if number % 2 else None for number in range(200)]
    abstracts = word_counts.count_words([make_batch(documents, first=1000, pmids=pmids)], counting)
    articles = word_counts.count_words([make_batch(documents, first=5000, pmids=pmids)], counting)
    odd = {f"word{number}" for number in range(1, 200, 2)}
    assert abstracts.validation_words.keys() & odd == articles.validation_words.keys() & odd
    assert 15 < len(articles.validation_words.keys() & odd) < 45
    assert abstracts.validation_words.keys() - odd != articles.validation_words.keys() - odd


@pytest.mark.parametrize("share", [-0.1, 1, 1.5, float("nan")])
def test_invalid_validation_fraction_is_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"is not in \[0, 1\)"):
        CountConfig(validation_fraction=share)


def test_unknown_pretokenizer_is_refused() -> None:
    with pytest.raises(ValueError, match="bert, white-space"):
        CountConfig("bytes")


# Files of counts


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(counts_by_word, counts_by_word), max_size=4), st.sampled_from([1, 3, 1 << 20]))
def test_merged_counts_are_the_sum_of_the_written_ones(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[tuple[Counter[str], Counter[str]]],
    max_pending_rows: int,
) -> None:
    folder = tmp_path_factory.mktemp("counts")
    paths = [f"{folder}/{number}.arrow" for number in range(len(parts))]
    for path, (words, held_out) in zip(paths, parts, strict=True):
        word_counts.write_counts(FILES, path, WordCounts(words, held_out, 1, 1))
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(word_counts, "_MAX_PENDING_ROWS", max_pending_rows)
        merged = [
            word_counts.merge_bucket_counts(FILES, paths, bucket) for bucket in range(word_counts.NUM_BUCKETS)
        ]
    for column, which in (("count", 0), ("validation_count", 1)):
        lines = list(
            word_counts.merge_lines([word_counts.lines_from_table(table, column) for table in merged])
        )
        assert lines == list(word_counts.lines_from_counts(sum((part[which] for part in parts), Counter())))


def test_work_of_merging_grows_with_the_number_of_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows of a table are asked for once, and not again for each later table."""

    class Table(list[int]):
        asked = 0

        def __len__(self) -> int:
            Table.asked += 1
            return 1

    def merge(tables: list[Table], _: list[str]) -> list[Table]:
        return tables

    monkeypatch.setattr(word_counts, "prefetch_map", lambda _storage, _read, paths: map(Table, paths))
    monkeypatch.setattr(word_counts, "_sum_by_word", merge)
    assert len(word_counts.merge_bucket_counts(FILES, [""] * 1000, 0)) == 1001
    assert Table.asked == 1000


def test_counts_file_is_independent_of_counting_order(tmp_path: Path) -> None:
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
def test_counts_survive_a_round_trip_through_lines(found: Counter[str]) -> None:
    assert word_counts.read_counts(io.BytesIO(b"".join(word_counts.lines_from_counts(found)))) == found


def test_frequent_counts_exclude_ties_with_dropped_words() -> None:
    data = b"a\t5\nb\t3\nc\t3\nd\t1\n"
    for max_words, expected in (
        (4, ({"a": 5, "b": 3, "c": 3, "d": 1}, 1)),
        (3, ({"a": 5, "b": 3, "c": 3}, 2)),
        (2, ({"a": 5}, 4)),
        (1, ({"a": 5}, 4)),
    ):
        assert word_counts.read_frequent_counts(io.BytesIO(data), max_words) == expected


def test_lines_after_the_most_frequent_are_not_read() -> None:
    file = io.BytesIO(b"a\t5\nb\t3\nno line\n")
    assert word_counts.read_frequent_counts(file, 1) == ({"a": 5}, 4)


@pytest.mark.parametrize(
    "data", [b"a 5\n", b"a\tx\n", b"\t5\n", b"a\t1\nb\t2\n", b"a\t-1\n", b"a\t\n", b"a\t" + b"9" * 19 + b"\n"]
)
def test_invalid_line_is_refused_with_its_number(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"line [12] is not a word, a tab and a count"):
        word_counts.read_counts(io.BytesIO(data))
