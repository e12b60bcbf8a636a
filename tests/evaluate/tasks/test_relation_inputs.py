"""Model inputs of relations: the text in each entity format, and the ranges of the entities in it."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.records import Mention, Relation
from bioshards.evaluate.tasks.input_texts import (
    ENTITY_MARKERS,
    RelationInput,
    build_relation_input,
    entity_placeholder,
)
from tests.support.evaluate.benchmark_files import load_split
from tests.support.real_data import DATA, needs_data


def make_relation(
    text: str, first: str, second: str, types: tuple[str, str] = ("CHEMICAL", "GENE")
) -> Relation:
    """Make a relation of the first occurrences of two strings in a text."""
    first_mention, second_mention = (
        Mention(text.index(words), text.index(words) + len(words), type)
        for words, type in zip((first, second), types, strict=True)
    )
    return Relation("r", text, first_mention, second_mention, "false")


def cut_entities(model_input: RelationInput) -> tuple[str, str]:
    return model_input.text[slice(*model_input.first)], model_input.text[slice(*model_input.second)]


APART = make_relation("Lorazine blocks the kinase GLP9.", "Lorazine", "GLP9")
NESTED = make_relation("A GLP9-lorazine complex formed.", "GLP9-lorazine", "lorazine", ("GENE", "CHEMICAL"))
CROSSED = make_relation("Of alpha beta gamma.", "alpha beta", "beta gamma", ("DRUG", "DRUG"))
SAME = make_relation("Only x here.", "x", "x", ("DRUG", "DRUG"))
TOUCHING = make_relation("Of alphabeta.", "alpha", "beta", ("DRUG", "DRUG"))
SAME_START = make_relation("Of alpha beta.", "alpha", "alpha beta")
SAME_END = make_relation("Of alpha beta.", "alpha beta", "beta")


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (APART, "@CHEMICAL$ blocks the kinase @GENE$."),
        (NESTED, "A @CHEM-GENE$ complex formed."),
        (CROSSED, "Of @DRUG-DRUG$."),
        (SAME, "Only @DRUG-DRUG$ here."),
        (TOUCHING, "Of @DRUG$@DRUG$."),
        (SAME_START, "Of @CHEM-GENE$."),
    ],
)
def test_placeholders_replace_entities(record: Relation, text: str) -> None:
    assert build_relation_input(record, "placeholders").text == text


@pytest.mark.parametrize(
    ("record", "text"),
    [
        (APART, "[E1] Lorazine [/E1] blocks the kinase [E2] GLP9 [/E2]."),
        (NESTED, "A [E1] GLP9-[E2] lorazine [/E2] [/E1] complex formed."),
        (CROSSED, "Of [E1] alpha [E2] beta [/E1] gamma [/E2]."),
        (SAME, "Only [E1] [E2] x [/E2] [/E1] here."),
        (TOUCHING, "Of [E1] alpha [/E1][E2] beta [/E2]."),
        (SAME_START, "Of [E2] [E1] alpha [/E1] beta [/E2]."),
        (SAME_END, "Of [E1] alpha [E2] beta [/E2] [/E1]."),
    ],
)
def test_markers_surround_entities(record: Relation, text: str) -> None:
    assert build_relation_input(record, "markers").text == text


def test_original_format_keeps_the_text() -> None:
    model_input = build_relation_input(NESTED, "original")
    assert model_input.text == NESTED.text
    assert cut_entities(model_input) == ("GLP9-lorazine", "lorazine")
    assert model_input.entity_starts == (2, 7)


def test_shared_placeholder_does_not_depend_on_the_order_of_types() -> None:
    assert entity_placeholder("CHEMICAL", "GENE") == entity_placeholder("GENE", "CHEMICAL") == "@CHEM-GENE$"
    assert entity_placeholder("DRUG", "DRUG") == "@DRUG-DRUG$"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ((0, 3), (4, 9)),
        ((4, 6), (0, 3)),
        ((-1, 3), (4, 6)),
        ((2, 2), (4, 6)),
        ((0, 3), (5, 4)),
        ((0, 9), (4, 6)),
    ],
)
def test_mentions_outside_of_the_text_are_refused(first: tuple[int, int], second: tuple[int, int]) -> None:
    record = Relation("doc.7", "letters", Mention(*first, "DRUG"), Mention(*second, "DRUG"), "false")
    with pytest.raises(ValueError, match=r"relation doc\.7: .* not two mentions, in order, in a text of 7"):
        build_relation_input(record, "placeholders")


@st.composite
def draw_relation(draw: st.DrawFn) -> Relation:
    text = draw(st.text("ab β\n", min_size=1, max_size=12))
    spans = []
    for _ in range(2):
        start = draw(st.integers(0, len(text) - 1))
        spans.append((start, draw(st.integers(start + 1, len(text)))))
    types = st.sampled_from(["CHEMICAL", "GENE", "DRUG"])
    first, second = (Mention(*span, draw(types)) for span in sorted(spans))
    return Relation("r", text, first, second, "false")


@given(draw_relation())
def test_placeholders_keep_the_text_around_the_mentions(record: Relation) -> None:
    model_input = build_relation_input(record, "placeholders")
    text, first, second = record.text, record.first, record.second
    assert model_input.entity_starts == (model_input.first[0], model_input.second[0])
    assert model_input.text[: model_input.first[0]] == text[: first.start]
    assert model_input.text[model_input.second[1] :] == text[max(first.end, second.end) :]
    if set(range(first.start, first.end)) & set(range(second.start, second.end)):
        assert model_input.first == model_input.second
        assert cut_entities(model_input)[0] == entity_placeholder(first.type, second.type)
    else:
        assert cut_entities(model_input) == (f"@{first.type}$", f"@{second.type}$")
        assert (
            model_input.text[model_input.first[1] : model_input.second[0]] == text[first.end : second.start]
        )


@needs_data
def test_ddi_placeholders_equal_the_published_texts() -> None:
    """Compare inputs from the authors' XML with ELECTRAMed's test file in BLUE's format."""
    published_texts = {}
    with open(f"{DATA}/benchmarks/electramed/RE/ddi-2013/test.csv", encoding="utf-8-sig") as file:
        for name, text, _ in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            published_texts[name] = " ".join(text.strip('"').split())
    inputs = {
        pair.id: build_relation_input(pair, "placeholders").text
        for pair in load_split(Path(f"{DATA}/benchmarks"), "ddi", "test", Relation)
    }
    assert len(inputs) == 5716
    for name, text in inputs.items():
        assert " ".join(text.strip('"').split()) == published_texts[name]


def remove_markers(text: str) -> str:
    return re.sub(r"\[E[12]\] | \[/E[12]\]", "", text)


@given(draw_relation())
def test_removing_markers_restores_the_text(record: Relation) -> None:
    model_input = build_relation_input(record, "markers")
    assert remove_markers(model_input.text) == record.text
    mentions = (record.first, record.second)
    assert tuple(map(remove_markers, cut_entities(model_input))) == tuple(
        record.text[mention.start : mention.end] for mention in mentions
    )
    for (begin, end), start, opening, closing in zip(
        (model_input.first, model_input.second),
        model_input.entity_starts,
        ENTITY_MARKERS[::2],
        ENTITY_MARKERS[1::2],
        strict=True,
    ):
        assert model_input.text[start:begin] == f"{opening} "
        assert model_input.text[end:].startswith(f" {closing}")
        assert remove_markers(model_input.text[:start]) == record.text[: mentions[opening == "[E2]"].start]
    assert [model_input.text.count(tag) for tag in ENTITY_MARKERS] == [1] * 4


@given(draw_relation())
def test_markers_of_nested_entities_are_nested(record: Relation) -> None:
    """Read as brackets, markers cross only where the mentions cross."""
    markers = re.findall(r"\[(/?)E([12])\]", build_relation_input(record, "markers").text)
    first, second = record.first, record.second
    mentions_cross = first.start < second.start < first.end < second.end
    open_markers: list[str] = []
    markers_cross = False
    for slash, number in markers:
        if slash:
            markers_cross |= open_markers[-1] != number
            open_markers.remove(number)
        else:
            open_markers.append(number)
    assert markers_cross == mentions_cross
