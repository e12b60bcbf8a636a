"""Match paths with glob patterns, where the paths are listed by ourselves."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase


def matches_glob(names: Sequence[str], pattern: Sequence[str]) -> bool:
    """Return True if the names of a path match those of a pattern, as :mod:`glob` has it.

    ``**`` matches any folders but hidden ones.
    """
    if not pattern or not names:
        return not pattern and not names
    first, *rest = pattern
    is_visible = first.startswith(".") or not names[0].startswith(".")
    if first != "**":
        return is_visible and fnmatchcase(names[0], first) and matches_glob(names[1:], rest)
    rest_of_pattern = pattern if rest or names[1:] else ()  # a last one takes any file
    return (bool(rest) and matches_glob(names, rest)) or (
        is_visible and matches_glob(names[1:], rest_of_pattern)
    )


def ignore_extension_case(pattern: str) -> str:
    """Return a pattern that matches the extension in any case: ``*.[xX][mM][lL]`` for ``*.xml``."""
    stem, extension = os.path.splitext(pattern)
    return stem + re.sub("[A-Za-z]", lambda letter: f"[{letter[0].lower()}{letter[0].upper()}]", extension)
