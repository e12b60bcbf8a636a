"""The filters of citations, and the sentences, sections and counts of the documents built from them."""

from __future__ import annotations

import re
from argparse import ArgumentTypeError
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.document import (
    DEFAULT_COLUMNS,
    HEADING_SEPARATOR,
    ArticleColumns,
    Document,
    MeshHeading,
)
from bioshards.corpus.document_presets import PUBMED_PRESETS
from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.pubmed.citation import AbstractSection, Citation, OtherAbstract
from bioshards.corpus.pubmed.documents import CitationDocumentBuilder
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.sentences import collapse_whitespace
from bioshards.corpus.shards.document_schema import COLUMN_TYPES
from bioshards.corpus.text.cleaning import CLEANING_RULES
from bioshards.corpus.text_config import ISSNS, parse_columns, parse_date_range, parse_names
from tests.support.hypothesis_profiles import examples

CITATION = Citation(
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


def build_citation(**changes: Any) -> Citation:
    return CITATION._replace(**changes)


def get_drop_reason(citation: Citation, config: PubMedConfig) -> str | None:
    return CitationDocumentBuilder(config).build_document(citation, "a.xml", 0)[0]


def build_document(citation: Citation, config: PubMedConfig | None = None) -> Document:
    return CitationDocumentBuilder(config or PubMedConfig()).build_document(citation, "a.xml", 3)[1]


# Drop reasons


FRENCH = (
    "Les souris ont dormi dans des cages pendant la nuit et le sommeil a été mesuré par une caméra. Dans le "
    "groupe sans sucre, la durée du sommeil est plus courte que celle des autres souris au réveil."
)
"""An invented abstract."""


def test_drop_reasons_apply_in_their_order() -> None:
    config = PubMedConfig(
        min_pmid=100,
        published=("2000", "2010"),
        drop_journals=("j rest",),
        mesh=("mice",),
        languages=("eng",),
        drop_publication_types=("Review",),
        drop_retracted=True,
        min_abstract_words=5,
        min_words=8,
        max_words=10,
    )
    fields: dict[str, Any] = {
        "pmid": 99,
        "journal": "J Rest",
        "languages": ("fre",),
        "publication_types": ("Journal Article", "Review"),
        "retracted": True,
        "title": " \n",
        "abstract": (AbstractSection("AIM", " "),),
    }
    steps: list[dict[str, Any]] = [
        {"pmid": 100},
        {"columns": ArticleColumns(published="2010")},
        {"journal": "J Sleep"},
        {"columns": ArticleColumns(published="2010", mesh=(MeshHeading("Mice", None, False, ()),))},
        {"languages": ("fre", "eng")},
        {"publication_types": ("Journal Article",)},
        {"retracted": False},
        {"title": "A title.", "abstract": (AbstractSection(None, "No abstract available."),)},
        {"abstract": (AbstractSection("AIM", " "),)},
        {"abstract": (AbstractSection("AIM", FRENCH),)},
        {"abstract": (AbstractSection("AIM", "One two three four."),)},
        {"abstract": (AbstractSection("AIM", "One two three four."), AbstractSection(None, "Five."))},
        {"title": "A title of six words here."},
        {"title": "A title of words."},
    ]
    reasons = []
    for changes in [{}, *steps]:
        fields |= changes
        reasons.append(get_drop_reason(build_citation(**fields), config))
    assert reasons == [*PubMedConfig.drop_reasons[3:-4], None]
    assert PubMedConfig.drop_reasons[:3] == ("deleted", "superseded", "book"), "those of other steps"
    assert PubMedConfig.drop_reasons[-3:] == ("duplicate", "near-duplicate", "excluded")


def test_abstract_in_another_language_is_dropped_if_languages_are_selected() -> None:
    half = len(FRENCH) // 2
    for languages in (("eng",), ("fre", "eng")):
        citation = build_citation(
            languages=languages,
            abstract=(AbstractSection("BUT", FRENCH[:half]), AbstractSection(None, FRENCH[half:])),
        )
        assert get_drop_reason(citation, PubMedConfig(languages=("eng",))) == "language-of-text"
        assert get_drop_reason(citation, PubMedConfig(languages=("eng", "fre"))) is None
        assert get_drop_reason(citation, PubMedConfig()) is None
    citation = citation._replace(languages=("eng",))
    assert get_drop_reason(citation, PubMedConfig(drop_languages=("fre",))) == "language-of-text"
    assert get_drop_reason(citation, PubMedConfig(drop_languages=("ger",))) is None
    english = build_citation(
        languages=("fre",), abstract=(AbstractSection(None, "Some mice slept well. " * 20),)
    )
    assert get_drop_reason(english, PubMedConfig(languages=("fre",))) is None


def test_language_codes_of_any_case_are_one_language() -> None:
    shouted = build_citation(languages=("ENG", "fra"))
    for code in ("eng", "fre"):
        assert get_drop_reason(shouted, PubMedConfig(languages=(code,))) is None
    assert build_document(shouted).language == "eng,fre"


@pytest.mark.parametrize(("min_abstract_words", "expected"), [(7, None), (8, None), (9, "short-abstract")])
def test_min_abstract_words_excludes_labels_and_title(min_abstract_words: int, expected: str | None) -> None:
    for labels in (False, True):
        assert (
            get_drop_reason(
                CITATION, PubMedConfig(min_abstract_words=min_abstract_words, section_labels=labels)
            )
            == expected
        )


def test_dropped_document_is_complete() -> None:
    drop_reason, dropped = CitationDocumentBuilder(PubMedConfig(languages=("ger",))).build_document(
        CITATION, "a.xml", 3
    )
    assert drop_reason == "language"
    assert dropped == build_document(CITATION)


JOURNAL = {
    "journal": "Journal of Rest (London, England)",
    "issns": ("9990-0033",),
    "columns": ArticleColumns(
        published="2019-07",
        journal_abbreviation="J Rest",
        nlm_id="101",
        mesh=(MeshHeading("Mice", "D1", False, ()), MeshHeading("Sleep, REM", "D2", True, ())),
    ),
}


ERRATUM = {"publication_types": ("Published Erratum",)}


@pytest.mark.parametrize(
    ("changes", "options", "reason"),
    [
        ({}, {}, None),
        ({"retracted": True, "languages": (), "title": "", "pmid": 1}, {}, None),
        ({"abstract": ()}, {}, "no-abstract"),
        ({"abstract": (AbstractSection("AIM", "\n"),)}, {}, "no-abstract"),
        ({"abstract": ()}, {"keep_title_only": True}, None),
        ({"abstract": (), "title": " "}, {"keep_title_only": True}, "no-text"),
        # Any of the languages is sufficient.
        ({}, {"languages": ("ger", "fre")}, None),
        ({}, {"languages": ("ger",)}, "language"),
        ({"languages": ()}, {"languages": ("eng",)}, "language"),
        ({}, {"drop_languages": ("fre",)}, "language"),
        ({}, {"languages": ("eng",), "drop_languages": ("fre",)}, "language"),
        ({}, {"drop_languages": ("ger",)}, None),
        # Types of any case, and any of them.
        *(
            (
                {"publication_types": (kind,)},
                {"drop_publication_types": ("Published Erratum",)},
                "publication-type",
            )
            for kind in ("published erratum", "PUBLISHED ERRATUM")
        ),
        *(
            (ERRATUM, {"drop_publication_types": (kind,)}, "publication-type")
            for kind in ("published erratum", "PUBLISHED ERRATUM")
        ),
        ({}, {"drop_publication_types": ("Letter", "Review")}, "publication-type"),
        ({}, {"drop_publication_types": ("Letter",)}, None),
        ({}, {"publication_types": ("review",)}, None),
        ({}, {"publication_types": ("Letter",)}, "publication-type"),
        (
            {},
            {"publication_types": ("Review",), "drop_publication_types": ("Journal Article",)},
            "publication-type",
        ),
        ({"retracted": True}, {}, None),
        ({"retracted": True}, {"drop_retracted": True}, "retracted"),
        ({}, {"min_pmid": 12_345_678}, None),
        ({}, {"min_pmid": 12_345_679}, "below-min-pmid"),
        ({}, {"min_words": 13}, None),
        ({}, {"min_words": 14}, "short"),
        ({}, {"max_words": 13}, None),
        ({}, {"max_words": 12}, "long"),
        *(
            (JOURNAL, options, reason)
            for options, reason in (
                ({"published": parse_date_range("2019")}, None),
                ({"published": parse_date_range("2010:")}, None),
                ({"published": parse_date_range(":2018")}, "year"),
                ({"journals": parse_names("other; journal of rest (london, England)")}, None),
                ({"journals": parse_names("J Rest")}, None),
                ({"journals": ("other",)}, "journal"),
                ({"drop_journals": ("9990-0033",)}, "journal"),
                ({"drop_journals": ("101",)}, "journal"),
                ({"drop_journals": ("other",)}, None),
                ({"mesh": parse_names("Sleep, REM")}, None),
                ({"mesh": parse_names("Sleep; REM")}, "mesh"),
                ({"drop_mesh": parse_names("Humans; Mice")}, "mesh"),
                ({"drop_mesh": parse_names("Humans")}, None),
            )
        ),
    ],
)
def test_filters_that_keep_and_drop(
    changes: dict[str, Any], options: dict[str, Any], reason: str | None
) -> None:
    config = PubMedConfig(**options)
    assert get_drop_reason(build_citation(**changes), config) == reason
    assert set(DEFAULT_COLUMNS) <= config.list_parsed_columns()


def test_titles_alone_retractions_and_no_language_in_documents() -> None:
    title_only = build_document(build_citation(abstract=()), PubMedConfig(keep_title_only=True))
    assert title_only.sentences == ["Sleep in mice.", "A trial."]
    assert build_document(build_citation(retracted=True)).retracted
    assert build_document(build_citation(languages=())).language is None
    assert build_document(build_citation(languages=("eng",))).language == "eng"


def test_filters_parse_what_they_need_without_the_column() -> None:
    assert PubMedConfig(columns=()).list_parsed_columns() == set()
    config = PubMedConfig(columns=(), mesh=("mice",), journals=("a",))
    assert config.list_parsed_columns() == {"mesh", "journal_abbreviation", "nlm_id", ISSNS}


@pytest.mark.parametrize(
    "dates",
    [
        "",
        ":",
        "99",
        "2001:1999",
        "2001-1999",
        "2001-02:2001-01",
        "20012002",
        "x:2000",
        "2001-13",
        "2001-00:",
        "2001-01-32",
        "2001:2002:2003",
    ],
)
def test_bad_dates_are_refused(dates: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"no range of dates|before"):
        parse_date_range(dates)


@pytest.mark.parametrize(
    ("dates", "kept", "dropped"),
    [
        ("2009-01:2020-02", ["2009", "2009-01", "2020-02-29", "2020"], ["2008-12-31", "2020-03", None]),
        ("2009-02:", ["2009-02", "2009-02-01", "2021"], ["2009", "2009-01-31"]),
        (":2018-09-30", ["2018", "2018-09", "2018-09-30", "0999"], ["2018-10", "2018-10-01", "2019"]),
        ("2001", ["2001", "2001-12-31"], ["2000-12", "2002"]),
        ("2001-05:2001-05", ["2001-05", "2001-05-31"], ["2001", "2001-04-30", "2001-06"]),
    ],
)
def test_dates_are_compared_as_precisely_as_the_bounds(
    dates: str, kept: list[str], dropped: list[str | None]
) -> None:
    """A date without month or day counts by its beginning."""
    config = PubMedConfig(published=parse_date_range(dates))
    for date in [*kept, *dropped]:
        citation = build_citation(columns=ArticleColumns(published=date))
        assert get_drop_reason(citation, config) == (None if date in kept else "year"), date


# Documents


def test_document_of_a_citation() -> None:
    assert build_document(CITATION) == Document(
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


def test_sections_have_the_category_of_their_label() -> None:
    """Labels within the text have no category, and sections that are lost no place."""
    citation = build_citation(
        abstract=(
            AbstractSection("AIMS", "Mice sleep."),
            AbstractSection("NOTHING", ""),
            AbstractSection(None, "Methods: We asked why. Results: They were tired."),
        ),
        abstract_categories=("OBJECTIVE", "METHODS", "UNASSIGNED"),
    )
    document = build_document(citation)
    assert [heading for heading, _ in document.sections] == [
        f"Abstract > {label}" for label in ("AIMS", "Methods", "Results")
    ]
    assert document.columns.section_categories == ("OBJECTIVE", None, None)


def test_columns_of_the_command_line() -> None:
    assert parse_columns("default") == DEFAULT_COLUMNS
    assert parse_columns("all") == tuple(COLUMN_TYPES)
    assert parse_columns("none") == ()
    assert parse_columns("MeSH, nlm_id") == ("nlm_id", "mesh")
    with pytest.raises(ArgumentTypeError, match="unknown name keyword"):
        parse_columns("default,keyword")
    with pytest.raises(InvalidValueError, match="in this order"):
        PubMedConfig(columns=("mesh", "nlm_id"))


ANY = st.characters(exclude_characters="\x0b\x0c\x1c\x1d\x1e\x1f", exclude_categories=["Cs"])
"""All characters, except the white space that XML forbids."""
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
OTHER_STOPS = frozenset("。！？．｡।॥؟۔።։။")
SECTIONS = st.lists(st.builds(AbstractSection, LABELS, TEXTS), max_size=5).map(tuple)


@settings(max_examples=examples(400))
@given(TEXTS, SECTIONS, st.booleans(), st.booleans())
def test_counts_and_sections_match_the_sentences(
    title: str, sections: tuple[AbstractSection, ...], titles: bool, labels: bool
) -> None:
    config = PubMedConfig(titles=titles, section_labels=labels, cleaning=())
    document = build_document(build_citation(title=title, abstract=sections), config)
    assert document.title == " ".join(title.split())
    assert document.num_words == sum(len(sentence.split()) for sentence in document.sentences)
    assert document.num_characters == sum(len(sentence) for sentence in document.sentences)
    assert all(sentence and sentence == " ".join(sentence.split()) for sentence in document.sentences)
    non_empty = [section for section in sections if section.text.split()]
    assert [heading for heading, _ in document.sections] == [
        "Abstract"
        if section.label is None
        else HEADING_SEPARATOR.join(["Abstract", collapse_whitespace(section.label)])
        for section in non_empty
    ]
    boundaries = [first for _, first in document.sections] + [len(document.sentences)]
    assert list_words(" ".join(document.sentences[: boundaries[0]])) == list_words(
        document.title if titles else ""
    )
    for section, (start, end) in zip(non_empty, pairwise(boundaries), strict=True):
        words = section.text.split()
        is_number = re.fullmatch(r"(\d\d?[a-z]?|[IVX]{1,4}[ab]?)\.?", " ".join(words)) is not None
        if (labels or is_number) and section.label is not None:
            words = (section.label + ":").split() + words
        assert list_words(" ".join(document.sentences[start:end])) == list_words(" ".join(words))


def list_words(text: str) -> list[str]:
    """Return the words of a text, or its characters if it has a stop after which no blank is needed."""
    return list("".join(text.split())) if OTHER_STOPS.intersection(text) else text.split()


def test_number_keeps_its_label() -> None:
    sections = (AbstractSection("SETTING", "A cage."), AbstractSection("LEVEL OF EVIDENCE", "4."))
    document = build_document(build_citation(title="", abstract=sections), PubMedConfig())
    assert document.sentences == ["A cage.", "LEVEL OF EVIDENCE: 4."]


@settings(max_examples=examples(300))
@given(TEXTS | st.text(ANY))
def test_collapse_whitespace_equals_split_and_join(text: str) -> None:
    assert collapse_whitespace(text) == " ".join(text.split())


@settings(max_examples=examples(200))
@given(SECTIONS, TEXTS, st.integers(0, 30))
def test_drop_reason_depends_on_the_words_of_the_abstract(
    sections: tuple[AbstractSection, ...], title: str, min_abstract_words: int
) -> None:
    words = sum(len(section.text.split()) for section in sections)
    expected = "no-abstract" if title.split() else "no-text"
    if words:
        expected = "short-abstract" if words < min_abstract_words else ""
    assert get_drop_reason(
        build_citation(abstract=sections, title=title),
        PubMedConfig(min_abstract_words=min_abstract_words, cleaning=()),
    ) == (expected or None)


# The configuration


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_pmid": -1}, "min_pmid is -1"),
        ({"min_abstract_words": -5}, "min_abstract_words is -5"),
        ({"languages": ("english",)}, "english"),
        ({"languages": ("ENG",)}, "ENG"),
        ({"languages": ("en",)}, "en"),
        ({"languages": ("xyz",)}, "xyz"),
        ({"min_line_characters": -1}, "min_line_characters is -1"),
        ({"cleaning": ("x",)}, "cleaning is x; it must be some of these"),
        ({"cleaning": CLEANING_RULES[1::-1]}, "in this order"),
        ({"splitter": "nltk"}, "splitter is nltk; it must be one of rules, scispacy, none"),
        ({"other_abstract_types": ("pip",)}, "other_abstract_types is pip; it must be some of AAMC, AIDS"),
        ({"keep_title_only": True, "titles": False}, "titles are left out"),
        ({"min_words": 9, "max_words": 8}, "max_words is 8, below min_words, 9"),
        ({"mesh": ("a", "b"), "drop_mesh": ("b",)}, "drop_mesh has b, which mesh keeps"),
        ({"keep_title_only": True, "min_abstract_words": 1}, "min_abstract_words drops them"),
    ],
)
def test_invalid_config_raises(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PubMedConfig(**options)


def test_presets_have_the_settings_of_the_papers() -> None:
    assert {name: config.to_dict() for name, config in PUBMED_PRESETS.items()} == {
        "bioalbert": PubMedConfig().to_dict() | {"cleaning": [], "min_line_characters": 20},
        "electramed": PubMedConfig().to_dict()
        | {"cleaning": [], "lower_case": True, "ascii_only": True, "treebank": True},
        "bio-electra": PubMedConfig().to_dict() | {"min_pmid": 10_000_000},
        "pubmedbert": PubMedConfig().to_dict() | {"min_abstract_words": 128, "titles": False},
    }


def test_other_abstract_types_option() -> None:
    others = (
        OtherAbstract("Publisher", "ger", (AbstractSection(None, "Mäuse schliefen."),)),
        OtherAbstract("PIP", "eng", (AbstractSection(None, ""),)),
        OtherAbstract("PIP", "eng", (AbstractSection("AIM", "Mice slept."),)),
        OtherAbstract("NASA", "eng", (AbstractSection(None, "Mice flew."),)),
    )
    citation = build_citation(abstract=(), other_abstracts=others)

    def build(*types: str) -> tuple[str | None, list[tuple[str, int]], list[str]]:
        builder = CitationDocumentBuilder(PubMedConfig(titles=False, other_abstract_types=types))
        reason, document = builder.build_document(citation, "f", 0)
        return reason, document.sections, document.sentences

    assert build() == build("KIE") == build("Publisher") == ("no-abstract", [], [])
    assert build("PIP") == (None, [(f"Abstract (PIP){HEADING_SEPARATOR}AIM", 0)], ["Mice slept."])
    assert build("NASA") == (None, [("Abstract (NASA)", 0)], ["Mice flew."])
    assert build("NASA", "PIP")[2] == ["Mice slept."]
    with_abstract = build_citation(other_abstracts=others)
    config = PubMedConfig(other_abstract_types=("PIP",))
    assert build_document(with_abstract, config) == build_document(build_citation())
