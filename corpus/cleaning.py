"""Clean titles and abstracts of what is no part of their text: small named rules, each on or off.

Two kinds: rules of characters (controls, spaces, ligatures ...), which any text goes through, and
rules of notes, for what publishers and databases add to titles and abstracts (boilerplate.py has
their wording).  What is science stays: Greek, mathematical signs, superscripts, ± and ×, and the
brackets of chemical names; text is composed (NFC), never replaced by "compatible" characters (NFKC),
which would make 102 of 10².  U+FFFD stays, for it says truly that a character was lost.

Nearly all text is clean, so every rule is asked only where a cheap look has found reason to.
Characters below U+0020 are not looked for: XML has none of them but white space, and
:func:`~.sentences.one_line` sees to that.  It also makes single blanks of all white space, so that
spaces of some width become blanks whether ``spaces`` is on or not; only those of no width then stay.
"""

from __future__ import annotations

import difflib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from . import boilerplate
from .errors import InvalidValueError

Section = tuple[str | None, str]
"""A section's label, None without one, and its text."""


# Characters


def _around(match: re.Match[str]) -> tuple[str, str]:
    """The characters before and after a match, "" at an end of the text."""
    start, end = match.span()
    return match.string[max(0, start - 1) : start], match.string[end : end + 1]


def _gap(match: re.Match[str]) -> str:
    """A blank where a lost character stood between two others, so that 5–10 does not become 510."""
    before, after = _around(match)
    return " " if before.strip() and after.strip() else ""


def _control(match: re.Match[str]) -> str:
    # Marks of direction and the like were never seen; the other controls stand for what was.
    return _gap(match) if min(match[0]) < "\xa0" else ""


def _hyphen(match: re.Match[str]) -> str:
    # Words are hyphenated between letters; beside a digit (IL-6, 10-20) a real hyphen was meant.
    before, after = _around(match)
    real = before.isalnum() and after.isalnum() and (before.isdigit() or after.isdigit())
    return "-" if real else ""


_JOINED_SCRIPT = re.compile("[\u0590-\u1cff\ua800-\uabff]")


def _invisible(match: re.Match[str]) -> str:
    # Joiners are spelling in Arabic and the scripts of India, and noise elsewhere.
    joined = _JOINED_SCRIPT.match(_around(match)[0])
    return "".join(character for character in match[0] if joined and character in "\u200c\u200d")


_LETTERS: Final = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}


def _letters(match: re.Match[str]) -> str:
    return "".join(_LETTERS[ligature] for ligature in match[0])


_SPACES: Final = "spaces"
_CHARACTERS: Final[dict[str, tuple[str, Callable[[re.Match[str]], str]]]] = {
    "controls": (
        "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2061-\u2064\u2066-\u206f\ufff9-\ufffb\U000e0001-\U000e007f",
        _control,
    ),
    # Symbol fonts have their ± and α here: which it was is lost, that there was something is not.
    "private-use": ("\ue000-\uf8ff\U000f0000-\U0010ffff", _gap),
    "soft-hyphens": ("\xad", _hyphen),
    _SPACES: ("\u180e\u200b-\u200d\u2060\ufeff", _invisible),  # of no width; the others are below
    "ligatures": ("\ufb00-\ufb06", _letters),
}
"""The characters of each rule, and what becomes of a run of them."""
_NFC: Final = "nfc"
_BLANKS: Final = frozenset("\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | set(map(chr, range(0x2000, 0x200B)))
"""Spaces of some width, which become blanks: a tenth of all abstracts has one."""
_MARKS: Final = "\u0300-\u036f"
_UNUSUAL = re.compile(f"[{''.join(of for of, _ in _CHARACTERS.values())}{''.join(_BLANKS)}{_MARKS}]")
_ASCII: Final = bytes(range(0x7F))


def _foreign(text: str) -> str:
    """The characters of a text that are not ASCII, or are U+007F: a few in most texts, quickly looked at."""
    return text.encode().translate(None, _ASCII).decode()


# Titles and abstracts

NAMES: Final[tuple[str, ...]] = (
    *(*_CHARACTERS, _NFC, "in-process", "author-translation", "translated-titles"),
    *("truncation-notes", "copyright", "empty-labels", "stubs"),
)
"""Every rule, in the order in which they are applied; those at an abstract's end until none finds more."""


class Cleaner:
    """The rules of these names, ready for any number of records.

    Its methods give back what they are given unless there is something to clean.  ``removed`` is where
    they count: each rule that has changed something adds the characters it has taken away, under its
    name.  That can be 0 (a space replaced) and below 0 (a ligature written out as two letters).

    Raises:
        ValueError: a name that no rule has.
    """

    def __init__(self, names: Iterable[str] = NAMES) -> None:
        chosen = set(names)
        for name in sorted(chosen.difference(NAMES)):
            nearest = difflib.get_close_matches(name, NAMES, 1)
            meant = f"; did you mean {nearest[0]!r}?" if nearest else ""
            raise InvalidValueError(
                f"there is no cleaning rule {name!r}{meant} (there are {', '.join(NAMES)})"
            )
        self._characters = [
            (name, re.compile(f"[{characters}]+"), new)
            for name, (characters, new) in _CHARACTERS.items()
            if name in chosen
        ]
        self._spaces, self._nfc = _SPACES in chosen, _NFC in chosen
        self._titles = [rule for rule in boilerplate.TITLE_RULES.items() if rule[0] in chosen]
        self._ends = [rule for rule in boilerplate.END_RULES.items() if rule[0] in chosen]
        self._labels = "empty-labels" in chosen
        self._stubs = "stubs" in chosen

    def text(self, text: str, removed: dict[str, int]) -> str:
        """A text through the rules of characters only."""
        foreign = _foreign(text)
        if not _UNUSUAL.search(foreign) and unicodedata.is_normalized("NFC", foreign):
            # With the ASCII between them gone, marks stand beside letters that are not theirs: any mark
            # that goes with an ASCII letter is unusual, others can only look less normal than they are.
            return text
        if self._spaces and (blanks := _BLANKS.intersection(foreign)):
            _count(removed, _SPACES, 0)
            for blank in blanks:
                text = text.replace(blank, " ")
        for name, pattern, new in self._characters:
            if pattern.search(foreign):
                text = _counted(name, text, pattern.sub(new, text), removed)
        return _counted(_NFC, text, unicodedata.normalize("NFC", text), removed) if self._nfc else text

    def title(self, text: str, removed: dict[str, int]) -> str:
        """A title; "" where it only says that there is none."""
        if not text.isascii() or "\x7f" in text:
            text = self.text(text, removed)
        if "[" in text or len(text) < boilerplate.TITLE_STUB_LENGTH or "transl" in text:
            for name, rule in self._titles:
                text = _counted(name, text, rule(text), removed)
        return text

    def abstract(self, sections: Sequence[Section], removed: dict[str, int]) -> list[Section]:
        """An abstract's sections, (label, text); none where they only say that there is no abstract.

        Labels go through the rules of characters and are counted with the text; white space at the end
        goes with what is taken away there.
        """
        cleaned = list(sections)
        labels = False
        for index, (label, text) in enumerate(sections):
            if label is None:
                if not text.isascii() or "\x7f" in text:
                    text = self._section(cleaned, index, removed)
                labels = labels or (text.find(":", 0, 60) > 0 and boilerplate.begins_with_label(text))
            else:
                if not (text.isascii() and label.isascii()) or "\x7f" in text or "\x7f" in label:
                    text = self._section(cleaned, index, removed)
                labels = labels or len(text) < len(label) + 4 or text[0] <= "." or text[0] == label[:1]
        if labels and self._labels:
            cleaned = _without_empty_labels(cleaned, removed)
        if cleaned and boilerplate.may_end_in_note(cleaned[-1][1]):
            self._cut_end(cleaned, removed)
        if self._stubs and cleaned and len(cleaned[-1][1]) < boilerplate.STUB_LENGTH:
            return _unless_stub(cleaned, removed)
        return cleaned

    def _section(self, sections: list[Section], index: int, removed: dict[str, int]) -> str:
        """Put a section through the rules of characters; its text."""
        label, text = sections[index]
        cleaned = (None if label is None else self.text(label, removed), self.text(text, removed))
        if cleaned != sections[index]:
            sections[index] = cleaned
        return cleaned[1]

    def _cut_end(self, sections: list[Section], removed: dict[str, int]) -> None:
        """Take notes and notices from the end of the last section that is more than those."""
        for index in reversed(range(len(sections))):
            label, text = sections[index]
            kept = text[: self._end(text, removed)]
            if label is None and not kept:
                del sections[index]
            elif self._labels and label is not None and not boilerplate.without_label(label, kept):
                _count(removed, "empty-labels", len(label) + len(kept))
                del sections[index]
            else:
                sections[index] = (label, kept)
                if kept.strip():
                    return

    def _end(self, text: str, removed: dict[str, int]) -> int:
        """Where a text ends without notes and notices.  It is not copied for each: there can be many."""
        end = len(text)
        visible = _visible(text, end)
        while True:
            starts = ((name, start(text, visible)) for name, start in self._ends)
            note = next(((name, start) for name, start in starts if start < visible), None)
            if note is None:
                return end
            visible = _visible(text, note[1])
            _count(removed, note[0], end - visible)
            end = visible


def _visible(text: str, end: int) -> int:
    """Where ``text[:end]`` ends without the white space at its end."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _counted(name: str, before: str, after: str, removed: dict[str, int]) -> str:
    """The text after a rule, which is counted if it has changed something."""
    if after == before:
        return before
    _count(removed, name, len(before) - len(after))
    return after


def _without_empty_labels(sections: list[Section], removed: dict[str, int]) -> list[Section]:
    cleaned: list[Section] = []
    for label, text in sections:
        if label is None:
            begun = boilerplate.begins_with_label(text)
            cleaned.append((None, boilerplate.EMPTY_LABELS.sub("", text) if begun else text))
        elif rest := boilerplate.without_label(label, text):
            cleaned.append((label, rest))
    if cleaned != sections:
        _count(removed, "empty-labels", _length(sections) - _length(cleaned))
    return cleaned


def _unless_stub(sections: list[Section], removed: dict[str, int]) -> list[Section]:
    texts = [text for _, text in sections if text.strip()]
    if len(texts) != 1 or not boilerplate.is_stub(texts[0]):
        return sections
    _count(removed, "stubs", _length(sections))
    return []


def _length(sections: list[Section]) -> int:
    return sum(len(label or "") + len(text) for label, text in sections)


def _count(removed: dict[str, int], name: str, characters: int) -> None:
    removed[name] = removed.get(name, 0) + characters
