"""The text that a model reads for a relation, and where in it the two entities are.

PubMedBERT's paper compares three texts (sections 2.4.2 and 3.3, table 14): ``dummies``, with the types
of the entities in their places, as its main results have it; ``markers``, with tags around them; and the
``original``, where only features of the mentions (heads.py) can say which two entities are meant.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from bioshards.corpus.errors import InvalidValueError

from .records import Mention, Relation

Kind = Literal["dummies", "markers", "original"]
Range = tuple[int, int]
"""Characters: from the first to before the last."""

TAGS: Final = ("[E1]", "[/E1]", "[E2]", "[/E2]")
"""Of Baldini Soares et al. 2019 (arXiv:1906.03158), from whom PubMedBERT's paper has its markers."""
SHORT: Final = {"CHEMICAL": "CHEM"}
"""How a type is spelled in the dummy of two entities, where not in full: ``@CHEM-GENE$``."""


class RelationInput(NamedTuple):
    """A text to read.

    Attributes:
        first: the first mention, without its own tags, or the dummy in its place.
        second: likewise; where one dummy is for both, the same.
        starts: the character where each entity begins: its opening tag if there are tags.
    """

    text: str
    first: Range
    second: Range
    starts: tuple[int, int]


def relation_input(relation: Relation, kind: Kind) -> RelationInput:
    """What a model reads of a relation.

    Raises:
        ValueError: the mentions are empty, outside of the text, or not in order.
    """
    first, second = relation.first, relation.second
    whole = first.start < first.end and second.start < second.end <= len(relation.text) >= first.end
    if not (whole and 0 <= first.start <= second.start):
        raise InvalidValueError(
            f"relation {relation.id}: {first} and {second} are not two mentions, in order, in a text of"
            f" {len(relation.text)} characters"
        )
    if kind == "dummies":
        return _dummies(relation.text, first, second)
    if kind == "markers":
        return _markers(relation.text, first, second)
    mentions = (first.start, first.end), (second.start, second.end)
    return RelationInput(relation.text, *mentions, (first.start, second.start))


def special_tokens(kind: Kind) -> tuple[str, ...]:
    """What a tokenizer has to keep in one piece, and a model to learn a vector for.

    Tags are, as in Baldini Soares et al.; dummies are not: ``@DRUG$`` is read as the pieces that the
    vocabulary has for it, as LinkBERT (src/seqcls/run_seqcls.py) reads BLURB's files.
    """
    return TAGS if kind == "markers" else ()


def dummy(*types: str) -> str:
    """What stands for an entity, ``@DRUG$``, or for two that overlap: ``@DRUG-DRUG$``, ``@CHEM-GENE$``.

    The spelling is that of BLURB's files, and of those in BLUE's format.
    """
    names = types if len(types) == 1 else sorted(SHORT.get(name, name) for name in types)
    return f"@{'-'.join(names)}$"


def _dummies(text: str, first: Mention, second: Mention) -> RelationInput:
    """Each mention's type in its place; if they share a character, one dummy in that of both.

    Mentions that only touch stay two (``split_sent`` in BLURB's preprocessor.py; BLUE joins them).
    """
    if first.end > second.start:
        both = dummy(first.type, second.type)
        at = first.start, first.start + len(both)
        read = text[: first.start] + both + text[max(first.end, second.end) :]
        return RelationInput(read, at, at, (first.start, first.start))
    one, other = dummy(first.type), dummy(second.type)
    before = text[: first.start] + one + text[first.end : second.start]
    mentions = (first.start, first.start + len(one)), (len(before), len(before) + len(other))
    return RelationInput(before + other + text[second.end :], *mentions, (first.start, len(before)))


def _markers(text: str, first: Mention, second: Mention) -> RelationInput:
    """``[E1] ... [/E1]`` and ``[E2] ... [/E2]`` around the mentions, with a blank inside of each tag.

    Mentions may overlap.  Where tags meet, those that close come first, and a mention that is inside of
    the other keeps its tags inside of the other's; so does the second of two that are the same.
    """
    tags = sorted(
        tag
        for number, mention in enumerate((first, second))
        for tag in (
            (mention.start, 1, -mention.end, number, f"{TAGS[2 * number]} "),
            (mention.end, 0, -mention.start, -number, f" {TAGS[2 * number + 1]}"),
        )
    )
    read, done = "", 0
    at: dict[str, int] = {}
    for position, _, _, _, tag in tags:
        read += text[done:position]
        done, at[tag.strip()] = position, len(read)
        read += tag
    mentions = [(at[begin] + len(begin) + 1, at[end]) for begin, end in (TAGS[:2], TAGS[2:])]
    return RelationInput(read + text[done:], mentions[0], mentions[1], (at[TAGS[0]], at[TAGS[2]]))
