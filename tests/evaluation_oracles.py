"""Other ways to count than that of evaluate/metrics: conlleval's, and scikit-learn for many cases at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support

Codes = NDArray[numpy.int64]


def cases(seed: int, classes: int, shape: tuple[int, int]) -> tuple[Codes, Codes]:
    """Random classes [cases, places], each case with its own mixture, and predictions, half of them right."""
    random = numpy.random.default_rng(seed)
    rarity = 10 ** -random.uniform(0, 2, size=(shape[0], 1, classes))
    gold = (random.exponential(size=(*shape, classes)) / rarity).argmin(axis=-1)
    others = random.integers(classes, size=shape)
    return gold, numpy.where(random.random(shape) < 0.5, gold, others)


def one_hot(codes: Codes, classes: int) -> NDArray[numpy.bool_]:
    """[..., classes]."""
    return numpy.equal(codes[..., None], numpy.arange(classes))


def micro(gold: NDArray[numpy.bool_], predicted: NDArray[numpy.bool_]) -> NDArray[numpy.float64]:
    """Precision, recall and F1 [3, cases] over all that is said of a case, [cases, ...]: is it there or not?

    To scikit-learn a case is a class of its own, so that a thousand of them take one call.
    """
    columns = [side.reshape(len(side), -1).T for side in (gold, predicted)]
    found = precision_recall_fscore_support(*columns, average=None, zero_division=0)
    return numpy.array(found[:3])


def by_class(gold: NDArray[numpy.bool_], predicted: NDArray[numpy.bool_]) -> NDArray[numpy.float64]:
    """Precision, recall and F1 [3, cases, classes], from [cases, places, classes]."""
    columns = [side.swapaxes(1, 2).reshape(-1, side.shape[1]) for side in (gold, predicted)]
    return micro(*columns).reshape(3, len(gold), -1)


def conlleval(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """How many chunks are correct, predicted and gold.

    A chunk ends, and one begins, where the tag or the type changes as ``endOfChunk`` and ``startOfChunk`` of
    conlleval.pl (Tjong Kim Sang, 2004-01-26) say; it is correct if it began and ended where the gold one
    did and no type differed in between.  No list of spans is ever made.
    """
    correct = guessed = right = 0
    for sentence, guess in zip(gold, predicted, strict=True):
        open_both = False
        last, last_guess = "O", "O"
        for tag, guess_tag in zip((*sentence, "O"), (*guess, "O"), strict=True):
            ends, guess_ends = chunk_ends(last, tag), chunk_ends(last_guess, guess_tag)
            if open_both and ends and guess_ends and kind(last) == kind(last_guess):
                correct += 1
                open_both = False
            elif open_both and (ends != guess_ends or kind(tag) != kind(guess_tag)):
                open_both = False
            begins, guess_begins = chunk_begins(last, tag), chunk_begins(last_guess, guess_tag)
            if begins and guess_begins and kind(tag) == kind(guess_tag):
                open_both = True
            right += begins
            guessed += guess_begins
            last, last_guess = tag, guess_tag
    return correct, guessed, right


def chunk_ends(last: str, tag: str) -> bool:
    if last == "O":
        return False
    return tag[0] in "BO" or kind(last) != kind(tag)


def chunk_begins(last: str, tag: str) -> bool:
    if tag == "O":
        return False
    return tag[0] == "B" or last == "O" or kind(last) != kind(tag)


def kind(tag: str) -> str:
    return tag[2:]
