"""Readers of tagging benchmarks on real files, against published counts and plain parsing."""

from __future__ import annotations

import glob
import re
from collections import Counter
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks.catalogue import count_sentences
from bioshards.evaluate.benchmarks.formats import read_sentences
from bioshards.evaluate.benchmarks.readers import read_pubtator
from bioshards.evaluate.benchmarks.records import SPLITS, Split, TaggedSentence
from tests.support.evaluate.benchmark_files import load_split
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data
FOLDER = f"{DATA}/benchmarks"
CRICHTON = f"{FOLDER}/mtl-bioinformatics-2016"


def read_lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").split("\n")


def load_sentences(name: str, split: Split) -> list[TaggedSentence]:
    return load_split(Path(FOLDER), name, split, TaggedSentence)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("bc5-chem", "BC5CDR-chem-IOB"),
        ("bc5-disease", "BC5CDR-disease-IOB"),
        ("ncbi-disease", "NCBI-disease-IOB"),
        ("bc2gm", "BC2GM-IOB"),
        ("linnaeus", "linnaeus-IOB"),
    ],
)
def test_crichton_files_are_read_completely(name: str, folder: str) -> None:
    for split in SPLITS:
        sentences = load_sentences(name, split)
        lines = read_lines(f"{CRICHTON}/{folder}/{ {'dev': 'devel'}.get(split, split) }.tsv")
        expected = [line.split("\t") for line in lines if line]
        assert [word for sentence in sentences for word in sentence.words] == [word for word, _ in expected]
        assert [tag for sentence in sentences for tag in sentence.tags] == [tag for _, tag in expected]
        assert count_sentences(sentences)["mentions"] == sum("\tB-" in line for line in lines)


def test_jnlpba_has_the_shared_tasks_test_file() -> None:
    shared_task_lines = [
        line for line in read_lines(f"{CRICHTON}/JNLPBA/original-data/test/Genia4EReval1.iob2") if line
    ]
    test = [
        f"{word}\t{tag[0]}"
        for sentence in load_sentences("jnlpba", "test")
        for word, tag in zip(sentence.words, sentence.tags, strict=True)
    ]
    assert test == [re.sub(r"(\t[BIO]).*", r"\1", line) for line in shared_task_lines]


def test_jnlpba_typed_has_five_types() -> None:
    tags = {tag for sentence in load_sentences("jnlpba-typed", "dev") for tag in sentence.tags}
    types = {tag[2:] for tag in tags if tag != "O"}
    assert types == {"DNA", "RNA", "protein", "cell_type", "cell_line"}


def test_merged_bc5cdr_has_the_mentions_of_conlleval() -> None:
    assert count_sentences(load_sentences("bc5cdr-merged", "test"))["mentions"] == 9662
    previous, mentions = "O", 0
    for line in read_lines(f"{FOLDER}/electramed/NER/bc5cdr/test.txt"):
        tag = line.split(" ")[1][0] if line else "O"
        mentions += tag == "B" or (tag == "I" and previous == "O")
        previous = tag
    assert mentions == 9662


def test_pico_equals_scibert_files() -> None:
    expected: list[tuple[Split, int, int]] = [("dev", 87913, 960), ("test", 11908, 191)]
    for split, labelled, documents in expected:
        lines = read_lines(f"{FOLDER}/scibert/pico/ebmnlp/{split}.txt")
        tags = Counter(line.split(" ")[-1] for line in lines if line and not line.startswith("-DOCSTART-"))
        sentences = load_sentences("ebm-pico", split)
        assert Counter(tag for sentence in sentences for tag in sentence.tags) == tags
        assert set(tags) == {"O", "I-PAR", "I-INT", "I-OUT"}
        assert sum(tags.values()) - tags["O"] == labelled
        assert {sentence.document_id for sentence in sentences} == set(
            re.findall(r"DOCSTART- \((\d+)\)", "\n".join(lines))
        )
        assert len({sentence.document_id for sentence in sentences}) == documents


def test_pubtator_documents_equal_crichton_sentences() -> None:
    [path] = glob.glob(f"{FOLDER}/bc5cdr-pubtator/*DevelopmentSet*")
    documents = read_pubtator(path)
    rows = [line.split("\t") for line in read_lines(path)]
    types = Counter(
        mention.split()[1]
        for document in documents
        if isinstance(document.label, frozenset)
        for mention in document.label
    )
    assert types == Counter(columns[4].upper() for columns in rows if len(columns) > 4)
    sentences = read_sentences(f"{CRICHTON}/BC5CDR-chem-IOB/devel.tsv")
    all_text = "".join("".join(sentence.words) for sentence in sentences)
    assert all("".join(document.text.split()) in all_text for document in documents)
    assert types["CHEMICAL"] == count_sentences(sentences)["mentions"] == 5347
