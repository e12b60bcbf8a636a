"""What masking has to know of a vocabulary: which pieces are text, which continue a word, which is [MASK].

Read from the tokenizer.json of the very vocabulary that the pretraining set was made with; ids of another one
would be trained on without a word, and the checkpoint saved with a tokenizer that does not fit.
"""

from __future__ import annotations

import hashlib
import json
import os
import string
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from bioshards.corpus.errors import UserError

_WORD_BOUNDARY: Final = "▁"
"""What SentencePiece writes for the blank before a word."""
_PUNCTUATION: Final = frozenset(string.punctuation) - frozenset("'<=>")
_ENGLISH_CHARACTERS: Final = frozenset(string.ascii_lowercase) | _PUNCTUATION
"""What ALBERT holds to be English: its list of marks lacks these four."""
_VOCAB_HINT: Final = (
    "Give as --vocab the folder that the pretraining set was made with: the set's manifest.json names it "
    "under run.vocabulary"
)


class VocabularyError(UserError):
    """A folder has no vocabulary, or not that of the pretraining set."""


@dataclass(frozen=True)
class PieceTable:
    """The pieces of a vocabulary, by their ids.

    Attributes:
        size: the highest id and one.
        mask: the id of [MASK].
        special: bool[size]: special tokens, never masked and never put in another's place.  [UNK] is not one
            of them: it stands for text, and the references mask it as they mask all text.
        continues: bool[size]: does the piece continue a word?
    """

    size: int
    mask_id: int
    is_special: npt.NDArray[np.bool_]
    is_continuation: npt.NDArray[np.bool_]

    @cached_property
    def replacement_ids(self) -> npt.NDArray[np.int64]:
        """The ids that a random token is drawn from."""
        return np.flatnonzero(~self.is_special)

    @classmethod
    def load(cls, folder: str, size: int, sha256: str) -> PieceTable:
        """The pieces of a vocabulary's folder, which must be a pretraining set's.

        Args:
            size, sha256: of the vocabulary that the set was made with, ``vocabulary_size`` and
                ``vocabulary_sha256`` in its schema: the highest id and one, and the SHA-256 of the bytes of
                tokenizer.json.

        Raises:
            VocabularyError: there is no vocabulary, it cannot be read, or it is another one.
        """
        path = os.path.join(folder, "tokenizer.json")
        data = _read_tokenizer_file(folder, path)
        try:
            tokenizer = Tokenizer.from_buffer(data)
        except Exception as error:  # the library raises nothing more special
            raise VocabularyError(
                f"{path} is damaged, or no tokenizer: the tokenizers library says {error}. {_VOCAB_HINT}, or "
                "build the vocabulary again"
            ) from None
        ids = tokenizer.get_vocab()
        actual = 1 + max(ids.values(), default=-1), hashlib.sha256(data).hexdigest()
        if actual != (size, sha256):
            raise VocabularyError(
                f"{path} is not the vocabulary of this pretraining set: it has {actual[0]:,} pieces and the "
                f"SHA-256 {actual[1]}, and the set was made with one of {size:,} pieces and the SHA-256 "
                f"{sha256}. {_VOCAB_HINT}"
            )
        return _build_piece_table(path, json.loads(tokenizer.to_str()), ids, size)


def _read_tokenizer_file(folder: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        problem = "has no tokenizer.json" if os.path.isdir(folder) else "is no folder"
        raise VocabularyError(f"{folder} {problem}, so it is no vocabulary. {_VOCAB_HINT}") from None
    except OSError as error:
        raise VocabularyError(f"{path} cannot be read: {error.strerror}. {_VOCAB_HINT}") from error


def _build_piece_table(path: str, tokenizer_json: Any, ids: Mapping[str, int], size: int) -> PieceTable:
    """Of what the tokenizer's JSON tells."""
    model = tokenizer_json["model"]
    if model["type"] not in ("WordPiece", "Unigram"):
        raise VocabularyError(
            f"{path} is of the kind {model['type']}, of which it is not known here which pieces continue a "
            "word. Make the pretraining set with a WordPiece or a SentencePiece vocabulary"
        )
    if "[MASK]" not in ids:
        raise VocabularyError(f"{path} has no [MASK], so nothing can be masked. {_VOCAB_HINT}")
    prefix = model.get("continuing_subword_prefix")
    unknown = model["unk_token"] if prefix is not None else model["unk_id"]
    added = {token["content"] for token in tokenizer_json["added_tokens"]}
    is_special = np.ones(size, np.bool_)  # also ids that no piece has
    is_continuation = np.zeros(size, np.bool_)
    for piece, token_id in ids.items():
        is_special[token_id] = False
        if piece not in added:
            starts_word = not piece.startswith(prefix) if prefix is not None else _starts_word(piece)
            is_continuation[token_id] = not starts_word
    for token in tokenizer_json["added_tokens"]:
        is_special[token["id"]] = token["special"] and unknown not in (token["content"], token["id"])
    return PieceTable(size, ids["[MASK]"], is_special, is_continuation)


def _starts_word(piece: str) -> bool:
    """Does ALBERT hold that a SentencePiece piece begins a word?

    One does with a blank or ``<`` in front, one that is a single mark, and one in which anything but English
    letters and marks is: a figure, a Greek letter (``_is_start_piece_sp`` of
    https://github.com/google-research/albert/blob/master/create_pretraining_data.py).
    """
    return (
        piece.startswith((_WORD_BOUNDARY, "<"))
        or piece in _PUNCTUATION
        or not _ENGLISH_CHARACTERS.issuperset(piece.lower())
    )
