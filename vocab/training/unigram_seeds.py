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

from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

MAX_SEEDS: Final = 1_000_000
"""SentencePiece's own number of seeds (its ``seed_sentencepiece_size``)."""
MIN_SEED_COUNT: Final = 2
"""A seed occurs twice or more, as SentencePiece's own do."""

IntArray = npt.NDArray[np.signedinteger[Any]]
CodeArray = npt.NDArray[np.unsignedinteger[Any]]


@dataclass(frozen=True, slots=True)
class SeedCandidates:
    """Substrings: where each first occurs in the text, its length, and its score (count times length)."""

    scores: IntArray
    first_positions: IntArray
    lengths: IntArray

    def select_best(self, max_seeds: int) -> SeedCandidates:
        """The best of them by score, of equals those that come first in the text, the shorter first."""
        if len(self.scores) > max_seeds:  # sort only what can be among them
            min_score = np.partition(self.scores, -max_seeds)[-max_seeds]
            self = self._take(self.scores >= min_score)
        return self._take(np.lexsort((self.lengths, self.first_positions, -self.scores))[:max_seeds])

    def _take(self, selection: npt.NDArray[Any]) -> SeedCandidates:
        return SeedCandidates(
            self.scores[selection], self.first_positions[selection], self.lengths[selection]
        )

    @staticmethod
    def concatenate(parts: Sequence[SeedCandidates]) -> SeedCandidates:
        return SeedCandidates(
            np.concatenate([part.scores for part in parts]),
            np.concatenate([part.first_positions for part in parts]),
            np.concatenate([part.lengths for part in parts]),
        )


def find_seeds(
    words: Sequence[tuple[str, int]],
    max_length: int,
    max_seeds: int = MAX_SEEDS,
    characters: Collection[str] | None = None,
) -> list[tuple[str, int]]:
    """The best seed pieces of the words, each with its count, best first.

    Seeds are the substrings of SPACE + word of 2 to ``max_length`` characters that occur :data:`LEAST` times
    or more, counted at every place of every word as often as the word occurs.  As in SentencePiece, one that
    is always followed by the same character is left out (the longer one stands for it), and the best are
    those whose count times length is the greatest; of equals, the one that comes first in the words.

    The result is exact, however many words there are.  All substrings with the same first character are
    found at a time, level by level: those of one character more are counted by what they are without
    it, and that character.  Once ``max_seeds`` seeds are found, a substring is not extended if it is so rare
    that no extension of it can be among the best.

    Args:
        words: different words and their counts, 1 or more; none contains NUL or :data:`~.wordpiece.SPACE`.
        max_length: characters of a seed at most, :data:`~.wordpiece.SPACE` among them.
        max_seeds: seeds at most.
        characters: those that a seed may contain, or any.
    """
    text = "".join(f"{SENTENCEPIECE_SPACE}{word}\0" for word, _ in words)
    codes, num_codes = _encode_characters(text, characters)
    lengths = np.fromiter((len(word) + 2 for word, _ in words), np.int64, len(words))
    weights = np.repeat(np.fromiter((count for _, count in words), np.int64, len(words)), lengths)
    positions_by_character: IntArray = np.argsort(codes, kind="stable")
    if len(codes) < 2**31:  # half the memory
        positions_by_character = positions_by_character.astype(np.int32)
    ends = np.cumsum(np.bincount(codes, minlength=num_codes))
    best, min_score = SeedCandidates(*(np.zeros(0, np.int64) for _ in range(3))), 0
    pending, num_pending = [best], 0
    for code in range(1, num_codes):
        positions = positions_by_character[ends[code - 1] : ends[code]]
        for candidates in _find_seeds_at(positions, codes, num_codes, weights, max_length, min_score):
            pending.append(candidates)
            num_pending += len(candidates.scores)
        if num_pending >= max_seeds or code == num_codes - 1:
            best = SeedCandidates.concatenate(pending).select_best(max_seeds)
            pending, num_pending = [best], 0
            min_score = int(best.scores[-1]) if len(best.scores) == max_seeds else 0
    return [
        (text[first : first + length], score // length)
        for score, first, length in zip(
            best.scores.tolist(), best.first_positions.tolist(), best.lengths.tolist(), strict=True
        )
    ]


def _encode_characters(text: str, characters: Collection[str] | None) -> tuple[CodeArray, int]:
    """The text's characters numbered from 1, 0 for what ends a substring; and how many numbers there are."""
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    present = np.zeros(0x110000, bool)
    present[code_points] = True
    present[0] = False
    if characters is not None:
        allowed = np.zeros(0x110000, bool)
        allowed[[ord(character) for character in {*characters, SENTENCEPIECE_SPACE}]] = True
        present &= allowed
    num_codes = int(present.sum()) + 1
    code_by_point = np.zeros(0x110000, np.min_scalar_type(num_codes))
    code_by_point[present] = np.arange(1, num_codes)
    return code_by_point[code_points], num_codes


def _find_seeds_at(
    positions: IntArray, codes: CodeArray, num_codes: int, weights: IntArray, max_length: int, min_score: int
) -> list[SeedCandidates]:
    """Seeds that begin at these places, all with one character: all whose score is ``min_score``, and
    others.
    """
    candidates = []
    position_weights = weights[positions]
    groups = np.zeros(len(positions), np.int64)  # which substring each place begins, of all of this length
    count, first = np.array([position_weights.sum()]), positions[:1]
    for length in range(1, max_length + 1):
        next_codes = (
            codes[positions + length] if length < max_length else np.zeros(len(positions), codes.dtype)
        )
        has_next = next_codes > 0
        positions, position_weights = positions[has_next], position_weights[has_next]
        key = groups[has_next] * num_codes + next_codes[has_next]
        order = np.argsort(key)
        key, positions, position_weights = key[order], positions[order], position_weights[order]
        starts = np.flatnonzero(np.diff(key, prepend=-1))
        extended_counts = np.add.reduceat(position_weights, starts) if len(starts) else position_weights
        if length > 1:
            is_maximal = np.ones(len(count), bool)
            parent = key[starts] // num_codes
            is_maximal[parent[extended_counts == count[parent]]] = False
            candidates.append(
                SeedCandidates(
                    count[is_maximal] * length, first[is_maximal], np.full(int(is_maximal.sum()), length)
                )
            )
        is_frequent = extended_counts >= max(MIN_SEED_COUNT, -(-min_score // max_length))
        if not is_frequent.any():
            break
        count, first = extended_counts[is_frequent], np.minimum.reduceat(positions, starts)[is_frequent]
        group_sizes = np.diff(starts, append=len(key))
        groups = np.repeat(np.cumsum(is_frequent) - 1, group_sizes)
        is_kept = np.repeat(is_frequent, group_sizes)
        positions, position_weights, groups = positions[is_kept], position_weights[is_kept], groups[is_kept]
    return candidates
