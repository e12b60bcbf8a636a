"""Inputs of the evaluation sets, from the files their authors distribute, for one number: their mean length.

PubMedBERT's table 8 compares vocabularies by it, as what does not fit into a model's 512 pieces is cut off,
and what is shorter is faster.  Only texts are read here, no labels; the scores are evaluate/'s.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final
from xml.etree import ElementTree

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError

Input = tuple[str, ...]
"""What a model reads at once: a text, or two (question and context, two sentences)."""


@dataclass(frozen=True, slots=True)
class Published:
    """Mean input length in pieces, SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 8."""

    bert: float
    pubmedbert: float


@dataclass(frozen=True, slots=True)
class EvaluationSet:
    """A set: its files (patterns under the benchmarks' folder), how to read one, and what an input is."""

    name: str
    files: tuple[str, ...]
    inputs: Callable[[bytes], Iterator[Input]]
    published: Published | None
    note: str


@dataclass(frozen=True, slots=True)
class Found:
    """The inputs of a set: ``files`` that they came from, ``absent`` patterns that named none."""

    set: EvaluationSet
    files: tuple[str, ...]
    absent: tuple[str, ...]
    inputs: list[Input]


def tagged(data: bytes, ends_at: str = "") -> Iterator[Input]:
    """Token-per-line files (IOB, CoNLL): a sentence up to each blank line, and to each token ``ends_at``."""
    sentence: list[str] = []
    for line in [*data.decode().split("\n"), ""]:
        token = line.split()[0] if line.strip() else ""
        if token and token != "-DOCSTART-":
            sentence.append(token)
        if sentence and token in ("", "-DOCSTART-", ends_at):
            yield (" ".join(sentence),)
            sentence = []


def tagged_abstracts(data: bytes) -> Iterator[Input]:
    """Token-per-line files without a line between sentences: each full stop ends one, as in BLURB."""
    return tagged(data, ends_at=".")


def table(data: bytes) -> Iterator[Input]:
    """Tab-separated lines with a header: ``sentence``, or ``sentence1`` and ``sentence2``."""
    rows = csv.reader(
        io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter="\t", quoting=csv.QUOTE_NONE
    )
    header = next(rows, None)
    if header is None:
        raise InvalidValueError("it is empty")
    columns = [header.index(name) for name in header if name.rstrip("12") == "sentence"]
    if not columns:
        raise InvalidValueError(f"its header {header} names no column 'sentence'")
    for row in rows:
        yield tuple(row[column] for column in columns)


def gad(data: bytes) -> Iterator[Input]:
    """GAD as BioBERT's authors give it: ``sentence, label`` without a header, or a table with one."""
    text = data.decode("utf-8-sig")
    if text.startswith("index\t"):
        yield from table(data)
    else:
        yield from ((line.rsplit("\t", 1)[0],) for line in text.split("\n") if line)


def lines(data: bytes) -> Iterator[Input]:
    """A sentence a line."""
    yield from ((line.strip(),) for line in data.decode().split("\n") if line.strip())


def pubmedqa(data: bytes) -> Iterator[Input]:
    """PubMedQA's JSON: the question, and its contexts joined."""
    for item in json.loads(data).values():
        yield item["QUESTION"], " ".join(item["CONTEXTS"])


def bioasq(data: bytes) -> Iterator[Input]:
    """A BioASQ batch: the yes/no questions, each with all of its snippets, as in BLURB."""
    for item in json.loads(data)["questions"]:
        if item["type"] == "yesno":
            yield item["body"], " ".join(snippet["text"] for snippet in item["snippets"])


def ddi(data: bytes) -> Iterator[Input]:
    """The DDI corpus' archive: a sentence for each pair of drugs, both replaced by @DRUG$, as in BLURB."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.endswith(".xml") and "DrugNER" not in name:
                for sentence in ElementTree.fromstring(archive.read(name)).iter("sentence"):
                    yield from _pairs(sentence)


def _pairs(sentence: ElementTree.Element) -> Iterator[Input]:
    text = sentence.attrib["text"]
    spans = {entity.attrib["id"]: _span(entity.attrib["charOffset"]) for entity in sentence.iter("entity")}
    for pair in sentence.iter("pair"):
        (start, end), (second, last) = sorted((spans[pair.attrib["e1"]], spans[pair.attrib["e2"]]))
        if second < end:  # the two overlap: one dummy
            yield (f"{text[:start]}@DRUG-DRUG${text[max(end, last) :]}",)
        else:
            yield (f"{text[:start]}@DRUG${text[end:second]}@DRUG${text[last:]}",)


def _span(offsets: str) -> tuple[int, int]:
    """``"5-9"`` or ``"5-9;12-14"``, ends included, as from first start to last end."""
    numbers = [int(number) for part in offsets.split(";") for number in part.split("-")]
    return min(numbers), max(numbers) + 1


_MTL: Final = "mtl-bioinformatics-2016"
SETS: Final = (
    EvaluationSet(
        "BC5-chem", (f"{_MTL}/BC5CDR-chem-IOB/*.tsv",), tagged, Published(35.9, 28.0), "a sentence"
    ),
    EvaluationSet(
        "BC5-disease", (f"{_MTL}/BC5CDR-disease-IOB/*.tsv",), tagged, Published(35.9, 28.0), "a sentence"
    ),
    EvaluationSet(
        "NCBI-disease", (f"{_MTL}/NCBI-disease-IOB/*.tsv",), tagged, Published(34.2, 27.4), "a sentence"
    ),
    EvaluationSet("BC2GM", (f"{_MTL}/BC2GM-IOB/*.tsv",), tagged, Published(38.5, 30.5), "a sentence"),
    EvaluationSet("JNLPBA", (f"{_MTL}/JNLPBA/*.tsv",), tagged, Published(33.7, 26.0), "a sentence"),
    EvaluationSet(
        "EBM PICO",
        tuple(f"scibert/pico/ebmnlp/{split}.txt" for split in ("train", "dev", "test")),
        tagged_abstracts,
        Published(30.7, 25.1),
        "a sentence",
    ),
    EvaluationSet(
        "ChemProt",
        tuple(f"electramed/RE/chemprot/{split}.csv" for split in ("train", "dev", "test")),
        table,
        Published(75.4, 55.5),
        "a sentence with @CHEMICAL$ and @GENE$ (BLUE's files)",
    ),
    EvaluationSet(
        "ChemProt (Lim and Kang)",
        tuple(f"bio_electra/chemprot/{split}.tsv" for split in ("train", "dev", "test")),
        table,
        None,
        "a sentence with BC6ENTC, BC6ENTG and BC6OTHER for every mention",
    ),
    EvaluationSet(
        "DDI", ("ddi2013/DDICorpus-2013.zip",), ddi, Published(106.0, 75.9), "a sentence with @DRUG$ twice"
    ),
    EvaluationSet(
        "GAD",
        ("bio_electra/gad/train.tsv", "bio_electra/gad/test.tsv"),
        gad,
        Published(47.0, 35.7),
        "a sentence with @GENE$ and @DISEASE$",
    ),
    EvaluationSet("BIOSSES", ("biosses/biosses.tsv",), table, Published(80.7, 61.6), "two sentences"),
    EvaluationSet("HoC", ("hallmarks-of-cancer/text/*.txt",), lines, Published(40.6, 31.0), "a sentence"),
    EvaluationSet(
        "PubMedQA",
        ("pubmedqa/data/ori_pqal.json",),
        pubmedqa,
        Published(343.1, 293.0),
        "question and abstract",
    ),
    EvaluationSet(
        "BioASQ",
        ("electramed/QA/BioASQ/7B*_golden.json",),
        bioasq,
        Published(702.4, 541.4),
        "question and snippets",
    ),
)
"""The 13 sets of BLURB, and Bio-ELECTRA's ChemProt."""


def find(folder: str, sets: Iterable[EvaluationSet] = SETS) -> Iterator[Found]:
    """The inputs of each set whose files are there, wholly or in part; nothing of the others.

    Args:
        folder: benchmarks as their authors distribute them, a folder each.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: a file is not what its set's files are, or it holds no input.
    """
    if not os.path.isdir(folder):
        raise InputNotFoundError(f"There is no folder {folder} with benchmarks.")
    for one in sets:
        by_pattern = {
            pattern: sorted(glob.glob(os.path.join(glob.escape(folder), pattern))) for pattern in one.files
        }
        paths = [path for paths in by_pattern.values() for path in paths]
        inputs = [found for path in paths for found in _read(one, path)]
        names = tuple(os.path.relpath(path, folder) for path in paths)
        yield Found(one, names, tuple(pattern for pattern, paths in by_pattern.items() if not paths), inputs)


def check(folder: str) -> list[Found]:
    """All of them, before hours of work that would end with a benchmark that cannot be read; takes seconds.

    Raises:
        FileNotFoundError, ValueError: as in :func:`find`, or the folder has files of no set.
    """
    found = list(find(folder))
    if not any(one.inputs for one in found):
        patterns = ", ".join(pattern for one in SETS for pattern in one.files)
        raise InvalidValueError(
            f"The folder {folder} has none of the evaluation sets. It was searched for {patterns}: "
            "give the folder above these."
        )
    return found


def _read(one: EvaluationSet, path: str) -> list[Input]:
    try:
        with open(path, "rb") as file:
            inputs = list(one.inputs(file.read()))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable(one, path, f"{type(error).__name__}: {error}") from error
    except (ElementTree.ParseError, zipfile.BadZipFile, csv.Error) as error:
        raise _unreadable(one, path, str(error)) from error
    if not inputs:
        raise _unreadable(one, path, "it holds no input")
    return inputs


def _unreadable(one: EvaluationSet, path: str, why: Any) -> ValueError:
    return ValueError(
        f"{path} cannot be read as a file of {one.name}: {why}. "
        "Put the authors' file there, or take this one away."
    )
