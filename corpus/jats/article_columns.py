"""Parse the columns of metadata that JATS has: journal, keywords, authors, grants, references and others."""

from __future__ import annotations

import copy
import re
from collections.abc import Collection
from itertools import chain
from typing import Final

from lxml import etree

from bioshards.corpus.document import AbstractText, ArticleColumns, Author, Grant, parse_orcid
from bioshards.corpus.jats.elements import ChildrenByName, find_child, leading_text, list_texts, one_line_text
from bioshards.corpus.jats.xml_tree import XLINK_HREF, XML_LANG
from bioshards.corpus.languages import to_marc_code

_ABBREVIATION_TYPES: Final = ("iso-abbrev", "nlm-ta")
"""Types of ``journal-id`` with an abbreviation of the title, in order of precedence."""


def parse_columns(
    children: ChildrenByName,
    journal_meta: etree._Element | None,
    published: str | None,
    columns: Collection[str],
    xml: bytes,
) -> ArticleColumns:
    """Parse the columns that JATS has."""
    journal_ids: dict[str, str] = {}
    if journal_meta is not None and not {"journal_abbreviation", "nlm_id"}.isdisjoint(columns):
        for element in journal_meta.iterchildren("journal-id"):
            journal_ids.setdefault((element.get("journal-id-type") or "").lower(), one_line_text(element))
    abbreviations = [journal_ids[name] for name in _ABBREVIATION_TYPES if journal_ids.get(name)]
    return ArticleColumns(
        journal_abbreviation=next(iter(abbreviations), None) if "journal_abbreviation" in columns else None,
        nlm_id=journal_ids.get("nlm-journal-id") or None if "nlm_id" in columns else None,
        keywords=list_texts(
            [group for group in children.get("kwd-group", []) if not _lists_abbreviations(group)], "kwd"
        )
        if "keywords" in columns
        else (),
        subjects=list_texts(children.get("article-categories", []), "subject")
        if "subjects" in columns
        else (),
        published=published if "published" in columns else None,
        authors=_parse_authors(children) if "authors" in columns else (),
        grants=_parse_grants(children) if "grants" in columns else (),
        cited_pmids=_find_cited_pmids(xml) if "cited_pmids" in columns else (),
        other_abstracts=_parse_other_abstracts(children) if "other_abstracts" in columns else (),
    )


def _parse_authors(children: ChildrenByName) -> tuple[Author, ...]:
    groups = children.get("contrib-group", [])
    affiliation_by_id = {
        element.get("id"): _read_affiliation(element)
        for element in (*children.get("aff", []), *chain.from_iterable(group.iter("aff") for group in groups))
    }
    authors = []
    for contributor in chain.from_iterable(group.iterchildren("contrib") for group in groups):
        if contributor.get("contrib-type", "author") != "author":
            continue
        name = _find_name(contributor, ("name", "string-name"))
        surname = one_line_text(find_child(name, "surname")) or one_line_text(name)
        last_name = surname or _read_group_name(_find_name(contributor, ("collab",)))
        if not last_name:
            continue
        ids = [parse_orcid(one_line_text(item)) for item in contributor.iterchildren("contrib-id")]
        ids += [
            parse_orcid(link.get(XLINK_HREF) or "") for link in contributor.iterchildren("ext-link", "uri")
        ]
        linked = [
            affiliation_by_id.get(rid)
            for link in contributor.iterchildren("xref")
            if link.get("ref-type") == "aff"
            for rid in (link.get("rid") or "").split()
        ]
        own = [_read_affiliation(element) for element in contributor.iterchildren("aff")]
        authors.append(
            Author(
                last_name,
                one_line_text(find_child(name, "given-names")) or None,
                next(filter(None, ids), None),
                tuple(dict.fromkeys(text for text in (*own, *linked) if text)),
            )
        )
    return tuple(authors)


def _find_name(contributor: etree._Element, names: tuple[str, ...]) -> etree._Element | None:
    """Return the first of these elements that is not of a member of a group."""
    alternatives = contributor.iterchildren(*names, "name-alternatives", "collab-alternatives")
    return next(chain.from_iterable(child.iter(*names) for child in alternatives), None)


def _read_group_name(collab: etree._Element | None) -> str:
    """Return the name of a group without its members."""
    if collab is None:
        return ""
    group = copy.deepcopy(collab)
    etree.strip_elements(group, "contrib-group", with_tail=False)
    return one_line_text(group)


_ADDRESS_PARTS: Final = (
    "institution",
    "institution-wrap",
    "addr-line",
    "country",
    "city",
    "state",
    "postal-code",
)


def _read_affiliation(element: etree._Element) -> str:
    """Return an affiliation without ids of institutions and its mark, a label or a superscript before it.

    Parts of an address that nothing separates are apart.
    """
    affiliation = copy.deepcopy(element)
    first = next(affiliation.iterchildren(), None)
    if first is not None and first.tag == "sup" and not leading_text(affiliation):
        first.tag = "label"
    etree.strip_elements(affiliation, "label", "institution-id", with_tail=False)
    for part in affiliation.iter(*_ADDRESS_PARTS):
        if part.getnext() is not None:
            part.tail = part.tail or " "
    return one_line_text(affiliation)


def _parse_grants(children: ChildrenByName) -> tuple[Grant, ...]:
    """Return a grant for each number of an ``award-group``, or one without a number.

    A grant that is given for each of its recipients is one.
    """
    grants = []
    for award in chain.from_iterable(
        group.iter("award-group") for group in children.get("funding-group", [])
    ):
        agency = _read_agency(find_child(award, "funding-source"))
        ids = [one_line_text(item) or None for item in award.iterchildren("award-id")]
        grants += [Grant(grant_id, agency, None) for grant_id in ids or [None]]
    return tuple(dict.fromkeys(grants))


def _read_agency(source: etree._Element | None) -> str | None:
    """Return the name of a funder without its ids."""
    if source is None:
        return None
    source = copy.deepcopy(source)
    for element in list(source.iter("named-content")):
        if "-id" in element.get("content-type", ""):  # funder-id, fundref-id, funder-identifier
            element.tag = "institution-id"
    etree.strip_elements(source, "institution-id", with_tail=False)
    institution = next(source.iter("institution"), None)
    return one_line_text(source if institution is None else institution) or None


def _parse_other_abstracts(children: ChildrenByName) -> tuple[AbstractText, ...]:
    """Return translated abstracts, and those with an ``abstract-type``."""
    return tuple(
        AbstractText(
            element.get("abstract-type") or None,
            to_marc_code(element.get(XML_LANG) or "") or None,
            _read_abstract(element),
        )
        for element in (*children.get("abstract", []), *children.get("trans-abstract", []))
        if element.tag == "trans-abstract" or element.get("abstract-type")
    )


_ABSTRACT_BLOCKS: Final = ("sec", "title", "p", "list", "list-item", "label", "break")


def _read_abstract(element: etree._Element) -> str:
    """Return the text of an abstract, its paragraphs and titles apart."""
    abstract = copy.deepcopy(element)
    for block in abstract.iter(*_ABSTRACT_BLOCKS):
        block.text, block.tail = f" {block.text or ''}", f" {block.tail or ''}"
    return one_line_text(abstract)


_REFERENCE_LIST: Final = re.compile(rb"<(?:\w+:)?ref-list\b.*</(?:\w+:)?ref-list", re.DOTALL)
_CITED_PMID: Final = re.compile(
    rb"""<(?:\w+:)?pub-id\b[^<>]*pub-id-type\s*=\s*["']pmid["'][^<>]*>\s*([1-9][0-9]{0,8})\s*<"""
)


_SUB_ARTICLE: Final = re.compile(rb"<(?:\w+:)?(?:sub-article|response)\b")


def _find_cited_pmids(xml: bytes) -> tuple[int, ...]:
    """Return the PubMed ids in the reference lists of an article, which xml_tree.py leaves out.

    Reviews and replies, which follow the article's own text, have references of their own.
    """
    sub_article = _SUB_ARTICLE.search(xml)
    references = _REFERENCE_LIST.search(xml, 0, sub_article.start() if sub_article else len(xml))
    return tuple(dict.fromkeys(map(int, _CITED_PMID.findall(references[0])))) if references else ()


def _lists_abbreviations(group: etree._Element) -> bool:
    """Return True for a ``kwd-group`` of the article's abbreviations, whose meanings it explains."""
    return (group.get("kwd-group-type") or "").lower().startswith("abbr")
