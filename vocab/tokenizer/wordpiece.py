"""WordPiece vocabularies from learned pieces, without the defects of the published ones.

SentencePiece marks the pieces that start a word (``▁bind``), WordPiece those that continue one (``##ing``).
The published conversions (allenai/scibert, issue 38) ignored BERT's pre-tokenization, so that pieces like
``0.05`` or ``##).`` are never used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.pretokenizer import PretokenizeFn

UNK: Final = "[UNK]"
SPECIAL_TOKENS: Final = ("[PAD]", UNK, "[CLS]", "[SEP]", "[MASK]")
"""Special tokens of BERT, in the order of their ids in Bio-ELECTRA's vocabulary."""
CONTINUATION_PREFIX: Final = "##"
SENTENCEPIECE_SPACE: Final = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's sign for the blank before a word."""
MAX_WORD_LENGTH: Final = 100
"""Maximum characters of a word; longer ones are [UNK], as in Hugging Face's BertTokenizer."""


class TooFewPiecesError(InvalidValueError):
    """The corpus yields fewer pieces than requested; ``largest`` is the size that it can fill."""

    def __init__(self, size: int, largest: int) -> None:
        super().__init__(
            f"the corpus gives a vocabulary of {largest:,} pieces at most, and --size is {size:,}: "
            f"give --size {largest} or less, or more text"
        )
        self.largest = largest


def wordpieces_from_sentencepiece(pieces: Iterable[str]) -> Iterator[str]:
    """Convert the pieces of a SentencePiece model, without ``<unk>`` and the like, to WordPiece's notation.

    The sign for a blank alone is dropped: WordPiece has no piece for the start of a word.
    """
    for piece in pieces:
        if piece.startswith(SENTENCEPIECE_SPACE):
            if len(piece) > 1:
                yield piece[1:]
        else:
            yield CONTINUATION_PREFIX + piece


def strip_prefix(piece: str) -> str:
    """Return a piece without ``##``."""
    return (
        piece[len(CONTINUATION_PREFIX) :]
        if piece.startswith(CONTINUATION_PREFIX) and len(piece) > len(CONTINUATION_PREFIX)
        else piece
    )


def is_reachable(piece: str, pretokenize: PretokenizeFn) -> bool:
    """Return True if the pre-tokenization leaves the piece whole at its position in a word."""
    text = strip_prefix(piece) if strip_prefix(piece) == piece else f"a{strip_prefix(piece)}"
    return pretokenize(text) == [text]


def assemble_vocabulary(
    size: int,
    reserved_tokens: Sequence[str],
    alphabet_pieces: Iterable[str],
    learned_pieces: Iterable[str],
    pretokenize: PretokenizeFn | None,
) -> list[str]:
    """Return a vocabulary of exactly ``size`` pieces in the order of ids: reserved, alphabet, learned.

    Args:
        reserved_tokens: special tokens and other tokens that are not parts of words.
        alphabet_pieces: pieces of the alphabet, all of which are taken.
        learned_pieces: pieces, best first, taken while there is room.
        pretokenize: skip pieces that this pre-tokenization splits; None takes all.

    Raises:
        ValueError: the size is too small for the alphabet.
        TooFewPiecesError: there are too few pieces.
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
    """Sort the pieces after the reserved ones in dictionary order, much like Bio-ELECTRA's.

    Bio-ELECTRA's order is that of a locale.  This is the order of casefolded letters without ``##``, then of
    code points.
    """
    rest = sorted(vocabulary[num_reserved:], key=lambda piece: (strip_prefix(piece).casefold(), piece))
    return [*vocabulary[:num_reserved], *rest]


SPECIAL_TOKEN_PATTERN: Final = re.compile(
    r"\[(?:PAD|UNK|CLS|SEP|MASK|unused[0-9]+)\]|<(?:pad|unk|s|/s|mask)>"
)
"""Tokens that text never yields: BERT's, its reserved ones, and SentencePiece's."""
