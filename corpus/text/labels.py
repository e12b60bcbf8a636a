"""Split the unlabelled text of an abstract at labels that its publisher wrote into the text.

"Background: Mice sleep. Methods: We asked why." has the sections of a structured abstract, which PubMed and
JATS mark as such in others. A label is one or more names of sections at the start of a sentence, with a
colon and a blank after it, or with a dash before a capital or a digit (``Methods- We``). Three or more labels
are found without a mark too, if the first begins the text: "Aim To see. Methods We looked. Results None.",
"Objective.To see.Approach.We looked.Significance.None.", "AimTo see.MethodsWe looked.ResultsNone."
In labelled sections, labels with a colon and no blank are found: "It sleeps.Methods and Results:We looked".
Those of main parts are found with a blank too, if no label begins the text: "It sleeps. Results: None.", and
so are names that are a sentence: "It sleeps. Results. None."
The Journal of Physical Therapy Science has them in brackets, "[Purpose] To see. [Results] None."
The journals of the American Society for Microbiology print "it sleeps.IMPORTANCE Mice"; PubMed has sections
with labels that end in a stop and a colon, "A cohort OBJECTIVE.: To see.".
"""

from __future__ import annotations

import re
from typing import Final

SECTION_NAME: Final = r"""(?: (?:
    Abstract | Backgrounds? | Introduction | Context | Rationale | Hypothes[ie]s | Importance
    | Significance(?:\sStatement)? | Approach | (?:Summary\sof\s)? Background\sData | Purpose\sof\sReview
    | (?:(?:Study|Main|Primary|Secondary|Specific|Research)\s)? (?:Objective|Aim|Purpose|Goal|Question)
    | (?:(?:Study|Trial|Research|Experimental)\s)? (?:Design | Setting | Population)
    | Patient | Participant | Subject | Animal | Material
    | (?:(?:Study|Review|Search|Research)\s)? Method | Methodology
    | (?:(?:Main|Primary|Secondary)\s)? Outcome(?:\sMeasure(?:ment)?)? | Measure | Measurement
    | Intervention | Exposure | Procedure | (?:Search|Selection)\s(?:Strategy|Criteria)
    | (?:Data|Evidence)\s(?:Source|Extraction|Collection|Synthesis|Acquisition)
    | (?:(?:Data|Statistical)\s)? Analysis
    | (?:(?:Main|Key|Principal|Recent)\s)? (?:Result | Finding)
    | Case\s(?:Report|Presentation|Description|Summary)
    | Discussion | (?:(?:Main|Authors?['’]s?|Authors['’]|Reviewers?['’]s?)\s)? Conclusion
    | Interpretation | Summary | Limitation | (?:Practical\s|Clinical\s)? (?:Implication | Relevance)
    ) (?:s|\(s\))? )"""
"""Pattern of a section's name, in verbose syntax."""
_LABEL_GOES_ON: Final = r"(?:AND|FOR|IN|OF|ON|OR|THE|TO|WITH)\b"
"""What follows the name of a section in a longer label: "BACKGROUND AND RATIONALE FOR THE STUDY"."""
_LABEL_TAIL: Final = (
    r"(?-i:(?:\s(?:AND|FOR|IN|OF|ON|OR|PRESENT|RESEARCH|REVIEW|STUDY|THE|THIS|TO|TRIAL|WORK)\b){0,6}+)"
)
_LABEL = re.compile(
    rf"(?:\A|(?<=[.?!\"'”’)\]:])|(?-i:(?<=[a-z])(?=[A-Z]{{4}})))\s*((?-i:(?=[A-Z])){SECTION_NAME}"
    rf"(?:(?:\sand\s|\s?&\s?|\s?/\s?|,\s){SECTION_NAME}){{0,4}}{_LABEL_TAIL})\s?[:–—-]\Z",
    re.VERBOSE | re.IGNORECASE,
)
_SENTENCE_LABEL = re.compile(
    rf"(?<=[.?!])\s+((?-i:(?=[A-Z])){SECTION_NAME}"
    rf"(?:(?:\sand\s|\s?&\s?|\s?/\s?|,\s){SECTION_NAME}){{0,2}})\.\Z",
    re.VERBOSE | re.IGNORECASE,
)
_LAST_WORD_LIST = """
    abstract background introduction context rationale hypothesis hypotheses importance significance statement
    data review objective aim purpose goal question design setting population patient participant subject
    animal material method methodology outcome measure measurement intervention exposure procedure strategy
    approach criteria source extraction collection synthesis acquisition analysis result finding report
    presentation description summary discussion conclusion interpretation limitation implication relevance
    research study trial work
"""
_LAST_WORDS: Final = frozenset(word.rstrip("s") for word in _LAST_WORD_LIST.split())
"""Last words of labels without their final s: a mark after another word needs no search for a label."""
_MAX_LAST_WORD: Final = 20
_WORD_SEPARATORS: Final = str.maketrans(dict.fromkeys("/&,.?!:\"'”’)]", " "))
_MAX_LABEL_LENGTH: Final = 80
_MAX_LABEL_ENDS: Final = 1_000
"""Marks after a last word up to which labels are looked for; no abstract has as many."""
_LABEL_ENDS: Final = (
    (":", re.compile(r":(?=\s+\S)")),
    ("-", re.compile(r"-(?= \s*[A-Z\d])")),
    ("– ", re.compile(r"–(?= \s*[A-Z\d])")),
    ("—", re.compile(r"—(?=\s*[A-Z\d])")),
)
"""What a text with such a mark contains, as most have none, and the pattern of the mark."""
_OPENERS: Final = frozenset(("aim ", "aims", "back", "cont", "goal", "impo", "intr", "obje", "purp", "stud"))
_OPENER_LENGTH: Final = 4
"""First letters of the first label of abstracts whose labels have no mark, or a full stop."""
_UNMARKED_LABEL = re.compile(
    rf"(?:\A|(?<=[.?!]\s)|(?<=[.?!]\)\s)|(?<=[.?!]))((?-i:(?=[A-Z])){SECTION_NAME}"
    rf"(?:(?:\sand\s|\s?&\s?|\s?/\s?|,\s){SECTION_NAME}){{0,2}}{_LABEL_TAIL})"
    rf"(?:\.?\s+(?-i:(?!{_LABEL_GOES_ON})(?=[A-Z][A-Za-z-]|[A-Z]\s|\d))|\.(?-i:(?=[A-Z]))"
    r"|(?-i:(?<=[a-z])(?=[A-Z](?:[a-z-]|\s))))",
    re.VERBOSE | re.IGNORECASE,
)
_MIN_UNMARKED_LABELS: Final = 3
_BRACKETED_LABEL = re.compile(
    rf"\[({SECTION_NAME}(?:(?:\sand\s|\s?&\s?|\s?/\s?|,\s){SECTION_NAME}){{0,2}})\]\s*",
    re.VERBOSE | re.IGNORECASE,
)
_MIN_BRACKETED_LABELS: Final = 2
_IMPORTANCE = re.compile(r"(?<=[.?!)])\s*(IMPORTANCE)\s+(?=[A-Z])")
_JOINED_COLON = re.compile(r":(?=[A-Za-z\d])")
_INNER_COLON = re.compile(r":(?=\s?[A-Za-z\d])")
_MAIN_PART = re.compile(
    r"(?:aim|background|conclusion|discussion|method|objective|purpose|result)s?\Z", re.IGNORECASE
)
"""End of a label that is no part of another section."""
_OPENING_LABEL = re.compile(
    rf"({SECTION_NAME}(?:(?:\sand\s|\s?&\s?|\s?/\s?|,\s){SECTION_NAME}){{0,2}}{_LABEL_TAIL})"
    rf"\s+(?-i:(?!{_LABEL_GOES_ON})(?=[A-Z]))",
    re.VERBOSE | re.IGNORECASE,
)
_DOTTED_LABEL = re.compile(r"\s([A-Z]{4,}(?: [A-Z]+)*)\.:\s")
_WORD_CHARACTER = re.compile(r"[^\W_]")
_NUMBER_BEFORE_LABEL = re.compile(r"[(\[]?\b(\d)[)\].]\s*\Z")
_MAX_NUMBER_LENGTH: Final = 6


def split_at_labels(text: str) -> list[tuple[str | None, str]] | None:
    """Split a text at its run-in labels into sections, (label or None, text); return None if it has none.

    Parts without a word are omitted.
    """
    labels: list[re.Match[str]] = []
    for position in _find_label_ends(text):
        # A search before each mark is several times as fast as one over the text.
        label = _LABEL.search(text, max(0, position - _MAX_LABEL_LENGTH), position + 1)
        # After a colon, a name is a label only if the colon is that of a label.
        if label is None or (labels and labels[-1].end() == label.start()):
            labels += [label] if label else []
        elif not text.endswith(":", 0, label.start()):
            labels.append(label)
        elif previous := _LABEL.search(text, max(0, label.start() - _MAX_LABEL_LENGTH), label.start()):
            labels += [] if text.endswith(":", 0, previous.start()) else [previous, label]
    if not labels and text[:_OPENER_LENGTH].lower() in _OPENERS:
        labels = _find_unmarked_labels(text)
    if not labels and text[:1] == "[":
        labels = _find_bracketed_labels(text)
    if not labels and "IMPORTANCE " in text:
        labels = list(_IMPORTANCE.finditer(text))
    return _make_sections(text, None, labels)


def split_at_joined_labels(label: str, text: str) -> list[tuple[str | None, str]] | None:
    """Split a labelled section at labels in it; return None if it has none.

    They are like "OBJECTIVE.: ", ".Results:We", ". Results: We" and ". Results. We".
    """
    if sentence_labels := _find_sentence_labels(text):
        return _make_sections(text, label, sentence_labels)
    if ":" not in text:
        return None
    labels = []
    if ".: " in text:
        labels = [found for found in _DOTTED_LABEL.finditer(text) if _ends_in_last_word(text, found.end(1))]
    colon_pattern = _JOINED_COLON if _LABEL.match(text, 0, text.index(":") + 1) else _INNER_COLON
    ends = [] if labels else [colon.end() for colon in colon_pattern.finditer(text)]
    for end in ends if len(ends) <= _MAX_LABEL_ENDS else ():
        if text[end - 2].isupper() or _ends_in_last_word(text, end - 1):
            found = _LABEL.search(text, max(1, end - _MAX_LABEL_LENGTH), end)
            if found is None:
                continue
            is_part = _MAIN_PART.search(found[1]) and not text.endswith(":", 0, found.start())
            if is_part or not text[end].isspace():
                labels.append(found)
    return _make_sections(text, label, labels)


def _find_sentence_labels(text: str) -> list[re.Match[str]]:
    """Return the names of sections that are sentences: "It sleeps. Results. None."; none if one begins it."""
    labels: list[re.Match[str]] = []
    stop = text.find(". ")
    if _ends_in_last_word(text, stop) and _UNMARKED_LABEL.match(text):
        return labels
    while stop >= 0:
        if _ends_in_last_word(text, stop):
            label = _SENTENCE_LABEL.search(text, max(0, stop - _MAX_LABEL_LENGTH), stop + 1)
            labels += [label] if label else []
        stop = text.find(". ", stop + 1)
    return labels


def split_at_opening_label(text: str) -> list[tuple[str | None, str]] | None:
    """Return the first section of a structured abstract with the label that its text begins with, or None.

    The label is in capitals: "RATIONALE The mice". Other sections have theirs.
    """
    label = _OPENING_LABEL.match(text)
    return [(label[1], text[label.end() :])] if label and label[1].isupper() else None


def _make_sections(
    text: str, first_label: str | None, labels: list[re.Match[str]]
) -> list[tuple[str | None, str]] | None:
    if not labels:
        return None
    starts = _find_numbers(text, labels) or [label.start() for label in labels]
    parts: list[tuple[str | None, str]] = [(first_label, text[: starts[0]])]
    for label, next_start in zip(labels, [*starts[1:], len(text)], strict=True):
        parts.append((label[1], text[label.end() : next_start].strip()))
    return [part for part in parts if _WORD_CHARACTER.search(part[1])] or None


def _find_numbers(text: str, labels: list[re.Match[str]]) -> list[int] | None:
    """Return the offsets of the numbers that count labels, "(1) Background: ... (2) Methods:", or None."""
    starts = []
    for number, label in enumerate(labels, 1):
        found = _NUMBER_BEFORE_LABEL.search(text, max(0, label.start() - _MAX_NUMBER_LENGTH), label.start())
        if found is None or int(found[1]) != number:
            return None
        starts.append(found.start())
    return starts


def _find_unmarked_labels(text: str) -> list[re.Match[str]]:
    """Return labels without a mark: "Objective To see. Methods We ...".

    They are three or more, all in the same case, the first at the start of the text.
    """
    if not _UNMARKED_LABEL.match(text):  # before the much slower search
        return []
    labels = [
        label
        for label in _UNMARKED_LABEL.finditer(text)
        if label[1].isupper() == text[:_OPENER_LENGTH].isupper()
    ]
    return labels if len(labels) >= _MIN_UNMARKED_LABELS and labels[0].start() == 0 else []


def _find_bracketed_labels(text: str) -> list[re.Match[str]]:
    """Return labels like "[Purpose] To see. [Results] They"; they are two or more, the first at the start."""
    labels = list(_BRACKETED_LABEL.finditer(text))
    return labels if len(labels) >= _MIN_BRACKETED_LABELS and labels[0].start() == 0 else []


def _find_label_ends(text: str) -> list[int]:
    """Return the offsets of colons, and of dashes that may end a label, after the last word of one."""
    positions = [
        mark.start()
        for content, pattern in _LABEL_ENDS
        if content in text
        for mark in pattern.finditer(text)
        if _ends_in_last_word(text, mark.start())
    ]
    return sorted(positions) if len(positions) <= _MAX_LABEL_ENDS else []


def _ends_in_last_word(text: str, end: int) -> bool:
    """Return True if the word before an offset is the last one of a label."""
    before = text[max(0, end - _MAX_LAST_WORD) : end].lower().rstrip().removesuffix("(s)")
    words = before.translate(_WORD_SEPARATORS).split()
    return bool(words) and words[-1].rstrip("s") in _LAST_WORDS


# Labels without text

_CAPITAL_NAME = (
    r"(?:BACKGROUND|INTRODUCTION|CONTEXT|RATIONALE|HYPOTHESIS|OBJECTIVES?|AIMS?|PURPOSE|GOALS?|DISCUSSION"
    r"|(?:STUDY )?DESIGN|SETTINGS?|PATIENTS?|PARTICIPANTS|SUBJECTS|MATERIALS?|METHODS?|METHODOLOGY"
    r"|INTERVENTIONS?|MEASUREMENTS?|(?:MAIN )?(?:OUTCOME MEASURES?|RESULTS?|FINDINGS)|CONCLUSIONS?"
    r"|INTERPRETATION)"
)
_CAPITAL_LABEL = rf"(?<![\w-]){_CAPITAL_NAME}(?:(?: AND | & |/|, ){_CAPITAL_NAME}){{0,3}}\s*:"
EMPTY_LABELS: Final = re.compile(rf"(?:{_CAPITAL_LABEL}\s*)+(?={_CAPITAL_LABEL})")
LABEL_AT_END = re.compile(rf"{_CAPITAL_LABEL}\s*\Z")
_COLON = re.compile(r"\s*:\s*(?:[.,;:]\s+)*")
BLANKS_AND_PUNCTUATION: Final = " \t\r\n.,:;*-–—…"


def begins_with_label(text: str) -> bool:
    """Return True if a text starts with upper-case words and a colon."""
    head, colon, _ = text[:60].partition(":")
    return bool(colon) and head.isupper()


def strip_label(label: str, text: str) -> str:
    """Remove the section's label from the start of its text; return "" if nothing else remains."""
    start = len(text) - len(text.lstrip(" \t\r\n"))
    while text[start : start + 1] == label[:1] and text[start : start + len(label)].lower() == label.lower():
        colon = _COLON.match(text, start + len(label))
        if colon is None:
            break
        start = colon.end()
    rest = text[start:] if text[:start].strip() else text
    return "" if rest.strip(BLANKS_AND_PUNCTUATION).lower() in ("", label.lower()) else rest
