"""ChemProt of BioCreative VI (Krallinger et al. 2017): abstracts, mentions with offsets, and relations.

As in BLURB (``prepare_chemprot_data`` of its preprocessor), every pair of a chemical and a gene in a sentence
is an example. Five relation groups are positive, all other pairs ``false``; of several relations of a pair
the last counts. BLURB splits sentences with NLTK's punkt, this reader with bioshards' splitter, so the number
of pairs differs slightly.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bioshards.corpus import sentences
from bioshards.evaluate.benchmarks.definition import SPLITS, BenchmarkFileError, PathsByName, RecordsBySplit
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.formats.tsv import read_rows
from bioshards.evaluate.benchmarks.readers.split_reader import check_unique_ids
from bioshards.evaluate.benchmarks.record_types import Mention, Relation

NEGATIVE: Final = "false"
GROUPS: Final = ("CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")

_ENTITY_TYPES: Final = {"CHEMICAL": "CHEMICAL", "GENE": "GENE", "GENE-Y": "GENE", "GENE-N": "GENE"}


class _Entity(NamedTuple):
    id: str
    mention: Mention


def read_chemprot(files: PathsByName) -> RecordsBySplit:
    """Read each split from its ``abstracts``, ``entities`` and ``relations`` files."""
    return {
        split: read_relations(
            abstracts_path=get_only_path(files, f"{split} abstracts"),
            entities_path=get_only_path(files, f"{split} entities"),
            relations_path=get_only_path(files, f"{split} relations"),
        )
        for split in SPLITS
        if all(f"{split} {file_type}" in files for file_type in ("abstracts", "entities", "relations"))
    }


def read_relations(abstracts_path: str, entities_path: str, relations_path: str) -> list[Relation]:
    """Return the pairs of a split.

    Args:
        abstracts_path: lines of PMID, title and abstract; offsets count in ``title TAB abstract``.
        entities_path: lines of PMID, id, type, start, end, text.
        relations_path: lines of PMID, group, evaluated, type, ``Arg1:`` id, ``Arg2:`` id.

    Raises:
        BenchmarkFileError: a line has another form, or a mention is outside its abstract.
    """
    texts: dict[str, str] = {}
    for line, (pmid, title, abstract) in _read_columns(abstracts_path, ("PMID", "title", "abstract")):
        if pmid in texts:
            raise BenchmarkFileError(abstracts_path, line, f"the abstract {pmid} is given twice")
        texts[pmid] = f"{title}\t{abstract}"
    entities_by_pmid = _read_entities(entities_path, texts)
    group_by_pair = _read_groups(relations_path, entities_by_pmid)
    return check_unique_ids(
        abstracts_path,
        (
            pair
            for pmid, text in texts.items()
            for pair in _make_pairs(pmid, text, entities_by_pmid[pmid], group_by_pair)
        ),
    )


def _read_columns(path: str, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    return read_rows(path, columns, has_header=False, quoting=csv.QUOTE_NONE)


def _read_entities(path: str, texts: Mapping[str, str]) -> dict[str, dict[str, Mention]]:
    entities_by_pmid: dict[str, dict[str, Mention]] = defaultdict(dict)
    for line, (pmid, entity_id, entity_type, start, end, _) in _read_columns(
        path, ("PMID", "id", "type", "start", "end", "text")
    ):
        if entity_type not in _ENTITY_TYPES:
            raise BenchmarkFileError(
                path, line, f"the type {entity_type!r} is none of {', '.join(_ENTITY_TYPES)}"
            )
        if pmid not in texts:
            raise BenchmarkFileError(path, line, f"there is no abstract {pmid}")
        if not (start.isdecimal() and end.isdecimal() and int(start) < int(end) <= len(texts[pmid])):
            size = len(texts[pmid])
            raise BenchmarkFileError(
                path, line, f"{start} to {end} is not within abstract {pmid} of {size} characters"
            )
        if entity_id in entities_by_pmid[pmid]:
            raise BenchmarkFileError(path, line, f"{entity_id} is given twice in abstract {pmid}")
        entities_by_pmid[pmid][entity_id] = Mention(int(start), int(end), _ENTITY_TYPES[entity_type])
    return entities_by_pmid


def _read_groups(
    path: str, entities: Mapping[str, Mapping[str, Mention]]
) -> dict[tuple[str, frozenset[str]], str]:
    """Return the group of each related pair, by PMID and the ids of its entities."""
    columns = ("PMID", "group", "evaluated", "type", "Arg1", "Arg2")
    group_by_pair = {}
    for line, (pmid, group, _, _, *arguments) in _read_columns(path, columns):
        entity_ids = [argument.partition(":")[2] for argument in arguments]
        if unknown := [entity_id for entity_id in entity_ids if entity_id not in entities.get(pmid, ())]:
            raise BenchmarkFileError(path, line, f"abstract {pmid} has no entity {unknown[0]!r}")
        group_by_pair[pmid, frozenset(entity_ids)] = group
    return group_by_pair


def _make_pairs(
    pmid: str,
    text: str,
    entities: Mapping[str, Mention],
    group_by_pair: Mapping[tuple[str, frozenset[str]], str],
) -> Iterator[Relation]:
    for start, end in _find_sentence_spans(text):
        sentence_entities = [
            _Entity(entity_id, Mention(mention.start - start, mention.end - start, mention.type))
            for entity_id, mention in entities.items()
            if start <= mention.start and mention.end <= end
        ]
        for chemical in sentence_entities:
            for gene in sentence_entities:
                if (chemical.mention.type, gene.mention.type) == ("CHEMICAL", "GENE"):
                    group = group_by_pair.get((pmid, frozenset((chemical.id, gene.id))), NEGATIVE)
                    first, second = sorted(
                        (chemical, gene), key=lambda entity: (entity.mention.start, entity.mention.end)
                    )
                    yield Relation(
                        id=f"{pmid}.{first.id}.{second.id}",
                        text=text[start:end],
                        first=first.mention,
                        second=second.mention,
                        label=group if group in GROUPS else NEGATIVE,
                        document_id=pmid,
                    )


def _find_sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield the sentence spans of title and abstract; the tab between them is in neither."""
    title_end = text.index("\t")
    yield from sentences.spans(text[:title_end])
    for start, end in sentences.spans(text[title_end + 1 :]):
        yield start + title_end + 1, end + title_end + 1
