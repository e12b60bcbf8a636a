"""Features of the original trainers: golden rows and invariants."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.shards import pretraining_schema
from bioshards.corpus.shards.pretraining_schema import NO_LABEL
from bioshards.vocab.pretraining.tfrecord import row_features, static_masks
from bioshards.vocab.pretraining.tfrecord.static_masks import MaskedRow, StaticMasking

CLS, SEP, MASK, PAD = 2, 3, 4, 0
PAIR = [CLS, 10, 30, SEP, 11, SEP]
SINGLE = [CLS, 12, SEP]
MASKED = MaskedRow([CLS, MASK, 30, SEP, MASK, SEP], [1, 4], [10, 11])
CONTINUES = bytes(30 <= piece < 45 for piece in range(50))


def batch(*rows: tuple[list[int], int, int | None], size: int = 50) -> pa.RecordBatch:
    """Rows of ids, where segment B starts, and their labels, or none of them labelled."""
    schema = pretraining_schema.make_schema(size, any(label is not None for _, _, label in rows), {})
    span = {"document": "pubmed:1", "start": 1, "first_sentence": 0, "end_sentence": 1}
    return pa.RecordBatch.from_pylist(
        [{"input_ids": ids, "split": at, "label": label, "spans": [span]} for ids, at, label in rows], schema
    )


def as_lists(features: row_features.Features) -> dict[str, Any]:
    return {name: values.tolist() for name, values in features.items()}


def test_rows_as_electra_reads_them() -> None:
    features = row_features.make_electra_features(batch((PAIR, 4, None), (SINGLE, 0, None)), 8, PAD)
    assert as_lists(features) == {
        "input_ids": [[2, 10, 30, 3, 11, 3, 0, 0], [2, 12, 3, 0, 0, 0, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]],
    }


def test_rows_as_bert_reads_them() -> None:
    features = row_features.make_bert_features(batch((PAIR, 4, 1)), [MASKED], 8, 3, PAD)
    assert as_lists(features) == {
        "input_ids": [[2, 4, 30, 3, 4, 3, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 0, 0]],
        "masked_lm_positions": [[1, 4, 0]],
        "masked_lm_ids": [[10, 11, 0]],
        "masked_lm_weights": [[1.0, 1.0, 0.0]],
        "next_sentence_labels": [[1]],
    }
    assert {values.dtype for values in features.values()} == {np.dtype(np.int64), np.dtype(np.float32)}
    assert features["masked_lm_weights"].dtype == np.float32


def test_albert_reads_where_words_begin_too() -> None:
    rows = batch((PAIR, 4, 0))
    features = row_features.make_albert_features(rows, [MASKED], 8, 3, PAD, CONTINUES)
    assert features.pop("token_boundary").tolist() == [[1, 1, 0, 1, 1, 1, 0, 0]]
    assert as_lists(features) == as_lists(row_features.make_bert_features(rows, [MASKED], 8, 3, PAD))


def test_padding_is_the_id_of_the_vocabularys_pad() -> None:
    row = (PAIR, 4, 0)
    for features in (
        row_features.make_electra_features(batch(row), 8, 7),
        row_features.make_bert_features(batch(row), [MASKED], 8, 3, 7),
        row_features.make_albert_features(batch(row), [MASKED], 8, 3, 7, CONTINUES),
    ):
        assert features["input_ids"][0, 6:].tolist() == [7, 7]
        assert features["input_mask"][0, 6:].tolist() == [0, 0]


def test_ids_above_65535_keep_their_value() -> None:
    features = row_features.make_electra_features(batch(([CLS, 99_999, SEP], 0, None), size=100_000), 4, PAD)
    assert features["input_ids"].tolist() == [[CLS, 99_999, SEP, PAD]]


def test_a_slice_of_a_batch_is_its_own_rows() -> None:
    rows = batch((SINGLE, 0, NO_LABEL), (PAIR, 4, 1), ([CLS, 13, SEP, 14, 15, SEP], 3, 0))
    alone = row_features.make_bert_features(batch((PAIR, 4, 1)), [MASKED], 8, 3, PAD)
    assert as_lists(row_features.make_bert_features(rows.slice(1, 1), [MASKED], 8, 3, PAD)) == as_lists(alone)


def test_rows_without_a_pair_are_left_out() -> None:
    kept = row_features.select_labelled(
        batch((SINGLE, 0, NO_LABEL), (PAIR, 4, 1), (SINGLE, 0, NO_LABEL), (PAIR, 4, 0))
    )
    assert kept["label"].to_pylist() == [1, 0]
    assert kept["input_ids"].to_pylist() == [PAIR, PAIR]


def test_no_rows_are_empty_features() -> None:
    none = row_features.select_labelled(batch((SINGLE, 0, NO_LABEL)))
    features = row_features.make_albert_features(none, [], 8, 3, PAD, CONTINUES)
    assert {name: values.shape for name, values in features.items()} == {
        **dict.fromkeys(["input_ids", "input_mask", "segment_ids", "token_boundary"], (0, 8)),
        **dict.fromkeys(["masked_lm_positions", "masked_lm_ids", "masked_lm_weights"], (0, 3)),
        "next_sentence_labels": (0, 1),
    }


def test_a_row_longer_than_the_features_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has 6 values, more than the feature length 5\. Give the length"):
        row_features.make_electra_features(batch((SINGLE, 0, None), (PAIR, 4, None)), 5, PAD)


def test_a_row_as_long_as_the_features_is_not_padded() -> None:
    features = row_features.make_bert_features(batch((PAIR, 4, 0)), [MASKED], 6, 2, PAD)
    assert features["input_ids"].tolist() == [MASKED.ids]
    assert features["masked_lm_weights"].tolist() == [[1.0, 1.0]]


def test_more_predictions_than_the_features_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="has 2 values, more than the feature length 1"):
        row_features.make_bert_features(batch((PAIR, 4, 0)), [MASKED], 8, 1, PAD)


def test_a_row_that_has_no_label_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no label of 0 or 1.*select_labelled\(\)"):
        row_features.make_bert_features(batch((SINGLE, 0, NO_LABEL)), [MaskedRow(SINGLE, [], [])], 8, 3, PAD)


def test_masks_of_another_number_of_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rows have the masks of 1"):
        row_features.make_bert_features(batch((PAIR, 4, 0), (PAIR, 4, 1)), [MASKED], 8, 3, PAD)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[int], int, int]:
    text = st.lists(st.integers(5, 49), min_size=1, max_size=9)
    a, b = draw(text), draw(text)
    return [CLS, *a, SEP, *b, SEP], len(a) + 2, draw(st.integers(0, 1))


@given(st.lists(pairs(), max_size=6), st.integers(0, 1000))
def test_a_row_can_be_put_together_again(rows: list[tuple[list[int], int, int]], seed: int) -> None:
    how = StaticMasking(MASK, frozenset({CLS, SEP}), 50, 5, 0.15, CONTINUES)
    masked = [static_masks.mask_albert_row(ids, how, Random(seed)) for ids, _, _ in rows]
    found = row_features.make_albert_features(
        batch(*rows) if rows else batch((PAIR, 4, 0)).slice(0, 0), masked, 24, 5, PAD, CONTINUES
    )
    for n, (ids, split, label) in enumerate(rows):
        row = {name: values[n] for name, values in found.items()}
        weights = row["masked_lm_weights"] > 0
        row["input_ids"][row["masked_lm_positions"][weights]] = row["masked_lm_ids"][weights]
        assert row["input_ids"][: row["input_mask"].sum()].tolist() == ids
        assert row["segment_ids"].sum() == len(ids) - split
        assert row["segment_ids"][split] == 1
        assert row["token_boundary"].tolist() == [*(not CONTINUES[i] for i in ids), *[0] * (24 - len(ids))]
        assert row["next_sentence_labels"].tolist() == [label]
