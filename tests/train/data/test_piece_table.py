"""What is read of a vocabulary: against what the other modules read of it, and what is said of wrong ones."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from tokenizers import AddedToken, Tokenizer
from tokenizers.models import BPE, WordPiece

from bioshards.train.data.piece_table import PieceTable, VocabularyError
from bioshards.vocab.encode import Encoder
from bioshards.vocab.pretraining.tfrecord.static_masks import find_sentencepiece_continuations
from tests.support.vocab.tiny_tokenizers import SPECIAL_TOKENS, make_unigram, make_wordpiece

WORDS = ("cell", "##s", "##", "-", "##-", "β", "##β", "3", "#", "[unused1]")
ALBERT = ("▁cell", "▁(", "▁", "▁3", "s", "ing", "'s", "=", "-", "6", ")", "%", "β", "é", "€", "3a", "IL", ")."
          , "a-b", "K", "...", "<s>")  # fmt: skip


def saved(folder: Path, tokenizer: Tokenizer) -> tuple[str, int, str]:
    """What Pieces.read takes for this vocabulary: its folder, its size and its SHA-256."""
    folder.mkdir(exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    data = (folder / "tokenizer.json").read_bytes()
    return str(folder), 1 + max(tokenizer.get_vocab().values()), hashlib.sha256(data).hexdigest()


def albert() -> Tokenizer:
    """As `python -m bioshards.vocab build` makes one, with a token that is never split."""
    tokenizer = make_unigram(*ALBERT)
    special = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    tokenizer.add_tokens([AddedToken("GENE$", special=False, normalized=False)])
    return tokenizer


def named(pieces: np.ndarray[tuple[int], np.dtype[np.bool_]], tokenizer: Tokenizer) -> set[str]:
    """The pieces that a table says yes of."""
    return {str(tokenizer.id_to_token(number)) for number in np.flatnonzero(pieces).tolist()}


def test_of_wordpiece_what_begins_with_the_prefix_continues_a_word(tmp_path: Path) -> None:
    tokenizer = make_wordpiece(*WORDS)
    folder, size, sha256 = saved(tmp_path, tokenizer)
    pieces = PieceTable.load(folder, size, sha256)
    assert pieces.size == size == 15
    assert pieces.mask_id == tokenizer.token_to_id("[MASK]")
    assert named(pieces.is_continuation, tokenizer) == {"##s", "##", "##-", "##β"}
    assert pieces.is_continuation.tolist() == list(map(bool, Encoder(folder).is_continuation))


def test_of_sentencepiece_what_continues_a_word_is_what_albert_holds(tmp_path: Path) -> None:
    tokenizer = albert()
    folder, size, sha256 = saved(tmp_path, tokenizer)
    pieces = PieceTable.load(folder, size, sha256)
    assert named(pieces.is_continuation, tokenizer) == {"s", "ing", ").", "IL", "a-b", "K", "..."}
    ids = tokenizer.get_vocab()
    added = {token.content for token in tokenizer.get_added_tokens_decoder().values()}
    assert pieces.is_continuation.tolist() == list(map(bool, find_sentencepiece_continuations(ids, added)))


def test_special_are_the_special_tokens_but_for_what_stands_for_text(tmp_path: Path) -> None:
    tokenizer = make_wordpiece(*WORDS)
    pieces = PieceTable.load(*saved(tmp_path / "wordpiece", tokenizer))
    assert named(pieces.is_special, tokenizer) == set(SPECIAL_TOKENS) - {"[UNK]"}
    assert set(pieces.replacement_ids.tolist()) == {1, *range(5, 15)}
    tokenizer = albert()
    pieces = PieceTable.load(*saved(tmp_path / "albert", tokenizer))
    assert named(pieces.is_special, tokenizer) == {"<pad>", "[CLS]", "[SEP]", "[MASK]"}
    assert tokenizer.token_to_id("GENE$") in pieces.replacement_ids


def test_ids_that_no_piece_has_replace_nothing(tmp_path: Path) -> None:
    """As a vocab.txt with blank lines gives them."""
    ids = {**{piece: number for number, piece in enumerate(SPECIAL_TOKENS)}, "cell": 9}
    tokenizer = Tokenizer(WordPiece(ids, unk_token="[UNK]"))
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    pieces = PieceTable.load(*saved(tmp_path, tokenizer))
    assert pieces.size == 10
    assert pieces.replacement_ids.tolist() == [1, 9]


# What cannot be used


def refused(folder: Path, *facts: int | str) -> str:
    size, sha256 = facts or (15, "0" * 64)
    with pytest.raises(VocabularyError) as error:
        PieceTable.load(str(folder), int(size), str(sha256))
    message = str(error.value)
    assert str(folder) in message
    return message


WHERE = "run.vocabulary in the set's manifest.json names it"


def test_a_folder_that_is_none_is_said(tmp_path: Path) -> None:
    message = refused(tmp_path / "nowhere")
    assert "is not a folder" in message
    assert WHERE in message


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.touch()
    assert "is not a folder" in refused(path)


def test_a_folder_without_a_tokenizer_is_said(tmp_path: Path) -> None:
    message = refused(tmp_path)
    assert "has no tokenizer.json" in message
    assert WHERE in message


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").mkdir()
    assert "cannot be read" in refused(tmp_path)


@pytest.mark.parametrize("bytes_left", [0, 1, 200, -1])
def test_a_damaged_tokenizer_is_said(tmp_path: Path, bytes_left: int) -> None:
    _, size, sha256 = saved(tmp_path, make_wordpiece(*WORDS))
    path = tmp_path / "tokenizer.json"
    path.write_bytes(path.read_bytes()[:bytes_left])
    message = refused(tmp_path, size, sha256)
    assert "cannot be read as a tokenizer" in message
    assert WHERE in message


def test_another_vocabulary_is_said_with_both(tmp_path: Path) -> None:
    _, size, sha256 = saved(tmp_path / "one", make_wordpiece(*WORDS))
    _, other_size, other_sha256 = saved(tmp_path / "other", make_wordpiece(*WORDS, "more"))
    message = refused(tmp_path / "other", size, sha256)
    assert f"{size} pieces, SHA-256 {sha256}" in message
    assert f"{other_size} pieces, SHA-256 {other_sha256}" in message
    assert WHERE in message


def test_a_vocabulary_of_the_same_size_in_another_order_is_another(tmp_path: Path) -> None:
    _, size, sha256 = saved(tmp_path / "one", make_wordpiece("cell", "gene"))
    saved(tmp_path / "other", make_wordpiece("gene", "cell"))
    assert "is not the vocabulary of this pretraining set" in refused(tmp_path / "other", size, sha256)


def test_a_vocabulary_without_mask_is_said(tmp_path: Path) -> None:
    _, size, sha256 = saved(tmp_path, make_unigram(*ALBERT))
    assert "has no [MASK]" in refused(tmp_path, size, sha256)


def test_a_vocabulary_whose_words_cannot_be_told_is_said(tmp_path: Path) -> None:
    _, size, sha256 = saved(tmp_path, Tokenizer(BPE({"a": 0, "[MASK]": 1}, [])))
    assert "has a model of type BPE" in refused(tmp_path, size, sha256)
