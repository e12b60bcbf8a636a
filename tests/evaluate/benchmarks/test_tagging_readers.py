"""Readers of EBM PICO, JNLPBA, PubTator and Species-800, and the errors for bad files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from bioshards.evaluate.benchmarks import readers
from bioshards.evaluate.benchmarks.catalogue import load_records
from bioshards.evaluate.benchmarks.records import LabelledText, Record, TaggedSentence
from tests.support.evaluate.benchmark_files import assert_rejected, find_files, write_benchmark_files


def format_tags(records: Sequence[Record]) -> list[str]:
    """Format tagged sentences as lines of word/tag."""
    return [
        " ".join(f"{word}/{tag}" for word, tag in zip(record.words, record.tags, strict=True))
        for record in records
        if isinstance(record, TaggedSentence)
    ]


# PICO

SPANS = "ebm_nlp_2_00/annotations/aggregated/starting_spans"
PICO_ELEMENTS = ("participants", "interventions", "outcomes")


def make_pico_files(pmid: int, split: str, tokens: str, *numbers: str) -> dict[str, str]:
    files = {f"ebm_nlp_2_00/documents/{pmid}.tokens": tokens}
    for name, row in zip(PICO_ELEMENTS, numbers, strict=True):
        if row:
            files[f"{SPANS}/{name}/{split}/{pmid}.AGGREGATED.ann"] = row
    return files


PICO = {
    **make_pico_files(
        11,
        "train",
        "ten men took zorbin . all slept well",
        *("1 1 0 0 0 0 0 0", "0 0 0 3 0 0 0 0", "0 0 0 0 0 0 6 6"),
    ),
    **make_pico_files(12, "train", "they did .", "1 0 0", "", "0 1 0"),
    **make_pico_files(13, "test/gold", ". women slept", "0 4 4", "0 7 0", "0 0 1"),
    "scibert/pico/ebmnlp/dev.txt": "-DOCSTART- (12)\n\nthey NN O I-PAR\n\n\n",
}


def test_pico_annotations_are_flattened_and_split_into_sentences(tmp_path: Path) -> None:
    files = find_files(write_benchmark_files(tmp_path, PICO), "ebm-pico")
    assert files.splits == ("train", "dev", "test")
    assert not files.notes
    records_by_split = load_records(files)
    assert format_tags(records_by_split["train"]) == [
        "ten/I-PAR men/I-PAR took/O zorbin/I-INT ./O",
        "all/O slept/I-OUT well/I-OUT",
    ]
    assert format_tags(records_by_split["dev"]) == ["they/I-PAR did/I-OUT ./O"]
    assert format_tags(records_by_split["test"]) == ["./O", "women/I-INT slept/I-OUT"]
    assert [
        (record.id, record.document_id)
        for record in records_by_split["test"]
        if isinstance(record, TaggedSentence)
    ] == [("13.0", "13"), ("13.1", "13")]


def test_pico_without_dev_list_is_split_with_a_note(tmp_path: Path) -> None:
    files = {
        name: text
        for number in range(10)
        for name, text in make_pico_files(100 + number, "train", f"t{number}", "0", "1", "0").items()
    }
    gold = make_pico_files(5, "test/gold", "g", "1", "0", "0")
    benchmark_files = find_files(write_benchmark_files(tmp_path, {**files, **gold}), "ebm-pico")
    records_by_split = load_records(benchmark_files)
    assert format_tags(records_by_split["dev"]) == ["t4/I-INT", "t9/I-INT"]
    assert len(records_by_split["train"]) == 8
    assert benchmark_files.own_splits == {"train", "dev"}
    assert "every fifth" in benchmark_files.notes[0]


def test_pico_test_abstracts_are_left_out_of_train(tmp_path: Path) -> None:
    files = {**PICO, **make_pico_files(13, "train", ". women slept", "0 0 0", "0 0 0", "0 0 0")}
    assert len(load_records(find_files(write_benchmark_files(tmp_path, files), "ebm-pico"))["train"]) == 2


OUTCOMES = f"{SPANS}/outcomes/train"
BAD_PICO: dict[str, tuple[str, str | bytes, int | None, str]] = {
    "too few numbers": (f"{OUTCOMES}/12.AGGREGATED.ann", "0 1", None, "2 numbers for 3 tokens"),
    "no numbers": (f"{OUTCOMES}/12.AGGREGATED.ann", "0,1 0 0", None, "not '0,1'"),
    "long number": (f"{OUTCOMES}/12.AGGREGATED.ann", f"0 {'1' * 5000} 0", None, "not '1111"),
    "no tokens": (f"{OUTCOMES}/14.AGGREGATED.ann", "0", None, "no 14.tokens"),
    "no PMID": (f"{OUTCOMES}/x.ann", "0", None, "begin with a PMID"),
    "a list of nothing": ("scibert/pico/ebmnlp/dev.txt", "they NN O O\n", None, "names no abstract"),
    "broken tokens": ("ebm_nlp_2_00/documents/12.tokens", b"they did \xff", 1, "not UTF-8"),
}


@pytest.mark.parametrize(("name", "content", "line", "message"), BAD_PICO.values(), ids=BAD_PICO)
def test_bad_pico_file_is_refused(
    tmp_path: Path, name: str, content: str | bytes, line: int | None, message: str
) -> None:
    files = find_files(write_benchmark_files(tmp_path, {**PICO, name: content}), "ebm-pico")
    assert_rejected(lambda: load_records(files), tmp_path / name, line, message)


# JNLPBA


def test_shared_task_file_is_split_at_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readers, "JNLPBA_TRAIN_LINES", 4)
    task = "###MEDLINE:95369245\n\na\tB-DNA\n\n###MEDLINE:95333264\n\nb\tB-RNA\n\n"
    files = {"Genia4ERtask2.iob2": task, "Genia4EReval2.iob2": "###MEDLINE:7\n\nc\tO\n"}
    records_by_split = load_records(find_files(write_benchmark_files(tmp_path, files), "jnlpba"))
    assert [
        (record.id, record.document_id)
        for records in records_by_split.values()
        for record in records
        if isinstance(record, TaggedSentence)
    ] == [("3", "95369245"), ("7", "95333264"), ("3", "7")]


def test_jnlpba_train_has_the_lines_of_blurb() -> None:
    assert readers.JNLPBA_TRAIN_LINES == 465497


# PubTator

DOCUMENT = """77|t|Zorbin and aches|.
77|a|It cured β-rash or heart rash.
77\t0\t6\tZorbin\tChemical\tD1
77\t26\t46\tβ-rash or heart rash\tDisease\tD2|D3\tβ-rash|heart rash
77\tCID\tD1\tD2
"""


def parse_pubtator(tmp_path: Path, content: str | bytes) -> list[LabelledText]:
    return readers.read_pubtator(str(write_benchmark_files(tmp_path, {"a.txt": content}) / "a.txt"))


def test_pubtator_documents_are_parsed(tmp_path: Path) -> None:
    text = "Zorbin and aches|. It cured β-rash or heart rash."
    label = frozenset({"0-6 CHEMICAL", "28-48 DISEASE"})
    assert text[28:48] == "β-rash or heart rash"
    content = DOCUMENT.replace("26\t46", "28\t48")
    assert parse_pubtator(tmp_path, content) == [LabelledText("77", text, label, document_id="77")]
    assert parse_pubtator(tmp_path, "\n" + content + "\n\n" + content.replace("77", "78")) == [
        LabelledText("77", text, label, document_id="77"),
        LabelledText("78", text, label, document_id="78"),
    ]
    assert parse_pubtator(tmp_path, "") == []


BAD_PUBTATOR = {
    "no title": ("77|a|It.\n", 1, "begin with"),
    "no abstract": ("77|t|A title.\n", 1, "begin with"),
    "two titles": ("77|t|A.\n77|t|B.\n", 1, "begin with"),
    "another's abstract": ("77|t|A.\n78|a|B.\n", 2, "the abstract of 78"),
    "another's mention": ("77|t|A.\n77|a|B.\n78\t0\t1\tA\tX\tD\n", 3, "among the lines of 77"),
    "other offsets": ("77|t|A.\n77|a|B.\n77\t0\t1\tB\tX\tD\n", 3, "is 'A', not 'B'"),
    "offsets beyond": ("77|t|A.\n77|a|B.\n77\t90\t91\tB\tX\tD\n", 3, "is '', not 'B'"),
    "no offsets": ("77|t|A.\n77|a|B.\n77\tx\t1\tA\tX\tD\n", 3, "offsets should be numbers"),
    "long offset": (f"77|t|A.\n77|a|B.\n77\t0\t{'1' * 5000}\tA\tX\tD\n", 3, "offsets should be numbers"),
    "nothing": ("77|t|A.\n77|a|B.\n77\t0\t0\t\tX\tD\n", 3, "is '', not ''"),
    "two columns": ("\n\n77|t|A.\n77|a|B.\n77\tA\n", 5, "a mention or relation"),
}


@pytest.mark.parametrize(("content", "line", "message"), BAD_PUBTATOR.values(), ids=BAD_PUBTATOR)
def test_bad_pubtator_file_is_refused(tmp_path: Path, content: str, line: int, message: str) -> None:
    assert_rejected(lambda: parse_pubtator(tmp_path, content), tmp_path / "a.txt", line, message)


# Species-800


def test_species_tags_without_type_get_one(tmp_path: Path) -> None:
    write_benchmark_files(
        tmp_path, {f"NERdata/s800/{split}.tsv": "a\tB\nmouse\tI\n" for split in ("train", "devel", "test")}
    )
    assert format_tags(load_records(find_files(tmp_path, "s800"))["dev"]) == ["a/B-Species mouse/I-Species"]


def test_empty_files_are_refused(tmp_path: Path) -> None:
    write_benchmark_files(tmp_path, {f"BC2GM-IOB/{split}.tsv": "" for split in ("train", "devel", "test")})
    assert_rejected(
        lambda: load_records(find_files(tmp_path, "bc2gm")),
        tmp_path / "BC2GM-IOB/train.tsv",
        None,
        "holds nothing for train",
    )
