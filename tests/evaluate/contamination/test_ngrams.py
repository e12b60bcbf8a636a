"""13-grams: what a word is; that each is found and nothing else, however bad the hash."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.contamination import ngrams
from bioshards.evaluate.contamination.ngrams import Hashes, NgramIndex, WordSpans
from tests.support.evaluate.contaminated_corpora import NGrams, ngrams_by_brute_force, random_prose

LONG = "pneumonoultramicroscopicsilicovolcanoconiosis"
PIECES = [
    "a",
    "b",
    "A",
    LONG,
    LONG[:-1],
    "12345678",
    "123456789",
    "(3.5%)",
    "\u03b2",
    "\u00e9t\u00e9",
    "\u212a",
    "",
]
"""Words of each length that is hashed in another way, and letters that are in none: Kelvin's is no k."""
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)


def hashed(sentences: list[str]) -> tuple[WordSpans, Hashes]:
    """The n-grams of sentences that have nothing between them."""
    data = [sentence.encode() for sentence in sentences]
    return ngrams.hash_ngrams(b"".join(data), np.cumsum([0, *map(len, data)]))


def decoded(words: WordSpans, first: int) -> tuple[str, ...]:
    return tuple(word.decode() for word in words.get_ngram(first))


def of(*sentences: str) -> NGrams:
    words, hashes = hashed(list(sentences))
    return [decoded(words, first) for first in range(len(hashes))]


def found(index: NgramIndex, *sentences: str) -> list[tuple[tuple[str, ...], int]]:
    """The n-grams of sentences that are in an index, in order, each with its number."""
    words, hashes = hashed(list(sentences))
    places, numbers = index.find_ngrams(words, hashes)
    return [
        (decoded(words, at), number) for at, number in zip(places.tolist(), numbers.tolist(), strict=True)
    ]


def test_punctuation_and_case_do_not_matter() -> None:
    tokenised = "We found that BRCA1 - related tumours ( n = 12 ) grow 3 . 5 - fold faster ."
    running = "we found that BRCA1-related tumours (n=12) grow 3.5-fold faster."
    [gram] = of(tokenised)
    assert " ".join(gram) == "we found that brca1 related tumours n 12 grow 3 5 fold faster"
    assert of(running) == [gram]


def test_what_is_not_ascii_parts_words() -> None:
    [gram] = of("TGF-\u03b21 and na\u00efve 5 \u00b5m cells \u2013 x\u2019s y z w")
    assert " ".join(gram) == "tgf 1 and na ve 5 m cells x s y z w"


def test_the_end_of_a_sentence_ends_a_word() -> None:
    assert of("A title", "One", "", "two", " three 4 5 6 7 8 9 10 11") == [
        ("a", "title", "one", "two", "three", "4", "5", "6", "7", "8", "9", "10", "11")
    ]


@pytest.mark.parametrize("words", [0, 1, 12, 13, 14])
def test_a_text_of_few_words_has_few(words: int) -> None:
    text = random_prose("few", words)
    assert of(text) == ngrams_by_brute_force(text)
    assert len(NgramIndex([text])) == len(found(NgramIndex([text]), text)) == max(0, words - 12)


@pytest.mark.parametrize("base", [None, 1, 0])
@given(data=st.data())
def test_exactly_the_shared_ones_are_found(base: int | None, data: st.DataObject) -> None:
    """As Python's sets have it; also with a hash by which words may change places, and with none at all."""
    texts = data.draw(st.lists(TEXTS, max_size=5))
    sentences = data.draw(st.lists(st.one_of(TEXTS, st.sampled_from(["", *texts])), max_size=6))
    with pytest.MonkeyPatch.context() as patch:
        if base is not None:
            patch.setattr(ngrams, "_HASH_BASE", base)
        index = NgramIndex(texts)
        hits = found(index, *sentences)
    known = [ngrams_by_brute_force(text) for text in texts]
    everything = {gram for grams in known for gram in grams}
    wanted = [gram for gram in ngrams_by_brute_force(" ".join(sentences)) if gram in everything]
    assert [gram for gram, _ in hits] == wanted
    assert len(index) == len(everything)
    number_of = dict(hits)
    assert len(set(number_of.values())) == len(number_of)
    for at, grams in enumerate(known):
        numbers = index.ngram_ids(at).tolist()
        assert len(numbers) == len(grams)
        for gram, number in zip(grams, numbers, strict=True):
            assert number_of.get(gram, number) == number


def test_a_collision_is_not_a_hit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ngrams, "_HASH_BASE", 1)
    text = random_prose("collision", 13)
    swapped = " ".join(reversed(text.split()))
    (_, one), (_, other) = hashed([text]), hashed([swapped])
    assert one.tolist() == other.tolist()
    assert found(NgramIndex([text]), swapped) == []
    assert len(NgramIndex([text, swapped, text])) == 2


def test_different_words_have_different_hashes() -> None:
    """Of a good hash of 64 bits, a collision among 30,000 is a miracle."""
    texts = [random_prose(f"hash {number}", 13) for number in range(1000)]
    texts += [" ".join(reversed(text.split())) for text in texts]
    texts += [f"{text}x" for text in texts]
    hashes = hashed([f"{text}. " for text in texts])[1]
    assert len(set(hashes.tolist())) == len(set(ngrams_by_brute_force(" ".join(texts))))


def test_many_texts_are_read_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [random_prose(number % 7, 10 + number) for number in range(40)]
    whole = NgramIndex(texts)
    monkeypatch.setattr(ngrams, "_BLOCK_BYTES", 500)
    cut = NgramIndex(texts)
    assert cut.ids.tolist() == whole.ids.tolist()
    assert cut.offsets.tolist() == whole.offsets.tolist()
    for text in texts:
        assert found(cut, text) == found(whole, text)


def test_half_a_character_is_none() -> None:
    text = random_prose("half", 6) + " \ud83d " + random_prose("other half", 7)
    assert len(NgramIndex([text])) == 1


def test_no_text_has_none() -> None:
    index = NgramIndex([])
    assert len(index) == 0
    assert found(index, random_prose("any", 30)) == []
    assert index.offsets.tolist() == [0]
