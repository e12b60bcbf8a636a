"""TFRecord files: published checksums, hand-made messages, and protobuf's own classes."""

from __future__ import annotations

import base64
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.pretraining.tfrecord import file_format
from tests.support.vocab.tfrecord_reader import TfExample, crc32c, read_tfrecords

int64s = st.integers(-(1 << 63), (1 << 63) - 1)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"123456789", 0xE3069283),
        (b"", 0),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
        (bytes.fromhex("01c00000" + "0" * 24 + "14000000" + "00000400" + "00000014" + "00000018"
                       "28000000" + "0" * 8 + "02000000" + "0" * 8), 0xD9963A56),
    ],
)  # fmt: skip
def test_crc32c_equals_published_values(data: bytes, expected: int) -> None:
    """Values of RFC 3720, appendix B.4, and the check value of CRC catalogues."""
    assert file_format.compute_crc32c([data]).tolist() == [expected]


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_crc32c_of_a_batch_equals_single_checksums(records: list[bytes]) -> None:
    assert file_format.compute_crc32c(records).tolist() == [crc32c(record) for record in records]


def test_framed_record_equals_that_of_tensorflow() -> None:
    assert file_format.frame_records([b"foo"]) == base64.b64decode("AwAAAAAAAACwmUkOZm9vYYq+/g==")


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_records_survive_a_round_trip(records: list[bytes]) -> None:
    assert list(read_tfrecords(file_format.frame_records(records))) == records


@pytest.mark.parametrize("bit", range(0, 8 * 19, 5))
def test_flipped_bit_fails_the_checksum(bit: int) -> None:
    record = bytearray(file_format.frame_records([b"foo"]))
    record[bit // 8] ^= 1 << bit % 8
    with pytest.raises((AssertionError, struct.error)):
        list(read_tfrecords(bytes(record)))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, "00"),
        (1, "01"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (65_535, "ffff03"),
        ((1 << 63) - 1, "ffffffffffffffff7f"),
        (-1, "ffffffffffffffffff01"),
        (-(1 << 63), "80808080808080808001"),
    ],
)
def test_varint_encoding(number: int, expected: str) -> None:
    assert file_format.encode_varints(np.array([[number]])) == [bytes.fromhex(expected)]
    assert file_format.encode_varints(np.array([[5, number], [number, 5]])) == [
        bytes.fromhex("05" + expected),
        bytes.fromhex(expected + "05"),
    ]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64])
def test_varint_encoding_accepts_any_integer_type(dtype: type) -> None:
    values: np.ndarray[Any, Any] = np.array([[0, 1], [1, 1]], dtype)
    assert file_format.encode_varints(values) == [b"\0\1", b"\1\1"]
    assert values.tolist() == [[0, 1], [1, 1]]


def test_hand_written_message() -> None:
    features = {"b": np.array([[0.5]], np.float32), "a": np.array([[1, 300]])}
    entry_a = bytes.fromhex("0a01 61 1207 1a05 0a03 01ac02")
    entry_b = bytes.fromhex("0a01 62 1208 1206 0a04 0000003f")
    inner = b"\x0a" + bytes([len(entry_a)]) + entry_a + b"\x0a" + bytes([len(entry_b)]) + entry_b
    assert file_format.encode_examples(features) == [b"\x0a" + bytes([len(inner)]) + inner]


@given(st.data(), st.integers(0, 4), st.integers(0, 5))
def test_messages_equal_those_of_protobuf(data: st.DataObject, rows: int, length: int) -> None:
    """Names have equal length, as Python's protobuf sorts a name before its own prefix."""
    name_strategy = st.text(st.characters(exclude_categories=["Cs"]), min_size=3, max_size=3)
    names = data.draw(st.lists(name_strategy, min_size=1, max_size=8, unique=True))
    features: dict[str, np.ndarray[Any, Any]] = {}
    expected = [TfExample() for _ in range(rows)]
    for name in names:
        floats = data.draw(st.booleans())
        kind = st.floats(width=32, allow_nan=False) if floats else int64s
        table = data.draw(
            st.lists(st.lists(kind, min_size=length, max_size=length), min_size=rows, max_size=rows)
        )
        features[name] = np.array(table, np.float32 if floats else np.int64).reshape(rows, length)
        for example, values in zip(expected, table, strict=True):
            feature = example.features.feature[name]
            value_list = feature.float_list if floats else feature.int64_list
            value_list.SetInParent()
            value_list.value.extend(values)
    assert file_format.encode_examples(features) == [
        example.SerializeToString(deterministic=True) for example in expected
    ]


def test_floats_are_encoded_as_float32() -> None:
    (message,) = file_format.encode_examples({"a": np.array([[0.1, 2.0]])})
    assert TfExample.FromString(message).features.feature["a"].float_list.value == [np.float32(0.1), 2.0]


def test_many_rows_survive_a_round_trip() -> None:
    random = np.random.default_rng(0)
    features: dict[str, np.ndarray[Any, Any]] = {
        "input_ids": random.integers(0, 70_000, (500, 128)),
        "masked_lm_weights": random.random((500, 20), np.float32),
        "next_sentence_labels": random.integers(0, 2, (500, 1)),
    }
    file = b"".join(
        file_format.encode_records({name: values[start : start + 200] for name, values in features.items()})
        for start in (0, 200, 400)
    )
    rows = [TfExample.FromString(record).features.feature for record in read_tfrecords(file)]
    for name, values in features.items():
        kind = "float_list" if values.dtype == np.float32 else "int64_list"
        assert np.array_equal([getattr(row[name], kind).value for row in rows], values)


def test_no_rows_give_an_empty_file() -> None:
    assert file_format.encode_records({"input_ids": np.zeros((0, 128), np.int64)}) == b""


def test_features_with_different_row_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        file_format.encode_records({"a": np.zeros((2, 1), np.int64), "b": np.zeros((1, 1), np.int64)})
