"""Argparse types: what options take, each with a regular expression for forms (metadata.py)."""

from __future__ import annotations

import argparse
import difflib
import functools
import re
from collections.abc import Callable, Sequence
from typing import Final, Generic, Literal, TypeVar
from urllib.parse import urlsplit

_CONTACT: Final = "[!-'*-~]{3,200}"

T = TypeVar("T")


class Value(Generic[T]):
    """An argparse type with a regular expression beside it, for forms that look before we do (metadata.py).

    Attributes:
        pattern: what matches it, whole, is taken; some of what does not may be, too.
    """

    def __init__(self, parse: Callable[[str], T], pattern: str) -> None:
        functools.update_wrapper(self, parse)
        self._parse, self.pattern = parse, pattern

    def __call__(self, text: str) -> T:
        return self._parse(text)


def takes(pattern: str) -> Callable[[Callable[[str], T]], Value[T]]:
    """Make an argparse type of a function that takes what matches the pattern."""
    return lambda parse: Value(parse, pattern)


@takes(r"0(\.[0-9]+)?|\.[0-9]+|1(\.0+)?")
def share(text: str) -> float:
    """A number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def at_least(lowest: Literal[0, 1]) -> Value[int]:
    """An argparse type: a whole number that is not below ``lowest``."""

    def number(text: str) -> int:
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"{text} is below {lowest}")
        return value

    number.__name__ = "whole number"
    return Value(number, "[1-9][0-9]{0,17}" if lowest else "0|[1-9][0-9]{0,17}")


@takes(r"[^\r\n]*")
def names(text: str) -> tuple[str, ...]:
    """A comma-separated list."""
    return tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))


def at_least_one_of(known: Sequence[str]) -> Value[tuple[str, ...]]:
    """An argparse type: as :func:`some_of`, but not none of them."""

    @takes(f"all|{_listed(known)}")
    def chosen(text: str) -> tuple[str, ...]:
        given = some_of(known)(text)
        if not given:
            raise argparse.ArgumentTypeError(f"{text} selects nothing; all selects everything")
        return given

    return chosen


def some_of(known: Sequence[str]) -> Value[tuple[str, ...]]:
    """An argparse type: some of these names, comma-separated, or ``all`` or ``none``; in the names' order."""

    @takes(f"all|none|{_listed(known)}")
    def chosen(text: str) -> tuple[str, ...]:
        if text in ("all", "none"):
            return tuple(known) if text == "all" else ()
        given = names(text)
        if not given:
            raise argparse.ArgumentTypeError("no name is given (to mean that, say none)")
        for name in given:
            if name not in known:
                near = difflib.get_close_matches(name, known, 1, 0.5)
                hint = f" (did you mean {near[0]}?)" if near else ""
                raise argparse.ArgumentTypeError(
                    f"unknown name {name}{hint}; the names are {', '.join(known)}"
                )
        return tuple(name for name in known if name in given)

    return chosen


def all_but(known: Sequence[str]) -> Value[tuple[str, ...]]:
    """An argparse type: these names without those given, which are as for :func:`some_of`."""

    @takes(some_of(known).pattern)
    def left(text: str) -> tuple[str, ...]:
        left_out = some_of(known)(text)
        return tuple(name for name in known if name not in left_out)

    return left


def _listed(known: Sequence[str]) -> str:
    one = f"({'|'.join(known)})"
    return f"{one}(,{one})*"


@takes(r"https://[A-Za-z0-9.-]+(:[0-9]{1,5})?(/[A-Za-z0-9._~/-]*)?")
def address(text: str) -> str:
    """An argparse type: a server's address, https, or http on this machine; ends with a slash."""
    parts = urlsplit(text)
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise argparse.ArgumentTypeError(f"{text} is not encrypted; give its https:// address")
    if parts.username is not None:
        raise argparse.ArgumentTypeError("an address with a user's name in it would be shown in manifests")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text} is no address like https://SERVER/FOLDER/")
    return text if text.endswith("/") else f"{text}/"


@takes(_CONTACT)
def contact(text: str) -> str:
    """An argparse type: what may stand in a header, a mail or web address."""
    if not re.fullmatch(_CONTACT, text):
        raise argparse.ArgumentTypeError(f"{text!r} is no mail or web address")
    return text
