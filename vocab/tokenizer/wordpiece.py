"""WordPiece vocabularies without the defects of the published ones: alphabet, reachable pieces, assembly.

A piece that continues a word begins with ``##``.  WordPiece replaces a whole word by [UNK] if one of its
characters has no piece: Bio-ELECTRA's published vocabulary lacks the quotation mark, so that every quotation
mark is [UNK].  Pieces that BERT's pre-tokenization splits are never used: the published conversions from
SentencePiece (allenai/scibert, issue 38) ignored it and have pieces like ``0.05`` or ``##).``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.pretokenizer import PretokenizeFn

UNK: Final = "[UNK]"
SPECIAL_TOKENS: Final = ("[PAD]", UNK, "[CLS]", "[SEP]", "[MASK]")
"""Special tokens of BERT, in the order of their ids in Bio-ELECTRA's vocabulary."""
ALBERT_UNK: Final = "<unk>"
ALBERT_SPECIAL_TOKENS: Final = ("<pad>", ALBERT_UNK, "[CLS]", "[SEP]", "[MASK]")
"""Special tokens of ALBERT, in the order of their ids."""
CONTINUATION_PREFIX: Final = "##"
SENTENCEPIECE_SPACE: Final = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's sign for the blank before a word."""
MAX_WORD_LENGTH: Final = 100
"""Maximum characters of a word; longer ones are [UNK], as in Hugging Face's BertTokenizer."""
SPECIAL_TOKEN_PATTERN: Final = re.compile(
    r"\[(?:PAD|UNK|CLS|SEP|MASK|unused[0-9]+)\]|<(?:pad|unk|s|/s|mask)>"
)
"""Tokens that text never yields: BERT's, its reserved ones, and SentencePiece's."""
ASCII: Final = tuple(map(chr, range(0x21, 0x7F)))
"""Printable ASCII without the blank."""
GREEK: Final = tuple(map(chr, (*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA))))
"""Greek letters without accents, from Α to ω, with the final ς."""


class TooFewPiecesError(InvalidValueError):
    """The corpus yields fewer pieces than requested; ``largest`` is the size that it can fill."""

    def __init__(self, size: int, largest: int) -> None:
        super().__init__(
            f"the corpus gives a vocabulary of {largest:,} pieces at most, and --size is {size:,}: "
            f"give --size {largest} or less, or more text"
        )
        self.largest = largest


class Alphabet(NamedTuple):
    """Characters of a vocabulary, in its casing and sorted by code point.

    Attributes:
        rarest: occurrences of the rarest character chosen by frequency; 0 if there is none.
        coverage: fraction of the characters of the words that are in the alphabet.
    """

    characters: tuple[str, ...]
    rarest: int
    coverage: float


def build_alphabet(
    counts: Mapping[str, int], character_coverage: float, pretokenize: PretokenizeFn
) -> Alphabet:
    """Return the alphabet of words: :data:`ASCII`, :data:`GREEK` and frequent characters.

    Args:
        counts: occurrences of each word, in the vocabulary's casing.
        character_coverage: fraction of all characters that the most frequent ones must reach; characters as
            frequent as the last one are included.
        pretokenize: pre-tokenization of the vocabulary; characters that it changes are left out.
    """
    character_counts = count_characters(counts)
    total = character_counts.total()
    covered, rarest = 0, 0
    for _, count in character_counts.most_common():
        if covered >= character_coverage * total:
            break
        covered, rarest = covered + count, count
    frequent = {character for character, count in character_counts.items() if count >= rarest > 0}
    alphabet = frequent.union(
        character for character in (*ASCII, *GREEK) if pretokenize(character) == [character]
    )
    alphabet_total = sum(character_counts[character] for character in alphabet)
    return Alphabet(tuple(sorted(alphabet)), rarest, alphabet_total / total if total else 1.0)


def count_characters(counts: Mapping[str, int]) -> Counter[str]:
    """Return the occurrences of each character in counted words."""
    character_counts: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            character_counts[character] += count
    return character_counts


def iter_pieces(alphabet: Alphabet, pretokenize: PretokenizeFn) -> Iterator[str]:
    """Yield the pieces of an alphabet: all characters at the start of a word, then those within a word.

    A character that always is a word of its own (punctuation, ideographs) has no piece within a word.
    """
    yield from alphabet.characters
    for character in alphabet.characters:
        if pretokenize(f"a{character}") == [f"a{character}"]:
            yield f"##{character}"


def strip_prefix(piece: str) -> str:
    """Return a piece without ``##``."""
    return piece if piece == CONTINUATION_PREFIX else piece.removeprefix(CONTINUATION_PREFIX)


def is_reachable(piece: str, pretokenize: PretokenizeFn) -> bool:
    """Return True if the pre-tokenization leaves the piece whole at its position in a word."""
    text = strip_prefix(piece)
    if text != piece:
        text = f"a{text}"
    return pretokenize(text) == [text]


def assemble_vocabulary(
    size: int, required_pieces: Sequence[str], learned_pieces: Iterable[str], pretokenize: PretokenizeFn
) -> list[str]:
    """Return a vocabulary of exactly ``size`` pieces in the order of ids: required, then learned.

    Args:
        required_pieces: special and other reserved tokens, then the pieces of the alphabet.
        learned_pieces: pieces, best first, taken while there is room unless the pre-tokenization splits them.
        pretokenize: pre-tokenization of the vocabulary.

    Raises:
        TooFewPiecesError: there are too few pieces.
    """
    vocabulary = dict.fromkeys(required_pieces)
    for piece in learned_pieces:
        if len(vocabulary) == size:
            break
        if piece not in vocabulary and is_reachable(piece, pretokenize):
            vocabulary[piece] = None
    if len(vocabulary) < size:
        raise TooFewPiecesError(size, len(vocabulary))
    return list(vocabulary)


def sort_by_collation(vocabulary: Sequence[str], num_reserved: int) -> list[str]:
    """Sort the pieces after the reserved ones in dictionary order, much like Bio-ELECTRA's.

    Bio-ELECTRA's order is that of a locale.  This is the order of casefolded letters without ``##``, then of
    code points.
    """
    rest = sorted(vocabulary[num_reserved:], key=lambda piece: (strip_prefix(piece).casefold(), piece))
    return [*vocabulary[:num_reserved], *rest]
