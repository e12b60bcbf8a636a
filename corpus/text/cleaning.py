"""Clean titles and abstracts with small named rules, each of which can be disabled.

Character rules (controls, spaces, ligatures ...) apply to any text. Note rules remove text that publishers
and databases add to titles and abstracts (notices.py). Scientific content stays: Greek, mathematical signs,
superscripts, ± and ×, and the brackets of chemical names. Text is composed (NFC); compatibility
normalisation (NFKC) would turn 10² into 102. U+FFFD stays, as it marks a lost character.

Nearly all text is clean, so that each rule has a cheap prefilter. Characters below U+0020 are ignored: XML
permits only white space there, which :func:`~.sentences.collapse_whitespace` handles. It also turns spaces of
any width into blanks, whether ``spaces`` is enabled or not; zero-width spaces stay then.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.corpus.sentences import extract_unusual
from bioshards.corpus.text import labels, notices, typed_citations
from bioshards.corpus.xml import element_text

LabelledText = tuple[str | None, str]
"""A section: label (or None) and text."""


# Characters


def _neighbours(match: re.Match[str]) -> tuple[str, str]:
    """Return the characters before and after a match, or "" at an end of the text."""
    start, end = match.span()
    return match.string[max(0, start - 1) : start], match.string[end : end + 1]


def _replace_with_gap(match: re.Match[str]) -> str:
    """Return a blank if the lost character was between two others, so that 5–10 stays apart from 510."""
    before, after = _neighbours(match)
    return " " if before.strip() and after.strip() else ""


def _replace_control(match: re.Match[str]) -> str:
    # Direction marks are invisible; other controls replace a lost character.
    return _replace_with_gap(match) if min(match[0]) < "\xa0" else ""


def _replace_soft_hyphen(match: re.Match[str]) -> str:
    # Hyphenation occurs between letters; next to a digit (IL-6, 10-20, "of -6.02") it is a hyphen or a minus.
    before, after = _neighbours(match)
    is_hyphen = before.isalnum() and after.isalnum() and (before.isdigit() or after.isdigit())
    is_letter = after.isalpha() and not match.string[match.end() + 1 : match.end() + 2].isalpha()
    is_minus = (after.isdigit() and (before.isspace() or before in ("(", "[", "="))) or (
        is_letter and before.isspace()  # "the charges \xadR and +R"
    )
    return "-" if is_hyphen or is_minus else ""


_JOINING_SCRIPT = re.compile("[\u0590-\u1cff\ua800-\uabff]")


def _replace_zero_width(match: re.Match[str]) -> str:
    # Joiners are spelling in Arabic and the scripts of India, and noise elsewhere.
    is_joining_script = _JOINING_SCRIPT.match(_neighbours(match)[0])
    return "".join(character for character in match[0] if is_joining_script and character in "\u200c\u200d")


_LIGATURES: Final = {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}


def _expand_ligatures(match: re.Match[str]) -> str:
    return "".join(_LIGATURES[ligature] for ligature in match[0])


# Text that a publisher encoded in UTF-8 and then read as Windows-1252 or Latin-1 is mended: Ã© is é. Only
# sequences are that no text in a Latin script has: "3 Å²" and the letters of names stay.


def _decode_codes(first: int, last: int) -> str:
    """Return the characters as which the bytes of a range appear, in both encodings."""
    codes = bytes(range(first, last + 1))
    return codes.decode("latin-1") + codes.decode("windows-1252", "ignore")


_CONTINUATION: Final = re.escape(_decode_codes(0x80, 0xBF))
_SEQUENCES: Final = (
    "Â[\xa1-\xac\xae-\xbf]",  # signs: Â° Â± Â· Âµ; not a no-break space, as after a statistic
    # letters
    f"Ã[{re.escape(_decode_codes(0x80, 0x90) + _decode_codes(0x96, 0x9F) + _decode_codes(0xA1, 0xBF))}]",
    "Ä[±‡™\x87\x8d\x99]|Å[¡¾‚„\x82\x84]",  # ı ć ę č š ž ł ń; Å² and Å– are ångströms
    f"[ÎÏ][{_CONTINUATION}]",  # Greek
    f"â[€\x80-\x8b‚„…†‡ˆ‰Š‹][{_CONTINUATION}]",  # punctuation, arrows, mathematical signs
    "ï¬[€\x80-\x86‚ƒ„…†]|ï»¿",  # ligatures, byte-order mark
)
MOJIBAKE: Final = re.compile("|".join(_SEQUENCES))
_MENDED_CHARACTER = re.compile("[\xa1-\u017f\u0391-\u03c9\u2000-\u23ff\ufb00-\ufb06\ufeff]")
"""What a sequence can stand for."""
_MAX_PASSES: Final = 4
"""Times that a text may have been encoded wrongly."""


def mend_mojibake(text: str) -> str:
    """Return the text with each wrongly decoded sequence replaced by its character."""
    for _ in range(_MAX_PASSES):
        mended = MOJIBAKE.sub(_decode_sequence, text)
        if mended == text:
            break
        text = mended
    return text


def _decode_sequence(sequence: re.Match[str]) -> str:
    codes = b"".join(
        character.encode("latin-1" if character <= "\xff" else "windows-1252") for character in sequence[0]
    )
    character = codes.decode()  # every sequence of the pattern is valid UTF-8
    return character if _MENDED_CHARACTER.fullmatch(character) else sequence[0]


_CHARACTER_RULES: Final[dict[str, tuple[str, Callable[[re.Match[str]], str]]]] = {
    "controls": (
        "\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2061-\u2064\u2066-\u206f\ufff9-\ufffb\U000e0001-\U000e007f",
        _replace_control,
    ),
    # Symbol fonts map ± and α here; the character itself is lost.
    "private-use": ("\ue000-\uf8ff\U000f0000-\U0010ffff", _replace_with_gap),
    "soft-hyphens": ("\xad", _replace_soft_hyphen),
    "spaces": (
        "\u180e\u200b-\u200d\u2060\ufeff",
        _replace_zero_width,
    ),  # of no width; the others are below
    "ligatures": ("\ufb00-\ufb06", _expand_ligatures),
}
"""Characters of each rule, and the replacement of a run of them."""
_WIDE_SPACES: Final = frozenset("\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | set(
    map(chr, range(0x2000, 0x200B))
)
"""Spaces with a width, which become blanks: 10 % of all abstracts have one."""
_COMBINING_MARKS: Final = "\u0300-\u036f"
_RULE_CHARACTERS: Final = "".join(characters for characters, _ in _CHARACTER_RULES.values())
_UNCLEAN_CHARACTERS = re.compile(
    f"[{_RULE_CHARACTERS}{''.join(_WIDE_SPACES)}{_COMBINING_MARKS}]|{MOJIBAKE.pattern}"
)


def _is_unclean(unusual: str) -> bool:
    """Return False if no character rule changes a text with these unusual characters.

    Without the ASCII between them, marks follow other letters. Marks that combine with ASCII letters count as
    unclean; others can only look less normalised than they are.
    """
    return bool(_UNCLEAN_CHARACTERS.search(unusual)) or not unicodedata.is_normalized("NFC", unusual)


# Escaped markup: tags that came as text, HTML or JATS that a publisher escaped, or put into CDATA.
# "10<sup>6</sup> cells" becomes "10^6 cells". Only tags of formatting go, and only those that the text
# closes: "p <a and b>c", "<r.m.s. deviation>" and articles about XML stay as they are.

_INLINE_NAMES: Final = (
    "a|abbr|acronym|b|big|bold|cite|code|em|ext-link|font|i|inf|italic|link|mark|pre|q|s|sc|small|span|strike"
    "|strong|sub|sup|tt|u|underline|uri|var|xref"
)
_BLOCK_NAMES: Final = (
    "blockquote|center|dd|div|dl|dt|h[1-6]|li|ol|p|sec|table|tbody|td|tfoot|th|thead|title|tr|ul"
)
_VOID_NAMES: Final = "br|hr|img"
_ATTRIBUTES: Final = r"""(?:\s+[\w:-]+\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[\w#%-]+))*\s*"""
_END_TAG = re.compile(rf"</({_INLINE_NAMES}|{_BLOCK_NAMES})(?:\s*>|(?=[;,.\s]))", re.IGNORECASE)
_TAG = re.compile(
    rf"</?(?:({_INLINE_NAMES})|{_BLOCK_NAMES}|{_VOID_NAMES})(?:{_ATTRIBUTES}/?>|(?<=\w)(?=[;,.]))",
    re.IGNORECASE,
)
_TAG_NAME = re.compile(r"[\w-]+")
_BLANK_BEFORE_STOP = re.compile(r"(?<!\s)\s++(?=[.,;:](?:\s|$))")
_DOUBLED_STOP = re.compile(r"(?<!\.)\.\.(?=\s|$)")


def remove_escaped_markup(text: str) -> str:
    """Return the text without tags of formatting; blocks and line breaks become blanks.

    The fast test for texts without tags is the caller's: ``"</" in text``.
    """
    closed_names = {match[1].lower() for match in _END_TAG.finditer(text)}
    if not closed_names:
        return text
    removable_names = closed_names.union(_VOID_NAMES.split("|"))

    def replace(tag: re.Match[str]) -> str:
        name = _TAG_NAME.search(tag[0])
        if name is None or name[0].lower() not in removable_names:
            return tag[0]
        return "" if tag[1] else " "

    text = _TAG.sub(replace, element_text.mark_exponents(text))
    text = _DOUBLED_STOP.sub(".", _BLANK_BEFORE_STOP.sub("", text))
    return " ".join(text.split())


# Titles and abstracts

CLEANING_RULES: Final[tuple[str, ...]] = (
    "mojibake",
    *_CHARACTER_RULES,
    "nfc",
    "markup",
    "reference-numbers",
    "run-in-labels",
    "stray-marks",
    "in-process",
    "author-translation",
    "translated-titles",
    "truncation-notes",
    "copyright",
    "journal-notes",
    "empty-labels",
    "stubs",
)
"""All rules, in the order of application. The rules for an abstract's end repeat until none applies."""


class Cleaner:
    """Compiled cleaning rules; create one per process.

    Methods return their input if there is nothing to clean. Each rule that changes something adds the number
    of removed characters to ``removed_characters`` under its name: 0 for a replaced space, negative for an
    expanded ligature.

    Args:
        rule_names: enabled rules, of :data:`CLEANING_RULES`.

    Raises:
        InvalidValueError: an unknown rule.
    """

    def __init__(self, rule_names: Iterable[str] = CLEANING_RULES) -> None:
        enabled = self._enabled = frozenset(rule_names)
        for name in sorted(enabled.difference(CLEANING_RULES)):
            hint = suggest_nearest(name, CLEANING_RULES)
            raise InvalidValueError(
                f"unknown cleaning rule {name!r}{hint} (rules: {', '.join(CLEANING_RULES)})"
            )
        self._character_rules = [
            (name, re.compile(f"[{characters}]+"), replacement)
            for name, (characters, replacement) in _CHARACTER_RULES.items()
            if name in enabled
        ]
        self._title_rules = [rule for rule in notices.TITLE_RULES.items() if rule[0] in enabled]
        self._end_rules = [rule for rule in notices.END_RULES.items() if rule[0] in enabled]

    def clean_text(self, text: str, removed_characters: dict[str, int]) -> str:
        """Apply the character rules to a text."""
        unusual = extract_unusual(text)
        if not _is_unclean(unusual):
            return text
        if "mojibake" in self._enabled and MOJIBAKE.search(unusual):
            text = _count_change("mojibake", text, mend_mojibake(text), removed_characters)
            unusual = extract_unusual(text)
        if "spaces" in self._enabled and (wide_spaces := _WIDE_SPACES.intersection(unusual)):
            _add_to_count(removed_characters, "spaces", 0)
            for space in wide_spaces:
                text = text.replace(space, " ")
                unusual = unusual.replace(space, "")
            if not _is_unclean(unusual):  # most texts with a wide space have nothing else
                return text
        for rule_name, pattern, replacement in self._character_rules:
            if pattern.search(unusual):
                text = _count_change(rule_name, text, pattern.sub(replacement, text), removed_characters)
        if "nfc" in self._enabled:
            text = _count_change("nfc", text, unicodedata.normalize("NFC", text), removed_characters)
        return text

    def clean_title(self, text: str, removed_characters: dict[str, int]) -> str:
        """Clean a title; return "" if it only states that there is no title."""
        if not text.isascii() or "\x7f" in text:
            text = self.clean_text(text, removed_characters)
        if "markup" in self._enabled and "</" in text:
            text = _count_change("markup", text, remove_escaped_markup(text), removed_characters)
        if "[" in text or len(text) < notices.MAX_TITLE_STUB_LENGTH or "transl" in text:
            for rule_name, rule in self._title_rules:
                text = _count_change(rule_name, text, rule(text), removed_characters)
        return text

    def clean_abstract(
        self,
        sections: Sequence[LabelledText],
        removed_characters: dict[str, int],
        keeps_citations: bool = False,
    ) -> list[LabelledText]:
        """Clean the sections of an abstract; return none if they only state that there is no abstract.

        Character rules apply to labels too. White space before removed notes is removed with them.

        Args:
            sections: labels, which may be None, and texts.
            removed_characters: counts by rule, which are added to.
            keeps_citations: keep citations by number in brackets.
        """
        cleaned = list(sections)
        for index, section in enumerate(sections):
            label, text = section
            if label is not None and (not label.isascii() or "\x7f" in label):
                label = self.clean_text(label, removed_characters)
            if not text.isascii() or "\x7f" in text:
                text = self.clean_text(text, removed_characters)
            if "<" in text and "</" in text and "markup" in self._enabled:
                text = _count_change("markup", text, remove_escaped_markup(text), removed_characters)
            if "reference-numbers" in self._enabled:
                shortened = typed_citations.remove_reference_numbers(text)
                if "[" in text and not keeps_citations:
                    shortened = typed_citations.remove_bracketed_numbers(shortened)
                text = _count_change("reference-numbers", text, shortened, removed_characters)
            if text is not section[1] or label is not section[0]:
                cleaned[index] = (label, text)
        if "journal-notes" in self._enabled and cleaned:
            label, text = cleaned[0]
            if citation_end := notices.find_citation_end(text):
                _add_to_count(removed_characters, "journal-notes", citation_end)
                cleaned[0] = (label, text[citation_end:])
        while (relabelled := self._clean_labels(cleaned, removed_characters)) != cleaned:
            cleaned = relabelled  # what is cut may uncover another label
        if cleaned and notices.may_end_in_note(cleaned[-1][1]):
            self._cut_notes(cleaned, removed_characters)
        if "stubs" in self._enabled and cleaned and len(cleaned[-1][1]) < notices.MAX_STUB_LENGTH:
            return _remove_stub(cleaned, removed_characters)
        return cleaned

    def _clean_labels(
        self, sections: list[LabelledText], removed_characters: dict[str, int]
    ) -> list[LabelledText]:
        """Apply the rules of labels, and of marks at the ends of texts."""
        enabled = self._enabled
        cleaned = (
            _split_at_labels(sections, removed_characters) if "run-in-labels" in enabled else [*sections]
        )
        may_have_empty_label = False
        for index, (label, text) in enumerate(cleaned):
            if "stray-marks" in enabled and text and (text[0] in " .,;:" or text[-1] in " (["):
                text = _count_change("stray-marks", text, notices.strip_stray_marks(text), removed_characters)
                cleaned[index] = (label, text)
            if label is None:
                may_have_empty_label = may_have_empty_label or (
                    text.find(":", 0, 60) > 0 and labels.begins_with_label(text)
                )
            else:
                may_have_empty_label = (
                    may_have_empty_label
                    or len(text) < len(label) + 4
                    or text[0] <= "."
                    or text[0] == label[:1]
                )
        if may_have_empty_label and "empty-labels" in enabled:
            return _remove_empty_labels(cleaned, removed_characters)
        return cleaned

    def _cut_notes(self, sections: list[LabelledText], removed_characters: dict[str, int]) -> None:
        """Remove notes from the end of the last section that has other text."""
        for index in reversed(range(len(sections))):
            label, text = sections[index]
            kept_text = self._cut_note(text, removed_characters)
            if label is None and not kept_text:
                del sections[index]
            elif (
                "empty-labels" in self._enabled
                and label is not None
                and not labels.strip_label(label, kept_text)
            ):
                _add_to_count(removed_characters, "empty-labels", len(label) + len(kept_text))
                del sections[index]
            else:
                sections[index] = (label, kept_text)
                if kept_text.strip():
                    return

    def _cut_note(self, text: str, removed_characters: dict[str, int]) -> str:
        """Return a text without notes at its end, and without numbers of references that a note followed."""
        while (end := self._find_text_end(text, removed_characters)) < len(text):
            text = text[:end]
            if "reference-numbers" in self._enabled:
                word = text.rfind(" ") + 1
                shortened = text[:word] + typed_citations.remove_reference_numbers(text[word:])
                text = _count_change("reference-numbers", text, shortened, removed_characters)
        return text

    def _find_text_end(self, text: str, removed_characters: dict[str, int]) -> int:
        """Return the end of a text without notes. The text is not copied per note: there can be many."""
        end = len(text)
        visible_end = _find_visible_end(text, end)
        while note := self._find_note(text, visible_end):
            rule_name, start = note
            visible_end = _find_visible_end(text, start)
            _add_to_count(removed_characters, rule_name, end - visible_end)
            end = visible_end
        return end

    def _find_note(self, text: str, end: int) -> tuple[str, int] | None:
        """Return rule and start of the note at the end of ``text[:end]``."""
        for rule_name, find_start in self._end_rules:
            start = find_start(text, end)
            if start < end:
                return rule_name, start
        return None


def _find_visible_end(text: str, end: int) -> int:
    """Return the end of ``text[:end]`` without trailing white space."""
    while end and text[end - 1].isspace():
        end -= 1
    return end


def _count_change(rule_name: str, before: str, after: str, removed_characters: dict[str, int]) -> str:
    """Return the text after a rule, and count the rule if it changed something."""
    if after == before:
        return before
    _add_to_count(removed_characters, rule_name, len(before) - len(after))
    return after


def _split_at_labels(sections: list[LabelledText], removed_characters: dict[str, int]) -> list[LabelledText]:
    """Make sections of the run-in labels of sections."""
    cleaned: list[LabelledText] = []
    for section in sections:
        label, text = section
        parts = (
            labels.split_at_labels(text)
            if label is None or _repeats_label(label, text)
            else labels.split_at_joined_labels(label, text)
        )
        if parts is None and label is None and text[:4].isupper() and len(sections) > 1 and not cleaned:
            parts = labels.split_at_opening_label(text) if sections[1][0] else None
        if parts is None:
            cleaned.append(section)
            continue
        _add_to_count(
            removed_characters, "run-in-labels", _count_characters([section]) - _count_characters(parts)
        )
        cleaned += parts
    return cleaned


def _repeats_label(label: str, text: str) -> bool:
    """Return True if the text of a section begins with its label and a colon."""
    return text.startswith(label) and text.startswith(":", len(label))


def _remove_empty_labels(
    sections: list[LabelledText], removed_characters: dict[str, int]
) -> list[LabelledText]:
    cleaned: list[LabelledText] = []
    for label, text in sections:
        if label is None:
            has_label = labels.begins_with_label(text)
            cleaned.append((None, labels.EMPTY_LABELS.sub("", text) if has_label else text))
        elif rest := labels.strip_label(label, text):
            cleaned.append((label, rest))
    if cleaned != sections:
        _add_to_count(
            removed_characters, "empty-labels", _count_characters(sections) - _count_characters(cleaned)
        )
    return cleaned


def _remove_stub(sections: list[LabelledText], removed_characters: dict[str, int]) -> list[LabelledText]:
    texts = [text for _, text in sections if text.strip()]
    if len(texts) != 1 or not notices.is_stub(texts[0]):
        return sections
    _add_to_count(removed_characters, "stubs", _count_characters(sections))
    return []


def _count_characters(sections: list[LabelledText]) -> int:
    return sum(len(label or "") + len(text) for label, text in sections)


def _add_to_count(removed_characters: dict[str, int], rule_name: str, characters: int) -> None:
    removed_characters[rule_name] = removed_characters.get(rule_name, 0) + characters
