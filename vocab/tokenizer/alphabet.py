"""Which characters a vocabulary must have, so that no ordinary word becomes [UNK].

WordPiece gives up a whole word for one character that it lacks.  Bio-ELECTRA's published vocabulary lacks the
quotation mark, and so every quotation mark of its texts is [UNK].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .pretokenizer import PretokenizeFn

ASCII: Final = tuple(map(chr, range(0x21, 0x7F)))
"""Printable ASCII without the blank."""
GREEK: Final = tuple(map(chr, (*range(0x391, 0x3A2), *range(0x3A3, 0x3AA), *range(0x3B1, 0x3CA))))
"""The letters of Greek without accents, Α to ω with the final ς."""


class Alphabet(NamedTuple):
    """The characters of a vocabulary.

    Attributes:
        characters: sorted by code point, each as the vocabulary's casing leaves it.
        rarest: how often the rarest of those occurs that were chosen for their frequency; 0 without any.
        coverage: the share of all characters of the words that these are.
    """

    characters: tuple[str, ...]
    rarest: int
    coverage: float


def build_alphabet(
    counts: Mapping[str, int], character_coverage: float, pretokenize: PretokenizeFn
) -> Alphabet:
    """The alphabet of words in their casing: :data:`ASCII`, :data:`GREEK`, and what else is frequent.

    Args:
        counts: the words and how often each occurs.
        character_coverage: the most frequent characters are taken until they are this share of all, and then
            those that are as frequent as the last one.
        pretokenize: what the words of a text are; characters that it changes are not needed.
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
    """How often each character occurs in words that occur so often."""
    character_counts: Counter[str] = Counter()
    for word, count in counts.items():
        for character in word:
            character_counts[character] += count
    return character_counts


def iter_pieces(alphabet: Alphabet, pretokenize: PretokenizeFn) -> Iterator[str]:
    """The pieces that the alphabet makes: each character at a word's begin, then each inside of one.

    A character that is always a word of its own (punctuation, ideographs) is never inside of one.
    """
    yield from alphabet.characters
    for character in alphabet.characters:
        if pretokenize(f"a{character}") == [f"a{character}"]:
            yield f"##{character}"
