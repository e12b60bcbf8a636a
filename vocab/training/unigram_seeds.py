"""Seed pieces of a unigram model with exact counts, from counted words.

Training of a unigram model removes pieces from a large set of seeds.  SentencePiece finds seeds itself, but
counts every word of (word, count) pairs once.  It also requires a seed to be followed by different
characters: a word alone on its line is always followed by the end of the line, so that whole words are lost
unless they start others.  So seeds are counted here and passed in ``--seed_sentencepieces_file``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE

MAX_SEEDS: Final = 1_000_000
"""SentencePiece's number of seeds (``seed_sentencepiece_size``)."""
MIN_SEED_COUNT: Final = 2
"""Minimum occurrences of a seed, as in SentencePiece."""

CandidateArray = npt.NDArray[np.int64]
"""Substrings, shape (N, 3): score (count times length), position of the first occurrence, length."""
IntArray = npt.NDArray[np.signedinteger[Any]]
CodeArray = npt.NDArray[np.unsignedinteger[Any]]


def find_seeds(
    words: Sequence[tuple[str, int]], max_length: int, max_seeds: int = MAX_SEEDS
) -> list[tuple[str, int]]:
    """Return the best seed pieces of the words with their counts, best first.

    Seeds are substrings of word-start sign + word, of 2 to ``max_length`` characters, that occur
    :data:`MIN_SEED_COUNT` times or more, at any position of any word, weighted by the word's count.  As in
    SentencePiece, a substring that is always followed by the same character is left out, and the score is
    count times length; of equal scores, the first in the words wins.

    The result is exact for any number of words.  All substrings with the same first character are found
    together, one length after the other: substrings of length n + 1 are counted by the substring of length n
    and the next character.  Once ``max_seeds`` are found, substrings too rare to be among the best are not
    extended.

    Args:
        words: distinct words with their counts, 1 or more, without NUL and the word-start sign.
        max_length: maximum characters of a seed, the word-start sign included.
        max_seeds: maximum number of seeds.
    """
    text = "".join(f"{SENTENCEPIECE_SPACE}{word}\0" for word, _ in words)
    codes, num_codes = _encode_characters(text)
    lengths = np.fromiter((len(word) + 2 for word, _ in words), np.int64, len(words))
    weights = np.repeat(np.fromiter((count for _, count in words), np.int64, len(words)), lengths)
    positions_by_character: IntArray = np.argsort(codes, kind="stable")
    if len(codes) < 2**31:  # half the memory
        positions_by_character = positions_by_character.astype(np.int32)
    ends = np.cumsum(np.bincount(codes, minlength=num_codes))
    best, min_score = np.zeros((0, 3), np.int64), 0
    pending, num_pending = [best], 0
    for code in range(1, num_codes):
        positions = positions_by_character[ends[code - 1] : ends[code]]
        for candidates in _find_seeds_at(positions, codes, num_codes, weights, max_length, min_score):
            pending.append(candidates)
            num_pending += len(candidates)
        if num_pending >= max_seeds or code == num_codes - 1:
            best = _select_best(np.concatenate(pending), max_seeds)
            pending, num_pending = [best], 0
            min_score = int(best[-1, 0]) if len(best) == max_seeds else 0
    return [(text[first : first + length], score // length) for score, first, length in best.tolist()]


def _select_best(candidates: CandidateArray, max_seeds: int) -> CandidateArray:
    """Return the best by score; ties are broken by position, then by length."""
    if len(candidates) > max_seeds:  # sort only what can be among them
        min_score = np.partition(candidates[:, 0], -max_seeds)[-max_seeds]
        candidates = candidates[candidates[:, 0] >= min_score]
    scores, first_positions, lengths = candidates.T
    return candidates[np.lexsort((lengths, first_positions, -scores))[:max_seeds]]


def _encode_characters(text: str) -> tuple[CodeArray, int]:
    """Return the characters as codes from 1, 0 for NUL, and the number of codes."""
    code_points = np.frombuffer(text.encode("utf-32-le"), np.uint32)
    is_present = np.zeros(0x110000, bool)
    is_present[code_points] = True
    is_present[0] = False
    num_codes = int(is_present.sum()) + 1
    code_by_point = np.zeros(0x110000, np.min_scalar_type(num_codes))
    code_by_point[is_present] = np.arange(1, num_codes)
    return code_by_point[code_points], num_codes


def _find_seeds_at(
    positions: IntArray, codes: CodeArray, num_codes: int, weights: IntArray, max_length: int, min_score: int
) -> list[CandidateArray]:
    """Return the seeds that start at these positions, all with the same character; some may score lower."""
    candidates = []
    position_weights = weights[positions]
    groups = np.zeros(len(positions), np.int64)  # which substring each place begins, of all of this length
    count, first = np.array([position_weights.sum()]), positions[:1]
    for length in range(1, max_length + 1):
        next_codes = (
            codes[positions + length] if length < max_length else np.zeros_like(codes, shape=len(positions))
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
            scores = count[is_maximal] * length
            candidates.append(np.stack([scores, first[is_maximal], np.full_like(scores, length)], axis=1))
        is_frequent = extended_counts >= max(MIN_SEED_COUNT, -(-min_score // max_length))
        if not is_frequent.any():
            break
        count, first = extended_counts[is_frequent], np.minimum.reduceat(positions, starts)[is_frequent]
        group_sizes = np.diff(starts, append=len(key))
        groups = np.repeat(np.cumsum(is_frequent) - 1, group_sizes)
        is_kept = np.repeat(is_frequent, group_sizes)
        positions, position_weights, groups = positions[is_kept], position_weights[is_kept], groups[is_kept]
    return candidates
