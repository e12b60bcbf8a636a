"""Subword trainers: models from counts equal models from text, and training is reproducible."""

from __future__ import annotations

import io
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import sentencepiece as library
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.vocab.tokenizer import sentencepiece_model
from bioshards.vocab.tokenizer.wordpiece import TooFewPiecesError
from bioshards.vocab.training import training_process
from bioshards.vocab.training.subword_trainers import (
    read_pieces,
    train_bpe_wordpieces,
    train_unigram,
    train_wordpieces,
)
from bioshards.vocab.training.unigram_seeds import find_seeds
from tests.support.hypothesis_profiles import examples

SYLLABLES = ["ga", "lo", "mi", "ter", "sen", "quo", "ba", "rid", "ol", "α", "ne", "kin", "ase", "1", "7"]
CONTROLS = ["[CLS]", "[SEP]", "[MASK]"]


def make_words(number: int = 400) -> dict[str, int]:
    """Make frequent and rare words of random syllables."""
    draw = random.Random(1)
    words: Counter[str] = Counter({".": 3000, "the": 1500})
    for rank in range(1, number):
        words["".join(draw.choices(SYLLABLES, k=draw.randint(1, 5)))] += 2000 // rank + 1
    return dict(words)


WORDS = make_words()
ALPHABET = sorted({character for word in WORDS for character in word})


def make_lines(words: dict[str, int]) -> list[str]:
    """Return shuffled lines of text in which each word has its count."""
    occurrences = list(Counter(words).elements())
    random.Random(2).shuffle(occurrences)
    return [" ".join(occurrences[start : start + 12]) for start in range(0, len(occurrences), 12)]


def train_from_text(size: int, **options: Any) -> list[tuple[str, float]]:
    """Train the library on the text itself."""
    model = io.BytesIO()
    library.SentencePieceTrainer.train(
        sentence_iterator=iter(make_lines(WORDS)),
        model_writer=model,
        model_type="unigram",
        vocab_size=size,
        normalization_rule_name="identity",
        character_coverage=1.0,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        minloglevel=3,
        **options,
    )
    return read_pieces(model.getvalue())


@pytest.mark.parametrize("size", [60, 250])
def test_unigram_from_counts_equals_unigram_from_text(size: int, tmp_path: Path) -> None:
    file = tmp_path / "seeds.tsv"
    ordered = sorted(WORDS.items(), key=lambda pair: (-pair[1], pair[0]))
    file.write_text(
        "".join(f"{piece}\t{count}\n" for piece, count in find_seeds(ordered, 16)), encoding="utf-8"
    )
    expected = train_from_text(size, seed_sentencepieces_file=str(file))
    assert read_pieces(train_unigram(WORDS, size)) == expected


def test_frequent_words_are_pieces_of_a_unigram_model() -> None:
    found = dict(read_pieces(train_unigram(WORDS, 250)))
    letters = [word for word in WORDS if re.fullmatch("[a-z]{1,15}", word)]  # no piece mixes them with others
    assert {f"▁{word}" for word in sorted(letters, key=lambda word: -WORDS[word])[:60]} <= found.keys()


def test_wordpieces_are_trained_on_each_occurrence() -> None:
    found = train_wordpieces({"abab": 5, "ab": 3, "cd": 7}, 12, "abcd")
    assert found == [*"abcd", "##a", "##b", "##c", "##d", "ab", "cd", "##ab", "abab"]


def test_words_are_repeated_by_their_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_process, "CHARACTERS_PER_STRING", 20)
    words = [("a", 100), ("bcd", 7), ("x" * 50, 3), ("e", 1)]
    texts = list(training_process.repeat_words(words))
    assert Counter(" ".join(texts).split()) == Counter(dict(words))
    assert max(map(len, texts)) <= 20 + 51
    assert len(texts) > 10


TRAINING_SCRIPT = """
import hashlib, json, os, sys
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
from bioshards.vocab.training.subword_trainers import train_bpe_wordpieces, train_unigram, train_wordpieces
words = json.load(sys.stdin)
alphabet = sorted({character for word in words for character in word})
print(hashlib.sha256(train_unigram(words, 250, alphabet)).hexdigest())
print("\\n".join(train_bpe_wordpieces(words, 250, alphabet, 32)))
print("\\n".join(train_wordpieces(words, 400, alphabet)))
"""


def train_in_subprocess(words: dict[str, int], temporary: Path) -> str:
    """Train in a subprocess on one core with this TMPDIR; return the digests and pieces."""
    temporary.mkdir()
    completed = subprocess.run(
        [sys.executable, "-c", TRAINING_SCRIPT],
        input=json.dumps(words),
        env={**os.environ, "TMPDIR": str(temporary), "PYTHONIOENCODING": "utf-8"},
        capture_output=True,
        encoding="utf-8",
        check=True,
    )
    assert completed.stderr == ""
    assert list(temporary.iterdir()) == []
    return completed.stdout


def test_bytes_are_independent_of_word_order_process_and_directory(tmp_path: Path) -> None:
    once = train_in_subprocess(WORDS, tmp_path / "once")
    shuffled = list(WORDS.items())
    random.Random(3).shuffle(shuffled)
    again = train_in_subprocess(dict(shuffled), tmp_path / "in another place")
    assert once == again
    assert once.splitlines()[-400:] == train_wordpieces(WORDS, 400, ALPHABET)


def test_every_character_of_the_alphabet_is_a_piece() -> None:
    ascii_and_more = [chr(code) for code in range(33, 127)] + ["é", "Ω", "𝛽", "中"]
    found = dict(read_pieces(train_unigram(WORDS, 300, ascii_and_more)))
    assert {*ascii_and_more, *ALPHABET, "▁"} <= found.keys()


def test_rare_character_of_a_huge_corpus_is_a_piece() -> None:
    words = {"a": 10**12, "b": 1, "cc": 1}
    assert {"b", "c"} <= dict(read_pieces(train_unigram(words, 6))).keys()


def test_max_piece_length() -> None:
    words = {"phosphatidylinositol": 50, "phosphatidyl": 20, "inositol": 30}
    letters = set("".join(words))
    assert "▁phosphatidylinositol" not in dict(read_pieces(train_unigram(words, 16)))
    assert "phosphatidylinositol" in train_bpe_wordpieces(words, 32, letters, 30)
    assert "phosphatidylinositol" not in train_bpe_wordpieces(words, 32, letters, 16)


@pytest.mark.parametrize("words", [WORDS, {"word": 1}, {"gene": 4, "genes": 3}])
def test_error_of_a_too_small_corpus_names_the_largest_size(words: dict[str, int]) -> None:
    with pytest.raises(TooFewPiecesError, match=r"pieces at most, and --size is 20,000") as caught:
        train_unigram(words, 20_000)
    assert f"{caught.value.largest:,}" in str(caught.value)
    assert len(read_pieces(train_unigram(words, caught.value.largest))) == caught.value.largest


def test_too_small_corpus_gives_fewer_wordpieces() -> None:
    found = train_wordpieces({"word": 1}, 30_522, "dorw")
    assert len(found) == 11  # four characters in two forms, three merges
    assert found[-1] == "word"
    assert set(train_bpe_wordpieces({"word": 1}, 30_522, "dorw", 32)) >= {"w", "##d", "word"}


def test_size_without_room_for_the_characters_is_the_library_s_error() -> None:
    with pytest.raises(ValueError, match=r"sentencepiece cannot train on these 1 words: .*size"):
        train_unigram({"abc": 9}, 6, "xyz", CONTROLS)
    assert len(read_pieces(train_unigram({"abc": 9}, 12, "xyz", CONTROLS))) == 12
    with pytest.raises(ValueError, match=r"sentencepiece cannot train on these 1 words: .*size"):
        train_bpe_wordpieces({"abcd": 1}, 3, set("abcd"), 32)
    assert train_wordpieces({"abc": 9}, 6, "abc") == ["a", "b", "c", "##a", "##b", "##c"]


@pytest.mark.parametrize("words", [{}, {"": 4}, {"a\tb": 3}, {"x" * 101: 5}, {"a": 0}, {"▁": 2, "▅": 2}])
def test_nothing_to_train_on_is_an_error(words: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="no word to train on"):
        train_unigram(words, 100)
    with pytest.raises(ValueError, match="no word to train on"):
        train_bpe_wordpieces(words, 100, "bcd", 32)
    with pytest.raises(ValueError, match="no word to train on"):
        train_wordpieces(words, 100, "bcd")


def test_sentencepiece_error_is_reported(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"cannot train on these 1 words: .*already defined"):
        train_unigram({"abc": 9}, 12, control_symbols=["[CLS]", "[CLS]"])
    assert capfd.readouterr() == ("", "")


HOSTILE = {
    "a▁b": 5,
    "▁": 9,
    "▅": 9,
    "nul\0": 4,
    "bell\x07": 4,
    "tab\t": 4,
    "line\n": 4,
    "car\rriage": 4,
    "two words": 4,
    "[CLS]": 6,
    "x[SEP]": 6,
    "<unk>": 6,
    "##a": 5,
    "[UNK]": 5,
    "y" * 10_000: 2,
    "\u2028": 3,
    "\u200b": 3,
    "\ufffd": 3,
    "\uffff": 3,
    "\U0010ffff": 3,
    "e\u0301": 3,
    "zero": 0,
}


def test_unusual_words_are_trained_without_output(capfd: pytest.CaptureFixture[str]) -> None:
    alphabet = sorted({character for word in HOSTILE for character in word})
    model = train_unigram({**WORDS, **HOSTILE}, 200, alphabet, CONTROLS)
    found = [piece for piece, _ in read_pieces(model)]
    assert len(set(found)) == 200
    assert {"\x07", "\u2028", "\U0010ffff", "[CLS]"} <= set(found)
    assert not [piece for piece in found if {*piece} & {*"\0\t\n\r ▅"}]
    all_characters = sorted({*alphabet, *ALPHABET})
    pieces = train_bpe_wordpieces({**WORDS, **HOSTILE}, 200, all_characters, 32)
    assert len(set(pieces)) == 200
    assert {"\x07", "\u2028"} <= {piece.removeprefix("##") for piece in pieces}
    assert not [piece for piece in pieces if {*piece} & {*"\0\t\n\r ▁▅"}]
    assert len(set(train_wordpieces({**WORDS, **HOSTILE}, 250, all_characters))) == 250
    assert capfd.readouterr() == ("", "")


@settings(max_examples=examples(40))
@given(st.dictionaries(st.text(max_size=8), st.integers(0, 10**15), max_size=8))
def test_any_words_give_a_model_or_an_explained_error(words: dict[str, int]) -> None:
    alphabet = {character for word in words for character in word}
    size = 12 + len(alphabet)
    error = ""
    try:
        num_pieces = len(read_pieces(train_unigram(words, size, alphabet)))
        num_wordpieces = len(train_bpe_wordpieces(words, 2 * size, alphabet, 32))
    except ValueError as caught:
        error = str(caught)
    if error:
        assert "pieces at most" in error or "no word to train on" in error
    else:
        assert num_pieces == size
        assert num_wordpieces <= 2 * size


def test_removed_option_leaves_the_pieces() -> None:
    model = train_unigram(WORDS, 250, control_symbols=CONTROLS)
    assert b"bioshards-" not in model
    assert sentencepiece_model.remove_option(model, b"no such value") == model
    # An option is taken out, the piece of that name stays.
    shorter = sentencepiece_model.remove_option(model, b"[SEP]")
    assert len(shorter) == len(model) - len(b"[SEP]") - 3
    assert read_pieces(shorter) == read_pieces(model)


# Byte-pair encoding of wordpieces


@given(st.dictionaries(st.text("abcβ(", min_size=1, max_size=6), st.integers(1, 50), min_size=1))
def test_bpe_wordpieces_occur_in_the_words(words: dict[str, int]) -> None:
    letters = set("".join(words))
    found = train_bpe_wordpieces(words, 500, letters, 32)
    assert len(found) == len(set(found))
    for piece in found:
        text = piece.removeprefix("##")
        inside = piece.startswith("##")
        assert any(text in word[1:] if inside else word.startswith(text) for word in words), piece


def test_bpe_wordpieces_skip_words_with_other_or_private_characters() -> None:
    found = train_bpe_wordpieces({"ab": 3, "a\U000f0001": 99, "az": 99}, 3, {"a", "b", "\U000f0001"}, 32)
    assert set(found) == {"ab", "##b", "a"}
