"""Alphabet, conversion of SentencePiece's pieces to WordPiece's, and corrected defects."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.tokenizer import alphabet, hugging_face, wordpiece
from bioshards.vocab.tokenizer.alphabet import ASCII, GREEK
from bioshards.vocab.tokenizer.pretokenizer import Casing, Pretokenizer

UNCASED = Pretokenizer(Casing(True, True))
CASED = Pretokenizer()


# The alphabet


def test_ascii_and_greek_are_always_in_it_as_the_casing_leaves_them() -> None:
    cased = set(alphabet.build_alphabet({"x": 1}, 0.99, CASED).characters)
    assert set(ASCII) | set(GREEK) == cased
    uncased = set(alphabet.build_alphabet({"x": 1}, 0.99, UNCASED).characters)
    assert uncased == {character for character in cased if character == character.lower()}
    assert len(ASCII) == 94
    assert len(GREEK) == 24 + 25


def test_other_characters_are_in_it_if_they_are_frequent() -> None:
    words = {"é": 60, "ñ": 30, "ø": 6, "ł": 4}
    assert _others(words, 0.6) == "é"
    assert _others(words, 0.9) == "éñ"
    assert _others(words, 0.96) == "éñø"
    assert _others(words, 1) == "éñøł"


def test_of_equally_frequent_characters_all_are_in_it_or_none() -> None:
    assert _others({"é": 10, "ñ": 1, "ø": 1, "ł": 1}, 0.8) == "éñøł"
    assert _others({"é": 10, "ñ": 1, "ø": 1, "ł": 1}, 0.76) == "é"


def _others(words: dict[str, int], share: float) -> str:
    found = alphabet.build_alphabet(words, share, CASED)
    return "".join(sorted(set(found.characters) - set(ASCII) - set(GREEK), key="éñøł".index))


def test_what_the_alphabet_says_of_itself() -> None:
    found = alphabet.build_alphabet({"éa": 10, "ñ": 5, "ø": 1}, 0.9, CASED)
    assert (found.rarest, found.coverage) == (5, 25 / 26)
    assert alphabet.build_alphabet({}, 0.9, CASED)[1:] == (0, 1.0)


def test_a_character_inside_of_a_word_is_one_that_can_be_there() -> None:
    found = alphabet.build_alphabet({"中é": 1}, 1, CASED)
    forms = set(alphabet.iter_pieces(found, CASED))
    assert {"é", "##é", "中", ".", "(", "α", "##α", "A", "##A", "7", "##7"} <= forms
    assert not {"##中", "##.", "##(", "##_", "##~"} & forms


# From SentencePiece


def test_a_piece_that_begins_a_word_and_one_that_goes_on() -> None:
    pieces = ["▁bind", "ing", "▁", "s", "▁a"]
    assert list(wordpiece.wordpieces_from_sentencepiece(pieces)) == ["bind", "##ing", "##s", "a"]


@pytest.mark.parametrize(
    ("piece", "reached"),
    [
        *(("binding", True), ("##ing", True), ("7", True), ("(", True), ("中", True), ("β", True)),
        ("##β", True),
        *(("0.05", False), ("##).", False), ("##.", False), ("##中", False), ("IL-6", False), ("(1", False)),
        *(("##\u00a0", False), ("\u0301", False), ("é", False), ("Binding", False), ("##Ing", False)),
    ],
)
def test_pieces_that_pre_tokenisation_takes_apart_are_never_reached(piece: str, reached: bool) -> None:
    assert wordpiece.is_reachable(piece, UNCASED) is reached


def test_letters_are_reached_as_they_are_written_where_they_stay_so() -> None:
    assert wordpiece.is_reachable("Binding", CASED)
    assert wordpiece.is_reachable("é", CASED)
    assert wordpiece.is_reachable("##", CASED) is False


RESERVED, FORMS, LEARNED = ["[PAD]", "[UNK]"], ["a", "b", "##a"], ["a", "0.5", "ab", "ab", "##ba", "abba"]


def test_a_vocabulary_is_what_is_reserved_then_the_alphabet_then_the_best_pieces() -> None:
    expected = ["[PAD]", "[UNK]", "a", "b", "##a", "ab", "##ba", "abba"]
    for size in (5, 6, 7, 8):
        assert wordpiece.assemble_vocabulary(size, RESERVED, FORMS, LEARNED, CASED) == expected[:size]


def test_as_published_unreachable_pieces_are_taken_too() -> None:
    assert wordpiece.assemble_vocabulary(5, RESERVED, [], LEARNED, None) == [
        "[PAD]",
        "[UNK]",
        "a",
        "0.5",
        "ab",
    ]


def test_a_size_without_room_for_the_alphabet() -> None:
    with pytest.raises(ValueError, match=r"--size 4 has no room for the 2 reserved .* alphabet, 5"):
        wordpiece.assemble_vocabulary(4, RESERVED, FORMS, LEARNED, CASED)


def test_a_size_for_which_there_are_too_few_pieces() -> None:
    with pytest.raises(wordpiece.TooFewPiecesError, match="give --size 8 or less, or more text") as raised:
        wordpiece.assemble_vocabulary(9, RESERVED, FORMS, LEARNED, CASED)
    assert raised.value.largest == 8


def test_sorted_pieces_stand_by_their_letters_after_what_is_reserved() -> None:
    pieces = ["[PAD]", "[UNK]", "zinc", "##AF", "af", "##af", "AF", "##b"]
    expected = ["[PAD]", "[UNK]", "##AF", "##af", "AF", "af", "##b", "zinc"]
    assert wordpiece.sort_by_collation(pieces, 2) == expected


some_words = st.text(st.sampled_from("abéβ.-7中Z\u0301"), min_size=1, max_size=5)


@given(st.lists(some_words, min_size=1, max_size=20))
def test_no_word_of_the_alphabet_is_unknown_and_every_piece_is_reached(words: list[str]) -> None:
    """Built of random pieces: the library gives no [UNK] for words of the alphabet, and each piece for
    some text."""
    for split in (CASED, UNCASED):
        casing = Casing() if split is CASED else Casing(True, True)
        counted = Counter(part for word in words for part in split(word))
        letters = alphabet.build_alphabet(counted, 1, split)
        forms = list(alphabet.iter_pieces(letters, split))
        pieces = [*counted, *(f"##{word}" for word in counted)]
        size = len(wordpiece.SPECIAL_TOKENS) + len(
            set(forms) | {p for p in pieces if wordpiece.is_reachable(p, split)}
        )
        made = wordpiece.assemble_vocabulary(size, wordpiece.SPECIAL_TOKENS, forms, pieces, split)
        tokenizer = hugging_face.make_wordpiece_tokenizer(made, casing)
        for word in words:
            assert "[UNK]" not in tokenizer.encode(word, add_special_tokens=False).tokens
        for piece in made[len(wordpiece.SPECIAL_TOKENS) :]:
            if not piece.startswith("##") or piece == "##":
                assert tokenizer.encode(piece, add_special_tokens=False).tokens == [piece]
