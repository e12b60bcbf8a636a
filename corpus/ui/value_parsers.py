"""Parsers of the values of options; each raises argparse.ArgumentTypeError with what is wrong."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from bioshards.corpus.errors import InvalidValueError, suggest_nearest
from bioshards.corpus.languages import parse_language


def fraction(text: str) -> float:
    """Parse a number from 0 to 1."""
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def int_at_least(lowest: int) -> Callable[[str], int]:
    """Return a parser of whole numbers of at least ``lowest``."""

    def parse_integer(text: str) -> int:
        value = int(text)
        if value < lowest:
            raise argparse.ArgumentTypeError(f"{text} is below {lowest}")
        return value

    parse_integer.__name__ = "whole number"  # argparse: invalid whole number value
    return parse_integer


def worker_count(text: str) -> int:
    """Parse a number of local processes; more than the machine has cores are capped, with a notice."""
    workers, cores = int_at_least(1)(text), os.cpu_count() or 1
    if workers > cores:
        print(f"notice: {text} workers are more than this machine's cores: {cores} run", file=sys.stderr)
    return min(workers, cores)


worker_count.__name__ = "whole number"


def name_list(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list."""
    return tuple(sorted({name.strip() for name in text.split(",") if name.strip()}))


def lower_case_list(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of names that are compared in lower case."""
    return name_list(text.lower())


def language_list(text: str) -> tuple[str, ...]:
    """Parse a comma-separated list of languages into MARC codes."""
    try:
        return tuple(sorted({parse_language(name) for name in name_list(text)}))
    except InvalidValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def subset_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of comma-separated names, in any case, ``all`` or ``none``.

    The order is that of ``known``.
    """

    def parse_names(text: str) -> tuple[str, ...]:
        if text in ("all", "none"):
            return tuple(known) if text == "all" else ()
        selected = name_list(text)
        if not selected:
            raise argparse.ArgumentTypeError("no name is given (to mean that, say none)")
        known_folded = {name.casefold() for name in known}
        for name in selected:
            if name.casefold() not in known_folded:
                raise argparse.ArgumentTypeError(
                    f"unknown name {name}{suggest_nearest(name, known)}; the names are {', '.join(known)}"
                )
        folded = {name.casefold() for name in selected}
        return tuple(name for name in known if name.casefold() in folded)

    return parse_names


def nonempty_subset_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser like :func:`subset_of` that rejects an empty selection."""

    def parse_names(text: str) -> tuple[str, ...]:
        selected = subset_of(known)(text)
        if not selected:
            raise argparse.ArgumentTypeError(f"{text} selects nothing; all selects everything")
        return selected

    return parse_names


def complement_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a parser of names as :func:`subset_of` that selects all others."""

    def parse_names(text: str) -> tuple[str, ...]:
        excluded = subset_of(known)(text)
        return tuple(name for name in known if name not in excluded)

    return parse_names


def server_url(text: str) -> str:
    """Parse a server's URL, https, or http on this machine; add a trailing slash."""
    parts = urlsplit(text)
    if parts.scheme == "http" and parts.hostname not in ("localhost", "127.0.0.1", "::1"):
        raise argparse.ArgumentTypeError(f"{text} is not encrypted; give its https:// address")
    if parts.username is not None:
        raise argparse.ArgumentTypeError("an address with a user's name in it would be shown in manifests")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise argparse.ArgumentTypeError(f"{text} is no address like https://SERVER/FOLDER/")
    return text if text.endswith("/") else f"{text}/"


def contact_address(text: str) -> str:
    """Parse a mail or web address that an HTTP header can hold."""
    if not re.fullmatch("[!-'*-~]{3,200}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no mail or web address")
    return text
