"""The rules of a corpus: which citations become documents, and what their text is.

A drop without the right reason makes a corpus nobody can account for, and a section that points at
the wrong sentence spoils every later step; so the order of reasons is walked through one by one, and
the shape of documents is counted anew for citations made up at random.
"""

from __future__ import annotations

import dataclasses
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import HEADING_SEPARATOR, Document
from bioshards.corpus.document_presets import PUBMED_PRESETS
from bioshards.corpus.pubmed.citation import AbstractSection, Citation
from bioshards.corpus.pubmed.document_builder import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.sentences import collapse_whitespace
from bioshards.corpus.text.cleaning import CLEANING_RULES

PROFILE = settings(derandomize=True, deadline=None, database=None)

GOOD = Citation(
    pmid=12_345_678,
    version=2,
    title="Sleep in mice. A trial.",
    abstract=(
        AbstractSection("BACKGROUND", "Mice sleep. We asked why."),
        AbstractSection(None, "They were tired."),
    ),
    year=2019,
    languages=("eng", "fre"),
    publication_types=("Journal Article", "Review"),
    retracted=False,
    pmcid="PMC77",
    doi="10.1000/sleep.7",
)


def citation(**changes: Any) -> Citation:
    return GOOD._replace(**changes)


def reason(of: Citation, rules: PubMedConfig) -> str | None:
    return CitationDocumentBuilder(rules).build_document(of, "a.xml", 0)[0]


def shaped(of: Citation, rules: PubMedConfig | None = None) -> Document:
    return CitationDocumentBuilder(rules or PubMedConfig()).build_document(of, "a.xml", 3)[1]


# Reasons


def test_the_reasons_are_asked_in_the_order_in_which_they_are_listed() -> None:
    rules = PubMedConfig(
        min_pmid=100,
        languages=("eng",),
        drop_publication_types=("Review",),
        drop_retracted=True,
        min_abstract_words=5,
    )
    now: dict[str, Any] = {
        "pmid": 99,
        "languages": ("fre",),
        "publication_types": ("Journal Article", "Review"),
        "retracted": True,
        "title": " \n",
        "abstract": (AbstractSection("AIM", " "),),
    }
    mends: list[dict[str, Any]] = [
        {"pmid": 100},
        {"languages": ("fre", "eng")},
        {"publication_types": ("Journal Article",)},
        {"retracted": False},
        {"title": "A title.", "abstract": (AbstractSection(None, "No abstract available."),)},
        {"abstract": (AbstractSection("AIM", " "),)},
        {"abstract": (AbstractSection("AIM", "One two three four."),)},
        {"abstract": (AbstractSection("AIM", "One two three four."), AbstractSection(None, "Five."))},
    ]
    seen = []
    for mend in [{}, *mends]:
        now |= mend
        seen.append(reason(citation(**now), rules))
    assert seen == [*PubMedConfig.drop_reasons[3:-2], None]


def test_the_reasons_decided_elsewhere_come_first_and_last() -> None:
    assert PubMedConfig.drop_reasons[:3] == ("deleted", "superseded", "book")
    assert PubMedConfig.drop_reasons[-2:] == ("duplicate", "excluded")


def test_the_defaults_keep_what_has_an_abstract() -> None:
    assert reason(GOOD, PubMedConfig()) is None
    assert reason(citation(retracted=True, languages=(), title="", pmid=1), PubMedConfig()) is None
    assert reason(citation(abstract=()), PubMedConfig()) == "no-abstract"
    assert reason(citation(abstract=(AbstractSection("AIM", "\n"),)), PubMedConfig()) == "no-abstract"


def test_titles_alone_are_kept_on_demand_but_nothing_at_all_is_not() -> None:
    rules = PubMedConfig(keep_title_only=True)
    assert reason(citation(abstract=()), rules) is None
    assert shaped(citation(abstract=()), rules).sentences == ["Sleep in mice.", "A trial."]
    assert reason(citation(abstract=(), title=" "), rules) == "no-text"


def test_one_of_the_wanted_languages_is_enough() -> None:
    assert reason(GOOD, PubMedConfig(languages=("ger", "fre"))) is None
    assert reason(GOOD, PubMedConfig(languages=("ger",))) == "language"
    assert reason(citation(languages=()), PubMedConfig(languages=("eng",))) == "language"


def test_one_unwanted_publication_type_is_enough() -> None:
    assert reason(GOOD, PubMedConfig(drop_publication_types=("Letter", "Review"))) == "publication-type"
    assert reason(GOOD, PubMedConfig(drop_publication_types=("Letter",))) is None


def test_retracted_articles_are_dropped_on_demand_only() -> None:
    assert reason(citation(retracted=True), PubMedConfig()) is None
    assert reason(citation(retracted=True), PubMedConfig(drop_retracted=True)) == "retracted"
    assert shaped(citation(retracted=True)).retracted


@pytest.mark.parametrize(("bound", "expected"), [(7, None), (8, None), (9, "short-abstract")])
def test_abstract_words_are_counted_without_labels_and_title(bound: int, expected: str | None) -> None:
    for labels in (False, True):
        assert reason(GOOD, PubMedConfig(min_abstract_words=bound, section_labels=labels)) == expected


@pytest.mark.parametrize(("bound", "expected"), [(12_345_678, None), (12_345_679, "below-min-pmid")])
def test_the_lowest_pmid_is_itself_kept(bound: int, expected: str | None) -> None:
    assert reason(GOOD, PubMedConfig(min_pmid=bound)) == expected


def test_a_dropped_document_is_whole() -> None:
    why, dropped = CitationDocumentBuilder(PubMedConfig(languages=("ger",))).build_document(GOOD, "a.xml", 3)
    assert why == "language"
    assert dropped == shaped(GOOD)


# Shape


def test_a_document_has_what_the_citation_says() -> None:
    assert shaped(GOOD) == Document(
        id="pubmed:12345678",
        source="pubmed",
        pmid=12_345_678,
        pmcid="PMC77",
        doi="10.1000/sleep.7",
        version=2,
        year=2019,
        journal=None,
        article_type=None,
        language="eng,fre",
        licence=None,
        retracted=False,
        flags=[],
        title="Sleep in mice. A trial.",
        sentences=["Sleep in mice.", "A trial.", "Mice sleep.", "We asked why.", "They were tired."],
        sections=[("Abstract > BACKGROUND", 2), ("Abstract", 4)],
        file="a.xml",
        position=3,
        num_words=13,
        num_characters=14 + 8 + 11 + 13 + 16,
        removed_characters={},
    )


def test_without_titles_the_text_is_the_abstract_and_the_title_stays_beside_it() -> None:
    found = shaped(GOOD, PubMedConfig(titles=False))
    assert found.title == "Sleep in mice. A trial."
    assert found.sentences == ["Mice sleep.", "We asked why.", "They were tired."]
    assert found.sections == [("Abstract > BACKGROUND", 0), ("Abstract", 2)]
    assert (found.num_words, found.num_characters) == (8, 11 + 13 + 16)


def test_section_labels_begin_the_text_on_demand() -> None:
    found = shaped(GOOD, PubMedConfig(section_labels=True, titles=False))
    assert found.sentences == ["BACKGROUND: Mice sleep.", "We asked why.", "They were tired."]
    assert found.sections == [("Abstract > BACKGROUND", 0), ("Abstract", 2)]
    assert found.num_words == 9


def test_empty_sections_leave_no_trace() -> None:
    sections = (
        AbstractSection("AIM", " \n"),
        AbstractSection("RESULTS", "It worked."),
        AbstractSection("END", ""),
    )
    found = shaped(citation(abstract=sections), PubMedConfig(section_labels=True))
    assert found.sections == [("Abstract > RESULTS", 2)]
    assert found.sentences[2:] == ["RESULTS: It worked."]


def test_white_space_of_every_kind_becomes_single_blanks() -> None:
    sections = (AbstractSection("MAIN\n OUTCOME", "It\u00a0was\tso.\r\n  Then\u2028not."),)
    found = shaped(citation(title=" A\n\ttitle ", abstract=sections))
    assert found.title == "A title"
    assert found.sentences == ["A title", "It was so.", "Then not."]
    assert found.sections == [("Abstract > MAIN OUTCOME", 1)]


def test_a_record_without_languages_has_none() -> None:
    assert shaped(citation(languages=())).language is None
    assert shaped(citation(languages=("eng",))).language == "eng"


ANY = st.characters(exclude_characters="\x0b\x0c\x1c\x1d\x1e\x1f", exclude_categories=["Cs"])
"""All characters but the white space that XML forbids."""
TEXTS = st.lists(
    st.sampled_from(
        [
            "We ",
            "saw 3. ",
            "Fig. 2 ",
            "it.",
            " ",
            "\n",
            "\u00a0",
            "(",
            ") ",
            "? ",
            "Ω",
            "e.g. ",
            "\x07",
            "p<.05",
        ]
    )
    | st.text(ANY, max_size=5),
    max_size=15,
).map("".join)
LABELS = st.none() | TEXTS.filter(str.strip).map(str.strip)
SECTIONS = st.lists(st.builds(AbstractSection, LABELS, TEXTS), max_size=5).map(tuple)


@settings(PROFILE, max_examples=400)
@given(TEXTS, SECTIONS, st.booleans(), st.booleans())
def test_counts_and_sections_are_those_of_the_sentences(
    title: str, sections: tuple[AbstractSection, ...], titles: bool, labels: bool
) -> None:
    rules = PubMedConfig(titles=titles, section_labels=labels, cleaning=())
    found = shaped(citation(title=title, abstract=sections), rules)
    assert found.title == " ".join(title.split())
    assert found.num_words == sum(len(sentence.split()) for sentence in found.sentences)
    assert found.num_characters == sum(len(sentence) for sentence in found.sentences)
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in found.sentences)
    printed = [section for section in sections if section.text.split()]
    assert [heading for heading, _ in found.sections] == [
        "Abstract"
        if section.label is None
        else HEADING_SEPARATOR.join(["Abstract", collapse_whitespace(section.label)])
        for section in printed
    ]
    borders = [first for _, first in found.sections] + [len(found.sentences)]
    assert " ".join(found.sentences[: borders[0]]) == (found.title if titles else "")
    for section, (start, end) in zip(printed, pairwise(borders), strict=True):
        words = section.text.split()
        if labels and section.label is not None:
            words = (section.label + ":").split() + words
        assert " ".join(found.sentences[start:end]).split() == words


@settings(PROFILE, max_examples=300)
@given(TEXTS | st.text(ANY))
def test_one_line_is_what_splitting_and_joining_gives(text: str) -> None:
    assert collapse_whitespace(text) == " ".join(text.split())


@settings(PROFILE, max_examples=200)
@given(SECTIONS, TEXTS, st.integers(0, 30))
def test_abstracts_are_short_or_absent_by_their_own_words(
    sections: tuple[AbstractSection, ...], title: str, bound: int
) -> None:
    words = sum(len(section.text.split()) for section in sections)
    expected = "no-abstract" if title.split() else "no-text"
    if words:
        expected = "short-abstract" if words < bound else ""
    assert reason(
        citation(abstract=sections, title=title), PubMedConfig(min_abstract_words=bound, cleaning=())
    ) == (expected or None)


# The rules themselves


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"min_pmid": -1}, "min_pmid is -1"),
        ({"min_abstract_words": -5}, "min_abstract_words is -5"),
        ({"min_line_characters": -1}, "min_line_characters is -1"),
        ({"cleaning": ("x",)}, "cleaning is x; it must be some of these"),
        ({"cleaning": CLEANING_RULES[1::-1]}, "in this order"),
        ({"splitter": "nltk"}, "splitter is nltk; it must be one of rules, scispacy, none"),
        ({"keep_title_only": True, "titles": False}, "titles are left out"),
        ({"keep_title_only": True, "min_abstract_words": 1}, "min_abstract_words drops them"),
    ],
)
def test_rules_that_contradict_themselves_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PubMedConfig(**wrong)


def test_rules_cannot_be_changed_later() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PubMedConfig().titles = False  # type: ignore[misc]


def test_rules_are_plain_data_for_a_manifest() -> None:
    plain = PubMedConfig(languages=("eng", "ger"), min_pmid=5).to_dict()
    assert plain == {
        "languages": ["eng", "ger"],
        "min_abstract_words": 0,
        "min_pmid": 5,
        "drop_publication_types": [],
        "drop_retracted": False,
        "keep_title_only": False,
        "titles": True,
        "section_labels": False,
        "cleaning": list(CLEANING_RULES),
        "splitter": "rules",
        "lower_case": False,
        "ascii_only": False,
        "treebank": False,
        "min_line_characters": 0,
    }
    assert json.loads(json.dumps(plain)) == plain


def test_the_presets_are_the_papers_numbers() -> None:
    assert {name: rules.to_dict() for name, rules in PUBMED_PRESETS.items()} == {
        "bioalbert": PubMedConfig().to_dict() | {"cleaning": [], "min_line_characters": 20},
        "electramed": PubMedConfig().to_dict()
        | {"cleaning": [], "lower_case": True, "ascii_only": True, "treebank": True},
        "bio-electra": PubMedConfig().to_dict() | {"min_pmid": 10_000_000},
        "pubmedbert": PubMedConfig().to_dict() | {"min_abstract_words": 128, "titles": False},
    }
