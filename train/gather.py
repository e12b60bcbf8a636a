"""Rows of a pretraining set, copied out of their shards and laid end to end.

Everything that is wrong with a row is said here, before a model sees it: a shard whose bytes have changed
since it was opened, or were changed before without changing its size, must not end the process or be learned.
"""

from __future__ import annotations

from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from bioshards.corpus.pretraining import NO_LABEL

from .mapped import AGAIN, TrainingDataError
from .shards import Shards


class Rows(NamedTuple):
    """R rows of T tokens together.

    Attributes:
        ids: uint16[T] or uint32[T]; read-only.
        offsets: int64[R + 1]: where each row begins, and T.
        splits: int64[R]: where in its row segment B begins; 0 for none.
        labels: int64[R]: of next-sentence prediction or sentence order; -100 for none.
        rows: int64[R]: their numbers in the set.
        epochs: int64[R]: in which they are asked for.
    """

    ids: NDArray[np.uint16] | NDArray[np.uint32]
    offsets: NDArray[np.int64]
    splits: NDArray[np.int64]
    labels: NDArray[np.int64]
    rows: NDArray[np.int64]
    epochs: NDArray[np.int64]


def gather(shards: Shards, epochs: NDArray[np.int64], rows: NDArray[np.int64]) -> Rows:
    """These rows, in this order.

    Args:
        epochs: of each row, for :class:`Rows`.
        rows: numbers from 0 to below ``shards.rows``.

    Raises:
        TrainingDataError: a row is not as one of a pretraining set is.
    """
    places = shards.places
    blocks = np.searchsorted(shards.ends, rows, side="right")
    within = rows - shards.ends[blocks] + shards.blocks[blocks]
    files = [shards.files[number] for number in places.file[blocks].tolist()]
    at = (places.offsets[blocks] + within).tolist()
    begins = np.array([file.offsets[place] for file, place in zip(files, at, strict=True)], np.int64)
    ends = np.array([file.offsets[place + 1] for file, place in zip(files, at, strict=True)], np.int64)
    at = (places.splits[blocks] + within).tolist()
    splits = np.array([file.splits[place] for file, place in zip(files, at, strict=True)], np.int64)
    labels = np.full(len(rows), NO_LABEL, np.int64)
    if shards.labelled:
        at = (places.labels[blocks] + within).tolist()
        labels[:] = [file.labels[place] for file, place in zip(files, at, strict=True)]
    sizes = ends - begins
    whole = (begins >= 0) & (sizes > 0) & (sizes <= shards.length) & (ends <= places.tokens[blocks])
    if not whole.all():
        _refuse(shards, rows, ~whole, f"it is no row of 1 to {shards.length} tokens")
    if not (splits < sizes).all():
        _refuse(shards, rows, splits >= sizes, "its second segment begins after its end")
    known = (labels == NO_LABEL) | (labels == 0) | (labels == 1)
    if not known.all():
        _refuse(shards, rows, ~known, "its label is none of 0, 1 and -100")
    first = places.ids[blocks] + begins
    parts = zip(files, first.tolist(), (first + sizes).tolist(), strict=True)
    joined = b"".join([file.ids[begin:end] for file, begin, end in parts])
    ids: NDArray[Any] = np.frombuffer(joined, np.uint16 if shards.vocabulary_size <= 1 << 16 else np.uint32)
    offsets = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    if len(ids) and ids.max() >= shards.vocabulary_size:
        place = int(np.argmax(ids >= shards.vocabulary_size))
        of = np.arange(len(rows)) == np.searchsorted(offsets, place, side="right") - 1
        _refuse(shards, rows, of, f"its token {ids[place]} is not of {shards.vocabulary_size:,} pieces")
    return Rows(ids, offsets, splits, labels, rows, epochs)


def _refuse(shards: Shards, rows: NDArray[np.int64], wrong: NDArray[np.bool_], why: str) -> NoReturn:
    """Name the first row that is wrong, by its file and its number there."""
    row = rows[np.argmax(wrong)]
    of_block = shards.places.file
    block = int(np.searchsorted(shards.ends, row, side="right"))
    first = int(shards.blocks[of_block < of_block[block]].sum())
    path = shards.files[int(of_block[block])].path
    raise TrainingDataError(f"{path} is damaged at its row {row - first:,}: {why}. {AGAIN}.")
