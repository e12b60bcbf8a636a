"""The schema of a pretraining set's shards."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.shards import pretraining_schema
from bioshards.corpus.shards.pretraining_schema import (
    BATCH_ROWS,
    NO_LABEL,
    SPAN_TYPE,
    make_schema,
    metadata_from_schema,
)

FACTS = {"objective": "bert", "length": 128, "special": {"[CLS]": 2}, "rows": 5, "tokens": 99}


@pytest.mark.parametrize(
    ("size", "kind"), [(1, pa.uint16()), (65_536, pa.uint16()), (65_537, pa.uint32()), (10**6, pa.uint32())]
)
@pytest.mark.parametrize("labelled", [True, False])
def test_the_columns(size: int, kind: pa.DataType, labelled: bool) -> None:
    found = make_schema(size, labelled, FACTS)
    label = {"label": pa.int8()} if labelled else {}
    types = {"input_ids": pa.list_(kind), "split": pa.uint16(), **label, "spans": pa.list_(SPAN_TYPE)}
    assert dict(zip(found.names, found.types, strict=True)) == types
    assert list(found.names) == list(types)
    assert not any(field.nullable for field in found)


def test_a_span_says_which_sentences_of_which_document() -> None:
    assert (
        pa.struct(
            [
                pa.field("document", pa.string(), nullable=False),
                pa.field("start", pa.uint16(), nullable=False),
                pa.field("first_sentence", pa.int32(), nullable=False),
                pa.field("end_sentence", pa.int32(), nullable=False),
            ]
        )
        == SPAN_TYPE
    )


def test_constants_are_those_that_trainers_rely_on() -> None:
    assert (BATCH_ROWS, NO_LABEL) == (2048, -100)
    assert (pretraining_schema.PIPELINE, SPLITS) == ("shards_to_pretraining", ("train", "validation"))


VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3)),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), VALUES, max_size=5))
@settings(deadline=None)
def test_facts_come_back_as_they_were(facts: dict[str, Any]) -> None:
    assert metadata_from_schema(make_schema(100, True, facts)) == facts


def test_facts_come_back_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "data.arrow"
    with path.open("wb") as file, pa.ipc.new_stream(file, make_schema(100, False, FACTS)):
        pass
    with pa.memory_map(str(path)) as mapped, pa.ipc.open_stream(mapped) as stream:
        assert metadata_from_schema(stream.schema) == FACTS


def test_the_same_facts_are_the_same_bytes_in_whatever_order() -> None:
    backwards = dict(reversed(FACTS.items()))
    assert list(backwards) != list(FACTS)
    one, other = (make_schema(100, True, facts).serialize().to_pybytes() for facts in (FACTS, backwards))
    assert one == other


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
def test_a_schema_of_something_else_is_an_error_that_says_so(metadata: dict[str, Any] | None) -> None:
    strange = pa.schema([pa.field("input_ids", pa.list_(pa.uint16()))], metadata)
    with pytest.raises(ValueError, match="lacks the metadata of a pretraining set"):
        metadata_from_schema(strange)


def test_facts_are_json() -> None:
    found = make_schema(100, True, FACTS).metadata[b"bioshards"]
    assert json.loads(found) == FACTS
