"""Metrics of a vocabulary on words: fertility, whole words, [UNK], used and unreachable pieces, alphabet.

All are computed from counted words: each distinct word is encoded once and weighted by its count.  A word is
encoded as if it stood between blanks, which for BERT's tokenizers is how it is encoded in any text.

Unreachable pieces are those that no text yields, so that their embeddings stay untrained: the normaliser or
the pre-tokenization changes or splits them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from tokenizers import Tokenizer

from bioshards.vocab.tokenizer.hugging_face import encode_words
from bioshards.vocab.tokenizer.wordpiece import (
    CONTINUATION_PREFIX,
    SPECIAL_TOKEN_PATTERN,
    count_characters,
    is_reachable,
)

MAX_EXAMPLES: Final = 40
"""Maximum number of examples in a list: unreachable pieces, characters without a piece."""
_RATIO_DIGITS: Final = 9
"""Decimal digits of ratios, enough to show one word of a billion."""


class Pieces:
    """Pieces of a tokenizer that text can yield: without special tokens, added tokens and [unusedN].

    Attributes:
        tokenizer: copy of the tokenizer without truncation and padding.
        model_type: "WordPiece", "Unigram" or "BPE".
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
        added = {token["content"] for token in tokenizer_json["added_tokens"]}
        model_vocab = tokenizer.get_vocab(with_added_tokens=False)
        self.ids = {
            piece: piece_id
            for piece, piece_id in sorted(model_vocab.items(), key=lambda item: item[1])
            if piece not in added and not SPECIAL_TOKEN_PATTERN.fullmatch(piece)
        }
        all_ids = set(tokenizer.get_vocab(with_added_tokens=True).values())
        self.size = max(all_ids, default=-1) + 1
        self.num_missing_ids = self.size - len(all_ids)
        unknown_id = model.get("unk_id")
        if unknown_id is None and model.get("unk_token") is not None:
            unknown_id = tokenizer.token_to_id(model["unk_token"])
        self.unknown_id: int = -1 if unknown_id is None else unknown_id
        self.unknown_token: str | None = None if unknown_id is None else tokenizer.id_to_token(unknown_id)

    def normalize(self, text: str) -> str:
        """Return the text that the model sees."""
        normalizer = self.tokenizer.normalizer
        return text if normalizer is None else str(normalizer.normalize_str(text))

    def split_words(self, text: str) -> list[str]:
        """Return the words of a text."""
        normalized, pre_tokenizer = self.normalize(text), self.tokenizer.pre_tokenizer
        if pre_tokenizer is None:
            return [normalized]
        return [word for word, _ in pre_tokenizer.pre_tokenize_str(normalized)]

    def tokenize(self, text: str) -> list[str]:
        """Return the pieces of a text, without [CLS] and [SEP].

        The library returns the characters for which SentencePiece's models have no piece; this returns
        ``<unk>``.
        """
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return [str(self.tokenizer.id_to_token(piece_id)) for piece_id in ids]


def rounded_ratio(numerator: float, denominator: float) -> float:
    """Return a fraction or mean with nine digits; 0 if the denominator is 0."""
    return round(float(numerator) / float(denominator), _RATIO_DIGITS) if denominator else 0.0


def measure_words(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Measure how a vocabulary splits words.

    Args:
        words: occurrences of each distinct word, as written.

    Returns:
        ``fertility``: pieces per word, [UNK] being one piece; ``per_100_characters``: pieces per 100
        characters; ``whole``: fraction of words that are one piece; ``unknown_words`` and
        ``unknown_characters``: fractions in [UNK]; ``used`` and ``unused``: numbers of pieces.
    """
    texts = list(words)
    counts = np.fromiter(words.values(), np.int64, len(texts))
    ids, lengths = encode_words(pieces.tokenizer, texts)
    ends = np.cumsum(lengths)
    unknown_cumulative = np.concatenate([[0], np.cumsum(ids == pieces.unknown_id)])
    unknown_counts = unknown_cumulative[ends] - unknown_cumulative[ends - lengths]
    total, piece_total = int(counts.sum()), int(counts @ lengths)
    character_total = sum(len(word) * count for word, count in words.items())
    unknown_characters = sum(
        int(counts[index]) * _count_unknown_characters(pieces, texts[index])
        for index in np.flatnonzero(unknown_counts)
    )
    used = len(set(np.unique(ids).tolist()) & set(pieces.ids.values()))
    return {
        "fertility": rounded_ratio(piece_total, total),
        "per_100_characters": rounded_ratio(100 * piece_total, character_total),
        "whole": rounded_ratio(int(counts[(lengths == 1) & (unknown_counts == 0)].sum()), total),
        "unknown_words": rounded_ratio(int(counts[unknown_counts > 0].sum()), total),
        "unknown_characters": rounded_ratio(unknown_characters, character_total),
        "used": used,
        "unused": len(pieces.ids) - used,
    }


def _count_unknown_characters(pieces: Pieces, word: str) -> int:
    encoding = pieces.tokenizer.encode(word, add_special_tokens=False)
    return sum(
        end - start
        for token_id, (start, end) in zip(encoding.ids, encoding.offsets, strict=True)
        if token_id == pieces.unknown_id
    )


def measure_alphabet(pieces: Pieces, words: Mapping[str, int]) -> dict[str, Any]:
    """Measure which characters of the words have a piece.

    A character is covered if its normalised form has a piece at the start of a word and, unless it always is
    a word of its own, one within a word.  A word of covered characters is [UNK] only if it has more than 100.

    Returns:
        ``characters``: number of distinct ones; ``covered``: number of covered ones; ``covered_share``: their
        fraction of all occurrences; ``missing``: the most frequent without a piece, with counts.
    """
    counts = count_characters(words)
    missing = sorted(
        (character for character in counts if not _is_covered(pieces, character)),
        key=lambda character: (-counts[character], character),
    )
    num_missing = sum(counts[character] for character in missing)
    return {
        "characters": len(counts),
        "covered": len(counts) - len(missing),
        "covered_share": rounded_ratio(counts.total() - num_missing, counts.total()),
        "missing": [[character, counts[character]] for character in missing[:MAX_EXAMPLES]],
    }


def _is_covered(pieces: Pieces, character: str) -> bool:
    if pieces.model_type != "WordPiece":
        return pieces.unknown_id not in pieces.tokenizer.encode(character, add_special_tokens=False).ids
    return all(
        letter in pieces.ids
        and (CONTINUATION_PREFIX + letter in pieces.ids or len(pieces.split_words(f"a{letter}")) > 1)
        for letter in pieces.normalize(character).strip()
    )


def measure_unreachable(pieces: Pieces) -> dict[str, Any] | None:
    """Count the pieces that no text yields; None for models other than WordPiece.

    Returns:
        ``all``: their number; ``share``: their fraction; ``examples``: some of them, in the order of ids.
    """
    if pieces.model_type != "WordPiece":
        return None
    unreachable_pieces = [piece for piece in pieces.ids if not is_reachable(piece, pieces.split_words)]
    return {
        "all": len(unreachable_pieces),
        "share": rounded_ratio(len(unreachable_pieces), len(pieces.ids)),
        "examples": unreachable_pieces[:: max(1, -(-len(unreachable_pieces) // MAX_EXAMPLES))],
    }
