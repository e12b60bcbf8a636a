"""The schema of a pretraining set's shards."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.shards import pretraining_schema
from bioshards.corpus.shards.pretraining_schema import (
    BATCH_ROWS,
    NO_LABEL,
    make_schema,
    metadata_from_schema,
)

METADATA = {"objective": "bert", "length": 128, "special": {"[CLS]": 2}, "rows": 5, "tokens": 99}


@pytest.mark.parametrize(
    ("size", "kind"), [(1, pa.uint16()), (65_536, pa.uint16()), (65_537, pa.uint32()), (10**6, pa.uint32())]
)
@pytest.mark.parametrize("is_labelled", [True, False])
def test_columns(size: int, kind: pa.DataType, is_labelled: bool) -> None:
    schema = make_schema(size, is_labelled, METADATA)
    label = {"label": pa.int8()} if is_labelled else {}
    types = {"input_ids": pa.list_(kind), "split": pa.uint16(), **label}
    assert dict(zip(schema.names, schema.types, strict=True)) == types
    assert list(schema.names) == list(types)
    assert not any(field.nullable for field in schema)


def test_constants_that_trainers_rely_on() -> None:
    assert (BATCH_ROWS, NO_LABEL) == (2048, -100)
    assert (pretraining_schema.PIPELINE, SPLITS) == ("shards_to_pretraining", ("train", "validation"))


JSON_VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON_VALUES, max_size=5))
def test_metadata_round_trip(metadata: dict[str, Any]) -> None:
    assert metadata_from_schema(make_schema(100, True, metadata)) == metadata


def test_metadata_bytes_are_independent_of_the_order() -> None:
    reversed_facts = dict(reversed(METADATA.items()))
    assert list(reversed_facts) != list(METADATA)
    first, second = (
        make_schema(100, True, metadata).serialize().to_pybytes() for metadata in (METADATA, reversed_facts)
    )
    assert first == second


@pytest.mark.parametrize(
    "metadata",
    [
        None,
        {},
        {"pandas": "{}"},
        {"bioshards": ""},
        {"bioshards": "{"},
        {"bioshards": b"\xff\xfe{}"},
    ],
)
def test_schema_without_the_metadata_is_an_error(metadata: dict[str, Any] | None) -> None:
    other_schema = pa.schema([pa.field("input_ids", pa.list_(pa.uint16()))], metadata)
    with pytest.raises(ValueError, match="lacks the metadata of a pretraining set"):
        metadata_from_schema(other_schema)
