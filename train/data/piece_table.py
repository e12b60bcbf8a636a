"""Properties of the vocabulary's pieces that masking needs, read from tokenizer.json.

The file must be that of the pretraining set, checked by its SHA-256: with another vocabulary, training would
run on wrong ids and save a tokenizer that does not fit the model.
"""

from __future__ import annotations

import hashlib
import json
import os
import string
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from bioshards.corpus.errors import UserError

_WORD_BOUNDARY: Final = "▁"
"""SentencePiece's mark of a word boundary."""
_PUNCTUATION: Final = frozenset(string.punctuation) - frozenset("'<=>")
_ENGLISH_CHARACTERS: Final = frozenset(string.ascii_lowercase) | _PUNCTUATION
"""ALBERT's set of English characters; its list of punctuation lacks the four above."""
_VOCAB_HINT: Final = (
    "Give --vocab the vocabulary that the pretraining set was built with; run.vocabulary in the set's "
    "manifest.json names it"
)


class VocabularyError(UserError):
    """A vocabulary is missing, damaged, or another one than the pretraining set's."""


@dataclass(frozen=True)
class PieceTable:
    """Properties of the pieces of a vocabulary, by id.

    Attributes:
        size: highest id plus one.
        mask_id: id of [MASK].
        is_special: bool[size]; True for special tokens, which are never masked and never used as replacement.
            [UNK] counts as text, as in the references.
        is_continuation: bool[size]; True for pieces that continue a word.
    """

    size: int
    mask_id: int
    is_special: npt.NDArray[np.bool_]
    is_continuation: npt.NDArray[np.bool_]

    @cached_property
    def replacement_ids(self) -> npt.NDArray[np.int64]:
        """Ids from which random replacement tokens are drawn, int64."""
        return np.flatnonzero(~self.is_special)

    @classmethod
    def load(cls, folder: str, size: int, sha256: str) -> PieceTable:
        """Load the tokenizer.json of a vocabulary.

        Args:
            size: highest id plus one, ``vocabulary_size`` in the schema of the set.
            sha256: SHA-256 of tokenizer.json, ``vocabulary_sha256`` in the schema of the set.

        Raises:
            VocabularyError: the file is missing, damaged, or of another vocabulary.
        """
        path = os.path.join(folder, "tokenizer.json")
        try:
            with open(path, "rb") as file:
                data = file.read()
        except (FileNotFoundError, NotADirectoryError):
            problem = "has no tokenizer.json" if os.path.isdir(folder) else "is not a folder"
            raise VocabularyError(f"{folder} {problem}. {_VOCAB_HINT}") from None
        except OSError as error:
            raise VocabularyError(f"{path} cannot be read: {error.strerror}. {_VOCAB_HINT}") from error
        try:
            tokenizer = Tokenizer.from_buffer(data)
        except Exception as error:  # tokenizers raises plain Exception
            raise VocabularyError(
                f"{path} cannot be read as a tokenizer ({error}). {_VOCAB_HINT}, or rebuild it"
            ) from None
        ids = tokenizer.get_vocab()
        actual = 1 + max(ids.values(), default=-1), hashlib.sha256(data).hexdigest()
        if actual != (size, sha256):
            raise VocabularyError(
                f"{path} is not the vocabulary of this pretraining set: {actual[0]:,} pieces, SHA-256 "
                f"{actual[1]}; expected {size:,} pieces, SHA-256 {sha256}. {_VOCAB_HINT}"
            )
        settings = json.loads(tokenizer.to_str())
        model, added_tokens = settings["model"], settings["added_tokens"]
        if model["type"] not in ("WordPiece", "Unigram"):
            raise VocabularyError(
                f"{path} has a model of type {model['type']}; only WordPiece and Unigram are supported. "
                "Build the pretraining set with such a vocabulary"
            )
        if "[MASK]" not in ids:
            raise VocabularyError(f"{path} has no [MASK] token. {_VOCAB_HINT}")
        prefix = model.get("continuing_subword_prefix")
        unknown = model["unk_token"] if prefix is not None else model["unk_id"]
        added = {token["content"] for token in added_tokens}
        is_special = np.ones(size, np.bool_)  # unused ids count as special
        is_continuation = np.zeros(size, np.bool_)
        for piece, token_id in ids.items():
            is_special[token_id] = False
            if piece not in added:
                starts_word = not piece.startswith(prefix) if prefix is not None else _starts_word(piece)
                is_continuation[token_id] = not starts_word
        for token in added_tokens:
            is_special[token["id"]] = token["special"] and unknown not in (token["content"], token["id"])
        return cls(size, ids["[MASK]"], is_special, is_continuation)


def _starts_word(piece: str) -> bool:
    """Return True if a SentencePiece piece starts a word, by ALBERT's rule.

    A piece starts a word if it begins with a word boundary or ``<``, if it is a punctuation mark, or if it
    contains another character than English letters and punctuation, such as a digit (``_is_start_piece_sp``
    in https://github.com/google-research/albert/blob/master/create_pretraining_data.py).
    """
    return (
        piece.startswith((_WORD_BOUNDARY, "<"))
        or piece in _PUNCTUATION
        or not _ENGLISH_CHARACTERS.issuperset(piece.lower())
    )
