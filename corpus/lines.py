"""Sentences as some papers write them into their corpora: one sentence, one line.

ELECTRAMed's text is BlueBERT's, whose README has the code: lower case, non-ASCII runs to a blank, Penn
Treebank tokens, in this order.  BioALBERT leaves out lines of fewer than 20 characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .splitters import treebank_tokenizer

ASCII_ONLY: Final = "ascii-only"
SHORT_LINES: Final = "short-lines"
"""The names under which removed characters are counted, beside those of the cleaning rules."""

_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_POSSESSIVE = re.compile(r"\s's\b")


class Lines:
    """Makes lines of sentences; built once, used for every record.

    Args:
        min_characters: lines of fewer characters are left out; empty ones always are.

    Raises:
        MissingExtraError: ``treebank``, and NLTK is not installed.
    """

    def __init__(self, lower_case: bool, ascii_only: bool, treebank: bool, min_characters: int) -> None:
        self._lower_case, self._ascii_only = lower_case, ascii_only
        self._tokenize: Callable[[str], list[str]] | None = treebank_tokenizer() if treebank else None
        self._min_characters = min_characters

    def __call__(self, sentences: list[str], removed: dict[str, int]) -> list[str]:
        """The lines of some sentences, fewer where one has nothing left or is too short.

        ``removed`` gains the non-ASCII characters taken out, and the characters of the short lines.
        """
        lines = []
        for sentence in sentences:
            line = self._line(sentence, removed)
            if line and len(line) < self._min_characters:
                removed[SHORT_LINES] = removed.get(SHORT_LINES, 0) + len(line)
            elif line:
                lines.append(line)
        return lines

    def _line(self, line: str, removed: dict[str, int]) -> str:
        if self._lower_case:
            line = line.lower()
        if self._ascii_only and not line.isascii():
            foreign = sum(map(len, _FOREIGN.findall(line)))
            removed[ASCII_ONLY] = removed.get(ASCII_ONLY, 0) + foreign
            line = " ".join(_FOREIGN.sub(" ", line).split())
        if self._tokenize:
            line = " ".join(_POSSESSIVE.sub("'s", " ".join(self._tokenize(line))).split())
        return line
