"""Which pieces of a WordPiece vocabulary no text can yield: dead rows of a model's embeddings.

A piece counts as reachable only when a text is found that the tokenizers library itself cuts into it, so no
piece is called reachable wrongly.  The other way, the search leaves nothing out:

* The words of BERT's pre-tokenisation are made character by character, and normalising a second time changes
  no character (of all of Unicode, in all four casings; tests/vocab/report/test_vocabulary_metrics.py goes
  through them). So any beginning of a word is a word.
* Cutting is greedy from the left.  If a word has the piece, so has the word that ends where the piece ends:
  the pieces before it are the same, as each is still there and nothing longer has come to be.
* So a word-initial piece is reachable if it is a word that the library leaves whole.
* ``##x`` is, if ``x`` can stand within a word and any piece can begin one.  Take such a beginning; if a
  longer one is taken where ``x`` follows (``fl`` where ``##lol`` follows ``f``), take that one, and so on.
  It ends, as there are only so many pieces, at one right behind which ``##x`` is taken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.pieces import Pieces
from bioshards.vocab.tokenizer.wordpiece import MAX_WORD_LENGTH


class UnreachablePiece(NamedTuple):
    """A piece that no text yields, and why: "normalisation", "splitting" or "other" (it is too long, say)."""

    piece: str
    reason: str


def is_punctuation(character: str) -> bool:
    """Is the character one that BERT makes a word of its own?

    SOURCES: _is_punctuation of google-research/bert's tokenization.py.
    """
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def find_unreachable(pieces: Pieces) -> list[UnreachablePiece]:
    """The pieces of a WordPiece vocabulary that no text yields, by id.

    Raises:
        ValueError: the model is another one; what it can yield is not a matter of greedy cutting.
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
    """Texts that may yield a piece."""

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
        """Can the text stand within a word, as it is?"""
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
        """Is there a longer piece that begins the word of these two?"""
        max_extension = min(len(text), self._max_piece_length - len(beginning))
        return any(
            beginning + text[:extension] in self._vocabulary for extension in range(1, max_extension + 1)
        )
