"""Rows of a pretraining set as the features that google-research's trainers of three models read.

Each function gives, by the feature's name, an array of one line a row, padded to one length; ``tfrecord.py``
writes them.  Names, lengths and padding are the references'.

A row without a pair to judge (``NO_LABEL``) has no place in the files of BERT and ALBERT: their trainers
know 0 and 1 only, and would learn either as the truth.  :func:`pairs` leaves such rows out.

SOURCES:
    https://github.com/google-research/electra/blob/master/build_pretraining_dataset.py
    https://github.com/google-research/bert/blob/master/create_pretraining_data.py
    https://github.com/google-research/albert/blob/master/create_pretraining_data.py
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.pretraining import NO_LABEL

from .static_masks import Masked

Features = dict[str, np.ndarray[Any, Any]]


def pairs(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that have a label; those that have none are ``batch.num_rows`` less."""
    return batch.filter(pc.not_equal(batch["label"], pa.scalar(NO_LABEL, pa.int8())))


def electra(batch: pa.RecordBatch, length: int, pad: int) -> Features:
    """``input_ids``, ``input_mask`` (1 where it is no padding) and ``segment_ids`` (1 in segment B).

    Args:
        length: that of all features.
        pad: [PAD]'s id.  The references write 0, which is [PAD] in their vocabularies.  Where it is not,
            the trainers see no difference, for they go by the mask, and who looks for [PAD] is right.

    Raises:
        ValueError: a row is longer.
    """
    ids = batch["input_ids"]
    lengths = pc.list_value_length(ids).to_numpy()
    used = _used(lengths, length)
    second = batch["split"].to_numpy()[:, None]
    return {
        "input_ids": _padded(ids.flatten().to_numpy(), used, pad),
        "input_mask": used.astype(np.int64),
        "segment_ids": (used & (second > 0) & (np.arange(length) >= second)).astype(np.int64),
    }


def bert(
    batch: pa.RecordBatch, masked: Sequence[Masked], length: int, max_predictions: int, pad: int
) -> Features:
    """ELECTRA's three, of which ``input_ids`` are masked, and what is to be predicted.

    These are ``masked_lm_positions``, ``masked_lm_ids`` and ``masked_lm_weights`` (1.0, and 0.0 where there
    are fewer than ``max_predictions``), and ``next_sentence_labels``: 1 where segment B is another text's.

    Args:
        batch: rows that have labels (:func:`pairs`).
        masked: each row's static masks, in the order of the rows.
        length, pad: as for :func:`electra`.

    Raises:
        ValueError: a row is longer, or has more predictions or no label; there are not as many masks as rows.
    """
    if len(masked) != batch.num_rows:
        raise InvalidValueError(f"{batch.num_rows} rows have the masks of {len(masked)}. Mask each row once.")
    labels = batch["label"].to_numpy()
    if not np.isin(labels, (0, 1)).all():
        raise InvalidValueError(
            "a row has no label of 0 or 1, and its file needs one. Leave it out with pairs()."
        )
    features = electra(batch, length, pad)
    features["input_ids"] = _padded(_joined(row.ids for row in masked), features["input_mask"] > 0, pad)
    used = _used(np.array([len(row.positions) for row in masked], np.int64), max_predictions)
    return features | {
        "masked_lm_positions": _padded(_joined(row.positions for row in masked), used, 0),
        "masked_lm_ids": _padded(_joined(row.labels for row in masked), used, 0),
        "masked_lm_weights": used.astype(np.float32),
        "next_sentence_labels": labels.astype(np.int64)[:, None],
    }


def albert(
    batch: pa.RecordBatch,
    masked: Sequence[Masked],
    length: int,
    max_predictions: int,
    pad: int,
    continues: bytes,
) -> Features:
    """BERT's features, and ``token_boundary``: 1 where a word or a special token begins, before masking.

    ``next_sentence_labels`` is 1 where the segments have changed places: the reference has kept the name.

    Args:
        continues: for each id 1 where its piece continues a word (as in ``Masking``).
        Others, and errors: as for :func:`bert`.
    """
    features = bert(batch, masked, length, max_predictions, pad)
    begins = 1 - np.frombuffer(continues, np.uint8).astype(np.int64)
    ids = batch["input_ids"].flatten().to_numpy()
    return features | {"token_boundary": _padded(begins[ids], features["input_mask"] > 0, 0)}


def _used(lengths: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Which places of an array of ``length`` columns are taken, where line i has ``lengths[i]`` values."""
    if lengths.max(initial=0) > length:
        raise InvalidValueError(
            f"a row has {lengths.max()} values, and is to be padded to {length}. Give the length, or the "
            "number of predictions, with which the rows were made."
        )
    taken: np.ndarray[Any, np.dtype[np.bool_]] = np.arange(length) < lengths[:, None]
    return taken


def _padded(
    values: np.ndarray[Any, Any], used: np.ndarray[Any, np.dtype[np.bool_]], padding: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The rows' values, one after another in ``values``, at the places that are used."""
    table = np.full(used.shape, padding, np.int64)
    table[used] = values
    return table


def _joined(rows: Iterable[list[int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.fromiter(chain.from_iterable(rows), np.int64)
