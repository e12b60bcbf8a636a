"""Metrics of a vocabulary, compared with hand-computed numbers, brute force and published files."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bioshards.vocab.report import vocabulary_metrics
from bioshards.vocab.report.reachability import UnreachablePiece, find_unreachable, is_punctuation
from bioshards.vocab.tokenizer import published_vocabulary
from bioshards.vocab.tokenizer.pieces import Pieces
from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN, Casing, Pretokenizer
from tests.support.real_data import DATA, needs_data
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, UNCASED, make_unigram, make_wordpiece

SMALL = ("heart", "##beat", "b", "e", "a", "t", "##e", "##a", "##t", "(")
COUNTS = {"heart": 4, "beat": 3, "heartbeat": 2, "xray": 2, "(": 1}


def test_fertility_and_shares_are_weighted_by_counts() -> None:
    # heart | b ##e ##a ##t | heart ##beat | [UNK] | (
    num_pieces, num_characters = 4 * 1 + 3 * 4 + 2 * 2 + 2 * 1 + 1 * 1, 4 * 5 + 3 * 4 + 2 * 9 + 2 * 4 + 1
    result = vocabulary_metrics.measure_words(Pieces(make_wordpiece(*SMALL)), COUNTS)
    assert result == {
        "fertility": round(num_pieces / 12, 9),
        "without_punctuation": 2.0,  # 22 pieces of 11 words
        "per_100_characters": round(100 * num_pieces / num_characters, 9),
        "whole": round((4 + 1) / 12, 9),
        "unknown_words": round(2 / 12, 9),
        "unknown_characters": round(2 * 4 / num_characters, 9),
        "used": 7,
        "unused": 3,
    }


def test_pieces_per_character_are_independent_of_word_splitting() -> None:
    pieces = Pieces(make_wordpiece("a", "b", "##b", "(", ")", ".", "-"))
    # ( a b ) . and ab between dashes: 5 + 4 pieces of 9 characters, however they are cut into words
    spaced = vocabulary_metrics.measure_words(pieces, {"(a": 1, "b).": 1, "-ab-": 1})
    split = vocabulary_metrics.measure_words(
        pieces, {"(": 1, "a": 1, "b": 1, ")": 1, ".": 1, "-": 2, "ab": 1}
    )
    assert spaced["per_100_characters"] == split["per_100_characters"] == 100
    assert (spaced["fertility"], split["fertility"]) == (3.0, 1.125)


def test_fertility_without_punctuation_skips_punctuation_words() -> None:
    pieces = Pieces(make_wordpiece("a", "##a", "-", "%", "±"))
    result = vocabulary_metrics.measure_words(pieces, {"aa": 1, "--": 7, "%": 2, "a-": 1, "±": 1})
    assert result["without_punctuation"] == round((2 + 2 + 1) / 3, 9)


def test_unknown_word_is_not_whole_and_lone_accent_gives_no_piece() -> None:
    result = vocabulary_metrics.measure_words(
        Pieces(make_wordpiece("a", casing=UNCASED)), {"É": 1, "A": 1, "\u0301": 2}
    )
    assert (result["whole"], result["unknown_words"], result["fertility"]) == (0.25, 0.25, 0.5)


def test_word_above_100_characters_is_unknown() -> None:
    result = vocabulary_metrics.measure_words(
        Pieces(make_wordpiece("a", "##a")), {"a" * 100: 1, "a" * 101: 1}
    )
    assert (result["unknown_words"], result["fertility"]) == (0.5, 50.5)


def test_no_words_give_zeros() -> None:
    result = vocabulary_metrics.measure_words(Pieces(make_wordpiece("a")), {})
    assert result["fertility"] == result["whole"] == result["used"] == 0


def test_unigram_model_counts_only_unknown_characters() -> None:
    result = vocabulary_metrics.measure_words(
        Pieces(make_unigram("▁heart", "beat", "▁")), {"heartbeat": 1, "heartXX": 1}
    )
    assert result["unknown_words"] == 0.5
    assert result["unknown_characters"] == 0.125


def test_pieces_exclude_special_added_and_reserved_tokens() -> None:
    tokenizer = make_wordpiece("a", "[unused7]", "@GENE$", "@DRUG$")
    tokenizer.add_tokens(["@GENE$", "new"])
    pieces = Pieces(tokenizer)
    assert list(pieces.ids) == ["a", "@DRUG$"]
    assert pieces.size == 10


def test_truncation_and_padding_are_disabled_in_a_copy() -> None:
    tokenizer = make_wordpiece("a", "##a")
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    assert vocabulary_metrics.measure_words(Pieces(tokenizer), {"aaaa": 1, "a": 1})["fertility"] == 2.5
    assert tokenizer.truncation is not None


# Reachability


def list_yielded_pieces(tokenizer: Tokenizer, alphabet: str, length: int) -> set[str]:
    """Return every piece that texts of these characters up to a length give."""
    texts = [
        "".join(text)
        for num_characters in range(length + 1)
        for text in itertools.product(alphabet, repeat=num_characters)
    ]
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    return {token for encoding in encodings for token in encoding.tokens}


def draw_vocabularies(alphabet: str, length: int) -> st.SearchStrategy[list[str]]:
    texts = st.text(alphabet, min_size=1, max_size=length)
    pieces = st.tuples(st.sampled_from(["", "##"]), texts).map("".join)
    return st.lists(pieces, min_size=1, max_size=14, unique=True)


@given(draw_vocabularies("ab", 3))
def test_unreachable_pieces_are_those_that_no_text_yields(pieces: list[str]) -> None:
    tokenizer = make_wordpiece(*pieces)
    result = {piece for piece, _ in find_unreachable(Pieces(tokenizer))}
    # A reachable piece occurs in a text of at most two pieces, so that longer texts add none.
    assert result == set(pieces) - list_yielded_pieces(tokenizer, "ab", 7)


@given(draw_vocabularies("aAé-中", 2), st.sampled_from([AS_WRITTEN, UNCASED]))
def test_unreachable_pieces_with_capitals_accents_punctuation_and_ideographs(
    pieces: list[str], casing: Casing
) -> None:
    tokenizer = make_wordpiece(*pieces, casing=casing)
    result = {piece for piece, _ in find_unreachable(Pieces(tokenizer))}
    assert result == set(pieces) - list_yielded_pieces(tokenizer, "aAé-中", 4)


def test_reasons_of_unreachable_pieces() -> None:
    pieces = ("a", "##).", "(1", "##)", "0.5", "##a", "Gene", "é", "##中", "中", "##" + "a" * 100, "##b", ")")
    assert find_unreachable(Pieces(make_wordpiece(*pieces, casing=UNCASED))) == [
        UnreachablePiece("##).", "splitting"),
        UnreachablePiece("(1", "splitting"),
        UnreachablePiece("##)", "splitting"),
        UnreachablePiece("0.5", "splitting"),
        UnreachablePiece("Gene", "normalisation"),
        UnreachablePiece("é", "normalisation"),
        UnreachablePiece("##中", "splitting"),
        UnreachablePiece("##" + "a" * 100, "other"),
    ]


def test_continuation_after_longer_word_starts_is_reachable() -> None:
    assert find_unreachable(Pieces(make_wordpiece("a", "ab", "abb", "##b"))) == []


def test_bare_continuation_prefix_is_unreachable() -> None:
    assert find_unreachable(Pieces(make_wordpiece("a", "##"))) == [UnreachablePiece("##", "normalisation")]


def test_piece_shadowed_by_an_added_token_is_unreachable() -> None:
    tokenizer = make_wordpiece("a", "gene", "##gene", "@", "GENE", "$")
    tokenizer.add_tokens(["gene"])
    assert [piece for piece, _ in find_unreachable(Pieces(tokenizer))] == ["##gene"]


def test_unigram_model_has_no_reachability() -> None:
    pieces = Pieces(make_unigram("▁a", "a"))
    assert vocabulary_metrics.measure_unreachable(pieces) is None
    with pytest.raises(ValueError, match="this is Unigram"):
        find_unreachable(pieces)


@pytest.mark.thorough
@pytest.mark.parametrize("lower_case", [False, True])
@pytest.mark.parametrize("strip_accents", [False, True])
def test_normalization_is_idempotent_for_every_character(lower_case: bool, strip_accents: bool) -> None:
    normalizer = Casing(lower_case, strip_accents).make_normalizer()
    characters = "\n".join(chr(n) for n in range(0x21, sys.maxunicode + 1) if not 0xD800 <= n < 0xE000)
    once = normalizer.normalize_str(characters)
    assert normalizer.normalize_str(once).split() == once.split()


def test_punctuation_equals_what_the_library_splits_off() -> None:
    words = Pretokenizer()
    for number in (*range(0x21, 0x7F), *range(0xA0, 0x250), *range(0x2000, 0x2100), *range(0x3001, 0x3012)):
        character = chr(number)
        assert is_punctuation(character) == (words(f"a{character}a") == ["a", character, "a"]), hex(number)


# Alphabet, overlap, curve


def test_character_is_covered_with_both_forms_or_as_a_word_of_its_own() -> None:
    pieces = Pieces(make_wordpiece("a", "##a", "b", "##c", "(", "中", "ab"))
    result = vocabulary_metrics.measure_alphabet(pieces, {"aa": 5, "ab": 1, "c": 2, "(": 3, "中": 1, "é": 4})
    assert result == {
        "characters": 6,
        "covered": 3,
        "covered_share": round((11 + 3 + 1) / 22, 9),
        "missing": [["é", 4], ["c", 2], ["b", 1]],
        "failing": [],
    }


def test_alphabet_coverage_uses_normalized_characters() -> None:
    pieces = Pieces(make_wordpiece("e", "##e", casing=UNCASED))
    assert vocabulary_metrics.measure_alphabet(pieces, {"Éé": 1, "E\u0301": 1})["covered_share"] == 1


@given(
    draw_vocabularies("aA(é", 2),
    st.lists(st.text("aA(é", min_size=1, max_size=9)),
    st.sampled_from([AS_WRITTEN, UNCASED]),
)
def test_no_word_of_covered_characters_is_unknown(
    pieces: list[str], texts: list[str], casing: Casing
) -> None:
    view = Pieces(make_wordpiece(*pieces, casing=casing))
    words = {word: 1 for text in texts for word in Pretokenizer()(text)}
    missing = {character for character, _ in vocabulary_metrics.measure_alphabet(view, words)["missing"]}
    known = {word: 1 for word in words if not missing & set(word)}
    assert vocabulary_metrics.measure_words(view, known)["unknown_words"] == 0


def test_overlap_exact_and_case_folded() -> None:
    ours = Pieces(make_wordpiece("Gene", "gene", "##é", "cell"))
    theirs = Pieces(make_wordpiece("gene", "##e", "other", casing=UNCASED))
    assert vocabulary_metrics.measure_overlap(ours, theirs) == {
        "as_written": {"pieces": 1, "of_ours": 0.25, "of_theirs": round(1 / 3, 9)},
        "folded": {"pieces": 2, "of_ours": round(2 / 3, 9), "of_theirs": round(2 / 3, 9)},
    }


def test_overlap_of_wordpiece_with_sentencepiece_matches_word_positions() -> None:
    result = vocabulary_metrics.measure_overlap(
        Pieces(make_wordpiece("gene", "##s")), Pieces(make_unigram("▁gene", "gene", "s"))
    )
    assert result["as_written"]["pieces"] == 2


def test_longest_pieces_ignore_the_prefix() -> None:
    assert vocabulary_metrics.find_longest_pieces(Pieces(make_wordpiece("abc", "##abcd", "##ab")))[:2] == [
        "##abcd",
        "abc",
    ]


def test_curve_keeps_the_alphabet_at_every_size() -> None:
    alphabet = ["a", "b", "##a", "##b"]
    learnt = ["ab", "##ab", "abab", "ba", "##ba", "baba", "bb"]
    tokenizer = make_wordpiece(*alphabet, *learnt)
    ranked = [*SPECIAL_TOKENS, *alphabet, *learnt]
    words = {"abab": 3, "b": 1}
    points = vocabulary_metrics.measure_curve(ranked, tokenizer, words)
    assert [(point["size"], point["fertility"]) for point in points] == [(9, 3.25), (12, 1.0), (16, 1.0)]
    assert {key: points[-1][key] for key in ("fertility", "used")} == {
        key: vocabulary_metrics.measure_words(Pieces(tokenizer), words)[key] for key in ("fertility", "used")
    }


def test_curve_counts_unknown_words_without_an_unknown_token_in_the_ranking() -> None:
    points = vocabulary_metrics.measure_curve(["a", "ab"], make_wordpiece("a", "ab"), {"b": 1, "a": 1})
    assert [point["unknown_words"] for point in points] == [0.5, 0.5]


def test_curve_of_a_unigram_model_is_refused() -> None:
    with pytest.raises(ValueError, match="this is Unigram"):
        vocabulary_metrics.measure_curve(["a"], make_unigram("a"), {"a": 1})


# Published vocabularies


def test_published_list_with_blank_and_repeated_lines_is_read_with_a_warning(tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    file.write_bytes("\ufeff[PAD]\r\n[UNK]\r\nheart\r\n\r\nbeat\r\nheart\r\n\u2028x\r\n\r\n".encode())
    with pytest.warns(UserWarning, match=r"vocab\.txt: of 7 lines 1 are blank and 1 repeat a piece"):
        tokenizer = published_vocabulary.load_tokenizer(str(file))
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "beat": 4, "heart": 5, "\u2028x": 6}
    assert Pieces(tokenizer).num_missing_ids == 2
    assert tokenizer.encode("Heart béat").tokens == ["heart", "beat"]


def test_casing_is_inferred_from_the_share_of_capitals(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("\n".join(["[PAD]", "[UNK]", "Heart", *(f"w{n}" for n in range(40))]))
    assert Pieces(published_vocabulary.load_tokenizer(str(file))).infer_casing() == AS_WRITTEN
    file.write_text("\n".join(["[PAD]", "[UNK]", "Γ", *(f"w{n}" for n in range(60))]))
    assert Pieces(published_vocabulary.load_tokenizer(str(file))).infer_casing() == UNCASED


def test_directory_gives_tokenizer_json_or_else_vocab_txt(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\nlist\n")
    assert published_vocabulary.load_tokenizer(str(tmp_path)).token_to_id("list") == 1
    make_wordpiece("json").save(str(tmp_path / "tokenizer.json"))
    assert published_vocabulary.load_tokenizer(str(tmp_path)).token_to_id("json") == 5
    assert published_vocabulary.load_tokenizer(str(tmp_path / "tokenizer.json")).token_to_id("json") == 5


def test_error_names_invalid_vocabulary_and_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no vocabulary at .*nowhere"):
        published_vocabulary.load_tokenizer(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"neither tokenizer\.json nor vocab\.txt"):
        published_vocabulary.load_tokenizer(str(tmp_path))
    file = tmp_path / "file.json"
    for content, message in (
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"{}", r"no tokenizer\.json"),
        (b"a\nb\n", r"no line \[UNK\]"),
        (b"", r"no line \[UNK\]"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message) as caught:
            published_vocabulary.load_tokenizer(str(file))
        assert str(file) in str(caught.value)


@needs_data
@pytest.mark.parametrize(
    ("file", "num_with_punctuation", "casing"),
    [
        ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", 717, AS_WRITTEN),
        ("electramed/vocab/vocab.txt", 3015, UNCASED),
    ],
)
@pytest.mark.filterwarnings("ignore:.*lines 1 are blank")
def test_published_vocabularies_have_known_numbers_of_unreachable_pieces(
    file: str, num_with_punctuation: int, casing: Casing
) -> None:
    pieces = Pieces(published_vocabulary.load_tokenizer(str(Path(str(DATA)) / "benchmarks" / file)))
    result = vocabulary_metrics.measure_unreachable(pieces)
    assert result is not None
    assert result["with_punctuation"] == num_with_punctuation
    assert pieces.infer_casing() == casing
