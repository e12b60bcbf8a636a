r"""Find 13-grams of words in large texts, by rolling hashes of whole blocks.

Two texts count as equal where they share 13 consecutive words. SOURCE: Brown et al. 2020 (arXiv:2005.14165),
appendix C.

A *word* is a run of ASCII letters and digits in lower case; everything else separates words, so "BRCA1 -
related" of a tokenized benchmark equals "BRCA1-related". Non-ASCII characters separate words too:
"TGF-\u03b21" is "tgf", "1".

A 13-gram is known by 64 bits of hash. Among the 8 billion 13-grams of all abstracts and 5 million of
benchmarks, one of 500 scans meets a pair that shares its hash by chance, and a document is excluded for
several 13-grams only.
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
_BLOCK_TEXTS: Final = 1000
"""Texts that are hashed at once. Arrays need some 20 times the memory of their bytes."""
_PREFIX_BITS: Final = 26
"""High bits of a hash that are looked up before the search in all keys: 8 MB, which caches hold in part."""


class Ngrams(NamedTuple):
    """First byte, byte behind the last, and hash of each n-gram of a text, in order."""

    starts: Positions
    ends: Positions
    hashes: Hashes

    def find_rows(self, row_ends: Positions, indices: Positions | slice = slice(None)) -> Positions:
        """Return the row of each n-gram at ``indices``; -1 for one that goes on into the next row.

        Args:
            row_ends: end of each row in the text.
        """
        rows = np.searchsorted(row_ends, self.starts[indices], "right")
        return np.where(self.ends[indices] <= row_ends[rows], rows, -1)


def hash_ngrams(text: bytes, word_breaks: Positions) -> Ngrams:
    """Return the n-grams of a UTF-8 text.

    Args:
        word_breaks: byte positions that end a word without a separator, such as ends of sentences.
    """
    folded = text.translate(_FOLD_TABLE) + b" " * 8
    is_word = np.frombuffer(b" " + folded, np.uint8) != ord(" ")
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    word_breaks = np.unique(word_breaks[is_word[word_breaks] & is_word[word_breaks + 1]])
    edges = np.insert(edges, np.repeat(np.searchsorted(edges, word_breaks), 2), np.repeat(word_breaks, 2))
    starts, ends = edges[0::2], edges[1::2]
    hashes = _roll_hashes(_hash_words(folded, starts, ends - starts))
    return Ngrams(starts[: len(hashes)], ends[NGRAM_SIZE - 1 :], hashes)


def _hash_words(folded: bytes, starts: Positions, lengths: Positions) -> Hashes:
    """Hash each word, eight bytes at a time; eight blanks follow the last one."""
    byte_windows = np.ndarray((len(folded) - 7,), "<u8", folded, strides=(1,))
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


class NgramIndex:
    """Distinct n-grams of many texts, numbered by their places among the sorted hashes.

    Attributes:
        offsets: n-grams of text T are ``ids[offsets[T]:offsets[T + 1]]``.
        ids: n-gram numbers in text order.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        hashes, counts = [np.zeros(0, np.uint64)], [np.zeros(1, np.int64)]
        for start in range(0, len(texts), _BLOCK_TEXTS):
            # JSON may hold half a character: "replace".
            block = [text.encode("utf-8", "replace") for text in texts[start : start + _BLOCK_TEXTS]]
            text_ends = np.cumsum([len(data) for data in block])
            ngrams = hash_ngrams(b"".join(block), text_ends[:-1])
            rows = ngrams.find_rows(text_ends)  # no n-gram spans two texts
            hashes.append(ngrams.hashes[rows >= 0])
            counts.append(np.bincount(rows[rows >= 0], minlength=len(block)))
        self.offsets: Positions = np.concatenate(counts).cumsum()
        self._keys, self.ids = np.unique(np.concatenate(hashes), return_inverse=True)
        is_prefix = np.zeros(1 << _PREFIX_BITS, bool)
        is_prefix[_find_prefixes(self._keys)] = True
        self._prefix_bits = np.packbits(is_prefix, bitorder="little")

    def __len__(self) -> int:
        return len(self._keys)

    def ngram_ids(self, text: int) -> Positions:
        """Return the n-gram numbers of a text, in text order."""
        return self.ids[self.offsets[text] : self.offsets[text + 1]]

    def find_ngrams(self, hashes: Hashes) -> tuple[Positions, Positions]:
        """Return the indices and the numbers of those hashes that are in the index."""
        prefixes = _find_prefixes(hashes)
        bits = self._prefix_bits[prefixes >> 3] >> (prefixes & 7).astype(np.uint8)
        candidates = np.flatnonzero(bits & np.uint8(1))
        ngram_ids = np.searchsorted(self._keys, hashes[candidates])
        is_found = self._keys.take(ngram_ids, mode="clip") == hashes[candidates]
        return candidates[is_found], ngram_ids[is_found]


def _find_prefixes(hashes: Hashes) -> Positions:
    return (hashes >> np.uint64(64 - _PREFIX_BITS)).view(np.int64)
