"""TFRecord files: published checksums, hand-made messages, and protobuf's own classes as the judge."""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from google.protobuf import (  # type: ignore[import-untyped]
    descriptor_pb2,
    descriptor_pool,
    message_factory,
)
from hypothesis import given
from hypothesis import strategies as st

from bioshards.vocab.examples import tfrecord

int64s = st.integers(-(1 << 63), (1 << 63) - 1)


def crc32c(data: bytes) -> int:
    """The definition, a bit at a time."""
    register = 0xFFFFFFFF
    for byte in data:
        register ^= byte
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
    return register ^ 0xFFFFFFFF


def read_tfrecords(file: bytes) -> Iterator[bytes]:
    """The records of a file, their checksums looked at."""
    place = 0
    while place < len(file):
        length, head = struct.unpack_from("<QI", file, place)
        data = file[place + 12 : place + 12 + length]
        (tail,) = struct.unpack_from("<I", file, place + 12 + length)
        for checked, checksum in ((file[place : place + 8], head), (data, tail)):
            crc = crc32c(checked)
            assert checksum == ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        yield data
        place += 16 + length


def make_example_class() -> Any:
    """The class of ``tf.train.Example``, by its published definition."""
    file = descriptor_pb2.FileDescriptorProto(name="example.proto", package="tensorflow", syntax="proto3")
    field = descriptor_pb2.FieldDescriptorProto
    one, many = field.LABEL_OPTIONAL, field.LABEL_REPEATED

    def message(name: str, *fields: Any) -> Any:
        return descriptor_pb2.DescriptorProto(name=name, field=fields)

    def message_field(name: str, number: int, type_name: str, label: int = one, **more: Any) -> Any:
        name_of_type = f".tensorflow.{type_name}"
        return field(
            name=name, number=number, label=label, type=field.TYPE_MESSAGE, type_name=name_of_type, **more
        )

    feature = message(
        "Feature",
        message_field("bytes_list", 1, "BytesList", oneof_index=0),
        message_field("float_list", 2, "FloatList", oneof_index=0),
        message_field("int64_list", 3, "Int64List", oneof_index=0),
    )
    feature.oneof_decl.add(name="kind")
    entry = message(
        "FeatureEntry",
        field(name="key", number=1, label=one, type=field.TYPE_STRING),
        message_field("value", 2, "Feature"),
    )
    entry.options.map_entry = True
    features = message("Features", message_field("feature", 1, "Features.FeatureEntry", many))
    features.nested_type.append(entry)
    file.message_type.extend(
        [
            message("BytesList", field(name="value", number=1, label=many, type=field.TYPE_BYTES)),
            message("FloatList", field(name="value", number=1, label=many, type=field.TYPE_FLOAT)),
            message("Int64List", field(name="value", number=1, label=many, type=field.TYPE_INT64)),
            feature,
            features,
            message("Example", message_field("features", 1, "Features")),
        ]
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("tensorflow.Example"))


TfExample = make_example_class()


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
def test_the_checksums_are_those_that_were_published(data: bytes, expected: int) -> None:
    """RFC 3720, appendix B.4, and the check value of the catalogues of CRCs."""
    assert tfrecord.compute_crc32c([data]).tolist() == [expected]


@given(st.lists(st.binary(max_size=40), max_size=6))
def test_records_of_any_lengths_are_checked_together_as_alone(records: list[bytes]) -> None:
    assert tfrecord.compute_crc32c(records).tolist() == [crc32c(record) for record in records]


def test_a_record_is_that_of_tensorflow() -> None:
    assert tfrecord.frame_records([b"foo"]) == base64.b64decode("AwAAAAAAAACwmUkOZm9vYYq+/g==")


@given(st.lists(st.binary(max_size=300), max_size=6))
def test_records_are_read_back(records: list[bytes]) -> None:
    assert list(read_tfrecords(tfrecord.frame_records(records))) == records


@pytest.mark.parametrize("bit", range(0, 8 * 19, 5))
def test_a_flipped_bit_is_found_by_a_checksum(bit: int) -> None:
    record = bytearray(tfrecord.frame_records([b"foo"]))
    record[bit // 8] ^= 1 << bit % 8
    with pytest.raises((AssertionError, struct.error)):
        list(read_tfrecords(bytes(record)))


@pytest.mark.parametrize(
    ("number", "written"),
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
def test_an_integer_is_written_by_seven_bits(number: int, written: str) -> None:
    assert tfrecord.encode_varints(np.array([[number]])) == [bytes.fromhex(written)]
    assert tfrecord.encode_varints(np.array([[5, number], [number, 5]])) == [
        bytes.fromhex("05" + written),
        bytes.fromhex(written + "05"),
    ]


@pytest.mark.parametrize("dtype", [np.bool_, np.uint8, np.int8, np.uint16, np.int32, np.uint32, np.int64])
def test_integers_of_any_width_are_written_alike_and_left_as_they_are(dtype: type) -> None:
    values: np.ndarray[Any, Any] = np.array([[0, 1], [1, 1]], dtype)
    assert tfrecord.encode_varints(values) == [b"\0\1", b"\1\1"]
    assert values.tolist() == [[0, 1], [1, 1]]


def test_a_message_made_by_hand() -> None:
    features = {"b": np.array([[0.5]], np.float32), "a": np.array([[1, 300]])}
    entry_a = bytes.fromhex("0a01 61 1207 1a05 0a03 01ac02")
    entry_b = bytes.fromhex("0a01 62 1208 1206 0a04 0000003f")
    inner = b"\x0a" + bytes([len(entry_a)]) + entry_a + b"\x0a" + bytes([len(entry_b)]) + entry_b
    assert tfrecord.encode_examples(features) == [b"\x0a" + bytes([len(inner)]) + inner]


@given(st.data(), st.integers(0, 4), st.integers(0, 5))
def test_messages_are_those_that_protobuf_writes(data: st.DataObject, rows: int, length: int) -> None:
    """Names are of one length here: Python's protobuf sorts a name before its own beginning."""
    any_name = st.text(st.characters(exclude_categories=["Cs"]), min_size=3, max_size=3)
    names = data.draw(st.lists(any_name, min_size=1, max_size=8, unique=True))
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
            values_of = feature.float_list if floats else feature.int64_list
            values_of.SetInParent()
            values_of.value.extend(values)
    assert tfrecord.encode_examples(features) == [
        example.SerializeToString(deterministic=True) for example in expected
    ]


def test_floats_are_written_with_four_bytes() -> None:
    (message,) = tfrecord.encode_examples({"a": np.array([[0.1, 2.0]])})
    assert TfExample.FromString(message).features.feature["a"].float_list.value == [np.float32(0.1), 2.0]


def test_a_file_of_many_rows_says_what_the_arrays_held() -> None:
    random = np.random.default_rng(0)
    features: dict[str, np.ndarray[Any, Any]] = {
        "input_ids": random.integers(0, 70_000, (500, 128)),
        "masked_lm_weights": random.random((500, 20), np.float32),
        "next_sentence_labels": random.integers(0, 2, (500, 1)),
    }
    file = b"".join(
        tfrecord.encode_records({name: values[start : start + 200] for name, values in features.items()})
        for start in (0, 200, 400)
    )
    rows = [TfExample.FromString(record).features.feature for record in read_tfrecords(file)]
    for name, values in features.items():
        kind = "float_list" if values.dtype == np.float32 else "int64_list"
        assert np.array_equal([getattr(row[name], kind).value for row in rows], values)


def test_no_rows_are_an_empty_file() -> None:
    assert tfrecord.encode_records({"input_ids": np.zeros((0, 128), np.int64)}) == b""


def test_features_of_unequal_numbers_of_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        tfrecord.encode_records({"a": np.zeros((2, 1), np.int64), "b": np.zeros((1, 1), np.int64)})
