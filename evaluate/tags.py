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

Scheme = Literal["BIO", "BIOUL", "IO"]
SCHEMES: Final[tuple[Scheme, ...]] = get_args(Scheme)
Span = tuple[int, int, str]
"""The first word of an entity, the one after its last, and its type."""

_PREFIXES: Final = {"BIO": "BI", "BIOUL": "BIUL", "IO": "I"}


def spans(tags: Sequence[str]) -> list[Span]:
    """The entities of BIO tags, by the rule of conlleval.

    An ``I-`` after ``O`` or after another type begins an entity, as ``B-`` always does (``startOfChunk``
    and ``endOfChunk`` of conlleval.pl, version 2004-01-26; seqeval's default is the same).  So IOB1 and
    IO can be read too.

    Raises:
        ValueError: a tag is neither ``O`` nor ``B`` or ``I`` with or without a type.
    """
    found: list[Span] = []
    before = None
    for place, tag in enumerate(tags):
        prefix, type_ = _parts(tag)
        if prefix == "B" or (prefix == "I" and type_ != before):
            found.append((place, place + 1, type_))
        elif prefix == "I":
            found[-1] = (found[-1][0], place + 1, type_)
        before = None if prefix == "O" else type_
    return found


def strict_spans(tags: Sequence[str]) -> list[Span]:
    """Those entities of BIO tags that begin with ``B-`` (seqeval's ``mode="strict", scheme=IOB2``)."""
    return [span for span in spans(tags) if tags[span[0]].startswith("B")]


def to(scheme: Scheme, tags: Sequence[str]) -> tuple[str, ...]:
    """Tags of a scheme for the entities (``spans``) of BIO tags; from IOB1 or IO, BIO makes true BIO."""
    written = ["O"] * len(tags)
    for start, end, type_ in spans(tags):
        inside = end - start - 1
        match scheme:
            case "BIO":
                prefixes = "B" + "I" * inside
            case "BIOUL":
                prefixes = "B" + "I" * (inside - 1) + "L" if inside else "U"
            case "IO":
                prefixes = "I" * (inside + 1)
        written[start:end] = [_tag(prefix, type_) for prefix in prefixes]
    return tuple(written)


def back(scheme: Scheme, tags: Sequence[str]) -> tuple[str, ...]:
    """BIO for predicted tags of a scheme, which may be ill-formed.

    BIO stays as it is, so that both rules above can be held against what was predicted.  Of BIOUL, U
    becomes B and L becomes I; as U and L end an entity, an I or L of the same type after them begins
    another, and becomes B.  Any other entity without its B still begins with I: the lenient rule counts
    it, the strict one does not.  In IO every run of a type is an entity, which begins with B.
    """
    if scheme == "IO":
        return to("BIO", tags)
    if scheme == "BIO":
        return tuple(tags)
    written: list[str] = []
    for place, tag in enumerate(tags):
        last = tags[place - 1] if place else "O"
        ended = last[0] in "UL" and last[1:] == tag[1:]
        match tag[0]:
            case "U":
                written.append("B" + tag[1:])
            case "I" | "L":
                written.append(("B" if ended else "I") + tag[1:])
            case _:
                written.append(tag)
    return tuple(written)


def labels(scheme: Scheme, types: Iterable[str]) -> tuple[str, ...]:
    """All tags of a scheme: ``O``, and those of each type in turn."""
    return ("O", *(_tag(prefix, type_) for type_ in types for prefix in _PREFIXES[scheme]))


def allowed(scheme: Scheme, labels: Sequence[str]) -> NDArray[numpy.bool_]:
    """Which tag may follow which in a well-formed sentence, [L + 1, L + 1].

    ``[i, j]``: label j may follow label i; ``[-1, j]``: a sentence may begin with j; ``[i, -1]``: it may
    end with i.  Its edges are as ``O`` is.
    """
    tags = (*labels, "O")
    return numpy.array([[_follows(scheme, tag, last) for tag in tags] for last in tags])


def _follows(scheme: Scheme, tag: str, last: str) -> bool:
    same = tag[1:] == last[1:]
    match scheme:
        case "BIO":
            return tag[0] != "I" or (last[0] in "BI" and same)
        case "BIOUL":
            is_open = last[0] in "BI"
            return (tag[0] in "IL") == is_open and (same or not is_open)
        case "IO":
            return True


def _tag(prefix: str, type_: str) -> str:
    return f"{prefix}-{type_}" if type_ else prefix


@cache
def _parts(tag: str) -> tuple[str, str]:
    prefix, _, type_ = tag.partition("-")
    if prefix not in ("B", "I") and tag != "O":
        raise InvalidValueError(f"{tag!r} is no BIO tag: neither O, nor B or I with a type")
    return prefix, type_
