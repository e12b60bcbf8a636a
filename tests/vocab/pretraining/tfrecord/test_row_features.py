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


def make_batch(*rows: tuple[list[int], int, int | None], size: int = 50) -> pa.RecordBatch:
    """Make a batch of rows, each given by its ids, the start of segment B and its label."""
    schema = pretraining_schema.make_schema(size, any(label is not None for _, _, label in rows), {})
    span = {"document": "pubmed:1", "start": 1, "first_sentence": 0, "end_sentence": 1}
    return pa.RecordBatch.from_pylist(
        [{"input_ids": ids, "split": at, "label": label, "spans": [span]} for ids, at, label in rows], schema
    )


def convert_to_lists(features: row_features.Features) -> dict[str, Any]:
    return {name: values.tolist() for name, values in features.items()}


def test_electra_features() -> None:
    features = row_features.make_electra_features(make_batch((PAIR, 4, None), (SINGLE, 0, None)), 8, PAD)
    assert convert_to_lists(features) == {
        "input_ids": [[2, 10, 30, 3, 11, 3, 0, 0], [2, 12, 3, 0, 0, 0, 0, 0]],
        "input_mask": [[1, 1, 1, 1, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0, 0, 0]],
        "segment_ids": [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 0, 0, 0]],
    }


def test_bert_features() -> None:
    features = row_features.make_bert_features(make_batch((PAIR, 4, 1)), [MASKED], 8, 3, PAD)
    assert convert_to_lists(features) == {
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


def test_albert_features_have_token_boundaries() -> None:
    rows = make_batch((PAIR, 4, 0))
    features = row_features.make_albert_features(rows, [MASKED], 8, 3, PAD, CONTINUES)
    assert features.pop("token_boundary").tolist() == [[1, 1, 0, 1, 1, 1, 0, 0]]
    assert convert_to_lists(features) == convert_to_lists(
        row_features.make_bert_features(rows, [MASKED], 8, 3, PAD)
    )


def test_rows_are_padded_with_the_pad_id() -> None:
    row = (PAIR, 4, 0)
    for features in (
        row_features.make_electra_features(make_batch(row), 8, 7),
        row_features.make_bert_features(make_batch(row), [MASKED], 8, 3, 7),
        row_features.make_albert_features(make_batch(row), [MASKED], 8, 3, 7, CONTINUES),
    ):
        assert features["input_ids"][0, 6:].tolist() == [7, 7]
        assert features["input_mask"][0, 6:].tolist() == [0, 0]


def test_ids_above_65535_keep_their_value() -> None:
    features = row_features.make_electra_features(
        make_batch(([CLS, 99_999, SEP], 0, None), size=100_000), 4, PAD
    )
    assert features["input_ids"].tolist() == [[CLS, 99_999, SEP, PAD]]


def test_features_of_a_sliced_batch() -> None:
    rows = make_batch((SINGLE, 0, NO_LABEL), (PAIR, 4, 1), ([CLS, 13, SEP, 14, 15, SEP], 3, 0))
    alone = row_features.make_bert_features(make_batch((PAIR, 4, 1)), [MASKED], 8, 3, PAD)
    assert convert_to_lists(
        row_features.make_bert_features(rows.slice(1, 1), [MASKED], 8, 3, PAD)
    ) == convert_to_lists(alone)


def test_unlabelled_rows_are_removed() -> None:
    kept = row_features.select_labelled(
        make_batch((SINGLE, 0, NO_LABEL), (PAIR, 4, 1), (SINGLE, 0, NO_LABEL), (PAIR, 4, 0))
    )
    assert kept["label"].to_pylist() == [1, 0]
    assert kept["input_ids"].to_pylist() == [PAIR, PAIR]


def test_no_rows_give_empty_features() -> None:
    none = row_features.select_labelled(make_batch((SINGLE, 0, NO_LABEL)))
    features = row_features.make_albert_features(none, [], 8, 3, PAD, CONTINUES)
    assert {name: values.shape for name, values in features.items()} == {
        **dict.fromkeys(["input_ids", "input_mask", "segment_ids", "token_boundary"], (0, 8)),
        **dict.fromkeys(["masked_lm_positions", "masked_lm_ids", "masked_lm_weights"], (0, 3)),
        "next_sentence_labels": (0, 1),
    }


def test_a_row_longer_than_the_features_is_refused() -> None:
    with pytest.raises(ValueError, match=r"has 6 values, more than the feature length 5\. Give the length"):
        row_features.make_electra_features(make_batch((SINGLE, 0, None), (PAIR, 4, None)), 5, PAD)


def test_a_row_as_long_as_the_features_is_not_padded() -> None:
    features = row_features.make_bert_features(make_batch((PAIR, 4, 0)), [MASKED], 6, 2, PAD)
    assert features["input_ids"].tolist() == [MASKED.ids]
    assert features["masked_lm_weights"].tolist() == [[1.0, 1.0]]


def test_more_predictions_than_the_features_hold_are_refused() -> None:
    with pytest.raises(ValueError, match="has 2 values, more than the feature length 1"):
        row_features.make_bert_features(make_batch((PAIR, 4, 0)), [MASKED], 8, 1, PAD)


def test_a_row_that_has_no_label_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no label of 0 or 1.*select_labelled\(\)"):
        row_features.make_bert_features(
            make_batch((SINGLE, 0, NO_LABEL)), [MaskedRow(SINGLE, [], [])], 8, 3, PAD
        )


def test_wrong_number_of_masks_is_refused() -> None:
    with pytest.raises(ValueError, match="2 rows have the masks of 1"):
        row_features.make_bert_features(make_batch((PAIR, 4, 0), (PAIR, 4, 1)), [MASKED], 8, 3, PAD)


@st.composite
def draw_pair(draw: st.DrawFn) -> tuple[list[int], int, int]:
    text = st.lists(st.integers(5, 49), min_size=1, max_size=9)
    first, second = draw(text), draw(text)
    return [CLS, *first, SEP, *second, SEP], len(first) + 2, draw(st.integers(0, 1))


@given(st.lists(draw_pair(), max_size=6), st.integers(0, 1000))
def test_row_can_be_restored_from_features(rows: list[tuple[list[int], int, int]], seed: int) -> None:
    masking = StaticMasking(MASK, frozenset({CLS, SEP}), 50, 5, 0.15, CONTINUES)
    masked = [static_masks.mask_albert_row(ids, masking, Random(seed)) for ids, _, _ in rows]
    features = row_features.make_albert_features(
        make_batch(*rows) if rows else make_batch((PAIR, 4, 0)).slice(0, 0), masked, 24, 5, PAD, CONTINUES
    )
    for index, (ids, split, label) in enumerate(rows):
        row = {name: values[index] for name, values in features.items()}
        weights = row["masked_lm_weights"] > 0
        row["input_ids"][row["masked_lm_positions"][weights]] = row["masked_lm_ids"][weights]
        assert row["input_ids"][: row["input_mask"].sum()].tolist() == ids
        assert row["segment_ids"].sum() == len(ids) - split
        assert row["segment_ids"][split] == 1
        assert row["token_boundary"].tolist() == [*(not CONTINUES[i] for i in ids), *[0] * (24 - len(ids))]
        assert row["next_sentence_labels"].tolist() == [label]
