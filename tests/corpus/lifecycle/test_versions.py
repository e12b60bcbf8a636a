"""Which version of a citation lives: verdicts by columns against PubMed's rules by a dictionary.

The rules are simple as a story (later files replace earlier ones, deletions remove what came before)
and are decided as arithmetic on key columns, in buckets.  So files made up at random, with few PMIDs
and many collisions, are told both ways, and the verdicts must be the same, in however many buckets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import versions
from bioshards.corpus.lifecycle.versions import (
    DECISION_SCHEMA,
    VERSION_KEY_SCHEMA,
    count_buckets,
    digest_decisions,
    resolve_versions,
)

PROFILE = settings(derandomize=True, deadline=None, database=None)

Event = tuple[str, int, int] | tuple[str, list[int]]
"""("record", PMID, version) or ("delete", PMIDs)."""
Row = tuple[int, int, int, bool]
Verdicts = list[list[tuple[int, str]]]


def rows(events: list[Event]) -> list[Row]:
    """A file's keys: (key, version, position, deletes), the position counted over its elements."""
    keys: list[Row] = []
    for position, event in enumerate(events):
        if len(event) == 3:
            keys.append((event[1], event[2], position, False))
        else:
            keys += [(pmid, 1, position, True) for pmid in event[1]]
    return keys


def table(keys: list[Row]) -> pa.Table:
    columns = list(zip(*keys, strict=True)) or [(), (), (), ()]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, VERSION_KEY_SCHEMA, strict=True)],
        schema=VERSION_KEY_SCHEMA,
    )


def chunked(keys: list[Row]) -> pa.Table:
    """The same keys in several chunks, as a table read from disk has them."""
    return pa.concat_tables([table(keys[:1]), table(keys[1:3]), table([]), table(keys[3:])])


def told(files: list[list[Event]]) -> Verdicts:
    """The story, in order: what lives is in a dictionary, and what leaves it gets its reason."""
    live: dict[int, tuple[int, int, int]] = {}  # PMID -> (file, version, position)
    history: dict[int, list[tuple[int, int]]] = {}  # PMID -> its records so far, (file, position)
    reasons: dict[tuple[int, int], str] = {}
    for index, events in enumerate(files):
        for position, event in enumerate(events):
            if len(event) == 3:
                _, pmid, version = event
                history.setdefault(pmid, []).append((index, position))
                other = live.get(pmid)
                if other is not None and other[0] == index and other[1] > version:
                    reasons[index, position] = "superseded"
                    continue
                if other is not None:
                    reasons[other[0], other[2]] = "superseded"
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


def decided(
    files: list[list[Row]],
    count: int,
    make: Callable[[list[Row]], pa.Table] = table,
    by_version: bool = False,
) -> Verdicts:
    """The verdicts of all buckets, each source's put together."""
    result: Verdicts = [[] for _ in files]
    for bucket in range(count):
        batches = list(resolve_versions([partial(make, keys) for keys in files], bucket, count, by_version))
        assert len(batches) == len(files)
        for index, batch in enumerate(batches):
            assert batch.schema == DECISION_SCHEMA
            batch.validate(full=True)
            positions = batch["position"].to_pylist()
            assert positions == sorted(positions)
            pmids = {position: pmid for pmid, _, position, deletes in files[index] if not deletes}
            assert all(pmids[position] % count == bucket for position in positions)
            result[index] += zip(positions, batch["reason"].to_pylist(), strict=True)
    return [sorted(verdicts) for verdicts in result]


PMIDS = st.sampled_from([1, 2, 3, 4, 12, 2**31 - 1])
VERSIONS = st.sampled_from([0, 1, 1, 1, 2, 3, 9999])
EVENTS: st.SearchStrategy[Event] = st.tuples(st.just("record"), PMIDS, VERSIONS) | st.tuples(
    st.just("delete"), st.lists(PMIDS, max_size=3)
)
FILES = st.lists(st.lists(EVENTS, max_size=9), min_size=1, max_size=5)


@settings(PROFILE, max_examples=400)
@given(FILES)
def test_the_verdicts_are_those_of_the_story(files: list[list[Event]]) -> None:
    keys = [rows(events) for events in files]
    assert decided(keys, 1) == told(files)


@settings(PROFILE, max_examples=80)
@given(FILES, st.integers(2, 7))
def test_the_number_of_buckets_changes_nothing(files: list[list[Event]], count: int) -> None:
    keys = [rows(events) for events in files]
    assert decided(keys, count) == decided(keys, 1) == decided(keys, count, chunked)


@settings(PROFILE, max_examples=150)
@given(FILES)
def test_at_most_one_record_of_a_pmid_lives(files: list[list[Event]]) -> None:
    keys = [rows(events) for events in files]
    living: list[int] = []
    for file, verdicts in zip(keys, decided(keys, 1), strict=True):
        dead = {position for position, _ in verdicts}
        assert len(dead) == len(verdicts)
        living += [pmid for pmid, _, position, deletes in file if not deletes and position not in dead]
    assert len(living) == len(set(living))


CASES: dict[str, tuple[list[list[Event]], Verdicts]] = {
    "nothing": ([[]], [[]]),
    "one record lives": ([[("record", 1, 1)]], [[]]),
    "the later file wins, whatever its version": (
        [[("record", 1, 2)], [], [("record", 1, 1)]],
        [[(0, "superseded")], [], []],
    ),
    "in a file the highest version wins": (
        [[("record", 1, 2), ("record", 1, 3), ("record", 1, 1)]],
        [[(0, "superseded"), (2, "superseded")]],
    ),
    "of one version the last wins": (
        [[("record", 1, 1), ("record", 2, 1), ("record", 1, 1)]],
        [[(0, "superseded")]],
    ),
    "a deletion removes what came before": (
        [[("record", 1, 1)], [("record", 1, 1), ("delete", [1, 2])]],
        [[(0, "deleted")], [(0, "deleted")]],
    ),
    "a deletion removes nothing that comes after": (
        [[("delete", [1]), ("record", 1, 1)], [("record", 2, 1)]],
        [[], []],
    ),
    "a record may come back": (
        [[("record", 1, 3)], [("delete", [1])], [("record", 1, 1)]],
        [[(0, "deleted")], [], []],
    ),
    "a deletion within a file uncovers the lower version after it": (
        [[("record", 1, 2), ("delete", [1]), ("record", 1, 1)]],
        [[(0, "deleted")]],
    ),
    "what is superseded and then deleted is deleted": (
        [[("record", 1, 1)], [("record", 1, 1)], [("delete", [1])]],
        [[(0, "deleted")], [(0, "deleted")], []],
    ),
    "the last deletion counts": (
        [[("delete", [1])], [("record", 1, 1)], [("delete", [1])], [("record", 1, 1)]],
        [[], [(0, "deleted")], [], []],
    ),
    "a PMID may be deleted that was never there": ([[("delete", [5, 6])]], [[]]),
    "other PMIDs are left alone": (
        [[("record", 11, 1), ("record", 1, 1)], [("delete", [1])]],
        [[(1, "deleted")], []],
    ),
}


@pytest.mark.parametrize("what", CASES)
@pytest.mark.parametrize("count", [1, 3])
def test_each_rule_by_itself(what: str, count: int) -> None:
    files, expected = CASES[what]
    assert told(files) == expected
    assert decided([rows(events) for events in files], count) == expected


def test_many_sources_and_late_positions_keep_their_order() -> None:
    """Source and position share one number inside; neither may run into the other."""
    late = 2**31 - 1
    files: list[list[Row]] = [[] for _ in range(3000)]
    files[0] = [(7, 1, late, False)]
    files[1500] = [(7, 1, 0, False), (8, 1, late, True)]
    files[2999] = [(7, 1, 0, True), (7, 1, late, False), (8, 1, 0, False)]
    expected: Verdicts = [[] for _ in files]
    expected[0] = [(late, "deleted")]
    expected[1500] = [(0, "deleted")]
    assert decided(files, 1) == expected


def test_the_sources_are_read_in_order_and_once() -> None:
    seen: list[int] = []

    def reader(index: int) -> pa.Table:
        seen.append(index)
        return table([(1, 1, 0, False)])

    assert len(list(resolve_versions([partial(reader, index) for index in range(4)], 0, 1))) == 4
    assert seen == [0, 1, 2, 3]


# PMC's rule


def newest(files: list[list[Row]]) -> Verdicts:
    """The rule as a search: of a key's records the one lives that no other comes after."""
    records = [
        (key, version, source, position)
        for source, keys in enumerate(files)
        for key, version, position, _ in keys
    ]
    dead: Verdicts = [[] for _ in files]
    for key, *rank in records:
        if any(other == key and other_rank > rank for other, *other_rank in records):
            dead[rank[1]].append((rank[2], "superseded"))
    return [sorted(verdicts) for verdicts in dead]


ARTICLE_IDS = st.sampled_from([1, 2, 9999, 2**31 - 1, 2**40, 2**40 + 1, 2**62 + 5, 2**63 - 1])
ARTICLES = st.lists(st.lists(st.tuples(ARTICLE_IDS, VERSIONS), max_size=9), min_size=1, max_size=5)


@settings(PROFILE, max_examples=300)
@given(ARTICLES, st.integers(1, 7))
def test_of_an_article_the_highest_version_lives_wherever_it_is(
    files: list[list[tuple[int, int]]], count: int
) -> None:
    keys = [[(key, version, at, False) for at, (key, version) in enumerate(file)] for file in files]
    assert decided(keys, count, by_version=True) == newest(keys)
    assert decided(keys, count, chunked, by_version=True) == newest(keys)


@settings(PROFILE, max_examples=100)
@given(ARTICLES)
def test_each_article_lives_once(files: list[list[tuple[int, int]]]) -> None:
    keys = [[(key, version, at, False) for at, (key, version) in enumerate(file)] for file in files]
    dead = {(at, row) for at, rows in enumerate(decided(keys, 1, by_version=True)) for row, _ in rows}
    living = [key for at, rows in enumerate(keys) for key, _, row, _ in rows if (at, row) not in dead]
    assert sorted(living) == sorted({key for rows in keys for key, *_ in rows})


def test_versions_are_numbers_and_the_last_of_equals_lives() -> None:
    files: list[list[Row]] = [
        [(1, 10, 0, False), (2, 1, 1, False), (3, 2, 2, False)],
        [(1, 9, 0, False), (2, 1, 1, False), (2, 1, 2, False), (3, 1, 3, False)],
    ]
    assert decided(files, 1, by_version=True) == [
        [(1, "superseded")],
        [(0, "superseded"), (1, "superseded"), (3, "superseded")],
    ]
    assert decided(files, 1) == [
        [(0, "superseded"), (1, "superseded"), (2, "superseded")],
        [(1, "superseded")],
    ]


# Buckets and fingerprints


@pytest.mark.parametrize(("keys", "count"), [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (400, 40)])
def test_buckets_hold_no_more_keys_than_they_should(
    keys: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(versions, "KEYS_PER_BUCKET", 10)
    assert count_buckets(keys) == count


def test_all_of_pubmed_is_decided_in_a_few_buckets() -> None:
    assert count_buckets(45_000_000) == 12


Found = list[tuple[int, str, str | None]]


def verdicts(found: Found, chunks: int = 1) -> pa.Table:
    parts = [found] if chunks == 1 else [found[:1], found[1:]]
    return pa.Table.from_batches(
        [
            pa.RecordBatch.from_arrays(
                [pa.array([row[at] for row in part], field.type) for at, field in enumerate(DECISION_SCHEMA)],
                schema=DECISION_SCHEMA,
            )
            for part in parts
        ],
        schema=DECISION_SCHEMA,
    )


VERDICT_LISTS = st.lists(
    st.tuples(st.integers(0, 30), st.sampled_from(["superseded", "deleted"]), st.none())
    | st.tuples(st.integers(0, 30), st.just("duplicate"), st.sampled_from(["pubmed:1", "pubmed:12"])),
    max_size=5,
)


@settings(PROFILE, max_examples=200)
@given(VERDICT_LISTS, VERDICT_LISTS)
def test_fingerprints_are_equal_where_the_verdicts_are(one: Found, two: Found) -> None:
    assert (digest_decisions(verdicts(one)) == digest_decisions(verdicts(two))) == (one == two)


def test_a_fingerprint_is_short_and_does_not_hang_on_how_the_rows_are_held() -> None:
    found: Found = [(1, "deleted", None), (5, "duplicate", "pubmed:3"), (11, "deleted", None)]
    assert digest_decisions(verdicts(found)) == digest_decisions(verdicts(found, chunks=2))
    assert len(digest_decisions(verdicts(found))) == 16
    assert len(digest_decisions(verdicts([]))) == 16
    batches = list(resolve_versions([lambda: table([(1, 1, 0, False), (1, 1, 1, False)])], 0, 1))
    assert digest_decisions(pa.Table.from_batches(batches)) == digest_decisions(
        verdicts([(0, "superseded", None)])
    )
