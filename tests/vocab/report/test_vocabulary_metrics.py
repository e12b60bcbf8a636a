"""Metrics of a vocabulary, compared with hand-computed numbers, brute force and published files."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from bioshards.vocab.report import vocabulary_report
from bioshards.vocab.report.vocabulary_report import Pieces
from bioshards.vocab.tokenizer.hugging_face import measure_casing
from bioshards.vocab.tokenizer.pretokenizer import AS_WRITTEN, Casing, Pretokenizer
from bioshards.vocab.tokenizer.published_vocabulary import load_published_vocabulary
from tests.support.real_data import DATA, needs_data
from tests.support.vocab.tiny_tokenizers import UNCASED, make_unigram, make_wordpiece

SMALL = ("heart", "##beat", "b", "e", "a", "t", "##e", "##a", "##t", "(")
COUNTS = {"heart": 4, "beat": 3, "heartbeat": 2, "xray": 2, "(": 1}


def test_fertility_and_shares_are_weighted_by_counts() -> None:
    # heart | b ##e ##a ##t | heart ##beat | [UNK] | (
    num_pieces, num_characters = 4 * 1 + 3 * 4 + 2 * 2 + 2 * 1 + 1 * 1, 4 * 5 + 3 * 4 + 2 * 9 + 2 * 4 + 1
    result = vocabulary_report.measure_words(Pieces(make_wordpiece(*SMALL)), COUNTS)
    assert result == {
        "fertility": round(num_pieces / 12, 9),
        "per_100_characters": round(100 * num_pieces / num_characters, 9),
        "cut": ["beat", "heartbeat"],
        "whole": round((4 + 1) / 12, 9),
        "unknown_words": round(2 / 12, 9),
        "unknown_characters": round(2 * 4 / num_characters, 9),
        "used": 7,
        "unused": 3,
    }


def test_unknown_word_is_not_whole_and_lone_accent_gives_no_piece() -> None:
    result = vocabulary_report.measure_words(
        Pieces(make_wordpiece("a", casing=UNCASED)), {"É": 1, "A": 1, "\u0301": 2}
    )
    assert (result["whole"], result["unknown_words"], result["fertility"]) == (0.25, 0.25, 0.5)


def test_no_words_give_zeros() -> None:
    result = vocabulary_report.measure_words(Pieces(make_wordpiece("a")), {})
    assert result["fertility"] == result["whole"] == result["used"] == 0


def test_unigram_model_counts_only_unknown_characters() -> None:
    result = vocabulary_report.measure_words(
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
    assert vocabulary_report.measure_words(Pieces(tokenizer), {"aaaa": 1, "a": 1})["fertility"] == 2.5
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


def list_unreachable(tokenizer: Tokenizer) -> list[str]:
    result = vocabulary_report.measure_unreachable(Pieces(tokenizer))
    assert result is not None
    assert result["all"] == len(result["examples"])
    examples: list[str] = result["examples"]
    return examples


@given(draw_vocabularies("aAé-中", 2), st.sampled_from([AS_WRITTEN, UNCASED]))
def test_no_text_yields_an_unreachable_piece(pieces: list[str], casing: Casing) -> None:
    tokenizer = make_wordpiece(*pieces, casing=casing)
    assert not set(list_unreachable(tokenizer)) & list_yielded_pieces(tokenizer, "aAé-中", 4)


def test_unreachable_pieces_are_in_the_order_of_ids() -> None:
    pieces = ("a", "##).", "(1", "##)", "0.5", "##a", "Gene", "é", "##中", "中", "##", "##b", ")")
    assert list_unreachable(make_wordpiece(*pieces, casing=UNCASED)) == [
        *("##).", "(1", "##)", "0.5", "Gene", "é", "##中", "##")
    ]


def test_unigram_model_has_no_reachability() -> None:
    assert vocabulary_report.measure_unreachable(Pieces(make_unigram("▁a", "a"))) is None


@pytest.mark.thorough
@pytest.mark.parametrize("lower_case", [False, True])
@pytest.mark.parametrize("strip_accents", [False, True])
def test_normalization_is_idempotent_for_every_character(lower_case: bool, strip_accents: bool) -> None:
    normalizer = Casing(lower_case, strip_accents).make_normalizer()
    characters = "\n".join(chr(n) for n in range(0x21, sys.maxunicode + 1) if not 0xD800 <= n < 0xE000)
    once = normalizer.normalize_str(characters)
    assert normalizer.normalize_str(once).split() == once.split()


# Alphabet


def test_character_is_covered_with_both_forms_or_as_a_word_of_its_own() -> None:
    pieces = Pieces(make_wordpiece("a", "##a", "b", "##c", "(", "中", "ab"))
    result = vocabulary_report.measure_alphabet(pieces, {"aa": 5, "ab": 1, "c": 2, "(": 3, "中": 1, "é": 4})
    assert result == {
        "characters": 6,
        "covered": 3,
        "covered_share": round((11 + 3 + 1) / 22, 9),
        "missing": [["é", 4], ["c", 2], ["b", 1]],
    }


def test_alphabet_coverage_uses_normalized_characters() -> None:
    pieces = Pieces(make_wordpiece("e", "##e", casing=UNCASED))
    assert vocabulary_report.measure_alphabet(pieces, {"Éé": 1, "E\u0301": 1})["covered_share"] == 1


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
    missing = {character for character, _ in vocabulary_report.measure_alphabet(view, words)["missing"]}
    known = {word: 1 for word in words if not missing & set(word)}
    assert vocabulary_report.measure_words(view, known)["unknown_words"] == 0


# Published vocabularies


def test_published_list_with_blank_and_repeated_lines_is_read_with_a_notice(tmp_path: Path) -> None:
    file = tmp_path / "vocab.txt"
    file.write_bytes("\ufeff[PAD]\r\n[UNK]\r\nheart\r\n\r\nbeat\r\nheart\r\n\u2028x\r\n\r\n".encode())
    published = load_published_vocabulary(str(file))
    assert "vocab.txt: of 7 lines 1 are blank and 1 repeat a piece" in published.notice
    tokenizer = published.tokenizer
    assert tokenizer.get_vocab() == {"[PAD]": 0, "[UNK]": 1, "beat": 4, "heart": 5, "\u2028x": 6}
    assert Pieces(tokenizer).num_missing_ids == 2
    assert tokenizer.encode("Heart béat").tokens == ["heart", "beat"]


def test_casing_is_inferred_from_the_share_of_capitals(tmp_path: Path) -> None:
    file = tmp_path / "list"
    file.write_text("\n".join(["[PAD]", "[UNK]", "Heart", *(f"w{n}" for n in range(40))]))
    assert measure_casing(load_published_vocabulary(str(file)).tokenizer) == AS_WRITTEN
    file.write_text("\n".join(["[PAD]", "[UNK]", "Γ", *(f"w{n}" for n in range(60))]))
    assert measure_casing(load_published_vocabulary(str(file)).tokenizer) == UNCASED


def test_error_names_invalid_vocabulary_and_reason(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no vocabulary at .*nowhere"):
        load_published_vocabulary(str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match=r"neither tokenizer\.json nor vocab\.txt"):
        load_published_vocabulary(str(tmp_path))
    file = tmp_path / "file.json"
    for content, message in (
        (b"\xff\xfe", "byte 0 is not UTF-8"),
        (b"{}", r"no tokenizer\.json"),
        (b"a\nb\n", r"no line \[UNK\]"),
        (b"", r"no line \[UNK\]"),
    ):
        file.write_bytes(content)
        with pytest.raises(ValueError, match=message) as caught:
            load_published_vocabulary(str(file))
        assert str(file) in str(caught.value)


@needs_data
@pytest.mark.parametrize(
    ("file", "num_unreachable", "casing"),
    [
        ("bio_electra/pmc_2017_abstracts_wp_vocab_sorted.txt", 760, AS_WRITTEN),
        ("electramed/vocab/vocab.txt", 3783, UNCASED),
    ],
)
def test_published_vocabularies_have_known_numbers_of_unreachable_pieces(
    file: str, num_unreachable: int, casing: Casing
) -> None:
    pieces = Pieces(load_published_vocabulary(str(Path(str(DATA)) / "benchmarks" / file)).tokenizer)
    result = vocabulary_report.measure_unreachable(pieces)
    assert result is not None
    assert result["all"] == num_unreachable
    assert measure_casing(pieces.tokenizer) == casing
