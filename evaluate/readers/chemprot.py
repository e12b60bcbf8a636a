"""ChemProt of BioCreative VI (Krallinger et al. 2017): abstracts, mentions with offsets, and their relations.

What BLURB makes of it (its preprocessor, ``prepare_chemprot_data``): in each sentence every chemical with
every gene is an example; five groups of relations count, all others and none are ``false``; of several
relations of a pair the last one counts.  BLURB cuts sentences with NLTK's punkt, whose model would have to be
fetched; here it is bioshards' own splitter.  So the pairs are not the same in number, and a pair that one
splitter parts is missing.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from bioshards.corpus import sentences
from bioshards.evaluate.datasets import PARTS, BenchmarkFileError, Files, Parts
from bioshards.evaluate.records import Mention, Relation

from .lines import only
from .parts import unique
from .tables import rows

NEGATIVE: Final = "false"
GROUPS: Final = ("CPR:3", "CPR:4", "CPR:5", "CPR:6", "CPR:9")

_TYPES: Final = {"CHEMICAL": "CHEMICAL", "GENE": "GENE", "GENE-Y": "GENE", "GENE-N": "GENE"}


class _Entity(NamedTuple):
    id: str
    mention: Mention


def read(files: Files) -> Parts:
    """Each part from its ``abstracts``, ``entities`` and ``relations``: ``train abstracts`` ..."""
    return {
        part: relations(*(only(files, f"{part} {kind}") for kind in ("abstracts", "entities", "relations")))
        for part in PARTS
        if all(f"{part} {kind}" in files for kind in ("abstracts", "entities", "relations"))
    }


def relations(abstracts: str, entities: str, relations: str) -> list[Relation]:
    """The pairs of a part.

    Args:
        abstracts: path of lines of PMID, title and abstract; offsets are in ``title TAB abstract``.
        entities: of PMID, id, type, start, end, text.
        relations: of PMID, group, whether it is evaluated, type, ``Arg1:`` id, ``Arg2:`` id.

    Raises:
        BenchmarkFileError: not such files, or a mention is not within its abstract.
    """
    texts: dict[str, str] = {}
    for line, (pmid, title, abstract) in _rows(abstracts, ("PMID", "title", "abstract")):
        if pmid in texts:
            raise BenchmarkFileError(abstracts, line, f"the abstract {pmid} is given twice")
        texts[pmid] = f"{title}\t{abstract}"
    found = _entities(entities, texts)
    groups = _groups(relations, found)
    return unique(
        abstracts, (pair for pmid, text in texts.items() for pair in _pairs(pmid, text, found[pmid], groups))
    )


def _rows(path: str, columns: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    return rows(path, columns, header=False, quoting=csv.QUOTE_NONE)


def _entities(path: str, texts: Mapping[str, str]) -> dict[str, dict[str, Mention]]:
    found: dict[str, dict[str, Mention]] = defaultdict(dict)
    for line, (pmid, name, kind, start, end, _) in _rows(
        path, ("PMID", "id", "type", "start", "end", "text")
    ):
        if kind not in _TYPES:
            raise BenchmarkFileError(path, line, f"the type {kind!r} is none of {', '.join(_TYPES)}")
        if pmid not in texts:
            raise BenchmarkFileError(path, line, f"there is no abstract {pmid}")
        if not (start.isdecimal() and end.isdecimal() and int(start) < int(end) <= len(texts[pmid])):
            size = len(texts[pmid])
            raise BenchmarkFileError(
                path, line, f"{start} to {end} is not within abstract {pmid} of {size} characters"
            )
        if name in found[pmid]:
            raise BenchmarkFileError(path, line, f"{name} is given twice in abstract {pmid}")
        found[pmid][name] = Mention(int(start), int(end), _TYPES[kind])
    return found


def _groups(
    path: str, entities: Mapping[str, Mapping[str, Mention]]
) -> dict[tuple[str, frozenset[str]], str]:
    """The group of each related pair, by PMID and the ids of the two."""
    columns = ("PMID", "group", "evaluated", "type", "Arg1", "Arg2")
    found = {}
    for line, (pmid, group, _, _, *arguments) in _rows(path, columns):
        names = [argument.partition(":")[2] for argument in arguments]
        if unknown := [name for name in names if name not in entities.get(pmid, ())]:
            raise BenchmarkFileError(path, line, f"abstract {pmid} has no entity {unknown[0]!r}")
        found[pmid, frozenset(names)] = group
    return found


def _pairs(
    pmid: str, text: str, entities: Mapping[str, Mention], groups: Mapping[tuple[str, frozenset[str]], str]
) -> Iterator[Relation]:
    for start, end in _sentences(text):
        within = [
            _Entity(name, Mention(one.start - start, one.end - start, one.type))
            for name, one in entities.items()
            if start <= one.start and one.end <= end
        ]
        for chemical in within:
            for gene in within:
                if (chemical.mention.type, gene.mention.type) == ("CHEMICAL", "GENE"):
                    group = groups.get((pmid, frozenset((chemical.id, gene.id))), NEGATIVE)
                    first, second = sorted(
                        (chemical, gene), key=lambda entity: (entity.mention.start, entity.mention.end)
                    )
                    yield Relation(
                        id=f"{pmid}.{first.id}.{second.id}",
                        text=text[start:end],
                        first=first.mention,
                        second=second.mention,
                        label=group if group in GROUPS else NEGATIVE,
                        document=pmid,
                    )


def _sentences(text: str) -> Iterator[tuple[int, int]]:
    """Where the sentences of title and abstract are; the tab between the two is in none."""
    title = text.index("\t")
    yield from sentences.spans(text[:title])
    for start, end in sentences.spans(text[title + 1 :]):
        yield start + title + 1, end + title + 1
