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

FLOATS: Final = 2
"""The number of the field ``float_list`` of a Feature."""
INTEGERS: Final = 3
"""The number of the field ``int64_list`` of a Feature."""
_POLYNOMIAL: Final = np.uint32(0x82F63B78)
"""Castagnoli's, with its lowest power in the highest bit, as the register of a reflected CRC has it."""
_BEGIN: Final = b"\x54\x64\x1f\x64"
"""The four bytes that turn a register of zeros into one of ones, with which CRC-32C begins."""


def encode(features: Mapping[str, np.ndarray[Any, Any]]) -> bytes:
    """The records of a batch of rows: write them one batch after another, and the file is a TFRecord file.

    Args:
        features: by name, one line a row: integers for an ``int64_list``, floats for a ``float_list``.

    Raises:
        ValueError: the features have not all the same number of rows.
    """
    return framed(examples(features))


def framed(messages: Sequence[bytes]) -> bytes:
    """Messages as records: length, checksum of the length, message, checksum of the message."""
    heads = np.empty(len(messages), [("length", "<u8"), ("checksum", "<u4")])
    heads["length"] = [len(message) for message in messages]
    heads["checksum"] = masked(crc32c([length.tobytes() for length in heads["length"]]))
    tails = masked(crc32c(messages)).astype("<u4")
    return b"".join(
        part
        for head, message, tail in zip(heads, messages, tails, strict=True)
        for part in (head.tobytes(), message, tail.tobytes())
    )


def masked(checksums: np.ndarray[Any, np.dtype[np.uint32]]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """CRCs as TFRecord stores them: turned by 15 bits and moved on, so that no CRC is taken of a CRC."""
    return ((checksums >> np.uint32(15)) | (checksums << np.uint32(17))) + np.uint32(0xA282EAD8)


def crc32c(records: Sequence[bytes]) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """The CRC-32C of each record, in the time that the longest would take, times their number.

    All registers go forward together, four bytes a step.  Zeros do not change a register of zeros, so the
    records are filled up in front, and each one's register is set by four bytes of its own (``_BEGIN``).
    """
    low, high = _steps()
    words = 1 + -(-max(map(len, records), default=0) // 4)
    together = b"".join((_BEGIN + record).rjust(4 * words, b"\0") for record in records)
    registers = np.zeros(len(records), np.uint32)
    for column in np.ascontiguousarray(np.frombuffer(together, "<u4").reshape(len(records), words).T):
        registers ^= column
        registers = low[registers & np.uint32(0xFFFF)] ^ high[registers >> np.uint32(16)]
    return ~registers


@cache
def _steps() -> tuple[np.ndarray[Any, np.dtype[np.uint32]], np.ndarray[Any, np.dtype[np.uint32]]]:
    """What a register becomes after four bytes, by its lower and by its upper half; the XOR of both."""
    registers = np.arange(1 << 16, dtype=np.uint32)
    registers = np.stack([registers, registers << np.uint32(16)])
    for _ in range(32):
        registers = (registers >> np.uint32(1)) ^ (registers & np.uint32(1)) * _POLYNOMIAL
    return registers[0], registers[1]


def examples(features: Mapping[str, np.ndarray[Any, Any]]) -> list[bytes]:
    """A ``tf.train.Example`` of each row, its features sorted by name, for a map has no order of its own.

    Args, errors: those of :func:`encode`.
    """
    columns = [_entries(name, features[name]) for name in sorted(features)]
    return [_field(1, b"".join(entries)) for entries in zip(*columns, strict=True)]


def _entries(name: str, values: np.ndarray[Any, Any]) -> list[bytes]:
    """Of each row, its entry in the map of features: the name, and the list of its values, packed."""
    rows: Iterable[bytes]
    if values.dtype.kind == "f":
        kind, rows = FLOATS, (row.tobytes() for row in values.astype("<f4"))
    else:
        kind, rows = INTEGERS, varints(values)
    key = _field(1, name.encode())
    lists = (_field(1, row) if row else row for row in rows)  # a field without values is not written
    return [_field(1, key + _field(2, _field(kind, values))) for values in lists]


def _field(number: int, value: bytes) -> bytes:
    return _head(number, len(value)) + value


@cache
def _head(number: int, length: int) -> bytes:
    """What stands before a field of ``length`` bytes: its number, the kind 2 (length, bytes), the length."""
    return varints(np.array([[number << 3 | 2, length]]))[0]


def varints(values: np.ndarray[Any, Any]) -> list[bytes]:
    """Each row's integers as protocol buffers write an int64: seven bits a byte, the lowest first.

    Every byte but a number's last has its highest bit set; a negative number takes ten bytes.

    Args:
        values: one line a row; integers that an int64 can hold.
    """
    numbers = values.astype(np.int64).view(np.uint64)  # a copy
    groups = max(1, -(-int(numbers.max(initial=0)).bit_length() // 7))
    written = np.empty((*numbers.shape, groups), np.uint8)
    used = np.ones(written.shape, np.bool_)
    for group in range(groups):
        if group:
            used[:, :, group] = numbers > 0
        written[:, :, group] = numbers.astype(np.uint8) | (numbers > 127) * np.uint8(128)
        numbers >>= np.uint64(7)
    data = written[used].tobytes()
    ends = np.cumsum(np.count_nonzero(used, axis=(1, 2))).tolist()
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
