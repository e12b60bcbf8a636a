"""The filters of full-text articles: each drop reason, the order of the reasons, and the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from bioshards.corpus.document import ArticleColumns
from bioshards.corpus.jats.article_metadata import ArticleMetadata
from bioshards.corpus.jats.document_builder import ArticleDocumentBuilder
from bioshards.corpus.jats.filters import (
    ARTICLE_PARTS,
    DEFAULT_ARTICLE_PARTS,
    DROPPED_PART_PREFIX,
    NOTE_PARTS,
    OPTIONAL_ARTICLE_PARTS,
    REFERENCES_PART,
    PmcConfig,
    find_drop_reason,
)
from bioshards.corpus.jats.paragraph_roles import TextBlock
from bioshards.corpus.licences import DEFAULT_LICENCES, LICENCES
from bioshards.corpus.text.cleaning import CLEANING_RULES
from tests.support.corpus.small_articles import ACCEPTED_ARTICLE

BLOCKS = [TextBlock("title", (), "Sleep."), TextBlock("body", ("Methods",), "One two three four five.")]


def get_drop_reason(
    metadata: ArticleMetadata, config: PmcConfig, blocks: list[TextBlock] = BLOCKS, has_body: bool = True
) -> str | None:
    """Return the drop reason of an article, as jats/reader.py determines it."""
    builder = ArticleDocumentBuilder(config)
    return (
        find_drop_reason(metadata, has_body, config)
        or builder.build_document(metadata, has_body, blocks, "a.xml", 0)[0]
    )


FRENCH = (
    "Les souris ont dormi dans des cages pendant la nuit et le sommeil a été mesuré par une caméra. Dans le "
    "groupe sans sucre, la durée du sommeil est plus courte que celle des autres souris au réveil."
)
"""An invented paragraph."""


def test_drop_reasons_apply_in_their_order() -> None:
    config = PmcConfig(
        published=("2000", "2010"),
        drop_journals=("j rest",),
        drop_article_types=("letter",),
        drop_retracted=True,
        min_words=6,
        max_words=7,
    )
    metadata = ACCEPTED_ARTICLE._replace(
        licence="CC-BY-NC",
        language="fre",
        journal="J Rest",
        article_type="letter",
        retracted=True,
        ocr=True,
        manuscript=True,
    )
    has_body, blocks = False, BLOCKS[:1]
    reasons = [get_drop_reason(metadata, config, blocks, has_body)]
    for changes in (
        {"licence": "CC-BY"},
        {"language": "eng"},
        {"columns": ArticleColumns(published="2010")},
        {"journal": "J Sleep"},
        {"article_type": "editorial"},
        {"retracted": False},
        {"ocr": False},
    ):
        metadata = metadata._replace(**changes)
        reasons.append(get_drop_reason(metadata, config, blocks, has_body))
    reasons.append(get_drop_reason(metadata, config, blocks, has_body=True))
    reasons.append(get_drop_reason(metadata, config, [*blocks, TextBlock("body", (), FRENCH)]))
    reasons.append(get_drop_reason(metadata, config, [*blocks, TextBlock("body", (), "One two three four.")]))
    for text in ("One two three four five six seven.", "One two three four five."):
        reasons.append(get_drop_reason(metadata, config, [*blocks, TextBlock("body", (), text)]))
    assert reasons == [*PmcConfig.drop_reasons[3:-4], None]
    assert PmcConfig.drop_reasons[:3] == ("superseded", "superseded-by-date", "copy"), "those of other steps"
    assert PmcConfig.drop_reasons[-4:] == ("not-included", "duplicate", "near-duplicate", "excluded")


@pytest.mark.parametrize("licence", [None, *LICENCES])
def test_licences_option_and_the_code_unknown(licence: str | None) -> None:
    code, metadata = licence or "unknown", ACCEPTED_ARTICLE._replace(licence=licence)
    by_default = None if licence in {"CC0", "CC-BY", "CC-BY-SA"} else "licence"
    assert get_drop_reason(metadata, PmcConfig()) == by_default
    assert get_drop_reason(metadata, PmcConfig(licences=(code,))) is None
    others = tuple(name for name in LICENCES if name != code)
    assert get_drop_reason(metadata, PmcConfig(licences=others)) == "licence"


FRENCH_ARTICLE = {"language": "fre"}


PUBLISHED = {"issns": ("9990-0011",), "columns": ArticleColumns(published="2019-07-01")}


@pytest.mark.parametrize(
    ("metadata", "options", "reason"),
    [
        ({"licence": "CC-BY-XX"}, {"licences": tuple(LICENCES)}, "licence"),
        (FRENCH_ARTICLE, {}, "language"),
        (FRENCH_ARTICLE, {"languages": ("eng", "fre")}, None),
        (FRENCH_ARTICLE, {"languages": ()}, None),
        ({}, {"languages": ("fre",)}, "language"),
        ({}, {"languages": (), "drop_languages": ("eng",)}, "language"),
        ({}, {"drop_languages": ("fre",)}, None),
        ({}, {"drop_article_types": ("Research-Article",)}, "article-type"),
        ({}, {"drop_article_types": ("letter", "research-article")}, "article-type"),
        ({"article_type": None}, {"drop_article_types": ("letter",)}, None),
        ({}, {"article_types": ("research-article",)}, None),
        ({}, {"article_types": ("letter",)}, "article-type"),
        ({"retracted": True}, {}, None),
        ({"retracted": True}, {"drop_retracted": True}, "retracted"),
        ({"ocr": True}, {}, "ocr"),
        ({"ocr": True}, {"keep_ocr": True}, None),
        (PUBLISHED, {"published": ("2019", "2019")}, None),
        (PUBLISHED, {"published": ("2020", "")}, "year"),
        ({}, {"journals": ("journal of rest",)}, None),
        ({}, {"journals": ("j rest",)}, "journal"),
        (PUBLISHED, {"drop_journals": ("9990-0011",)}, "journal"),
        # The title counts if titles are included.
        ({}, {"min_words": 6}, None),
        ({}, {"min_words": 7}, "short"),
        ({}, {"min_words": 6, "titles": False}, "short"),
        ({}, {"min_words": 5, "titles": False}, None),
    ],
)
def test_filters_that_keep_and_drop(
    metadata: dict[str, Any], options: dict[str, Any], reason: str | None
) -> None:
    assert get_drop_reason(ACCEPTED_ARTICLE._replace(**metadata), PmcConfig(**options)) == reason


ABSTRACT = TextBlock("abstract", ("Abstract",), "We slept.")


@pytest.mark.parametrize(
    ("blocks", "has_body", "options", "reason"),
    [
        ([BLOCKS[0], ABSTRACT], False, {}, "no-body"),
        ([BLOCKS[0], ABSTRACT], False, {"keep_abstract_only": True}, None),
        (BLOCKS[:1], False, {"keep_abstract_only": True}, "no-text"),
        ([], True, {}, "no-text"),
        (BLOCKS[:1], True, {}, "no-text"),
        ([TextBlock("sub-article", (), "Well done.")], True, {}, "no-text"),
    ],
)
def test_articles_without_text_are_dropped(
    blocks: list[TextBlock], has_body: bool, options: dict[str, Any], reason: str | None
) -> None:
    assert get_drop_reason(ACCEPTED_ARTICLE, PmcConfig(**options), blocks, has_body) == reason


def test_language_of_the_text_decides_where_none_or_english_is_declared() -> None:
    blocks = [*BLOCKS[:1], TextBlock("body", (), FRENCH)]
    for declared in (None, "eng"):
        metadata = ACCEPTED_ARTICLE._replace(language=declared)
        builder = ArticleDocumentBuilder(PmcConfig(languages=()))
        assert builder.build_document(metadata, True, blocks, "a.xml", 0)[1].language == "fre"
        assert get_drop_reason(metadata, PmcConfig(), blocks) == "language-of-text"
        assert get_drop_reason(metadata, PmcConfig(languages=("fre",)), blocks) == (
            "language" if declared else None
        )
        assert get_drop_reason(metadata, PmcConfig(languages=()), blocks) is None
        assert get_drop_reason(metadata, PmcConfig(), BLOCKS) is None
    undeclared = ACCEPTED_ARTICLE._replace(language=None)
    assert get_drop_reason(undeclared, PmcConfig(languages=("fre",)), BLOCKS) == "language-of-text"
    assert get_drop_reason(undeclared, PmcConfig(languages=(), drop_languages=("eng",))) == "language-of-text"
    german = ACCEPTED_ARTICLE._replace(language="ger")
    assert get_drop_reason(german, PmcConfig(languages=("ger",)), blocks) is None


def test_unknown_article_type_is_said() -> None:
    assert PmcConfig(drop_article_types=("Correction", "letter")).describe_unknown_values() == []
    assert PmcConfig(drop_article_types=("corrections", "xq")).describe_unknown_values() == [
        "--drop-article-types: corrections is no type that JATS or PMC suggest (did you mean correction?). "
        "Articles of exactly this type are dropped",
        "--drop-article-types: xq is no type that JATS or PMC suggest. Articles of exactly this type are "
        "dropped",
    ]


# The configuration


def test_default_article_parts() -> None:
    assert ARTICLE_PARTS[1:] == OPTIONAL_ARTICLE_PARTS
    assert set(ARTICLE_PARTS) - set(DEFAULT_ARTICLE_PARTS) == {
        "title",
        "other-abstract",
        "translated-abstract",
        "sub-article",
    }
    assert PmcConfig().parts == DEFAULT_ARTICLE_PARTS


def test_default_licences_equal_those_of_the_download() -> None:
    assert set(PmcConfig().licences) == DEFAULT_LICENCES


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"min_words": -1}, "min_words is -1; it cannot be below 0"),
        ({"drop_languages": ("eng",)}, "drop_languages has eng, which languages keeps"),
        ({"licences": ()}, "no article would be kept"),
        ({"licences": ("CC-BY", "CC0")}, "licences is CC-BY, CC0; it must be some of these, in this order"),
        ({"licences": ("cc-by",)}, "licences is cc-by"),
        ({"parts": ("title",)}, "parts is title; it must be some of these, in this order: abstract"),
    ],
)
def test_invalid_config_raises(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PmcConfig(**options)


def test_removal_names() -> None:
    config = PmcConfig(parts=("body",), cleaning=("nfc",), ascii_only=True)
    assert config.removal_names() == (
        "nfc",
        "ascii-only",
        *(f"{DROPPED_PART_PREFIX}{part}" for part in ARTICLE_PARTS if part not in ("title", "body")),
        *(f"{DROPPED_PART_PREFIX}{part}" for part in (*NOTE_PARTS, REFERENCES_PART)),
    )
    names = PmcConfig(parts=OPTIONAL_ARTICLE_PARTS, keep_notes=True).removal_names()
    assert names == (*CLEANING_RULES, f"{DROPPED_PART_PREFIX}{REFERENCES_PART}")
