"""Readers of relations in the XML of the DDI corpus and in ChemProt's tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks.readers import parse_ddi_pairs, read_ddi
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, Mention, Relation
from tests.support.evaluate.benchmark_files import (
    assert_refused,
    find_files,
    load_splits,
    make_zip,
    write_file,
)

SENTENCE = "Aspirin, warfarin and oral vitamin K interact."
#           0123456789...                21-35: "oral vitamin K"


def format_entity(number: int, offsets: str) -> str:
    return f'<entity id="s.e{number}" charOffset="{offsets}" type="brand" text="x"/>'


def format_pair(name: str, first: int, second: int, rest: str) -> str:
    return f'<pair id="{name}" e1="s.e{first}" e2="s.e{second}" {rest}/>'


def format_document(*content: str, text: str = SENTENCE) -> str:
    inner = "\n".join(content)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n<document id="d">\n'
        f'<sentence id="s" text="{text}">\n{inner}\n</sentence>\n</document>\n'
    )


def format_simple_document(name: str) -> str:
    return format_document(
        format_entity(0, "0-6"), format_entity(1, "9-16"), format_pair(name, 0, 1, 'ddi="true" type="effect"')
    )


def test_drugs_of_a_pair_are_in_text_order() -> None:
    xml = format_document(
        format_entity(0, "22-25;35-35"),
        format_entity(1, "9-16"),
        format_entity(2, "0-6"),
        format_pair("s.p0", 0, 1, 'ddi="true" type="advise"'),
        format_pair("s.p1", 1, 2, 'ddi="false"'),
        format_pair("s.p2", 0, 2, 'ddi="true"'),
    )
    aspirin, warfarin, vitamin = (Mention(*span, "DRUG") for span in ((0, 7), (9, 17), (22, 36)))
    assert list(parse_ddi_pairs("set/Aspirin_ddi.xml", xml.encode(), ("DDI-false", "DDI-advise"))) == [
        Relation("s.p0", SENTENCE, warfarin, vitamin, "DDI-advise", "Aspirin_ddi"),
        Relation("s.p1", SENTENCE, aspirin, warfarin, "DDI-false", "Aspirin_ddi"),
        Relation("s.p2", SENTENCE, aspirin, vitamin, "DDI-false", "Aspirin_ddi"),  # true, without a type
    ]
    assert SENTENCE[22:36] == "oral vitamin K"


TRAIN = {
    f"DDICorpus/Train/{kind}/{number}.xml": format_simple_document(f"p{number}")
    for number, kind in [(one, "MedLine" if one % 2 else "DrugBank") for one in range(100)]
}
TEST = {"DDICorpus/Test/Test for DDI Extraction task/MedLine/7000.xml": format_simple_document("t")}
IGNORED_FILES = {
    "DDICorpus/Test/Test for DrugNER task/MedLine/8000.xml": "<not read",
    "DDICorpus/Train/.DS_Store": "\0",
    "DDICorpus/Train/MedLine/._1.xml": "\0",
}


def test_archive_and_folders_give_the_same_records(tmp_path: Path) -> None:
    zipped, unpacked = tmp_path / "zipped", tmp_path / "unpacked"
    write_file(zipped, "ddi2013/DDICorpus-2013.zip", make_zip({**TRAIN, **TEST, **IGNORED_FILES}))
    for name, content in {**TRAIN, **TEST}.items():
        write_file(unpacked, f"ddi2013/{name}", content)
    records_by_split = load_splits(zipped, "ddi")
    assert {split: len(records) for split, records in records_by_split.items()} == {
        "train": 10,
        "dev": 90,
        "test": 1,
    }
    assert {split: {record.id for record in records} for split, records in records_by_split.items()} == {
        split: {record.id for record in records} for split, records in load_splits(unpacked, "ddi").items()
    }
    assert find_files(zipped, "ddi").own_splits == {"train", "dev"}
    assert "SHA-256" in " ".join(find_files(zipped, "ddi").notes)


def test_lists_assign_the_dev_split(tmp_path: Path) -> None:
    write_file(tmp_path, "ddi2013/DDICorpus-2013.zip", make_zip({**TRAIN, **TEST}))
    names = [name.removeprefix("DDICorpus/") for name in TRAIN]
    write_file(tmp_path, "blurb/indexing/DDI/train_files.tsv", "\n".join(names[2:]))
    write_file(tmp_path, "blurb/indexing/DDI/dev_files.tsv", "\r\n".join(names[:2]) + "\n")
    write_file(tmp_path, "blurb/indexing/DDI/test_files.tsv", "not/needed.xml")
    records_by_split = load_splits(tmp_path, "ddi")
    assert {record.id for record in records_by_split["dev"]} == {"p0", "p1"}
    assert len(records_by_split["train"]) == 98
    assert not find_files(tmp_path, "ddi").own_splits
    write_file(tmp_path, "blurb/indexing/DDI/dev_files.tsv", f"{names[0]}\nTrain/DrugBank/Nothing_ddi.xml\n")
    assert_refused(tmp_path, "ddi", "line 2: 'Nothing_ddi' is not in the set's files")


BAD_XML = {
    "DOCTYPE": ('<!DOCTYPE document [<!ENTITY a "aaaa">]>\n<document/>', 1, "DOCTYPE"),
    "cut off": (format_simple_document("p")[:-10], 8, "not well-formed"),
    "text of its own": ("just text", 1, "not well-formed"),
    "no text": ('<document>\n<sentence id="s"/></document>', 2, "<sentence> has no attribute 'text'"),
    "outside": (
        format_document(format_entity(0, "40-46")),
        4,
        "charOffset 40-46 is not within its sentence of 46",
    ),
    "no offsets": (
        format_document(format_entity(0, "4 to 6")),
        4,
        "charOffset should be like 5-9, not '4 to 6'",
    ),
    "long offset": (
        format_document(format_entity(0, f"0-{'6' * 5000}")),
        4,
        "charOffset should be like 5-9, not '0-666",
    ),
    "unknown entity": (
        format_document(format_entity(0, "0-6"), format_pair("p", 0, 9, 'ddi="false"')),
        5,
        "no entity 's.e9'",
    ),
    "unknown type": (
        format_document(format_entity(0, "0-6"), format_pair("p", 0, 0, 'ddi="true" type="love"')),
        5,
        "type='love' is no pair",
    ),
    "neither": (
        format_document(format_entity(0, "0-6"), format_pair("p", 0, 0, 'ddi="maybe"')),
        5,
        "ddi='maybe'",
    ),
}


@pytest.mark.parametrize("name", BAD_XML)
def test_bad_xml_is_refused_with_file_and_line(tmp_path: Path, name: str) -> None:
    xml, line, message = BAD_XML[name]
    member = "DDICorpus/Train/MedLine/1.xml"
    path = write_file(tmp_path, "ddi2013/DDICorpus-2013.zip", make_zip({member: xml, **TEST}))
    assert_refused(tmp_path, "ddi", f"{path}, {member}, line {line}: ", message)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-7", "latin-1"])
def test_xml_in_another_encoding_is_refused(encoding: str) -> None:
    xml = f'<?xml version="1.0" encoding="{encoding}"?>\n<!DOCTYPE a [<!ENTITY b "c">]><a>ä</a>'.encode(
        encoding
    )
    with pytest.raises(BenchmarkFileError):
        list(parse_ddi_pairs("a.xml", xml, ()))


def test_repeated_id_is_refused(tmp_path: Path) -> None:
    folder = "ddi2013/DDICorpus/Test/Test for DDI Extraction task/MedLine"
    for name in ("2", "3"):
        write_file(tmp_path, f"{folder}/{name}.xml", format_simple_document("t"))
    assert_refused(tmp_path, "ddi", "the id 't' is given twice")


BAD_ARCHIVES: dict[str, tuple[Callable[[], bytes], str]] = {
    "empty": (bytes, "does not begin as a zip archive does"),
    "another file": (lambda: b"PK\3\4 and no more", "the archive's directory, at its end, is missing"),
    "cut": (lambda: make_zip(TEST)[:200], "the archive's directory, at its end, is missing"),
    "large member": (
        lambda: make_zip({"DDICorpus/Train/1.xml": b"a" * (80 << 20)}),
        "has 83,886,080 bytes, more than",
    ),
    "many large members": (
        lambda: make_zip({f"DDICorpus/Train/{number}.xml": b"a" * (20 << 20) for number in range(4)}),
        "unpack to more than",
    ),
    "outside the folder": (lambda: make_zip({"../../Train/1.xml": "<a/>"}), "unsafe member name"),
}


@pytest.mark.parametrize("name", BAD_ARCHIVES)
def test_bad_archive_is_refused(tmp_path: Path, name: str) -> None:
    make_archive, message = BAD_ARCHIVES[name]
    path = write_file(tmp_path, "ddi2013/DDICorpus-2013.zip", make_archive())
    with pytest.raises(BenchmarkFileError) as error:
        load_splits(tmp_path, "ddi")
    assert str(error.value).startswith(f"{path}: ")
    assert message in str(error.value)


CHEMPROT = {
    "abstracts": '11\tAspirin blocks COX-1.\tIt "does" so in mice. COX-1 is not TNF, nor aspirin-COX.\n'
    "12\tNothing.\t\n",
    "entities": "11\tT1\tCHEMICAL\t0\t7\tAspirin\n"
    "11\tT2\tGENE-Y\t15\t20\tCOX-1\n"
    "11\tT3\tGENE-N\t44\t49\tCOX-1\n"
    "11\tT4\tGENE-Y\t57\t60\tTNF\n"
    "11\tT5\tCHEMICAL\t66\t73\taspirin\n"
    "11\tT6\tGENE-N\t66\t77\taspirin-COX\n",
    "relations": "11\tCPR:3\tY \tACTIVATOR\tArg1:T1\tArg2:T2\n"
    "11\tCPR:4\tY \tINHIBITOR\tArg1:T1\tArg2:T2\n"
    "11\tCPR:10\tN \tNOT\tArg1:T5\tArg2:T4\n"
    "11\tCPR:9\tY \tSUBSTRATE\tArg1:T5\tArg2:T3\n",
}  # fmt: skip


def write_chemprot(folder: Path, files: Mapping[str, str]) -> None:
    for kind, content in files.items():
        write_file(folder, f"ChemProt_Corpus/chemprot_training/chemprot_training_{kind}.tsv", content)


def test_chemicals_and_genes_of_a_sentence_are_paired(tmp_path: Path) -> None:
    write_chemprot(tmp_path, CHEMPROT)
    title = "Aspirin blocks COX-1."
    last = "COX-1 is not TNF, nor aspirin-COX."
    cox, tnf = Mention(0, 5, "GENE"), Mention(13, 16, "GENE")
    aspirin, aspirin_cox = Mention(22, 29, "CHEMICAL"), Mention(22, 33, "GENE")
    assert load_splits(tmp_path, "chemprot") == {
        "train": [
            Relation("11.T1.T2", title, Mention(0, 7, "CHEMICAL"), Mention(15, 20, "GENE"), "CPR:4", "11"),
            Relation("11.T3.T5", last, cox, aspirin, "CPR:9", "11"),
            Relation("11.T4.T5", last, tnf, aspirin, "false", "11"),
            Relation("11.T5.T6", last, aspirin, aspirin_cox, "false", "11"),
        ]
    }
    assert "punkt" in " ".join(find_files(tmp_path, "chemprot").notes)


@pytest.mark.parametrize(
    ("kind", "line", "location", "message"),
    [
        ("abstracts", "11\tAgain.\tAnd again.", "line 3", "the abstract 11 is given twice"),
        ("abstracts", "13\tNo abstract.", "line 3", "2 fields where 3 should be: PMID, title, abstract"),
        ("entities", "11\tT7\tGENE-N\t70\t700\taspirin", "line 7", "70 to 700 is not within abstract 11"),
        ("entities", "11\tT7\tGENE-N\t-3\t4\taspirin", "line 7", "-3 to 4 is not within abstract 11"),
        (
            "entities",
            f"11\tT7\tGENE-N\t9\t{'9' * 5000}\t",
            "line 7",
            "9 to 99999999999999999999 is not within",
        ),
        ("entities", "11\tT7\tGENE-N\t9\t9\t", "line 7", "9 to 9 is not within abstract 11"),
        ("entities", "11\tT1\tGENE-N\t9\t11\tbl", "line 7", "T1 is given twice in abstract 11"),
        ("entities", "11\tT7\tPROTEIN\t9\t11\tbl", "line 7", "the type 'PROTEIN' is none of CHEMICAL, GENE"),
        ("entities", "99\tT1\tGENE-N\t9\t11\tbl", "line 7", "there is no abstract 99"),
        ("relations", "11\tCPR:3\tY \tX\tArg1:T1\tArg2:T9", "line 5", "abstract 11 has no entity 'T9'"),
        ("relations", "99\tCPR:3\tY \tX\tArg1:T1\tArg2:T2", "line 5", "abstract 99 has no entity 'T1'"),
    ],
)
def test_bad_chemprot_table_is_refused_with_file_and_line(
    tmp_path: Path, kind: str, line: str, location: str, message: str
) -> None:
    write_chemprot(tmp_path, {**CHEMPROT, kind: f"{CHEMPROT[kind]}{line}\n"})
    assert_refused(tmp_path, "chemprot", f"chemprot_training_{kind}.tsv, {location}: {message}")


def test_two_copies_of_a_corpus_are_refused(tmp_path: Path) -> None:
    write_chemprot(tmp_path, CHEMPROT)
    write_chemprot(tmp_path / "copy", CHEMPROT)
    assert_refused(tmp_path, "chemprot", "only one can be")


@pytest.mark.parametrize("kind", ["archive", "train", "test"])
def test_ddi_file_that_cannot_be_read_is_named(tmp_path: Path, kind: str) -> None:
    with pytest.raises(BenchmarkFileError, match=rf"^{tmp_path}: it cannot be read \(Is a directory\)"):
        read_ddi({kind: [str(tmp_path)]}, ("DDI-false",))
