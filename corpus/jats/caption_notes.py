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
_IN_BRACKETS: Final = rf"\s* {_TYPE_AND_SIZE} \s* [)\]]"
_BRACKETED_NOTE = re.compile(rf"(?<= [.!?] ) \s* [(\[] {_IN_BRACKETS} \.? | \s* [(\[] {_IN_BRACKETS}", _FLAGS)
_SIZE_HINT: Final = r"\d \s? (?: [kmg]i?b | (?: kilo | mega )? bytes | [kmg] \b )"
_NOTE_FROM_ROUND, _NOTE_FROM_SQUARE = (
    re.compile(rf"{opening} (?= [^)\]]* {_SIZE_HINT} ) {_IN_BRACKETS}", _FLAGS) for opening in (r"\(", r"\[")
)
"""The same from its bracket, a prefilter that is fast because the first character is known."""
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
_SUPPLEMENT_HINTS: Final = ("click", "download", "format", "type")
"""One of these is in every such note that does not end in a bracket."""
_WHOLE_NOTE = re.compile(
    rf"[(\[]? \s* (?: {_TYPE_AND_SIZE} | {_TYPE} | {_SIZE} ) \s* [)\]]? \.?"
    r" | [(\[] [a-z][a-z0-9]{1,4} [)\]] | \S+ \. (?: [a-z]{2,4} \d? | rdata ) \.?",
    _FLAGS,
)


def remove_file_notes(text: str, is_supplement: bool) -> str:
    """Remove notes about a file: "(XLSX 12 kb)", "Click here for additional data file.".

    Args:
        text: a paragraph in one line.
        is_supplement: the paragraph belongs to a supplement, so that "(TIF)", "(12 kb)" and "gulls.dta" are
            notes too.
    """
    if ("(" in text and _NOTE_FROM_ROUND.search(text)) or ("[" in text and _NOTE_FROM_SQUARE.search(text)):
        text = _BRACKETED_NOTE.sub("", text).strip()
    if is_supplement:
        lower_text = text.lower()
        if lower_text.rstrip(".").endswith((")", "]")) or any(
            hint in lower_text for hint in _SUPPLEMENT_HINTS
        ):
            text = _SUPPLEMENT_NOTE.sub("", text).strip()
        return "" if _WHOLE_NOTE.fullmatch(text) else text
    return text


_LINK = re.compile(
    r"""
    (?: supplementary \s material \s file \. \s )? \W* (?: doi \s? :? \s? )?
    (?: (?: https?:// | 10\.\d{4,9}/ ) \S+
      | [\w-]+ (?: \. [\w-]+ )* \. (?: com | edu | eu | gov | info | int | io | net | org | ac \. [a-z]{2} )
        (?: / \S* )? ) \W*
    """,
    _FLAGS,
)
"""A link or the name of a server, and nothing else."""
_SUPPLEMENT_POINTER = re.compile(
    r"""
    (?: the \s )? online \s version \b .* \b contains \s supplementa (?:l|ry) \s .*
  | (?: the \s | for \s )? supplementa (?:l|ry) \s (?: data | information | materials? | files? ) \b .*
    \b (?: accompan (?:y|ies|ying) | available | found | visit ) \b .*
    (?: \b online \b | https?:// | doi | \b10\.\d ) .*
  | below \s (?: is | are ) \s the \s links? \s to \s the \s (?: electronic \s )? supplementa (?:l|ry) \s .*
  | transparency \s (?: data | document ) \s associated \s with \s this \s article \s .*
  | (?: the \s following \s )? (?: additional | supporting ) \s (?: supporting \s )? information \s
    (?: is \s available | (?: may | can ) \s be \s found ) \s in \s the \s online \s version
    \s of \s this \s article \W*
  | the \s following \s (?: is | are ) \s (?: the \s )? supplementa (?:l|ry) \s .* \b this \s article \W*
    """,
    _FLAGS,
)
_SENTENCE_END = re.compile(r"\w\S*[.!?] [A-Z]")
MAX_LINK_NOTE: Final = 300
"""Characters. Labels and other short notes are no longer either."""
_MAX_LINK_OPENING: Final = 40
"""Characters that may be before a link: "Supplementary material file. DOI: "."""


def is_link_note(text: str) -> bool:
    """Return True if a text is only a link, or only says where the supplements are."""
    if len(text) > MAX_LINK_NOTE:
        return False
    if "." in text and text.find(" ", _MAX_LINK_OPENING) < 0 and _LINK.fullmatch(text):
        return True
    return (
        ("upplement" in text or "ransparency d" in text or "online version" in text)
        and _SUPPLEMENT_POINTER.fullmatch(text) is not None
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

_COLOUR_HINTS: Final = ("online", "web", "viewed")
"""One of these is in every note."""


def remove_colour_notes(text: str) -> str:
    """Remove notes on where a figure is in colour: "[Color figure can be viewed at ...]"."""
    if "olo" not in text and "OLO" not in text:
        return text
    lower_text = text.lower()
    return _COLOUR_NOTE.sub("", text).strip() if any(hint in lower_text for hint in _COLOUR_HINTS) else text


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
_SUPPLEMENT_LABEL = re.compile(
    r"""
    \W* (?: (?: descriptions? | list ) \s of \s )? (?: (?: additional | combined | electronic | online ) \s )?
    (?: (?: suppl[ei]ment (?: al | ary )? | supporting | source ) \s
        (?: (?: appendi(?:x|ces) | data (?: sets? )? | documents? | files? | figures? | info (?: rmation )?
              | items? | legends? | materials? | methods? | results | sets? | spreadsheets? | tables? | text
              | videos? )
            (?: [\s,&]+ (?: and \s | for \s figure \s \d+ )? )? )+
      | supplementary \s materials: \s crystallographic \s information .*
      | (?: peer \s )? review (?: \s process )? \s file | reporting \s summary | transparency \s document
      | (?: reviewer | referee ) s? ['’]? \s (?: comments? | reports? ) | author s? ['’]? s? \s manuscript
      | appendi(?:x|ces) | expanded \s view (?: \s (?: figures? | content | pdf ) )+ | additional \s files?
      | (?: authors['’]? \s )? original \s file \s for \s figure \s \d+ ) \W*
    """,
    _FLAGS,
)
"""The label of a supplement that has no number."""
_SUPPLEMENT_STARTS: Final = frozenset(
    (
        "addi",
        "appe",
        "auth",
        "comb",
        "desc",
        "elec",
        "expa",
        "list",
        "onli",
        "orig",
        "peer",
        "refe",
        "repo",
        "revi",
        "sour",
        "supp",
        "tran",
    )
)
"""First letters of such labels, a fast prefilter."""
_MAX_SUPPLEMENT_LABEL: Final = 100
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
    if len(text) > _MAX_LABEL:
        return False
    return split_label(text)[1] == "" or (
        len(text) <= _MAX_SUPPLEMENT_LABEL
        and text.lstrip("([")[:4].lower() in _SUPPLEMENT_STARTS
        and _SUPPLEMENT_LABEL.fullmatch(text) is not None
    )


def split_label(text: str) -> tuple[str, str]:
    """Split a caption into its label and its other text; either may be empty.

    "Fig. 1. Counts" is ("Fig. 1", "Counts"); "Figure 1 shows" has no label.
    """
    start = text[:5].lower()
    if start[:3] not in _LABEL_STARTS and start[1:4] not in _LABEL_STARTS and not _ID_START.match(start):
        return "", text
    label = _LABEL.match(text)
    return ("", text) if label is None else (label[0].rstrip(" .:|"), text[label.end() :])
