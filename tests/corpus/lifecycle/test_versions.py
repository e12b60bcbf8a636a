"""Version resolution: decisions on columns, compared with PubMed's and PMC's rules record by record."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import decisions as decision_steps
from bioshards.corpus.lifecycle.decisions import (
    DECISION_SCHEMA,
    VERSION_KEY_SCHEMA,
    count_buckets,
    digest_decisions,
    find_dropped_versions,
    split_by_source,
)
from bioshards.corpus.source_record import UNNUMBERED_VERSION
from tests.support.hypothesis_profiles import examples

Event = tuple[str, int, int] | tuple[str, list[int]]
"""("record", PMID, version) or ("delete", PMIDs)."""
Row = tuple[int, int, int, bool]
Decisions = list[list[tuple[int, str]]]


def make_keys(events: list[Event]) -> list[Row]:
    """Return a file's keys as (key, version, position, is it a deletion)."""
    keys: list[Row] = []
    for position, event in enumerate(events):
        if len(event) == 3:
            keys.append((event[1], event[2], position, False))
        else:
            keys += [(pmid, 1, position, True) for pmid in event[1]]
    return keys


def make_table(keys: list[Row]) -> pa.Table:
    return make_versions_table(
        [(key, version, 0, 0, position, gone) for key, version, position, gone in keys]
    )


def make_versions_table(rows: list[tuple[int, int, int, int, int, bool]]) -> pa.Table:
    """Return keys with minor versions and dates of publication, in the order of the schema."""
    return pa.Table.from_pylist(
        [dict(zip(VERSION_KEY_SCHEMA.names, row, strict=True)) for row in rows], schema=VERSION_KEY_SCHEMA
    )


def make_chunked_table(keys: list[Row]) -> pa.Table:
    """Return the same keys in several chunks, as in a table read from disk."""
    return pa.concat_tables(
        [make_table(keys[:1]), make_table(keys[1:3]), make_table([]), make_table(keys[3:])]
    )


def apply_events(files: list[list[Event]]) -> Decisions:
    """Return the expected decisions, by applying the events in order to a dictionary of live records."""
    live: dict[int, tuple[int, int, int]] = {}  # PMID -> (file, version, position)
    history: dict[int, list[tuple[int, int]]] = {}  # PMID -> its records so far, (file, position)
    reasons: dict[tuple[int, int], str] = {}
    for index, events in enumerate(files):
        for position, event in enumerate(events):
            if len(event) == 3:
                _, pmid, version = event
                history.setdefault(pmid, []).append((index, position))
                current = live.get(pmid)
                if current is not None and current[0] == index and current[1] > version:
                    reasons[index, position] = "superseded"
                    continue
                if current is not None:
                    reasons[current[0], current[2]] = "superseded"
                live[pmid] = (index, version, position)
            else:
                for pmid in event[1]:
                    live.pop(pmid, None)
                    for record in history.get(pmid, []):
                        reasons[record] = "deleted"
    return [
        sorted((position, reason) for (file, position), reason in reasons.items() if file == index)
        for index in range(len(files))
    ]


def resolve(
    files: list[list[Row]],
    num_buckets: int,
    make_source: Callable[[list[Row]], pa.Table] = make_table,
    by_version: bool = False,
) -> Decisions:
    """Return the decisions on each source."""
    result: Decisions = []
    rows = find_dropped_versions(map(make_source, files), num_buckets, by_version)
    for batch in split_by_source(rows, len(files)):
        assert batch.schema == DECISION_SCHEMA
        batch.validate(full=True)
        positions = batch["position"].to_pylist()
        assert positions == sorted(positions)
        result.append(list(zip(positions, batch["reason"].to_pylist(), strict=True)))
    assert len(result) == len(files)
    return result


PMIDS = st.sampled_from([1, 2, 3, 4, 12, 2**31 - 1])
VERSIONS = st.sampled_from([0, 1, 1, 1, 2, 3, 9999])
EVENTS: st.SearchStrategy[Event] = st.tuples(st.just("record"), PMIDS, VERSIONS) | st.tuples(
    st.just("delete"), st.lists(PMIDS, max_size=3)
)
EVENT_FILES = st.lists(st.lists(EVENTS, max_size=9), min_size=1, max_size=5)


@settings(max_examples=examples(400))
@given(EVENT_FILES, st.integers(1, 7))
def test_decisions_equal_those_of_the_events_in_order(files: list[list[Event]], num_buckets: int) -> None:
    keys = [make_keys(events) for events in files]
    expected = apply_events(files)
    assert resolve(keys, num_buckets) == resolve(keys, num_buckets, make_chunked_table) == expected


def test_many_sources_and_high_positions() -> None:
    """Source and position share one number internally and must not overlap."""
    max_position = 2**31 - 1
    files: list[list[Row]] = [[] for _ in range(3000)]
    files[0] = [(7, 1, max_position, False)]
    files[1500] = [(7, 1, 0, False), (8, 1, max_position, True)]
    files[2999] = [(7, 1, 0, True), (7, 1, max_position, False), (8, 1, 0, False)]
    expected: Decisions = [[] for _ in files]
    expected[0] = [(max_position, "deleted")]
    expected[1500] = [(0, "deleted")]
    assert resolve(files, 1) == expected


# Rule of PMC


def find_superseded(files: list[list[Row]]) -> Decisions:
    """Return the expected decisions of PMC's rule: a record is superseded if any record comes after it."""
    records = [
        (key, version, source, position)
        for source, keys in enumerate(files)
        for key, version, position, _ in keys
    ]
    superseded: Decisions = [[] for _ in files]
    for key, *rank in records:
        if any(other == key and other_rank > rank for other, *other_rank in records):
            superseded[rank[1]].append((rank[2], "superseded"))
    return [sorted(decisions) for decisions in superseded]


ARTICLE_IDS = st.sampled_from([1, 2, 9999, 2**31 - 1, 2**40, 2**40 + 1, 2**62 + 5, 2**63 - 1])
ARTICLES = st.lists(st.lists(st.tuples(ARTICLE_IDS, VERSIONS), max_size=9), min_size=1, max_size=5)


@settings(max_examples=examples(300))
@example([[(1, 10), (2, 1), (3, 2)], [(1, 9), (2, 1), (2, 1), (3, 1)]], 1)
@given(ARTICLES, st.integers(1, 7))
def test_highest_version_of_an_article_is_live(files: list[list[tuple[int, int]]], num_buckets: int) -> None:
    keys = [
        [(key, version, position, False) for position, (key, version) in enumerate(file)] for file in files
    ]
    assert resolve(keys, num_buckets, by_version=True) == find_superseded(keys)
    assert resolve(keys, num_buckets, make_chunked_table, by_version=True) == find_superseded(keys)


VERSION_CASES: dict[str, tuple[list[tuple[int, int, int]], list[tuple[int, str]]]] = {
    "1.10 is above 1.9, whatever the dates": (
        [(1, 10_000, 20310101), (1, 9_000, 20320101)],
        [(1, "superseded")],
    ),
    "2 is above 1.2": ([(2, 0, 0), (1, 2_000, 0)], [(1, "superseded")]),
    "a version without a number is compared by date": (
        [(UNNUMBERED_VERSION, 0, 20320500), (2, 0, 20310101)],
        [(1, "superseded-by-date")],
    ),
    "the month is known of one": (
        [(UNNUMBERED_VERSION, 0, 20320500), (UNNUMBERED_VERSION, 0, 20320000)],
        [(1, "superseded-by-date")],
    ),
    "of one date the last wins": (
        [(UNNUMBERED_VERSION, 0, 20320500), (1, 0, 20320500)],
        [(0, "superseded")],
    ),
    "numbers count for nothing beside a version without one": (
        [(UNNUMBERED_VERSION, 0, 20310101), (1, 0, 20330101), (3, 0, 20320101)],
        [(0, "superseded-by-date"), (2, "superseded-by-date")],
    ),
}


@pytest.mark.parametrize("case", VERSION_CASES)
def test_versions_are_sequences_of_numbers_or_compared_by_date(case: str) -> None:
    versions, expected = VERSION_CASES[case]
    table = make_versions_table([(7, *version, position, False) for position, version in enumerate(versions)])
    other = make_versions_table([(8, 1, 0, 20300101, 9, False)])
    rows = find_dropped_versions([pa.concat_tables([table, other])], 1, highest_version_wins=True)
    [batch] = split_by_source(rows, 1)
    assert list(zip(batch["position"].to_pylist(), batch["reason"].to_pylist(), strict=True)) == expected


# Buckets and digests


@pytest.mark.parametrize(
    ("num_keys", "num_buckets"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (400, 40)]
)
def test_number_of_buckets(num_keys: int, num_buckets: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decision_steps, "KEYS_PER_BUCKET", 10)
    assert count_buckets(num_keys) == num_buckets


DecisionRows = list[tuple[int, str, str | None, float | None]]


def make_decisions(rows: DecisionRows, chunks: int = 1) -> pa.Table:
    chunk_rows = [rows] if chunks == 1 else [rows[:1], rows[1:]]
    return pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays(
                [
                    pa.array([row[column] for row in chunk], field.type)
                    for column, field in enumerate(DECISION_SCHEMA)
                ],
                schema=DECISION_SCHEMA,
            )
            for chunk in chunk_rows
        ],
        schema=DECISION_SCHEMA,
    )


DUPLICATE_IDS = st.sampled_from(["pubmed:1", "pubmed:12"])
DECISION_LISTS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["superseded", "deleted"]), st.none(), st.none())
    | st.tuples(st.integers(0, 30), st.just("duplicate"), DUPLICATE_IDS, st.none())
    | st.tuples(st.integers(0, 30), st.just("near-duplicate"), DUPLICATE_IDS, st.sampled_from([0.875, 1.0])),
    max_size=5,
)


@settings(max_examples=examples(200))
@given(DECISION_LISTS, DECISION_LISTS)
def test_digests_are_equal_for_equal_decisions(first: DecisionRows, second: DecisionRows) -> None:
    assert (digest_decisions(make_decisions(first)) == digest_decisions(make_decisions(second))) == (
        first == second
    )


def test_digest_is_independent_of_chunks() -> None:
    rows: DecisionRows = [
        (1, "deleted", None, None),
        (5, "duplicate", "pubmed:3", None),
        (11, "deleted", None, None),
    ]
    assert digest_decisions(make_decisions(rows)) == digest_decisions(make_decisions(rows, chunks=2))
    assert len(digest_decisions(make_decisions(rows))) == 16
    assert len(digest_decisions(make_decisions([]))) == 16
    keys = make_table([(1, 1, 0, False), (1, 1, 1, False)])
    batches = list(split_by_source(find_dropped_versions([keys], 1, False), 1))
    assert digest_decisions(pa.Table.from_batches(batches)) == digest_decisions(
        make_decisions([(0, "superseded", None, None)])
    )


Ids = tuple[str, int | None, str | None]


def find_copies_of(*sources: list[Ids]) -> list[tuple[int, int]]:
    """Return source and position of the copies among documents of (id, PMID, DOI)."""

    def read(rows: list[Ids]) -> Iterator[pa.Table]:
        columns = [list(column) for column in zip(*rows, strict=True)]
        types = (pa.string(), pa.int32(), pa.string())
        arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
        yield pa.table([*arrays, pa.array(range(len(rows)), pa.int32())], ["id", "pmid", "doi", "position"])

    readers = [functools.partial(read, rows) for rows in sources]
    copies = decision_steps.find_copies(readers, [True] * len(sources)).to_pylist()
    assert {row["reason"] for row in copies} <= {decision_steps.DECISION_REASONS.index("copy").as_py()}
    return sorted((row["source"], row["position"]) for row in copies)


def test_an_article_outside_pmc_is_a_copy_of_one_with_its_pmid_or_doi() -> None:
    assert find_copies_of([("doi:10.5555/a", 5, "10.5555/a")], [("pmc:PMC1.1", 5, None)]) == [(0, 0)]
    assert find_copies_of([("pmc:PMC1.1", None, "10.5555/a"), ("doi:10.5555/a", None, "10.5555/a")]) == [
        (0, 1)
    ]
    assert find_copies_of([("pmid:5", 5, None)], [("doi:10.5555/a", 5, "10.5555/a")]) == [(0, 0)]
    assert find_copies_of([("pmid:5", 5, None), ("pmid:6", 6, None), ("pmc:PMC1.1", None, None)]) == []


def test_articles_of_pmc_may_share_a_doi() -> None:
    assert find_copies_of([("pmc:PMC1.1", 1, "10.5555/a"), ("pmc:PMC2.1", 2, "10.5555/a")]) == []
