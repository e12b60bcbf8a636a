"""The alphabet, reachable pieces, and assembly of a vocabulary."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.tokenizer import hugging_face, wordpiece
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer
from bioshards.vocab.tokenizer.wordpiece import ASCII, GREEK

UNCASED = Pretokenizer(Casing(True, True))
CASED = Pretokenizer()


# The alphabet


def test_alphabet_always_has_ascii_and_greek() -> None:
    cased = set(wordpiece.build_alphabet({"x": 1}, 0.99, CASED).characters)
    assert set(ASCII) | set(GREEK) == cased
    uncased = set(wordpiece.build_alphabet({"x": 1}, 0.99, UNCASED).characters)
    assert uncased == {character for character in cased if character == character.lower()}
    assert len(ASCII) == 94
    assert len(GREEK) == 24 + 25


def test_alphabet_has_other_characters_up_to_the_coverage() -> None:
    words = {"é": 60, "ñ": 30, "ø": 6, "ł": 4}
    assert find_other_characters(words, 0.6) == "é"
    assert find_other_characters(words, 0.9) == "éñ"
    assert find_other_characters(words, 0.96) == "éñø"
    assert find_other_characters(words, 1) == "éñøł"


def test_equally_frequent_characters_are_all_in_or_all_out() -> None:
    assert find_other_characters({"é": 10, "ñ": 1, "ø": 1, "ł": 1}, 0.8) == "éñøł"
    assert find_other_characters({"é": 10, "ñ": 1, "ø": 1, "ł": 1}, 0.76) == "é"


def find_other_characters(words: dict[str, int], share: float) -> str:
    found = wordpiece.build_alphabet(words, share, CASED)
    return "".join(sorted(set(found.characters) - set(ASCII) - set(GREEK), key="éñøł".index))


def test_alphabet_has_rarest_count_and_coverage() -> None:
    result = wordpiece.build_alphabet({"éa": 10, "ñ": 5, "ø": 1}, 0.9, CASED)
    assert (result.rarest, result.coverage) == (5, 25 / 26)
    assert wordpiece.build_alphabet({}, 0.9, CASED)[1:] == (0, 1.0)


def test_only_word_characters_have_a_continuation_piece() -> None:
    characters = wordpiece.build_alphabet({"中é": 1}, 1, CASED)
    forms = set(wordpiece.iter_pieces(characters, CASED))
    assert {"é", "##é", "中", ".", "(", "α", "##α", "A", "##A", "7", "##7"} <= forms
    assert not {"##中", "##.", "##(", "##_", "##~"} & forms


@pytest.mark.parametrize(
    ("piece", "reached"),
    [
        *(("binding", True), ("##ing", True), ("7", True), ("(", True), ("中", True), ("β", True)),
        ("##β", True),
        *(("0.05", False), ("##).", False), ("##.", False), ("##中", False), ("IL-6", False), ("(1", False)),
        *(("##\u00a0", False), ("\u0301", False), ("é", False), ("Binding", False), ("##Ing", False)),
    ],
)
def test_pieces_that_pre_tokenization_splits_are_unreachable(piece: str, reached: bool) -> None:
    assert wordpiece.is_reachable(piece, UNCASED) is reached


def test_cased_and_accented_pieces_are_reachable_in_a_cased_vocabulary() -> None:
    assert wordpiece.is_reachable("Binding", CASED)
    assert wordpiece.is_reachable("é", CASED)
    assert wordpiece.is_reachable("##", CASED) is False


REQUIRED = ["[PAD]", "[UNK]", "a", "b", "##a"]
LEARNED = ["a", "0.5", "ab", "ab", "##ba", "abba"]


def test_vocabulary_is_reserved_tokens_alphabet_and_best_pieces() -> None:
    expected = ["[PAD]", "[UNK]", "a", "b", "##a", "ab", "##ba", "abba"]
    for size in (5, 6, 7, 8):
        assert wordpiece.assemble_vocabulary(size, REQUIRED, LEARNED, CASED) == expected[:size]


def test_size_above_the_number_of_pieces_is_refused() -> None:
    with pytest.raises(wordpiece.TooFewPiecesError, match="give --size 8 or less, or more text") as raised:
        wordpiece.assemble_vocabulary(9, REQUIRED, LEARNED, CASED)
    assert raised.value.largest == 8


def test_sorted_pieces_follow_the_reserved_tokens_alphabetically() -> None:
    pieces = ["[PAD]", "[UNK]", "zinc", "##AF", "af", "##af", "AF", "##b"]
    expected = ["[PAD]", "[UNK]", "##AF", "##af", "AF", "af", "##b", "zinc"]
    assert wordpiece.sort_by_collation(pieces, 2) == expected


some_words = st.text(st.sampled_from("abéβ.-7中Z\u0301"), min_size=1, max_size=5)


@given(st.lists(some_words, min_size=1, max_size=20))
def test_words_of_the_alphabet_are_known_and_all_pieces_reachable(words: list[str]) -> None:
    """With random pieces, the library gives no [UNK] for these words, and each piece for some text."""
    for split in (CASED, UNCASED):
        casing = Casing() if split is CASED else Casing(True, True)
        word_counts = Counter(part for word in words for part in split(word))
        letters = wordpiece.build_alphabet(word_counts, 1, split)
        required = [*wordpiece.SPECIAL_TOKENS, *wordpiece.iter_pieces(letters, split)]
        pieces = [*word_counts, *(f"##{word}" for word in word_counts)]
        size = len(set(required) | {p for p in pieces if wordpiece.is_reachable(p, split)})
        vocabulary = wordpiece.assemble_vocabulary(size, required, pieces, split)
        tokenizer = hugging_face.make_wordpiece_tokenizer(vocabulary, casing)
        for word in words:
            assert "[UNK]" not in tokenizer.encode(word, add_special_tokens=False).tokens
        for piece in vocabulary[len(wordpiece.SPECIAL_TOKENS) :]:
            if not piece.startswith("##") or piece == "##":
                assert tokenizer.encode(piece, add_special_tokens=False).tokens == [piece]
