"""Compiled rules of a SentencePiece normaliser (``precompiled_charsmap``): checks, and looks at single rules.

The rules begin with the size of a double-array trie in bytes (uint32, little endian).  Its units of 32 bits
follow, the root first, then the replacements as UTF-8, each with a zero byte at its end.  A unit has the
label of its character in the lowest 8 bits, a flag of a rule that ends there in bit 8, and the offset of its
children in the highest 22.  They lie at *position XOR offset XOR character*, the value of the rule at
*position XOR offset*.  A value has bit 31 set; the rest is the place of the replacement.
SOURCES: https://github.com/s-yata/darts-clone/blob/master/include/darts.h
    https://github.com/google/sentencepiece/blob/master/src/normalizer.cc (EncodePrecompiledCharsMap)
"""

from __future__ import annotations

import struct
from typing import Final

_VALUE_FLAG: Final = 1 << 31
_BLOCK: Final = 256
"""Units of a block: the children of a unit, one for each byte, are within one block."""


def find_charsmap_damage(charsmap: bytes) -> str | None:
    """Return why rules cannot be applied; None if they can.

    The tokenizers library reads them without checks: it ends in a panic at the first text that meets a unit
    or a replacement outside of the rules.
    """
    try:
        units, replacements = _parse(charsmap)
    except (struct.error, UnicodeDecodeError) as error:
        return str(error)
    if not units or len(units) % _BLOCK:
        return f"a trie of {len(units)} units"
    for position, unit in enumerate(units):
        if unit & _VALUE_FLAG:
            continue
        children = position ^ _get_offset(unit)
        if children >= len(units):
            return f"unit {position} has children at {children} of {len(units)} units"
        place = units[children] & ~_VALUE_FLAG
        if unit >> 8 & 1 and not _is_start_of_character(replacements, place):
            return f"unit {position} has its replacement at byte {place} of {len(replacements)}"
    return None


def has_rule_of(charsmap: bytes, character: str) -> bool:
    """Return True if a rule begins with this ASCII character."""
    units, _ = _parse(charsmap)
    code = ord(character)
    return units[_get_offset(units[0]) ^ code] & (_VALUE_FLAG | 0xFF) == code


def _parse(charsmap: bytes) -> tuple[tuple[int, ...], bytes]:
    """Return the units of the trie, and the replacements."""
    [size] = struct.unpack_from("<I", charsmap)
    units: tuple[int, ...] = struct.unpack_from(f"<{size // 4}I", charsmap, 4)
    replacements = charsmap[4 + size // 4 * 4 :]
    replacements.decode()
    return units, replacements


def _get_offset(unit: int) -> int:
    return (unit >> 10) << ((unit & 1 << 9) >> 6)


def _is_start_of_character(replacements: bytes, place: int) -> bool:
    return place < len(replacements) and replacements[place] & 0xC0 != 0x80
