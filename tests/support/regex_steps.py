"""Count the steps of a backtracking matcher, and write texts that make a pattern take many.

``re`` has no counter of its work, so a small matcher walks the parse tree of ``re`` and counts each character
that it looks at. It tries what ``re`` tries, in the same order, without the shortcuts that save a constant.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from re import _compiler, _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Final, Literal

Continuation = Callable[[int], bool]
Matcher = Callable[[int, Continuation], bool]
"""Function that matches at a position and calls the continuation with each end until one returns True."""

Use = Literal["search", "match", "fullmatch"]
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_SINGLE: Final = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_MANY: Final = 40
"""Repetitions from which a repeat counts as a long one."""


class TooManyStepsError(Exception):
    """A match takes more steps than its budget."""


class StepCounter:
    """Matcher of one pattern that counts its steps."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._is_bytes = isinstance(pattern.pattern, bytes)
        nodes = _parser.parse(pattern.pattern, pattern.flags)
        self._match = self._sequence(nodes, pattern.flags)
        first = next((node for node in nodes if str(node[0]) not in ("AT", "ASSERT", "ASSERT_NOT")), None)
        self._may_begin = (
            self._predicate(first[0], first[1], pattern.flags)
            if first and str(first[0]) in _SINGLE
            else lambda _: True
        )

    def find_spans(self, text: Any, use: Use = "search", budget: float = 1e9) -> list[tuple[int, int]]:
        """Return the spans of ``finditer``, or of other uses; :attr:`steps` says how many steps they took."""
        limit = sys.getrecursionlimit()
        sys.setrecursionlimit(1_000_000)  # frames of Python alone, which take no stack of C
        try:
            return self._find_spans(text, use, budget)
        finally:
            sys.setrecursionlimit(limit)  # parsers in C that recurse rely on it

    def _find_spans(self, text: Any, use: Use, budget: float) -> list[tuple[int, int]]:
        whole = len(text) if use == "fullmatch" else None
        self._text, self.steps, self._budget = text, 0, budget
        spans: list[tuple[int, int]] = []
        start, empty_end = 0, -1
        while start <= len(text):
            end = self._find_end(start, empty_end, whole)
            if end is not None:
                spans.append((start, end))
            empty_end = start if end == start else -1
            start = start + 1 if end is None else end
            if use != "search":
                break
        return spans

    def _find_end(self, start: int, empty_end: int, whole: int | None) -> int | None:
        """Return the end of the match at an offset; behind an empty match comes one that is longer."""
        ends: list[int] = []
        self._groups: dict[int, tuple[int, int]] = {}

        def accept(end: int) -> bool:
            is_accepted = end != empty_end and whole in (None, end)
            if is_accepted:
                ends.append(end)
            return is_accepted

        return ends[0] if self._may_begin(start) and self._match(start, accept) else None

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._budget:
            raise TooManyStepsError

    def _compile(self, node: Any, flags: int) -> re.Pattern[Any]:
        state = _parser.State()
        state.flags = flags
        compiled: re.Pattern[Any] = _compiler.compile(_parser.SubPattern(state, [node]), flags)
        return compiled

    def _sequence(self, nodes: Sequence[Any], flags: int) -> Matcher:
        matchers = [self._node(operator, argument, flags) for operator, argument in nodes]

        def match(position: int, then: Continuation, index: int = 0) -> bool:
            if index == len(matchers):
                return then(position)
            return matchers[index](position, lambda end: match(end, then, index + 1))

        return matchers[0] if len(matchers) == 1 else match

    def _node(self, operator: Any, argument: Any, flags: int) -> Matcher:
        name = str(operator)
        if name in _SINGLE:
            return self._single(operator, argument, flags)
        if name in _REPEATS:
            return self._repeat(name, argument[0], argument[1], argument[2], flags)
        return getattr(self, f"_{name.lower()}")(argument, flags)  # type: ignore[no-any-return]

    def _predicate(self, operator: Any, argument: Any, flags: int) -> Callable[[int], bool]:
        pattern, known = self._compile((operator, argument), flags), {"": False, b"": False}

        def accepts(position: int) -> bool:
            self.steps += 1
            if self.steps > self._budget:
                raise TooManyStepsError
            character = self._text[position : position + 1]
            if character not in known:
                known[character] = pattern.match(character) is not None
            return known[character]

        return accepts

    def _single(self, operator: Any, argument: Any, flags: int) -> Matcher:
        accepts = self._predicate(operator, argument, flags)
        return lambda position, then: accepts(position) and then(position + 1)

    def _at(self, argument: Any, flags: int) -> Matcher:
        pattern = self._compile((_constants.AT, argument), flags)

        def match(position: int, then: Continuation) -> bool:
            self._step()
            return pattern.match(self._text, position) is not None and then(position)

        return match

    def _branch(self, argument: Any, flags: int) -> Matcher:
        branches = [self._sequence(nodes, flags) for nodes in argument[1]]

        def match(position: int, then: Continuation) -> bool:
            # any() would be a frame of C, of which Python 3.12 allows few.
            for branch in branches:  # noqa: SIM110
                if branch(position, then):
                    return True
            return False

        return match

    def _subpattern(self, argument: Any, flags: int) -> Matcher:
        group, added, removed, nodes = argument
        body = self._sequence(nodes, (flags | added) & ~removed)

        def match(position: int, then: Continuation) -> bool:
            def close(end: int) -> bool:
                before = dict(self._groups)
                if group is not None:
                    self._groups[group] = (position, end)
                if then(end):
                    return True
                self._groups = before
                return False

            return body(position, close)

        return body if group is None else match

    def _atomic_group(self, argument: Any, flags: int) -> Matcher:
        body = self._sequence(argument, flags)

        def match(position: int, then: Continuation) -> bool:
            ends: list[int] = []
            return body(position, lambda end: not ends.append(end)) and then(ends[0])  # type: ignore[func-returns-value]

        return match

    def _groupref(self, argument: Any, flags: int) -> Matcher:
        def match(position: int, then: Continuation) -> bool:
            start, end = self._groups.get(argument, (0, -1))
            words = self._text[position : position + end - start], self._text[start:end]
            self.steps += max(0, end - start)
            folded = [word.lower() if flags & re.IGNORECASE else word for word in words]
            return end >= start and folded[0] == folded[1] and then(position + end - start)

        return match

    def _assert(self, argument: Any, flags: int) -> Matcher:
        direction, nodes = argument
        body, width = self._sequence(nodes, flags), nodes.getwidth()[0] if direction < 0 else 0
        return lambda position, then: (
            position >= width and body(position - width, lambda _: True) and then(position)
        )

    def _assert_not(self, argument: Any, flags: int) -> Matcher:
        if not argument[1]:
            return lambda position, then: False
        found = self._assert(argument, flags)
        return lambda position, then: not found(position, lambda _: True) and then(position)

    def _repeat(self, name: str, low: int, high: int, nodes: Any, flags: int) -> Matcher:
        if name == "POSSESSIVE_REPEAT":
            greedy = self._repeat("MAX_REPEAT", low, high, nodes, flags)

            def match_possessively(position: int, then: Continuation) -> bool:
                ends: list[int] = []
                return greedy(position, lambda end: not ends.append(end)) and then(ends[0])  # type: ignore[func-returns-value]

            return match_possessively
        is_greedy = name == "MAX_REPEAT"
        if len(nodes) == 1 and str(nodes[0][0]) in _SINGLE and is_greedy:
            accepts = self._predicate(nodes[0][0], nodes[0][1], flags)

            def match_run(position: int, then: Continuation) -> bool:
                end = position
                while end - position < high and accepts(end):
                    end += 1
                for last in range(end, position + low - 1, -1):
                    self._step()
                    if then(last):
                        return True
                return False

            return match_run
        body = self._sequence(nodes, flags)

        def match(position: int, then: Continuation, count: int = 0, before: int = -1) -> bool:
            self._step()

            def more() -> bool:
                may_loop = count < low or position != before
                return (
                    count < high
                    and may_loop
                    and body(position, lambda end: match(end, then, count + 1, position))
                )

            if count < low:
                return more()
            return (more() or then(position)) if is_greedy else (then(position) or more())

        return match


# Texts that may take many steps


def write_hostile_words(pattern: re.Pattern[Any]) -> list[tuple[str, str]]:
    """Return pairs of a beginning and a word to repeat behind it, made of the pattern's own parts.

    The words are one character of each class, each fixed part between two long repeats, and each beginning
    of a match up to a long repeat with a part behind it.
    """
    alphabet = "".join(dict.fromkeys("aA1 -(<.,\n" + "".join(_list_literals(_parse(pattern)))))
    pairs: dict[tuple[str, str], None] = {}
    for parts in _list_paths(_parse(pattern), pattern.flags, alphabet):
        if not any(is_long for is_long, _ in parts):  # the work at one place is bounded
            continue
        pairs |= {("", word): None for _, words in parts for word in words}
        beginning = ""
        for index, (is_long, choices) in enumerate(parts):
            if is_long:
                words = [word for _, others in parts[index : index + 4] for word in others[:24]]
                pairs |= {
                    (beginning, one + other): None for one in choices[:4] for other in ("", *choices[:4])
                }
                pairs |= {
                    pair: None for word in words for pair in ((beginning, word), ("", beginning + word))
                }
            beginning += choices[0] if choices else ""
    return [pair for pair in pairs if pair[1]]


def _parse(pattern: re.Pattern[Any]) -> Any:
    return _parser.parse(pattern.pattern, pattern.flags)


def _list_literals(nodes: Any) -> Iterator[str]:
    """Yield the characters that the parse tree names."""
    for item in nodes:
        if isinstance(item, tuple) and len(item) == 2 and str(item[0]) in ("LITERAL", "NOT_LITERAL"):
            yield chr(item[1])
        elif isinstance(item, tuple) and len(item) == 2 and str(item[0]) == "RANGE":
            yield chr(item[1][0])
        elif isinstance(item, (tuple, list, _parser.SubPattern)):
            yield from _list_literals(item)


_MAX_PATHS: Final = 24

Part = tuple[bool, tuple[str, ...]]
"""A stretch of a path: whether it is a long repeat, and words that match it (or one of its repetitions)."""


def _list_paths(nodes: Any, flags: int, alphabet: str) -> list[list[Part]]:
    """Return ways through a parse tree as parts; each branch is taken in one of them at least."""
    paths: list[list[Part]] = [[]]
    for operator, argument in nodes:
        ways = _list_ways(str(operator), (operator, argument), flags, alphabet)
        first, others = ways[0], ways[1:]
        longer = [_join(path, first) for path in paths]
        paths = [*longer, *(_join(paths[0], way) for way in others)][:_MAX_PATHS]
    return paths


def _list_ways(name: str, node: Any, flags: int, alphabet: str) -> list[list[Part]]:
    argument = node[1]
    if name in _SINGLE:
        state = _parser.State()
        state.flags = flags
        single = _compiler.compile(_parser.SubPattern(state, [node]), flags)
        is_text = bool(flags & re.UNICODE)
        accepted = [c for c in alphabet if single.match(c if is_text else c.encode("latin-1", "replace"))]
        return [[(False, (character,))] for character in accepted[:3]] or [[]]
    if name == "BRANCH":
        return [path for nodes in argument[1] for path in _list_paths(nodes, flags, alphabet)][:_MAX_PATHS]
    if name == "SUBPATTERN":
        return _list_paths(argument[3], (flags | argument[1]) & ~argument[2], alphabet)
    if name == "ATOMIC_GROUP":
        return _list_paths(argument, flags, alphabet)
    if name == "ASSERT" and argument[0] > 0:
        return [[], *_list_paths(argument[1], flags, alphabet)]
    if name in _REPEATS:
        low, high, nodes = argument
        body = _list_paths(nodes, flags, alphabet)
        if high < _MANY:
            return [*(path * max(1, low) for path in body), *([[]] if low == 0 else [])]
        words = dict.fromkeys("".join(part[1][0] for part in path if part[1]) for path in body)
        if len(nodes) == 1 and str(nodes[0][0]) in _SINGLE:
            words |= dict.fromkeys(c for c in alphabet if _accepts(nodes[0], flags, c))
        inner = [path for path in body if any(part[0] for part in path)]
        return [[(True, tuple(words)[:24])], *inner]
    return [[]]


def _accepts(node: Any, flags: int, character: str) -> bool:
    state = _parser.State()
    state.flags = flags
    single = _compiler.compile(_parser.SubPattern(state, [node]), flags)
    return bool(single.match(character if flags & re.UNICODE else character.encode("latin-1", "replace")))


def _join(path: list[Part], way: list[Part]) -> list[Part]:
    """Return a path made longer; fixed parts that follow each other become one."""
    joined = list(path)
    for is_long, words in way:
        if joined and not is_long and not joined[-1][0] and words and joined[-1][1]:
            joined[-1] = (False, (joined[-1][1][0] + words[0],))
        else:
            joined.append((is_long, words))
    return joined
