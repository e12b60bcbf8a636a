"""Texts that make a pattern take many steps, and a limit of the time that a match takes."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator
from re import _compiler, _parser  # type: ignore[attr-defined]
from typing import Any, Final, Literal

Use = Literal["search", "match", "fullmatch"]
_REPEATS: Final = ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT")
_SINGLE: Final = ("LITERAL", "NOT_LITERAL", "IN", "ANY")
_MANY: Final = 40
"""Repetitions from which a repeat counts as a long one."""


def takes_longer(seconds: float, pattern: re.Pattern[Any], text: str, use: Use) -> bool:
    """Return True if all matches of a text take more processor time, which ends the search."""
    data: Any = text.encode("latin-1", "replace") if isinstance(pattern.pattern, bytes) else text
    matches = pattern.finditer(data) if use == "search" else iter([])

    def give_up(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, give_up)
    started = time.process_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds + 0.1)
    try:
        for _ in matches:
            pass
        if use != "search":
            getattr(pattern, use)(data)
    except TimeoutError:
        return True
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    return time.process_time() - started > seconds


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
        accepted = _list_accepted(node, flags, alphabet)
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
            words |= dict.fromkeys(_list_accepted(nodes[0], flags, alphabet))
        inner = [path for path in body if any(part[0] for part in path)]
        return [[(True, tuple(words)[:24])], *inner]
    return [[]]


def _list_accepted(node: Any, flags: int, alphabet: str) -> list[str]:
    """Return the characters that a node of one character matches."""
    state = _parser.State()
    state.flags = flags
    single = _compiler.compile(_parser.SubPattern(state, [node]), flags)
    is_text = bool(flags & re.UNICODE)
    return [c for c in alphabet if single.match(c if is_text else c.encode("latin-1", "replace"))]


def _join(path: list[Part], way: list[Part]) -> list[Part]:
    """Return a path made longer; fixed parts that follow each other become one."""
    joined = list(path)
    for is_long, words in way:
        if joined and not is_long and not joined[-1][0] and words and joined[-1][1]:
            joined[-1] = (False, (joined[-1][1][0] + words[0],))
        else:
            joined.append((is_long, words))
    return joined
