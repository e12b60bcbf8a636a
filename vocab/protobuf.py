"""Take a field out of a protocol buffer: just enough of the encoding to do so.

SentencePiece writes its options into the model, and with them the path of a temporary file that we
give it.  The classes that come with it to read a model need a newer protobuf than Apache Beam allows.
SOURCES: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

TRAINER_SPEC: Final = 2
"""Number of the field of a SentencePiece model that has the options (its sentencepiece_model.proto)."""


def without(model: bytes, option: bytes) -> bytes:
    """The SentencePiece model without the option, or options, that have this value."""
    changed = []
    for number, field, value in _fields(model):
        if number == TRAINER_SPEC:
            value = b"".join(inner for _, inner, said in _fields(value) if said != option)
            field = _number(TRAINER_SPEC << 3 | 2) + _number(len(value)) + value
        changed.append(field)
    return b"".join(changed)


def _fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """The fields of a message: number, all its bytes, and those of its value."""
    place = 0
    while place < len(message):
        start = place
        tag, place = _read_number(message, place)
        number, kind = tag >> 3, tag & 7
        if kind == 2:  # length, bytes
            length, place = _read_number(message, place)
            end = place + length
        elif kind == 0:  # a number
            _, end = _read_number(message, place)
        else:  # four bytes, or eight
            end = place + (4 if kind == 5 else 8)
        yield number, message[start:end], message[place:end]
        place = end


def _read_number(message: bytes, place: int) -> tuple[int, int]:
    """The number at a place, and the place behind it: seven bits a byte, lowest first, the last below 128."""
    number = shift = 0
    while True:
        byte = message[place]
        number |= (byte & 127) << shift
        place, shift = place + 1, shift + 7
        if byte < 128:
            return number, place


def _number(number: int) -> bytes:
    """A number as :func:`_read_number` reads it."""
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    return bytes([*written, number])
