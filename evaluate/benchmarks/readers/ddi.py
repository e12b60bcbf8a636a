"""DDI corpus (Herrero-Zazo et al. 2013): XML with sentences, drugs, and every pair of drugs.

As in BLURB (``prepare_DDI_data`` of its preprocessor), every pair is an example, a discontinuous drug spans
from its first to its last piece, and 90 of the 714 training files are dev.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

from bioshards.evaluate.benchmarks.definition import PathsByName, RecordsBySplit, Split
from bioshards.evaluate.benchmarks.formats.text_files import get_only_path
from bioshards.evaluate.benchmarks.formats.xml_files import iter_archive, make_element_error, parse_xml
from bioshards.evaluate.benchmarks.readers.split_lists import assign_splits
from bioshards.evaluate.benchmarks.readers.split_reader import check_unique_ids
from bioshards.evaluate.benchmarks.record_types import Mention, Relation

NEGATIVE: Final = "DDI-false"
LABELS: Final = (NEGATIVE, "DDI-advise", "DDI-effect", "DDI-mechanism", "DDI-int")
DEV_FILES: Final = 90

_OFFSETS_PATTERN = re.compile(r"\d+-\d+(;\d+-\d+)*")


def read_archive(files: PathsByName) -> RecordsBySplit:
    """Read all splits from ``archive``, and the split from ``lists``."""
    path = get_only_path(files, "archive")
    contents = [(f"{path}, {name}", data) for name, data in iter_archive(path)]
    train = [content for content in contents if "/Train/" in content[0]]
    test = [content for content in contents if "/Test for DDI Extraction task/" in content[0]]
    return _make_splits(path, train, test, files)  # the other folder of Test is another task's, drug names


def read_folders(files: PathsByName) -> RecordsBySplit:
    """Read all splits from the XML files of ``train`` and ``test``, and the split from ``lists``."""
    train, test = (_read_files(files.get(split, ())) for split in ("train", "test"))
    return _make_splits("the DDI corpus", train, test, files)


def _read_files(paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        with open(path, "rb") as file:
            yield path, file.read()


def _make_splits(
    path: str, train: Iterable[tuple[str, bytes]], test: Iterable[tuple[str, bytes]], files: PathsByName
) -> RecordsBySplit:
    relations_by_file = {_stem(name): list(parse_relations(name, data)) for name, data in train}
    split_by_file = assign_splits(relations_by_file, {"dev": DEV_FILES}, files.get("lists", ()))
    records_by_split: dict[Split, list[Relation]] = {"train": [], "dev": []}
    for name, split in split_by_file.items():
        records_by_split[split] += relations_by_file[name]
    records_by_split["test"] = [relation for name, data in test for relation in parse_relations(name, data)]
    return {
        split: check_unique_ids(path, split_relations) for split, split_relations in records_by_split.items()
    }


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".xml")


def parse_relations(path: str, data: bytes) -> Iterator[Relation]:
    """Yield the pairs of a file.

    One pair of the corpus (DDI-DrugBank.d236.s29.p0, a drug and a laboratory test) has ``ddi="true"`` and no
    type. It is negative here, as in the published count of 4,020 training interactions (Quan et al. 2016, doi
    10.1155/2016/1850404, table 4).

    Raises:
        BenchmarkFileError: the file does not have the corpus's format.
    """
    for sentence in parse_xml(path, data).iter("sentence"):
        text = _get_attribute(path, sentence, "text")
        drugs = {
            _get_attribute(path, entity, "id"): _parse_drug(path, entity, text)
            for entity in sentence.iter("entity")
        }
        for pair in sentence.iter("pair"):
            entity_ids = [_get_attribute(path, pair, name) for name in ("e1", "e2")]
            if missing := [name for name in entity_ids if name not in drugs]:
                raise make_element_error(path, pair, f"its sentence has no entity {missing[0]!r}")
            first, second = sorted(
                (drugs[name] for name in entity_ids), key=lambda drug: (drug.start, drug.end)
            )
            label = _parse_label(path, pair)
            yield Relation(
                _get_attribute(path, pair, "id"), text, first, second, label, document_id=_stem(path)
            )


def _get_attribute(path: str, element: etree._Element, name: str) -> str:
    value = element.get(name)
    if value is None:
        raise make_element_error(path, element, f"<{element.tag}> has no attribute {name!r}")
    return value


def _parse_drug(path: str, entity: etree._Element, text: str) -> Mention:
    """Return the mention of a drug; ``charOffset`` is ``5-9`` or ``5-9;12-14``, ends included."""
    offsets = _get_attribute(path, entity, "charOffset")
    if not _OFFSETS_PATTERN.fullmatch(offsets):
        raise make_element_error(path, entity, f"charOffset should be like 5-9, not {offsets!r}")
    numbers = [int(number) for number in re.findall(r"\d+", offsets)]
    start, end = min(numbers), max(numbers) + 1
    if end > len(text):
        reason = f"charOffset {offsets} is not within its sentence of {len(text)} characters"
        raise make_element_error(path, entity, reason)
    return Mention(start, end, "DRUG")


def _parse_label(path: str, pair: etree._Element) -> str:
    interacts, interaction_type = _get_attribute(path, pair, "ddi"), pair.get("type")
    if interacts == "false" or (interacts == "true" and interaction_type is None):
        return NEGATIVE
    label = f"DDI-{interaction_type}"
    if interacts != "true" or label not in LABELS:
        raise make_element_error(
            path, pair, f"ddi={interacts!r} with type={interaction_type!r} is no pair of the corpus"
        )
    return label
