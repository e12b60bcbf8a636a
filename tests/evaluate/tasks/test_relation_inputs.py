"""evaluate/tasks/relation_inputs.py: what is read of a relation, and that its ranges are the entities."""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from bioshards.evaluate.benchmarks.record_types import Mention, Relation
from bioshards.evaluate.tasks.relation_inputs import (
    ENTITY_MARKERS,
    RelationInput,
    build_relation_input,
    entity_placeholder,
    list_special_tokens,
)
from tests.support.real_data import DATA, needs_data


def relation(text: str, first: str, second: str, types: tuple[str, str] = ("CHEMICAL", "GENE")) -> Relation:
    """Of the first places where these words are in the text."""
    one, other = (
        Mention(text.index(words), text.index(words) + len(words), type)
        for words, type in zip((first, second), types, strict=True)
    )
    return Relation("r", text, one, other, "false")


def parts(read: RelationInput) -> tuple[str, str]:
    return read.text[slice(*read.first)], read.text[slice(*read.second)]


APART = relation("Lorazine blocks the kinase GLP9.", "Lorazine", "GLP9")
NESTED = relation("A GLP9-lorazine complex formed.", "GLP9-lorazine", "lorazine", ("GENE", "CHEMICAL"))
CROSSED = relation("Of alpha beta gamma.", "alpha beta", "beta gamma", ("DRUG", "DRUG"))
SAME = relation("Only x here.", "x", "x", ("DRUG", "DRUG"))
TOUCHING = relation("Of alphabeta.", "alpha", "beta", ("DRUG", "DRUG"))
SAME_START = relation("Of alpha beta.", "alpha", "alpha beta")
SAME_END = relation("Of alpha beta.", "alpha beta", "beta")


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (APART, "@CHEMICAL$ blocks the kinase @GENE$."),
        (NESTED, "A @CHEM-GENE$ complex formed."),
        (CROSSED, "Of @DRUG-DRUG$."),
        (SAME, "Only @DRUG-DRUG$ here."),
        (TOUCHING, "Of @DRUG$@DRUG$."),
        (SAME_START, "Of @CHEM-GENE$."),
    ],
)
def test_dummies_stand_for_entities(given: Relation, text: str) -> None:
    assert build_relation_input(given, "placeholders").text == text


@pytest.mark.parametrize(
    ("given", "text"),
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
def test_tags_stand_around_entities(given: Relation, text: str) -> None:
    assert build_relation_input(given, "markers").text == text


def test_the_original_stays_as_it_is() -> None:
    read = build_relation_input(NESTED, "original")
    assert read.text == NESTED.text
    assert parts(read) == ("GLP9-lorazine", "lorazine")
    assert read.entity_starts == (2, 7)


def test_one_dummy_is_both_entities() -> None:
    read = build_relation_input(CROSSED, "placeholders")
    assert parts(read) == ("@DRUG-DRUG$", "@DRUG-DRUG$")
    assert read.entity_starts == (3, 3)


@pytest.mark.parametrize("types", [("CHEMICAL", "GENE"), ("GENE", "CHEMICAL")])
def test_the_dummy_of_two_has_one_spelling(types: tuple[str, str]) -> None:
    assert entity_placeholder(*types) == "@CHEM-GENE$"


def test_only_tags_are_added_to_a_vocabulary() -> None:
    assert list_special_tokens("markers") == ("[E1]", "[/E1]", "[E2]", "[/E2]")
    assert list_special_tokens("placeholders") == list_special_tokens("original") == ()


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
def test_mentions_that_the_text_does_not_have_are_refused(
    first: tuple[int, int], second: tuple[int, int]
) -> None:
    wrong = Relation("doc.7", "letters", Mention(*first, "DRUG"), Mention(*second, "DRUG"), "false")
    with pytest.raises(ValueError, match=r"relation doc\.7: .* not two mentions, in order, in a text of 7"):
        build_relation_input(wrong, "placeholders")


@st.composite
def relations(draw: st.DrawFn) -> Relation:
    text = draw(st.text("ab β\n", min_size=1, max_size=12))
    spans = []
    for _ in range(2):
        start = draw(st.integers(0, len(text) - 1))
        spans.append((start, draw(st.integers(start + 1, len(text)))))
    types = st.sampled_from(["CHEMICAL", "GENE", "DRUG"])
    first, second = (Mention(*span, draw(types)) for span in sorted(spans))
    return Relation("r", text, first, second, "false")


@given(relations())
def test_what_is_not_dummy_is_the_text_around_the_mentions(given: Relation) -> None:
    read = build_relation_input(given, "placeholders")
    text, first, second = given.text, given.first, given.second
    assert read.entity_starts == (read.first[0], read.second[0])
    assert read.text[: read.first[0]] == text[: first.start]
    assert read.text[read.second[1] :] == text[max(first.end, second.end) :]
    if set(range(first.start, first.end)) & set(range(second.start, second.end)):
        assert read.first == read.second
        assert parts(read)[0] == entity_placeholder(first.type, second.type)
    else:
        assert parts(read) == (f"@{first.type}$", f"@{second.type}$")
        assert read.text[read.first[1] : read.second[0]] == text[first.end : second.start]


@needs_data
def test_dummies_of_ddi_are_those_of_its_published_texts() -> None:
    """ELECTRAMed's file of the test set, in BLUE's format, whose mentions the authors' XML has."""
    published = {}
    with open(f"{DATA}/benchmarks/electramed/RE/ddi-2013/test.csv", encoding="utf-8-sig") as file:
        for name, text, _ in csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
            published[name] = " ".join(text.strip('"').split())
    equal = 0
    with zipfile.ZipFile(f"{DATA}/benchmarks/ddi2013/DDICorpus-2013.zip") as archive:
        for name in archive.namelist():
            if "Test for DDI" in name and name.endswith(".xml"):
                for pair in pairs(archive.read(name)):
                    text = build_relation_input(pair, "placeholders").text.strip('"')
                    equal += published[pair.id] == " ".join(text.split())
    assert equal == 5716


def pairs(document: bytes) -> Iterator[Relation]:
    """The pairs of a DDI document, from a mention's first character to its last."""
    for sentence in etree.fromstring(document).iter("sentence"):
        mentions = {}
        for entity in sentence.iter("entity"):
            places = [int(number) for number in re.findall(r"\d+", str(entity.get("charOffset")))]
            mentions[entity.get("id")] = Mention(places[0], places[-1] + 1, "DRUG")
        for pair in sentence.iter("pair"):
            two = (mentions[pair.get("e1")], mentions[pair.get("e2")])
            first, second = sorted(two, key=lambda mention: mention.start)
            yield Relation(str(pair.get("id")), str(sentence.get("text")), first, second, "")


def without_tags(text: str) -> str:
    return re.sub(r"\[E[12]\] | \[/E[12]\]", "", text)


@given(relations())
def test_without_tags_all_is_as_before(given: Relation) -> None:
    read = build_relation_input(given, "markers")
    assert without_tags(read.text) == given.text
    mentions = (given.first, given.second)
    assert tuple(map(without_tags, parts(read))) == tuple(given.text[m.start : m.end] for m in mentions)
    for (begin, end), start, opening, closing in zip(
        (read.first, read.second), read.entity_starts, ENTITY_MARKERS[::2], ENTITY_MARKERS[1::2], strict=True
    ):
        assert read.text[start:begin] == f"{opening} "
        assert read.text[end:].startswith(f" {closing}")
        assert without_tags(read.text[:start]) == given.text[: mentions[opening == "[E2]"].start]
    assert [read.text.count(tag) for tag in ENTITY_MARKERS] == [1] * 4


@given(relations())
def test_tags_of_one_entity_inside_of_the_other_are_nested(given: Relation) -> None:
    """Read as brackets they cross only where the mentions do."""
    tags = re.findall(r"\[(/?)E([12])\]", build_relation_input(given, "markers").text)
    first, second = given.first, given.second
    cross = first.start < second.start < first.end < second.end
    opened: list[str] = []
    crossed = False
    for slash, number in tags:
        if slash:
            crossed |= opened[-1] != number
            opened.remove(number)
        else:
            opened.append(number)
    assert crossed == cross
