"""Texts as a model reads them: those of a relation, its two entities in them, and those of whole benchmarks.

PubMedBERT's paper compares three formats (sections 2.4.2 and 3.3, table 14): ``placeholders`` replaces the
entities with their types, as in its main results; ``markers`` puts tags around them; ``original`` keeps the
text, and only features of the mentions identify the entities.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.ui.progress import Progress
from bioshards.evaluate.benchmarks.catalogue import Benchmark, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import (
    BenchmarkNotFoundError,
    Mention,
    Record,
    Relation,
    record_texts,
)
from bioshards.evaluate.recipes import EntityFormat, RelationFeature

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
    text, first, second = relation.text, relation.first, relation.second
    is_within_text = first.start < first.end and second.start < second.end <= len(text) >= first.end
    if not (is_within_text and 0 <= first.start <= second.start):
        raise InvalidValueError(
            f"relation {relation.id}: {first} and {second} are not two mentions, in order, in a text of"
            f" {len(text)} characters"
        )
    match entity_format:
        case "placeholders":
            return _replace_entities(text, first, second)
        case "markers":
            return _insert_markers(text, first, second)
        case "original":
            starts = first.start, second.start
            return RelationInput(text, (first.start, first.end), (second.start, second.end), starts)


def entity_placeholder(*entity_types: str) -> str:
    """Return the placeholder of an entity, or of two that overlap.

    Examples are ``@DRUG$``, ``@DRUG-DRUG$`` and ``@CHEM-GENE$``, in the spelling of BLURB's and BLUE's files.
    """
    if len(entity_types) == 1:
        return f"@{entity_types[0]}$"
    return f"@{'-'.join(sorted(SHORT_TYPE_NAMES.get(name, name) for name in entity_types))}$"


def _replace_entities(text: str, first: Mention, second: Mention) -> RelationInput:
    """Replace each mention with its placeholder; overlapping mentions share one.

    Mentions that touch stay separate (``split_sent`` in BLURB's preprocessor.py; BLUE joins them).
    """
    if first.end > second.start:
        prefix = text[: first.start] + entity_placeholder(first.type, second.type)
        shared = first.start, len(prefix)
        new_text = prefix + text[max(first.end, second.end) :]
        return RelationInput(new_text, shared, shared, (first.start, first.start))
    first_prefix = text[: first.start] + entity_placeholder(first.type)
    between = first_prefix + text[first.end : second.start]
    second_prefix = between + entity_placeholder(second.type)
    return RelationInput(
        second_prefix + text[second.end :],
        (first.start, len(first_prefix)),
        (len(between), len(second_prefix)),
        (first.start, len(between)),
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
    places: dict[str, int] = {}
    for position, _, _, _, marker in markers:
        marked_text += text[copied:position]
        copied, places[marker.strip()] = position, len(marked_text)
        marked_text += marker
    first_open, first_close, second_open, second_close = (places[marker] for marker in ENTITY_MARKERS)
    return RelationInput(
        marked_text + text[copied:],
        (first_open + len("[E1] "), first_close),
        (second_open + len("[E2] "), second_close),
        (first_open, second_open),
    )


def find_entity_edges(
    relation: RelationInput, feature: RelationFeature, offsets: Sequence[tuple[int, int]]
) -> list[int]:
    """Return the token ranges of both entities as four edges; of ``start`` from the opening markers on."""
    starts = relation.entity_starts if feature == "start" else (relation.first[0], relation.second[0])
    spans = zip(starts, (relation.first[1], relation.second[1]), strict=True)
    return [edge for start, end in spans for edge in _find_token_range(start, end, offsets)]


def _find_token_range(start: int, end: int, offsets: Sequence[tuple[int, int]]) -> tuple[int, int]:
    """Return the tokens that overlap a character range; without any, the next token."""
    inside = [index for index, (low, high) in enumerate(offsets) if low < end and high > start]
    if inside:
        return inside[0], inside[-1] + 1
    next_token = next((index for index, (low, _) in enumerate(offsets) if low >= start), len(offsets) - 1)
    return next_token, next_token + 1


def find_window_start(num_tokens: int, max_tokens: int, span_start: int, span_end: int) -> int:
    """Return the first token of a window that contains tokens ``span_start`` to ``span_end`` (exclusive).

    The window starts at 0 if it can, else it is centred on the span.
    """
    if num_tokens <= max_tokens or span_end <= max_tokens:
        return 0
    centred_start = span_start - max(0, max_tokens - (span_end - span_start)) // 2
    return max(0, min(num_tokens - max_tokens, centred_start))


def write_input_texts(
    benchmarks_dir: str, output: str, known_benchmarks: Collection[Benchmark], progress: Progress
) -> str:
    """Write ``output/NAME.jsonl`` for each benchmark that is found, and return a summary.

    A line is an input: a JSON list of one text or two.  The entities of a relation are placeholders.

    Raises:
        InputNotFoundError: the directory does not exist.
        BenchmarkNotFoundError: it has none of the benchmarks.
        BenchmarkFileError: a file is damaged.
    """
    storage, lines = LocalStorage(), []
    with progress.bar("reading benchmarks", len(known_benchmarks), " benchmarks") as bar:
        for benchmark in bar.each(known_benchmarks):
            benchmark_files = locate_benchmark(benchmarks_dir, benchmark)
            if benchmark.task is None or benchmark_files is None:
                continue
            records = [record for split in load_records(benchmark_files).values() for record in split]
            with storage.write(f"{output}/{benchmark.name}.jsonl") as file:
                for record in records:
                    file.write(f"{json.dumps(list_texts(record), ensure_ascii=False)}\n".encode())
            lines.append(f"{benchmark.name}: {len(records):,} inputs ({', '.join(benchmark_files.splits)})")
    if not lines:
        raise BenchmarkNotFoundError(f"{benchmarks_dir} has no benchmark: give the directory above its files")
    return "\n".join([*lines, f"texts: {output}"])


def list_texts(record: Record) -> tuple[str, ...]:
    """Return the texts of an input as a model reads them."""
    if isinstance(record, Relation):
        return (build_relation_input(record, "placeholders").text,)
    return record_texts(record)
