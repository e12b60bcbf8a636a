"""Exact deduplication: text digests, decisions, and runs with duplicates within and across files."""

from __future__ import annotations

import hashlib
import itertools
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.lifecycle import finalize
from bioshards.corpus.lifecycle.decisions import (
    DECISION_SCHEMA,
    TEXT_DIGEST_SCHEMA,
    digest_text,
    find_duplicates,
    split_by_source,
)
from tests.support.corpus.pubmed_xml import citation_xml, pubmed_set_xml
from tests.support.hypothesis_profiles import examples
from tests.support.outputs import load_documents, load_manifest, published_digests

Run = Callable[..., int]

# Text digests

EQUAL_TEXTS: dict[str, tuple[str, str]] = {
    "case": ("Sleep in MICE", "sleep in mice"),
    "spacing": ("Sleep in mice", " Sleep\n in\u00a0 mice\t"),
    "spaces within words": ("non small", "nonsmall"),
    "punctuation": ("[Sleep, in mice.]", "Sleep in mice"),
    "dashes": ("non-small–cell", "non small cell"),
    "composed letters": ("Caf\u00e9", "Cafe\u0301"),
    "ligatures": ("\ufb01bre", "fibre"),
    "subscripts": ("CO₂", "CO2"),
    "the micro sign": ("5 \u00b5g", "5 \u03bcg"),
    "capitals inside a sign": ("37 ℃", "37 °C"),
    "sharp s": ("Straße", "STRASSE"),
    "final sigma": ("ΟΔΟΣ", "οδος"),
    "letters that casefold takes apart": ("\u0390", "\u0399\u0308\u0301"),
    "soft hyphens and zero-width spaces": ("im\u00admune\u200b cells", "immune cells"),
}


@pytest.mark.parametrize("case", EQUAL_TEXTS)
def test_equal_texts_have_equal_digests(case: str) -> None:
    first, second = EQUAL_TEXTS[case]
    assert digest_text(first, ["Text."]) == digest_text(second, ["Text."])
    assert digest_text("Title.", [first]) == digest_text("Title.", [second])


def test_digest_ignores_sentence_boundaries_but_separates_the_title() -> None:
    assert (
        digest_text("A b.", ["C d.", "E f."])
        == digest_text("A b.", ["C d. E f."])
        == digest_text("A b.", ["C", "d E f"])
    )
    assert digest_text("A b.", ["C d."]) != digest_text("A b. C", ["d."])
    assert digest_text("", ["A b."]) == digest_text(" [.] ", ["A b."]) != digest_text("A", ["b."])


@pytest.mark.parametrize("abstract", [[], [""], ["...", "-- [?]"], ["\u0301 \u00ad"]])
def test_documents_without_abstract_have_no_digest(abstract: list[str]) -> None:
    assert digest_text("Editorial.", abstract) is None
    assert digest_text("", abstract) is None


def test_digest_is_blake2b_of_128_bits() -> None:
    expected = hashlib.blake2b("sleepinmice\nthey5μgdid".encode(), digest_size=16).digest()
    assert digest_text("Sleep in mice.", ["They (5 µg) did."]) == expected
    assert len(expected) == 16


TEXTS = st.text(st.sampled_from("aAbé\u0301ßſK℃µ²ﬁΣς1٣½_ .-\n<[\u200b漢"), max_size=6) | st.text(max_size=6)


def normalise(text: str) -> str:
    """Return the normal form, computed a character at a time."""
    text = unicodedata.normalize("NFKC", text)
    text = unicodedata.normalize("NFKC", text.casefold())
    return "".join(character for character in text if character.isalnum())


@settings(max_examples=examples(500))
@given(TEXTS, st.lists(TEXTS, max_size=3), TEXTS, st.lists(TEXTS, max_size=3))
def test_digests_are_equal_for_equal_letters_and_digits(
    title: str, abstract: list[str], other_title: str, other_abstract: list[str]
) -> None:
    first = normalise(title), normalise(" ".join(abstract))
    second = normalise(other_title), normalise(" ".join(other_abstract))
    digest, other_digest = digest_text(title, abstract), digest_text(other_title, other_abstract)
    assert (digest is None, other_digest is None) == (not first[1], not second[1])
    if digest and other_digest:
        assert (digest == other_digest) == (first == second)


# Decisions

Row = tuple[int, str, int, bytes]
"""A document's key, id, position and digest."""
Decision = tuple[int, str, str]


def make_table(rows: Sequence[Row]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
    return pa.table(
        [pa.array(c, f.type) for c, f in zip(columns, TEXT_DIGEST_SCHEMA, strict=True)],
        schema=TEXT_DIGEST_SCHEMA,
    )


def find_decisions(sources: list[list[Row]], buckets: int) -> list[list[Decision]]:
    """Return the decisions on each source."""
    result: list[list[Decision]] = []
    for batch in split_by_source(find_duplicates(map(make_table, sources), buckets), len(sources)):
        assert batch.schema == DECISION_SCHEMA
        assert [field.name for field in batch.schema if field.nullable] == ["duplicate_of", "similarity"]
        batch.validate(full=True)
        positions = batch["position"].to_pylist()
        assert positions == sorted(positions)
        assert batch["similarity"].null_count == len(batch)
        result.append(list(zip(*(column.to_pylist() for column in batch.columns[:3]), strict=True)))
    assert len(result) == len(sources)
    return result


def compute_expected(sources: list[list[Row]]) -> list[list[Decision]]:
    """Return the decisions as computed with a dictionary."""
    lowest: dict[bytes, tuple[int, str]] = {}
    for key, id_, _, digest in itertools.chain(*sources):
        lowest[digest] = min((key, id_), lowest.get(digest, (key, id_)))
    return [
        sorted(
            (position, "duplicate", lowest[digest][1])
            for key, _, position, digest in rows
            if key != lowest[digest][0]
        )
        for rows in sources
    ]


DIGESTS = st.sampled_from(
    [bytes(16), b"\xff" * 16, b"\x7f" + b"\xff" * 15, b"\x80" + bytes(15), b"\x55" * 16, b"\x55" * 15 + b"V"]
)


@st.composite
def live_documents(draw: st.DrawFn) -> list[list[Row]]:
    """Draw sources of live documents: each key once, digests that collide."""
    sources: list[list[Row]] = [[] for _ in range(draw(st.integers(1, 4)))]
    keys = st.integers(1, 50) | st.sampled_from([2**31 - 1, 2**40 + 7, 2**63 - 1])
    for key in draw(st.lists(keys, unique=True, max_size=12)):
        rows = draw(st.sampled_from(sources))
        id_ = f"doi:10.5555/{key}" if key >= 2**40 else f"pubmed:{key}"
        rows.append((key, id_, 3 * len(rows), draw(DIGESTS | st.binary(min_size=16, max_size=16))))
    return sources


@settings(max_examples=examples(300))
@given(live_documents(), st.integers(1, 7))
def test_document_with_the_lowest_key_is_kept(sources: list[list[Row]], buckets: int) -> None:
    assert find_decisions(sources, buckets) == compute_expected(sources)


def test_no_documents_give_no_decisions() -> None:
    assert find_duplicates([], 1).num_rows == 0
    assert find_decisions([[], []], 3) == [[], []]


# Whole runs


def write_input_files(folder: Path, *files: bytes) -> Path:
    folder.mkdir(exist_ok=True)
    for index, data in enumerate(files, 1):
        (folder / f"pubmed26n{index:04d}.xml").write_bytes(data)
    return folder


def read_duplicates(output: Path) -> dict[str, str]:
    """Return the pairs of ``duplicates.tsv``, after comparing the file with the manifest."""
    data = (output / "duplicates.tsv").read_bytes()
    header, *lines = data.decode().splitlines()
    assert header == "id\tduplicate_of"
    [entry] = load_manifest(output)["duplicates"]
    assert entry == {
        "file": "duplicates.tsv",
        "rows": len(lines),
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert load_manifest(output)["funnel"].get("dropped: duplicate", 0) == len(lines)
    duplicates = dict(line.split("\t") for line in lines)
    assert list(duplicates) == [line.split("\t")[0] for line in lines]
    documents = load_documents(output)
    assert set(duplicates.values()) <= documents.keys()
    assert not duplicates.keys() & documents.keys()
    return duplicates


SLEEP, SLEEP_AGAIN, FOOD = (
    "Mice sleep. So do rats.",
    "Mice  SLEEP &amp; so do <i>rats</i>",
    "Mice eat. A lot.",
)
assert digest_text("", ["Mice SLEEP & so do rats"]) == digest_text("", [SLEEP])


def text(group: int) -> str:
    """Return a text that only the records of one group have."""
    return f"Mouse {group} sleeps. So does its rat."


Group = tuple[list[str], list[str], set[int], dict[int, int]]
"""Records of the first and of the second file, PMIDs that are kept, and originals of duplicates."""
GROUPS: dict[str, Group] = {
    "within a file, and spelled otherwise": (
        [citation_xml(12, SLEEP), citation_xml(11, SLEEP_AGAIN), citation_xml(13, FOOD)],
        [],
        {11, 13},
        {12: 11},
    ),
    "across files, whichever comes first": (
        [citation_xml(22, text(2)), citation_xml(23, text(20))],
        [citation_xml(21, text(2)), citation_xml(24, text(20)), citation_xml(25, text(20))],
        {21, 23},
        {22: 21, 24: 23, 25: 23},
    ),
    "another title is another document": (
        [citation_xml(41, text(4)), citation_xml(42, text(4), title="Another.")],
        [],
        {41, 42},
        {},
    ),
    "a version superseded is no original": (
        [citation_xml(51, text(5)), citation_xml(52, text(5))],
        [citation_xml(51, text(50))],
        {51, 52},
        {},
    ),
    "nor a duplicate": (
        [citation_xml(61, text(6)), citation_xml(62, text(6))],
        [citation_xml(62, text(60))],
        {61, 62},
        {},
    ),
    "a new version repeats the old one of another": (
        [citation_xml(71, text(7)), citation_xml(72, text(70))],
        [citation_xml(72, text(7), version=2)],
        {71},
        {72: 71},
    ),
    "versions of one citation are not duplicates": (
        [citation_xml(81, text(8)), citation_xml(81, text(8), version=2)],
        [citation_xml(81, text(8))],
        {81},
        {},
    ),
    "the original is deleted": (
        [citation_xml(91, text(9)), citation_xml(92, text(9)), citation_xml(93, text(9))],
        [],
        {92},
        {93: 92},
    ),
    "the original is dropped by a rule": (
        [citation_xml(101, text(10), language="ger"), citation_xml(102, text(10))],
        [],
        {102},
        {},
    ),
    "titles alone are not compared": (
        [citation_xml(111, ""), citation_xml(112, ""), citation_xml(113, "."), citation_xml(114, ".")],
        [],
        {111, 112, 113, 114},
        {},
    ),
    "no title is a title too": (
        [citation_xml(pmid, text(12), title="") for pmid in (121, 122)],
        [citation_xml(123, text(12))],
        {121, 123},
        {122: 121},
    ),
}


def test_originals_are_kept_and_duplicates_are_dropped(tmp_path: Path, run: Run) -> None:
    first = [record for records, _, _, _ in GROUPS.values() for record in records]
    second = [record for _, records, _, _ in GROUPS.values() for record in records]
    only_duplicate, only_kept = citation_xml(131, text(20)), citation_xml(132, text(13))
    files = (
        pubmed_set_xml(*first),
        pubmed_set_xml(*second, deleted=(91,)),
        pubmed_set_xml(only_duplicate),
        pubmed_set_xml(only_kept),
    )
    options = ("--dedup", "exact", "--languages", "eng", "--keep-title-only", "--keep-dropped")
    command = ("--input", write_input_files(tmp_path / "in", *files), "--output", tmp_path / "out", *options)
    assert run(*command) == 0
    kept = {pmid for group in GROUPS.values() for pmid in group[2]} | {132}
    duplicates = {pmid: original for group in GROUPS.values() for pmid, original in group[3].items()}
    duplicates[131] = 23
    assert load_documents(tmp_path / "out").keys() == {f"pubmed:{pmid}" for pmid in kept}
    expected = {f"pubmed:{pmid}": f"pubmed:{original}" for pmid, original in duplicates.items()}
    assert read_duplicates(tmp_path / "out") == expected
    dropped = pq.read_table(tmp_path / "out" / "dropped").to_pylist()
    assert {row["id"]: row["duplicate_of"] for row in dropped if row["reason"] == "duplicate"} == expected
    assert all(row["duplicate_of"] is None for row in dropped if row["reason"] != "duplicate")
    before = published_digests(tmp_path / "out")
    (tmp_path / "out" / "duplicates.tsv").unlink()
    assert run(*command) == 0
    assert published_digests(tmp_path / "out") == before, "a missing list is written again"


def test_nothing_to_compare(tmp_path: Path, run: Run) -> None:
    files = pubmed_set_xml(citation_xml(1, ""), citation_xml(2, "")), pubmed_set_xml(deleted=(1,))
    options = ("--dedup", "exact", "--keep-title-only", "--output", tmp_path / "out")
    assert run("--input", write_input_files(tmp_path / "in", *files), *options) == 0
    assert load_documents(tmp_path / "out").keys() == {"pubmed:2"}
    assert read_duplicates(tmp_path / "out") == {}


@pytest.mark.thorough
def test_section_labels_are_compared_when_part_of_the_text(tmp_path: Path, run: Run) -> None:
    labelled = citation_xml(2, SLEEP).replace("<AbstractText>", '<AbstractText Label="METHODS">')
    inputs = write_input_files(tmp_path / "in", pubmed_set_xml(citation_xml(1, SLEEP), labelled))
    assert run("--input", inputs, "--output", tmp_path / "a", "--dedup", "exact") == 0
    assert read_duplicates(tmp_path / "a") == {"pubmed:2": "pubmed:1"}
    assert run("--input", inputs, "--output", tmp_path / "b", "--dedup", "exact", "--section-labels") == 0
    assert read_duplicates(tmp_path / "b") == {}


def test_titles_are_compared_with_no_titles(tmp_path: Path, run: Run) -> None:
    records = citation_xml(1, SLEEP), citation_xml(2, SLEEP, title="Another."), citation_xml(3, SLEEP)
    inputs = write_input_files(tmp_path / "in", pubmed_set_xml(*records))
    assert run("--input", inputs, "--output", tmp_path / "out", "--dedup", "exact", "--no-titles") == 0
    assert read_duplicates(tmp_path / "out") == {"pubmed:3": "pubmed:1"}


# Reproducibility and updates


@pytest.mark.thorough
def test_run_after_a_killed_update_restores_the_output(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shards with one duplicate and with the other have the same size."""
    inputs = write_input_files(
        tmp_path / "in", pubmed_set_xml(citation_xml(11, SLEEP), citation_xml(12, SLEEP))
    )
    command = ("--input", inputs, "--dedup", "exact", "--output", tmp_path / "out")
    assert run(*command) == 0
    before = published_digests(tmp_path / "out")

    def raise_killed(self: object) -> None:
        raise RuntimeError("killed")

    update = inputs / "pubmed26n0002.xml"
    update.write_bytes(pubmed_set_xml(citation_xml(11, FOOD)))
    with monkeypatch.context() as patched:
        patched.setattr(finalize._Finalizer, "_count_funnel", raise_killed)
        assert run(*command) == 1
    update.unlink()
    assert run(*command) == 0
    assert published_digests(tmp_path / "out") == before
