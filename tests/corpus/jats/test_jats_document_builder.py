"""The shape of full-text documents: blocks in, sentences with their sections out, and everything counted.

A section that points at the wrong sentence spoils every later step, so documents of blocks made up at random
are taken apart again: every sentence is of the block it should be of, under that block's headings.
"""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import HEADING_SEPARATOR, Document
from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder, identify_article
from bioshards.corpus.jats.filters import DROPPED_PART_PREFIX, PmcConfig
from bioshards.corpus.jats.section_walker import TextBlock
from bioshards.corpus.jats.text_blocks import ARTICLE_PARTS
from bioshards.corpus.sentences import collapse_whitespace
from tests.support.corpus.small_articles import ACCEPTED_ARTICLE

PROFILE = settings(derandomize=True, deadline=None, database=None)

TITLE = TextBlock("title", (), "Sleep in mice. A trial.")
BLOCKS = [
    TITLE,
    TextBlock("abstract", ("Abstract", "Background"), "Mice sleep. We asked why."),
    TextBlock("abstract", ("Abstract",), "They were tired."),
    TextBlock("body", ("Methods",), "We looked. Twice."),
    TextBlock("body", ("Methods",), "And again."),
    TextBlock("body", ("Methods", "Mice"), "There were 7."),
    TextBlock("caption", ("Methods", "Figure 1"), "A mouse."),
    TextBlock("body", ("Results",), "They slept."),
    TextBlock("acknowledgements", ("Acknowledgements",), "We thank the mice."),
]


def shaped(
    blocks: list[TextBlock], front: Any = ACCEPTED_ARTICLE, has_body: bool = True, **rules: Any
) -> Document:
    return ArticleDocumentBuilder(PmcConfig(**rules)).build_document(front, has_body, blocks, "a.xml", 3)[1]


def read_back(document: Document) -> list[tuple[str, list[str]]]:
    """(heading, sentences) of each section, after what comes before the first."""
    starts = [first for _, first in document.sections]
    ends = [*starts[1:], len(document.sentences)][: len(starts)]
    headings = (heading for heading, _ in document.sections)
    return [
        (heading, document.sentences[start:end])
        for heading, start, end in zip(headings, starts, ends, strict=True)
    ]


# A document


def test_a_document_has_what_the_article_says() -> None:
    assert shaped(BLOCKS) == Document(
        id="pmc:PMC77.2",
        source="pmc",
        pmid=12_345,
        pmcid="PMC77",
        doi="10.5555/Sleep.7",
        version=2,
        year=2019,
        journal="Journal of Rest",
        article_type="research-article",
        language="eng",
        licence="CC-BY",
        retracted=False,
        flags=[],
        title="Sleep in mice. A trial.",
        sentences=[
            *("Sleep in mice.", "A trial.", "Mice sleep.", "We asked why.", "They were tired."),
            *("We looked.", "Twice.", "And again.", "There were 7.", "A mouse.", "They slept."),
            "We thank the mice.",
        ],
        sections=[
            ("Abstract > Background", 2),
            ("Abstract", 4),
            ("Methods", 5),
            ("Methods > Mice", 8),
            ("Methods > Figure 1", 9),
            ("Results", 10),
            ("Acknowledgements", 11),
        ],
        file="a.xml",
        position=3,
        num_words=29,
        num_characters=138,
        removed_characters={},
    )


def test_blocks_without_headings_are_a_section_without_a_heading() -> None:
    """A letter has neither an abstract nor headings, and is text all the same."""
    why, letter = ArticleDocumentBuilder(PmcConfig()).build_document(
        ACCEPTED_ARTICLE,
        True,
        [TITLE, TextBlock("body", (), "We agree. Thanks."), TextBlock("body", (), "Yours.")],
        "a.xml",
        0,
    )
    assert why is None
    assert letter.sections == [("", 2)]
    assert letter.sentences[2:] == ["We agree.", "Thanks.", "Yours."]


def test_text_without_headings_before_and_after_text_with_them() -> None:
    blocks = [
        TextBlock("body", (), "One."),
        TextBlock("body", ("A",), "Two."),
        TextBlock("body", (), "Three."),
    ]
    assert read_back(shaped(blocks)) == [("", ["One."]), ("A", ["Two."]), ("", ["Three."])]


def test_a_paragraphs_end_ends_a_sentence() -> None:
    blocks = [TextBlock("body", ("A",), "We saw"), TextBlock("body", ("A",), "nothing")]
    assert shaped(blocks).sentences == ["We saw", "nothing"]
    assert shaped(blocks, splitter="none").sentences == ["We saw", "nothing"]


def test_the_same_headings_again_are_another_section() -> None:
    blocks = [
        TextBlock("body", ("A",), "One."),
        TextBlock("caption", ("A", "Figure 1"), "Two."),
        TextBlock("body", ("A",), "Three."),
    ]
    assert shaped(blocks).sections == [("A", 0), ("A > Figure 1", 1), ("A", 2)]


def test_without_titles_the_text_begins_with_the_abstract_and_the_title_stays_beside_it() -> None:
    found = shaped(BLOCKS, titles=False)
    assert found.title == "Sleep in mice. A trial."
    assert found.sentences == shaped(BLOCKS).sentences[2:]
    assert found.sections[0] == ("Abstract > Background", 0)
    assert (found.num_words, found.num_characters) == (29 - 5, 138 - 22)


@pytest.mark.parametrize("titles", [True, False])
def test_an_article_without_a_title_has_an_empty_one(titles: bool) -> None:
    found = shaped(BLOCKS[1:], titles=titles)
    assert found.title == ""
    assert found.sections[0] == ("Abstract > Background", 0)
    assert shaped([], titles=titles).sentences == []


# Parts


def test_the_abstract_comes_first_wherever_it_stands() -> None:
    blocks = [TITLE, TextBlock("summary", ("Summary",), "In short."), *BLOCKS[1:4]]
    assert [heading for heading, _ in shaped(blocks).sections] == [
        "Abstract > Background",
        "Abstract",
        "Summary",
        "Methods",
    ]


@pytest.mark.parametrize("part", ARTICLE_PARTS[1:])
def test_each_part_is_text_or_is_left_out_and_counted(part: str) -> None:
    blocks = [
        TITLE,
        TextBlock(part, ("A",), "One two."),
        TextBlock(part, ("A",), "Three."),
        TextBlock("body", ("B",), "Four."),
    ]
    found = shaped(blocks, parts=tuple(name for name in ARTICLE_PARTS[1:] if name in (part, "body")))
    assert [sentence for _, sentences in read_back(found) for sentence in sentences] == [
        "One two.",
        "Three.",
        "Four.",
    ]
    assert [heading for heading, _ in found.sections] == ["A", "B"]
    assert found.removed_characters == {}
    left = shaped(blocks, parts=tuple(name for name in ARTICLE_PARTS[1:] if name != part))
    body = [] if part == "body" else [("B", ["Four."])]
    assert read_back(left) == body
    assert left.removed_characters == {f"{DROPPED_PART_PREFIX}{part}": 8 + 6 + (5 if part == "body" else 0)}


def test_what_is_left_out_is_not_cleaned() -> None:
    found = shaped([TITLE, TextBlock("footnote", ("N\u00ad",), "A\u00adb."), BLOCKS[3]], parts=("body",))
    assert found.removed_characters == {f"{DROPPED_PART_PREFIX}footnote": 4}


# Cleaning


def test_an_abstract_is_cleaned_as_pubmeds_are() -> None:
    blocks = [
        TextBlock("abstract", ("Abstract", "Aim"), "Aim: Mice sleep."),
        TextBlock("abstract", ("Abstract", "Results"), ""),
        TextBlock(
            "abstract", ("Abstract", "End"), "They slept. Copyright © 2019 The Mice. All rights reserved."
        ),
    ]
    found = shaped(blocks)
    assert read_back(found) == [("Abstract > Aim", ["Mice sleep."]), ("Abstract > End", ["They slept."])]
    assert found.removed_characters["copyright"] > 40
    assert found.removed_characters["empty-labels"] > 0
    kept = shaped(blocks, cleaning=())
    assert kept.removed_characters == {}
    assert any("All rights reserved" in sentence for sentence in kept.sentences)


def test_a_stub_is_no_abstract() -> None:
    found = shaped([TITLE, TextBlock("abstract", ("Abstract",), "No abstract available."), BLOCKS[3]])
    assert [heading for heading, _ in found.sections] == ["Methods"]
    assert found.removed_characters == {"stubs": 22}


def test_notices_in_the_body_are_left_as_they_are() -> None:
    text = "They slept. Copyright © 2019 The Mice. All rights reserved."
    assert " ".join(shaped([TextBlock("body", (), text)]).sentences) == text


def test_characters_are_cleaned_everywhere() -> None:
    blocks = [
        TextBlock("title", (), "Sl\u00adeep"),
        TextBlock("abstract", ("Abst\u00adract", "A\u00adim"), "Mi\u00adce sleep well."),
        TextBlock("body", ("Met\u00adhods", "De\u00adep"), "We\u00a0lo\u00adoked."),
        TextBlock("body", ("\u200b",), "Cafe\u0301 \u007f closed."),
    ]
    found = shaped(blocks)
    assert found.title == "Sleep"
    assert read_back(found) == [
        ("Abstract > Aim", ["Mice sleep well."]),
        ("Methods > Deep", ["We looked."]),
        ("", ["Café closed."]),
    ]
    assert found.removed_characters["soft-hyphens"] == 7
    assert shaped(blocks, cleaning=()).title == "Sl\u00adeep"


def test_a_heading_is_counted_once_however_many_blocks_it_heads() -> None:
    blocks = [TextBlock("body", ("Met\u00adhods", heading), "One.") for heading in ("A\u00ad", "B", "B")]
    assert shaped(blocks).removed_characters == {"soft-hyphens": 2}


def test_a_block_with_nothing_left_leaves_no_trace() -> None:
    blocks = [
        TextBlock("body", ("A",), "One."),
        TextBlock("body", ("B",), "\u200b"),
        TextBlock("body", ("C",), "Two."),
    ]
    assert shaped(blocks).sections == [("A", 0), ("C", 1)]
    assert shaped([TITLE, TextBlock("body", ("B",), "\u200b")]).sections == []


# Labels and lines


def test_a_sections_text_begins_with_its_label_on_demand() -> None:
    found = shaped(BLOCKS, section_labels=True)
    assert read_back(found) == [
        ("Abstract > Background", ["Background", "Mice sleep.", "We asked why."]),
        ("Abstract", ["Abstract", "They were tired."]),
        ("Methods", ["Methods", "We looked.", "Twice.", "And again."]),
        ("Methods > Mice", ["Mice", "There were 7."]),
        ("Methods > Figure 1", ["Figure 1", "A mouse."]),
        ("Results", ["Results", "They slept."]),
        ("Acknowledgements", ["Acknowledgements", "We thank the mice."]),
    ]
    assert found.num_words == 29 + 8
    assert shaped([TextBlock("body", (), "One.")], section_labels=True).sentences == ["One."]


def test_sentences_are_written_as_the_recipe_wants_them() -> None:
    found = shaped(
        [TextBlock("body", ("A",), "We saw β. Not so. It is so.")], lower_case=True, ascii_only=True
    )
    assert found.sentences == ["we saw .", "not so.", "it is so."]
    assert (found.num_words, found.num_characters) == (3 + 2 + 3, 8 + 7 + 9)
    assert found.removed_characters == {"ascii-only": 1}


def test_a_section_without_a_line_left_is_none() -> None:
    blocks = [TextBlock("body", ("A",), "No."), TextBlock("body", ("B",), "It is longer than that.")]
    rules = PmcConfig(min_line_characters=10, min_words=6)
    why, found = ArticleDocumentBuilder(rules).build_document(ACCEPTED_ARTICLE, True, blocks, "a.xml", 0)
    assert why is None  # words are counted before lines are left out
    assert found.sections == [("B", 0)]
    assert found.removed_characters == {"short-lines": 3}
    assert found.num_words == 5


# Flags


@pytest.mark.parametrize(
    ("changes", "has_body", "flags"),
    [
        ({}, True, []),
        ({"notice": "retraction"}, True, ["retraction"]),
        ({"manuscript": True}, True, ["manuscript"]),
        ({"ocr": True}, True, ["ocr"]),
        ({}, False, ["no-body"]),
        (
            {"notice": "correction", "manuscript": True, "ocr": True},
            False,
            ["correction", "manuscript", "ocr", "no-body"],
        ),
    ],
)
def test_flags_say_what_else_is_to_be_known(
    changes: dict[str, Any], has_body: bool, flags: list[str]
) -> None:
    assert shaped(BLOCKS, ACCEPTED_ARTICLE._replace(**changes), has_body).flags == flags


# Identity


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("pmc:PMC77.2", 77)),
        ({"version": 1}, ("pmc:PMC77.1", 77)),
        ({"pmid": None, "doi": None}, ("pmc:PMC77.2", 77)),
        ({"pmcid": "PMC2147483647", "version": 9999}, ("pmc:PMC2147483647.9999", 2**31 - 1)),
    ],
)
def test_an_article_of_pmc_goes_by_its_number_there(
    changes: dict[str, Any], expected: tuple[str, int]
) -> None:
    assert identify_article(ACCEPTED_ARTICLE._replace(**changes)) == expected


def test_others_go_by_their_doi_in_any_case_and_then_by_their_pmid() -> None:
    other = ACCEPTED_ARTICLE._replace(pmcid=None)
    name, number = identify_article(other)
    assert name == "doi:10.5555/sleep.7"
    assert identify_article(other._replace(doi="10.5555/SLEEP.7", pmid=None, version=5)) == (name, number)
    assert identify_article(other._replace(doi="10.5555/sleep.8"))[1] != number
    name, number = identify_article(other._replace(doi=None))
    assert name == "pmid:12345"
    assert number != identify_article(other._replace(doi=None, pmid=12_346))[1]


def test_an_article_without_any_id_is_bad() -> None:
    with pytest.raises(BadRecordError) as caught:
        identify_article(ACCEPTED_ARTICLE._replace(pmcid=None, doi=None, pmid=None))
    assert caught.value.reason == "no-id"


@settings(PROFILE, max_examples=300)
@given(st.none() | st.text(min_size=1), st.integers(1, 2**31 - 1))
def test_numbers_of_others_are_beyond_all_of_pmcs_and_fit_a_column(doi: str | None, pmid: int) -> None:
    doi = doi and doi.encode(errors="replace").decode()
    assert 2**40 <= identify_article(ACCEPTED_ARTICLE._replace(pmcid=None, doi=doi, pmid=pmid))[1] < 2**63


def test_numbers_of_others_are_hardly_ever_the_same() -> None:
    found = {
        identify_article(ACCEPTED_ARTICLE._replace(pmcid=None, doi=None, pmid=pmid))[1]
        for pmid in range(1, 20_000)
    }
    assert len(found) == 19_999


# Blocks made up at random

WORDS = st.lists(
    st.sampled_from(
        ["We", "saw", "3.", "Fig.", "2", "it.", "(", "?", "Ω", "e.g.", "p<.05", "The", "ﬁve", "\u00ad"]
    ),
    min_size=1,
    max_size=8,
).map(" ".join)
HEADINGS = st.lists(st.sampled_from(["A", "B b", "Ć", "1."]), max_size=3).map(tuple)
BLOCKS_OF_PARTS = st.lists(
    st.builds(
        TextBlock,
        st.sampled_from([part for part in ARTICLE_PARTS[1:] if part != "abstract"]),
        HEADINGS,
        WORDS,
    ),
    max_size=8,
)


@settings(PROFILE, max_examples=300)
@given(
    st.none() | WORDS,
    BLOCKS_OF_PARTS,
    st.booleans(),
    st.booleans(),
    st.sets(st.sampled_from(ARTICLE_PARTS[1:])),
)
def test_counts_and_sections_are_those_of_the_sentences(
    title: str | None, blocks: list[TextBlock], titles: bool, labels: bool, parts: set[str]
) -> None:
    included = tuple(part for part in ARTICLE_PARTS[1:] if part in parts)
    heads = [] if title is None else [TextBlock("title", (), title)]
    found = shaped(heads + blocks, titles=titles, section_labels=labels, parts=included, cleaning=())
    assert found.title == (title or "")
    assert found.num_words == sum(len(sentence.split()) for sentence in found.sentences)
    assert found.num_characters == sum(map(len, found.sentences))
    assert all(sentence and sentence == collapse_whitespace(sentence) for sentence in found.sentences)
    chosen = [block for block in blocks if block.part in parts]
    runs = [
        (HEADING_SEPARATOR.join(headings), headings[-1:] if labels else (), [block.text for block in run])
        for headings, run in itertools.groupby(chosen, key=lambda block: block.headings)
    ]
    begin = found.sections[0][1] if found.sections else len(found.sentences)
    assert " ".join(found.sentences[:begin]) == (found.title if titles else "")
    assert [(heading, " ".join(sentences)) for heading, sentences in read_back(found)] == [
        (heading, " ".join([*label, *texts])) for heading, label, texts in runs
    ]
    left = {f"{DROPPED_PART_PREFIX}{block.part}" for block in blocks if block.part not in parts}
    assert found.removed_characters == {
        name: sum(len(block.text) for block in blocks if f"{DROPPED_PART_PREFIX}{block.part}" == name)
        for name in left
    }


@settings(PROFILE, max_examples=200)
@given(
    st.lists(st.builds(TextBlock, st.sampled_from(ARTICLE_PARTS[1:]), HEADINGS, WORDS), max_size=8),
    st.integers(0, 30),
)
def test_a_document_is_short_by_its_own_words(blocks: list[TextBlock], bound: int) -> None:
    why, found = ArticleDocumentBuilder(PmcConfig(min_words=bound)).build_document(
        ACCEPTED_ARTICLE, True, blocks, "a.xml", 0
    )
    assert why == ("no-text" if not found.sections else "short" if found.num_words < bound else None)
    assert found == shaped(blocks)._replace(position=0)


def test_one_shaper_shapes_any_number_of_articles_alike() -> None:
    shaper = ArticleDocumentBuilder(PmcConfig())
    documents = [shaper.build_document(ACCEPTED_ARTICLE, True, BLOCKS, "a.xml", 3)[1] for _ in range(3)]
    assert documents == [shaped(BLOCKS)] * 3
    assert dataclasses.is_dataclass(PmcConfig)
