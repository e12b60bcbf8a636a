"""Mend text that a publisher encoded in UTF-8 and then read as Windows-1252 or Latin-1: ``Ã©`` is ``é``.

Only sequences are mended that no text in a Latin script has: ``3 Å²`` and the letters of names stay.
"""

from __future__ import annotations

import re
from typing import Final


def _characters(first: int, last: int) -> str:
    """Return the characters as which the bytes of a range appear, in both encodings."""
    codes = bytes(range(first, last + 1))
    return codes.decode("latin-1") + codes.decode("windows-1252", "ignore")


_CONTINUATION: Final = re.escape(_characters(0x80, 0xBF))
_SEQUENCES: Final = (
    "Â[\xa1-\xac\xae-\xbf]",  # signs: Â° Â± Â· Âµ; not a no-break space, as after a statistic
    f"Ã[{re.escape(_characters(0x80, 0x90) + _characters(0x96, 0x9F) + _characters(0xA1, 0xBF))}]",  # letters
    "Ä[±‡™\x87\x8d\x99]|Å[¡¾‚„\x82\x84]",  # ı ć ę č š ž ł ń; Å² and Å– are ångströms
    f"[ÎÏ][{_CONTINUATION}]",  # Greek
    f"â[€\x80-\x8b‚„…†‡ˆ‰Š‹][{_CONTINUATION}]",  # punctuation, arrows, mathematical signs
    "ï¬[€\x80-\x86‚ƒ„…†]|ï»¿",  # ligatures, byte-order mark
)
PATTERN: Final = re.compile("|".join(_SEQUENCES))
_MENDED = re.compile("[\xa1-\u017f\u0391-\u03c9\u2000-\u23ff\ufb00-\ufb06\ufeff]")
"""What a sequence can stand for."""


_MAX_PASSES: Final = 4
"""Times that a text may have been encoded wrongly."""


def mend(text: str) -> str:
    """Return the text with each wrongly decoded sequence replaced by its character."""
    for _ in range(_MAX_PASSES):
        mended = PATTERN.sub(_decode_sequence, text)
        if mended == text:
            break
        text = mended
    return text


def _decode_sequence(sequence: re.Match[str]) -> str:
    codes = b"".join(
        character.encode("latin-1" if character <= "\xff" else "windows-1252") for character in sequence[0]
    )
    character = codes.decode()  # every sequence of the pattern is valid UTF-8
    return character if _MENDED.fullmatch(character) else sequence[0]
