"""WordPiece vocabularies from learned pieces, without the faults of the published ones.

SentencePiece marks the pieces that begin a word (``▁bind``), WordPiece those that go on (``##ing``).
Turning one into the other is simple (allenai/scibert, issue 38), and went wrong where nobody looked at
what BERT's pre-tokenisation makes of a text before the vocabulary sees it: a piece like ``0.05`` or
``##).`` is never reached.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from bioshards.corpus.errors import InvalidValueError

from .pretokenizer import PretokenizeFn

UNK: Final = "[UNK]"
SPECIAL_TOKENS: Final = ("[PAD]", UNK, "[CLS]", "[SEP]", "[MASK]")
"""BERT's five, in the order of their ids in Bio-ELECTRA's vocabulary."""
CONTINUATION_PREFIX: Final = "##"
SENTENCEPIECE_SPACE: Final = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's sign for the blank before a word."""
MAX_WORD_LENGTH: Final = 100
"""Characters of a word beyond which it is [UNK]: Hugging Face's bound, which its BertTokenizer cannot
change."""


class TooFewPiecesError(InvalidValueError):
    """There are not enough pieces for a vocabulary of the wanted size; ``largest`` is what there is."""

    def __init__(self, size: int, largest: int) -> None:
        super().__init__(
            f"the corpus gives a vocabulary of {largest:,} pieces at most, and --size is {size:,}: "
            f"give --size {largest} or less, or more text"
        )
        self.largest = largest


def wordpieces_from_sentencepiece(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces of a SentencePiece model, but ``<unk>`` and its like, as WordPiece writes them.

    The sign for a blank alone is dropped: WordPiece has no piece for a word's begin.
    """
    for piece in pieces:
        if piece.startswith(SENTENCEPIECE_SPACE):
            if len(piece) > 1:
                yield piece[1:]
        else:
            yield CONTINUATION_PREFIX + piece


def strip_prefix(piece: str) -> str:
    """A piece without the sign that it continues a word."""
    return (
        piece[len(CONTINUATION_PREFIX) :]
        if piece.startswith(CONTINUATION_PREFIX) and len(piece) > len(CONTINUATION_PREFIX)
        else piece
    )


def is_reachable(piece: str, pretokenize: PretokenizeFn) -> bool:
    """Does the pre-tokenisation leave the piece whole, where it stands?  If not, no text ever gives it."""
    text = strip_prefix(piece) if strip_prefix(piece) == piece else f"a{strip_prefix(piece)}"
    return pretokenize(text) == [text]


def assemble_vocabulary(
    size: int,
    reserved_tokens: Sequence[str],
    alphabet_pieces: Iterable[str],
    learned_pieces: Iterable[str],
    pretokenize: PretokenizeFn | None,
) -> list[str]:
    """A vocabulary of just this size, by id: what is reserved, the alphabet, then pieces as they were
    learned.

    Args:
        reserved_tokens: special tokens and others that are no pieces of words.
        alphabet_pieces: the alphabet's pieces, all of which have a place.
        learned_pieces: pieces, the best first; as many are taken as there is room for.
        pretokenize: pieces that it does not leave whole are passed over; None takes them all.

    Raises:
        ValueError: there is no room for the alphabet.
        TooFewPiecesError: there are not enough pieces.
    """
    vocabulary = dict.fromkeys(chain(reserved_tokens, alphabet_pieces))
    if len(vocabulary) > size:
        raise InvalidValueError(
            f"--size {size:,} has no room for the {len(reserved_tokens):,} reserved tokens and the alphabet, "
            f"{len(vocabulary):,} together: give a larger --size or a smaller --character-coverage"
        )
    for piece in learned_pieces:
        if len(vocabulary) == size:
            break
        if piece not in vocabulary and (pretokenize is None or is_reachable(piece, pretokenize)):
            vocabulary[piece] = None
    if len(vocabulary) < size:
        raise TooFewPiecesError(size, len(vocabulary))
    return list(vocabulary)


def sort_by_collation(vocabulary: Sequence[str], num_reserved: int) -> list[str]:
    """The same vocabulary with its pieces sorted, much as Bio-ELECTRA's is; the reserved ones stay first.

    Theirs went through a locale's collation; here it is letters whatever their case or ``##``, then code
    points.
    """
    rest = sorted(vocabulary[num_reserved:], key=lambda piece: (strip_prefix(piece).casefold(), piece))
    return [*vocabulary[:num_reserved], *rest]


SPECIAL_TOKEN_PATTERN: Final = re.compile(
    r"\[(?:PAD|UNK|CLS|SEP|MASK|unused[0-9]+)\]|<(?:pad|unk|s|/s|mask)>"
)
"""Tokens that no text yields: BERT's, those it keeps in reserve, and SentencePiece's."""
