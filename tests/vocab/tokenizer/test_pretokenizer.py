"""The pretokenizer splits every character as the tokenizers library does."""

from __future__ import annotations

import itertools
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import BertPreTokenizer

from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN, Casing, Pretokenizer

CASINGS = [Casing(*flags) for flags in itertools.product((False, True), repeat=2)]
hostile = st.text(
    st.one_of(
        st.sampled_from("aAzZ09 .,-'\"()[]%$@#~^_`|\t\n\x00\x1c"),
        st.sampled_from("\u00a0\u200b\u00ad\u0301\u4e2dβΒéÉİıſßǅ≠≮ŀ\ufffd"),
        st.characters(exclude_categories=["Cs"]),
    )
)


def split_with_library(text: str, casing: Casing) -> list[str]:
    words = BertPreTokenizer().pre_tokenize_str(casing.make_normalizer().normalize_str(text))
    return [word for word, _ in words]


@pytest.mark.parametrize("casing", CASINGS)
def test_ideographs_are_words_and_control_characters_are_left_out(casing: Casing) -> None:
    pretokenize = Pretokenizer(casing)
    assert pretokenize("\u4e2dx\u6587") == ["\u4e2d", "x", "\u6587"]
    assert pretokenize("a\u200bb\x00c") == ["abc"]
    assert pretokenize("a\u00a0b") == ["a", "b"]
    assert pretokenize("") == []


def test_lower_case_and_accents_are_independent() -> None:
    assert Pretokenizer(Casing())("Ménière") == ["Ménière"]
    assert Pretokenizer(Casing(lower_case=True))("Ménière") == ["ménière"]
    assert Pretokenizer(Casing(strip_accents=True))("Ménière") == ["Meniere"]
    assert Pretokenizer(Casing(True, True))("Ménière") == ["meniere"]


def test_stripping_accents_turns_not_equal_into_equal() -> None:
    """BERT treats the combining stroke as an accent, as documented."""
    assert Pretokenizer(Casing(True, True))("a≠b") == ["a", "=", "b"]
    assert Pretokenizer(Casing(True, False))("a≠b") == ["a≠b"]


@pytest.mark.parametrize("casing", CASINGS)
def test_all_ascii_pairs_are_split_as_by_the_library(casing: Casing) -> None:
    pretokenize = Pretokenizer(casing)
    for pair in itertools.product(map(chr, range(0x20, 0x7F)), repeat=2):
        text = "".join(pair)
        assert pretokenize(text) == split_with_library(text, casing)


@pytest.mark.parametrize("casing", CASINGS)
@given(text=hostile)
def test_any_text_is_split_as_by_the_library(casing: Casing, text: str) -> None:
    assert Pretokenizer(casing)(text) == split_with_library(text, casing)


@pytest.mark.parametrize("casing", CASINGS)
@given(text=hostile)
def test_words_of_a_text_are_those_of_its_chunks(casing: Casing, text: str) -> None:
    pretokenize = Pretokenizer(casing)
    assert [word for chunk in text.split(" ") for word in pretokenize(chunk)] == pretokenize(text)


@pytest.mark.thorough
@pytest.mark.parametrize("casing", CASINGS[1:])
def test_splitting_words_again_gives_the_words_of_the_text(casing: Casing) -> None:
    """This allows ``convert_counts`` to compute the counts of any casing from the words as written."""
    split_as_written, pretokenize = Pretokenizer(AS_WRITTEN), Pretokenizer(casing)
    characters = map(chr, itertools.chain(range(0xD800), range(0xE000, sys.maxunicode + 1)))
    assigned = (character for character in characters if unicodedata.category(character) not in ("Cn", "Co"))
    while chunk := list(itertools.islice(assigned, 1000)):
        text = unicodedata.normalize("NFC", " ".join(f"a{character}B" for character in chunk))
        assert [part for word in split_as_written(text) for part in pretokenize(word)] == pretokenize(text), (
            text
        )
