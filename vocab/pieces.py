"""What a tokenizer is made of, read off the tokenizers library's object: its pieces, model and casing.

The library says little of a tokenizer but through its JSON; it is read here, once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from .others import SPECIAL
from .wordpiece import SPACE
from .words import Casing

_BATCH: Final = 20_000


class Surface(NamedTuple):
    """A piece as it stands in a text: does it begin a word, and its characters."""

    begins: bool
    text: str


class Pieces:
    """The pieces of a tokenizer: those that text can yield, neither special nor added nor [unusedN].

    Attributes:
        tokenizer: a copy that neither cuts nor pads.
        model: "WordPiece", "Unigram" or "BPE".
        prefix: what continuing pieces begin with ("##"), "" where they have no mark.
        ids: the id of each piece, in the order of ids.
        size: the highest id and one, which is how many rows a model's embedding has.
        holes: ids below that which no token has, as of repeated or blank lines of a vocab.txt.
        unknown: the id of [UNK]; -1 where the model has none.
        unknown_token: [UNK] as the model writes it, ``<unk>`` in SentencePiece's.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        told: dict[str, Any] = json.loads(tokenizer.to_str())
        model = told["model"]
        self.model: str = model["type"]
        self.prefix: str = model.get("continuing_subword_prefix") or ""
        added = {token["content"] for token in told["added_tokens"]}
        everything = tokenizer.get_vocab(with_added_tokens=True)
        own = tokenizer.get_vocab(with_added_tokens=False)
        self.ids = {
            piece: number
            for piece, number in sorted(own.items(), key=lambda item: item[1])
            if piece not in added and not SPECIAL.fullmatch(piece)
        }
        self.size = max(everything.values(), default=-1) + 1
        self.holes = self.size - len(set(everything.values()))
        unknown = model.get("unk_id")
        if unknown is None and model.get("unk_token") is not None:
            unknown = tokenizer.token_to_id(model["unk_token"])
        self.unknown: int = -1 if unknown is None else unknown
        self.unknown_token: str | None = None if unknown is None else tokenizer.id_to_token(unknown)

    def casing(self) -> Casing:
        """What the normaliser makes of letters, by its answers."""
        return Casing(lower_case=self.normal("A") == "a", strip_accents=self.normal("é") == "e")

    def normal(self, text: str) -> str:
        """The text as the model sees it."""
        normalizer = self.tokenizer.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def surface(self, piece: str) -> Surface:
        """The piece without its mark."""
        if self.prefix:
            return Surface(not piece.startswith(self.prefix), piece.removeprefix(self.prefix))
        return Surface(piece.startswith(SPACE), piece.removeprefix(SPACE))

    def tokens(self, text: str) -> list[str]:
        """The pieces of a text, without [CLS] and [SEP].

        Where SentencePiece's models have no piece the library says the characters; here it is ``<unk>``.
        """
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return [str(self.tokenizer.id_to_token(number)) for number in ids]

    def encode(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The ids of all texts in a row, and how many each text has; [CLS] and [SEP] are not added."""
        ids: list[npt.NDArray[np.int64]] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _BATCH):
            batch = list(texts[start : start + _BATCH])
            flat: list[int] = []
            for encoding in self.tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                found = encoding.ids
                lengths.append(len(found))
                flat += found
            ids.append(np.asarray(flat, np.int64))
        return np.concatenate([np.empty(0, np.int64), *ids]), np.asarray(lengths, np.int64)
