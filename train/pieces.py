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

_BLANK: Final = "▁"
"""What SentencePiece writes for the blank before a word."""
_MARKS: Final = frozenset(string.punctuation) - frozenset("'<=>")
_ENGLISH: Final = frozenset(string.ascii_lowercase) | _MARKS
"""What ALBERT holds to be English: its list of marks lacks these four."""
_WHERE: Final = (
    "Give as --vocab the folder that the pretraining set was made with: the set's manifest.json names it "
    "under run.vocabulary"
)


class VocabularyError(UserError):
    """A folder has no vocabulary, or not that of the pretraining set."""


@dataclass(frozen=True)
class Pieces:
    """The pieces of a vocabulary, by their ids.

    Attributes:
        size: the highest id and one.
        mask: the id of [MASK].
        special: bool[size]: special tokens, never masked and never put in another's place.  [UNK] is not one
            of them: it stands for text, and the references mask it as they mask all text.
        continues: bool[size]: does the piece continue a word?
    """

    size: int
    mask: int
    special: npt.NDArray[np.bool_]
    continues: npt.NDArray[np.bool_]

    @cached_property
    def replacements(self) -> npt.NDArray[np.int64]:
        """The ids that a random token is drawn from."""
        return np.flatnonzero(~self.special)

    @classmethod
    def read(cls, folder: str, size: int, sha256: str) -> Pieces:
        """The pieces of a vocabulary's folder, which must be a pretraining set's.

        Args:
            size, sha256: of the vocabulary that the set was made with, ``vocabulary_size`` and
                ``vocabulary_sha256`` in its schema: the highest id and one, and the SHA-256 of the bytes of
                tokenizer.json.

        Raises:
            VocabularyError: there is no vocabulary, it cannot be read, or it is another one.
        """
        path = os.path.join(folder, "tokenizer.json")
        data = _bytes(folder, path)
        try:
            tokenizer = Tokenizer.from_buffer(data)
        except Exception as error:  # the library raises nothing more special
            raise VocabularyError(
                f"{path} is damaged, or no tokenizer: the tokenizers library says {error}. {_WHERE}, or "
                "build the vocabulary again"
            ) from None
        ids = tokenizer.get_vocab()
        found = 1 + max(ids.values(), default=-1), hashlib.sha256(data).hexdigest()
        if found != (size, sha256):
            raise VocabularyError(
                f"{path} is not the vocabulary of this pretraining set: it has {found[0]:,} pieces and the "
                f"SHA-256 {found[1]}, and the set was made with one of {size:,} pieces and the SHA-256 "
                f"{sha256}. {_WHERE}"
            )
        return _pieces(path, json.loads(tokenizer.to_str()), ids, size)


def _bytes(folder: str, path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        what = "has no tokenizer.json" if os.path.isdir(folder) else "is no folder"
        raise VocabularyError(f"{folder} {what}, so it is no vocabulary. {_WHERE}") from None
    except OSError as error:
        raise VocabularyError(f"{path} cannot be read: {error.strerror}. {_WHERE}") from error


def _pieces(path: str, told: Any, ids: Mapping[str, int], size: int) -> Pieces:
    """Of what the tokenizer's JSON tells."""
    model = told["model"]
    if model["type"] not in ("WordPiece", "Unigram"):
        raise VocabularyError(
            f"{path} is of the kind {model['type']}, of which it is not known here which pieces continue a "
            "word. Make the pretraining set with a WordPiece or a SentencePiece vocabulary"
        )
    if "[MASK]" not in ids:
        raise VocabularyError(f"{path} has no [MASK], so nothing can be masked. {_WHERE}")
    prefix = model.get("continuing_subword_prefix")
    unknown = model["unk_token"] if prefix is not None else model["unk_id"]
    added = {token["content"] for token in told["added_tokens"]}
    special = np.ones(size, np.bool_)  # also ids that no piece has
    continues = np.zeros(size, np.bool_)
    for piece, number in ids.items():
        special[number] = False
        if piece not in added:
            begins = not piece.startswith(prefix) if prefix is not None else _begins(piece)
            continues[number] = not begins
    for token in told["added_tokens"]:
        special[token["id"]] = token["special"] and unknown not in (token["content"], token["id"])
    return Pieces(size, ids["[MASK]"], special, continues)


def _begins(piece: str) -> bool:
    """Does ALBERT hold that a SentencePiece piece begins a word?

    One does with a blank or ``<`` in front, one that is a single mark, and one in which anything but English
    letters and marks is: a figure, a Greek letter (``_is_start_piece_sp`` of
    https://github.com/google-research/albert/blob/master/create_pretraining_data.py).
    """
    return piece.startswith((_BLANK, "<")) or piece in _MARKS or not _ENGLISH.issuperset(piece.lower())
