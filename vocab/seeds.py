"""Seed pieces of a unigram model with their exact counts, from words and how often each occurs.

A unigram model is trained by taking pieces away from many.  SentencePiece finds these seeds itself, but in
(word, count) pairs it takes every word as occurring once.  And it wants what follows a seed to vary; a word
alone on its line is always followed by the line's end, so whole words are lost unless they begin
others.  So seeds are counted here, and given to it (``--seed_sentencepieces_file``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from .wordpiece import SPACE

MOST: Final = 1_000_000
"""SentencePiece's own number of seeds (its ``seed_sentencepiece_size``)."""
LEAST: Final = 2
"""A seed occurs twice or more, as SentencePiece's own do."""

Integers = npt.NDArray[np.signedinteger[Any]]
Codes = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class Found:
    """Substrings: where each first occurs in the text, its length, and its score (count times length)."""

    score: Integers
    first: Integers
    length: Integers

    def best(self, most: int) -> Found:
        """The best of them by score, of equals those that come first in the text, the shorter first."""
        if len(self.score) > most:  # sort only what can be among them
            enough = np.partition(self.score, -most)[-most]
            self = self._chosen(self.score >= enough)
        return self._chosen(np.lexsort((self.length, self.first, -self.score))[:most])

    def _chosen(self, which: npt.NDArray[Any]) -> Found:
        return Found(self.score[which], self.first[which], self.length[which])

    @staticmethod
    def joined(parts: Sequence[Found]) -> Found:
        return Found(
            np.concatenate([part.score for part in parts]),
            np.concatenate([part.first for part in parts]),
            np.concatenate([part.length for part in parts]),
        )


def seeds(
    words: Sequence[tuple[str, int]],
    longest: int,
    most: int = MOST,
    characters: Collection[str] | None = None,
) -> list[tuple[str, int]]:
    """The best seed pieces of the words, each with its count, best first.

    Seeds are the substrings of SPACE + word of 2 to ``longest`` characters that occur :data:`LEAST` times or
    more, counted at every place of every word as often as the word occurs.  As in SentencePiece, one that is
    always followed by the same character is left out (the longer one stands for it), and the best are those
    whose count times length is the greatest; of equals, the one that comes first in the words.

    The result is exact, however many words there are.  All substrings with the same first character are
    found at a time, level by level: those of one character more are counted by what they are without
    it, and that character.  Once ``most`` seeds are found, a substring is not extended if it is so rare that
    no extension of it can be among the best.

    Args:
        words: different words and their counts, 1 or more; none contains NUL or :data:`~.wordpiece.SPACE`.
        longest: characters of a seed at most, :data:`~.wordpiece.SPACE` among them.
        most: seeds at most.
        characters: those that a seed may contain, or any.
    """
    text = "".join(f"{SPACE}{word}\0" for word, _ in words)
    codes, size = _codes(text, characters)
    lengths = np.fromiter((len(word) + 2 for word, _ in words), np.int64, len(words))
    weights = np.repeat(np.fromiter((count for _, count in words), np.int64, len(words)), lengths)
    by_character: Integers = np.argsort(codes, kind="stable")
    if len(codes) < 2**31:  # half the memory
        by_character = by_character.astype(np.int32)
    ends = np.cumsum(np.bincount(codes, minlength=size))
    best, enough = Found(*(np.zeros(0, np.int64) for _ in range(3))), 0
    waiting, number = [best], 0
    for code in range(1, size):
        places = by_character[ends[code - 1] : ends[code]]
        for part in _beginning(places, codes, size, weights, longest, enough):
            waiting.append(part)
            number += len(part.score)
        if number >= most or code == size - 1:
            best = Found.joined(waiting).best(most)
            waiting, number = [best], 0
            enough = int(best.score[-1]) if len(best.score) == most else 0
    return [
        (text[first : first + length], score // length)
        for score, first, length in zip(
            best.score.tolist(), best.first.tolist(), best.length.tolist(), strict=True
        )
    ]


def _codes(text: str, characters: Collection[str] | None) -> tuple[Codes, int]:
    """The text's characters numbered from 1, 0 for what ends a substring; and how many numbers there are."""
    points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    present = np.zeros(0x110000, bool)
    present[points] = True
    present[0] = False
    if characters is not None:
        allowed = np.zeros(0x110000, bool)
        allowed[[ord(character) for character in {*characters, SPACE}]] = True
        present &= allowed
    size = int(present.sum()) + 1
    numbers = np.zeros(0x110000, np.min_scalar_type(size))
    numbers[present] = np.arange(1, size)
    return numbers[points], size


def _beginning(
    places: Integers, codes: Codes, size: int, weights: Integers, longest: int, enough: int
) -> list[Found]:
    """Seeds that begin at these places, all with one character: all whose score is ``enough``, and others."""
    found = []
    weight = weights[places]
    group = np.zeros(len(places), np.int64)  # which substring each place begins, of all of this length
    count, first = np.array([weight.sum()]), places[:1]
    for length in range(1, longest + 1):
        following = codes[places + length] if length < longest else np.zeros(len(places), codes.dtype)
        goes_on = following > 0
        places, weight = places[goes_on], weight[goes_on]
        key = group[goes_on] * size + following[goes_on]
        order = np.argsort(key)
        key, places, weight = key[order], places[order], weight[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        longer = np.add.reduceat(weight, starts) if len(starts) else weight
        if length > 1:
            whole = np.ones(len(count), bool)
            parent = key[starts] // size
            whole[parent[longer == count[parent]]] = False
            found.append(Found(count[whole] * length, first[whole], np.full(int(whole.sum()), length)))
        stays = longer >= max(LEAST, -(-enough // longest))
        if not stays.any():
            break
        count, first = longer[stays], np.minimum.reduceat(places, starts)[stays]
        per_group = np.diff(starts, append=len(key))
        group = np.repeat(np.cumsum(stays) - 1, per_group)
        kept = np.repeat(stays, per_group)
        places, weight, group = places[kept], weight[kept], group[kept]
    return found
