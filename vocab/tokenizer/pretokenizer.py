"""What a word is: BERT's normalisation and pre-tokenisation, chunk by chunk.

The tokenizers library defines it (``BertNormalizer``, ``BertPreTokenizer``: controls out, ideographs apart,
split at white space, every punctuation mark a word of its own), because its answer is what a model will see.
A *chunk* is what stands between two blanks.  No step looks across a blank, so a text is the sum of its
chunks, and a corpus has few distinct ones: whoever counts or encodes does each once.  Nine in ten are
printable ASCII, of which the rules fit in one regular expression; all others go through the library itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer

_ASCII_WORD: Final = re.compile(r"[0-9A-Za-z]+|[!-~]")
"""Words of printable ASCII: BERT calls all of it punctuation but letters and digits."""

PretokenizeFn = Callable[[str], list[str]]
"""What makes words of a text."""


@dataclass(frozen=True, slots=True)
class Casing:
    """What a vocabulary makes of letters before it looks them up.

    Attributes:
        lower_case: are words in lower case?
        strip_accents: are letters without their accents?  BERT takes all nonspacing marks for
            accents, and so a "≠" becomes "=" and a "≮" becomes "<".
    """

    lower_case: bool = False
    strip_accents: bool = False

    def make_normalizer(self) -> BertNormalizer:
        """The library's normaliser for this casing."""
        return BertNormalizer(
            clean_text=True,
            handle_chinese_chars=True,
            strip_accents=self.strip_accents,
            lowercase=self.lower_case,
        )


AS_WRITTEN: Final = Casing()
"""How words are counted: every other casing's counts are made of these (word_counts.py)."""


class Pretokenizer:
    """Callable: the words of a chunk or any other text, in order, under a casing."""

    def __init__(self, casing: Casing = AS_WRITTEN) -> None:
        self._lower_case = casing.lower_case
        self._normalizer = casing.make_normalizer()
        self._pre_tokenizer = BertPreTokenizer()

    def __call__(self, text: str) -> list[str]:
        if text.isascii() and text.isprintable():
            return _ASCII_WORD.findall(text.lower() if self._lower_case else text)
        normalized = self._normalizer.normalize_str(text)
        return [word for word, _ in self._pre_tokenizer.pre_tokenize_str(normalized)]
