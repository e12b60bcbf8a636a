"""Recognise the credits of pictures in captions: "Reproduced from Ode et al., with permission."."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from bioshards.corpus.sentences import spans

_FLAGS: Final = re.VERBOSE | re.IGNORECASE
_CREDIT = re.compile(
    r"""
    \W*+ (?: notes?: \s )?
    (?: (?: (?: the | these | this ) \s )? (?: figures? | images? | panels? | videos? ) \s (?: \S{1,9} \s )?
        (?: (?: is | was | were ) \s )? )?
    (?: (?: (?: adapted | modified ) \s (?: and \s \w+ \s )? (?: by | from | under | with ) \b
          | (?: reprinted | reproduced | republished | reused ) \b )
        .{0,300} (?: \bpermission | \bcopyright | \blicen[cs]e | \bCC [ -] BY )
      | (?: created | drawn | generated | made | prepared ) \s (?: by | in | using | with ) \s
        (?: https?:// )? (?: www\. )? biorender \b )
  | .{0,80} \b biorender\.com/ \w+ \W* $
  | \W{0,3} (?: (?: (?: the | this ) \s )? (?: figure | image | map | photo (?: graph )? | picture ) s? \s
      (?: (?: is | are | was | were ) \s )? )? courtesy \s of \b (?! .* \b (?: ha[sd] | is | was | were ) \s )
  | (?: (?: figure | image | photo (?: graph )? | picture | video ) \s )? credits? \s? : \s .{1,120} $
  | the \s figure \s is \s courtesy \s of \b .{0,200} \b permission
    """,
    _FLAGS,
)
"""A sentence of a caption that says whose a picture is."""
_CREDITED_WORK = re.compile(
    r"\W*(?:notes?: )?(?:(?:adapted|modified|reprinted|reproduced|republished) from|source:"
    r"|(?:data|figure) from(?= .{0,300}(?-i:\b[A-Z]{1,3}|\bet al)\.\Z)) ",
    re.IGNORECASE,
)
"""The start of a credit that is one if the end of a reference, or a copyright, follows."""
_CREDIT_END = re.compile(
    r"""
    \W*+ (?: © | copyright \b | published \s by \b | creative \s commons \b | all \s rights \b | CC [ -] BY \b
        | permission \s conveyed \b | doi \b | (?: 19 | 20 ) \d\d \W* $ )
  | .{0,80} \b (?: 19 | 20 ) \d\d (?: \s [A-Z][a-z]{2} \s \d{1,2} )?
      (?: ; \s? \d | , \s? \d{1,4} (?: \( | [,:] \s? \d ) )
  | .{0,80} \b epub \s (?: 19 | 20 ) \d\d
  | .{0,80} \b \d{1,4} , \s [\d,–-]{1,14} \s \( (?: 19 | 20 ) \d\d \)
    """,
    _FLAGS,
)
_END_OF_AUTHORS = re.compile(r"(?:\bet al|\b[A-Z]{1,3}|\.[A-Z])\.\Z")
_PANEL_INSIDE = re.compile(r"\. \(?[A-Za-z](?:[,–-] ?[A-Za-z])?\) |\w \([A-Za-z]\) [A-Z]")
"""A panel that the splitter joins with the credit before it: "Wiley-VCH GmbH. (D) Gulls"."""
_MAX_CREDIT: Final = 300
_MAX_TITLE_SENTENCES: Final = 3
"""Sentences of a title and a journal between authors and the year of a work."""
_CREDIT_WORD_LIST: Final = """
    BioRender ata_from dapted eprinted eproduced epublished eused igure_from odified ource: ourtesy_of redit:
    redits:
"""
_CREDIT_WORDS: Final = tuple(word.replace("_", " ") for word in _CREDIT_WORD_LIST.split())
"""A word of each credit, without its first letter: a fast prefilter."""


class CreditedCaption(NamedTuple):
    """A caption without the sentences that are credits, and these in order."""

    text: str
    credits: list[str]


def split_credits(caption: str) -> CreditedCaption | None:
    """Split the credits of pictures from a caption, wherever they stand; return None if it has none."""
    if not any(map(caption.__contains__, _CREDIT_WORDS)):
        return None
    sentences = [caption[start:stop] for start, stop in spans(caption)]
    kept: list[str] = []
    credits: list[str] = []
    index = 0
    while index < len(sentences):
        num_credits = _count_credits(sentences, index)
        if num_credits:
            credits += sentences[index : index + num_credits]
        else:
            kept.append(sentences[index])
        index += num_credits or 1
    return CreditedCaption(" ".join(kept), credits) if credits else None


def _count_credits(sentences: list[str], index: int) -> int:
    """Return how many sentences from an index are a credit: "Reproduced from Gull A et al. Nests. 2031;4"."""
    first = sentences[index]
    is_credit = _is_credit_part(first, _CREDIT.match)
    if not is_credit and not _is_credit_part(first, _CREDITED_WORK.match):
        return 0
    end = index + 1
    if _END_OF_AUTHORS.search(first):
        for place in range(end, min(end + _MAX_TITLE_SENTENCES + 1, len(sentences))):
            if _is_credit_part(sentences[place], _CREDIT_END.match):
                end, is_credit = place + 1, True
                break
    while end < len(sentences) and _is_credit_part(sentences[end], _CREDIT_END.match):
        end, is_credit = end + 1, True
    return end - index if is_credit else 0


def _is_credit_part(sentence: str, match: Callable[[str], re.Match[str] | None]) -> bool:
    return (
        len(sentence) <= _MAX_CREDIT
        and match(sentence) is not None
        and _PANEL_INSIDE.search(sentence) is None
    )
