"""Unreachable pieces of a WordPiece vocabulary: those that no text yields, so that their embeddings stay
untrained.

A piece is reachable if the tokenizers library yields it for some text.  The search finds such a text if there
is one:

* BERT's pre-tokenization splits character by character, and normalising twice changes nothing (for all of
  Unicode in all four casings; tests/vocab/report/test_vocabulary_metrics.py).  So any prefix of a word is a
  word.
* Matching is greedy from the left.  If a word contains the piece, so does the word that ends where the piece
  ends: the pieces before it are the same.
* So a word-initial piece is reachable if it is a word that the library leaves whole.
* ``##x`` is reachable if ``x`` can stand within a word and some piece can start one.  Take such a start; if a
  longer piece matches where ``x`` follows (``fl`` where ``##lol`` follows ``f``), take that one, and so on.
  There are finitely many pieces, so this ends with a start that ``##x`` follows.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.pieces import Pieces
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH


class UnreachablePiece(NamedTuple):
    """A piece that no text yields, with the reason: "normalisation", "splitting" or "other" (too long)."""

    piece: str
    reason: str


def is_punctuation(character: str) -> bool:
    """Return True if BERT makes the character a word of its own.

    SOURCES: _is_punctuation of google-research/bert's tokenization.py.
    """
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def find_unreachable(pieces: Pieces) -> list[UnreachablePiece]:
    """Return the pieces of a WordPiece vocabulary that no text yields, in the order of ids.

    Raises:
        ValueError: the model is not WordPiece, which matches greedily.
    """
    if pieces.model_type != "WordPiece":
        raise InvalidValueError(
            f"Reachability is defined for WordPiece vocabularies, and this is {pieces.model_type}."
        )
    search = _WitnessSearch(pieces)
    pending = {piece: search.iter_witnesses(piece) for piece in pieces.ids}
    unreachable_pieces: list[str] = []
    while pending:
        candidates = {piece: next(witnesses, None) for piece, witnesses in pending.items()}
        unreachable_pieces += [piece for piece, text in candidates.items() if text is None]
        attempts = [(piece, text) for piece, text in candidates.items() if text is not None]
        encodings = pieces.tokenizer.encode_batch([text for _, text in attempts], add_special_tokens=False)
        pending = {
            piece: pending[piece]
            for (piece, _), encoding in zip(attempts, encodings, strict=True)
            if pieces.ids[piece] not in encoding.ids
        }
    return [
        UnreachablePiece(piece, search.find_reason(piece))
        for piece in sorted(unreachable_pieces, key=pieces.ids.__getitem__)
    ]


class _WitnessSearch:
    """Search for texts that yield a piece."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._vocabulary = set(pieces.tokenizer.get_vocab(with_added_tokens=False))
        surfaces = [pieces.get_surface(piece) for piece in pieces.ids]
        self._max_piece_length = max((len(text) for _, text in surfaces), default=0)
        beginnings = [
            text for is_word_initial, text in surfaces if is_word_initial and self._is_word_internal(text)
        ]
        self._beginnings_by_length = sorted(beginnings, key=len)  # of the same length, in the order of ids

    def _split_words(self, text: str) -> list[str]:
        normalized = self._pieces.normalize(text)
        pre_tokenizer = self._pieces.tokenizer.pre_tokenizer
        return (
            [normalized]
            if pre_tokenizer is None
            else [word for word, _ in pre_tokenizer.pre_tokenize_str(normalized)]
        )

    def _is_word_internal(self, text: str) -> bool:
        """Return True if the text can stand within a word unchanged."""
        return bool(text) and self._split_words(f"a{text}") == [f"a{text}"]

    def find_reason(self, piece: str) -> str:
        is_word_initial, text = self._pieces.get_surface(piece)
        if not text or "".join(self._pieces.normalize(text).split()) != text:
            return "normalisation"
        is_left_whole = self._split_words(text) == [text] if is_word_initial else self._is_word_internal(text)
        return "other" if is_left_whole else "splitting"

    def iter_witnesses(self, piece: str) -> Iterator[str]:
        is_word_initial, text = self._pieces.get_surface(piece)
        if is_word_initial:
            yield text
        elif self._is_word_internal(text):
            for beginning in self._beginnings_by_length:
                if len(beginning) + len(text) > MAX_WORD_LENGTH:
                    break
                if not self._has_longer_beginning(beginning, text):
                    yield beginning + text

    def _has_longer_beginning(self, beginning: str, text: str) -> bool:
        """Return True if a longer piece starts the word that the two form."""
        max_extension = min(len(text), self._max_piece_length - len(beginning))
        return any(
            beginning + text[:extension] in self._vocabulary for extension in range(1, max_extension + 1)
        )
