"""The text that a model reads for a relation, and where in it the two entities are.

PubMedBERT's paper compares three texts (sections 2.4.2 and 3.3, table 14): ``placeholders``, with the types
of the entities in their places, as its main results have it; ``markers``, with tags around them; and the
``original``, where only features of the mentions (heads.py) can say which two entities are meant.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.record_types import Mention, Relation

EntityFormat = Literal["placeholders", "markers", "original"]
CharacterRange = tuple[int, int]
"""Characters: from the first to before the last."""

ENTITY_MARKERS: Final = ("[E1]", "[/E1]", "[E2]", "[/E2]")
"""Of Baldini Soares et al. 2019 (arXiv:1906.03158), from whom PubMedBERT's paper has its markers."""
SHORT_TYPE_NAMES: Final = {"CHEMICAL": "CHEM"}
"""How a type is spelled in the dummy of two entities, where not in full: ``@CHEM-GENE$``."""


class RelationInput(NamedTuple):
    """A text to read.

    Attributes:
        first: the first mention, without its own tags, or the dummy in its place.
        second: likewise; where one dummy is for both, the same.
        starts: the character where each entity begins: its opening tag if there are tags.
    """

    text: str
    first: CharacterRange
    second: CharacterRange
    entity_starts: tuple[int, int]


def build_relation_input(relation: Relation, entity_format: EntityFormat) -> RelationInput:
    """What a model reads of a relation.

    Raises:
        ValueError: the mentions are empty, outside of the text, or not in order.
    """
    first, second = relation.first, relation.second
    is_within_text = first.start < first.end and second.start < second.end <= len(relation.text) >= first.end
    if not (is_within_text and 0 <= first.start <= second.start):
        raise InvalidValueError(
            f"relation {relation.id}: {first} and {second} are not two mentions, in order, in a text of"
            f" {len(relation.text)} characters"
        )
    if entity_format == "placeholders":
        return _replace_entities(relation.text, first, second)
    if entity_format == "markers":
        return _insert_markers(relation.text, first, second)
    mentions = (first.start, first.end), (second.start, second.end)
    return RelationInput(relation.text, *mentions, (first.start, second.start))


def list_special_tokens(entity_format: EntityFormat) -> tuple[str, ...]:
    """What a tokenizer has to keep in one piece, and a model to learn a vector for.

    Tags are, as in Baldini Soares et al.; dummies are not: ``@DRUG$`` is read as the pieces that the
    vocabulary has for it, as LinkBERT (src/seqcls/run_seqcls.py) reads BLURB's files.
    """
    return ENTITY_MARKERS if entity_format == "markers" else ()


def entity_placeholder(*entity_types: str) -> str:
    """What stands for an entity, ``@DRUG$``, or for two that overlap: ``@DRUG-DRUG$``, ``@CHEM-GENE$``.

    The spelling is that of BLURB's files, and of those in BLUE's format.
    """
    names = (
        entity_types
        if len(entity_types) == 1
        else sorted(SHORT_TYPE_NAMES.get(name, name) for name in entity_types)
    )
    return f"@{'-'.join(names)}$"


def _replace_entities(text: str, first: Mention, second: Mention) -> RelationInput:
    """Each mention's type in its place; if they share a character, one dummy in that of both.

    Mentions that only touch stay two (``split_sent`` in BLURB's preprocessor.py; BLUE joins them).
    """
    if first.end > second.start:
        placeholder = entity_placeholder(first.type, second.type)
        character_range = first.start, first.start + len(placeholder)
        new_text = text[: first.start] + placeholder + text[max(first.end, second.end) :]
        return RelationInput(new_text, character_range, character_range, (first.start, first.start))
    first_placeholder, second_placeholder = entity_placeholder(first.type), entity_placeholder(second.type)
    prefix = text[: first.start] + first_placeholder + text[first.end : second.start]
    mentions = (
        (first.start, first.start + len(first_placeholder)),
        (len(prefix), len(prefix) + len(second_placeholder)),
    )
    return RelationInput(
        prefix + second_placeholder + text[second.end :], *mentions, (first.start, len(prefix))
    )


def _insert_markers(text: str, first: Mention, second: Mention) -> RelationInput:
    """``[E1] ... [/E1]`` and ``[E2] ... [/E2]`` around the mentions, with a blank inside of each tag.

    Mentions may overlap.  Where tags meet, those that close come first, and a mention that is inside of
    the other keeps its tags inside of the other's; so does the second of two that are the same.
    """
    markers = sorted(
        marker
        for index, mention in enumerate((first, second))
        for marker in (
            (mention.start, 1, -mention.end, index, f"{ENTITY_MARKERS[2 * index]} "),
            (mention.end, 0, -mention.start, -index, f" {ENTITY_MARKERS[2 * index + 1]}"),
        )
    )
    marked_text, copied = "", 0
    marker_positions: dict[str, int] = {}
    for position, _, _, _, marker in markers:
        marked_text += text[copied:position]
        copied, marker_positions[marker.strip()] = position, len(marked_text)
        marked_text += marker
    mentions = [
        (marker_positions[opening] + len(opening) + 1, marker_positions[closing])
        for opening, closing in (ENTITY_MARKERS[:2], ENTITY_MARKERS[2:])
    ]
    return RelationInput(
        marked_text + text[copied:],
        mentions[0],
        mentions[1],
        (marker_positions[ENTITY_MARKERS[0]], marker_positions[ENTITY_MARKERS[2]]),
    )
