"""TFRecord files of ``tf.train.Example`` messages, written without TensorFlow.

They are the only input of the original trainers of ELECTRA, BERT and ALBERT.  numpy encodes a batch of rows
at once.

SOURCES:
    TFRecord, and the mask of its checksums:
        https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
    The messages: tensorflow/core/example/example.proto and feature.proto of
        https://github.com/tensorflow/tensorflow
    Encoding of messages: https://protobuf.dev/programming-guides/encoding/
    CRC-32C: RFC 3720, section 12.1 and appendix B.4
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

FLOAT_LIST_FIELD: Final = 2
"""Field number of ``float_list`` in a Feature."""
INT64_LIST_FIELD: Final = 3
"""Field number of ``int64_list`` in a Feature."""
_CRC_POLYNOMIAL: Final = np.uint32(0x82F63B78)
"""Castagnoli polynomial, reflected: its lowest power is the highest bit."""
_CRC_INITIAL_BYTES: Final = b"\x54\x64\x1f\x64"
"""Four bytes that turn a register of zeros into one of ones, the initial value of CRC-32C."""


def encode_records(features: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """Return the records of a batch of rows; concatenated batches are a TFRecord file.

    Args:
        features: arrays by name, one row each: integers for ``int64_list``, floats for ``float_list``.

    Raises:
        ValueError: the numbers of rows differ.
    """
    return frame_records(encode_examples(features))


def frame_records(messages: Sequence[bytes]) -> bytes:
    """Return messages as records: length, checksum of the length, message, checksum of the message."""
    headers = np.empty(len(messages), [("length", "<u8"), ("checksum", "<u4")])
    headers["length"] = [len(message) for message in messages]
    headers["checksum"] = mask_checksums(compute_crc32c([length.tobytes() for length in headers["length"]]))
    checksums = mask_checksums(compute_crc32c(messages)).astype("<u4")
    return b"".join(
        part
        for header, message, checksum in zip(headers, messages, checksums, strict=True)
        for part in (header.tobytes(), message, checksum.tobytes())
    )


def mask_checksums(checksums: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return CRCs as TFRecord stores them: rotated by 15 bits, plus a constant."""
    return ((checksums >> np.uint32(15)) | (checksums << np.uint32(17))) + np.uint32(0xA282EAD8)


def compute_crc32c(records: Sequence[bytes]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Return the CRC-32C of each record.

    All registers advance together, four bytes a step.  Zeros leave a register of zeros unchanged, so records
    are padded in front, and four bytes initialise each register (``_CRC_INITIAL_BYTES``).
    """
    low, high = _make_crc_tables()
    num_steps = 1 + -(-max(map(len, records), default=0) // 4)
    padded_records = b"".join((_CRC_INITIAL_BYTES + record).rjust(4 * num_steps, b"\0") for record in records)
    registers = np.zeros(len(records), np.uint32)
    for column in np.ascontiguousarray(
        np.frombuffer(padded_records, "<u4").reshape(len(records), num_steps).T
    ):
        registers ^= column
        registers = low[registers & np.uint32(0xFFFF)] ^ high[registers >> np.uint32(16)]
    return ~registers


@cache
def _make_crc_tables() -> tuple[np.ndarray[Any, np.dtype[np.uint32]], np.ndarray[Any, np.dtype[np.uint32]]]:
    """Return the register after four bytes by its lower and upper half; the result is the XOR of both."""
    registers = np.arange(1 << 16, dtype=np.uint32)
    registers = np.stack([registers, registers << np.uint32(16)])
    for _ in range(32):
        registers = (registers >> np.uint32(1)) ^ (registers & np.uint32(1)) * _CRC_POLYNOMIAL
    return registers[0], registers[1]


def encode_examples(features: Mapping[str, np.ndarray[Any, Any]]) -> list[bytes]:
    """Return a ``tf.train.Example`` of each row, its features sorted by name.

    Args and errors are those of :func:`encode_records`.
    """
    columns = [_encode_feature(name, features[name]) for name in sorted(features)]
    return [_encode_field(1, b"".join(row_entries)) for row_entries in zip(*columns, strict=True)]


def _encode_feature(name: str, values: np.ndarray[Any, Any]) -> list[bytes]:
    """Return the entry of a feature in the map of each row: its name and its packed values."""
    rows: Iterable[bytes]
    if values.dtype.kind == "f":
        list_field, rows = FLOAT_LIST_FIELD, (row.tobytes() for row in values.astype("<f4"))
    else:
        list_field, rows = INT64_LIST_FIELD, encode_varints(values)
    key = _encode_field(1, name.encode())
    value_lists = (
        _encode_field(1, row) if row else row for row in rows
    )  # a field without values is not written
    return [
        _encode_field(1, key + _encode_field(2, _encode_field(list_field, values))) for values in value_lists
    ]


def _encode_field(number: int, value: bytes) -> bytes:
    return _encode_field_header(number, len(value)) + value


@cache
def _encode_field_header(number: int, length: int) -> bytes:
    """Return the header of a field of ``length`` bytes: field number, wire type 2, length."""
    return encode_varints(np.array([[number << 3 | 2, length]]))[0]


def encode_varints(values: np.ndarray[Any, Any]) -> list[bytes]:
    """Return the integers of each row as int64 varints: seven bits a byte, lowest first.

    The highest bit is set in all bytes of a number but the last; a negative number takes ten bytes.

    Args:
        values: int64 integers, one row each.
    """
    numbers = values.astype(np.int64).view(np.uint64)  # a copy
    groups = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    encoded_bytes = np.empty((*numbers.shape, groups), np.uint8)
    is_used = np.ones(encoded_bytes.shape, np.bool_)
    for group in range(groups):
        if group:
            is_used[:, :, group] = numbers > 0
        encoded_bytes[:, :, group] = numbers.astype(np.uint8) | (numbers > 127) * np.uint8(128)
        numbers >>= np.uint64(7)
    data = encoded_bytes[is_used].tobytes()
    ends = np.cumsum(np.count_nonzero(is_used, axis=(1, 2))).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
