"""Independent metrics to compare evaluate/metrics with: conlleval, and scikit-learn on many cases at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy
from numpy.typing import NDArray

LabelCodes = NDArray[numpy.int64]


def random_classifications(seed: int, classes: int, shape: tuple[int, int]) -> tuple[LabelCodes, LabelCodes]:
    """Draw classes [cases, items], each case with its own mixture, and predictions that are half right."""
    random = numpy.random.default_rng(seed)
    rarity = 10 ** -random.uniform(0, 2, size=(shape[0], 1, classes))
    gold = (random.exponential(size=(*shape, classes)) / rarity).argmin(axis=-1)
    random_predictions = random.integers(classes, size=shape)
    return gold, numpy.where(random.random(shape) < 0.5, gold, random_predictions)


def one_hot(codes: LabelCodes, classes: int) -> NDArray[numpy.bool_]:
    """[..., classes]."""
    return numpy.equal(codes[..., None], numpy.arange(classes))


def micro_scores(gold: NDArray[numpy.bool_], predicted: NDArray[numpy.bool_]) -> NDArray[numpy.float64]:
    """Precision, recall and F1 [3, cases] over all that is said of a case, [cases, ...]: is it there or not?

    To scikit-learn a case is a class of its own, so that a thousand of them take one call.
    """
    from sklearn.metrics import precision_recall_fscore_support

    columns = [side.reshape(len(side), -1).T for side in (gold, predicted)]
    scores = precision_recall_fscore_support(*columns, average=None, zero_division=0)
    return numpy.array(scores[:3])


def scores_by_class(gold: NDArray[numpy.bool_], predicted: NDArray[numpy.bool_]) -> NDArray[numpy.float64]:
    """Precision, recall and F1 [3, cases, classes], from [cases, places, classes]."""
    columns = [side.swapaxes(1, 2).reshape(-1, side.shape[1]) for side in (gold, predicted)]
    return micro_scores(*columns).reshape(3, len(gold), -1)


def conlleval(gold: Sequence[Sequence[str]], predicted: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Count the correct, predicted and gold chunks.

    A chunk ends, and one begins, where the tag or the type changes as ``endOfChunk`` and ``startOfChunk`` of
    conlleval.pl (Tjong Kim Sang, 2004-01-26) say; it is correct if it began and ended where the gold one
    did and no type differed in between.  It counts without a list of spans.
    """
    correct = predicted_count = gold_count = 0
    for sentence, guess in zip(gold, predicted, strict=True):
        both_open = False
        last, last_guess = "O", "O"
        for tag, guess_tag in zip((*sentence, "O"), (*guess, "O"), strict=True):
            ends, guess_ends = is_chunk_end(last, tag), is_chunk_end(last_guess, guess_tag)
            if both_open and ends and guess_ends and entity_type(last) == entity_type(last_guess):
                correct += 1
                both_open = False
            elif both_open and (ends != guess_ends or entity_type(tag) != entity_type(guess_tag)):
                both_open = False
            begins, guess_begins = is_chunk_start(last, tag), is_chunk_start(last_guess, guess_tag)
            if begins and guess_begins and entity_type(tag) == entity_type(guess_tag):
                both_open = True
            gold_count += begins
            predicted_count += guess_begins
            last, last_guess = tag, guess_tag
    return correct, predicted_count, gold_count


def is_chunk_end(last: str, tag: str) -> bool:
    if last == "O":
        return False
    return tag[0] in "BO" or entity_type(last) != entity_type(tag)


def is_chunk_start(last: str, tag: str) -> bool:
    if tag == "O":
        return False
    return tag[0] == "B" or last == "O" or entity_type(last) != entity_type(tag)


def entity_type(tag: str) -> str:
    return tag[2:]
