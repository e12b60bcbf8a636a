"""The real sets: every published count, counted once more without the readers."""

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


def lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").split("\n")


def parts(name: str) -> RecordsBySplit:
    located = locate_benchmark(FOLDER, BENCHMARKS[name])
    assert located
    return load_records(located)


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
def test_of_crichton_s_files_nothing_is_lost(name: str, folder: str) -> None:
    published = BENCHMARKS[name].published_counts["mentions"]
    known = {one.split: one.actual for one in BENCHMARKS[name].layouts[0].known_discrepancies}
    for part, records in parts(name).items():
        plain = lines(f"{CRICHTON}/{folder}/{ {'dev': 'devel'}.get(part, part) }.tsv")
        said = [line.split("\t") for line in plain if line]
        sentences = [one for one in records if isinstance(one, TaggedSentence)]
        assert [word for one in sentences for word in one.words] == [word for word, _ in said]
        assert [tag for one in sentences for tag in one.tags] == [tag for _, tag in said]
        assert count_tagged_sentences(records)["mentions"] == sum("\tB-" in line for line in plain)
        assert count_tagged_sentences(records)["mentions"] == known.get(part, published[part])
        assert len({one.id for one in sentences}) == len(sentences)


def test_jnlpba_has_its_published_counts_and_no_abstract_of_dev_in_train() -> None:
    found = parts("jnlpba")
    assert [count_tagged_sentences(found[part])["mentions"] for part in ("train", "dev", "test")] == [
        46316,
        4551,
        8662,
    ]
    texts = {
        part: {" ".join(one.words) for one in found[part] if isinstance(one, TaggedSentence)}
        for part in found
    }
    assert not [text for text in texts["dev"] & texts["train"] if len(text) >= 60]
    task = [line for line in lines(f"{CRICHTON}/JNLPBA/original-data/test/Genia4EReval1.iob2") if line]
    test = [
        f"{word}\t{tag[0]}"
        for one in found["test"]
        if isinstance(one, TaggedSentence)
        for word, tag in zip(one.words, one.tags, strict=True)
    ]
    assert test == [re.sub(r"(\t[BIO]).*", r"\1", line) for line in task], "the shared task's own test file"


def test_jnlpba_typed_has_five_types() -> None:
    found = parts("jnlpba-typed")
    assert [len(found[part]) for part in ("train", "dev", "test")] == [16616, 1743, 3869]
    types = {
        tag[2:] for one in found["train"] if isinstance(one, TaggedSentence) for tag in one.tags if tag != "O"
    }
    assert types == {"DNA", "RNA", "protein", "cell_type", "cell_line"}


def test_bc5cdr_merged_is_iob2_with_the_mentions_that_conlleval_sees() -> None:
    found = parts("bc5cdr-merged")
    assert [len(found[part]) for part in ("train", "dev", "test")] == [3951, 3957, 4145]
    assert count_tagged_sentences(found["test"])["mentions"] == 9662
    before, spans = "O", 0
    for line in lines(f"{FOLDER}/electramed/NER/bc5cdr/test.txt"):
        tag = line.split(" ")[1][0] if line else "O"
        spans += tag == "B" or (tag == "I" and before == "O")
        before = tag
    assert spans == 9662


def test_pico_of_scibert() -> None:
    found = parts("ebm-pico")
    expected: list[tuple[Split, int, int]] = [("dev", 87913, 960), ("test", 11908, 191)]
    for part, labelled, documents in expected:
        plain = lines(f"{FOLDER}/scibert/pico/ebmnlp/{part}.txt")
        tags = Counter(line.split(" ")[-1] for line in plain if line and not line.startswith("-DOCSTART-"))
        sentences = [one for one in found[part] if isinstance(one, TaggedSentence)]
        assert Counter(tag for one in sentences for tag in one.tags) == tags
        assert set(tags) == {"O", "I-PAR", "I-INT", "I-OUT"}
        assert sum(tags.values()) - tags["O"] == labelled
        assert {one.document_id for one in sentences} == set(
            re.findall(r"DOCSTART- \((\d+)\)", "\n".join(plain))
        )
        assert len({one.document_id for one in sentences}) == documents


def test_pubtator_s_documents_are_those_of_crichton_s_sentences() -> None:
    [path] = glob.glob(f"{FOLDER}/bc5cdr-pubtator/*DevelopmentSet*")
    documents = standoff.read_pubtator(path)
    plain = [line.split("\t") for line in lines(path)]
    types = Counter(mention.type for document in documents for mention in document.mentions)
    assert types == Counter(columns[4].upper() for columns in plain if len(columns) > 4)
    sentences = iob.read_sentences(f"{CRICHTON}/BC5CDR-chem-IOB/devel.tsv")
    known = "".join("".join(one.words) for one in sentences)
    assert all("".join(document.text.split()) in known for document in documents)
    ours = [one for document in documents for one in tag_document(document, "Chemical")]
    assert (
        count_tagged_sentences(ours)["mentions"]
        == types["CHEMICAL"]
        == count_tagged_sentences(sentences)["mentions"]
        == 5347
    )
