"""The parser of source specs such as ``--input pubmed:baseline[1-10]``."""

from __future__ import annotations

import string
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.download.sources import (
    SOURCES,
    FileSelection,
    SourceSpec,
    SourceSpecError,
    parse_source_spec,
)
from tests.support.hypothesis_profiles import examples

DAY = date(2026, 8, 1)
ALL = FileSelection()


@pytest.mark.parametrize(
    ("text", "source", "part", "selection"),
    [
        ("pubmed:", "pubmed", "", ALL),
        ("europepmc:", "europepmc", "", ALL),
        ("pmc:", "pmc", "", ALL),
        ("pubmed:baseline[0007]", "pubmed", "baseline", FileSelection(((7, 7),))),
        ("pubmed:[ 1-10, 20 ]", "pubmed", "", FileSelection(((1, 10), (20, 20)))),
        ("pubmed:updates[-3:]", "pubmed", "updates", FileSelection(newest=3)),
        ("pubmed:updates[since=2026-08-01]", "pubmed", "updates", FileSelection(since=DAY)),
        ("pubmed:since=2026-08-01", "pubmed", "", FileSelection(since=DAY)),
        ("pubmed:updates,since=2026-08-01", "pubmed", "updates", FileSelection(since=DAY)),
        ("pubmed:updates:since=2026-08-01", "pubmed", "updates", FileSelection(since=DAY)),
        ("pmc:[11000000-11010000]", "pmc", "", FileSelection(((11000000, 11010000),))),
    ],
)
def test_source_specs_are_parsed(text: str, source: str, part: str, selection: FileSelection) -> None:
    assert parse_source_spec(text) == SourceSpec(source, part, selection, text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "pubmed",
        "pubmed/",
        "pubmed/pubmed:baseline",
        "./pubmed:baseline",
        "./pubmedd:baseline",
        "/data/pubmed:",
        "gs://bucket/pubmed:",
        "s3://pubmed:baseline/",
        "a:b",
        ":",
        ":pubmed",
        " pubmed:",
        "in/2026-01-01T10:00:00/*.xml",
        "medline:2014",
        "pmc1:some/folder",
        "pubmed2:x.xml.gz",
        "PMC:*.xml",
    ],
)
def test_paths_with_a_colon_are_not_source_specs(text: str) -> None:
    assert parse_source_spec(text) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("pubmedd:baseline", "did you mean pubmed:baseline?"),
        ("PubMed:updates[-3:]", "did you mean pubmed:updates[-3:]?"),
        ("PMC:", "did you mean pmc:?"),
        ("europe-pmc:", "did you mean europepmc:?"),
        ("pubmed:basline", "no part 'basline' (did you mean baseline?)"),
        ("pubmed:updatefiles[-3:]", "did you mean updates?"),
        ("pubmed:updatessince=2026-08-01", "cannot be read"),
        ("pubmed:1-10", "stand in brackets"),
        ("pmc:updates[1]", "has no parts"),
        ("pubmed:baseline[]", "the brackets are empty"),
        ("pubmed:[0]", "numbers begin at 1"),
        ("pubmed:[10-1]", "runs backwards"),
        ("pubmed:[-0:]", "selects nothing"),
        ("pmc:[-3:]", "no files"),
        ("pmc:since=2026-08-01", "no need of since="),
        *(
            (f"pubmed:[{item}]", "is not a number or a range")
            for item in ("-3", "1:10", "a", "1-2-3", "1,,2")
        ),
        *(
            (f"pubmed:[{item}]", "is not a number")
            for item in ("1234567890", "٣", "1,-3:", "1,since=2026-08-01")
        ),
        ("pubmed:since=2026-02-30", "'2026-02-30' is not a date"),
        ("pubmed:since=2026-13-01", "is not a date"),
        ("pubmed:since=20260801", "is not a date"),
        ("pubmed:since=2026-8-1", "is not a date"),
        ("pubmed:since=", "is not a date"),
        ("pubmed:since=2026-08-01x", "is not a date"),
        ("pubmed:[since=2026-08-01,-3:]", "is not a date"),
        ("pubmed:baseline[1-10]x", "cannot be read"),
        ("pubmed:baseline[1-10", "cannot be read"),
        ("pubmed:baseline[1][2]", "cannot be read"),
        ("pubmed:baseline[1],since=2026-08-01", "cannot be read"),
        ("pubmed:baseline:[1]", "cannot be read"),
        ("pubmed::since=2026-08-01", "cannot be read"),
        ("pubmed:sinc=2026-08-01", "cannot be read"),
    ],
)
def test_invalid_spec_is_refused_with_reason_and_valid_examples(text: str, reason: str) -> None:
    with pytest.raises(SourceSpecError) as caught:
        parse_source_spec(text)
    message = str(caught.value)
    assert message.startswith(f"--input {text}: ")
    assert reason in message
    assert f"./{text}" in message
    examples = message.split("What would work: ")[1].split(". (")[0].split(", ")
    assert len(examples) >= 2
    for example in examples:
        assert parse_source_spec(example) is not None


# Properties

NUMBERS = st.integers(1, 10**9 - 1)
RANGES = NUMBERS.flatmap(
    lambda low: st.tuples(st.just(low), st.none() | st.integers(low, 10**9 - 1) | st.just(low))
)
SELECTIONS = (
    st.lists(RANGES, min_size=1, max_size=5).map(lambda ranges: FileSelection(tuple(ranges)))
    | NUMBERS.map(lambda newest: FileSelection(newest=newest))
    | st.dates().map(lambda since: FileSelection(since=since))
)


def format_selection(selection: FileSelection) -> str:
    """Write a selection as in a source spec."""
    if selection.since:
        return f"since={selection.since.isoformat()}"
    if selection.newest:
        return f"-{selection.newest}:"
    return ",".join(
        f"{low}-" if high is None else str(low) if low == high else f"{low}-{high}"
        for low, high in selection.ranges
    )


@settings(max_examples=examples(300))
@given(st.sampled_from(["baseline", "updates", ""]), SELECTIONS)
def test_format_and_parse_round_trip(part: str, selection: FileSelection) -> None:
    parsed = parse_source_spec(f"pubmed:{part}[{format_selection(selection)}]")
    assert parsed is not None
    assert (parsed.subset, parsed.selection) == (part, selection)


PIECES = st.sampled_from([*SOURCES, "baseline", "updates", "since=", "2026-08-01", *":[]-,=0123", "/", "\n"])


@settings(max_examples=examples(500))
@given(
    st.text()
    | st.text(string.printable).map(lambda rest: f"pubmed:{rest}")
    | st.lists(PIECES, max_size=9).map("".join)
    | st.lists(PIECES, max_size=9).map(lambda pieces: "pubmed:" + "".join(pieces))
)
def test_any_text_is_a_spec_a_path_or_an_error(text: str) -> None:
    try:
        parsed = parse_source_spec(text)
    except SourceSpecError:
        return
    is_spec = text.startswith(tuple(f"{source}:" for source in SOURCES))
    assert (parsed is not None) == is_spec
    assert parsed is None or parsed.text == text


@settings(max_examples=examples(200))
@given(
    st.lists(st.tuples(st.integers(1, 40), st.none() | st.integers(1, 40)), max_size=3),
    st.integers(1, 40),
    st.integers(0, 10),
)
def test_overlaps_means_a_common_number(
    ranges: list[tuple[int, int | None]], first: int, length: int
) -> None:
    selected = {number for low, high in ranges for number in range(low, (high or 99) + 1)}
    expected = not ranges or not selected.isdisjoint(range(first, first + length + 1))
    are_valid = all(high is None or low <= high for low, high in ranges)
    assert not are_valid or FileSelection(tuple(ranges)).overlaps(first, first + length) == expected
