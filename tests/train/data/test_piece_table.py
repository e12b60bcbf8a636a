"""The piece table of a vocabulary: agreement with the encoder, and errors of invalid vocabularies."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE, WordPiece

from bioshards.train.data.piece_table import PieceTable, VocabularyError
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, make_unigram, make_wordpiece

WORDS = ("cell", "##s", "##", "-", "##-", "β", "##β", "3", "#", "[unused1]")
ALBERT = ("▁cell", "▁(", "▁", "▁3", "s", "ing", "'s", "=", "-", "6", ")", "%", "β", "é", "€", "3a", "IL", ")."
          , "a-b", "K", "...", "<s>")  # fmt: skip


def save_vocabulary(folder: Path, tokenizer: Tokenizer) -> tuple[str, int, str]:
    """Save a tokenizer, and return the arguments of ``PieceTable.load``: directory, size and SHA-256."""
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    data = (folder / "tokenizer.json").read_bytes()
    return str(folder), 1 + max(tokenizer.get_vocab().values()), hashlib.sha256(data).hexdigest()


def make_albert_tokenizer() -> Tokenizer:
    """Make a tokenizer as ``bioshards vocab build`` does, with a token that is never split."""
    tokenizer = make_unigram(*ALBERT)
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    tokenizer.add_tokens([AddedToken("GENE$", special=False, normalized=False)])
    return tokenizer


def list_selected(is_selected: np.ndarray[tuple[int], np.dtype[np.bool_]], tokenizer: Tokenizer) -> set[str]:
    """Return the pieces at the true entries of an array."""
    return {str(tokenizer.id_to_token(number)) for number in np.flatnonzero(is_selected).tolist()}


def test_wordpiece_continuations_have_the_prefix(tmp_path: Path) -> None:
    tokenizer = make_wordpiece(*WORDS)
    folder, size, sha256 = save_vocabulary(tmp_path, tokenizer)
    pieces = PieceTable.load(folder, size, sha256)
    assert pieces.size == size == 15
    assert pieces.mask_id == tokenizer.token_to_id("[MASK]")
    assert list_selected(pieces.is_continuation, tokenizer) == {"##s", "##", "##-", "##β"}


def test_sentencepiece_continuations_equal_albert_code(tmp_path: Path) -> None:
    tokenizer = make_albert_tokenizer()
    folder, size, sha256 = save_vocabulary(tmp_path, tokenizer)
    pieces = PieceTable.load(folder, size, sha256)
    assert list_selected(pieces.is_continuation, tokenizer) == {"s", "ing", ").", "IL", "a-b", "K", "..."}


def test_special_pieces_exclude_the_unknown_token(tmp_path: Path) -> None:
    tokenizer = make_wordpiece(*WORDS)
    pieces = PieceTable.load(*save_vocabulary(tmp_path / "wordpiece", tokenizer))
    assert list_selected(pieces.is_special, tokenizer) == set(SPECIAL_TOKENS) - {"[UNK]"}
    assert set(pieces.replacement_ids.tolist()) == {1, *range(5, 15)}
    tokenizer = make_albert_tokenizer()
    pieces = PieceTable.load(*save_vocabulary(tmp_path / "albert", tokenizer))
    assert list_selected(pieces.is_special, tokenizer) == {"<pad>", "[CLS]", "[SEP]", "[MASK]"}
    assert tokenizer.token_to_id("GENE$") in pieces.replacement_ids


def test_missing_ids_are_no_replacements(tmp_path: Path) -> None:
    """A ``vocab.txt`` with blank lines has such ids."""
    ids = {**{piece: number for number, piece in enumerate(SPECIAL_TOKENS)}, "cell": 9}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    pieces = PieceTable.load(*save_vocabulary(tmp_path, tokenizer))
    assert pieces.size == 10
    assert pieces.replacement_ids.tolist() == [1, 9]


# Errors


def read_load_error(folder: Path, *size_and_sha256: int | str) -> str:
    size, sha256 = size_and_sha256 or (15, "0" * 64)
    with pytest.raises(VocabularyError) as error:
        PieceTable.load(str(folder), int(size), str(sha256))
    message = str(error.value)
    assert str(folder) in message
    return message


VOCABULARY_ORIGIN = "run.vocabulary in the set's manifest.json names it"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere", "is not a folder"),
        ("a file", "is not a folder"),
        ("empty", "has no tokenizer.json"),
        ("unreadable", "cannot be read"),
    ],
)
def test_directory_without_a_tokenizer_is_refused(name: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a file").touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "unreadable" / "tokenizer.json").mkdir(parents=True)
    error = read_load_error(tmp_path / name)
    assert message in error
    assert VOCABULARY_ORIGIN in error


@pytest.mark.parametrize("bytes_left", [0, 1, 200, -1])
def test_damaged_tokenizer_is_refused(tmp_path: Path, bytes_left: int) -> None:
    _, size, sha256 = save_vocabulary(tmp_path, make_wordpiece(*WORDS))
    path = tmp_path / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:bytes_left])
    message = read_load_error(tmp_path, size, sha256)
    assert "cannot be read as a tokenizer" in message
    assert VOCABULARY_ORIGIN in message


def test_error_of_another_vocabulary_names_both(tmp_path: Path) -> None:
    _, size, sha256 = save_vocabulary(tmp_path / "one", make_wordpiece(*WORDS))
    _, other_size, other_sha256 = save_vocabulary(tmp_path / "other", make_wordpiece(*WORDS, "more"))
    message = read_load_error(tmp_path / "other", size, sha256)
    assert f"{size} pieces, SHA-256 {sha256}" in message
    assert f"{other_size} pieces, SHA-256 {other_sha256}" in message
    assert VOCABULARY_ORIGIN in message


def test_vocabulary_without_mask_is_refused(tmp_path: Path) -> None:
    _, size, sha256 = save_vocabulary(tmp_path, make_unigram(*ALBERT))
    assert "has no [MASK]" in read_load_error(tmp_path, size, sha256)


def test_vocabulary_of_another_model_type_is_refused(tmp_path: Path) -> None:
    _, size, sha256 = save_vocabulary(tmp_path, Tokenizer(BPE({"a": 0, "[MASK]": 1}, [])))
    assert "has a model of type BPE" in read_load_error(tmp_path, size, sha256)
