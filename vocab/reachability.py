"""Which pieces of a WordPiece vocabulary no text can yield: dead rows of a model's embeddings.

A piece counts as reachable only when a text is found that the tokenizers library itself cuts into it, so no
piece is called reachable wrongly.  The other way, the search leaves nothing out:

* The words of BERT's pre-tokenisation are made character by character, and normalising a second time changes
  no character (of all of Unicode, in all four casings; tests/test_measure.py goes through them).
  So any beginning of a word is a word.
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

from .pieces import Pieces
from .wordpiece import LONGEST_WORD


class Unreachable(NamedTuple):
    """A piece that no text yields, and why: "normalisation", "splitting" or "other" (it is too long, say)."""

    piece: str
    why: str


def is_punctuation(character: str) -> bool:
    """Is the character one that BERT makes a word of its own?

    SOURCES: _is_punctuation of google-research/bert's tokenization.py.
    """
    if character.isascii():
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")


def unreachable(pieces: Pieces) -> list[Unreachable]:
    """The pieces of a WordPiece vocabulary that no text yields, by id.

    Raises:
        ValueError: the model is another one; what it can yield is not a matter of greedy cutting.
    """
    if pieces.model != "WordPiece":
        raise InvalidValueError(
            f"Reachability is defined for WordPiece vocabularies, and this is {pieces.model}."
        )
    search = _Search(pieces)
    waiting = {piece: search.witnesses(piece) for piece in pieces.ids}
    lost: list[str] = []
    while waiting:
        candidates = {piece: next(witnesses, None) for piece, witnesses in waiting.items()}
        lost += [piece for piece, text in candidates.items() if text is None]
        tried = [(piece, text) for piece, text in candidates.items() if text is not None]
        encodings = pieces.tokenizer.encode_batch([text for _, text in tried], add_special_tokens=False)
        waiting = {
            piece: waiting[piece]
            for (piece, _), encoding in zip(tried, encodings, strict=True)
            if pieces.ids[piece] not in encoding.ids
        }
    return [Unreachable(piece, search.why(piece)) for piece in sorted(lost, key=pieces.ids.__getitem__)]


class _Search:
    """Texts that may yield a piece."""

    def __init__(self, pieces: Pieces) -> None:
        self._pieces = pieces
        self._all = set(pieces.tokenizer.get_vocab(with_added_tokens=False))
        surfaces = [pieces.surface(piece) for piece in pieces.ids]
        self._longest = max((len(text) for _, text in surfaces), default=0)
        beginnings = [text for begins, text in surfaces if begins and self._joins(text)]
        self._beginnings = sorted(beginnings, key=len)  # of the same length, in the order of ids

    def _words(self, text: str) -> list[str]:
        normal = self._pieces.normal(text)
        pre_tokenizer = self._pieces.tokenizer.pre_tokenizer
        return (
            [normal]
            if pre_tokenizer is None
            else [word for word, _ in pre_tokenizer.pre_tokenize_str(normal)]
        )

    def _joins(self, text: str) -> bool:
        """Can the text stand within a word, as it is?"""
        return bool(text) and self._words(f"a{text}") == [f"a{text}"]

    def why(self, piece: str) -> str:
        begins, text = self._pieces.surface(piece)
        if not text or "".join(self._pieces.normal(text).split()) != text:
            return "normalisation"
        whole = self._words(text) == [text] if begins else self._joins(text)
        return "other" if whole else "splitting"

    def witnesses(self, piece: str) -> Iterator[str]:
        begins, text = self._pieces.surface(piece)
        if begins:
            yield text
        elif self._joins(text):
            for beginning in self._beginnings:
                if len(beginning) + len(text) > LONGEST_WORD:
                    break
                if not self._goes_on(beginning, text):
                    yield beginning + text

    def _goes_on(self, beginning: str, text: str) -> bool:
        """Is there a longer piece that begins the word of these two?"""
        room = min(len(text), self._longest - len(beginning))
        return any(beginning + text[:more] in self._all for more in range(1, room + 1))
