"""Static masks of BERT and ALBERT: the tokens to predict, chosen once.

The rows of a pretraining set are not masked, but the trainers of google-research/bert and
google-research/albert read masked ones (``row_features.py``).  The rules and the order of random draws are
those of their ``create_pretraining_data.py``: the same random numbers give the same masks.

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
"""ALBERT's n-grams have one to three words, with probabilities proportional to 1/n: a draw below the first
threshold is one word, below the second two words.
"""
_PUNCTUATION: Final = frozenset(string.punctuation) - frozenset("'<=>")
"""ALBERT's punctuation: a piece that is one of these marks starts a word, a piece of several does not."""
_WORD_CHARACTERS: Final = frozenset(string.ascii_lowercase) | _PUNCTUATION


class ShufflingRandomSource(RandomSource, Protocol):
    """Source of random numbers; ``random.Random`` is one."""

    def shuffle(self, items: list[Any], /) -> None:
        """Shuffle a list in place; the permutation depends on its length only."""


@dataclass(frozen=True, slots=True)
class StaticMasking:
    """How the rows of a vocabulary are masked.

    Attributes:
        mask_id: id of [MASK].
        special_ids: ids of [CLS] and [SEP], which are not predicted.
        vocabulary_size: a random piece has an id below it.
        max_predictions_per_seq: maximum number of predictions, the length of the features.
        mask_prob: fraction of the tokens of a row to predict, special tokens counted.
        is_continuation: for each id, 1 if its piece continues a word (``Encoder.is_continuation``, or
            :func:`find_sentencepiece_continuations`), for whole-word masks; None masks single pieces.
    """

    mask_id: int
    special_ids: frozenset[int]
    vocabulary_size: int
    max_predictions_per_seq: int = 20
    mask_prob: float = 0.15
    is_continuation: bytes | None = None


@dataclass(frozen=True, slots=True)
class MaskedRow:
    """A masked row: its ids, the positions to predict in order, and the original ids there."""

    ids: list[int]
    positions: list[int]
    labels: list[int]


def mask_bert_row(ids: Sequence[int], masking: StaticMasking, rng: ShufflingRandomSource) -> MaskedRow:
    """Mask a row as BERT does: words in random order, skipping those longer than the remaining budget."""
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
    """Mask a row as ALBERT does: n-grams of words, shortened to the remaining budget.

    An n-gram that overlaps a chosen one is skipped; one near the end of the row has fewer words.  The
    reference draws n from numpy's random numbers; here it is drawn from ``rng``.  The last shuffle of the
    reference, which does not change the row, is left out.
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
    """Return for each id 1 if its SentencePiece piece continues a word by ALBERT's rule.

    A piece does if it consists of English letters and punctuation, is not a single mark, and does not start
    with the word-start sign or ``<``.  So a digit, a Greek letter and a comma are words of their own.

    Args:
        pieces: ids of all pieces.
        special_tokens: pieces that are special tokens, which continue nothing.
    """
    flags = bytearray(1 + max(pieces.values()))
    for piece, piece_id in pieces.items():
        is_word_start = (
            piece.startswith((SENTENCEPIECE_SPACE, "<")) or piece in _PUNCTUATION or piece in special_tokens
        )
        flags[piece_id] = not is_word_start and _WORD_CHARACTERS.issuperset(piece.lower())
    return bytes(flags)


def _group_words(ids: Sequence[int], masking: StaticMasking) -> list[list[int]]:
    """Return the positions of the pieces of each word."""
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
    """Replace tokens to predict: 80 % by [MASK], 10 % by a random piece; 10 % stay."""
    for position in positions:
        if rng.random() < 0.8:
            masked_ids[position] = masking.mask_id
        elif rng.random() >= 0.5:
            masked_ids[position] = rng.randint(0, masking.vocabulary_size - 1)


def _make_masked_row(ids: Sequence[int], masked_ids: list[int], chosen_positions: set[int]) -> MaskedRow:
    positions = sorted(chosen_positions)
    return MaskedRow(masked_ids, positions, [ids[position] for position in positions])
