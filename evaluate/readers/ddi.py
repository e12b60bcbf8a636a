"""The DDI corpus (Herrero-Zazo et al. 2013): XML with sentences, the drugs in them, and every pair of drugs.

What BLURB makes of it (its preprocessor, ``prepare_DDI_data``): every pair is an example; a drug named in
several pieces goes from the first to the end of the last; 90 of the 714 training files are for dev.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import Final

from lxml import etree

from bioshards.evaluate.datasets import Files, Part, Parts
from bioshards.evaluate.records import Mention, Relation

from .lines import only
from .parts import unique
from .splits import deal
from .xml_files import archived, tree, wrong

NEGATIVE: Final = "DDI-false"
LABELS: Final = (NEGATIVE, "DDI-advise", "DDI-effect", "DDI-mechanism", "DDI-int")
DEV_FILES: Final = 90

_OFFSETS = re.compile(r"\d+-\d+(;\d+-\d+)*")


def from_archive(files: Files) -> Parts:
    """All parts from ``archive``, and ``lists`` of who is in which."""
    path = only(files, "archive")
    contents = [(f"{path}, {name}", data) for name, data in archived(path)]
    train = [content for content in contents if "/Train/" in content[0]]
    test = [content for content in contents if "/Test for DDI Extraction task/" in content[0]]
    return _parts(path, train, test, files)  # the other folder of Test is another task's, drug names


def from_folders(files: Files) -> Parts:
    """The parts from the XML files of ``train`` and ``test``, and ``lists`` of who is in which."""
    train, test = (_contents(files.get(part, ())) for part in ("train", "test"))
    return _parts("the DDI corpus", train, test, files)


def _contents(paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    for path in paths:
        with open(path, "rb") as file:
            yield path, file.read()


def _parts(
    path: str, train: Iterable[tuple[str, bytes]], test: Iterable[tuple[str, bytes]], files: Files
) -> Parts:
    pool = {_stem(name): list(relations(name, data)) for name, data in train}
    dealt = deal(pool, {"dev": DEV_FILES}, files.get("lists", ()))
    parts: dict[Part, list[Relation]] = {"train": [], "dev": []}
    for name, part in dealt.items():
        parts[part] += pool[name]
    parts["test"] = [one for name, data in test for one in relations(name, data)]
    return {part: unique(path, its) for part, its in parts.items()}


def _stem(path: str) -> str:
    return os.path.basename(path).removesuffix(".xml")


def relations(path: str, data: bytes) -> Iterator[Relation]:
    """The pairs of a file.

    A pair whose ``ddi`` is true has a type, but for one in the corpus (DDI-DrugBank.d236.s29.p0, of a drug
    and a laboratory test).  It is no interaction here, as it is not among the 4020 that are counted in the
    training files (Quan et al. 2016, doi 10.1155/2016/1850404, table 4).

    Raises:
        BenchmarkFileError: no file of the corpus.
    """
    for sentence in tree(path, data).iter("sentence"):
        text = _attribute(path, sentence, "text")
        drugs = {_attribute(path, one, "id"): _drug(path, one, text) for one in sentence.iter("entity")}
        for pair in sentence.iter("pair"):
            names = [_attribute(path, pair, name) for name in ("e1", "e2")]
            if missing := [name for name in names if name not in drugs]:
                raise wrong(path, pair, f"its sentence has no entity {missing[0]!r}")
            first, second = sorted((drugs[name] for name in names), key=lambda drug: (drug.start, drug.end))
            label = _label(path, pair)
            yield Relation(_attribute(path, pair, "id"), text, first, second, label, document=_stem(path))


def _attribute(path: str, element: etree._Element, name: str) -> str:
    found = element.get(name)
    if found is None:
        raise wrong(path, element, f"<{element.tag}> has no attribute {name!r}")
    return found


def _drug(path: str, entity: etree._Element, text: str) -> Mention:
    """A drug.  ``charOffset`` is ``5-9`` or ``5-9;12-14``, ends included."""
    offsets = _attribute(path, entity, "charOffset")
    if not _OFFSETS.fullmatch(offsets):
        raise wrong(path, entity, f"charOffset should be like 5-9, not {offsets!r}")
    numbers = [int(number) for number in re.findall(r"\d+", offsets)]
    start, end = min(numbers), max(numbers) + 1
    if end > len(text):
        why = f"charOffset {offsets} is not within its sentence of {len(text)} characters"
        raise wrong(path, entity, why)
    return Mention(start, end, "DRUG")


def _label(path: str, pair: etree._Element) -> str:
    interacts, kind = _attribute(path, pair, "ddi"), pair.get("type")
    if interacts == "false" or (interacts == "true" and kind is None):
        return NEGATIVE
    label = f"DDI-{kind}"
    if interacts != "true" or label not in LABELS:
        raise wrong(path, pair, f"ddi={interacts!r} with type={kind!r} is no pair of the corpus")
    return label
