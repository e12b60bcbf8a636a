"""The rules of a corpus of full text: which articles become documents, and for what reason others do not.

A drop without the right reason makes a corpus nobody can account for, and a licence that is let through by
mistake cannot be taken back; so the order of reasons is walked through one by one.
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import pytest

from bioshards.corpus.jats.article_metadata import ArticleMetadata
from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder
from bioshards.corpus.jats.filters import (
    DEFAULT_ARTICLE_PARTS,
    DROPPED_PART_PREFIX,
    OPTIONAL_ARTICLE_PARTS,
    PmcConfig,
    find_drop_reason,
)
from bioshards.corpus.jats.section_walker import TextBlock
from bioshards.corpus.jats.text_blocks import ARTICLE_PARTS
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES
from bioshards.corpus.text.cleaning import CLEANING_RULES
from tests.support.corpus.small_articles import ACCEPTED_ARTICLE

BLOCKS = [TextBlock("title", (), "Sleep."), TextBlock("body", ("Methods",), "One two three four five.")]


def reason(
    front: ArticleMetadata, rules: PmcConfig, blocks: list[TextBlock] = BLOCKS, has_body: bool = True
) -> str | None:
    """Return the drop reason of an article, as jats/reader.py finds it."""
    shaper = ArticleDocumentBuilder(rules)
    return (
        find_drop_reason(front, has_body, rules)
        or shaper.build_document(front, has_body, blocks, "a.xml", 0)[0]
    )


def test_the_reasons_are_asked_in_the_order_in_which_they_are_listed() -> None:
    rules = PmcConfig(drop_article_types=("letter",), drop_retracted=True, min_words=6)
    front = ACCEPTED_ARTICLE._replace(
        licence="CC-BY-NC", language="fre", article_type="letter", retracted=True, ocr=True, manuscript=True
    )
    has_body, blocks = False, BLOCKS[:1]
    seen = [reason(front, rules, blocks, has_body)]
    for mend in (
        {"licence": "CC-BY"},
        {"language": "eng"},
        {"article_type": "editorial"},
        {"retracted": False},
        {"ocr": False},
    ):
        front = front._replace(**mend)
        seen.append(reason(front, rules, blocks, has_body))
    seen.append(reason(front, rules, blocks, has_body=True))
    seen.append(reason(front, rules, [*blocks, TextBlock("body", (), "One two three four.")]))
    seen.append(reason(front, rules, [*blocks, TextBlock("body", (), "One two three four five.")]))
    assert seen == [*PmcConfig.drop_reasons[1:-2], None]


def test_the_reasons_decided_elsewhere_come_first_and_last() -> None:
    assert PmcConfig.drop_reasons[0] == "superseded"
    assert PmcConfig.drop_reasons[-2:] == ("duplicate", "excluded")
    assert len(set(PmcConfig.drop_reasons)) == len(PmcConfig.drop_reasons)


def test_the_newest_version_is_the_highest() -> None:
    assert PmcConfig().highest_version_wins


@pytest.mark.parametrize("licence", [None, *LICENCES])
def test_by_default_the_licence_must_permit_all_to_anybody(licence: str | None) -> None:
    expected = None if licence in {"CC0", "CC-BY", "CC-BY-SA"} else "licence"
    assert reason(ACCEPTED_ARTICLE._replace(licence=licence), PmcConfig()) == expected


@pytest.mark.parametrize("licence", [None, *LICENCES])
def test_any_licence_can_be_asked_for_and_none_is_unknown(licence: str | None) -> None:
    code = licence or "unknown"
    assert reason(ACCEPTED_ARTICLE._replace(licence=licence), PmcConfig(licences=(code,))) is None
    others = tuple(name for name in LICENCES if name != code)
    assert reason(ACCEPTED_ARTICLE._replace(licence=licence), PmcConfig(licences=others)) == "licence"


def test_a_licence_nobody_knows_is_none_of_those_asked_for() -> None:
    assert (
        reason(ACCEPTED_ARTICLE._replace(licence="CC-BY-XX"), PmcConfig(licences=tuple(LICENCES)))
        == "licence"
    )


def test_articles_in_english_are_kept_and_others_on_demand() -> None:
    french = ACCEPTED_ARTICLE._replace(language="fre")
    assert reason(french, PmcConfig()) == "language"
    assert reason(french, PmcConfig(languages=("eng", "fre"))) is None
    assert reason(french, PmcConfig(languages=())) is None
    assert reason(ACCEPTED_ARTICLE, PmcConfig(languages=("fre",))) == "language"


@pytest.mark.parametrize("types", [("Research-Article",), ("letter", "research-article")])
def test_article_types_are_dropped_in_whatever_case_they_are_given(types: tuple[str, ...]) -> None:
    assert reason(ACCEPTED_ARTICLE, PmcConfig(drop_article_types=types)) == "article-type"
    assert reason(ACCEPTED_ARTICLE._replace(article_type=None), PmcConfig(drop_article_types=types)) is None


def test_retracted_articles_are_dropped_on_demand_only() -> None:
    retracted = ACCEPTED_ARTICLE._replace(retracted=True)
    assert reason(retracted, PmcConfig()) is None
    assert reason(retracted, PmcConfig(drop_retracted=True)) == "retracted"


def test_scanned_pages_are_kept_on_demand_only() -> None:
    scanned = ACCEPTED_ARTICLE._replace(ocr=True)
    assert reason(scanned, PmcConfig()) == "ocr"
    assert reason(scanned, PmcConfig(keep_ocr=True)) is None


def test_articles_without_a_body_are_kept_on_demand_only() -> None:
    abstract = [*BLOCKS[:1], TextBlock("abstract", ("Abstract",), "We slept.")]
    assert reason(ACCEPTED_ARTICLE, PmcConfig(), abstract, has_body=False) == "no-body"
    assert reason(ACCEPTED_ARTICLE, PmcConfig(keep_abstract_only=True), abstract, has_body=False) is None
    assert (
        reason(ACCEPTED_ARTICLE, PmcConfig(keep_abstract_only=True), BLOCKS[:1], has_body=False) == "no-text"
    )


@pytest.mark.parametrize("blocks", [[], BLOCKS[:1], [TextBlock("sub-article", (), "Well done.")]])
def test_a_title_alone_and_what_is_left_out_are_no_text(blocks: list[TextBlock]) -> None:
    assert reason(ACCEPTED_ARTICLE, PmcConfig(), blocks) == "no-text"


@pytest.mark.parametrize(
    ("bound", "titles", "expected"), [(6, True, None), (7, True, "short"), (6, False, "short")]
)
def test_words_are_counted_with_the_title_where_it_is_text(
    bound: int, titles: bool, expected: str | None
) -> None:
    assert reason(ACCEPTED_ARTICLE, PmcConfig(min_words=bound, titles=titles)) == expected
    assert reason(ACCEPTED_ARTICLE, PmcConfig(min_words=5, titles=False)) is None


# The rules themselves


def test_the_parts_are_those_of_an_article_and_the_default_is_what_its_authors_say_in_its_language() -> None:
    assert ARTICLE_PARTS[1:] == OPTIONAL_ARTICLE_PARTS
    assert set(ARTICLE_PARTS) - set(DEFAULT_ARTICLE_PARTS) == {
        "title",
        "other-abstract",
        "translated-abstract",
        "sub-article",
    }
    assert PmcConfig().parts == DEFAULT_ARTICLE_PARTS


def test_the_default_licences_are_the_downloads() -> None:
    assert set(PmcConfig().licences) == DEFAULT_LICENCES


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"min_words": -1}, "min_words is -1; it cannot be below 0"),
        ({"min_line_characters": -1}, "min_line_characters is -1"),
        ({"licences": ()}, "no article would be kept"),
        ({"licences": ("CC-BY", "CC0")}, "licences is CC-BY, CC0; it must be some of these, in this order"),
        ({"licences": ("cc-by",)}, "licences is cc-by"),
        ({"licences": ("CC-BY", "CC-BY")}, "licences is CC-BY, CC-BY"),
        ({"parts": ("title",)}, "parts is title; it must be some of these, in this order: abstract"),
        ({"parts": ("body", "abstract")}, "in this order"),
        ({"cleaning": ("x",)}, "cleaning is x"),
        ({"splitter": "nltk"}, "splitter is nltk"),
    ],
)
def test_rules_that_make_no_sense_are_refused(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PmcConfig(**wrong)


def test_rules_cannot_be_changed_later() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        PmcConfig().titles = False  # type: ignore[misc]


def test_rules_are_plain_data_for_a_manifest() -> None:
    plain = PmcConfig(drop_article_types=("letter",), min_words=5, formula_placeholder="[FORMULA]").to_dict()
    assert plain == {
        "languages": ["eng"],
        "drop_retracted": False,
        "titles": True,
        "section_labels": False,
        "cleaning": list(CLEANING_RULES),
        "splitter": "rules",
        "lower_case": False,
        "ascii_only": False,
        "treebank": False,
        "min_line_characters": 0,
        "licences": [code for code in LICENCES if code in DEFAULT_LICENCES],
        "parts": list(DEFAULT_ARTICLE_PARTS),
        "min_words": 5,
        "drop_article_types": ["letter"],
        "keep_ocr": False,
        "keep_abstract_only": False,
        "author_year_citations": True,
        "formula_placeholder": "[FORMULA]",
    }
    assert json.loads(json.dumps(plain)) == plain


def test_what_may_be_removed_is_named_for_the_counts() -> None:
    rules = PmcConfig(parts=("body",), cleaning=("nfc",), ascii_only=True)
    assert rules.removal_names() == (
        "nfc",
        "ascii-only",
        *(f"{DROPPED_PART_PREFIX}{part}" for part in ARTICLE_PARTS if part not in ("title", "body")),
    )
    assert PmcConfig(parts=OPTIONAL_ARTICLE_PARTS).removal_names() == CLEANING_RULES
