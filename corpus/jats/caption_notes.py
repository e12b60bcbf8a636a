"""Recognise text of captions that is no sentence: labels, notes about files, notes about colour.

"Table S1. Counts of gulls. (XLSX 12 kb)" has the label "Table S1", a sentence, and a note about the file of
a supplement.
"""

from __future__ import annotations

import re
from typing import Final

_FLAGS: Final = re.VERBOSE | re.IGNORECASE

# Notes about files

_TYPE: Final = r"""
    (?: \.? (?: docx? | xls[xmb]? | ppt | pp[st]x | pdf | rtf | txt | csv | tsv | od[st] | html? | xml | json
              | zip | rar | 7z | t?gz | tar | gif | jpe?g | tiff? | png | bmp | e?ps | svg | ai | cdr | psd
              | mp[34] | mpe?g | m4v | avi | mov | wmv | flv | swf | wav | fas (?:ta)? | nex (?:us)? | nwk
              | tre | phy | aln | vcf | bed | gff3? | pdb | cif | sh )
      | (?: ms | microsoft )? \s? (?: word | excel | powerpoint ) | quicktime )
    (?: \s (?: file | document | spreadsheet | workbook | movie | video | image | format ) )?
"""
_SIZE: Final = r"""
    (?: (?: size \s? :? \s? )? [\d.,]+ \s? (?: [kmg]i?b (?:ytes)? | (?: kilo | mega )? bytes | [kmg] ) )
"""
_GAP: Final = r"[\s,;:/|–-]* [(\[]?"
_TYPE_AND_SIZE: Final = rf"(?: {_TYPE} {_GAP} {_SIZE} | {_SIZE} {_GAP} {_TYPE} ) [)\]]?"
_IN_BRACKETS: Final = rf"\s* [(\[] \s* {_TYPE_AND_SIZE} \s* [)\]]"
_BRACKETED_NOTE = re.compile(rf"(?<= [.!?] ) {_IN_BRACKETS} \.? | {_IN_BRACKETS}", _FLAGS)
_SIZE_HINT = re.compile(r"\d\s?(?:[kmg]i?b|(?:kilo|mega)?bytes|[kmg]\b)", re.IGNORECASE)
_SUPPLEMENT_NOTE = re.compile(
    rf"""
    (?: ^ | (?<= [.!?:)\]] ) \s+ )
    (?: click \s here \s (?: for | to ) \s .*
      | download \s .{{1,60}} , \s {_TYPE} , \s {_SIZE}
      | (?: format | file \s type ) \s? : \s? {_TYPE} .*
      | [(\[] \s* (?: {_TYPE} | {_SIZE} )? \s* [)\]] )
    \.? $
    """,
    _FLAGS,
)
_WHOLE_NOTE = re.compile(rf"[(\[]? \s* (?: {_TYPE_AND_SIZE} | {_TYPE} | {_SIZE} ) \s* [)\]]? \.?", _FLAGS)


def remove_file_notes(text: str, is_supplement: bool) -> str:
    """Remove notes about a file: "(XLSX 12 kb)", "Click here for additional data file.".

    Args:
        text: a paragraph in one line.
        is_supplement: the paragraph belongs to a supplement, so that "(TIF)" and "(12 kb)" are notes too.
    """
    if _SIZE_HINT.search(text):
        text = _BRACKETED_NOTE.sub("", text)
    if is_supplement:
        text = _SUPPLEMENT_NOTE.sub("", text).strip()
        return "" if _WHOLE_NOTE.fullmatch(text) else text
    return text


_LINK_NOTE = re.compile(
    r"""
    \W* (?: doi \s? :? \s? )? (?: https?:// | 10\.\d{4,9}/ ) \S+ \W*
  | (?: the \s )? online \s version \b .* \b contains \s supplementa (?:l|ry) \s .*
  | (?: the \s | for \s )? supplementa (?:l|ry) \s (?: data | information | materials? | files? ) \b .*
    \b (?: accompan (?:y|ies|ying) | available | found | visit ) \b .*
    (?: \b online \b | https?:// | doi | \b10\.\d ) .*
    """,
    _FLAGS,
)
_SENTENCE_END = re.compile(r"\w\S*[.!?] [A-Z]")
_MAX_LINK_NOTE: Final = 300


def is_link_note(text: str) -> bool:
    """Return True if a text is only a link, or only says where the supplements are."""
    return (
        len(text) <= _MAX_LINK_NOTE
        and ("://" in text or "10." in text or "upplement" in text)
        and _LINK_NOTE.fullmatch(text) is not None
        and _SENTENCE_END.search(text) is None
    )


# Notes about colour

_ELSEWHERE: Final = r"\b (?: online | web | viewed | wileyonlinelibrary )"
_COLOUR_NOTE = re.compile(
    rf"""
    \s* [(\[] [^()\[\]]* \b colou?r [^()\[\]]* {_ELSEWHERE} [^()\[\]]* [)\]] (?: (?<= \.. ) \. )?
  | (?: ^ | (?<= [.!?)\]] ) \s+ )
    (?: for \s interpretation \s of \s (?: the \s )? references \s to \s colou?r .* {_ELSEWHERE} [^.]*
      | (?: (?: a | the ) \s )? (?: full [ -] )? colou?r \s (?: figure | version | image | plate ) s? \b
        [^.]* {_ELSEWHERE} .*
      | to \s view \s [^.]* \b in \s colou?r \b [^.]* {_ELSEWHERE} [^.]*
      | see \s (?: the \s )? online \s [^.]* \b colou?r \s version \b [^.]* )
    \.? $
    """,
    _FLAGS,
)


def remove_colour_notes(text: str) -> str:
    """Remove notes on where a figure is in colour: "[Color figure can be viewed at ...]"."""
    return _COLOUR_NOTE.sub("", text).strip() if "olo" in text or "OLO" in text else text


# Panels

_FIRST_PANEL = re.compile(r"(?<=[\w)%]\.) (?=a,? [A-Z(])")
_SECOND_PANEL = re.compile(r"\bb,? [A-Z(a-z]")


def split_at_first_panel(text: str) -> list[str]:
    """Split a caption between its title and the first panel: "Map of OsCNT2. a Genes. b Gulls".

    The full stop may be that of an abbreviation for the sentence splitter, as a small letter follows.
    """
    if ". a" not in text:
        return [text]
    panel = _FIRST_PANEL.search(text)
    if panel is None or _SECOND_PANEL.search(text, panel.end()) is None:
        return [text]
    return [text[: panel.start()], text[panel.end() :]]


# Labels

_NUMBER: Final = r"(?: (?: [a-z]{1,2} [.-]? )? \d+ (?: [.-] \d+ )? [a-z]? | [ivx]+ ) \b"
_LABEL_KIND: Final = r"""
    (?: (?: additional | supplementa (?:l|ry) | supporting | extended \s data | online | electronic | web
          | suppl? \.? | appendix | source | e ) \s? )?
    (?: fig (?:ure)? s? | tables? | files? | data \s? (?:set|sheet)? s? | movies? | videos? | audios? | text
      | box | figure \s supplements? | code | materials? | information | appendi (?:x|ces) | schemes? | notes?
      | protocols? | methods? | images? | presentations? | plates? | maps? | charts? | graphs? )
"""
_NUMBERED_LABEL: Final = (
    rf"(?: {_LABEL_KIND} \.? \s* {_NUMBER} (?: (?: \s? [,&–-] \s? | \s and \s | \s to \s ) {_NUMBER} )*"
    rf" | [a-z]{{1,2}} \d+ [a-z]? \s {_LABEL_KIND} )"
)
_LABEL = re.compile(
    rf"{_NUMBERED_LABEL} (?: [\s:,;.—–-]+ {_NUMBERED_LABEL} )* \s? (?: [.:|] (?= \s | $ ) | $ ) \s*", _FLAGS
)
_LABEL_STARTS: Final = frozenset(
    (
        "fig",
        "tab",
        "fil",
        "dat",
        "mov",
        "vid",
        "aud",
        "tex",
        "box",
        "cod",
        "mat",
        "inf",
        "app",
        "sch",
        "not",
        "pro",
        "met",
        "ima",
        "pre",
        "pla",
        "map",
        "cha",
        "gra",
        "add",
        "sup",
        "ext",
        "onl",
        "ele",
        "web",
        "sou",
    )
)
"""First letters of labels, a fast prefilter; "e" may be before them."""
_ID_START = re.compile("[a-z]{1,2}[0-9]")
_MAX_LABEL: Final = 200


def is_label(text: str) -> bool:
    """Return True if a text is only a label."""
    return len(text) <= _MAX_LABEL and split_label(text)[1] == ""


def split_label(text: str) -> tuple[str, str]:
    """Split a caption into its label and its other text; either may be empty.

    "Fig. 1. Counts" is ("Fig. 1", "Counts"); "Figure 1 shows" has no label.
    """
    start = text[:5].lower()
    if start[:3] not in _LABEL_STARTS and start[1:4] not in _LABEL_STARTS and not _ID_START.match(start):
        return "", text
    label = _LABEL.match(text)
    return ("", text) if label is None else (label[0].rstrip(" .:|"), text[label.end() :])
