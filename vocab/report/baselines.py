"""Published vocabularies to compare with.

The vocabularies of SciBERT, PubMedBERT and Bio-ELECTRA are lists of pieces, one a line, whose line number is
the id (BERT's vocab.txt); newer ones are a tokenizer.json.  A list does not state its casing, which is
inferred from the pieces.
"""

from __future__ import annotations

import os
import warnings
from typing import Final

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.pre_tokenizers import BertPreTokenizer

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH, SPECIAL_TOKEN_PATTERN, UNK

_CASED_THRESHOLD: Final = 1 / 50
"""Fraction of pieces with a capital letter above which a vocabulary is cased."""


def load_tokenizer(path: str) -> Tokenizer:
    """Load the tokenizer of a published vocabulary.

    Args:
        path: a tokenizer.json, a WordPiece vocab.txt of any name, or a folder with one of the two.

    Raises:
        FileNotFoundError: the path does not exist, or the folder has neither file.
        ValueError: the file has another format, or is not UTF-8.

    Warns:
        UserWarning: a list has blank or repeated lines, which are ignored.
    """
    vocabulary_path = _find_vocabulary_file(path)
    try:
        with open(vocabulary_path, encoding="utf-8-sig", newline="") as stream:
            text = stream.read()
    except UnicodeDecodeError as error:
        raise InvalidValueError(
            f"{vocabulary_path} is no vocabulary: byte {error.start} is not UTF-8. Give a tokenizer.json or "
            "a vocab.txt."
        ) from None
    if text.lstrip().startswith("{") and not vocabulary_path.endswith(".txt"):
        try:
            return Tokenizer.from_str(text)
        except Exception as error:  # the library raises a bare Exception
            raise InvalidValueError(
                f"{vocabulary_path} is no tokenizer.json that the tokenizers library reads: {error}"
            ) from None
    return _tokenizer_from_vocab_txt(vocabulary_path, text)


def _find_vocabulary_file(path: str) -> str:
    if not os.path.isdir(path):
        if os.path.exists(path):
            return path
        raise InputNotFoundError(
            f"There is no vocabulary at {path}. Give a tokenizer.json, a vocab.txt or their folder."
        )
    for name in ("tokenizer.json", "vocab.txt"):
        if os.path.exists(os.path.join(path, name)):
            return os.path.join(path, name)
    raise InputNotFoundError(
        f"The folder {path} has neither tokenizer.json nor vocab.txt: it is no vocabulary."
    )


def infer_casing(pieces: list[str]) -> Casing:
    """Return the casing of pieces: as written, or that of BERT's uncased models (lower case, no accents).

    A few capitals do not make a vocabulary cased: SciBERT's uncased one has 175 pieces with a capital, 0.6 %,
    from its alphabet.  Cased ones have capitals in a fifth of their pieces and more.
    """
    num_with_capitals = sum(
        piece != piece.lower() for piece in pieces if not (piece[:1] == "[" and piece[-1:] == "]")
    )
    return (
        Casing()
        if num_with_capitals > _CASED_THRESHOLD * len(pieces)
        else Casing(lower_case=True, strip_accents=True)
    )


def _tokenizer_from_vocab_txt(path: str, text: str) -> Tokenizer:
    lines = [line.rstrip("\r") for line in text.split("\n")]
    while lines and not lines[-1]:
        lines.pop()
    # A piece's id is its line, so a line that is not used leaves a hole and moves no other piece.
    ids = {line: line_index for line_index, line in enumerate(lines) if line}
    if UNK not in ids:
        raise InvalidValueError(
            f"{path} is no WordPiece vocabulary: it has no line {UNK}. "
            "Give a vocab.txt with one piece a line."
        )
    num_blank = lines.count("")
    num_repeated = len(lines) - num_blank - len(ids)
    if num_blank or num_repeated:
        warnings.warn(
            f"{path}: of {len(lines)} lines {num_blank} are blank and {num_repeated} repeat a piece; a "
            "repeated piece has the id of its last line, as in BERT's own code",
            stacklevel=3,
        )
    tokenizer = Tokenizer(WordPiece(ids, unk_token=UNK, max_input_chars_per_word=MAX_WORD_LENGTH))
    tokenizer.normalizer = infer_casing(list(ids)).make_normalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    special_tokens = [
        piece for piece in ids if SPECIAL_TOKEN_PATTERN.fullmatch(piece) and "unused" not in piece
    ]
    tokenizer.add_special_tokens(
        [AddedToken(piece, special=True, normalized=False) for piece in special_tokens]
    )
    return tokenizer
