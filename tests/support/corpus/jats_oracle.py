"""An independent parser of JATS articles, to compare bioshards with.

It is naive on purpose: it parses an article into one tree and removes elements from a copy.  It shares no
code with bioshards and extracts only what is certain: titles in reference lists and words that are prose.
Namespaces are ignored; entities of the DTD are read as those of HTML.
"""

from __future__ import annotations

import collections
import copy
import html
import re
import unicodedata
from collections.abc import Iterable, Iterator
from typing import Any

from lxml import etree

PARSER = etree.XMLParser(
    resolve_entities=False, no_network=True, load_dtd=False, remove_comments=True, remove_pis=True
)
MIN_TITLE_WORDS = 8
"""Titles of references with fewer words may occur in a text by chance."""

TITLE_TAGS = {"article-title", "chapter-title", "part-title", "data-title", "trans-title"}
BOOK_TITLE_TAGS = {"source", "trans-source"}
CITATION_TAGS = {"mixed-citation", "element-citation", "nlm-citation", "citation"}
PERSON_TAGS = {"person-group", "name", "string-name", "collab", "etal"}
BLOCK_TAGS = {
    *("p", "title", "article-title", "alt-title", "subtitle", "label", "sec", "list", "list-item"),
    *("def-list", "def-item", "def", "term", "disp-quote", "boxed-text", "fig", "fig-group", "table-wrap"),
    *("caption", "disp-formula", "statement", "verse-group", "verse-line", "speech", "speaker", "attrib"),
    *("fn", "break", "preformat", "supplementary-material"),
}
"""Elements whose start and end tags separate words."""
NON_PROSE_TAGS = {
    *("ref-list", "table", "math", "tex-math", "inline-formula", "disp-formula", "disp-formula-group"),
    *("label", "object-id", "graphic", "inline-graphic", "alt-text", "long-desc", "media", "fn", "fn-group"),
    *("supplementary-material", "inline-supplementary-material", "table-wrap-foot", "preformat"),
    *("permissions", "private-char", "related-article", "related-object", "index-term", "code"),
    *("chem-struct", "attrib", "sub-article", "response"),
}


def parse_article(xml: bytes) -> Any:
    """Parse an article into a tree of local names, with entities as characters."""
    root: Any = etree.fromstring(xml, PARSER)
    for node in list(root.iter(etree.Entity)):
        replace_node_with_text(node, html.unescape(node.text or "") + (node.tail or ""))
    for node in root.xpath("//*[namespace-uri()]"):
        node.tag = node.tag.rpartition("}")[2]
    for node in root.iter("named-content", "sup"):
        separate_names_and_marks(node)
    for node in root.iter("sub", "sup"):
        join_script(node)
    return root


def join_script(node: Any) -> None:
    """Remove a line break of the XML between a word and its script; one before an isotope stays."""
    if node.tag == "sup" and text_of(node).isdigit() and (node.tail or "")[:1].isupper():
        return
    before, parent = node.getprevious(), node.getparent()
    text = (parent.text if before is None else before.tail) or ""
    if "\n" in text[len(text.rstrip()) :]:
        if before is None:
            parent.text = text.rstrip()
        else:
            before.tail = text.rstrip()


def separate_names_and_marks(node: Any) -> None:
    """Part a species from its genus, and the mark of a note from its first word."""
    before = node.getprevious()
    text_before = (node.getparent().text if before is None else before.tail) or ""
    if node.tag == "named-content":
        if before is not None and not text_before and before.get("content-type") in ("genus", "species"):
            before.tail = " "
    elif re.search(r"[.:;,)]\s+$" if before is not None or text_before.strip() else r"^\s*$", text_before):
        is_isotope = (node.text or "").isdigit() and re.match(r"[A-Z](?![a-z])", node.tail or "")
        node.tail = (node.tail or "") if is_isotope else f" {node.tail or ''}"


def replace_node_with_text(node: Any, text: str) -> None:
    """Replace a node and its tail by text."""
    parent, before = node.getparent(), node.getprevious()
    if before is not None:
        before.tail = (before.tail or "") + text
    else:
        parent.text = (parent.text or "") + text
    node.tail = None
    parent.remove(node)


def copy_without(element: Any, names: set[str], *, bibliography: bool = False, mark: str = "") -> Any:
    """Copy a tree without given elements and without xrefs to references; tails are kept, after a mark."""
    copied = copy.deepcopy(element)
    copied.tail = None
    for node in list(copied.iter()):
        is_citation = bibliography and node.tag == "xref" and node.get("ref-type") == "bibr"
        if (node.tag in names or is_citation) and node is not copied and node.getparent() is not None:
            replace_node_with_text(node, mark + (" " if node.tag in BLOCK_TAGS else "") + (node.tail or ""))
    return copied


def text_of(element: Any) -> str:
    """Return the text of an element, with blocks separated."""
    parts = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node.tag in BLOCK_TAGS:
            parts.append(" ")
        parts.append((node.text if event == "start" else node.tail if node is not element else "") or "")
    return "".join(parts)


def join_text(root: Any) -> str:
    """Return all text of an element, with a blank around each citation and at the edges of blocks."""
    for node in root.iter("xref", *BLOCK_TAGS):
        if node.tag != "xref" or node.get("ref-type") in ("bibr", "fn", "table-fn"):
            node.text = f" {node.text or ''}"
            node.tail = f" {node.tail or ''}"
    return "".join(root.itertext())


def normalised_words(text: str) -> list[str]:
    """Return the words in lower case: letters and digits, after Unicode normalisation.

    The mark of a power is ignored, as XML has none: ``10<sup>6</sup>``.
    """
    text = re.sub(r"(?<=\d)\^", "", text)
    return re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).lower())


def normalise_text(text: str) -> str:
    return " ".join(normalised_words(text))


def find_reference_titles(xml: bytes) -> list[str]:
    """Return the distinct titles of eight words or more in reference lists, as sorted lower-case words.

    Sentences of the text are used for a citation without marked titles.
    """
    titles = set()
    for references in parse_article(xml).iter("ref-list"):
        for node in references.iter(*TITLE_TAGS, *BOOK_TITLE_TAGS, *CITATION_TAGS):
            if node.tag in TITLE_TAGS | BOOK_TITLE_TAGS:
                titles.add(normalise_text(text_of(node)))
            elif node.tag in CITATION_TAGS and next(node.iter(*TITLE_TAGS), None) is None:
                sentences = re.split(r"[.?!]\s+|\n\s*\n", text_of(copy_without(node, PERSON_TAGS)))
                titles.update(map(normalise_text, sentences))
    return sorted(title for title in titles if len(title.split()) >= MIN_TITLE_WORDS)


def main_sections(article: Any) -> Iterator[Any]:
    """Return the body of an article and its abstracts without a type."""
    for abstract in article.findall("front/article-meta/abstract"):
        if abstract.get("abstract-type") in (None, "abstract"):
            yield abstract
    yield from article.findall("body")


def count_prose_words(xml: bytes) -> collections.Counter[str]:
    """Count the words in paragraphs and titles of body and main abstract that are certainly prose.

    Reference lists, citations, table cells, formulas, labels and footnotes are left out.
    """
    counts: collections.Counter[str] = collections.Counter()
    for part in main_sections(parse_article(xml)):
        for node in outermost_elements(copy_without(part, NON_PROSE_TAGS, bibliography=True), {"p", "title"}):
            counts.update(normalised_words(text_of(node)))
    return counts


def outermost_elements(element: Any, names: set[str]) -> Iterator[Any]:
    """Return the elements with given names that are in no other such element."""
    for node in element.iter(*names):
        if not any(ancestor.tag in names for ancestor in node.iterancestors()):
            yield node


def article_text(xml: bytes, *excluded_tags: str) -> str:
    """Return the text of an article without reference lists: a line for each paragraph, title and caption."""
    root = copy_without(parse_article(xml), {"ref-list", *excluded_tags})
    blocks = outermost_elements(root, {"p", "title", "caption", "title-group", "attrib", "fn"})
    return "\n".join(normalise_text(text_of(node)) for node in blocks)


def find_leaked_titles(xml: bytes, text: Iterable[str]) -> list[str]:
    """Return the titles of references that occur in an extracted text and not in the article's own text."""
    haystack = f" {normalise_text(' '.join(text))} "
    leaked = [title for title in find_reference_titles(xml) if f" {title} " in haystack]
    if not leaked:
        return []
    lines = f"{article_text(xml)}\n{article_text(xml, 'xref')}".split(
        "\n"
    )  # numbers adjoining words separate them from titles
    own_lines = "\n".join(f" {line} " for line in lines)
    return [title for title in leaked if f" {title} " not in own_lines]


MARC_CODES = {"en": "eng", "es": "spa", "fr": "fre", "pt": "por"}
ADDRESS_TAGS = {"institution", "institution-wrap", "addr-line", "country"}
"""Elements of an affiliation that are words apart, also where nothing is between them."""


def read_columns(xml: bytes) -> dict[str, Any]:
    """Return the columns of metadata that an article has, without those that are empty in JATS."""
    root: Any = etree.fromstring(xml, PARSER)
    root = next(root.iter("{*}article"))
    for node in list(root.iterchildren("{*}body")):
        root.remove(node)
    for node in list(root.iter(etree.Entity)):
        replace_node_with_text(node, html.unescape(node.text or "") + (node.tail or ""))
    for node in root.xpath("//*[namespace-uri()]"):
        node.tag = node.tag.rpartition("}")[2]
    for node in root.xpath("//named-content[contains(@content-type, '-id')]"):
        replace_node_with_text(node, node.tail or "")

    def journal_id(kind: str) -> str | None:
        return first_text(root.xpath("front/journal-meta/journal-id[@journal-id-type=$kind]", kind=kind))

    references = root.xpath(
        "//ref-list//pub-id[@pub-id-type='pmid'][not(ancestor::sub-article|ancestor::response)]"
    )
    abstracts = [
        node
        for node in root.xpath("front/article-meta/abstract[@abstract-type!='']")
        if node.get("abstract-type") not in ("normal", "primary")
    ]
    abstracts += root.xpath("front/article-meta/trans-abstract")  # no real one is in the article's language
    return {
        "journal_abbreviation": journal_id("iso-abbrev") or journal_id("nlm-ta"),
        "nlm_id": journal_id("nlm-journal-id"),
        "keywords": list_texts(
            kwd
            for group in root.xpath("front/article-meta/kwd-group")
            if not (group.get("kwd-group-type") or "").lower().startswith("abbr")
            for kwd in group.xpath(".//kwd")
        ),
        "subjects": list_texts(root.xpath("front/article-meta/article-categories//subject")),
        "published": publication_date(root),
        "authors": tuple(iter_authors(root)),
        "grants": tuple(
            dict.fromkeys(
                (
                    html.unescape(number) if number else None,  # real ones are escaped twice
                    html.unescape(
                        first_text(
                            award.xpath("funding-source//institution") or award.xpath("funding-source")
                        )
                        or ""
                    )
                    or None,
                    None,
                )
                for award in root.xpath(
                    "front/article-meta/*[self::funding-group|self::support-group]//award-group"
                )
                for number in list_texts(award.xpath("award-id")) or [None]
            )
        ),
        "cited_pmids": tuple(
            dict.fromkeys(
                int(text) for text in map(text_of, references) if re.fullmatch(r"\s*[1-9]\d{0,8}\s*", text)
            )
        ),
        "other_abstracts": tuple(
            (
                node.get("abstract-type"),
                MARC_CODES.get(node.get("{http://www.w3.org/XML/1998/namespace}lang")),
                " ".join(text_of(node).split()),
            )
            for node in abstracts
        ),
    }


def publication_date(root: Any) -> str | None:
    """Return the earliest date of publication, as precise as it is given."""
    months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
    print_or_web = (
        "ppub print epub-ppub electronic-print print-electronic collection pub publication epub electronic"
    )
    for kinds in (print_or_web.split(), ("epreprint", "preprint"), ("pmc-release",)):
        dates = []
        for date in root.xpath("front/article-meta/pub-date"):
            kind = (date.get("pub-type") or date.get("date-type") or "pub").lower()
            kind = (
                (date.get("publication-format") or kind).lower() if kind in ("pub", "publication") else kind
            )
            year = re.search(r"\d{4}", date.findtext("year") or date.get("iso-8601-date") or text_of(date))
            if kind not in kinds or year is None:
                continue
            month = (date.findtext("month") or "").strip()
            number = int(month) if month.isdecimal() else 0
            number = months.index(month[:3].lower()) + 1 if month[:3].lower() in months else number
            day = (date.findtext("day") or "").strip()
            parts = [year[0], f"{number:02}" if 1 <= number <= 12 else ""]
            parts.append(f"{int(day):02}" if parts[1] and day.isdecimal() else "")
            dates.append("-".join(filter(None, parts)))
        if dates:
            return min(dates, key=lambda date: f"{date}-99-99"[: len("2000-01-01")])
    return None


def iter_authors(root: Any) -> Iterator[tuple[str, str | None, str | None, tuple[str, ...], str | None]]:
    """Yield last name or group, fore name, ORCID, affiliations and suffix of each author."""
    affiliations = {
        node.get("id"): read_affiliation(node) for node in root.xpath("front/article-meta//aff[@id]")
    }
    for person in root.xpath("front/article-meta/contrib-group/contrib"):
        if person.get("contrib-type", "author") != "author":
            continue
        names = person.xpath("name|name-alternatives/name|string-name|name-alternatives/string-name")
        groups = person.xpath("collab|collab-alternatives/collab")
        last = first_text(names[0].xpath("surname")) or first_text(names[:1]) if names else None
        last = last or first_text(copy_without(group, {"contrib-group"}) for group in groups)
        orcids = re.findall(
            r"(?:\d{4}-){3}\d{3}[\dX]",
            " ".join(
                [
                    *person.xpath("contrib-id/text()"),
                    *(
                        link.get("{http://www.w3.org/1999/xlink}href") or ""
                        for link in person.xpath("ext-link|uri")
                    ),
                ]
            ),
        )
        linked = [
            affiliations.get(rid)
            for link in person.xpath("xref[@ref-type='aff']")
            for rid in (link.get("rid") or "").split()
        ]
        own = [read_affiliation(node) for node in person.xpath("aff")]
        if last:
            yield (
                last,
                first_text(names[0].xpath("given-names")) if names else None,
                orcids[0] if orcids else None,
                tuple(text for text in dict.fromkeys([*own, *linked]) if text),
                first_text(names[0].xpath("suffix")) if names else None,
            )


def read_affiliation(affiliation: Any) -> str | None:
    """Return an affiliation without its mark, a label or a superscript at its beginning."""
    copied = copy_without(affiliation, {"label", "institution-id"})
    first = next(iter(copied), None)
    if first is not None and first.tag == "sup" and not (copied.text or "").strip():
        first.text = None
    for node in copied.iter(*ADDRESS_TAGS):
        node.tail = node.tail or (None if node.getnext() is None else " ")
    return first_text([copied])


def list_texts(nodes: Iterable[Any]) -> tuple[str, ...]:
    """Return the distinct texts of elements, each in one line."""
    texts = (" ".join("".join(map(str, node.itertext())).split()) for node in nodes)
    return tuple(dict.fromkeys(text for text in texts if text))


def first_text(nodes: Iterable[Any]) -> str | None:
    return next(iter(list_texts(nodes)), None)
