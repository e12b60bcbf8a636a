"""Build a document from an article: select its text and its parts, clean, split into sentences, count.

A paragraph's end ends a sentence. Consecutive blocks with the same headings form a section of the document.
"""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator

from lxml import etree

from bioshards.corpus.document import HEADING_SEPARATOR, Document
from bioshards.corpus.errors import BadRecordError, quote
from bioshards.corpus.filter_names import FilterNames
from bioshards.corpus.jats import text_blocks, xml_tree
from bioshards.corpus.jats.article_metadata import (
    ArticleMetadata,
    ListedMetadata,
    parse_metadata,
    update_metadata,
)
from bioshards.corpus.jats.article_stream import SERVER_ERRORS
from bioshards.corpus.jats.elements import DroppedText, count_dropped
from bioshards.corpus.jats.filters import (
    DROPPED_PART_PREFIX,
    PmcConfig,
    find_drop_reason,
    find_text_drop_reason,
)
from bioshards.corpus.jats.paragraph_roles import TextBlock
from bioshards.corpus.jats.xml_tree import XML_LANG
from bioshards.corpus.languages import to_marc_code
from bioshards.corpus.sentences import collapse_whitespace, count_line_words
from bioshards.corpus.sentences.splitters import load_splitter
from bioshards.corpus.source_record import NON_PMC_NUMBER_BIT, UNNUMBERED_VERSION, VersionKey
from bioshards.corpus.text.cleaning import Cleaner
from bioshards.corpus.text.language_detection import ENGLISH, detect_language
from bioshards.corpus.text.typed_citations import (
    MAX_REFERENCE,
    count_up,
    has_bracketed_numbers,
    has_numbers_after_stops,
    remove_bracketed_numbers,
    remove_numbers_after_names,
    remove_numbers_after_stops,
)
from bioshards.corpus.text_config import list_journal_names


class ArticleDocumentBuilder:
    """Builder of documents with a fixed config; create one per process.

    Raises:
        MissingExtraError: the config needs a library that is not installed.
    """

    def __init__(self, config: PmcConfig) -> None:
        self._config = config
        self._columns = config.list_parsed_columns()
        self.filter_names = FilterNames(config.list_filter_names())
        self._parts = frozenset((*config.parts, *(("table",) if config.has_tables else ())))
        self._cleaner = Cleaner(config.cleaning)
        self._split = load_splitter(config.splitter)
        self._line_formatter = config.make_line_formatter()

    def read_article(
        self,
        xml: bytes,
        file: str,
        position: int,
        listed: ListedMetadata | None = None,
        keep_dropped: bool = True,
    ) -> tuple[VersionKey, Document | None]:
        """Parse an article, apply the filters and build its document.

        Args:
            xml: the article as :func:`article_stream.iter_articles` yields it.
            file: name of the source file.
            position: 0-based index of the article in the source.
            listed: PMC's metadata of the article, if a mirror lists it.
            keep_dropped: also build the document of an article that the metadata filters drop.

        Returns:
            (version key with the drop reason, document). The document is None if none is to be built.

        Raises:
            BadRecordError: the article is malformed or has no id.
        """
        config = self._config
        dropped: DroppedText = {}
        tree = xml_tree.parse_article(xml, config.flattens_markup, config.has_tables, dropped)
        if tree.tag in SERVER_ERRORS or tree.get("status") == "deleted":
            message = tree.get("error") or "".join(map(str, tree.itertext()))
            raise BadRecordError("not-available", f"the server has no article: {quote(message)}")
        if tree.tag != "article":
            raise BadRecordError("unexpected-element", f"<{tree.tag}> is not an article")
        metadata = parse_metadata(tree, self._columns, xml)
        if listed:
            metadata = update_metadata(metadata, listed)
        _, article_number = identify_article(metadata)
        article = tree
        tree, metadata = _select_text(tree, metadata, config)
        if tree is not article:
            _count_original(article, dropped)
        has_body = text_blocks.has_body(tree)
        if "journals" in self.filter_names.kinds:
            names = list_journal_names(metadata.journal, metadata.issns, metadata.columns)
            self.filter_names.add("journals", names)
        drop_reason = find_drop_reason(metadata, has_body, config)
        document = None
        if drop_reason is None or keep_dropped:
            blocks = text_blocks.extract_blocks(tree, config, dropped)
            if config.citations != "keep":
                blocks = _remove_typed_citations(blocks, xml)
            text_drop_reason, document = self.build_document(metadata, has_body, blocks, file, position)
            for name, num_characters in dropped.items():
                document.removed_characters[f"{DROPPED_PART_PREFIX}{name}"] = num_characters
            drop_reason = drop_reason or text_drop_reason
        return _make_key(article_number, metadata, drop_reason), document

    def build_document(
        self, metadata: ArticleMetadata, has_body: bool, blocks: list[TextBlock], file: str, position: int
    ) -> tuple[str | None, Document]:
        """Build the document of an article and apply the filters that need the text.

        Args:
            metadata: the article's metadata.
            has_body: True if the article has a body.
            blocks: the article's text.
            file: name of the source file.
            position: 0-based index of the article in the source.

        Returns:
            (drop reason or None, document). The document is complete in both cases.
        """
        removed_characters: dict[str, int] = {}
        title = ""
        if blocks and blocks[0].part == "title":
            title = collapse_whitespace(self._cleaner.clean_title(blocks[0].text, removed_characters))
            blocks = blocks[1:]
        sentences: list[str] = []
        sections: list[tuple[str, int]] = []
        num_words = 0
        if self._config.titles and title:
            sentences += self._split_and_format(title, removed_characters)
            num_words = count_line_words(title)
        current_heading = None
        texts: list[str] = []
        for heading, label, text, is_row in self._iter_texts(blocks, removed_characters):
            num_words += text.count(" ") + 1  # 1 % of the time of an article
            if not is_row:  # words of cells tell no language
                texts.append(text)
            new_sentences = self._split_and_format(text, removed_characters, is_row)
            if not new_sentences:
                continue
            if heading != current_heading:
                current_heading = heading
                sections.append((heading, len(sentences)))
                if self._config.section_labels:
                    sentences += self._split_and_format(label, removed_characters)
                    num_words += count_line_words(label)
            sentences += new_sentences
        document_id, _ = identify_article(metadata)
        document = Document(
            id=document_id,
            source="pmc",
            pmid=metadata.pmid,
            pmcid=metadata.pmcid,
            doi=metadata.doi,
            version=metadata.version,
            year=metadata.year,
            journal=metadata.journal,
            article_type=metadata.article_type,
            language=_find_language(metadata, texts),
            licence=metadata.licence,
            retracted=metadata.retracted,
            flags=_list_flags(metadata, has_body),
            title=title,
            sentences=sentences,
            sections=sections,
            file=file,
            position=position,
            num_words=count_line_words(" ".join(sentences)),
            num_characters=sum(map(len, sentences)),
            removed_characters=removed_characters,
            columns=metadata.columns,
        )
        return find_text_drop_reason(document, self._config, num_words), document

    def _split_and_format(
        self, text: str, removed_characters: dict[str, int], is_row: bool = False
    ) -> list[str]:
        sentences = [text] if is_row else self._split(text)
        return self._line_formatter(sentences, removed_characters) if self._line_formatter else sentences

    def _iter_texts(
        self, blocks: list[TextBlock], removed_characters: dict[str, int]
    ) -> Iterator[tuple[str, str, str, bool]]:
        """Yield (heading path, last heading, text, is_row) of the blocks of included parts, cleaned."""
        abstract_blocks = [block for block in blocks if block.part == "abstract"]
        if abstract_blocks and "abstract" in self._parts:
            yield from self._iter_abstract_texts(abstract_blocks, removed_characters)
        heading_paths: dict[tuple[str, ...], tuple[str, str]] = {}
        cleaned_headings: dict[str, str] = {}  # each heading is cleaned and counted once
        for part, headings, text in blocks:
            if part not in self._parts:
                removal_name = f"{DROPPED_PART_PREFIX}{part}"
                removed_characters[removal_name] = removed_characters.get(removal_name, 0) + len(text)
            elif part != "abstract" and (text := self._clean_text(text, removed_characters)):
                path = heading_paths.get(headings)
                if path is None:
                    for heading in headings:
                        if heading not in cleaned_headings:
                            cleaned_headings[heading] = self._clean_text(heading, removed_characters)
                    cleaned = [cleaned_headings[heading] for heading in headings if cleaned_headings[heading]]
                    path = (HEADING_SEPARATOR.join(cleaned), cleaned[-1] if cleaned else "")
                    heading_paths[headings] = path
                yield path[0], path[1], text, part == "table"

    def _iter_abstract_texts(
        self, blocks: list[TextBlock], removed_characters: dict[str, int]
    ) -> Iterator[tuple[str, str, str, bool]]:
        """Yield the abstract, cleaned as PubMed's: without notices and empty labels."""
        sections = [(HEADING_SEPARATOR.join(block.headings[1:]) or None, block.text) for block in blocks]
        parent_heading = (
            self._clean_text(blocks[0].headings[0], removed_characters) if blocks[0].headings else ""
        )
        parent_heading = parent_heading or "Abstract"
        keeps_citations = self._config.citations == "keep"
        for label, text in self._cleaner.clean_abstract(sections, removed_characters, keeps_citations):
            if text := collapse_whitespace(text):
                label = collapse_whitespace(label) if label else ""
                label = "" if label == parent_heading else label
                yield (
                    f"{parent_heading}{HEADING_SEPARATOR}{label}" if label else parent_heading,
                    label or parent_heading,
                    text,
                    False,
                )

    def _clean_text(self, text: str, removed_characters: dict[str, int]) -> str:
        """Clean a text in one line; the result is in one line too."""
        if text.isascii() and "\x7f" not in text:
            return text
        cleaned = self._cleaner.clean_text(text, removed_characters)
        return text if cleaned is text else collapse_whitespace(cleaned)


def _make_key(article_number: int, metadata: ArticleMetadata, drop_reason: str | None) -> VersionKey:
    digits = (metadata.published or "").replace("-", "")
    return VersionKey(
        article_number,
        metadata.version if metadata.has_version_number else UNNUMBERED_VERSION,
        False,
        drop_reason,
        metadata.minor_version,
        int(digits.ljust(8, "0")),
    )


def identify_article(metadata: ArticleMetadata) -> tuple[str, int]:
    """Return the document id, and an article number that all versions share.

    The id is ``pmc:PMC123456.1``, or ``doi:10.5555/1`` or ``pmid:123`` of articles outside PMC. The numbers
    of the latter are hashes above all PMCIDs.

    Raises:
        BadRecordError: the article has no PMCID, DOI or PMID.
    """
    if metadata.pmcid:
        return f"pmc:{metadata.pmcid}.{metadata.version}", int(metadata.pmcid[3:])
    if metadata.doi:
        document_id = f"doi:{metadata.doi.lower()}"
    elif metadata.pmid:
        document_id = f"pmid:{metadata.pmid}"
    else:
        raise BadRecordError("no-id", "it has no PMCID, no DOI and no PMID")
    digest = hashlib.blake2b(document_id.encode(), digest_size=8).digest()
    return document_id, int.from_bytes(digest) >> 1 | NON_PMC_NUMBER_BIT


def _find_language(metadata: ArticleMetadata, texts: list[str]) -> str:
    """Return the declared language, or that of the text if this is English or absent and the text is not."""
    if metadata.language in (None, ENGLISH):
        return detect_language(texts) or ENGLISH
    return str(metadata.language)


def _list_flags(metadata: ArticleMetadata, has_body: bool) -> list[str]:
    flags = {
        "manuscript": metadata.manuscript,
        "ocr": metadata.ocr,
        "no-body": not has_body,
        "translation": metadata.translated,
    }
    notices = [metadata.notice] if metadata.notice else []
    return notices + [name for name, is_set in flags.items() if is_set]


# Translations


def _select_text(
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


def _count_original(article: etree._Element, dropped: DroppedText) -> None:
    """Count the text of an article that is read in its translation."""
    for child in article.iterchildren("front", "body", "back", "floats-group", "floats-wrap"):
        count_dropped(child, dropped)


def _remove_typed_citations(blocks: list[TextBlock], xml: bytes) -> list[TextBlock]:
    """Remove citations by number without a link; cells of tables and keys of figures stay."""
    text = "\n#".join([block.text for block in blocks])  # one search is faster than one of each
    has_brackets = has_bracketed_numbers(text)
    if not (has_brackets or has_numbers_after_stops(text)):
        return blocks
    highest = _find_highest_reference(xml) if has_brackets else 0
    are_counted = highest == MAX_REFERENCE and count_up(text)
    return [_remove_typed_citations_of_block(block, highest, are_counted) for block in blocks]


def _find_highest_reference(xml: bytes) -> int:
    """Return the highest number in brackets that may be a reference; 0 if linked ones have no brackets."""
    if b"bibr" not in xml:
        return MAX_REFERENCE
    return xml.count(b"</ref>") if b"[<xref" in xml else 0


def _remove_typed_citations_of_block(block: TextBlock, highest: int, are_counted: bool) -> TextBlock:
    part, headings, text = block
    if part == "table" or (part == "caption" and "[1]" in text and "[2]" in text):
        return block
    changed = text
    if "[" in text:
        changed = (
            remove_bracketed_numbers(text, highest, are_counted)
            if highest
            else remove_numbers_after_names(text)
        )
    changed = remove_numbers_after_stops(changed)
    return block if changed is text else TextBlock(part, headings, changed)


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
