"""Split the unlabelled text of an abstract at labels that its publisher wrote into the text.

"Background: Mice sleep. Methods: We asked why." has the sections of a structured abstract, which PubMed and
JATS mark as such in others. A label is one or more names of sections at the start of a sentence, with a
colon and a blank after it, or with a dash before a capital or a digit (``Methods- We``).
"""

from __future__ import annotations

import re
from typing import Final

_NAME = r"""(?: (?:
    Abstract | Backgrounds? | Introduction | Context | Rationale | Hypothes[ie]s | Importance
    | Significance(?:\sStatement)? | (?:Summary\sof\s)? Background\sData | Purpose\sof\sReview
    | (?:(?:Study|Main|Primary|Secondary|Specific|Research)\s)? (?:Objective|Aim|Purpose|Goal|Question)
    | (?:(?:Study|Trial|Research|Experimental)\s)? (?:Design | Setting | Population)
    | Patient | Participant | Subject | Animal | Material
    | (?:(?:Study|Review|Search)\s)? Method | Methodology
    | (?:(?:Main|Primary|Secondary)\s)? Outcome(?:\sMeasure(?:ment)?)? | Measure | Measurement
    | Intervention | Exposure | Procedure | (?:Search|Selection)\s(?:Strategy|Criteria)
    | (?:Data|Evidence)\s(?:Source|Extraction|Collection|Synthesis|Acquisition)
    | (?:(?:Data|Statistical)\s)? Analysis
    | (?:(?:Main|Key|Principal|Recent)\s)? (?:Result | Finding)
    | Case\s(?:Report|Presentation|Description|Summary)
    | Discussion | (?:(?:Main|Authors?['’]s?|Authors['’]|Reviewers?['’]s?)\s)? Conclusion
    | Interpretation | Summary | Limitation | (?:Practical\s|Clinical\s)? (?:Implication | Relevance)
    ) (?:s|\(s\))? )"""
_LABEL = re.compile(
    rf"(?:\A|(?<=[.?!\"'”’)\]:]))\s*((?-i:(?=[A-Z])){_NAME}(?:(?:\sand\s|\s?&\s?|\s?/\s?|,\s){_NAME}){{0,4}})\s?[:–—-]\Z",
    re.VERBOSE | re.IGNORECASE,
)
_MAX_LABEL_LENGTH: Final = 80
_MAX_LABEL_ENDS: Final = 1_000
"""Marks of a text in which labels are looked for; no abstract has as many."""
_ASCII_LABEL_ENDS: Final = (":", "- ")
_LABEL_ENDS: Final = (*_ASCII_LABEL_ENDS, "– ", "—")
_TEXT_AFTER_COLON = re.compile(r"\s+\S")
_TEXT_AFTER_DASH = re.compile(r"\s*[A-Z\d]")
_WORD_CHARACTER = re.compile(r"[^\W_]")


def split_at_labels(text: str) -> list[tuple[str | None, str]]:
    """Split a text at its run-in labels into sections, (label or None, text); one if it has none.

    Parts without a word are omitted.
    """
    labels: list[re.Match[str]] = []
    positions = _find_label_ends(text)
    for position in positions if len(positions) <= _MAX_LABEL_ENDS else ():
        # A search before each mark is several times as fast as one over the text.
        has_text = _TEXT_AFTER_COLON if text[position] == ":" else _TEXT_AFTER_DASH
        label = (
            _LABEL.search(text, max(0, position - _MAX_LABEL_LENGTH), position + 1)
            if has_text.match(text, position + 1)
            else None
        )
        # After a colon, a name is a label only if the colon is that of a label.
        if label and (
            not text.endswith(":", 0, label.start()) or (labels and labels[-1].end() == label.start())
        ):
            labels.append(label)
    if not labels:
        return [(None, text)]
    parts: list[tuple[str | None, str]] = [(None, text[: labels[0].start()])]
    for label, next_start in zip(labels, [*(label.start() for label in labels[1:]), len(text)], strict=True):
        parts.append((label[1], text[label.end() : next_start].strip()))
    return [part for part in parts if _WORD_CHARACTER.search(part[1])] or [(None, text)]


def _find_label_ends(text: str) -> list[int]:
    """Return the offsets of colons and of dashes that may end a label."""
    positions = []
    for mark in _ASCII_LABEL_ENDS if text.isascii() else _LABEL_ENDS:
        position = text.find(mark)
        while position >= 0:
            positions.append(position)
            position = text.find(mark, position + 1)
    return sorted(positions)
