"""WordPiece vocabularies from learned pieces, without the faults of the published ones.

SentencePiece marks the pieces that begin a word (``▁bind``), WordPiece those that go on (``##ing``).
Turning one into the other is simple (allenai/scibert, issue 38), and went wrong where nobody looked at
what BERT's pre-tokenisation makes of a text before the vocabulary sees it: a piece like ``0.05`` or
``##).`` is never reached.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from bioshards.corpus.errors import InvalidValueError

from .words import Split

UNK: Final = "[UNK]"
SPECIALS: Final = ("[PAD]", UNK, "[CLS]", "[SEP]", "[MASK]")
"""BERT's five, in the order of their ids in Bio-ELECTRA's vocabulary."""
CONTINUES: Final = "##"
SPACE: Final = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's sign for the blank before a word."""
LONGEST_WORD: Final = 100
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


def from_sentencepiece(pieces: Iterable[str]) -> Iterator[str]:
    """The pieces of a SentencePiece model, but ``<unk>`` and its like, as WordPiece writes them.

    The sign for a blank alone is dropped: WordPiece has no piece for a word's begin.
    """
    for piece in pieces:
        if piece.startswith(SPACE):
            if len(piece) > 1:
                yield piece[1:]
        else:
            yield CONTINUES + piece


def bare(piece: str) -> str:
    """A piece without the sign that it continues a word."""
    return piece[len(CONTINUES) :] if piece.startswith(CONTINUES) and len(piece) > len(CONTINUES) else piece


def reachable(piece: str, words: Split) -> bool:
    """Does the pre-tokenisation leave the piece whole, where it stands?  If not, no text ever gives it."""
    text = bare(piece) if bare(piece) == piece else f"a{bare(piece)}"
    return words(text) == [text]


def assemble(
    size: int, reserved: Sequence[str], forms: Iterable[str], learned: Iterable[str], words: Split | None
) -> list[str]:
    """A vocabulary of just this size, by id: what is reserved, the alphabet, then pieces as they were
    learned.

    Args:
        reserved: special tokens and others that are no pieces of words.
        forms: the alphabet's pieces, all of which have a place.
        learned: pieces, the best first; as many are taken as there is room for.
        words: pieces that it does not leave whole are passed over; None takes them all.

    Raises:
        ValueError: there is no room for the alphabet.
        TooFewPiecesError: there are not enough pieces.
    """
    vocabulary = dict.fromkeys(chain(reserved, forms))
    if len(vocabulary) > size:
        raise InvalidValueError(
            f"--size {size:,} has no room for the {len(reserved):,} reserved tokens and the alphabet, "
            f"{len(vocabulary):,} together: give a larger --size or a smaller --coverage"
        )
    for piece in learned:
        if len(vocabulary) == size:
            break
        if piece not in vocabulary and (words is None or reachable(piece, words)):
            vocabulary[piece] = None
    if len(vocabulary) < size:
        raise TooFewPiecesError(size, len(vocabulary))
    return list(vocabulary)


def by_collation(vocabulary: Sequence[str], reserved: int) -> list[str]:
    """The same vocabulary with its pieces sorted, much as Bio-ELECTRA's is; the reserved ones stay first.

    Theirs went through a locale's collation; here it is letters whatever their case or ``##``, then code
    points.
    """
    rest = sorted(vocabulary[reserved:], key=lambda piece: (bare(piece).casefold(), piece))
    return [*vocabulary[:reserved], *rest]
