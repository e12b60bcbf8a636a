"""SentencePiece models as protocol buffers: read the parts that tokenizers need, remove an option.

SentencePiece writes its options into the model, among them the path of a temporary file.  Its classes that
read a model need a newer protobuf than Apache Beam allows, and its processor tells neither the kind of a
piece nor the rules of the normaliser.
SOURCES: https://protobuf.dev/programming-guides/encoding/
    https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from bioshards.corpus.errors import InvalidValueError

TRAINER_SPEC_FIELD: Final = 2
"""Field number of the options in a SentencePiece model (sentencepiece_model.proto)."""
_PIECES_FIELD: Final = 1
_NORMALIZER_SPEC_FIELD: Final = 3
_UNIGRAM: Final = 1


class PieceKind(IntEnum):
    """Kind of a piece."""

    NORMAL = 1
    UNKNOWN = 2
    CONTROL = 3
    USER_DEFINED = 4
    UNUSED = 5
    BYTE = 6


class ModelPiece(NamedTuple):
    """A piece of a model, with its log probability."""

    text: str
    score: float
    kind: PieceKind


class SentencePieceModel(NamedTuple):
    """Parts of a model.

    Attributes:
        pieces: in the order of ids.
        charsmap: rules of the normaliser, compiled; empty if it changes no characters.
        is_unigram: True for a unigram model.
        has_word_start_sign: True if each word begins with the sign for a blank (``add_dummy_prefix``).
        has_word_end_sign: True if the sign ends words instead (``treat_whitespace_as_suffix``).
        has_pieces_in_words: True if no piece reaches over a blank (``split_by_whitespace``).
    """

    pieces: list[ModelPiece]
    charsmap: bytes
    is_unigram: bool
    has_word_start_sign: bool
    has_word_end_sign: bool
    has_pieces_in_words: bool


def parse_model(model: bytes) -> SentencePieceModel:
    """Read a model.

    Raises:
        InvalidValueError: the bytes are not a model.
    """
    pieces: list[ModelPiece] = []
    trainer: dict[int, bytes] = {}
    normalizer: dict[int, bytes] = {}
    try:
        for field_number, _, value in _iter_fields(model):
            if field_number == _PIECES_FIELD:
                pieces.append(_parse_piece(value))
            elif field_number == TRAINER_SPEC_FIELD:
                trainer = _read_message(value)
            elif field_number == _NORMALIZER_SPEC_FIELD:
                normalizer = _read_message(value)
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise InvalidValueError(f"no SentencePiece model ({error})") from error
    if not pieces:
        raise InvalidValueError("no SentencePiece model: it has no pieces")
    return SentencePieceModel(
        pieces=pieces,
        charsmap=normalizer.get(2, b""),
        is_unigram=_read_number(trainer, 3, _UNIGRAM) == _UNIGRAM,
        has_word_start_sign=bool(_read_number(normalizer, 3, 1)),
        has_word_end_sign=bool(_read_number(trainer, 24, 0)),
        has_pieces_in_words=bool(_read_number(trainer, 22, 1)),
    )


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


def _parse_piece(message: bytes) -> ModelPiece:
    fields = _read_message(message)
    [score] = struct.unpack("<f", fields.get(2, bytes(4)))
    return ModelPiece(fields[1].decode(), score, PieceKind(_read_number(fields, 3, PieceKind.NORMAL)))


def _read_message(message: bytes) -> dict[int, bytes]:
    """Return the value of each field; of a repeated field, the last."""
    return {field_number: value for field_number, _, value in _iter_fields(message)}


def _read_number(fields: dict[int, bytes], field_number: int, default: int) -> int:
    return _read_varint(fields[field_number], 0)[0] if field_number in fields else default


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
