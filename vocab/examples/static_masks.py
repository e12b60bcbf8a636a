"""Which pieces of a row are to be predicted, decided once, as the trainers of BERT and ALBERT read it.

A pretraining set is not masked, for masking belongs to the trainer.  But google-research/bert and
google-research/albert take rows in which it is done (``layouts.py``).  The rules, and the order of the draws,
are those of their ``create_pretraining_data.py``: the same source of randomness gives the same masks.

SOURCES:
    https://github.com/google-research/bert/blob/master/create_pretraining_data.py
    https://github.com/google-research/albert/blob/master/create_pretraining_data.py
"""

from __future__ import annotations

import string
from bisect import bisect
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, Final, Protocol

from bioshards.vocab.wordpiece import SPACE

from .randomness import Source

_NGRAMS: Final = (6 / 11, 9 / 11)
"""ALBERT's n-grams are of one to three words, with probabilities in the ratio of 1/n: a draw below the first
is one of one word, below the second of two."""
_MARKS: Final = frozenset(string.punctuation) - frozenset("'<=>")
"""ALBERT's punctuation: one of these is a piece that begins a word, several of them are not."""
_OF_WORDS: Final = frozenset(string.ascii_lowercase) | _MARKS


class Random(Source, Protocol):
    """What the draws are made with; ``random.Random`` is one."""

    def shuffle(self, items: list[Any], /) -> None:
        """Bring a list into another order, which depends on its length only."""


@dataclass(frozen=True, slots=True)
class Masking:
    """How rows of a vocabulary are masked.

    Attributes:
        mask: the id of [MASK].
        special: the ids of [CLS] and [SEP], which are not predicted.
        size: a random piece has an id below it.
        max_predictions: the most pieces of a row that may be predicted; the file's features are that long.
        probability: the share of a row's pieces, special ones counted, that are predicted.
        continues: for each id 1 where its piece continues a word (``Encoder.continues``; of SentencePiece's
            vocabularies :func:`sentencepiece_continues`), for masks of whole words; None for single pieces.
    """

    mask: int
    special: frozenset[int]
    size: int
    max_predictions: int = 20
    probability: float = 0.15
    continues: bytes | None = None


@dataclass(frozen=True, slots=True)
class Masked:
    """A row with pieces replaced, the places of those to predict, in their order, and what stood there."""

    ids: list[int]
    positions: list[int]
    labels: list[int]


def bert(ids: Sequence[int], how: Masking, random: Random) -> Masked:
    """A row as BERT masks it: words in a random order, but for those too long for what is left to predict."""
    words = _words(ids, how)
    random.shuffle(words)
    budget = _budget(ids, how)
    masked, chosen = list(ids), set[int]()
    for word in words:
        if len(chosen) == budget:
            break
        if len(chosen) + len(word) <= budget:
            chosen.update(word)
            _replace(masked, word, how, random)
    return _with_labels(ids, masked, chosen)


def albert(ids: Sequence[int], how: Masking, random: Random) -> Masked:
    """A row as ALBERT masks it: n-grams of words, made shorter where they would be too long for what is left.

    An n-gram that meets one chosen before is not taken; one that begins near the row's end has fewer words.
    The reference draws its n from numpy's own source, here it is drawn from the one given; and its last
    shuffle, which changes nothing of the row, is left out.
    """
    words = _words(ids, how)
    firsts = list(range(len(words)))
    random.shuffle(firsts)
    budget = _budget(ids, how)
    masked, chosen = list(ids), set[int]()
    for first in firsts:
        if len(chosen) == budget:
            break
        n = 1 + bisect(_NGRAMS, random.random())
        while sum(map(len, words[first : first + n])) > budget - len(chosen):
            n -= 1
        pieces = list(chain.from_iterable(words[first : first + n]))
        if chosen.isdisjoint(pieces):
            chosen.update(pieces)
            _replace(masked, pieces, how, random)
    return _with_labels(ids, masked, chosen)


def sentencepiece_continues(pieces: Mapping[str, int], special: Container[str]) -> bytes:
    """For each id 1 where ALBERT holds that its SentencePiece piece continues a word.

    It does if it is letters of English and punctuation only, and not a single mark, and without a blank or
    ``<`` in front. So a figure, a Greek letter or a comma is a word of its own.

    Args:
        pieces: the ids of all of the vocabulary.
        special: those of them that are special tokens, which continue nothing.
    """
    table = bytearray(1 + max(pieces.values()))
    for piece, number in pieces.items():
        begins = piece.startswith((SPACE, "<")) or piece in _MARKS or piece in special
        table[number] = not begins and _OF_WORDS.issuperset(piece.lower())
    return bytes(table)


def _words(ids: Sequence[int], how: Masking) -> list[list[int]]:
    """The places of each word's pieces; what continues no word of the row is a word of its own."""
    words: list[list[int]] = []
    for place, piece in enumerate(ids):
        if piece in how.special:
            continue
        if how.continues and how.continues[piece] and words:
            words[-1].append(place)
        else:
            words.append([place])
    return words


def _budget(ids: Sequence[int], how: Masking) -> int:
    return min(how.max_predictions, max(1, round(len(ids) * how.probability)))


def _replace(masked: list[int], places: Iterable[int], how: Masking, random: Random) -> None:
    """Of the pieces to be predicted 80 % become [MASK], 10 % stay, and 10 % become any other."""
    for place in places:
        if random.random() < 0.8:
            masked[place] = how.mask
        elif random.random() >= 0.5:
            masked[place] = random.randint(0, how.size - 1)


def _with_labels(ids: Sequence[int], masked: list[int], chosen: set[int]) -> Masked:
    positions = sorted(chosen)
    return Masked(masked, positions, [ids[place] for place in positions])
