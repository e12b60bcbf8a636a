"""Metrics of a vocabulary: numbers computed by hand, reachability by brute force, published files."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bioshards.vocab.report import baselines, vocabulary_metrics
from bioshards.vocab.report.reachability import UnreachablePiece, find_unreachable, is_punctuation
from bioshards.vocab.tokenizer.pieces import Pieces
from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN, Casing, Pretokenizer
from tests.support.real_data import DATA, needs_data
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, UNCASED, make_unigram, make_wordpiece

SMALL = ("heart", "##beat", "b", "e", "a", "t", "##e", "##a", "##t", "(")
COUNTS = {"heart": 4, "beat": 3, "heartbeat": 2, "xray": 2, "(": 1}


def test_fertility_and_shares_are_weighed_by_counts() -> None:
    # heart | b ##e ##a ##t | heart ##beat | [UNK] | (
    made, characters = 4 * 1 + 3 * 4 + 2 * 2 + 2 * 1 + 1 * 1, 4 * 5 + 3 * 4 + 2 * 9 + 2 * 4 + 1
    found = vocabulary_metrics.measure_words(Pieces(make_wordpiece(*SMALL)), COUNTS)
    assert found == {
        "fertility": round(made / 12, 9),
        "without_punctuation": 2.0,  # 22 pieces of 11 words
        "per_100_characters": round(100 * made / characters, 9),
        "whole": round((4 + 1) / 12, 9),
        "unknown_words": round(2 / 12, 9),
        "unknown_characters": round(2 * 4 / characters, 9),
        "used": 7,
        "unused": 3,
    }


def test_pieces_per_character_do_not_depend_on_what_a_word_is() -> None:
    pieces = Pieces(make_wordpiece("a", "b", "##b", "(", ")", ".", "-"))
    # ( a b ) . and ab between dashes: 5 + 4 pieces of 9 characters, however they are cut into words
    spaced = vocabulary_metrics.measure_words(pieces, {"(a": 1, "b).": 1, "-ab-": 1})
    split = vocabulary_metrics.measure_words(
        pieces, {"(": 1, "a": 1, "b": 1, ")": 1, ".": 1, "-": 2, "ab": 1}
    )
    assert spaced["per_100_characters"] == split["per_100_characters"] == 100
    assert (spaced["fertility"], split["fertility"]) == (3.0, 1.125)


def test_only_words_with_nothing_but_punctuation_are_left_out() -> None:
    pieces = Pieces(make_wordpiece("a", "##a", "-", "%", "±"))
    found = vocabulary_metrics.measure_words(pieces, {"aa": 1, "--": 7, "%": 2, "a-": 1, "±": 1})
    assert found["without_punctuation"] == round((2 + 2 + 1) / 3, 9)


def test_a_word_that_is_unknown_is_not_whole_and_an_accent_alone_gives_no_piece() -> None:
    found = vocabulary_metrics.measure_words(
        Pieces(make_wordpiece("a", casing=UNCASED)), {"É": 1, "A": 1, "\u0301": 2}
    )
    assert (found["whole"], found["unknown_words"], found["fertility"]) == (0.25, 0.25, 0.5)


def test_a_word_of_more_than_a_hundred_characters_is_unknown() -> None:
    found = vocabulary_metrics.measure_words(Pieces(make_wordpiece("a", "##a")), {"a" * 100: 1, "a" * 101: 1})
    assert (found["unknown_words"], found["fertility"]) == (0.5, 50.5)


def test_no_words_give_zeros() -> None:
    found = vocabulary_metrics.measure_words(Pieces(make_wordpiece("a")), {})
    assert found["fertility"] == found["whole"] == found["used"] == 0


def test_a_unigram_model_marks_only_the_unknown_characters_of_a_word() -> None:
    found = vocabulary_metrics.measure_words(
        Pieces(make_unigram("▁heart", "beat", "▁")), {"heartbeat": 1, "heartXX": 1}
    )
    assert found["unknown_words"] == 0.5
    assert found["unknown_characters"] == 0.125


def test_special_added_and_reserved_tokens_are_no_pieces() -> None:
    tokenizer = make_wordpiece("a", "[unused7]", "@GENE$", "@DRUG$")
    tokenizer.add_tokens(["@GENE$", "new"])
    pieces = Pieces(tokenizer)
    assert list(pieces.ids) == ["a", "@DRUG$"]
    assert pieces.size == 10


def test_cutting_and_padding_of_a_tokenizer_are_switched_off_in_a_copy() -> None:
    tokenizer = make_wordpiece("a", "##a")
    tokenizer.enable_truncation(2)
    tokenizer.enable_padding(length=9)
    assert vocabulary_metrics.measure_words(Pieces(tokenizer), {"aaaa": 1, "a": 1})["fertility"] == 2.5
    assert tokenizer.truncation is not None


# Reachability


def yielded(tokenizer: Tokenizer, alphabet: str, length: int) -> set[str]:
    """Every piece that texts of these characters up to a length yield."""
    texts = ["".join(text) for n in range(length + 1) for text in itertools.product(alphabet, repeat=n)]
    encodings = tokenizer.encode_batch(texts, add_special_tokens=False)
    return {token for encoding in encodings for token in encoding.tokens}


def vocabularies(alphabet: str, length: int) -> st.SearchStrategy[list[str]]:
    texts = st.text(alphabet, min_size=1, max_size=length)
    pieces = st.tuples(st.sampled_from(["", "##"]), texts).map("".join)
    return st.lists(pieces, min_size=1, max_size=14, unique=True)


@given(vocabularies("ab", 3))
def test_unreachable_are_exactly_the_pieces_that_no_text_yields(pieces: list[str]) -> None:
    tokenizer = make_wordpiece(*pieces)
    found = {piece for piece, _ in find_unreachable(Pieces(tokenizer))}
    # A witness is a piece and the piece before it: no longer text can show more.
    assert found == set(pieces) - yielded(tokenizer, "ab", 7)


@given(vocabularies("aAé-中", 2), st.sampled_from([AS_WRITTEN, UNCASED]))
def test_so_they_are_with_capitals_accents_punctuation_and_ideographs(
    pieces: list[str], casing: Casing
) -> None:
    tokenizer = make_wordpiece(*pieces, casing=casing)
    found = {piece for piece, _ in find_unreachable(Pieces(tokenizer))}
    assert found == set(pieces) - yielded(tokenizer, "aAé-中", 4)


def test_why_pieces_cannot_be_reached() -> None:
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


def test_a_continuing_piece_hidden_behind_shorter_beginnings_is_found() -> None:
    assert find_unreachable(Pieces(make_wordpiece("a", "ab", "abb", "##b"))) == []


def test_the_bare_mark_is_no_reachable_piece() -> None:
    assert find_unreachable(Pieces(make_wordpiece("a", "##"))) == [UnreachablePiece("##", "normalisation")]


def test_a_piece_that_an_added_token_takes_away_is_unreachable() -> None:
    tokenizer = make_wordpiece("a", "gene", "##gene", "@", "GENE", "$")
    tokenizer.add_tokens(["gene"])
    assert [piece for piece, _ in find_unreachable(Pieces(tokenizer))] == ["##gene"]


def test_reachability_of_a_unigram_model_is_refused_or_left_out() -> None:
    pieces = Pieces(make_unigram("▁a", "a"))
    assert vocabulary_metrics.measure_unreachable(pieces) is None
    with pytest.raises(ValueError, match="this is Unigram"):
        find_unreachable(pieces)


@pytest.mark.parametrize("lower_case", [False, True])
@pytest.mark.parametrize("strip_accents", [False, True])
def test_normalising_twice_changes_no_character_of_unicode(lower_case: bool, strip_accents: bool) -> None:
    normalizer = Casing(lower_case, strip_accents).make_normalizer()
    characters = "\n".join(chr(n) for n in range(0x21, sys.maxunicode + 1) if not 0xD800 <= n < 0xE000)
    once = normalizer.normalize_str(characters)
    assert normalizer.normalize_str(once).split() == once.split()


def test_punctuation_is_what_the_library_splits_off() -> None:
    words = Pretokenizer()
    for number in (*range(0x21, 0x7F), *range(0xA0, 0x250), *range(0x2000, 0x2100), *range(0x3001, 0x3012)):
        character = chr(number)
        assert is_punctuation(character) == (words(f"a{character}a") == ["a", character, "a"]), hex(number)


# Alphabet, overlap, curve


def test_a_character_is_covered_in_both_places_or_where_it_always_stands_alone() -> None:
    pieces = Pieces(make_wordpiece("a", "##a", "b", "##c", "(", "中", "ab"))
    found = vocabulary_metrics.measure_alphabet(pieces, {"aa": 5, "ab": 1, "c": 2, "(": 3, "中": 1, "é": 4})
    assert found == {
        "characters": 6,
        "covered": 3,
        "covered_share": round((11 + 3 + 1) / 22, 9),
        "missing": [["é", 4], ["c", 2], ["b", 1]],
        "failing": [],
    }


def test_a_character_is_looked_up_as_the_normaliser_leaves_it() -> None:
    pieces = Pieces(make_wordpiece("e", "##e", casing=UNCASED))
    assert vocabulary_metrics.measure_alphabet(pieces, {"Éé": 1, "E\u0301": 1})["covered_share"] == 1


@given(
    vocabularies("aA(é", 2),
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


def test_overlap_as_written_and_folded() -> None:
    ours = Pieces(make_wordpiece("Gene", "gene", "##é", "cell"))
    theirs = Pieces(make_wordpiece("gene", "##e", "other", casing=UNCASED))
    assert vocabulary_metrics.measure_overlap(ours, theirs) == {
        "as_written": {"pieces": 1, "of_ours": 0.25, "of_theirs": round(1 / 3, 9)},
        "folded": {"pieces": 2, "of_ours": round(2 / 3, 9), "of_theirs": round(2 / 3, 9)},
    }


def test_overlap_of_word_pieces_with_sentence_pieces_compares_places_in_a_word() -> None:
    found = vocabulary_metrics.measure_overlap(
        Pieces(make_wordpiece("gene", "##s")), Pieces(make_unigram("▁gene", "gene", "s"))
    )
    assert found["as_written"]["pieces"] == 2


def test_the_longest_pieces_are_measured_without_their_mark() -> None:
    assert vocabulary_metrics.find_longest_pieces(Pieces(make_wordpiece("abc", "##abcd", "##ab")))[:2] == [
        "##abcd",
        "abc",
    ]


def test_the_curve_cuts_the_ranked_vocabulary_but_not_its_alphabet() -> None:
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


def test_the_curve_knows_unknown_words_even_where_the_ranking_has_no_unknown_token() -> None:
    points = vocabulary_metrics.measure_curve(["a", "ab"], make_wordpiece("a", "ab"), {"b": 1, "a": 1})
    assert [point["unknown_words"] for point in points] == [0.5, 0.5]


def test_the_curve_needs_word_pieces() -> None:
    with pytest.raises(ValueError, match="this is Unigram"):
        vocabulary_metrics.measure_curve(["a"], make_unigram("a"), {"a": 1})


# Vocabularies of others


def test_a_published_list_is_read_with_its_faults_and_they_are_told(tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    file.write_bytes("\ufeff[PAD]\r\n[UNK]\r\nheart\r\n\r\nbeat\r\nheart\r\n\u2028x\r\n\r\n".encode())
    with pytest.warns(UserWarning, match=r"vocab\.txt: of 7 lines 1 are blank and 1 repeat a piece"):
        tokenizer = baselines.load_tokenizer(str(file))
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "beat": 4, "heart": 5, "\u2028x": 6}
    assert Pieces(tokenizer).num_missing_ids == 2
    assert tokenizer.encode("Heart béat").tokens == ["heart", "beat"]


def test_a_list_with_capitals_is_cased_and_a_few_left_over_are_not(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("\n".join(["[PAD]", "[UNK]", "Heart", *(f"w{n}" for n in range(40))]))
    assert Pieces(baselines.load_tokenizer(str(file))).infer_casing() == AS_WRITTEN
    file.write_text("\n".join(["[PAD]", "[UNK]", "Γ", *(f"w{n}" for n in range(60))]))
    assert Pieces(baselines.load_tokenizer(str(file))).infer_casing() == UNCASED


def test_a_folder_gives_its_tokenizer_json_or_else_its_list(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\nlist\n")
    assert baselines.load_tokenizer(str(tmp_path)).token_to_id("list") == 1
    make_wordpiece("json").save(str(tmp_path / "tokenizer.json"))
    assert baselines.load_tokenizer(str(tmp_path)).token_to_id("json") == 5
    assert baselines.load_tokenizer(str(tmp_path / "tokenizer.json")).token_to_id("json") == 5


def test_what_is_no_vocabulary_is_named_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no vocabulary at .*nowhere"):
        baselines.load_tokenizer(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"neither tokenizer\.json nor vocab\.txt"):
        baselines.load_tokenizer(str(tmp_path))
    file = tmp_path / "file.json"
    for content, message in (
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"{}", r"no tokenizer\.json"),
        (b"a\nb\n", r"no line \[UNK\]"),
        (b"", r"no line \[UNK\]"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message) as caught:
            baselines.load_tokenizer(str(file))
        assert str(file) in str(caught.value)


@needs_data
@pytest.mark.parametrize(
    ("file", "punctuated", "casing"),
    [
        ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", 717, AS_WRITTEN),
        ("electramed/vocab/vocab.txt", 3015, UNCASED),
    ],
)
@pytest.mark.filterwarnings("ignore:.*lines 1 are blank")
def test_published_vocabularies_have_the_unreachable_pieces_that_are_known(
    file: str, punctuated: int, casing: Casing
) -> None:
    pieces = Pieces(baselines.load_tokenizer(str(Path(str(DATA)) / "benchmarks" / file)))
    found = vocabulary_metrics.measure_unreachable(pieces)
    assert found is not None
    assert found["with_punctuation"] == punctuated
    assert pieces.infer_casing() == casing
