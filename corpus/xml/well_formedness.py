"""Cheap checks of well-formedness: the balance of tags, and control characters.

Records that fail a check are parsed with lxml. Tags balance in well-formed records (except a few with ``>``
in an attribute), and in few broken ones.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import numpy as np

_SELF_CLOSED = re.compile(r"<[^<>]*/>")
_XML_BYTES: Final = bytes(set(range(256)) - set(range(0x20)) | set(b"\t\n\r"))
"""Bytes of the characters that XML permits."""


def has_balanced_tags(record: str) -> bool:
    """Return True if the tags of a record balance."""
    unclosed = record.count("<") - 2 * record.count("</")
    return unclosed == 0 or unclosed == len(_SELF_CLOSED.findall(record))


def has_forbidden_character(xml: bytes) -> bool:
    """Return True if the XML has a control character that XML forbids."""
    return bool(xml.translate(None, _XML_BYTES))


def pass_checks(records: Sequence[bytes]) -> bool:
    """Return True if the tags of all records together balance, and none has a forbidden character.

    Several times as fast as to check each record.
    """
    xml = b"".join(records)
    if len(xml) < 2:
        return False
    array = np.frombuffer(xml, np.uint8)
    opening, slash = array == ord("<"), array == ord("/")
    unclosed = np.count_nonzero(opening) - 2 * np.count_nonzero(opening[:-1] & slash[1:])
    if unclosed and unclosed != np.count_nonzero(slash[:-1] & (array[1:] == ord(">"))):
        return False
    # Of bytes less 11, line feed and tab are the largest. A carriage return is looked at again.
    has_control = array.min() < ord("\t") or (array - np.uint8(11)).min() < ord(" ") - 11
    return not (has_control and has_forbidden_character(xml))
