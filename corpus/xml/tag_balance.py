"""Cheap well-formedness check: count opening, closing and self-closing tags.

True for well-formed records (except a few with ``>`` in an attribute), False for most broken ones. Records
that fail the check are parsed with lxml.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

_SELF_CLOSED = re.compile(r"<[^<>]*/>")


def has_balanced_tags(record: str) -> bool:
    """Return True if the tags of a record balance."""
    unclosed = record.count("<") - 2 * record.count("</")
    return unclosed == 0 or unclosed == len(_SELF_CLOSED.findall(record))


def have_balanced_tags(records: Sequence[bytes]) -> bool:
    """Return True if the tags of all records together balance. Twice as fast as checking each record."""
    xml = b"".join(records)
    if len(xml) < 2:
        return False
    array = np.frombuffer(xml, np.uint8)
    opening, slash = array == ord("<"), array == ord("/")
    unclosed = np.count_nonzero(opening) - 2 * np.count_nonzero(opening[:-1] & slash[1:])
    if unclosed == 0:
        return True
    self_closed = np.count_nonzero(slash[:-1] & (array[1:] == ord(">")))
    return bool(unclosed == self_closed)
