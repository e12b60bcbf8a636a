"""Every compiled pattern of the package takes steps in proportion to the length of a text."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import bioshards
import bioshards.corpus
from bioshards.corpus import sentences
from tests.support.regex_steps import StepCounter, TooManyStepsError, Use, write_hostile_words

LONGEST_TEXT = {
    "corpus.jats.in_text_marks:_NUMERIC_CITATION": 200,
    "corpus.jats.in_text_marks:_TRAILING_NUMBER": 200,
    "corpus.jats.publisher_notes:_CITATION_HEADING": 40,
    "corpus.jats.picture_credits:_CREDIT": 300,
    "corpus.jats.picture_credits:_CREDITED_WORK": 300,
    "corpus.jats.picture_credits:_CREDIT_END": 300,
    "corpus.jats.publisher_notes:_EDITORIAL_NOTE": 120,
    "corpus.jats.publisher_notes:_OWN_CITATION": 1000,
    "corpus.jats.publisher_notes:_PUBLISHER_HEADING": 40,
    "corpus.jats.publisher_notes:_SUPPLEMENT_POINTER": 300,
    "corpus.jats.text_rules:_BOILERPLATE_TITLE": 90,
    "corpus.jats.text_rules:_LINK": 300,
    "corpus.jats.text_rules:_REFERENCE_TITLE_PATTERN": 60,
    "corpus.jats.captions:_SUPPLEMENT_LABEL": 100,
    "corpus.sentences.boundary_model:CLASS_AFTER_STOP._match": 40,
    "corpus.sentences.boundary_model:CLASS_BEFORE_STOP._match": 40,
    "corpus.text.labels:LABEL_AT_END": 120,
    "corpus.text.labels:_LABEL": 80,
    "corpus.text.notices:_CITATION_AT_END": 120,
    "corpus.text.notices:_CITATION_AT_START": 1000,
    "corpus.text.notices:_IN_PROCESS_NOTE_AT_END": 120,
    "corpus.text.notices:_KEYWORDS_AT_END": 400,
    "corpus.text.notices:_OPENING_AT_START": 800,
    "corpus.text.notices:_OPENING_WITHIN": 800,
    "corpus.text.notices:_POINTER_AT_END": 400,
    "corpus.text.notices:_STRAY_MARKS_AT_END": 120,
    "corpus.text.notices:_TRANSLATION_NOTE_AT_END": 120,
    "corpus.text.notices:_TRUNCATION_NOTE": 120,
}
"""Characters that the caller gives a pattern at most."""
MOST_STEPS = 500_000
"""Of a text of that length: a few thousandths of a second."""
MOST_STEPS_A_CHARACTER = 400
"""Of a text of 1,024 words; in quadratic time each character takes 512 or more."""
NEVER_READ_A_TEXT = {
    "pipelines.options:_ADDRESS_OF_USER": "reads what was typed as an option",
    "evaluate.report.published:_CELL_PATTERN": "reads published.toml, which is ours",
}
MOST_PAIRS = 60
PACKAGES = [
    *(f"corpus.{module.name}" for module in pkgutil.iter_modules(bioshards.corpus.__path__)),
    "evaluate",
    "pipelines",
    "train",
    "vocab",
    "api",
    "doctor",
    "show",
]


def load_modules(name: str) -> Iterator[ModuleType]:
    module = importlib.import_module(f"bioshards.{name}")
    yield module
    for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{module.__name__}."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def find_patterns(value: Any, name: str, depth: int = 4) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Yield the patterns in a value: itself, what it holds, and those of bound methods."""
    value = value if isinstance(value, re.Pattern) else getattr(value, "__self__", value)
    if isinstance(value, re.Pattern):
        yield name, value
        return
    is_ours = (value if isinstance(value, type) else type(value)).__module__.startswith("bioshards")
    parts = {f"{name}.{key}": part for key, part in list(getattr(value, "__dict__", {}).items()) if is_ours}
    if isinstance(value, dict):
        parts |= {f"{name}[{key!r}]": part for key, part in value.items() if not isinstance(part, str)}
    elif isinstance(value, list | tuple):
        parts |= {f"{name}[{index}]": part for index, part in enumerate(value) if not isinstance(part, str)}
    for part_name, part in parts.items() if depth else ():
        yield from find_patterns(part, part_name, depth - 1)


def find_use(module: ModuleType, name: str) -> Use:
    """Return how a pattern is used: tried at each place of a text, at an offset, or on the whole of it."""
    uses = re.findall(rf"(?<![\w.]){re.escape(name)}\b(?!: Final| =)(?:\.(\w+))?", inspect.getsource(module))
    if not name.startswith("_") or not {"match", "fullmatch"} >= {*uses} - {"pattern"} != set():
        return "search"
    return "fullmatch" if "fullmatch" in uses else "match"


def find_slow_text(
    pattern: re.Pattern[Any], use: Use, length: int | None = None
) -> tuple[str, str, int] | None:
    """Return a beginning, a word and how often it is repeated, of a text that takes too many steps."""
    counter, pairs = StepCounter(pattern), write_hostile_words(pattern)
    most_pairs = MOST_PAIRS if length is None else MOST_PAIRS // 4
    for beginning, word in pairs[:: len(pairs) // most_pairs + 1]:

        def count(repeats: int, beginning: str = beginning, word: str = word) -> tuple[int, bool]:
            text = beginning + word * repeats + "\x00a"
            most = MOST_STEPS if length is not None else MOST_STEPS_A_CHARACTER * len(text)
            is_bytes = isinstance(pattern.pattern, bytes)
            try:
                counter.find_spans(text.encode("latin-1", "replace") if is_bytes else text, use, most)
            except TooManyStepsError:
                return most, True
            return counter.steps, False

        if length is not None:
            repeats = max(1, (length - len(beginning)) // len(word))
            if count(repeats)[1]:
                return beginning, word, repeats
            continue
        # A pattern that looks at a few hundred characters ahead looks quadratic in a short text.
        longer = {repeats: count(2 * repeats) for repeats in (8, 64)}
        is_slow = all(
            is_over or steps > 2.4 * count(repeats)[0] for repeats, (steps, is_over) in longer.items()
        )
        if is_slow and count(1024)[1]:
            return beginning, word, 1024
    return None


@pytest.mark.thorough
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("package", PACKAGES)
def test_each_pattern_takes_linear_steps(package: str) -> None:
    slow, seen = [], set()
    for module in load_modules(package):
        for variable, value in list(vars(module).items()):
            for name, pattern in find_patterns(value, variable):
                key = f"{module.__name__.removeprefix('bioshards.')}:{name}"
                if pattern in seen or key in NEVER_READ_A_TEXT:
                    continue
                seen.add(pattern)
                text = find_slow_text(pattern, find_use(module, name), LONGEST_TEXT.get(key))
                if text is not None:
                    slow.append((key, *text))
    assert not slow


SLOW_TEXTS = (
    ("corpus.jats.captions:_BRACKETED_NOTE", "", " "),
    ("corpus.jats.captions:_NOTE_FROM_ROUND", "", "("),
    ("corpus.jats.captions:_COLOUR_NOTE", "", " "),
    ("corpus.jats.captions:_COLOUR_NOTE", "(", "color online "),
    ("corpus.jats.publisher_notes:_SENTENCE_END", "", "a"),
    ("corpus.jats.in_text_marks:_NOTE_MARKS", " (A", " - i"),
    ("corpus.jats.in_text_marks:_INTRODUCTION_WORDS", "", " for a reviews"),
    ("corpus.text.notices:_URL_OR_EMAIL", "", "a"),
    ("corpus.pubmed.citation:_MESH_NAME", "", 'Name MajorTopicYN="N">'),
)
"""Patterns that took quadratic or exponential time, and what they took it on."""


@pytest.mark.parametrize(("name", "beginning", "word"), SLOW_TEXTS)
def test_texts_that_were_slow_take_linear_steps(name: str, beginning: str, word: str) -> None:
    module_name, _, variable = name.partition(":")
    module = importlib.import_module(f"bioshards.{module_name}")
    text = beginning + word * 1024 + "\x00a"
    counter = StepCounter(getattr(module, variable))
    counter.find_spans(text, find_use(module, variable), MOST_STEPS_A_CHARACTER * len(text))
    assert counter.steps < MOST_STEPS_A_CHARACTER * len(text)


def test_exempt_patterns_exist() -> None:
    for name in (*LONGEST_TEXT, *NEVER_READ_A_TEXT):
        module, _, path = name.partition(":")
        value: Any = importlib.import_module(f"bioshards.{module}")
        for part in path.split("."):
            value = getattr(value, part)


SAMPLES = (
    (r"a*b|(?:ab)+?c", "aaab ababc aab"),
    (r"(?i)(x|xy)*z\Z", "XYxyxz"),
    (r"(['\"])(.*?)\1", "'a' \"b' c\""),
    (r"(?<=\s)\w++(?!\d)|^\W*$", "one two 3\n\n"),
    (r"(?>a|ab)c|\babc", "abc ac"),
    (r"[^\W\d_]{2,3}?\s*", "abcd ef  g"),
    (r"(?s:.)(?=.*end)|\d*", "12 end 5"),
    (r"(?x) ( a | b{2,} )* c?", "abbbc bab c"),
)


@pytest.mark.parametrize(("source", "text"), SAMPLES)
def test_counted_matches_are_those_of_re(source: str, text: str) -> None:
    pattern = re.compile(source)
    for sample in (text, text * 2, text[::-1]):
        assert StepCounter(pattern).find_spans(sample) == [match.span() for match in pattern.finditer(sample)]
    matches: dict[Use, re.Match[str] | None] = {
        "match": pattern.match(text),
        "fullmatch": pattern.fullmatch(text),
    }
    for use, found in matches.items():
        assert StepCounter(pattern).find_spans(text, use) == ([found.span()] if found else [])


@pytest.mark.parametrize(
    ("source", "is_slow"),
    [
        (r"\s+$", True),
        (r"(?<!\s)\s++$", False),
        (r"\([^)]*\)", True),
        (r"\([^()]*\)", False),
        (r"(?:a|aa)*b", True),
        pytest.param(r"(\w+ )*\d", True, marks=pytest.mark.thorough),  # takes seconds
        (r"a.*b.*c", True),
        (r"a.{0,50}b", False),
        (r"[a-z]+ \d", True),
    ],
)
def test_slow_patterns_are_found(source: str, is_slow: bool) -> None:
    assert (find_slow_text(re.compile(source), "search") is not None) == is_slow


HOSTILE_LINES = {
    **{repr(unit): unit for unit in ("a. ", "A. ", "(", "(A. ", "[1] ", "x. [1] A ", '." ', "...", ". ")},
    **{
        repr(unit): unit
        for unit in ("e.g. ", "1. ", "Fig. 1. ", "A? ", "x.1,2 A ", "“A.” ", "a b. ", "J. M. ")
    },
}


@pytest.mark.parametrize("unit", HOSTILE_LINES)
def test_splitter_looks_at_characters_in_proportion_to_the_line(
    unit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The work is the characters of what each candidate slices, and the steps of the patterns."""
    looked_at = 0

    class Line(str):
        def __getitem__(self, key: Any) -> str:
            nonlocal looked_at
            piece = super().__getitem__(key)
            looked_at += len(piece)
            return piece

    def split_counted(repeats: int) -> int:
        nonlocal looked_at
        looked_at = 0
        sentences.split_line(Line((HOSTILE_LINES[unit] * repeats).strip()))
        return looked_at

    once = split_counted(10_000)
    assert split_counted(20_000) <= 2.2 * once
