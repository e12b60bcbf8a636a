r"""Find 13-grams of words in large texts: block-wise rolling hashes, with every hit compared word by word.

Two texts count as equal where they share 13 consecutive words. SOURCE: Brown et al. 2020 (arXiv:2005.14165),
appendix C.

A *word* is a run of ASCII letters and digits in lower case; everything else separates words, so "BRCA1 -
related" of a tokenized benchmark equals "BRCA1-related". Non-ASCII characters separate words too:
"TGF-\u03b21" is "tgf", "1".
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

NGRAM_SIZE: Final = 13
"""Words of an n-gram."""

Positions = npt.NDArray[np.int64]
"""Byte positions in a text, or n-gram numbers."""
Hashes = npt.NDArray[np.uint64]

_FOLD_TABLE: Final = bytes(ord(chr(b).lower()) if b < 128 and chr(b).isalnum() else 32 for b in range(256))
_HASH_BASE: Final = 0x9E3779B97F4A7C15
"""Odd multiplier with well-mixed bits: 2**64 divided by the golden ratio."""
_LOW_BYTE_MASKS: Final = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
_BLOCK_BYTES: Final = 4 << 20
_FILTER_BITS_LOG2: Final = 6
"""log2 of the filter bits per key: 64 to 128 bits pass one in 1,000 other hashes."""


class WordSpans(NamedTuple):
    """Words of a text, in order.

    Attributes:
        folded: lower-cased text with blanks for separators, and eight more at the end.
        starts: start of each word in ``folded``.
        ends: end of each word in ``folded``.
    """

    folded: bytes
    starts: Positions
    ends: Positions

    def get_ngram(self, first_word: int) -> tuple[bytes, ...]:
        """Return the words of the n-gram that starts at a word."""
        word_slice = slice(first_word, first_word + NGRAM_SIZE)
        words = map(slice, self.starts[word_slice].tolist(), self.ends[word_slice].tolist())
        return tuple(map(self.folded.__getitem__, words))

    def read_eight_bytes(self) -> Hashes:
        """Return the eight bytes at each position as uint64, a view."""
        return np.ndarray((max(0, len(self.folded) - 7),), "<u8", self.folded, strides=(1,))

    def match_ngrams(
        self, first_words: Positions, other: WordSpans, other_first_words: Positions
    ) -> npt.NDArray[np.bool_]:
        """Return which n-grams equal those of another text, word by word; bool[N]."""
        is_same = np.ones(len(first_words), bool)
        own_bytes, other_bytes = self.read_eight_bytes(), other.read_eight_bytes()
        for word in range(NGRAM_SIZE):
            start, other_start = self.starts[first_words + word], other.starts[other_first_words + word]
            length = self.ends[first_words + word] - start
            is_same &= length == other.ends[other_first_words + word] - other_start
            for compared in range(0, int(length.max(initial=0, where=is_same)), 8):
                remaining = np.flatnonzero(is_same & (length > compared))
                difference = (
                    own_bytes[start[remaining] + compared] ^ other_bytes[other_start[remaining] + compared]
                )
                is_same[remaining] = (
                    difference & _LOW_BYTE_MASKS.take(length[remaining] - compared, mode="clip") == 0
                )
        return is_same

    def find_ngram_ends(self) -> Positions:
        """Return the end of the n-gram that starts at each word; the last twelve words start none."""
        return self.ends[NGRAM_SIZE - 1 :]


def hash_ngrams(text: bytes, word_breaks: Positions) -> tuple[WordSpans, Hashes]:
    """Return the words of a UTF-8 text, and the hash of the n-gram that starts at each word.

    Args:
        word_breaks: byte positions that end a word without a separator, such as ends of sentences.
    """
    folded = text.translate(_FOLD_TABLE) + b" " * 8
    is_word = np.frombuffer(b" " + folded, np.uint8) != ord(" ")
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    word_breaks = np.unique(word_breaks[is_word[word_breaks] & is_word[word_breaks + 1]])
    edges = np.insert(edges, np.repeat(np.searchsorted(edges, word_breaks), 2), np.repeat(word_breaks, 2))
    words = WordSpans(folded, edges[0::2], edges[1::2])
    return words, _roll_hashes(_hash_words(words.read_eight_bytes(), words.starts, words.ends - words.starts))


def _hash_words(byte_windows: Hashes, starts: Positions, lengths: Positions) -> Hashes:
    """Hash each word, eight bytes at a time."""
    hashes = _mix_bits(byte_windows[starts] & _LOW_BYTE_MASKS.take(lengths, mode="clip"))
    remaining, num_hashed = np.flatnonzero(lengths > 8), 8
    while len(remaining):
        letters = byte_windows[starts[remaining] + num_hashed] & _LOW_BYTE_MASKS.take(
            lengths[remaining] - num_hashed, mode="clip"
        )
        hashes[remaining] = _mix_bits(hashes[remaining] + letters)
        num_hashed += 8
        remaining = remaining[lengths[remaining] > num_hashed]
    return hashes


def _mix_bits(hashes: Hashes) -> Hashes:
    mixed: Hashes = hashes * _base_power(1)
    return mixed ^ (mixed >> np.uint64(29))


def _roll_hashes(words: Hashes) -> Hashes:
    """Return the polynomial hash of each 13 consecutive words, combined from those of 8, 4 and 1 words."""
    count = len(words) - NGRAM_SIZE + 1
    if count < 1:
        return np.zeros(0, np.uint64)
    twos = words[:-1] * _base_power(1) + words[1:]
    fours = twos[:-2] * _base_power(2) + twos[2:]
    eights = fours[:-4] * _base_power(4) + fours[4:]
    rolled = eights[:count] * _base_power(5) + fours[8 : 8 + count] * _base_power(1) + words[12:]
    return rolled.astype(np.uint64, copy=False)


def _base_power(exponent: int) -> np.uint64:
    return np.uint64(pow(_HASH_BASE, exponent, 2**64))


class _BloomFilter:
    """Bloom filter with two bits per key."""

    def __init__(self, keys: Hashes) -> None:
        bits = max(16, len(keys).bit_length() + _FILTER_BITS_LOG2)
        self._shift = np.uint64(64 - bits)
        self._bytes = np.zeros(1 << (bits - 3), np.uint8)
        for hashes in (keys, _mix_bits(keys)):
            byte, bit = self._locate_bits(hashes)
            np.bitwise_or.at(self._bytes, byte, np.left_shift(np.uint8(1), bit))

    def find_candidates(self, hashes: Hashes) -> Positions:
        """Return the positions of hashes that may be keys."""
        candidates = np.flatnonzero(self._test_bits(hashes))
        return candidates[self._test_bits(_mix_bits(hashes[candidates]))]

    def _test_bits(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        byte, bit = self._locate_bits(hashes)
        bits = self._bytes.take(byte, mode="clip") >> bit
        is_set: npt.NDArray[np.bool_] = np.equal(bits & np.uint8(1), 1)
        return is_set

    def _locate_bits(self, hashes: Hashes) -> tuple[Positions, npt.NDArray[np.uint8]]:
        high_bits = hashes >> self._shift
        return (high_bits >> np.uint64(3)).view(np.int64), high_bits.astype(np.uint8) & np.uint8(7)


class NgramIndex:
    """Distinct n-grams of many texts, numbered.

    Attributes:
        offsets: n-grams of text T are ``ids[offsets[T]:offsets[T + 1]]``.
        ids: n-gram numbers in text order.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._words, first_words, hashes, self.offsets = _hash_texts(texts)
        first_equal = _find_first_equal(self._words, first_words, hashes)
        distinct = np.flatnonzero(first_equal == np.arange(len(first_equal)))
        distinct = distinct[np.argsort(hashes[distinct], kind="stable")]
        self._keys, self._first_words = hashes[distinct], first_words[distinct]
        ngram_numbers = np.zeros(len(first_equal), np.int64)
        ngram_numbers[distinct] = np.arange(len(distinct))
        self.ids = ngram_numbers[first_equal]
        self._filter = _BloomFilter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def ngram_ids(self, text: int) -> Positions:
        """Return the n-gram numbers of a text, in text order."""
        return self.ids[self.offsets[text] : self.offsets[text + 1]]

    def find_ngrams(self, words: WordSpans, hashes: Hashes) -> tuple[Positions, Positions]:
        """Return first words and numbers of the n-grams of a text that are in the index."""
        candidates = self._filter.find_candidates(hashes)
        start, end = (np.searchsorted(self._keys, hashes[candidates], side) for side in ("left", "right"))
        counts = end - start  # more than one where different n-grams have one hash
        positions, group_ends = np.repeat(candidates, counts), np.repeat(counts.cumsum(), counts)
        ngram_ids = np.repeat(end, counts) - group_ends + np.arange(len(positions))
        is_same = words.match_ngrams(positions, self._words, self._first_words[ngram_ids])
        return positions[is_same], ngram_ids[is_same]


def _find_first_equal(words: WordSpans, first_words: Positions, hashes: Hashes) -> Positions:
    """Return for each n-gram the position of the first equal one."""
    _, first_of_group, group = np.unique(hashes, return_index=True, return_inverse=True)
    first_equal: Positions = first_of_group[group]
    repeats = np.flatnonzero(first_equal != np.arange(len(first_equal)))
    is_same = words.match_ngrams(first_words[first_equal[repeats]], words, first_words[repeats])
    colliding = np.isin(group, group[repeats[~is_same]])
    first_by_words: dict[tuple[bytes, ...], int] = {}
    for position in np.flatnonzero(colliding).tolist():
        first_equal[position] = first_by_words.setdefault(words.get_ngram(first_words[position]), position)
    return first_equal


def _hash_texts(texts: Sequence[str]) -> tuple[WordSpans, Positions, Hashes, Positions]:
    """Hash the n-grams of many texts; no n-gram spans two texts.

    Returns:
        All words; the first word and the hash of each n-gram; the offsets of each text's n-grams.
    """
    folded, bytes_before, words_before = [], 0, 0
    starts, ends, first_words, counts = ([np.zeros(0, np.int64)] for _ in range(4))
    all_hashes = [np.zeros(0, np.uint64)]
    for block in _encode_blocks(texts):
        text_ends = np.cumsum([len(text_indices) for text_indices in block])
        words, hashes = hash_ngrams(b"".join(block), text_ends[:-1])
        text_indices = np.searchsorted(text_ends, words.starts[: len(hashes)], "right")
        ngram_indices = np.flatnonzero(words.find_ngram_ends() <= text_ends[text_indices])
        folded.append(words.folded)
        starts.append(words.starts + bytes_before)
        ends.append(words.ends + bytes_before)
        first_words.append(ngram_indices + words_before)
        all_hashes.append(hashes[ngram_indices])
        counts.append(np.bincount(text_indices[ngram_indices], minlength=len(block)))
        bytes_before += len(words.folded)
        words_before += len(words.starts)
    words = WordSpans(b"".join(folded), np.concatenate(starts), np.concatenate(ends))
    offsets = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    return words, np.concatenate(first_words), np.concatenate(all_hashes), offsets


def _encode_blocks(texts: Sequence[str]) -> list[list[bytes]]:
    """Encode texts in UTF-8, grouped into blocks of about :data:`_BLOCK_BYTES`."""
    blocks: list[list[bytes]] = [[]]
    size = 0
    for text in texts:
        data = text.encode("utf-8", "replace")  # JSON may hold half a character
        size += len(data)
        if size > _BLOCK_BYTES:
            blocks.append([])
            size = len(data)
        blocks[-1].append(data)
    return [block for block in blocks if block]
