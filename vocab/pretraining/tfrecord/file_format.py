"""Rows of numbers as TensorFlow's readers want them: ``tf.train.Example`` messages in a TFRecord file.

The original trainers of ELECTRA, BERT and ALBERT read nothing else.  Both formats are short to write
down, so TensorFlow need not be installed, and numpy writes a batch of rows at once.

SOURCES:
    TFRecord, and the mask of its checksums:
        https://www.tensorflow.org/tutorials/load_data/tfrecord#tfrecords_format_details
    The messages: tensorflow/core/example/example.proto and feature.proto of
        https://github.com/tensorflow/tensorflow
    How messages are written: https://protobuf.dev/programming-guides/encoding/
    CRC-32C: RFC 3720, section 12.1 and appendix B.4
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

FLOAT_LIST_FIELD: Final = 2
"""The number of the field ``float_list`` of a Feature."""
INT64_LIST_FIELD: Final = 3
"""The number of the field ``int64_list`` of a Feature."""
_CRC_POLYNOMIAL: Final = np.uint32(0x82F63B78)
"""Castagnoli's, with its lowest power in the highest bit, as the register of a reflected CRC has it."""
_CRC_INITIAL_BYTES: Final = b"\x54\x64\x1f\x64"
"""The four bytes that turn a register of zeros into one of ones, with which CRC-32C begins."""


def encode_records(features: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """The records of a batch of rows: write them one batch after another, and the file is a TFRecord file.

    Args:
        features: by name, one line a row: integers for an ``int64_list``, floats for a ``float_list``.

    Raises:
        ValueError: the features have not all the same number of rows.
    """
    return frame_records(encode_examples(features))


def frame_records(messages: Sequence[bytes]) -> bytes:
    """Messages as records: length, checksum of the length, message, checksum of the message."""
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
    """CRCs as TFRecord stores them: turned by 15 bits and moved on, so that no CRC is taken of a CRC."""
    return ((checksums >> np.uint32(15)) | (checksums << np.uint32(17))) + np.uint32(0xA282EAD8)


def compute_crc32c(records: Sequence[bytes]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The CRC-32C of each record, in the time that the longest would take, times their number.

    All registers go forward together, four bytes a step.  Zeros do not change a register of zeros, so the
    records are filled up in front, and each one's register is set by four bytes of its own (``_BEGIN``).
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
    """What a register becomes after four bytes, by its lower and by its upper half; the XOR of both."""
    registers = np.arange(1 << 16, dtype=np.uint32)
    registers = np.stack([registers, registers << np.uint32(16)])
    for _ in range(32):
        registers = (registers >> np.uint32(1)) ^ (registers & np.uint32(1)) * _CRC_POLYNOMIAL
    return registers[0], registers[1]


def encode_examples(features: Mapping[str, np.ndarray[Any, Any]]) -> list[bytes]:
    """A ``tf.train.Example`` of each row, its features sorted by name, for a map has no order of its own.

    Args, errors: those of :func:`encode`.
    """
    columns = [_encode_feature(name, features[name]) for name in sorted(features)]
    return [_encode_field(1, b"".join(row_entries)) for row_entries in zip(*columns, strict=True)]


def _encode_feature(name: str, values: np.ndarray[Any, Any]) -> list[bytes]:
    """Of each row, its entry in the map of features: the name, and the list of its values, packed."""
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
    """What stands before a field of ``length`` bytes: its number, the kind 2 (length, bytes), the length."""
    return encode_varints(np.array([[number << 3 | 2, length]]))[0]


def encode_varints(values: np.ndarray[Any, Any]) -> list[bytes]:
    """Each row's integers as protocol buffers write an int64: seven bits a byte, the lowest first.

    Every byte but a number's last has its highest bit set; a negative number takes ten bytes.

    Args:
        values: one line a row; integers that an int64 can hold.
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
