"""Text of a relation as the model reads it, and the positions of its two entities.

PubMedBERT's paper compares three formats (sections 2.4.2 and 3.3, table 14): ``placeholders`` replaces the
entities with their types, as in its main results; ``markers`` puts tags around them; ``original`` keeps the
text, and only features of the mentions (classification.py) identify the entities.
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.evaluate.benchmarks.records import Mention, Relation

EntityFormat = Literal["placeholders", "markers", "original"]
CharacterRange = tuple[int, int]
"""First character and end (exclusive)."""

ENTITY_MARKERS: Final = ("[E1]", "[/E1]", "[E2]", "[/E2]")
"""Markers of Baldini Soares et al. 2019 (arXiv:1906.03158), which PubMedBERT's paper uses.

They are added to the vocabulary, as there.  Placeholders are tokenized as text, as LinkBERT
(src/seqcls/run_seqcls.py) reads BLURB's files.
"""
SHORT_TYPE_NAMES: Final = {"CHEMICAL": "CHEM"}
"""Abbreviated type in the placeholder of two overlapping entities: ``@CHEM-GENE$``."""


class RelationInput(NamedTuple):
    """Text of a relation.

    Attributes:
        first: range of the first mention without its markers, or of its placeholder.
        second: range of the second mention; equal to ``first`` if one placeholder stands for both.
        entity_starts: first character of each entity, of its opening marker if there are markers.
    """

    text: str
    first: CharacterRange
    second: CharacterRange
    entity_starts: tuple[int, int]


def build_relation_input(relation: Relation, entity_format: EntityFormat) -> RelationInput:
    """Return the text of a relation in an entity format.

    Raises:
        InvalidValueError: the mentions are empty, outside the text, or not in order.
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


def entity_placeholder(*entity_types: str) -> str:
    """Return the placeholder of an entity, or of two that overlap.

    Examples are ``@DRUG$``, ``@DRUG-DRUG$`` and ``@CHEM-GENE$``, in the spelling of BLURB's and BLUE's files.
    """
    names = (
        entity_types
        if len(entity_types) == 1
        else sorted(SHORT_TYPE_NAMES.get(name, name) for name in entity_types)
    )
    return f"@{'-'.join(names)}$"


def _replace_entities(text: str, first: Mention, second: Mention) -> RelationInput:
    """Replace each mention with its placeholder; overlapping mentions share one.

    Mentions that touch stay separate (``split_sent`` in BLURB's preprocessor.py; BLUE joins them).
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
    """Put ``[E1] ... [/E1]`` and ``[E2] ... [/E2]`` around the mentions, with a blank inside each marker.

    Mentions may overlap. At the same position closing markers come first, and the markers of an inner
    mention, or of the second of two equal ones, stay inside those of the other.
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
