"""Format sentences as the lines of published corpora.

ELECTRAMed's text is BlueBERT's, whose README has the code: lower case, non-ASCII runs to a blank, Penn
Treebank tokens, in this order. BioALBERT excludes lines of fewer than 20 characters.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from bioshards.corpus.sentences.splitters import load_treebank_tokenizer

ASCII_ONLY: Final = "ascii-only"
SHORT_LINES: Final = "short-lines"
"""Names under which removed characters are counted, in addition to the cleaning rules."""

_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
_POSSESSIVE = re.compile(r"\s's\b")


class LineFormatter:
    """Formatter of sentences; create one per process.

    Args:
        lower_case: write lower case.
        ascii_only: replace each run of non-ASCII characters by a blank.
        treebank: write Penn Treebank tokens, separated by blanks.
        min_characters: shorter lines are excluded; empty ones always are.

    Raises:
        MissingExtraError: ``treebank`` is set and NLTK is not installed.
    """

    def __init__(self, *, lower_case: bool, ascii_only: bool, treebank: bool, min_characters: int) -> None:
        self._lower_case, self._ascii_only = lower_case, ascii_only
        self._tokenize: Callable[[str], list[str]] | None = load_treebank_tokenizer() if treebank else None
        self._min_characters = min_characters

    def __call__(self, sentences: list[str], removed_characters: dict[str, int]) -> list[str]:
        """Format sentences; empty and short lines are excluded.

        Args:
            sentences: the sentences.
            removed_characters: counts by rule, to which removed characters and excluded lines are added.
        """
        lines = []
        for sentence in sentences:
            line = self._format_line(sentence, removed_characters)
            if line and len(line) < self._min_characters:
                removed_characters[SHORT_LINES] = removed_characters.get(SHORT_LINES, 0) + len(line)
            elif line:
                lines.append(line)
        return lines

    def _format_line(self, line: str, removed_characters: dict[str, int]) -> str:
        if self._lower_case:
            line = line.lower()
        if self._ascii_only and not line.isascii():
            num_non_ascii = sum(map(len, _NON_ASCII.findall(line)))
            removed_characters[ASCII_ONLY] = removed_characters.get(ASCII_ONLY, 0) + num_non_ascii
            line = " ".join(_NON_ASCII.sub(" ", line).split())
        if self._tokenize:
            line = " ".join(_POSSESSIVE.sub("'s", " ".join(self._tokenize(line))).split())
        return line
