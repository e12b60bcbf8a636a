"""Removal of a field from a protocol buffer.

SentencePiece writes its options into the model, among them the path of a temporary file.  Its classes that
read a model need a newer protobuf than Apache Beam allows.
SOURCES: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

TRAINER_SPEC_FIELD: Final = 2
"""Field number of the options in a SentencePiece model (sentencepiece_model.proto)."""


def remove_option(model: bytes, option_value: bytes) -> bytes:
    """Return a SentencePiece model without the options that have this value."""
    rewritten_fields = []
    for field_number, field, value in _iter_fields(model):
        if field_number == TRAINER_SPEC_FIELD:
            value = b"".join(
                inner for _, inner, inner_value in _iter_fields(value) if inner_value != option_value
            )
            field = _encode_varint(TRAINER_SPEC_FIELD << 3 | 2) + _encode_varint(len(value)) + value
        rewritten_fields.append(field)
    return b"".join(rewritten_fields)


def _iter_fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the fields of a message: number, all bytes, bytes of the value."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        field_number, wire_type = tag >> 3, tag & 7
        if wire_type == 2:  # length, bytes
            length, position = _read_varint(message, position)
            end = position + length
        elif wire_type == 0:  # a number
            _, end = _read_varint(message, position)
        else:  # four bytes, or eight
            end = position + (4 if wire_type == 5 else 8)
        yield field_number, message[start:end], message[position:end]
        position = end


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position (seven bits a byte, lowest first) and the next position."""
    number = shift = 0
    while True:
        byte = message[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position


def _encode_varint(number: int) -> bytes:
    """Encode a number for :func:`_read_varint`."""
    encoded = bytearray()
    while number > 127:
        encoded.append(number & 127 | 128)
        number >>= 7
    return bytes([*encoded, number])
