"""Tag schemes BIO, BIOUL and IO: conversion and extraction of entities.

PubMedBERT's authors compare the three and find little difference (arXiv:2007.15779). BIO is IOB2: every
entity begins with ``B-``. BIOUL (BILOU, BIOES) also marks the last word (L) and single-word entities (U). IO
marks inside and outside only, so adjacent entities of a type merge. A tag is ``O`` or ``B-Type``; untyped
files have ``B``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Final, Literal, get_args

import numpy
from numpy.typing import NDArray

from bioshards.corpus.errors import InvalidValueError

TagScheme = Literal["BIO", "BIOUL", "IO"]
TAG_SCHEMES: Final[tuple[TagScheme, ...]] = get_args(TagScheme)
EntitySpan = tuple[int, int, str]
"""First word, end word (exclusive) and type of an entity."""

_PREFIXES: Final = {"BIO": "BI", "BIOUL": "BIUL", "IO": "I"}


def extract_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities of BIO tags by conlleval's rule.

    ``B-``, and ``I-`` after ``O`` or another type, begin an entity (``startOfChunk`` and ``endOfChunk`` of
    conlleval.pl, 2004-01-26; seqeval's default), so IOB1 and IO are accepted too.

    Raises:
        InvalidValueError: a tag is not ``O``, ``B`` or ``I``, with or without a type.
    """
    entities: list[EntitySpan] = []
    previous_type = None
    for index, tag in enumerate(tags):
        prefix, entity_type = _split_tag(tag)
        if prefix == "B" or (prefix == "I" and entity_type != previous_type):
            entities.append((index, index + 1, entity_type))
        elif prefix == "I":
            entities[-1] = (entities[-1][0], index + 1, entity_type)
        previous_type = None if prefix == "O" else entity_type
    return entities


def extract_strict_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """Return the entities of BIO tags that begin with ``B-`` (seqeval's ``mode="strict", scheme=IOB2``)."""
    return [span for span in extract_spans(tags) if tags[span[0]].startswith("B")]


def convert_from_bio(scheme: TagScheme, tags: Sequence[str]) -> tuple[str, ...]:
    """Convert BIO tags to a scheme; IOB1 and IO input to ``BIO`` becomes valid BIO."""
    converted = ["O"] * len(tags)
    for start, end, entity_type in extract_spans(tags):
        inside = end - start - 1
        prefixes = {
            "BIO": "B" + "I" * inside,
            "BIOUL": "B" + "I" * (inside - 1) + "L" if inside else "U",
            "IO": "I" * (inside + 1),
        }[scheme]
        converted[start:end] = [_make_tag(prefix, entity_type) for prefix in prefixes]
    return tuple(converted)


def convert_to_bio(scheme: TagScheme, tags: Sequence[str]) -> tuple[str, ...]:
    """Convert predicted tags of a scheme, which may be ill-formed, to BIO.

    BIO is unchanged, so that lenient and strict metrics see the prediction. In BIOUL, U becomes B and L
    becomes I; an I or L of the same type after U or L begins another entity and becomes B. Entities without B
    keep their I: lenient metrics count them, strict ones do not. In IO each run of a type is an entity that
    begins with B.
    """
    if scheme == "IO":
        return convert_from_bio("BIO", tags)
    if scheme == "BIO":
        return tuple(tags)
    converted = []
    for previous, tag in zip(("O", *tags), tags, strict=False):
        is_after_end = previous[0] in "UL" and previous[1:] == tag[1:]
        prefix = {"U": "B", "L": "I"}.get(tag[0], tag[0])
        converted.append(("B" if prefix == "I" and is_after_end else prefix) + tag[1:])
    return tuple(converted)


def list_labels(scheme: TagScheme, entity_types: Iterable[str]) -> tuple[str, ...]:
    """Return all tags of a scheme: ``O``, then those of each type."""
    return ("O", *(_make_tag(prefix, name) for name in entity_types for prefix in _PREFIXES[scheme]))


def allowed_transitions(scheme: TagScheme, labels: Sequence[str]) -> NDArray[numpy.bool_]:
    """Return which tag may follow which, bool[L + 1, L + 1].

    ``[i, j]``: label j may follow label i; ``[-1, j]``: j may start a sentence; ``[i, -1]``: i may end one.
    Sentence edges behave like ``O``.
    """
    tags = (*labels, "O")
    return numpy.array([[_may_follow(scheme, tag, previous) for tag in tags] for previous in tags])


def _may_follow(scheme: TagScheme, tag: str, previous: str) -> bool:
    is_same_type, is_open = tag[1:] == previous[1:], previous[0] in "BI"
    if scheme == "BIO":
        return tag[0] != "I" or (is_open and is_same_type)
    return scheme == "IO" or ((tag[0] in "IL") == is_open and (is_same_type or not is_open))


def _make_tag(prefix: str, entity_type: str) -> str:
    return f"{prefix}-{entity_type}" if entity_type else prefix


@cache
def _split_tag(tag: str) -> tuple[str, str]:
    prefix, _, entity_type = tag.partition("-")
    if prefix not in ("B", "I") and tag != "O":
        raise InvalidValueError(f"{tag!r} is no BIO tag: neither O, nor B or I with a type")
    return prefix, entity_type
