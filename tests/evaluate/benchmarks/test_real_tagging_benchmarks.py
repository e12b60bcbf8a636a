"""Readers of tagging benchmarks on real files, against published counts and plain parsing."""

from __future__ import annotations

import glob
import re
from collections import Counter
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.catalogue.ner_common import count_tagged_sentences
from bioshards.evaluate.benchmarks.definition import RecordsBySplit, Split, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.formats import iob, standoff
from bioshards.evaluate.benchmarks.readers.species import tag_document
from bioshards.evaluate.benchmarks.record_types import TaggedSentence
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data
FOLDER = f"{DATA}/benchmarks"
CRICHTON = f"{FOLDER}/mtl-bioinformatics-2016"


def read_lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").split("\n")


def load_benchmark(name: str) -> RecordsBySplit:
    files = locate_benchmark(FOLDER, BENCHMARKS[name])
    assert files
    return load_records(files)


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
    published = BENCHMARKS[name].published_counts["mentions"]
    known_counts = {
        discrepancy.split: discrepancy.actual
        for discrepancy in BENCHMARKS[name].layouts[0].known_discrepancies
    }
    for split, records in load_benchmark(name).items():
        lines = read_lines(f"{CRICHTON}/{folder}/{ {'dev': 'devel'}.get(split, split) }.tsv")
        expected = [line.split("\t") for line in lines if line]
        sentences = [sentence for sentence in records if isinstance(sentence, TaggedSentence)]
        assert [word for sentence in sentences for word in sentence.words] == [word for word, _ in expected]
        assert [tag for sentence in sentences for tag in sentence.tags] == [tag for _, tag in expected]
        assert count_tagged_sentences(records)["mentions"] == sum("\tB-" in line for line in lines)
        assert count_tagged_sentences(records)["mentions"] == known_counts.get(split, published[split])
        assert len({sentence.id for sentence in sentences}) == len(sentences)


def test_jnlpba_has_published_counts_and_separate_splits() -> None:
    records_by_split = load_benchmark("jnlpba")
    assert [
        count_tagged_sentences(records_by_split[split])["mentions"] for split in ("train", "dev", "test")
    ] == [
        46316,
        4551,
        8662,
    ]
    texts = {
        split: {
            " ".join(sentence.words)
            for sentence in records_by_split[split]
            if isinstance(sentence, TaggedSentence)
        }
        for split in records_by_split
    }
    assert not [text for text in texts["dev"] & texts["train"] if len(text) >= 60]
    shared_task_lines = [
        line for line in read_lines(f"{CRICHTON}/JNLPBA/original-data/test/Genia4EReval1.iob2") if line
    ]
    test = [
        f"{word}\t{tag[0]}"
        for sentence in records_by_split["test"]
        if isinstance(sentence, TaggedSentence)
        for word, tag in zip(sentence.words, sentence.tags, strict=True)
    ]
    assert test == [re.sub(r"(\t[BIO]).*", r"\1", line) for line in shared_task_lines], (
        "the shared task's own test file"
    )


def test_jnlpba_typed_has_five_types() -> None:
    records_by_split = load_benchmark("jnlpba-typed")
    assert [len(records_by_split[split]) for split in ("train", "dev", "test")] == [16616, 1743, 3869]
    types = {
        tag[2:]
        for sentence in records_by_split["train"]
        if isinstance(sentence, TaggedSentence)
        for tag in sentence.tags
        if tag != "O"
    }
    assert types == {"DNA", "RNA", "protein", "cell_type", "cell_line"}


def test_merged_bc5cdr_has_the_mentions_of_conlleval() -> None:
    records_by_split = load_benchmark("bc5cdr-merged")
    assert [len(records_by_split[split]) for split in ("train", "dev", "test")] == [3951, 3957, 4145]
    assert count_tagged_sentences(records_by_split["test"])["mentions"] == 9662
    previous, mentions = "O", 0
    for line in read_lines(f"{FOLDER}/electramed/NER/bc5cdr/test.txt"):
        tag = line.split(" ")[1][0] if line else "O"
        mentions += tag == "B" or (tag == "I" and previous == "O")
        previous = tag
    assert mentions == 9662


def test_pico_equals_scibert_files() -> None:
    records_by_split = load_benchmark("ebm-pico")
    expected: list[tuple[Split, int, int]] = [("dev", 87913, 960), ("test", 11908, 191)]
    for split, labelled, documents in expected:
        lines = read_lines(f"{FOLDER}/scibert/pico/ebmnlp/{split}.txt")
        tags = Counter(line.split(" ")[-1] for line in lines if line and not line.startswith("-DOCSTART-"))
        sentences = [sentence for sentence in records_by_split[split] if isinstance(sentence, TaggedSentence)]
        assert Counter(tag for sentence in sentences for tag in sentence.tags) == tags
        assert set(tags) == {"O", "I-PAR", "I-INT", "I-OUT"}
        assert sum(tags.values()) - tags["O"] == labelled
        assert {sentence.document_id for sentence in sentences} == set(
            re.findall(r"DOCSTART- \((\d+)\)", "\n".join(lines))
        )
        assert len({sentence.document_id for sentence in sentences}) == documents


def test_pubtator_documents_equal_crichton_sentences() -> None:
    [path] = glob.glob(f"{FOLDER}/bc5cdr-pubtator/*DevelopmentSet*")
    documents = standoff.read_pubtator(path)
    rows = [line.split("\t") for line in read_lines(path)]
    types = Counter(mention.type for document in documents for mention in document.mentions)
    assert types == Counter(columns[4].upper() for columns in rows if len(columns) > 4)
    sentences = iob.read_sentences(f"{CRICHTON}/BC5CDR-chem-IOB/devel.tsv")
    all_text = "".join("".join(sentence.words) for sentence in sentences)
    assert all("".join(document.text.split()) in all_text for document in documents)
    tagged_sentences = [sentence for document in documents for sentence in tag_document(document, "Chemical")]
    assert (
        count_tagged_sentences(tagged_sentences)["mentions"]
        == types["CHEMICAL"]
        == count_tagged_sentences(sentences)["mentions"]
        == 5347
    )
