"""Input texts of the evaluation sets, from their authors' files, to measure mean input lengths.

PubMedBERT's table 8 compares vocabularies by this length: input beyond a model's 512 pieces is truncated, and
shorter input is faster.  Labels are not read; evaluate/ computes the scores.
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
from typing import Final
from xml.etree import ElementTree

from bioshards.corpus.errors import InputNotFoundError, InvalidValueError
from bioshards.corpus.storage.glob_pattern import ignore_extension_case
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.source_file import explain_unreadable

ModelInput = tuple[str, ...]
"""Input of a model: one text, or two (question and context, two sentences)."""


@dataclass(frozen=True, slots=True)
class PublishedLengths:
    """Mean input length in pieces, SOURCES: Gu et al. 2020 (arXiv 2007.15779), table 8."""

    bert: float
    pubmedbert: float


@dataclass(frozen=True, slots=True)
class BenchmarkSpec:
    """An evaluation set: glob patterns of its files, their reader, and a description of an input."""

    name: str
    files: tuple[str, ...]
    read_inputs: Callable[[bytes], Iterator[ModelInput]]
    published: PublishedLengths | None
    input_description: str


@dataclass(frozen=True, slots=True)
class BenchmarkTexts:
    """Inputs of an evaluation set, the files they came from, and the patterns that matched no file."""

    benchmark: BenchmarkSpec
    files: tuple[str, ...]
    missing_patterns: tuple[str, ...]
    inputs: list[ModelInput]


def read_token_lines(data: bytes, sentence_end: str = "") -> Iterator[ModelInput]:
    """Yield the sentences of a token-per-line file (IOB, CoNLL), ended by blank lines or ``sentence_end``."""
    sentence: list[str] = []
    for line in [*data.decode().split("\n"), ""]:
        token = line.split()[0] if line.strip() else ""
        if token and token != "-DOCSTART-":
            sentence.append(token)
        if sentence and token in ("", "-DOCSTART-", sentence_end):
            yield (" ".join(sentence),)
            sentence = []


def read_abstract_token_lines(data: bytes) -> Iterator[ModelInput]:
    """Yield the sentences of a token-per-line file without blank lines: a full stop ends one, as in BLURB."""
    return read_token_lines(data, sentence_end=".")


def read_table(data: bytes) -> Iterator[ModelInput]:
    """Yield the columns ``sentence``, or ``sentence1`` and ``sentence2``, of a tab-separated table."""
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


def read_gad(data: bytes) -> Iterator[ModelInput]:
    """Yield the sentences of GAD in BioBERT's format: ``sentence, label`` without a header, or a table."""
    text = data.decode("utf-8-sig")
    if text.startswith("index\t"):
        yield from read_table(data)
    else:
        yield from ((line.rsplit("\t", 1)[0],) for line in text.split("\n") if line)


def read_lines(data: bytes) -> Iterator[ModelInput]:
    """Yield the lines, one sentence each."""
    yield from ((line.strip(),) for line in data.decode().split("\n") if line.strip())


def read_pubmedqa(data: bytes) -> Iterator[ModelInput]:
    """Yield question and joined contexts of PubMedQA's JSON."""
    for item in json.loads(data).values():
        yield item["QUESTION"], " ".join(item["CONTEXTS"])


def read_bioasq(data: bytes) -> Iterator[ModelInput]:
    """Yield the yes/no questions of a BioASQ batch, each with all of its snippets, as in BLURB."""
    for item in json.loads(data)["questions"]:
        if item["type"] == "yesno":
            yield item["body"], " ".join(snippet["text"] for snippet in item["snippets"])


def read_ddi(data: bytes) -> Iterator[ModelInput]:
    """Yield a sentence for each pair of drugs in the DDI archive, both replaced by @DRUG$, as in BLURB."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            if name.lower().endswith(".xml") and "DrugNER" not in name:
                for sentence in ElementTree.fromstring(archive.read(name)).iter("sentence"):
                    yield from _inputs_from_pairs(sentence)


def _inputs_from_pairs(sentence: ElementTree.Element) -> Iterator[ModelInput]:
    text = sentence.attrib["text"]
    spans = {
        entity.attrib["id"]: _parse_span(entity.attrib["charOffset"]) for entity in sentence.iter("entity")
    }
    for pair in sentence.iter("pair"):
        (start, end), (second_start, second_end) = sorted(
            (spans[pair.attrib["e1"]], spans[pair.attrib["e2"]])
        )
        if second_start < end:  # the two overlap: one dummy
            yield (f"{text[:start]}@DRUG-DRUG${text[max(end, second_end) :]}",)
        else:
            yield (f"{text[:start]}@DRUG${text[end:second_start]}@DRUG${text[second_end:]}",)


def _parse_span(offsets: str) -> tuple[int, int]:
    """Return ``"5-9"`` or ``"5-9;12-14"``, ends included, as one range from first start to last end."""
    numbers = [int(number) for fragment in offsets.split(";") for number in fragment.split("-")]
    return min(numbers), max(numbers) + 1


_MTL_FOLDER: Final = "mtl-bioinformatics-2016"
BENCHMARKS: Final = (
    BenchmarkSpec(
        "BC5-chem",
        (f"{_MTL_FOLDER}/BC5CDR-chem-IOB/*.tsv",),
        read_token_lines,
        PublishedLengths(35.9, 28.0),
        "a sentence",
    ),
    BenchmarkSpec(
        "BC5-disease",
        (f"{_MTL_FOLDER}/BC5CDR-disease-IOB/*.tsv",),
        read_token_lines,
        PublishedLengths(35.9, 28.0),
        "a sentence",
    ),
    BenchmarkSpec(
        "NCBI-disease",
        (f"{_MTL_FOLDER}/NCBI-disease-IOB/*.tsv",),
        read_token_lines,
        PublishedLengths(34.2, 27.4),
        "a sentence",
    ),
    BenchmarkSpec(
        "BC2GM",
        (f"{_MTL_FOLDER}/BC2GM-IOB/*.tsv",),
        read_token_lines,
        PublishedLengths(38.5, 30.5),
        "a sentence",
    ),
    BenchmarkSpec(
        "JNLPBA",
        (f"{_MTL_FOLDER}/JNLPBA/*.tsv",),
        read_token_lines,
        PublishedLengths(33.7, 26.0),
        "a sentence",
    ),
    BenchmarkSpec(
        "EBM PICO",
        tuple(f"scibert/pico/ebmnlp/{split}.txt" for split in ("train", "dev", "test")),
        read_abstract_token_lines,
        PublishedLengths(30.7, 25.1),
        "a sentence",
    ),
    BenchmarkSpec(
        "ChemProt",
        tuple(f"electramed/RE/chemprot/{split}.csv" for split in ("train", "dev", "test")),
        read_table,
        PublishedLengths(75.4, 55.5),
        "a sentence with @CHEMICAL$ and @GENE$ (BLUE's files)",
    ),
    BenchmarkSpec(
        "ChemProt (Lim and Kang)",
        tuple(f"bio_electra/chemprot/{split}.tsv" for split in ("train", "dev", "test")),
        read_table,
        None,
        "a sentence with BC6ENTC, BC6ENTG and BC6OTHER for every mention",
    ),
    BenchmarkSpec(
        "DDI",
        ("ddi2013/DDICorpus-2013.zip",),
        read_ddi,
        PublishedLengths(106.0, 75.9),
        "a sentence with @DRUG$ twice",
    ),
    BenchmarkSpec(
        "GAD",
        ("bio_electra/gad/train.tsv", "bio_electra/gad/test.tsv"),
        read_gad,
        PublishedLengths(47.0, 35.7),
        "a sentence with @GENE$ and @DISEASE$",
    ),
    BenchmarkSpec(
        "BIOSSES", ("biosses/biosses.tsv",), read_table, PublishedLengths(80.7, 61.6), "two sentences"
    ),
    BenchmarkSpec(
        "HoC", ("hallmarks-of-cancer/text/*.txt",), read_lines, PublishedLengths(40.6, 31.0), "a sentence"
    ),
    BenchmarkSpec(
        "PubMedQA",
        ("pubmedqa/data/ori_pqal.json",),
        read_pubmedqa,
        PublishedLengths(343.1, 293.0),
        "question and abstract",
    ),
    BenchmarkSpec(
        "BioASQ",
        ("electramed/QA/BioASQ/7B*_golden.json",),
        read_bioasq,
        PublishedLengths(702.4, 541.4),
        "question and snippets",
    ),
)
"""The 13 sets of BLURB, and Bio-ELECTRA's ChemProt."""


def find_benchmark_texts(
    folder: str, benchmarks: Iterable[BenchmarkSpec] = BENCHMARKS
) -> Iterator[BenchmarkTexts]:
    """Yield the inputs of the evaluation sets, from the files that exist.

    Args:
        folder: folder of the evaluation sets as their authors distribute them, one folder each.

    Raises:
        FileNotFoundError: the folder is missing.
        InputUnreadableError: a folder in it cannot be listed.
        ValueError: a file has another format, or no input.
    """
    if not os.path.isdir(folder):
        raise InputNotFoundError(f"There is no folder {folder} with benchmarks.")
    for benchmark in benchmarks:
        with explain_unreadable(folder):
            by_pattern = {pattern: _find_files(folder, pattern) for pattern in benchmark.files}
        paths = [path for paths in by_pattern.values() for path in paths]
        inputs = [model_input for path in paths for model_input in _read_inputs(benchmark, path)]
        names = tuple(os.path.relpath(path, folder) for path in paths)
        yield BenchmarkTexts(
            benchmark, names, tuple(pattern for pattern, paths in by_pattern.items() if not paths), inputs
        )


def _find_files(folder: str, pattern: str) -> list[str]:
    full_pattern = os.path.join(glob.escape(folder), ignore_extension_case(pattern))
    return [info.path for info in LocalStorage().glob(full_pattern)]


def load_benchmark_texts(folder: str) -> list[BenchmarkTexts]:
    """Return the inputs of all evaluation sets; run before training, because a damaged file is an error.

    Raises:
        FileNotFoundError, ValueError: as :func:`find_benchmark_texts`, or the folder has no set.
    """
    benchmark_texts = list(find_benchmark_texts(folder))
    if not any(benchmark.inputs for benchmark in benchmark_texts):
        patterns = ", ".join(pattern for benchmark in BENCHMARKS for pattern in benchmark.files)
        raise InvalidValueError(
            f"The folder {folder} has none of the evaluation sets. It was searched for {patterns}: "
            "give the folder above these."
        )
    return benchmark_texts


def _read_inputs(benchmark: BenchmarkSpec, path: str) -> list[ModelInput]:
    try:
        with open(path, "rb") as file:
            inputs = list(benchmark.read_inputs(file.read()))
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _unreadable_file_error(benchmark, path, f"{type(error).__name__}: {error}") from error
    except (ElementTree.ParseError, zipfile.BadZipFile, csv.Error) as error:
        raise _unreadable_file_error(benchmark, path, str(error)) from error
    if not inputs:
        raise _unreadable_file_error(benchmark, path, "it holds no input")
    return inputs


def _unreadable_file_error(benchmark: BenchmarkSpec, path: str, reason: object) -> ValueError:
    return ValueError(
        f"{path} cannot be read as a file of {benchmark.name}: {reason}. "
        "Put the authors' file there, or take this one away."
    )
