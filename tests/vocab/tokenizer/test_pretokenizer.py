"""Pretokenizer: the regular expression for ASCII and the library agree on every character."""

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


def of_library(text: str, casing: Casing) -> list[str]:
    found = BertPreTokenizer().pre_tokenize_str(casing.make_normalizer().normalize_str(text))
    return [word for word, _ in found]


@pytest.mark.parametrize("casing", CASINGS)
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        ("cells", ["cells"]),
        ("IL-6", ["IL", "-", "6"]),
        ("(p<0.05),", ["(", "p", "<", "0", ".", "05", ")", ","]),
        ("a  b", ["a", "b"]),
        ("NF_kB", ["NF", "_", "kB"]),
        ("\u4e2dA\u6587", ["\u4e2d", "A", "\u6587"]),
        ("a\u200bb\x00c", ["abc"]),
        ("a\u00a0b", ["a", "b"]),
    ],
)
def test_words_of_known_texts(text: str, expected: list[str], casing: Casing) -> None:
    lower = [word.lower() for word in expected] if casing.lower_case else expected
    assert Pretokenizer(casing)(text) == lower


def test_casing_and_accents_are_apart() -> None:
    assert Pretokenizer(Casing())("Ménière") == ["Ménière"]
    assert Pretokenizer(Casing(lower_case=True))("Ménière") == ["ménière"]
    assert Pretokenizer(Casing(strip_accents=True))("Ménière") == ["Meniere"]
    assert Pretokenizer(Casing(True, True))("Ménière") == ["meniere"]


def test_stripped_accents_make_an_equals_sign_of_its_negation() -> None:
    """It is BERT's, and said in the docstring: a mark over a sign is an accent to it."""
    assert Pretokenizer(Casing(True, True))("a≠b") == ["a", "=", "b"]
    assert Pretokenizer(Casing(True, False))("a≠b") == ["a≠b"]


@pytest.mark.parametrize("casing", CASINGS)
def test_every_pair_of_printable_ascii_characters(casing: Casing) -> None:
    words = Pretokenizer(casing)
    for pair in itertools.product(map(chr, range(0x20, 0x7F)), repeat=2):
        text = "".join(pair)
        assert words(text) == of_library(text, casing)


@pytest.mark.parametrize("casing", CASINGS)
@given(text=hostile)
def test_all_other_text(casing: Casing, text: str) -> None:
    assert Pretokenizer(casing)(text) == of_library(text, casing)


@pytest.mark.parametrize("casing", CASINGS)
@given(text=hostile)
def test_a_text_is_the_sum_of_its_chunks(casing: Casing, text: str) -> None:
    words = Pretokenizer(casing)
    assert [word for chunk in text.split(" ") for word in words(chunk)] == words(text)


@pytest.mark.parametrize("casing", CASINGS[1:])
def test_words_of_words_as_written_are_those_of_the_text_for_every_character(casing: Casing) -> None:
    """So the counts of every casing can be made from the words as they are written (counts.recased)."""
    as_written, words = Pretokenizer(AS_WRITTEN), Pretokenizer(casing)
    everything = map(chr, itertools.chain(range(0xD800), range(0xE000, sys.maxunicode + 1)))
    assigned = (character for character in everything if unicodedata.category(character) not in ("Cn", "Co"))
    while some := list(itertools.islice(assigned, 1000)):
        text = unicodedata.normalize("NFC", " ".join(f"a{character}B" for character in some))
        assert [part for word in as_written(text) for part in words(word)] == words(text), text
