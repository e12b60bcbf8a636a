"""Choose the text of an article: its own, or its full translation into a selected language.

SciELO's journals publish articles in Portuguese or Spanish with the whole English text as a ``sub-article``.
The document has the id and metadata of the article either way, so that no text is read twice.
"""

from __future__ import annotations

import copy

from lxml import etree

from bioshards.corpus.jats import text_blocks
from bioshards.corpus.jats.article_metadata import ArticleMetadata
from bioshards.corpus.jats.filters import PmcConfig
from bioshards.corpus.jats.xml_tree import XML_LANG
from bioshards.corpus.languages import to_marc_code


def select_text(
    article: etree._Element, metadata: ArticleMetadata, config: PmcConfig
) -> tuple[etree._Element, ArticleMetadata]:
    """Return the element with the text to read, and the metadata with its language.

    It is a translation if the config selects its language but not the article's.
    """
    if config.translations and not config.selects_language(metadata.language):
        for translation in article.iterfind("sub-article"):
            language = _language_of(translation)
            if (
                (translation.get("article-type") or "").lower() == "translation"
                and config.selects_language(language)
                and text_blocks.has_body(translation)
            ):
                _complete_front(translation, article, language)
                return translation, metadata._replace(language=language, translated=True)
    return article, metadata


def _language_of(element: etree._Element) -> str:
    return to_marc_code((element.get(XML_LANG) or "").strip())


def _complete_front(translation: etree._Element, article: etree._Element, language: str) -> None:
    """Add the translated title and abstract of the article if its translation has none."""
    metadata = article.find("front/article-meta")
    stub = translation.find("front/article-meta")
    if stub is None:
        stub = translation.find("front-stub")
    if stub is None:
        stub = etree.SubElement(translation, "front-stub")
    if metadata is None:
        return
    if not text_blocks.extract_title(stub):
        for group in metadata.iterfind("title-group/trans-title-group"):
            if _language_of(group) == language:
                titles = etree.SubElement(stub, "title-group")
                titles.extend(_copy_as(title, "article-title") for title in group.iterchildren("trans-title"))
                titles.extend(_copy_as(title, "subtitle") for title in group.iterchildren("trans-subtitle"))
    if stub.find("abstract") is None:
        for abstract in metadata.iterfind("trans-abstract"):
            if _language_of(abstract) == language:
                stub.append(_copy_as(abstract, "abstract"))


def _copy_as(element: etree._Element, name: str) -> etree._Element:
    copied = copy.deepcopy(element)
    copied.tag, copied.tail = name, None
    return copied
