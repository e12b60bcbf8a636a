"""Seeds of the unigram trainer, compared with a brute-force count of substrings."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE
from bioshards.vocab.training.unigram_seeds import find_seeds

WORDS = st.dictionaries(st.text("abβ", min_size=1, max_size=10), st.integers(1, 6), min_size=1, max_size=15)


def count_seeds_by_brute_force(
    words: list[tuple[str, int]], max_length: int, limit: int
) -> list[tuple[str, int]]:
    """Compute the result of ``find_seeds`` by counting every substring."""
    counts: Counter[str] = Counter()
    for word, count in words:
        text = SENTENCEPIECE_SPACE + word
        for start in range(len(text)):
            for end in range(start + 1, min(len(text), start + max_length) + 1):
                counts[text[start:end]] += count
    always_longer = {seed[:-1] for seed, count in counts.items() if counts[seed[:-1]] == count}
    seeds = [
        (seed, count)
        for seed, count in counts.items()
        if len(seed) > 1 and count > 1 and seed not in always_longer
    ]
    text = "\0".join(SENTENCEPIECE_SPACE + word for word, _ in words)
    seeds.sort(key=lambda pair: (-pair[1] * len(pair[0]), text.index(pair[0]), len(pair[0])))
    return seeds[:limit]


@given(WORDS, st.integers(2, 7), st.sampled_from([1, 2, 5, 20, 1000]))
def test_seeds_equal_brute_force_count(counts: dict[str, int], max_length: int, limit: int) -> None:
    words = list(counts.items())
    assert find_seeds(words, max_length, limit) == count_seeds_by_brute_force(words, max_length, limit)


@given(WORDS, st.integers(2, 7))
def test_limited_seeds_are_the_first_of_all(counts: dict[str, int], max_length: int) -> None:
    words = list(counts.items())
    all_seeds = find_seeds(words, max_length)
    for limit in range(1, len(all_seeds) + 1, 9):
        assert find_seeds(words, max_length, limit) == all_seeds[:limit]


def test_counts_beyond_32_bits_are_exact() -> None:
    assert find_seeds([("ab", 2**40), ("b", 2**40 + 1)], 16)[:2] == [("▁ab", 2**40), ("▁b", 2**40 + 1)]


@pytest.mark.thorough
@pytest.mark.parametrize("number", [254, 255, 256, 300])
def test_many_different_characters(number: int) -> None:
    words = [(f"{chr(0x4E00 + code)}𝛼", 2) for code in range(number)]
    found = find_seeds(words, 16)
    assert len(found) == 2 * number  # whole words, and each without its beginning; "𝛼" alone is no seed
    assert dict(found) == {seed: 2 for word, _ in words for seed in (word, SENTENCEPIECE_SPACE + word)}
