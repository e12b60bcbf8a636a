"""Split a paragraph of biomedical English into sentences.

A full stop, question or exclamation mark followed by a space and something that can begin a
sentence is a boundary, unless the word before it is an abbreviation or an initial.  The words are
data, below; the rule is one regular expression.
"""

from __future__ import annotations

import re
from typing import Final

_TABLE: Final = """
    Fig Figs fig figs Eq Eqs eq Ref Refs ref refs No Nos nos Vol vol pp Tab Suppl suppl Sect Chap
    Exp Ser ser St Dr Drs Mr Mrs Ms Prof Sir Mt Ft cf vs v.s viz e.g i.e eg ie ca approx incl resp
    al et.al var subsp ssp sp spp cv pv bv f.sp nov gen str Ltd Inc Co Corp Univ Dept Jr Sr Ph.D
    i.p i.v i.m s.c p.o i.c.v i.d i.n b.i.d t.i.d q.d b.w w.t
    Biol Chem Med Sci Natl Acad Proc Int Am Br Eur Surg Clin Rev Res Soc Pharmacol Physiol Biochem
    Biophys Immunol Genet Microbiol Neurol Psychiatr Pathol
    Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec
"""
ABBREVIATIONS: Final = frozenset(_TABLE.split())
"""Words before a full stop that does not end a sentence, without that full stop."""

_END = re.compile(
    r"""[.!?]["'”’)\]]*\ (?=["'“‘(\[]*[^\sa-z,;:.)\]%/=<>+-])""",
    re.VERBOSE,
)


def split(text: str) -> list[str]:
    """The sentences of a paragraph, in order, white space collapsed to single blanks.

    No word is changed, lost or moved: ``" ".join(split(text)).split() == text.split()``.
    """
    text = " ".join(text.split())
    return split_clean(text)


def split_clean(text: str) -> list[str]:
    """:func:`split` for text whose white space is single blanks already."""
    sentences = []
    start = 0
    for boundary in _END.finditer(text):
        stop = boundary.start()
        if text[stop] == "." and boundary.end() == stop + 2 and _abbreviation(text, start, stop):
            continue
        sentences.append(text[start : boundary.end() - 1])
        start = boundary.end()
    if start < len(text):
        sentences.append(text[start:])
    return sentences


def _abbreviation(text: str, start: int, stop: int) -> bool:
    """Is the word that ends at ``stop`` one after which a full stop is no end?"""
    word = text[max(text.rfind(" ", start, stop) + 1, start) : stop].lstrip("([\"'“‘")
    if len(word) == 1:
        return word.isupper() and not text.startswith(("The ", "We ", "In ", "This "), stop + 2)
    return word in ABBREVIATIONS
