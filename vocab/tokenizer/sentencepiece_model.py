"""SentencePiece models as protocol buffers: read the parts that tokenizers need, remove an option.

SentencePiece writes its options into the model, among them the path of a temporary file.  Its classes that
read a model need a newer protobuf than Apache Beam allows, and its processor tells neither the kind of a
piece nor the rules of the normaliser.
SOURCES: https://protobuf.dev/programming-guides/encoding/
    https://github.com/google/sentencepiece/blob/master/src/sentencepiece_model.proto
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from tokenizers.normalizers import Precompiled

from bioshards.corpus.errors import InvalidValueError
from bioshards.vocab.tokenizer.charsmap import find_charsmap_damage
from bioshards.vocab.tokenizer.wordpiece import ALBERT_UNK

_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
"""Numbers of the fields of a model: pieces, options of the trainer and of the normaliser."""
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
        unsupported: option because of which ALBERT's tokenizer would give other ids; None if there is none.
    """

    pieces: list[ModelPiece]
    charsmap: bytes
    unsupported: str | None


def parse_model(model: bytes) -> SentencePieceModel:
    """Read a model.

    Raises:
        InvalidValueError: the bytes are not a model.
    """
    pieces: list[ModelPiece] = []
    messages: dict[int, dict[int, bytes]] = {}
    try:
        for number, _, value in _iter_fields(model):
            if number in (_PIECES, _TRAINER, _NORMALIZER):
                fields = messages[number] = {inner: content for inner, _, content in _iter_fields(value)}
            if number == _PIECES:
                [score] = struct.unpack("<f", fields.get(2, bytes(4)))
                kind = PieceKind(_read_number(fields, 3, PieceKind.NORMAL))
                pieces.append(ModelPiece(fields[1].decode(), score, kind))
    except (IndexError, KeyError, ValueError, struct.error) as error:
        raise InvalidValueError(f"no SentencePiece model ({error})") from error
    if not pieces:
        raise InvalidValueError("no SentencePiece model: it has no pieces")
    trainer, normalizer = messages.get(_TRAINER, {}), messages.get(_NORMALIZER, {})
    charsmap = normalizer.get(2, b"")
    return SentencePieceModel(pieces, charsmap, _find_unsupported(pieces, charsmap, trainer, normalizer))


def _find_unsupported(
    pieces: Sequence[ModelPiece], charsmap: bytes, trainer: dict[int, bytes], normalizer: dict[int, bytes]
) -> str | None:
    if _read_number(trainer, 3, _UNIGRAM) != _UNIGRAM:
        return "of another type than unigram"
    if _read_number(trainer, 24, 0) or not _read_number(normalizer, 3, 1):
        # treat_whitespace_as_suffix, add_dummy_prefix
        return "without the sign for a blank before each word"
    if not _read_number(trainer, 22, 1):  # split_by_whitespace
        return "with pieces across blanks"
    if kinds := {piece.kind for piece in pieces} & {PieceKind.UNUSED, PieceKind.BYTE}:
        return f"with pieces of the kind {min(kinds).name}"
    if [piece.text for piece in pieces if piece.kind == PieceKind.UNKNOWN] != [ALBERT_UNK]:
        return f"without the unknown token {ALBERT_UNK}"
    if charsmap and (damage := find_charsmap_damage(charsmap)):
        return f"with rules of a normaliser that are damaged ({damage})"
    normalize = Precompiled(charsmap).normalize_str if charsmap else str
    for piece in pieces:
        if piece.kind == PieceKind.USER_DEFINED and normalize(piece.text) != piece.text:
            return f"whose normaliser changes its own piece {piece.text!r}"
    return None


def remove_option(model: bytes, option_value: bytes) -> bytes:
    """Return a SentencePiece model without the options of the trainer that have this value."""
    rewritten_fields = []
    for number, field, value in _iter_fields(model):
        if number == _TRAINER:
            kept = b"".join(inner for _, inner, content in _iter_fields(value) if content != option_value)
            field = bytes([_TRAINER << 3 | 2, *_encode_varint(len(kept))]) + kept
        rewritten_fields.append(field)
    return b"".join(rewritten_fields)


def _iter_fields(message: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield the fields of a message: number, all bytes, bytes of the value."""
    position = 0
    while position < len(message):
        start = position
        tag, position = _read_varint(message, position)
        match tag & 7:
            case 2:  # length, bytes
                length, position = _read_varint(message, position)
                end = position + length
            case 0:  # a number
                _, end = _read_varint(message, position)
            case wire_type:  # four bytes, or eight
                end = position + (4 if wire_type == 5 else 8)
        yield tag >> 3, message[start:end], message[position:end]
        position = end


def _read_number(fields: dict[int, bytes], number: int, default: int) -> int:
    return _read_varint(fields[number], 0)[0] if number in fields else default


def _read_varint(message: bytes, position: int) -> tuple[int, int]:
    """Return the number at a position (seven bits a byte, lowest first) and the next position."""
    number = shift = 0
    while True:
        byte = message[position]
        number |= (byte & 127) << shift
        position, shift = position + 1, shift + 7
        if byte < 128:
            return number, position


def _encode_varint(number: int) -> Iterator[int]:
    """Yield the bytes of a number for :func:`_read_varint`."""
    while number > 127:
        yield number & 127 | 128
        number >>= 7
    yield number
