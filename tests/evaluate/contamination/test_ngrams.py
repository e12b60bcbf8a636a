"""13-grams: word boundaries, rows, and the search in the index against brute force."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.evaluate.contamination import ngrams
from bioshards.evaluate.contamination.ngrams import NgramIndex, Ngrams
from tests.support.evaluate.contaminated_corpora import ngrams_by_brute_force, random_prose

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
"""Words of each length class of the hash, and non-ASCII letters, such as the Kelvin sign."""
TEXTS = st.lists(st.sampled_from(PIECES), max_size=30).map(" ".join)


def hash_sentences(sentences: list[str]) -> tuple[bytes, Ngrams]:
    """Hash the n-grams of concatenated sentences; return their text, too."""
    data = [sentence.encode() for sentence in sentences]
    return b"".join(data), ngrams.hash_ngrams(b"".join(data), np.cumsum([0, *map(len, data)]))


def list_ngrams(*sentences: str) -> list[str]:
    """List the n-grams of sentences as the words of each, separated by blanks."""
    text, found = hash_sentences(list(sentences))
    return [
        b" ".join(re.findall(b"[a-z0-9]+", text[start:end].lower())).decode()  # of ASCII letters alone
        for start, end in zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    ]


def find_in_index(index: NgramIndex, *sentences: str) -> list[tuple[str, int]]:
    """Find the n-grams of sentences in an index; return each with its id, in text order."""
    _, found = hash_sentences(list(sentences))
    positions, numbers = index.find_ngrams(found.hashes)
    words = list_ngrams(*sentences)
    return [
        (words[position], number)
        for position, number in zip(positions.tolist(), numbers.tolist(), strict=True)
    ]


def brute_force(text: str) -> list[str]:
    return [" ".join(gram) for gram in ngrams_by_brute_force(text)]


def test_punctuation_and_case_do_not_matter() -> None:
    tokenised = "We found that BRCA1 - related tumours ( n = 12 ) grow 3 . 5 - fold faster ."
    running = "we found that BRCA1-related tumours (n=12) grow 3.5-fold faster."
    [gram] = list_ngrams(tokenised)
    assert gram == "we found that brca1 related tumours n 12 grow 3 5 fold faster"
    assert list_ngrams(running) == [gram]


def test_non_ascii_characters_separate_words() -> None:
    [gram] = list_ngrams("TGF-\u03b21 and na\u00efve 5 \u00b5m cells \u2013 x\u2019s y z w")
    assert gram == "tgf 1 and na ve 5 m cells x s y z w"


def test_sentence_end_ends_a_word() -> None:
    sentences = ["A title", "One", "", "two", " three 4 5 6 7 8 9 10 11"]
    running = "a title one two three 4 5 6 7 8 9 10 11"
    [(_, number)] = find_in_index(NgramIndex([running]), *sentences)
    assert number == 0
    assert find_in_index(NgramIndex([running.replace("title one", "titleone") + " 12"]), *sentences) == []


def test_row_of_an_ngram_and_of_one_that_crosses_rows() -> None:
    first, second = random_prose("first", 14).encode(), random_prose("second", 13).encode()
    found = ngrams.hash_ngrams(first + second, np.array([len(first)]))
    row_ends = np.array([len(first), len(first) + len(second)])
    assert found.find_rows(row_ends).tolist() == [0, 0, *[-1] * 12, 1]
    assert found.find_rows(row_ends, np.array([1, 14])).tolist() == [0, 1]


@given(st.lists(TEXTS, max_size=5), st.data())
def test_index_finds_exactly_the_shared_ngrams(texts: list[str], data: st.DataObject) -> None:
    sentences = [f"{text} " for text in data.draw(st.lists(st.one_of(TEXTS, st.sampled_from(["", *texts]))))]
    index = NgramIndex(texts)
    hits = find_in_index(index, *sentences)
    ngrams_by_text = [brute_force(text) for text in texts]
    all_ngrams = {gram for grams in ngrams_by_text for gram in grams}
    expected = [gram for gram in brute_force(" ".join(sentences)) if gram in all_ngrams]
    assert [gram for gram, _ in hits] == expected
    assert len(index) == len(all_ngrams)
    id_by_ngram = dict(hits)
    assert len(set(id_by_ngram.values())) == len(id_by_ngram)
    for text_index, grams in enumerate(ngrams_by_text):
        ids = index.ngram_ids(text_index).tolist()
        assert len(ids) == len(grams)
        for gram, ngram_id in zip(grams, ids, strict=True):
            assert id_by_ngram.get(gram, ngram_id) == ngram_id


def test_different_words_have_different_hashes() -> None:
    """A collision among 30,000 good 64-bit hashes is very unlikely."""
    texts = [random_prose(f"hash {number}", 13) for number in range(1000)]
    texts += [" ".join(reversed(text.split())) for text in texts]
    texts += [f"{text}x" for text in texts]
    hashes = hash_sentences([f"{text}. " for text in texts])[1].hashes
    assert len(set(hashes.tolist())) == len(set(ngrams_by_brute_force(" ".join(texts))))


def test_index_does_not_depend_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [random_prose(number % 7, 10 + number) for number in range(40)]
    single_block = NgramIndex(texts)
    monkeypatch.setattr(ngrams, "_BLOCK_TEXTS", 3)
    many_blocks = NgramIndex(texts)
    assert many_blocks.ids.tolist() == single_block.ids.tolist()
    assert many_blocks.offsets.tolist() == single_block.offsets.tolist()
    for text in texts:
        assert find_in_index(many_blocks, text) == find_in_index(single_block, text)


def test_lone_surrogate_separates_words() -> None:
    text = random_prose("half", 6) + " \ud83d " + random_prose("other half", 7)
    assert len(NgramIndex([text])) == 1
