"""Which pieces of a row are to be predicted, decided once, as the trainers of BERT and ALBERT read it.

A pretraining set is not masked, for masking belongs to the trainer.  But google-research/bert and
google-research/albert take rows in which it is done (``row_features.py``).  The rules, and the order of the
draws, are those of their ``create_pretraining_data.py``: the same source of randomness gives the same masks.

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

from bioshards.vocab.pretraining.objectives.document_rng import RandomSource
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

_NGRAM_THRESHOLDS: Final = (6 / 11, 9 / 11)
"""ALBERT's n-grams are of one to three words, with probabilities in the ratio of 1/n: a draw below the first
is one of one word, below the second of two."""
_PUNCTUATION: Final = frozenset(string.punctuation) - frozenset("'<=>")
"""ALBERT's punctuation: one of these is a piece that begins a word, several of them are not."""
_WORD_CHARACTERS: Final = frozenset(string.ascii_lowercase) | _PUNCTUATION


class ShufflingRandomSource(RandomSource, Protocol):
    """What the draws are made with; ``random.Random`` is one."""

    def shuffle(self, items: list[Any], /) -> None:
        """Bring a list into another order, which depends on its length only."""


@dataclass(frozen=True, slots=True)
class StaticMasking:
    """How rows of a vocabulary are masked.

    Attributes:
        mask: the id of [MASK].
        special: the ids of [CLS] and [SEP], which are not predicted.
        size: a random piece has an id below it.
        max_predictions_per_seq: the most pieces of a row that may be predicted; the file's features are that long.
        probability: the share of a row's pieces, special ones counted, that are predicted.
        continues: for each id 1 where its piece continues a word (``Encoder.continues``; of SentencePiece's
            vocabularies :func:`sentencepiece_continues`), for masks of whole words; None for single pieces.
    """

    mask_id: int
    special_ids: frozenset[int]
    vocabulary_size: int
    max_predictions_per_seq: int = 20
    mask_prob: float = 0.15
    is_continuation: bytes | None = None


@dataclass(frozen=True, slots=True)
class MaskedRow:
    """A row with pieces replaced, the places of those to predict, in their order, and what stood there."""

    ids: list[int]
    positions: list[int]
    labels: list[int]


def mask_bert_row(ids: Sequence[int], masking: StaticMasking, rng: ShufflingRandomSource) -> MaskedRow:
    """A row as BERT masks it: words in a random order, but for those too long for what is left to predict."""
    words = _group_words(ids, masking)
    rng.shuffle(words)
    budget = _max_masked(ids, masking)
    masked_ids, chosen_positions = list(ids), set[int]()
    for word in words:
        if len(chosen_positions) == budget:
            break
        if len(chosen_positions) + len(word) <= budget:
            chosen_positions.update(word)
            _replace_ids(masked_ids, word, masking, rng)
    return _make_masked_row(ids, masked_ids, chosen_positions)


def mask_albert_row(ids: Sequence[int], masking: StaticMasking, rng: ShufflingRandomSource) -> MaskedRow:
    """A row as ALBERT masks it: n-grams of words, made shorter where they would be too long for what is left.

    An n-gram that meets one chosen before is not taken; one that begins near the row's end has fewer words.
    The reference draws its n from numpy's own source, here it is drawn from the one given; and its last
    shuffle, which changes nothing of the row, is left out.
    """
    words = _group_words(ids, masking)
    start_words = list(range(len(words)))
    rng.shuffle(start_words)
    budget = _max_masked(ids, masking)
    masked_ids, chosen_positions = list(ids), set[int]()
    for start_word in start_words:
        if len(chosen_positions) == budget:
            break
        n = 1 + bisect(_NGRAM_THRESHOLDS, rng.random())
        while sum(map(len, words[start_word : start_word + n])) > budget - len(chosen_positions):
            n -= 1
        ngram_positions = list(chain.from_iterable(words[start_word : start_word + n]))
        if chosen_positions.isdisjoint(ngram_positions):
            chosen_positions.update(ngram_positions)
            _replace_ids(masked_ids, ngram_positions, masking, rng)
    return _make_masked_row(ids, masked_ids, chosen_positions)


def find_sentencepiece_continuations(pieces: Mapping[str, int], special_tokens: Container[str]) -> bytes:
    """For each id 1 where ALBERT holds that its SentencePiece piece continues a word.

    It does if it is letters of English and punctuation only, and not a single mark, and without a blank or
    ``<`` in front. So a figure, a Greek letter or a comma is a word of its own.

    Args:
        pieces: the ids of all of the vocabulary.
        special_tokens: those of them that are special tokens, which continue nothing.
    """
    flags = bytearray(1 + max(pieces.values()))
    for piece, piece_id in pieces.items():
        is_word_start = (
            piece.startswith((SENTENCEPIECE_SPACE, "<")) or piece in _PUNCTUATION or piece in special_tokens
        )
        flags[piece_id] = not is_word_start and _WORD_CHARACTERS.issuperset(piece.lower())
    return bytes(flags)


def _group_words(ids: Sequence[int], masking: StaticMasking) -> list[list[int]]:
    """The places of each word's pieces; what continues no word of the row is a word of its own."""
    words: list[list[int]] = []
    for position, piece_id in enumerate(ids):
        if piece_id in masking.special_ids:
            continue
        if masking.is_continuation and masking.is_continuation[piece_id] and words:
            words[-1].append(position)
        else:
            words.append([position])
    return words


def _max_masked(ids: Sequence[int], masking: StaticMasking) -> int:
    return min(masking.max_predictions_per_seq, max(1, round(len(ids) * masking.mask_prob)))


def _replace_ids(
    masked_ids: list[int], positions: Iterable[int], masking: StaticMasking, rng: ShufflingRandomSource
) -> None:
    """Of the pieces to be predicted 80 % become [MASK], 10 % stay, and 10 % become any other."""
    for position in positions:
        if rng.random() < 0.8:
            masked_ids[position] = masking.mask_id
        elif rng.random() >= 0.5:
            masked_ids[position] = rng.randint(0, masking.vocabulary_size - 1)


def _make_masked_row(ids: Sequence[int], masked_ids: list[int], chosen_positions: set[int]) -> MaskedRow:
    positions = sorted(chosen_positions)
    return MaskedRow(masked_ids, positions, [ids[position] for position in positions])
