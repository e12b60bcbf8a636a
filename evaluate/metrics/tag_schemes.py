"""Tags of words: BIO, BIOUL and IO, how to change one into another, and the entities they stand for.

PubMedBERT's authors compare the three and find hardly a difference (arXiv:2007.15779); here they are
options.  BIO is IOB2: every entity begins with ``B-``.  BIOUL, also called BILOU or BIOES, marks the last
word of an entity (L) and an entity of one word (U) too.  IO tells only inside from outside, so that two
entities of a type side by side become one.  A tag is ``O``, or ``B-Type``, or in untyped files ``B``.
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
"""The first word of an entity, the one after its last, and its type."""

_PREFIXES: Final = {"BIO": "BI", "BIOUL": "BIUL", "IO": "I"}


def extract_spans(tags: Sequence[str]) -> list[EntitySpan]:
    """The entities of BIO tags, by the rule of conlleval.

    An ``I-`` after ``O`` or after another type begins an entity, as ``B-`` always does (``startOfChunk``
    and ``endOfChunk`` of conlleval.pl, version 2004-01-26; seqeval's default is the same).  So IOB1 and
    IO can be read too.

    Raises:
        ValueError: a tag is neither ``O`` nor ``B`` or ``I`` with or without a type.
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
    """Those entities of BIO tags that begin with ``B-`` (seqeval's ``mode="strict", scheme=IOB2``)."""
    return [span for span in extract_spans(tags) if tags[span[0]].startswith("B")]


def convert_from_bio(scheme: TagScheme, tags: Sequence[str]) -> tuple[str, ...]:
    """Tags of a scheme for the entities (``spans``) of BIO tags; from IOB1 or IO, BIO makes true BIO."""
    converted = ["O"] * len(tags)
    for start, end, entity_type in extract_spans(tags):
        num_inside = end - start - 1
        match scheme:
            case "BIO":
                prefixes = "B" + "I" * num_inside
            case "BIOUL":
                prefixes = "B" + "I" * (num_inside - 1) + "L" if num_inside else "U"
            case "IO":
                prefixes = "I" * (num_inside + 1)
        converted[start:end] = [_make_tag(prefix, entity_type) for prefix in prefixes]
    return tuple(converted)


def convert_to_bio(scheme: TagScheme, tags: Sequence[str]) -> tuple[str, ...]:
    """BIO for predicted tags of a scheme, which may be ill-formed.

    BIO stays as it is, so that both rules above can be held against what was predicted.  Of BIOUL, U
    becomes B and L becomes I; as U and L end an entity, an I or L of the same type after them begins
    another, and becomes B.  Any other entity without its B still begins with I: the lenient rule counts
    it, the strict one does not.  In IO every run of a type is an entity, which begins with B.
    """
    if scheme == "IO":
        return convert_from_bio("BIO", tags)
    if scheme == "BIO":
        return tuple(tags)
    converted: list[str] = []
    for index, tag in enumerate(tags):
        previous = tags[index - 1] if index else "O"
        is_after_end = previous[0] in "UL" and previous[1:] == tag[1:]
        match tag[0]:
            case "U":
                converted.append("B" + tag[1:])
            case "I" | "L":
                converted.append(("B" if is_after_end else "I") + tag[1:])
            case _:
                converted.append(tag)
    return tuple(converted)


def list_labels(scheme: TagScheme, entity_types: Iterable[str]) -> tuple[str, ...]:
    """All tags of a scheme: ``O``, and those of each type in turn."""
    return (
        "O",
        *(_make_tag(prefix, entity_type) for entity_type in entity_types for prefix in _PREFIXES[scheme]),
    )


def allowed_transitions(scheme: TagScheme, labels: Sequence[str]) -> NDArray[numpy.bool_]:
    """Which tag may follow which in a well-formed sentence, [L + 1, L + 1].

    ``[i, j]``: label j may follow label i; ``[-1, j]``: a sentence may begin with j; ``[i, -1]``: it may
    end with i.  Its edges are as ``O`` is.
    """
    tags = (*labels, "O")
    return numpy.array([[_may_follow(scheme, tag, previous) for tag in tags] for previous in tags])


def _may_follow(scheme: TagScheme, tag: str, previous: str) -> bool:
    is_same_type = tag[1:] == previous[1:]
    match scheme:
        case "BIO":
            return tag[0] != "I" or (previous[0] in "BI" and is_same_type)
        case "BIOUL":
            is_open = previous[0] in "BI"
            return (tag[0] in "IL") == is_open and (is_same_type or not is_open)
        case "IO":
            return True


def _make_tag(prefix: str, entity_type: str) -> str:
    return f"{prefix}-{entity_type}" if entity_type else prefix


@cache
def _split_tag(tag: str) -> tuple[str, str]:
    prefix, _, entity_type = tag.partition("-")
    if prefix not in ("B", "I") and tag != "O":
        raise InvalidValueError(f"{tag!r} is no BIO tag: neither O, nor B or I with a type")
    return prefix, entity_type
