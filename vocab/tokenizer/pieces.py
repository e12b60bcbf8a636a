"""Pieces, model and casing of a tokenizer, read from its JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt
from tokenizers import Tokenizer

from bioshards.vocab.tokenizer.pretokenizer import Casing
from bioshards.vocab.tokenizer.wordpiece import SENTENCEPIECE_SPACE, SPECIAL_TOKEN_PATTERN

_BATCH_TEXTS: Final = 20_000


class Surface(NamedTuple):
    """A piece as it stands in a text: True if it starts a word, and its characters."""

    is_word_initial: bool
    text: str


class Pieces:
    """Pieces of a tokenizer that text can yield: without special tokens, added tokens and [unusedN].

    Attributes:
        tokenizer: copy of the tokenizer without truncation and padding.
        model_type: "WordPiece", "Unigram" or "BPE".
        continuation_prefix: prefix of continuing pieces ("##"); "" if they have none.
        ids: id of each piece, in the order of ids.
        size: highest id plus one, the number of rows of a model's embedding.
        num_missing_ids: ids below ``size`` without a token, from repeated or blank lines of a vocab.txt.
        unknown_id: id of the unknown token; -1 if there is none.
        unknown_token: its text: [UNK], or ``<unk>`` of SentencePiece.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = Tokenizer.from_str(tokenizer.to_str())
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        tokenizer_json: dict[str, Any] = json.loads(tokenizer.to_str())
        model = tokenizer_json["model"]
        self.model_type: str = model["type"]
        self.continuation_prefix: str = model.get("continuing_subword_prefix") or ""
        added = {token["content"] for token in tokenizer_json["added_tokens"]}
        full_vocab = tokenizer.get_vocab(with_added_tokens=True)
        model_vocab = tokenizer.get_vocab(with_added_tokens=False)
        self.ids = {
            piece: piece_id
            for piece, piece_id in sorted(model_vocab.items(), key=lambda item: item[1])
            if piece not in added and not SPECIAL_TOKEN_PATTERN.fullmatch(piece)
        }
        self.size = max(full_vocab.values(), default=-1) + 1
        self.num_missing_ids = self.size - len(set(full_vocab.values()))
        unknown_id = model.get("unk_id")
        if unknown_id is None and model.get("unk_token") is not None:
            unknown_id = tokenizer.token_to_id(model["unk_token"])
        self.unknown_id: int = -1 if unknown_id is None else unknown_id
        self.unknown_token: str | None = None if unknown_id is None else tokenizer.id_to_token(unknown_id)

    def infer_casing(self) -> Casing:
        """Return the casing that the normaliser applies."""
        return Casing(lower_case=self.normalize("A") == "a", strip_accents=self.normalize("é") == "e")

    def normalize(self, text: str) -> str:
        """Return the text that the model sees."""
        normalizer = self.tokenizer.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def get_surface(self, piece: str) -> Surface:
        """Return the piece without its prefix."""
        if self.continuation_prefix:
            return Surface(
                not piece.startswith(self.continuation_prefix), piece.removeprefix(self.continuation_prefix)
            )
        return Surface(piece.startswith(SENTENCEPIECE_SPACE), piece.removeprefix(SENTENCEPIECE_SPACE))

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text, without [CLS] and [SEP].

        The library returns the characters for which SentencePiece's models have no piece; this returns
        ``<unk>``.
        """
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return [str(self.tokenizer.id_to_token(piece_id)) for piece_id in ids]

    def encode(self, texts: Sequence[str]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the ids of all texts in order, and the number of ids of each; without [CLS] and [SEP]."""
        ids: list[npt.NDArray[np.int64]] = []
        lengths: list[int] = []
        for start in range(0, len(texts), _BATCH_TEXTS):
            batch = list(texts[start : start + _BATCH_TEXTS])
            batch_ids: list[int] = []
            for encoding in self.tokenizer.encode_batch_fast(batch, add_special_tokens=False):
                text_ids = encoding.ids
                lengths.append(len(text_ids))
                batch_ids += text_ids
            ids.append(np.asarray(batch_ids, np.int64))
        return np.concatenate([np.empty(0, np.int64), *ids]), np.asarray(lengths, np.int64)
