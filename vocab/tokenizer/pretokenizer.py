"""BERT's normalisation and pre-tokenization, which define a word.

The tokenizers library is the reference (``BertNormalizer``, ``BertPreTokenizer``): control characters are
removed, ideographs are separated, text is split at white space, and every punctuation mark is a word.  A
*chunk* is the text between two blanks.  No step looks across a blank, so a text is the sum of its chunks, and
each distinct chunk is processed once.  Nine chunks in ten are printable ASCII and match one regular
expression; the library handles the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tokenizers.normalizers import BertNormalizer

_ASCII_WORD: Final = re.compile(r"[0-9A-Za-z]+|[!-~]")
"""Words of printable ASCII: to BERT, everything but letters and digits is punctuation."""

PretokenizeFn = Callable[[str], list[str]]
"""Function from a text to its words."""


@dataclass(frozen=True, slots=True)
class Casing:
    """What a vocabulary changes in letters.

    Attributes:
        lower_case: True if words are lowercased.
        strip_accents: True if accents are removed.  BERT treats all nonspacing marks as accents, so that "≠"
            becomes "=" and "≮" becomes "<".
    """

    lower_case: bool = False
    strip_accents: bool = False

    def make_normalizer(self) -> BertNormalizer:
        """Return the library's normaliser for this casing."""
        from tokenizers.normalizers import BertNormalizer  # here, so that options are checked without it

        return BertNormalizer(
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=self.strip_accents,
            lowercase=self.lower_case,
        )


AS_WRITTEN: Final = Casing()
"""Casing of counted words; other casings' counts are derived from them (counting/word_counts.py)."""


class Pretokenizer:
    """Callable that returns the words of a text in order, under a casing."""

    def __init__(self, casing: Casing = AS_WRITTEN) -> None:
        from tokenizers.pre_tokenizers import BertPreTokenizer

        self._lower_case = casing.lower_case
        self._normalizer = casing.make_normalizer()
        self._pre_tokenizer = BertPreTokenizer()

    def __call__(self, text: str) -> list[str]:
        if text.isascii() and text.isprintable():
            return _ASCII_WORD.findall(text.lower() if self._lower_case else text)
        normalized = self._normalizer.normalize_str(text)
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(normalized)]
