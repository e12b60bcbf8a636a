"""Features of the original trainers of google-research, as arrays by name.

Each array has one row per row of the batch, padded to one length.  Names, lengths and padding are those of
the reference code.  Rows without a label are left out of the files of BERT and ALBERT
(:func:`select_labelled`), because their trainers accept 0 and 1 only.

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
from bioshards.corpus.shards.pretraining_schema import NO_LABEL

from .static_masks import MaskedRow

Features = dict[str, np.ndarray[Any, Any]]


def select_labelled(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the rows that have a label."""
    return batch.filter(pc.not_equal(batch["label"], pa.scalar(NO_LABEL, pa.int8())))


def make_electra_features(batch: pa.RecordBatch, max_seq_length: int, pad_id: int) -> Features:
    """Return ``input_ids``, ``input_mask`` (0 for padding) and ``segment_ids`` (1 in segment B).

    Args:
        max_seq_length: length of all features.
        pad_id: id of [PAD].  The reference writes 0, its id in their vocabularies; the trainers use the mask.

    Raises:
        ValueError: a row is longer.
    """
    ids = batch["input_ids"]
    lengths = pc.list_value_length(ids).to_numpy()
    is_used = _make_padding_mask(lengths, max_seq_length)
    segment_b_starts = batch["split"].to_numpy()[:, None]
    return {
        "input_ids": _pad_rows(ids.flatten().to_numpy(), is_used, pad_id),
        "input_mask": is_used.astype(np.int64),
        "segment_ids": (
            is_used & (segment_b_starts > 0) & (np.arange(max_seq_length) >= segment_b_starts)
        ).astype(np.int64),
    }


def make_bert_features(
    batch: pa.RecordBatch,
    masked_rows: Sequence[MaskedRow],
    max_seq_length: int,
    max_predictions_per_seq: int,
    pad_id: int,
) -> Features:
    """Return the features of ELECTRA with masked ``input_ids``, and the tokens to predict.

    These are ``masked_lm_positions``, ``masked_lm_ids``, ``masked_lm_weights`` (1.0, or 0.0 for padding), and
    ``next_sentence_labels``: 1 if segment B is of another text.

    Args:
        batch: rows with labels (:func:`select_labelled`).
        masked_rows: masks of the rows, in order.
        max_seq_length: as in :func:`make_electra_features`.
        pad_id: as in :func:`make_electra_features`.

    Raises:
        ValueError: a row is too long, has too many predictions or no label, or there are not as many masks.
    """
    if len(masked_rows) != batch.num_rows:
        raise InvalidValueError(
            f"{batch.num_rows} rows have the masks of {len(masked_rows)}. Mask each row once."
        )
    labels = batch["label"].to_numpy()
    if not np.isin(labels, (0, 1)).all():
        raise InvalidValueError(
            "a row has no label of 0 or 1, and its file needs one. Leave it out with select_labelled()."
        )
    features = make_electra_features(batch, max_seq_length, pad_id)
    features["input_ids"] = _pad_rows(
        _concat_rows(row.ids for row in masked_rows), features["input_mask"] > 0, pad_id
    )
    is_used = _make_padding_mask(
        np.array([len(row.positions) for row in masked_rows], np.int64), max_predictions_per_seq
    )
    return features | {
        "masked_lm_positions": _pad_rows(_concat_rows(row.positions for row in masked_rows), is_used, 0),
        "masked_lm_ids": _pad_rows(_concat_rows(row.labels for row in masked_rows), is_used, 0),
        "masked_lm_weights": is_used.astype(np.float32),
        "next_sentence_labels": labels.astype(np.int64)[:, None],
    }


def make_albert_features(
    batch: pa.RecordBatch,
    masked_rows: Sequence[MaskedRow],
    max_seq_length: int,
    max_predictions_per_seq: int,
    pad_id: int,
    is_continuation: bytes,
) -> Features:
    """Return BERT's features and ``token_boundary``: 1 where a word or special token starts, before masking.

    ``next_sentence_labels`` is 1 if the segments are swapped; the reference code kept the name.

    Args:
        is_continuation: for each id, 1 if its piece continues a word.
    """
    features = make_bert_features(batch, masked_rows, max_seq_length, max_predictions_per_seq, pad_id)
    is_word_start = 1 - np.frombuffer(is_continuation, np.uint8).astype(np.int64)
    ids = batch["input_ids"].flatten().to_numpy()
    return features | {"token_boundary": _pad_rows(is_word_start[ids], features["input_mask"] > 0, 0)}


def _make_padding_mask(lengths: np.ndarray[Any, Any], length: int) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Return which positions of ``length`` columns are used, where row i has ``lengths[i]`` values."""
    if lengths.max(initial=0) > length:
        raise InvalidValueError(
            f"a row has {lengths.max()} values, more than the feature length {length}. Give the length, or "
            "the number of predictions, that the rows were built with."
        )
    padding_mask: np.ndarray[Any, np.dtype[np.bool_]] = np.arange(length) < lengths[:, None]
    return padding_mask


def _pad_rows(
    values: np.ndarray[Any, Any], is_used: np.ndarray[Any, np.dtype[np.bool_]], pad_value: int
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the concatenated values of rows at the used positions, and ``pad_value`` elsewhere."""
    padded = np.full(is_used.shape, pad_value, np.int64)
    padded[is_used] = values
    return padded


def _concat_rows(rows: Iterable[list[int]]) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.fromiter(chain.from_iterable(rows), np.int64)
