"""Parse the XML of one article: local names, resolved entities, unread elements removed.

Reference lists and table cells are half of an article's bytes. The former are never read, the latter only
if they are asked for. They are removed before parsing. This is exact, because ``<`` only starts tags in the
output of article_stream.py; their content is checked for UTF-8 only.

Most elements in a paragraph are presentation (``<italic>``) or simple references (``<xref
ref-type="bibr">12</xref>``). An element costs the parser more than a hundred characters of text, so regular
expressions flatten them before parsing: the same text in half the time. inline.py handles the remaining
elements; tests check that both agree.
"""

from __future__ import annotations

import functools
import html
import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from bioshards.corpus.errors import BadRecordError
from bioshards.corpus.jats import in_text_marks
from bioshards.corpus.jats.elements import DroppedText, add_dropped, count_dropped
from bioshards.corpus.jats.in_text_marks import (
    CITATION_MARK,
    CITATION_REFERENCE,
    CITATION_XREF_TYPES,
    HEADING_FRAME,
    HEADING_REFERENCE,
    LINK_SIGN,
    LINK_WITHOUT_NUMBER,
    REMOVAL_MARK,
    REMOVAL_REFERENCE,
)
from bioshards.corpus.jats.text_rules import is_run_in_heading, is_title
from bioshards.corpus.xml import element_text
from bioshards.corpus.xml.element_text import resolve_entities

XLINK_HREF: Final = "{http://www.w3.org/1999/xlink}href"
XML_LANG: Final = "{http://www.w3.org/XML/1998/namespace}lang"

_LESS_THAN, _SLASH = b"</"
_JATS_NAMESPACE: Final = re.compile(
    r"\{(?:https?://(?:jats|dtd)\.nlm\.nih\.gov(?:/[^{}]*+)?|(?>[^{}]*?/journalpublishing)[^{}]*+)\}"
)
_PARSER: Final = etree.XMLParser(
    resolve_entities=False,
    no_network=True,
    load_dtd=False,
    huge_tree=False,
    remove_comments=True,
    remove_pis=True,
)


def parse_article(
    xml: bytes, flatten: bool = True, has_tables: bool = False, dropped: DroppedText | None = None
) -> etree._Element:
    """Parse an article as :func:`article_stream.iter_articles` yields it.

    JATS elements have local names, whether the article uses a namespace or not; others, such as MathML's,
    have qualified names. Elements that are never read are removed.

    Args:
        xml: the article's bytes.
        flatten: flatten simple inline markup into text first: the same text, in less time.
        has_tables: True to keep tables.
        dropped: counts the bytes of the elements that are removed before parsing, with their tags.

    Raises:
        BadRecordError: invalid UTF-8, malformed XML, or an unknown entity.
    """
    try:
        if not xml.isascii():
            xml.decode()
    except UnicodeDecodeError as error:
        raise BadRecordError("invalid-utf-8", f"{error.reason} at byte {error.start}") from error
    unread_elements = ("ref-list",) if has_tables else ("ref-list", "table")
    trimmed = xml
    dropped = {} if dropped is None else dropped
    for name in unread_elements:
        num_bytes = len(trimmed)
        trimmed = _cut_elements(trimmed, name.encode())
        add_dropped(name, num_bytes - len(trimmed), dropped)
    text = frame_headings(link_citations(_join_exponents(_write_small_capitals(trimmed.decode()))))
    flat_text = flatten_inline_markup(text) if flatten else text
    try:
        # Few articles have named entities, which are an error to the parser unless they are declared.
        has_declaration = "!" in flat_text and "<!" in flat_text
        root = _parse_xml(resolve_entities(flat_text) if has_declaration else flat_text)
    except etree.XMLSyntaxError:  # it may have named entities, or be flattened wrongly
        root = _parse_with_entities(flat_text, text)
    if _JATS_NAMESPACE.match(root.tag):
        for element in root.iter():
            element.tag = _JATS_NAMESPACE.sub("", element.tag)
    if trimmed is xml:  # none found as bytes: none there, prefixed, or malformed
        for element in root.iter(*unread_elements):
            count_dropped(element, dropped)
        etree.strip_elements(root, *unread_elements, with_tail=False)
    # The tree is searched first, as that takes a fifth of the time.
    if next(root.iter("{*}table"), None) is not None and b":table" in trimmed:
        _localize_oasis_tables(root, has_tables)
    return root


def _localize_oasis_tables(root: etree._Element, has_tables: bool) -> None:
    """Give OASIS tables local names; empty the tables if they are not read."""
    for table in list(root.iter("{*}table")):
        if has_tables:
            namespace = etree.QName(table).namespace
            for element in list(table.iter(f"{{{namespace}}}*")) if namespace else ():
                element.tag = etree.QName(element).localname
        else:
            tail = table.tail
            table.clear()
            table.tag, table.tail = "table", tail


def _parse_with_entities(flat_text: str, text: str) -> etree._Element:
    """Parse an article with named entities: its flattened text or, if that fails, its text."""
    try:
        return _parse_xml(resolve_entities(flat_text))
    except etree.XMLSyntaxError:
        try:
            return _parse_xml(resolve_entities(text))
        except etree.XMLSyntaxError as error:
            raise BadRecordError("malformed-xml", str(error)) from error


def _parse_xml(text: str) -> etree._Element:
    return etree.fromstring(text.encode(), _PARSER)


def _cut_elements(xml: bytes, name: bytes) -> bytes:
    """Remove all elements of this name, including nested ones; one without an end tag stays."""
    chunks: list[bytes | memoryview] = []
    view = memoryview(xml)  # whose slices are copied once, when they are joined
    position, last_byte = 0, ord(">")  # of what is left before the element
    while (start := _find_start_tag(xml, name, position)) >= 0:
        end = _find_element_end(xml, start, name)
        # Leave nested or unclosed tags to the parser, which reports the error.
        if end < 0 or xml.rfind(b"<", 0, start) > xml.rfind(b">", 0, start):
            return xml
        if start > position:
            chunks.append(view[position:start])
            last_byte = xml[start - 1]
        if last_byte not in b" \t\r\n>" and xml[end : end + 1] not in b" \t\r\n<":
            chunks.append(b"\n")  # the words around it stay apart
        position = end
    return b"".join([*chunks, view[position:]]) if position else xml


# No possessive quantifiers: Python before 3.11.5 mishandles them here (CPython issue 106052).
_START_TAG_REST = re.compile(rb"""[^<>"'/]*(?:(?:"[^"<]*"|'[^'<]*'|/(?!>))[^<>"'/]*)*(/?)>""")
_NAME_END: Final = b" \t\r\n>/"
"""Bytes that may follow the name of a tag."""


def _find_start_tag(xml: bytes, name: bytes, position: int) -> int:
    """Return the offset of the next start tag with exactly this name, or -1."""
    prefix = b"<" + name
    position = xml.find(prefix, position)
    while position >= 0 and xml[position + len(prefix) : position + len(prefix) + 1] not in _NAME_END:
        position = xml.find(prefix, position + 1)
    return position


def _find_element_end(xml: bytes, start: int, name: bytes) -> int:
    """Return the offset after the element at ``start``, or -1 if it has no end tag."""
    start_tag = _START_TAG_REST.match(xml, start + 1 + len(name))
    if start_tag is None:
        return -1
    position = start_tag.end()
    depth = 0 if start_tag[1] else 1
    while depth:
        # One search for the name finds nested tags and end tags.
        position = xml.find(name, position)
        if position < 0:
            return -1
        is_end_tag = xml[position - 1] == _SLASH and xml[position - 2] == _LESS_THAN
        name_end = position + len(name)
        if (is_end_tag or xml[position - 1] == _LESS_THAN) and xml[name_end : name_end + 1] in _NAME_END:
            tag = _START_TAG_REST.match(xml, name_end)
            if tag is None:
                return -1
            depth += -1 if is_end_tag else 0 if tag[1] else 1
            position = tag.end()
        else:
            position = name_end
    return position


_SMALL_CAPITALS: Final = "<sc>"
_SMALL_M: Final = "<sc>m"
_MOLAR = re.compile(rf"{_SMALL_M}(?<=[;mnpfμµ\s]{_SMALL_M})([),.;]{{0,2}})</sc>")
"""What is before it is looked at last: a pattern that begins with known characters is found fast."""
_CONFIGURATION = re.compile(
    r"""
    (?: d | l | dl )
    (?= (?: </sc>, \s? <sc>l )? (?: -</sc> | </sc> (?: [-‐‑] | &\#(?: x0{0,2}201[01] | 820[89] ); ) )
        (?: \s? [(<]? [A-Za-z] | [/)] | \d (?: ,\d )* [-‐‑] ) )
    """,
    re.VERBOSE,
)


_SMALL_CAPITAL_WORD = re.compile(r"(?<![A-Za-z]<sc>)(?!and<)(?:[a-z][a-z\d-]{1,19}|[ivx])(?=</sc>)")


def _write_small_capitals(text: str) -> str:
    """Write the small capitals that mean capitals: ``2 m<sc>m</sc>`` is mM, ``<sc>l</sc>-lysine`` L-lysine.

    They are the unit of concentrations, the configurations D and L (IUPAC, Nomenclature and Symbolism for
    Amino Acids and Peptides, 1983, 3AA-3), and words and numerals without a large capital:
    ``<sc>anova</sc>`` is ANOVA, ``H <sc>i</sc>`` neutral hydrogen.
    """
    if _SMALL_CAPITALS not in text:
        return text
    if _SMALL_M in text:
        text = _MOLAR.sub(r"M\1", text)
    pieces: list[str] = []
    end = 0
    position = text.find(_SMALL_CAPITALS)
    while position >= 0:
        start = position + len(_SMALL_CAPITALS)
        if capitals := _CONFIGURATION.match(text, start) or _SMALL_CAPITAL_WORD.match(text, start):
            pieces += (text[end:start], capitals[0].upper())
            end = capitals.end()
        position = text.find(_SMALL_CAPITALS, start)
    return "".join((*pieces, text[end:])) if pieces else text


_MINUS_AND_NUMBER = re.compile(r"(<sup>(?:[−–-]|&#(?:x0{0,4}2212|8722);))</sup><sup>(?=\d)")


_EXPONENT_AFTER_BLANK = re.compile(
    r"((?:(?<![A-Za-z])[xX]|[×·∙⋅]|&#(?:x0{0,4}[dD]7|215);) ?)10 <sup>|(?<![\d.,])10 <sup>"
    rf"(?:(?=[−–-]|&#(?:x0{{0,4}}2212|8722);)|(?=\d</sup>{in_text_marks.COUNTED}))"
)
"""A power of ten by its factor ("× 10 <sup>9</sup>"), its sign or what is counted.

"10 <sup>13</sup>C" is none.
"""


def _join_exponents(text: str) -> str:
    """Join exponents that are in two superscripts, ``10<sup>−</sup><sup>5</sup>``, or after a blank."""
    if "</sup><sup>" in text:
        text = _MINUS_AND_NUMBER.sub(r"\1", text)
    return _EXPONENT_AFTER_BLANK.sub(r"\g<1>10<sup>", text) if "10 <sup>" in text else text


_QUOD_VIDE = re.compile(r"\[qv:\s?([^\[\]<>]{1,80})\]")


def link_citations(text: str) -> str:
    """Mark up numbers that are citations without a link: in superscripts, and Wiley's ``[qv: 6a]``."""
    if "[qv:" in text:
        text = _QUOD_VIDE.sub(r'[<xref ref-type="bibr">\1</xref>]', text)
    return _replace_superscripts(text, _SUPERSCRIPT_NUMBER, _link_citation)


def _link_citation(script: re.Match[str]) -> str:
    is_citation = element_text.is_citation(script)
    return f'<sup><xref ref-type="bibr">{script[1]}</xref></sup>' if is_citation else script[0]


def _replace_superscripts(
    text: str, pattern: re.Pattern[str], replace: Callable[[re.Match[str]], str]
) -> str:
    """Replace the matches of a pattern that begins with the tag of a superscript.

    Few texts have many, and ``find`` passes over other characters twice as fast as a pattern.
    """
    parts: list[str] = []
    position = 0
    start = text.find("<sup>")
    while start >= 0:
        if superscript := pattern.match(text, start):
            parts += (text[position:start], replace(superscript))
            position = superscript.end()
        start = text.find("<sup>", start + 1)
    return "".join([*parts, text[position:]]) if parts else text


_MARKED_START = re.compile(
    r"(<p(?:>| [^<>]*>))\s*+(<(?:bold|italic|underline)(?: [^<>]*)?>(?:<(?:bold|italic)>)?)"
    # The first branch only saves time: most have no italics inside.
    r"([^<>]{4,160}(?=</)|(?=[^<>]{0,160}<italic>)(?:[^<>]|<italic>[^<>]*</italic>){4,160})"
    r"((?:</(?:bold|italic|underline)>){1,2})([.:]?)"
    r"(?:\s*+(?=</p>\s*+<(?:p|list|disp-quote|disp-formula|table-wrap|fig)[ >])"
    r"|(\s++|—|&\#(?:819[45]|8201|160|x0*(?:200[239]|a0));\s*+)(?=(?:<(?:italic|sc)(?: [^<>]*)?>)?[A-Z]))"
)
"""A paragraph that begins with marked text; its last group is the blank, or dash, before other text."""
_ITALIC_TAG = re.compile("</?italic>")
_MAX_STOPPED_HEADING_WORDS: Final = 6
"""Words of a heading that is a paragraph and ends in a stop: "Species richness."."""
_SENTENCE_OPENERS: Final = (
    "A ",
    "An ",
    "In ",
    "It ",
    "Our ",
    "The ",
    "There ",
    "These ",
    "This ",
    "To ",
    "We ",
)
"""Words after a run-in heading that has no stop."""


def frame_headings(text: str) -> str:
    """Frame what is a heading by its markup.

    ``<p><bold>Gulls.</bold> Nests``, ``<p><bold>Gulls</bold> We count``, ``<p><bold>Gulls</bold></p><p>``;
    what is in bold before a line break.
    """
    return _MARKED_START.sub(_frame_heading, text.replace(HEADING_FRAME, "\ufffd"))


def _frame_heading(start: re.Match[str]) -> str:
    tag, opening, content, closing, mark, gap = start.groups()
    marked = _unescape(_ITALIC_TAG.sub("", content)).strip()
    if opening.count("<") != closing.count("<") or not is_title(marked.strip(" .:"), gap is None):
        return start[0]
    last = mark or marked[-1:]
    if gap is None:
        is_heading = last != "." or marked.count(" ") < _MAX_STOPPED_HEADING_WORDS
    else:
        opens_sentence = (
            ("\n" in gap and opening.startswith("<bold"))
            or start.string.startswith(_SENTENCE_OPENERS, start.end())
            or (is_run_in_heading(marked) and not _has_other_label(start, opening))
        )
        is_heading = last == "." or (opens_sentence and gap != "—" and last.isalnum())
    if not is_heading:
        return start[0]
    return (
        f"{tag}{HEADING_REFERENCE}{content.strip()}{mark}{HEADING_REFERENCE}{'' if gap == '—' else gap or ''}"
    )


def _has_other_label(start: re.Match[str], opening: str) -> bool:
    """Return True if a paragraph has more labels of an abstract, which cleaning makes sections."""
    rest = start.string[start.end() : start.string.find("</p>", start.end())]
    return any(f"{opening}{word}" in rest for word in ("Conclusion", "Method", "Result"))


# Simple inline markup

# An alternative for all end tags is faster than an optional slash before the names.
_PRESENTATION_TAG = re.compile(
    r"<(?:/(?:italic|bold|sub|sc|underline|monospace)"
    r'|italic(?: toggle="yes")?|bold|sub|sc|underline|monospace)>'
)
_SCRIPT_TAG = re.compile(r"<su[bp](?:>(\n)?|\s)")
"""Start tag of a script, with the line break after it."""
# Its first branch only saves time: many have the attributes in this order.
_XREF = re.compile(
    r'<xref\s(?>(?:rid="[^"<>]*"\s|[^<>]*?\s)??ref-type="([^"<>]*)"[^<>]*+)(?<!/)>'
    r"(?:([^<>]*)|<sup>([^<>]*)</sup>)</xref>"
)
_SUPERSCRIPT = re.compile(r"<sup>([^<>]*)</sup>")
_SUPERSCRIPT_NUMBER = re.compile(r"<sup>(\s*+\(?\d[^<>]*)</sup>")
_TAG_BEFORE_NOTE = re.compile(r"<(?!(?:xref|label)\b)[^<>]*>")
_MAX_TAG_LENGTH: Final = 300
_NUMBER_AFTER_TAG = re.compile(r">[\d.,xX]*e?$")

_TEXT_XREF_TYPE_LIST: Final = """
    fig table supplementary-material media sec disp-formula app boxed-text table-wrap video scheme
"""
_TEXT_XREF_TYPES: Final = frozenset(_TEXT_XREF_TYPE_LIST.split())
"""Values of ``ref-type`` whose text is always kept."""


def flatten_inline_markup(text: str) -> str:
    """Remove inline markup that only joins into the text around it.

    XML with line breaks before scripts is returned unchanged, as these breaks must not become blanks.
    """
    for mark in in_text_marks.RESERVED_MARKS:
        text = text.replace(mark, "\ufffd")
    if _has_indented_script(text):
        return text
    text = _XREF.sub(_flatten_xref, _PRESENTATION_TAG.sub("", text))
    return _replace_superscripts(text, _SUPERSCRIPT, _flatten_superscript)


def _has_indented_script(text: str) -> bool:
    """Return True if a line break is before or after the tag of a script, with only blanks and tags between.

    Scripts are few, and line breaks are many: what is before each script is read backwards.
    """
    last_script = 0
    start = text.find("<su")
    while start >= 0:
        if tag := _SCRIPT_TAG.match(text, start):
            if tag[1] or _is_after_line_break(text, start, last_script):
                return True
            last_script = start
        start = text.find("<su", start + 1)
    return False


def _is_after_line_break(text: str, position: int, first: int) -> bool:
    """Return True if only blanks and tags are between a line break and a position.

    Args:
        text: XML.
        position: offset of a tag.
        first: offset at which reading backwards ends, so that a text is read once.
    """
    while position > first:
        character = text[position - 1]
        if character in " \t":
            position -= 1
        elif character == ">":
            start = text.rfind("<", first, position)
            if start < 0 or text.find(">", start, position - 1) >= 0:
                return False
            position = start
        else:
            return character == "\n"
    return False


def _flatten_xref(xref: re.Match[str]) -> str:
    ref_type, plain_text, superscript = xref.groups()
    text: str = superscript if plain_text is None else plain_text
    if text == LINK_WITHOUT_NUMBER:
        return CITATION_REFERENCE
    if ref_type in CITATION_XREF_TYPES:
        flat_text = _flatten_citation(text)
        before_powers = ("10", "10<sup>", "m<sup>")
        if flat_text == CITATION_REFERENCE and xref.string.endswith(before_powers, 0, xref.start()):
            start, end = xref.span()
            before, is_in_superscript, _ = xref.string[max(0, start - _MAX_FACTOR) : start].partition("<sup>")
            after = xref.string[end : end + _MAX_UNIT].removeprefix("</sup>")
            if in_text_marks.is_linked_exponent(_unescape(before), _unescape(after)):
                return text if is_in_superscript else f"^{text.strip()}"
            if is_in_superscript and in_text_marks.is_linked_power_of_unit(text, _unescape(before)):
                return text
        return xref[0] if flat_text is None else flat_text
    return text if ref_type in _TEXT_XREF_TYPES else xref[0]


_MAX_FACTOR: Final = 20
"""Characters before the exponent of a power that has a factor: "2 &#x000d7; 10"."""
_MAX_UNIT: Final = 20
"""Characters after the exponent of a power without a factor."""


@functools.lru_cache(maxsize=1 << 14)
def _flatten_citation(text: str) -> str | None:
    """Return what stays of a citation with this text; None if this is decided with the text around it."""
    value = _unescape(text)
    if in_text_marks.is_numeric_citation(value):
        return CITATION_REFERENCE
    if value.strip() == LINK_SIGN:
        return REMOVAL_REFERENCE
    return None if text[-1] in ")]" else text


def _flatten_superscript(superscript: re.Match[str]) -> str:
    content: str = superscript[1]
    if content == CITATION_REFERENCE:
        return CITATION_REFERENCE
    text = _unescape(content)
    if CITATION_MARK in text and in_text_marks.has_only_citations(text):
        return CITATION_REFERENCE
    xml = superscript.string
    start, end = superscript.span()
    if element_text.is_degree(text, xml[end : end + 3]):
        return "°"
    last_character = xml[start - 1]
    if (
        last_character in ". "
        and text.isdecimal()
        and in_text_marks.ends_in_names(xml[max(0, start - 8) : start])
    ):
        return CITATION_REFERENCE
    if (
        last_character == CITATION_REFERENCE[-1]
        and xml.endswith(CITATION_REFERENCE, 0, start)
        and in_text_marks.closes_citation(text, _unescape(xml[max(0, start - _MAX_TAG_LENGTH) : start]))
    ):
        return ""
    if (
        last_character in " \t\n>"
        and in_text_marks.is_note_mark(text)
        and _may_precede_note(xml[max(0, start - _MAX_TAG_LENGTH) : start])
    ):  # decided with the whole paragraph
        return superscript[0]
    # Most are numbers, for which the word before is not cut out.
    if text.islower() and in_text_marks.may_point_to_note(
        text, xml[max(0, start - in_text_marks.MIN_NOTED_WORD) : start]
    ):
        return superscript[0]
    if (
        last_character == " "
        and xml.startswith(in_text_marks.END_OF_CAPTION, end)
        and in_text_marks.may_end_caption(text, xml[max(0, start - in_text_marks.MIN_NOTED_WORD - 1) : start])
    ):
        return superscript[0]
    # Most are of units, cm<sup>2</sup>; x is a sign of multiplication, e a base.
    if (last_character in "xXe" or not last_character.isalpha()) and element_text.may_be_exponent(text):
        before = xml[max(0, start - element_text.LOOKBACK_CHARACTERS) : start]
        if _NUMBER_AFTER_TAG.search(before):  # the base may begin in another element
            return superscript[0]
        if element_text.is_exponent(before, text):
            return f"^{content.lstrip()}"
    return "™" if text == "TM" else content


def _may_precede_note(before: str) -> bool:
    """Return True if a text ends in a tag, or in a blank after a clause."""
    stripped = before.rstrip()
    if stripped.endswith(">"):
        return _TAG_BEFORE_NOTE.fullmatch(stripped, max(0, stripped.rfind("<"))) is not None
    return (
        stripped != before
        and stripped.endswith(tuple(in_text_marks.CLAUSE_ENDS))
        and not stripped.endswith((CITATION_REFERENCE, REMOVAL_REFERENCE, HEADING_REFERENCE))
    )


@functools.lru_cache(maxsize=1 << 14)
def _unescape(text: str) -> str:
    """Resolve character references: a range's dash may be written ``&#x2013;``."""
    if "&" not in text:
        return text
    # html.unescape removes noncharacters.
    for reference, mark in ((CITATION_REFERENCE, CITATION_MARK), (REMOVAL_REFERENCE, REMOVAL_MARK)):
        text = text.replace(reference, mark)
    return html.unescape(text)
