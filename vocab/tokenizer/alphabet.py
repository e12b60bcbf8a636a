"""The alphabet of a vocabulary: the characters that need a piece, so that no ordinary word becomes [UNK].

WordPiece replaces a whole word by [UNK] if one of its characters has no piece.  Bio-ELECTRA's published
vocabulary lacks the quotation mark, so that every quotation mark is [UNK].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from bioshards.vocab.tokenizer.pretokenizer import PretokenizeFn

ASCII: Final = tuple(map(chr, range(0x21, 0x7F)))
"""Printable ASCII without the blank."""
GREEK: Final = tuple(map(chr, (*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA))))
"""Greek letters without accents, from Α to ω, with the final ς."""


class Alphabet(NamedTuple):
    """Characters of a vocabulary.

    Attributes:
        characters: sorted by code point, in the vocabulary's casing.
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
    total = sum(character_counts.values())
    covered, rarest = 0, 0
    for _, count in character_counts.most_common():
        if covered >= character_coverage * total:
            break
        covered, rarest = covered + count, count
    frequent = {character for character, count in character_counts.items() if count >= rarest > 0}
    alphabet = frequent | {
        character for character in (*ASCII, *GREEK) if pretokenize(character) == [character]
    }
    alphabet_total = sum(count for character, count in character_counts.items() if character in alphabet)
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
