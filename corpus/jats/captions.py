"""Recognise what is no text in the captions of figures, tables and supplements: labels, notes about files.

A label, "Fig. 1.", is a heading of its caption; in many articles it is typed into the text.
"""

from __future__ import annotations

import functools
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
    (?: (?: size \s? :? \s? )? [\d.,]{1,30} \s? (?: [kmg]i?b (?:ytes)? | (?: kilo | mega )? bytes | [kmg] ) )
"""
_GAP: Final = r"[\s,;:/|–-]{0,9} [(\[]?"
_TYPE_AND_SIZE: Final = rf"(?: {_TYPE} {_GAP} {_SIZE} | {_SIZE} {_GAP} {_TYPE} ) [)\]]?"
_IN_BRACKETS: Final = rf"\s{{0,9}} {_TYPE_AND_SIZE} \s{{0,9}} [)\]]"
_BRACKETED_NOTE = re.compile(rf"[(\[] {_IN_BRACKETS}", _FLAGS)
_SIZE_HINT: Final = r"\d \s? (?: [kmg]i?b | (?: kilo | mega )? bytes | [kmg] \b )"
_NOTE_FROM_ROUND, _NOTE_FROM_SQUARE = (
    re.compile(rf"{opening} (?= [^)\]]{{0,99}} {_SIZE_HINT} ) {_IN_BRACKETS}", _FLAGS)
    for opening in (r"\(", r"\[")
)
"""The same from its bracket, a prefilter that is fast because the first character is known."""
_SUPPLEMENT_NOTE_PATTERN: Final = rf"""
    (?: click \s here \s (?: for | to ) \s .*
      | download (?: \s .{{1,60}} , \s {_TYPE} , \s {_SIZE} | (?= \s* \.? $ ) )
      | (?: format | file \s type ) \s? : \s? {_TYPE} .*
      | [(\[] \s* (?: {_TYPE} | {_SIZE} )? \s* [)\]] )
    \.? $
"""
_SUPPLEMENT_NOTE = re.compile(_SUPPLEMENT_NOTE_PATTERN, _FLAGS)
_SUPPLEMENT_NOTE_AT_END = re.compile(rf"\ (?<= [.!?:)\]] \  ) \s* {_SUPPLEMENT_NOTE_PATTERN}", _FLAGS)
"""The same after a sentence. It begins with a blank, which is found fast."""
_SUPPLEMENT_HINTS: Final = ("click", "download", "format", "type")
"""One of these is in every such note that does not end in a bracket."""
_DOI_BEFORE_TITLE = re.compile(r"\A10\.\d{4,9}/\S{1,60} (?=[A-Z])")
"""BMC's XML has the address of a file before its title."""
_DISCLOSURE_FORM = re.compile(r".{2,40} [A-Z]{2,5}-\d{4,6}-\d{4}_\w{2,30}")
"""An author and the name of a file: "A. Ode GUL-12345-2031_Ode"."""
_WHOLE_NOTE = re.compile(
    rf"[(\[]? \s* (?: {_TYPE_AND_SIZE} | {_TYPE} | {_SIZE} ) \s* [)\]]? \.?"
    r" | (?: high | low ) [- ] resolution \s (?: figure | image ) s?"
    r" | (?: audio | data (?: \s? set )? | document | figure | file | image | movie | presentation"
    r"   | spreadsheet | reference | table | text | v[ií]deo ) s? \W*"
    r" | \d{1,2} \s [a-z]{3} \s \d{4} \s reviewed"
    r" | file: \s oo_\d+ \. \w{2,5}"
    r" | [(\[] [a-z][a-z0-9]{1,4} [)\]] | \S+ \. (?: [a-z]{2,4} \d? | rdata ) \.?",
    re.VERBOSE,
)
"""In small letters: where case counts, most alternatives are passed over by their first letter."""


def remove_file_notes(text: str, is_supplement: bool) -> str:
    """Remove notes about a file: "(XLSX 12 kb)", "Click here for additional data file.".

    Args:
        text: a paragraph in one line.
        is_supplement: the paragraph belongs to a supplement, so that "(TIF)", "(12 kb)" and "gulls.dta" are
            notes too.
    """
    if ("(" in text and _NOTE_FROM_ROUND.search(text)) or ("[" in text and _NOTE_FROM_SQUARE.search(text)):
        text = _remove_bracketed_notes(text)
    if is_supplement:
        if _DISCLOSURE_FORM.fullmatch(text):
            return ""
        text = _DOI_BEFORE_TITLE.sub("", text)
        lower_text = text.lower()
        if lower_text.rstrip(".").endswith((")", "]")) or any(
            hint in lower_text for hint in _SUPPLEMENT_HINTS
        ):
            if _SUPPLEMENT_NOTE.match(text):
                return ""
            text = _SUPPLEMENT_NOTE_AT_END.sub("", text).strip()
        return "" if _WHOLE_NOTE.fullmatch(text.lower()) else text
    return text


def _remove_bracketed_notes(text: str) -> str:
    """Remove notes with the blanks before them; after a sentence, with their full stop."""
    parts: list[str] = []
    end = 0
    for note in _BRACKETED_NOTE.finditer(text):
        parts.append(text[end : note.start()].rstrip())
        is_after_stop = text.endswith((".", "!", "?"), 0, end + len(parts[-1]))
        end = note.end() + (is_after_stop and text.startswith(".", note.end()))
    return "".join((*parts, text[end:])).strip()


# Notes about colour

_ELSEWHERE: Final = (
    r"\b (?: electronic \s (?: copy | version ) | online | web | viewed | wileyonlinelibrary )"
)
_COLOUR_NOTE = re.compile(
    rf"""
    (?<! \s ) \s*+ [(\[] (?> [^()\[\]]*? \b colou?r ) (?> [^()\[\]]*? {_ELSEWHERE} ) [^()\[\]]*+ [)\]]
    (?P<stop> \. )?
  | (?<! \s ) \s*+ \( online \s version \s in \s colou?r \.? \) \.?
  | (?: ^ | (?<= [.!?)\]] ) \s+ )
    (?: for \s interpretation \s of \s (?: the \s )? references \s to \s colou?r
        .{{0,300}} {_ELSEWHERE} [^.]{{0,300}}+
      | (?: (?: a | the ) \s )? (?: full [ -] )? colou?r \s (?: figure | version | image | plate ) s? \b
        (?> [^.]{{0,300}}? {_ELSEWHERE} ) .*
      | to \s view \s (?> [^.]{{0,300}}? \b in \s colou?r \b ) (?> [^.]{{0,300}}? {_ELSEWHERE} )
        [^.]{{0,300}}+
      | this \s figure \s is \s in \s colou?r \s in \s the \s electronic \s version
      | see \s (?: the \s )? online \s (?> [^.]{{0,300}}? \b colou?r \s version \b ) [^.]{{0,300}}+ )
    \.? $
    """,
    _FLAGS,
)

_COLOUR_HINTS: Final = ("online", "web", "viewed", "electronic ")
"""One of these is in every note."""


def remove_colour_notes(text: str) -> str:
    """Remove notes on where a figure is in colour: "[Color figure can be viewed at ...]"."""
    if "olo" not in text and "OLO" not in text:
        return text
    lower_text = text.lower()
    return (
        _COLOUR_NOTE.sub(_keep_stop, text).strip()
        if any(hint in lower_text for hint in _COLOUR_HINTS)
        else text
    )


def _keep_stop(note: re.Match[str]) -> str:
    """Keep the full stop after a note in brackets if the sentence before has none."""
    has_stop = note[0].endswith((".).", ".].")) or note.string.endswith((".", "!", "?"), 0, note.start())
    return "" if has_stop else note["stop"] or ""


# Notes below a figure

_NOTE = re.compile(r"(?:abbreviations?|notes?) \s? [:.] | [*†‡§]", _FLAGS)


def is_figure_note(text: str) -> bool:
    """Return True if the attribution of a figure explains it ("Notes: (A) Nests."); others name a source."""
    return _NOTE.match(text) is not None


# Panels

_FIRST_PANEL = re.compile(r"(?<=[\w)%]\.) (?=a,? [A-Z(])")
_SECOND_PANEL = re.compile(r"\bb\)?,? [A-Z(a-z]")


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

_NUMBER: Final = r"(?> (?: (?: [a-z]{1,2} [.-]? )? \d+ (?: [.-] \d+ )? [a-z]? | (?-i:S)? [ivx]+ ) \b )"
_LABEL_KIND: Final = r"""
    (?: (?: additional | supplementa (?:l|ry) | supporting | extended \s data | online | electronic | web
          | suppl? \.? | appendix | source | e ) \s? )?
    (?: fig (?:ure)? s? | tables? | documents? | files? | data \s? (?:set|sheet|file)? s? | movies? | videos?
      | audios? | texts? | box | figure \s supplements? | code | materials? | information | appendi (?:x|ces)
      | schemes? | notes? | protocols? | methods? | images? | presentations? | plates? | maps? | charts?
      | graphs? | multimedia \s components? )
"""
_NUMBERED_LABEL: Final = (
    rf"(?: {_LABEL_KIND} \.? \s* {_NUMBER}"
    rf" (?: (?: \s? [,&–-] \s? | \s and \s | \s to \s ) {_NUMBER} ){{0,40}}"
    rf" | [a-z]{{1,2}} \d+ [a-z]? \s {_LABEL_KIND} )"
)
_LABEL = re.compile(
    rf"{_NUMBERED_LABEL} (?: [\s:,;.—–-]++ {_NUMBERED_LABEL} ){{0,9}} \s? (?: [.:|] (?= \s | $ ) | $ ) \s*",
    _FLAGS,
)
_OPEN_LABEL = re.compile(
    rf"(?: {_LABEL_KIND} \.? \s* {_NUMBER} | [a-z]{{1,2}} \d+ [a-z]? \s {_LABEL_KIND} )"
    rf" \s+ (?= (?-i:[A-Z]) (?: [\w-] | \. \s (?-i:[a-z]) ) )",
    _FLAGS,
)
_SUPPLEMENT_LABEL = re.compile(
    r"""
    \W* (?: web \s appendi(?:x|ces) \W+ )? (?: (?: descriptions? | list ) \s of \s )?
    (?: (?: additional | combined | electronic | online ) \s )?
    (?: (?: suppl[ei]ment (?: al | ary )? | supporting | source ) \s
        (?: (?: appendi(?:x|ces) | data (?: sets? )? | discussions? | documents? | files? | figures?
              | info (?: rmation )? | items? | legends? | materials? | methods? | notes? | references?
              | results | sets? | spreadsheets? | tables? | text | videos? )
            (?: [\s,&]+ (?: and \s | for \s figure \s S?\d+ )? )? )+
      | online-only \s appendix | supplementary \s materials: \s crystallographic \s information .*
      | (?: peer \s )? review (?: \s process )? \s file | reporting \s summary | transparency \s document
      | (?: reviewer | referee ) s? ['’]? \s (?: comments? | reports? ) | author s? ['’]? s? \s manuscript
      | appendi(?:x|ces) | figures? | first \s person \s interview | extended | \(? continued \)?
      | expanded \s view (?: \s (?: figures? | content | pdf ) )+ | additional \s files?
      | (?: authors['’]? \s )? original \s file \s for \s figure \s \d+ ) \W*
    """,
    _FLAGS,
)
"""The label of a supplement that has no number."""
_SUPPLEMENT_START_LIST: Final = """
    addi appe auth comb cont desc elec expa exte figu firs list onli orig peer refe repo revi sour supp tran
    web_
"""
_SUPPLEMENT_STARTS: Final = frozenset(start.replace("_", " ") for start in _SUPPLEMENT_START_LIST.split())
"""First letters of such labels, a fast prefilter."""
_MAX_SUPPLEMENT_LABEL: Final = 100
_LABEL_START_LIST: Final = """
    fig tab doc fil dat mov vid aud tex box cod mat inf app sch not pro met ima pre pla map cha gra add sup
    ext onl ele web sou mul
"""
_LABEL_STARTS: Final = frozenset(_LABEL_START_LIST.split())
"""First letters of labels, a fast prefilter; "e" may be before them."""
_LABEL_START_LENGTH: Final = 4
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
    label = _LABEL.match(text) if _may_start_label(text[:_LABEL_START_LENGTH]) else None
    return ("", text) if label is None else (label[0].rstrip(" .:|"), text[label.end() :])


_NEXT_LABEL = re.compile(
    r"(?<=[.;?!)] )(?=(?:(?:Additional|Supplementa(?:l|ry)) )?"
    r"(?:Data|Dataset|Fig\.|Figure|File|Movie|Note|Table|Text|Video) (?:S?\d{1,3}[.:] |S\d{1,3} [A-Z]))"
)


def split_at_labels(text: str) -> list[str]:
    """Split the caption of a supplement before each label: "Table S1. Eggs. Table S2. Nests."."""
    label, rest = split_caption_label(text)
    if not label:
        return [text]
    first_text, *other_parts = _NEXT_LABEL.split(rest)
    return [part.rstrip() for part in (text.removesuffix(rest) + first_text, *other_parts)]


def split_caption_label(text: str) -> tuple[str, str]:
    """Split a caption as :func:`split_label` does; the stop may be missing: "Table S7 Sequences"."""
    label, rest = split_label(text)
    open_label = _OPEN_LABEL.match(rest) if _may_start_label(rest[:_LABEL_START_LENGTH]) else None
    if open_label is None:
        return label, rest
    return f"{label}{': ' if label else ''}{open_label[0].rstrip()}", rest[open_label.end() :]


@functools.lru_cache(maxsize=1 << 12)
def _may_start_label(start: str) -> bool:
    """Return True if a label may begin so. Most first letters of texts come again and again."""
    start = start.lower()
    return (
        start[:3] in _LABEL_STARTS
        or start[1:] in _LABEL_STARTS
        or (not start[:3].isalpha() and _ID_START.match(start) is not None)
    )
