"""13-grams of words, found in any amount of text: hashed by the block, each hit compared word by word.

Two texts are taken to be the same where they share 13 words in a row.  SOURCES: Brown et al. 2020 (arXiv
2005.14165), appendix C, for benchmarks in pretraining text.

A *word* is what stands together of letters and digits of ASCII, in lower case.  All else separates words,
so that "BRCA1 - related" of a tokenised benchmark and "BRCA1-related" of running text are the same two.
What is not ASCII separates too: "TGF-\u03b21" is "tgf" and "1", and "TGF-beta1" is not the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

WORDS: Final = 13
"""Words of an n-gram."""

Places = npt.NDArray[np.int64]
"""Places in a text, in bytes; or numbers of n-grams."""
Hashes = npt.NDArray[np.uint64]

_FOLD: Final = bytes(ord(chr(b).lower()) if b < 128 and chr(b).isalnum() else 32 for b in range(256))
_BASE: Final = 0x9E3779B97F4A7C15
"""Odd, and its bits are like random ones: 2**64 by the golden ratio."""
_LOW_BYTES: Final = np.array([2 ** (8 * count) - 1 for count in range(9)], np.uint64)
_BLOCK_BYTES: Final = 4 << 20
_BITS_A_KEY: Final = 6
"""As a power of two: a filter of 64 to 128 bits a key lets through one in 1,000 that is none."""


class Words(NamedTuple):
    """The words of a text, in order.

    Attributes:
        folded: the text in lower case, with blanks for what is no word, and eight more at the end.
        starts, ends: of each word in it.
    """

    folded: bytes
    starts: Places
    ends: Places

    def ngram(self, first: int) -> tuple[bytes, ...]:
        """The n-gram that begins with a word."""
        places = slice(first, first + WORDS)
        words = map(slice, self.starts[places].tolist(), self.ends[places].tolist())
        return tuple(map(self.folded.__getitem__, words))

    def eights(self) -> Hashes:
        """The eight bytes from each place on, as a number."""
        return np.ndarray((max(0, len(self.folded) - 7),), "<u8", self.folded, strides=(1,))

    def same(self, firsts: Places, other: Words, others: Places) -> npt.NDArray[np.bool_]:
        """Which of the n-grams that begin with some words are the same words as those of another text."""
        same = np.ones(len(firsts), bool)
        ours, theirs = self.eights(), other.eights()
        for word in range(WORDS):
            start, at = self.starts[firsts + word], other.starts[others + word]
            length = self.ends[firsts + word] - start
            same &= length == other.ends[others + word] - at
            for done in range(0, int(length.max(initial=0, where=same)), 8):
                more = np.flatnonzero(same & (length > done))
                differing = ours[start[more] + done] ^ theirs[at[more] + done]
                same[more] = differing & _LOW_BYTES.take(length[more] - done, mode="clip") == 0
        return same

    def ngram_ends(self) -> Places:
        """Where the n-gram that begins with each word ends; of the last twelve there is none."""
        return self.ends[WORDS - 1 :]


def ngrams(text: bytes, cuts: Places) -> tuple[Words, Hashes]:
    """The words of a text in UTF-8, and a hash of each n-gram, in the order of their first words.

    Args:
        cuts: where a word ends although nothing stands between it and the next: ends of sentences.
    """
    folded = text.translate(_FOLD) + b" " * 8
    is_word = np.frombuffer(b" " + folded, np.uint8) != ord(" ")
    edges = np.flatnonzero(is_word[1:] != is_word[:-1])
    cuts = np.unique(cuts[is_word[cuts] & is_word[cuts + 1]])
    edges = np.insert(edges, np.repeat(np.searchsorted(edges, cuts), 2), np.repeat(cuts, 2))
    words = Words(folded, edges[0::2], edges[1::2])
    return words, _rolled(_of_words(words.eights(), words.starts, words.ends - words.starts))


def _of_words(eights: Hashes, starts: Places, lengths: Places) -> Hashes:
    """A hash of each word, eight of its letters at a time."""
    hashes = _mixed(eights[starts] & _LOW_BYTES.take(lengths, mode="clip"))
    more, done = np.flatnonzero(lengths > 8), 8
    while len(more):
        letters = eights[starts[more] + done] & _LOW_BYTES.take(lengths[more] - done, mode="clip")
        hashes[more] = _mixed(hashes[more] + letters)
        done += 8
        more = more[lengths[more] > done]
    return hashes


def _mixed(hashes: Hashes) -> Hashes:
    mixed: Hashes = hashes * _power(1)
    return mixed ^ (mixed >> np.uint64(29))


def _rolled(words: Hashes) -> Hashes:
    """Of each 13 in a row the polynomial in :data:`_BASE`, put together of those of 8, 4 and 1."""
    count = len(words) - WORDS + 1
    if count < 1:
        return np.zeros(0, np.uint64)
    twos = words[:-1] * _power(1) + words[1:]
    fours = twos[:-2] * _power(2) + twos[2:]
    eights = fours[:-4] * _power(4) + fours[4:]
    rolled: Hashes = eights[:count] * _power(5) + fours[8 : 8 + count] * _power(1) + words[12:]
    return rolled


def _power(exponent: int) -> np.uint64:
    return np.uint64(pow(_BASE, exponent, 2**64))


class _Filter:
    """Bits that tell nearly all hashes that are none of the keys from them: a Bloom filter of two bits."""

    def __init__(self, keys: Hashes) -> None:
        bits = max(16, len(keys).bit_length() + _BITS_A_KEY)
        self._shift = np.uint64(64 - bits)
        self._bytes = np.zeros(1 << (bits - 3), np.uint8)
        for hashes in (keys, _mixed(keys)):
            byte, bit = self._place(hashes)
            np.bitwise_or.at(self._bytes, byte, np.left_shift(np.uint8(1), bit))

    def passing(self, hashes: Hashes) -> Places:
        """The places of those that may be among the keys."""
        near = np.flatnonzero(self._has(hashes))
        return near[self._has(_mixed(hashes[near]))]

    def _has(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        byte, bit = self._place(hashes)
        bits = self._bytes.take(byte, mode="clip") >> bit
        return np.equal(bits & np.uint8(1), 1)

    def _place(self, hashes: Hashes) -> tuple[Places, npt.NDArray[np.uint8]]:
        upper = hashes >> self._shift
        return (upper >> np.uint64(3)).view(np.int64), upper.astype(np.uint8) & np.uint8(7)


class Index:
    """The distinct n-grams of many texts, numbered.

    Attributes:
        offsets: the n-grams of text T are ``ids[offsets[T]:offsets[T + 1]]``.
        ids: numbers of n-grams, in the order in which they stand in the texts.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._words, first_words, hashes, self.offsets = _of_texts(texts)
        same = _first_of_the_same(self._words, first_words, hashes)
        distinct = np.flatnonzero(same == np.arange(len(same)))
        distinct = distinct[np.argsort(hashes[distinct], kind="stable")]
        self._keys, self._first_words = hashes[distinct], first_words[distinct]
        number = np.zeros(len(same), np.int64)
        number[distinct] = np.arange(len(distinct))
        self.ids = number[same]
        self._filter = _Filter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def of(self, text: int) -> Places:
        """The numbers of a text's n-grams, in the order in which they stand in it."""
        return self.ids[self.offsets[text] : self.offsets[text + 1]]

    def find(self, words: Words, hashes: Hashes) -> tuple[Places, Places]:
        """Which of a text's n-grams (ngrams) are here: their first words, and their numbers."""
        near = self._filter.passing(hashes)
        begin, end = (np.searchsorted(self._keys, hashes[near], side) for side in ("left", "right"))
        count = end - begin  # more than one where different n-grams have one hash
        at, last = np.repeat(near, count), np.repeat(count.cumsum(), count)
        number = np.repeat(end, count) - last + np.arange(len(at))
        same = words.same(at, self._words, self._first_words[number])
        return at[same], number[same]


def _first_of_the_same(words: Words, first_words: Places, hashes: Hashes) -> Places:
    """For each n-gram the place of the first one of the same words."""
    _, first_of_group, group = np.unique(hashes, return_index=True, return_inverse=True)
    first: Places = first_of_group[group]
    again = np.flatnonzero(first != np.arange(len(first)))
    same = words.same(first_words[first[again]], words, first_words[again])
    colliding = np.isin(group, group[again[~same]])
    met: dict[tuple[bytes, ...], int] = {}
    for at in np.flatnonzero(colliding).tolist():
        first[at] = met.setdefault(words.ngram(first_words[at]), at)
    return first


def _of_texts(texts: Sequence[str]) -> tuple[Words, Places, Hashes, Places]:
    """The n-grams of texts one after another, none across two of them.

    Returns:
        All words; each n-gram's first word, and its hash; and which are whose (Index.offsets).
    """
    folded, bytes_before, words_before = [], 0, 0
    starts, ends, first_words, counts = ([np.zeros(0, np.int64)] for _ in range(4))
    all_hashes = [np.zeros(0, np.uint64)]
    for block in _blocks(texts):
        text_ends = np.cumsum([len(text) for text in block])
        words, hashes = ngrams(b"".join(block), text_ends[:-1])
        text = np.searchsorted(text_ends, words.starts[: len(hashes)], "right")
        within = np.flatnonzero(words.ngram_ends() <= text_ends[text])
        folded.append(words.folded)
        starts.append(words.starts + bytes_before)
        ends.append(words.ends + bytes_before)
        first_words.append(within + words_before)
        all_hashes.append(hashes[within])
        counts.append(np.bincount(text[within], minlength=len(block)))
        bytes_before += len(words.folded)
        words_before += len(words.starts)
    words = Words(b"".join(folded), np.concatenate(starts), np.concatenate(ends))
    offsets = np.concatenate([np.zeros(1, np.int64), *counts]).cumsum()
    return words, np.concatenate(first_words), np.concatenate(all_hashes), offsets


def _blocks(texts: Sequence[str]) -> list[list[bytes]]:
    """The texts in UTF-8, so many together as are quickly read."""
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
