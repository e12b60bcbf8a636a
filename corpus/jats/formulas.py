"""Write formulas into an article's tree as asked for, before its text is extracted."""

from __future__ import annotations

import re
from typing import Final

from lxml import etree

from bioshards.corpus.jats import inline
from bioshards.corpus.jats.inline import WRITTEN_DISPLAYED_FORMULA
from bioshards.corpus.sentences import collapse_whitespace
from bioshards.corpus.xml.element_text import text_content

_WRITTEN_INLINE_FORMULA: Final = "written-inline-formula"
_DISPLAYED_FORMULAS: Final = ("disp-formula-group", "disp-formula")
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
            if element.tag not in _DISPLAYED_FORMULAS and (latex := format_latex(text_content(tex))):
                _replace_content(element, _WRITTEN_INLINE_FORMULA, latex)
    for element in list(article.iter(_DISPLAYED_FORMULAS)):
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
    for tags in (("alternatives",), ("inline-formula", *_DISPLAYED_FORMULAS)):
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
    return inline.extract_formula(element)


def _replace_content(element: etree._Element, tag: str, text: str) -> None:
    tail = element.tail
    element.clear()
    element.tag, element.text, element.tail = tag, text, tail
