"""Which characters a vocabulary must have, so that no ordinary word becomes [UNK].

WordPiece gives up a whole word for one character that it lacks.  Bio-ELECTRA's published vocabulary lacks the
quotation mark, and so every quotation mark of its texts is [UNK].
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from .words import Split

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


def of(counts: Mapping[str, int], share: float, words: Split) -> Alphabet:
    """The alphabet of words in their casing: :data:`ASCII`, :data:`GREEK`, and what else is frequent.

    Args:
        counts: the words and how often each occurs.
        share: the most frequent characters are taken until they are this share of all, and then those that
            are as frequent as the last one.
        words: what the words of a text are; characters that it changes are not needed.
    """
    found = characters(counts)
    total = sum(found.values())
    covered, rarest = 0, 0
    for _, number in found.most_common():
        if covered >= share * total:
            break
        covered, rarest = covered + number, number
    frequent = {character for character, number in found.items() if number >= rarest > 0}
    alphabet = frequent | {character for character in (*ASCII, *GREEK) if words(character) == [character]}
    held = sum(number for character, number in found.items() if character in alphabet)
    return Alphabet(tuple(sorted(alphabet)), rarest, held / total if total else 1.0)


def characters(counts: Mapping[str, int]) -> Counter[str]:
    """How often each character occurs in words that occur so often."""
    found: Counter[str] = Counter()
    for word, number in counts.items():
        for character in word:
            found[character] += number
    return found


def forms(alphabet: Alphabet, words: Split) -> Iterator[str]:
    """The pieces that the alphabet makes: each character at a word's begin, then each inside of one.

    A character that is always a word of its own (punctuation, ideographs) is never inside of one.
    """
    yield from alphabet.characters
    for character in alphabet.characters:
        if words(f"a{character}") == [f"a{character}"]:
            yield f"##{character}"
