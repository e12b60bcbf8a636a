"""Extract the text of a title or paragraph: inline elements joined as written, numeric citations removed.

Presentation elements (``<sub>``, ``<italic>``, ``<named-content>``) join without additional blanks. Numbers
of references and footnotes, graphics and LaTeX are removed; a mark stays of a formula without text, and of a
graphic that stands for a symbol.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from lxml import etree

from bioshards.corpus import mathml
from bioshards.corpus.jats import in_text_marks
from bioshards.corpus.jats.elements import TAXPUB
from bioshards.corpus.jats.in_text_marks import (
    CITATION_MARK,
    CITATION_XREF_TYPES,
    FORMULA_MARK,
    HEADING_FRAME,
    NOTE_FRAME,
    REMOVAL_MARK,
)
from bioshards.corpus.jats.xml_tree import XLINK_HREF
from bioshards.corpus.mathml import MATHML_NAMESPACE
from bioshards.corpus.sentences import collapse_whitespace
from bioshards.corpus.xml import element_text
from bioshards.corpus.xml.element_text import text_content

TextPieces = list[str]

_LINK_ARROW = re.compile(r"(?<!\s)\s*+▸|(?:(?<=\d)|(?<=\d[a-z]))\s*+▶")
"""Signs of links in text: "Fig. 4 ▸(a)", "Ode (2010a ▶)"."""

_FOOTNOTE_TYPES: Final = frozenset({"fn", "table-fn", "author-notes", "aff", "corresp"})
_FOOTNOTE_ID = re.compile(r"fn\d+\Z", re.IGNORECASE)
"""Ids of footnotes whose references have the type "other"."""
_NUMBERED_TYPES: Final = frozenset({"disp-formula", "fig", "table"})
_NUMBER_OF_ID = re.compile(r"(?<=\.[EFT])\d+\Z")
"""Number of what an empty reference points to, in the ids of Copernicus: "Ch1.T1"."""
_NON_CITATION_ID = re.compile(r"(?:[a-z]+\d+-)?(?:app|eq|fig|note|sec|sup|tab|tbl)", re.IGNORECASE)
"""Id prefixes of targets other than references, of an xref without a type: "fig1", "gull40-supinfo-0001"."""
_REMOVED_XREF_TAG: Final = "vanishing-xref"
_KEPT_XREF_TAG: Final = "kept-xref"
_MAX_FOOTNOTE_MARK_LENGTH: Final = 3  # characters of a footnote's number or symbol
_WEB_SCHEMES: Final = ("http:", "https:", "ftp:")
_LOOKBACK_CHARACTERS: Final = 20
_LOOKBACK_PIECES: Final = 8
_FOOTNOTE_WORD = re.compile(r"\b(?:foot)?notes?\s*+[(\[]?\s*+$", re.I)
"""Text before a footnote's mark that is a word of its sentence: "see footnote a"."""
WORD_GAP: Final = "\n\r"
"""A blank that words need; join_pieces removes it at the inner side of brackets and before punctuation.
A script after it stays apart, unlike one after a line break of the XML, which never ends in a return.
"""
_WORD_BEFORE_SYMBOL = re.compile(
    r"(?:\b(?:an?|all|at|because|between|by|equals?|every|for|from|given|if|in|is|let|of|some|than|that|the"
    r"|time|to|value|values|via|when|where|with|predicts?)|\b(?:e\.g|i\.e)\.,?|[=<>≤≥≈+×])[ \t\n]+\Z",
    re.IGNORECASE,
)
_WORDS_AFTER_SYMBOL = re.compile(
    r"\s+(?:are|denot(?:es?|ing)|equals|indicat(?:es?|ing)|is|represent(?:s|ing)?|stands? for|was|were"
    rf"|[=<>≤≥≈])\s|\s?\[{CITATION_MARK}"
)
"""Words around a graphic that is the noun of its sentence; keys of legends and logos have others."""
_CLAUSE_BEFORE_SYMBOL = re.compile(r"[a-zα-ω,:][ \t\n]+\Z")
_CLAUSE_AFTER_SYMBOL = re.compile(r"\s*(?:[^\w\s]|\Z|(?:and|are|for|in|is|or|then|where|which|with)\b)")
"""What is behind a symbol after a comma, colon or "and"; the key of a legend has its name there."""
_KEY_ELEMENTS: Final = ("caption", "fn", "table-wrap", "fig", "bio", "title")
"""Elements with pictures that are keys: "gulls ▣, terns ▣"; in the text of a section they are symbols."""
_NUMBERED_ITEM_NAME = re.compile(
    r"\b(?:fig|figs|figure|figures|table|tables|eq|eqs|equation|section|box|file|part|step)\.?\s*[(\[]?$",
    re.I,
)


DISPLAYED_FORMULAS: Final = ("disp-formula-group", "disp-formula")
WRITTEN_DISPLAYED_FORMULA: Final = "written-disp-formula"
"""Tag of a displayed formula whose content is the text to write (:func:`write_formulas`)."""
PRESENTATION_ELEMENTS: Final = frozenset({"italic", "bold", "sub", "sc", "underline", "monospace"})
"""Elements that xml_tree.py flattens."""
_NAME_PARTS: Final = f"""
    surname given-names prefix suffix string-name name collab institution addr-line city state country
    postal-code funding-source award-id taxon-name taxon-name-part taxon-authority taxon-status
    {TAXPUB}taxon-name {TAXPUB}taxon-name-part {TAXPUB}taxon-authority {TAXPUB}taxon-status
"""
"""Elements that are words on their own when nothing is between them; taxa are of TaxPub."""
_BLOCK_ELEMENTS: Final = f"""
    p title caption disp-quote preformat code address statement speech speaker list list-item def-list
    def-item term verse-group verse-line sec boxed-text fig fig-group table-wrap table-wrap-group
    chem-struct-wrap question answer {WRITTEN_DISPLAYED_FORMULA}
"""
"""Elements of paragraphs that may be nested in inline elements, where their text is no block of its own."""
_SKIPPED_ELEMENTS: Final = """
    tex-math object-id supplementary-material index-term fn ref-list related-object institution-id alt-text
    long-desc processing-meta contrib-group permissions label-alternatives label attrib rp
"""
CITED_WORKS: Final = "mixed-citation element-citation nlm-citation citation citation-alternatives"
"""References that are written where they are cited: "Ode [J. Gulls 2, 31]"."""
_GENUS_TYPES: Final = frozenset({"genus", "subgenus", "species"})
"""Values of ``content-type`` of the parts of a species' name but the last."""


def extract_text(element: etree._Element) -> str:
    """Return the element's text in one line."""
    if not len(element):
        return join_pieces([element.text or ""])
    pieces: TextPieces = []
    append_text(element, pieces)
    return join_pieces(pieces)


def join_pieces(pieces: TextPieces) -> str:
    """Join the output of :func:`append_text` into one line and remove the citation marks."""
    text = "".join(pieces)
    if text.isascii():  # without marks; what XML permits of white space is less than Python knows
        text = text.strip()
        if not ("\n" in text or "\t" in text or "\r" in text):
            return " ".join(text.split()) if "  " in text else text
    else:
        if CITATION_MARK in text or REMOVAL_MARK in text:
            text = in_text_marks.remove_marks(text)
        if HEADING_FRAME in text:
            text = text.replace(HEADING_FRAME, "")
        if NOTE_FRAME in text:
            text = in_text_marks.remove_note_marks(text)
        if "▸" in text or in_text_marks.LINK_SIGN in text:
            text = _LINK_ARROW.sub("", text)
        text = text.strip()  # most line breaks are at the ends
    return collapse_whitespace(_remove_indentation(text) if "\n" in text else text)


def _remove_indentation(text: str) -> str:
    """Remove line breaks that only indent the XML: inside brackets, before a comma."""
    parts = [""]
    for line in filter(None, map(str.strip, text.split("\n"))):
        parts += ("" if line[0] in ",.;:)]" or parts[-1][-1:] in ("(", "[") else " ", line)
    return "".join(parts)


def append_text(element: etree._Element, pieces: TextPieces) -> None:
    """Append the text inside an element, with a mark for each removed citation."""
    if text := element.text:
        pieces.append(text)
    if len(element):  # faster than a loop over no children
        for child in element:
            handler = _HANDLERS.get(child.tag, append_text)
            handler(child, pieces)
            if tail := child.tail:
                pieces.append(tail)


def append_inline(element: etree._Element, pieces: TextPieces) -> None:
    """Append the text of an inline element."""
    _HANDLERS.get(element.tag, append_text)(element, pieces)


def _join_marked_text(element: etree._Element) -> str:
    """Return the text inside an element, with its marks."""
    pieces: TextPieces = []
    append_text(element, pieces)
    return "".join(pieces)


def mark_citations(article: etree._Element, *, author_year: bool, numeric: bool) -> None:
    """Rename citations of the tree that are not treated by default: numeric ones removed, others kept.

    Args:
        article: a parsed article.
        author_year: keep citations by name and year.
        numeric: keep numeric citations; the tree must not have been flattened.
    """
    if author_year and not numeric:
        return
    for xref in article.iter("xref"):
        ref_type = xref.get("ref-type")
        is_numeric = in_text_marks.is_numeric_citation(text_content(xref))
        if numeric and (not ref_type or (ref_type in CITATION_XREF_TYPES and (is_numeric or author_year))):
            xref.tag = _KEPT_XREF_TAG
        elif ref_type in CITATION_XREF_TYPES and not author_year:
            xref.tag = _REMOVED_XREF_TAG


def _append_kept_citation(xref: etree._Element, pieces: TextPieces) -> None:
    """Append the text of a citation; superscript numbers in brackets, as they would join the word before."""
    text = text_content(xref)
    is_superscript = next(xref.iterchildren("sup"), None) is not None
    pieces.append(f" [{text.strip()}]" if is_superscript else text)


def _append_citation_mark(_: etree._Element, pieces: TextPieces) -> None:
    pieces.append(CITATION_MARK)


def _skip(_: etree._Element, pieces: TextPieces) -> None:
    """Skip the element; the text after it is kept."""


def _append_removal_mark(_: etree._Element, pieces: TextPieces) -> None:
    """Append a mark for a picture, so that no blank remains before a comma."""
    pieces.append(REMOVAL_MARK)


def _append_inline_graphic(graphic: etree._Element, pieces: TextPieces) -> None:
    """Append a mark for a symbol if the words around a graphic need one, as "at time", else for a picture."""
    before = _join_last(pieces)[-_LOOKBACK_CHARACTERS:]
    tail = graphic.tail or ""
    is_symbol = (
        _WORD_BEFORE_SYMBOL.search(before)
        or _WORDS_AFTER_SYMBOL.match(tail)
        or (tail.strip() == "[" and _is_numeric_xref(graphic.getnext()))
        or (_is_in_clause(before, tail) and next(graphic.iterancestors(*_KEY_ELEMENTS), None) is None)
    )
    pieces.append(FORMULA_MARK if is_symbol else REMOVAL_MARK)


def _is_in_clause(before: str, after: str) -> bool:
    """Return True if a graphic is between the words of a clause."""
    if not _CLAUSE_BEFORE_SYMBOL.search(before):
        return False
    return not before.rstrip().endswith((",", ":", " and", " or")) or (
        _CLAUSE_AFTER_SYMBOL.match(after) is not None
    )


def _is_numeric_xref(element: etree._Element | None) -> bool:
    return (
        element is not None
        and element.tag == "xref"
        and element.get("ref-type") in CITATION_XREF_TYPES
        and in_text_marks.is_numeric_citation(text_content(element))
    )


def _join_last(pieces: TextPieces) -> str:
    """Return the text of the last pieces."""
    return "".join(pieces[-_LOOKBACK_PIECES:])


def _append_link(link: etree._Element, pieces: TextPieces) -> None:
    """Append the text of a link; if it has none, its address where the sentence needs it, or a mark."""
    text = _join_marked_text(link)
    if not text:
        address = link.get(XLINK_HREF, "").strip()
        before = _join_last(pieces)[-_LOOKBACK_CHARACTERS:]
        is_object = address.startswith(_WEB_SCHEMES) and in_text_marks.governs_address(before)
        text = address if is_object else REMOVAL_MARK
    pieces.append(text)


def _append_blank(_: etree._Element, pieces: TextPieces) -> None:
    pieces.append(" ")


def _append_xref(xref: etree._Element, pieces: TextPieces) -> None:
    ref_type = xref.get("ref-type")
    text = _join_marked_text(xref).replace(NOTE_FRAME, "")
    if not (ref_type or text or xref.get("rid")):
        return  # the target of other links: <xref id="InR1"/>
    if text.strip() == in_text_marks.LINK_WITHOUT_NUMBER:
        text = CITATION_MARK
    elif ref_type in CITATION_XREF_TYPES or not ref_type:
        if in_text_marks.is_numeric_citation(text.replace(CITATION_MARK, "")):
            if (
                ref_type
                or not text.strip()
                or not (
                    _NON_CITATION_ID.match(xref.get("rid", ""))
                    or (pieces and _NUMBERED_ITEM_NAME.search(pieces[-1][-_LOOKBACK_CHARACTERS:]))
                )
            ):
                text = CITATION_MARK
        elif text.strip() == in_text_marks.LINK_SIGN:
            text = REMOVAL_MARK
        elif ref_type:
            text = in_text_marks.mark_trailing_number(text)
    elif (
        (ref_type in _FOOTNOTE_TYPES or (ref_type == "other" and _FOOTNOTE_ID.match(xref.get("rid", ""))))
        and len(text.strip()) <= _MAX_FOOTNOTE_MARK_LENGTH
        and not _FOOTNOTE_WORD.search(_join_last(pieces)[-_LOOKBACK_CHARACTERS:])
    ):
        text = CITATION_MARK
    elif not text and ref_type in _NUMBERED_TYPES and (number := _NUMBER_OF_ID.search(xref.get("rid", ""))):
        text = number[0]  # which the publisher's pages print: "see Table <xref rid="Ch1.T1"/>"
    if text == CITATION_MARK and pieces and pieces[-1].endswith("10"):
        before = _join_last(pieces)[-_LOOKBACK_CHARACTERS:]
        if in_text_marks.is_linked_exponent(before, xref.tail or ""):
            text = f"^{text_content(xref).strip()}"
    if text:
        pieces.append(text)


def _append_superscript(element: etree._Element, pieces: TextPieces) -> None:
    text = _strip_indentation(_join_marked_text(element), element.tail or "")
    if next(element.iterchildren(_KEPT_XREF_TAG), None) is not None:
        pieces.append(f" [{text.strip()}]")
        return
    if element_text.is_degree(text, (element.tail or "")[:3]):
        _strip_line_break(pieces)
        pieces.append("°")
        return
    if text.isdecimal() and in_text_marks.ends_in_names(_join_last(pieces)):
        pieces.append(CITATION_MARK)
        return
    if _may_start_note(element, text, pieces):
        pieces.append(f"{NOTE_FRAME}{text}{NOTE_FRAME}")
        return
    if pieces and in_text_marks.may_point_to_note(text, pieces[-1]):
        if pieces[-1].endswith("."):  # Eggs.<sup>b</sup>Of these
            pieces.append(" ")
        return
    if pieces and next(element.iterancestors("table-wrap"), None) is not None:
        if in_text_marks.may_open_note(text, pieces[-1], element.tail or ""):
            pieces.append(" ")
            return
        is_at_end = element.tail == "." and element.getnext() is None
        if is_at_end and in_text_marks.may_end_caption(text, pieces[-1]):
            pieces[-1] = pieces[-1].rstrip(" ")
            return
    if in_text_marks.closes_citation(text, _join_last(pieces)):
        return
    is_isotope = text.isdigit() and (element.tail or "")[:1].isupper()
    # The blanks before <sup>14</sup>C and after "Gulls.", before <sup>#</sup>P < 0.05, are intended.
    if not is_isotope and not (_SIGNS.fullmatch(text) and "".join(pieces[-2:]).rstrip().endswith(".")):
        _strip_line_break(pieces)
    if CITATION_MARK in text and in_text_marks.has_only_citations(text):
        before = _join_last(pieces)[-_LOOKBACK_CHARACTERS:]
        script = text_content(element).strip()
        if before.endswith("10") and in_text_marks.is_linked_exponent(before, element.tail or ""):
            pieces.append(f"^{script}")
        elif in_text_marks.is_linked_power_of_unit(script, before):
            pieces.append(script)
        else:
            pieces.append(CITATION_MARK)
    elif element_text.may_be_exponent(text) and element_text.is_exponent(
        _join_last(pieces)[-element_text.LOOKBACK_CHARACTERS :], text
    ):
        pieces.append(f"^{text.lstrip()}")
    elif text:
        pieces.append("™" if text == "TM" else text)


_SIGNS = re.compile(r"[#*†‡§]{1,3}")


def _may_start_note(element: etree._Element, text: str, pieces: TextPieces) -> bool:
    """Return True if a superscript may be the mark of a note: first in a paragraph, or after a clause."""
    last_character = pieces[-1][-1:] if pieces else ""
    if (last_character and last_character not in " \t\n\r") or not in_text_marks.is_note_mark(text):
        return False
    before = _join_last(pieces).rstrip()
    if before:
        return last_character != "" and before[-1] in in_text_marks.CLAUSE_ENDS
    parent = element.getparent()
    while parent is not None and parent.tag in PRESENTATION_ELEMENTS:
        parent = parent.getparent()
    return parent is not None and parent.tag == "p"


def _append_subscript(element: etree._Element, pieces: TextPieces) -> None:
    _strip_line_break(pieces)
    pieces.append(_strip_indentation(_join_marked_text(element), element.tail or ""))


def _strip_indentation(script: str, following: str) -> str:
    """Remove line breaks that only indent the content of a script; a word after it stays apart."""
    if script[:1] != "\n" or script.startswith(WORD_GAP):
        return script
    content, line_break, rest = script.lstrip(" \t\n").rpartition("\n")
    if rest.strip(" \t"):
        return content + line_break + rest
    return f"{content}\n" if following[:1].isalpha() else content


def _strip_line_break(pieces: TextPieces) -> None:
    """Remove a trailing line break that only indents the XML before a script."""
    if pieces and pieces[-1][-1:] in (" ", "\t", "\n"):
        stripped = pieces[-1].rstrip(" \t\n")
        if "\n" in pieces[-1][len(stripped) :]:
            pieces[-1] = stripped


def _append_block(element: etree._Element, pieces: TextPieces) -> None:
    """Append the text of an element that is apart from the text around it."""
    pieces.append(WORD_GAP)
    append_text(element, pieces)
    pieces.append(WORD_GAP)


def _append_explanation(element: etree._Element, pieces: TextPieces) -> None:
    """Append the explanation of the text before it: in brackets, unless its own marks or blanks join it.

    Pensoft's journals write ``MB<def><p> – Museum of Birds</p></def>`` and ``<def><p>Museum of Birds
    </p></def>(MB)``.
    """
    text = extract_text(element)
    if not text:
        return
    parent, paragraph = element.getparent(), element.find("p")
    written = "" if paragraph is None else _join_marked_text(paragraph)
    if parent is not None and parent[0] is element and not (parent.text or "").strip():
        pieces += (text, WORD_GAP)
    elif written.startswith(_JOINING_MARKS):
        pieces.append(text if written.startswith(_CLOSING_MARKS) else f" {text}")
    else:
        pieces.append(f" ({text})")


_CLOSING_MARKS: Final = (",", ":", ";")
_JOINING_MARKS: Final = (*_CLOSING_MARKS, " ", "\t", "–", "—", "=")


def _append_alternatives(element: etree._Element, pieces: TextPieces) -> None:
    """Append the first alternative that has text; else a mark, that of a formula if one is LaTeX."""
    for child in element:
        inner_pieces: TextPieces = []
        append_inline(child, inner_pieces)
        if "".join(inner_pieces).strip(_BLANKS_AND_MARKS):
            pieces += inner_pieces
            return
    tex, parent = element.find("tex-math"), element.getparent()
    if tex is None:
        pieces.append(REMOVAL_MARK)
    elif parent is not None and parent.tag == "inline-formula":  # which writes it
        pieces.append(FORMULA_MARK)
    else:
        pieces.append(_format_symbol(tex, element, pieces))


def _append_name_part(element: etree._Element, pieces: TextPieces) -> None:
    """Append a part of a name, with a blank if a part before it ends where it begins.

    Empty parts are between them or before the first: ``<genus reg="Larus"/><species>minor</species>``.
    """
    previous = element.getprevious()
    while previous is not None and not previous.tail and _HANDLERS.get(previous.tag) is _append_name_part:
        if len(previous) or previous.text:
            pieces.append(" ")
            break
        previous = previous.getprevious()
    append_text(element, pieces)


def _append_named_content(element: etree._Element, pieces: TextPieces) -> None:
    """Append marked-up text, with a blank before the species if the genus ends where it begins."""
    previous = element.getprevious()
    if previous is not None and not previous.tail and previous.get("content-type") in _GENUS_TYPES:
        pieces.append(" ")
    append_text(element, pieces)


_FORMULA_IMAGES: Final = ("graphic", "inline-graphic", "tex-math")
_BLANKS_AND_MARKS: Final = f" \t\n\r{REMOVAL_MARK}{FORMULA_MARK}"


def _append_formula(element: etree._Element, pieces: TextPieces) -> None:
    """Append a formula from its MathML, or its text; a mark if it has only LaTeX and graphics."""
    math = element.find(f".//{MATHML_NAMESPACE}math")
    text = _join_marked_text(element) if math is None else _format_math(math)
    if not text.strip(_BLANKS_AND_MARKS):
        text = REMOVAL_MARK if next(element.iter(_FORMULA_IMAGES), None) is None else FORMULA_MARK
        tex = next(element.iter("tex-math"), None)
        if tex is not None:
            text = _format_symbol(tex, element, pieces)
    pieces.append(text)


_SYMBOL_LIST: Final = """
    alpha:α beta:β gamma:γ delta:δ epsilon:ε varepsilon:ε zeta:ζ eta:η theta:θ vartheta:θ iota:ι kappa:κ
    lambda:λ mu:μ upmu:μ nu:ν xi:ξ pi:π rho:ρ sigma:σ tau:τ upsilon:υ phi:φ varphi:φ chi:χ psi:ψ omega:ω
    Gamma:Γ Delta:Δ Theta:Θ Lambda:Λ Xi:Ξ Pi:Π Sigma:Σ Phi:Φ Psi:Ψ Omega:Ω upalpha:α upbeta:β upgamma:γ
    circ:° degree:° sim:~ times:× pm:± le:≤ leq:≤ ge:≥ geq:≥ approx:≈ rightarrow:→ to:→ infty:∞ cdot:·
    ell:ℓ prime:′ AA:Å
"""
_SYMBOLS: Final = {name: sign for name, _, sign in (pair.partition(":") for pair in _SYMBOL_LIST.split())}
_TEX_SYMBOL = re.compile(r"\$(?:([A-Za-z]{1,3})|\^?\{?\\([A-Za-z]{1,10})\}?)\$")

_WORD_AT_END = re.compile(r"[a-z]{2}\Z")
_WORD_AT_START = re.compile(r"(?!(?:st|nd|rd|th)\b)[a-z]{2}")


def _format_symbol(tex: etree._Element, formula: etree._Element, pieces: TextPieces) -> str:
    """Return the characters of LaTeX that is one symbol or a few letters, apart from words; else a mark."""
    symbol = _TEX_SYMBOL.fullmatch(format_latex(text_content(tex)))
    text = (symbol[1] or _SYMBOLS.get(symbol[2])) if symbol else None
    if text is None:
        return FORMULA_MARK
    before = " " if pieces and _WORD_AT_END.search(pieces[-1][-2:]) else ""
    after = " " if _WORD_AT_START.match(formula.tail or "") else ""
    return f"{before}{text}{after}"


def extract_formula(element: etree._Element) -> str:
    """Return the text of a formula in one line."""
    pieces: TextPieces = []
    _append_formula(element, pieces)
    return join_pieces(pieces)


def _append_math(element: etree._Element, pieces: TextPieces) -> None:
    pieces.append(_format_math(element))


def _format_math(math: etree._Element) -> str:
    """Return the text of a formula, with the blanks at its edges that its source has."""
    text = mathml.formula_to_text(math)
    leaves = [leaf for leaf in math.iter(etree.Element) if not len(leaf)]
    edges = [WORD_GAP if text and leaves and _is_blank_at(leaves[end], end) else "" for end in (0, -1)]
    return f"{edges[0]}{text}{edges[1]}"


def _is_blank_at(leaf: etree._Element, end: int) -> bool:
    name = str(leaf.tag).rpartition("}")[2]
    if name == "mspace":
        return mathml.is_wide_space(leaf)
    text = leaf.text or ""
    if name != "mtext":  # such as <mo>&#160;</mo>; XML's own white space is trimmed in MathML
        return text.strip(" \t\r\n").isspace()
    return bool(text) and text[end].isspace()


# Written formulas

_WRITTEN_INLINE_FORMULA: Final = "written-inline-formula"
_LATEX_DOCUMENT: Final = re.compile(r"\\begin\{document\}(.*?)(?:\\end\{document\}|$)", re.DOTALL)
_LATEX_DELIMITERS: Final = (("$$", "$$"), ("$", "$"), (r"\[", r"\]"), (r"\(", r"\)"))


def write_formulas(article: etree._Element, formula: str) -> None:
    """Replace formulas in the tree by their text.

    Args:
        article: a parsed article.
        formula: ``text`` writes displayed formulas as inline ones always are, by their MathML; ``latex``
            writes all formulas that have ``tex-math`` as LaTeX between ``$``, the other displayed ones as
            text; any other word stands in place of every displayed formula; "" changes nothing.
    """
    if not formula:
        return
    if formula == "latex":
        for tex in list(article.iter("tex-math")):
            element = _find_formula(tex)
            if element.tag not in DISPLAYED_FORMULAS and (latex := format_latex(text_content(tex))):
                _replace_content(element, _WRITTEN_INLINE_FORMULA, latex)
    for element in list(article.iter(DISPLAYED_FORMULAS)):
        parent = element.getparent()
        if parent is None or parent.tag == "disp-formula-group":  # written with its group
            continue
        parts = list(element.iter("disp-formula")) or [element]
        texts = (
            [_format_displayed(part, formula) for part in parts]
            if formula in ("latex", "text")
            else [formula]
        )
        _replace_content(element, WRITTEN_DISPLAYED_FORMULA, " ".join(filter(None, texts)))


def format_latex(tex: str) -> str:
    """Return the LaTeX of a ``tex-math`` in one line between ``$``, without the document around it."""
    document = _LATEX_DOCUMENT.search(tex)
    latex = collapse_whitespace(document[1] if document else tex).removeprefix("}{}")  # of a publisher
    for start, end in _LATEX_DELIMITERS:
        if len(latex) >= len(start) + len(end) and latex.startswith(start) and latex.endswith(end):
            latex = latex[len(start) : -len(end)].strip()
            break
    return f"${latex}$" if latex else ""


def _find_formula(tex: etree._Element) -> etree._Element:
    """Return the formula that a ``tex-math`` writes: its parent, or that of its alternatives."""
    element = tex
    for tags in (("alternatives",), ("inline-formula", *DISPLAYED_FORMULAS)):
        parent = element.getparent()
        if parent is not None and parent.tag in tags:
            element = parent
    return element


def _format_displayed(element: etree._Element, formula: str) -> str:
    """Return a displayed formula as LaTeX or, if it has none or is not asked for, as text."""
    if formula == "latex":
        latex = [format_latex(text_content(tex)) for tex in element.iter("tex-math")]
        if any(latex):
            return " ".join(filter(None, latex))
    return extract_formula(element)


def _replace_content(element: etree._Element, tag: str, text: str) -> None:
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = tag, text, tail


_HANDLERS: Final[dict[object, Callable[[etree._Element, TextPieces], None]]] = {
    name: handler
    for handler, names in (
        (_append_xref, "xref"),
        (_append_citation_mark, f"{_REMOVED_XREF_TAG} {CITED_WORKS}"),
        (_append_kept_citation, _KEPT_XREF_TAG),
        (_append_superscript, "sup"),
        (_append_subscript, "sub"),
        (_append_blank, "break table array disp-formula disp-formula-group"),
        (_append_explanation, "def rt"),
        (_append_alternatives, "alternatives block-alternatives"),
        (_append_block, _BLOCK_ELEMENTS),
        (_append_name_part, _NAME_PARTS),
        (_append_named_content, "named-content"),
        (_append_link, "ext-link uri"),
        (_append_formula, "inline-formula"),
        (_append_math, f"math {MATHML_NAMESPACE}math"),
        (_append_inline_graphic, "inline-graphic private-char"),
        (_append_removal_mark, "graphic media inline-media"),
        (_skip, _SKIPPED_ELEMENTS),
    )
    for name in names.split()
}
"""Handlers of elements whose text is not simply their content."""
