"""Readers of tables of labelled texts, and of SciBERT's JSON lines."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bioshards.evaluate.benchmarks.readers import read_texts
from bioshards.evaluate.benchmarks.records import BenchmarkFileError, LabelledText
from tests.support.evaluate.benchmark_files import assert_refused, load_splits, write_file
from tests.support.hypothesis_profiles import examples

BLUE = "electramed/RE/chemprot/dev.csv"
LIM_KANG = "bio_electra/chemprot/train.tsv"


def test_blue_ids_begin_with_the_pmid_and_may_repeat(tmp_path: Path) -> None:
    write_file(
        tmp_path,
        BLUE,
        "\ufeffindex\tsentence\tlabel\n"
        '7.T1.T2\t"The ""old"" @CHEMICAL$ acts on @GENE$."\tCPR:3\n'
        "7.T1.T3\tNo @CHEM-GENE$ here.\tfalse\n"
        "7.T1.T3\tNo @CHEM-GENE$ here.\tCPR:4\n",
    )
    dev = load_splits(tmp_path, "chemprot-blue")["dev"]
    assert dev == [
        LabelledText("7.T1.T2", 'The "old" @CHEMICAL$ acts on @GENE$.', "CPR:3", document_id="7"),
        LabelledText("7.T1.T3", "No @CHEM-GENE$ here.", "false", document_id="7"),
        LabelledText("7.T1.T3#2", "No @CHEM-GENE$ here.", "CPR:4", document_id="7"),
    ]


def test_blue_ddi_keeps_quotation_marks(tmp_path: Path) -> None:
    row = 'DDI-MedLine.d28.s7.p0\tA 5" tube of @DRUG$ and @DRUG$ "as is"\tDDI-int\r\n'
    write_file(tmp_path, "electramed/RE/ddi-2013/test.csv", "index\tsentence\tlabel\r\n" + row)
    (record,) = load_splits(tmp_path, "ddi-blue")["test"]
    assert record == LabelledText(
        "DDI-MedLine.d28.s7.p0",
        'A 5" tube of @DRUG$ and @DRUG$ "as is"',
        "DDI-int",
        document_id="DDI-MedLine.d28",
    )


def test_rows_without_ids_are_numbered_by_line(tmp_path: Path) -> None:
    write_file(
        tmp_path,
        LIM_KANG,
        "sentence\tlabel\r\nBC6ENTC meets BC6ENTG.\tFalse\r\n\r\nBC6OTHER, too.\tCPR:9\r\n",
    )
    assert load_splits(tmp_path, "chemprot-lim-kang")["train"] == [
        LabelledText("2", "BC6ENTC meets BC6ENTG.", "False"),
        LabelledText("4", "BC6OTHER, too.", "CPR:9"),
    ]


def test_gad_dev_is_split_off_train(tmp_path: Path) -> None:
    rows = [f"@GENE$ {number} and @DISEASE$\t{number % 2}\n" for number in range(4796)]
    for folder in ("bio_electra/gad", "GAD/1"):
        data_dir = tmp_path / folder.replace("/", "_")
        write_file(data_dir, f"{folder}/train.tsv", "".join(rows))
        write_file(data_dir, f"{folder}/test.tsv", "index\tsentence\tlabel\n0\tWhat @GENE$ does.\t1\n")
        write_file(data_dir, f"{folder}/dev.tsv", b"\xff never read")
        records_by_split = load_splits(data_dir, "gad")
        assert {split: len(records) for split, records in records_by_split.items()} == {
            "train": 4261,
            "dev": 535,
            "test": 1,
        }
        assert records_by_split["dev"][0] == LabelledText("4262", "@GENE$ 4261 and @DISEASE$", "1")
        assert records_by_split["test"] == [LabelledText("2", "What @GENE$ does.", "1")]


def test_yes_no_labels_are_named_and_dev_is_not_used(tmp_path: Path) -> None:
    header = "yesno_label\tquestion\tideal_answer\n"
    write_file(tmp_path, "bio_electra/yesno/train.tsv", f"{header}1\tDoes it?\tit does.\n")
    write_file(tmp_path, "bio_electra/yesno/test.tsv", f'{header}0\t"Did it? "\tit did not.\n')
    write_file(tmp_path, "bio_electra/yesno/dev.tsv", f"{header}0\tDid it?\tit did not.\n")
    records_by_split = load_splits(tmp_path, "yesno-ideal")
    assert records_by_split == {
        "train": [LabelledText("2", "Does it?", "yes", text_pair="it does.")],
        "test": [LabelledText("2", "Did it? ", "no", text_pair="it did not.")],
    }


def test_candidates_are_grouped_by_consecutive_questions(tmp_path: Path) -> None:
    rows = ["0\tWhat?\tThis", "1\tWhat?\tThat", "0\tWho?\tShe", "0\tWhat?\tMore", "0\tWhat?\tMore"]
    table = "\n".join(["label\tquestion\tanswer_candidate", *rows])
    write_file(tmp_path, "bio_electra/reranker/test.tsv", table)
    records = load_splits(tmp_path, "reranker")["test"]
    assert [record.group_id for record in records if isinstance(record, LabelledText)] == [
        "1",
        "1",
        "2",
        "3",
        "3",
    ]
    assert records[1] == LabelledText("3", "What?", "1", text_pair="That", group_id="1")


def test_scibert_json_lines_are_read(tmp_path: Path) -> None:
    line = '{"text": "<< It >> blocks [[ that ]].", "label": "INHIBITOR", "metadata": []}'
    write_file(tmp_path, "scibert/text_classification/chemprot/test.txt", f"{line}\r\n\n{line}")
    assert load_splits(tmp_path, "chemprot-scibert")["test"] == [
        LabelledText("1", "<< It >> blocks [[ that ]].", "INHIBITOR"),
        LabelledText("3", "<< It >> blocks [[ that ]].", "INHIBITOR"),
    ]


FIELDS = st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"]), min_size=1)


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(FIELDS, st.sampled_from(["a", "b"]))))
def test_output_of_the_csv_module_is_read(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    buffer = io.StringIO()
    csv.writer(buffer, "excel-tab").writerows([("sentence", "label"), *rows])
    path = write_file(tmp_path_factory.mktemp("table"), "table.tsv", buffer.getvalue())
    assert [(record.text, record.label) for record in read_texts(path, "sentence", ("a", "b"))] == rows


@pytest.mark.parametrize(
    ("content", "location", "message"),
    [
        ("", "line 1", "its columns should be sentence, label; it names []"),
        ("sentence\tgold\nText.\ta\n", "line 1", "without ['label']"),
        ("sentence\tlabel\nText.\ta\nText.\n", "line 3", "1 fields where 2 should be"),
        ("sentence\tlabel\nText.\ta\tmore\n", "line 2", "3 fields where 2 should be"),
        ("sentence\tlabel\nText.\tc\n", "line 2", "the label 'c' is none of a, b"),
        ('sentence\tlabel\n"Text.\ta\n', "line 2", "it cannot be read as a table"),
        ('sentence\tlabel\n"Text" more.\ta\n', "line 2", "it cannot be read as a table"),
        (b"sentence\tlabel\nText.\ta\nCaf\xe9.\ta\n", "line 3", "it is not UTF-8"),
    ],
)
def test_bad_table_is_refused_with_its_line(
    tmp_path: Path, content: str | bytes, location: str, message: str
) -> None:
    path = write_file(tmp_path, "table.tsv", content)
    with pytest.raises(BenchmarkFileError) as error:
        read_texts(path, "sentence", ("a", "b"))
    assert f"{path}, {location}: " in str(error.value)
    assert message in str(error.value)


def test_table_without_rows_is_refused(tmp_path: Path) -> None:
    write_file(tmp_path, LIM_KANG, "sentence\tlabel\n")
    assert_refused(tmp_path, "chemprot-lim-kang", "holds nothing for train of ChemProt")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"text": "It.", "label": "FRIEND"}', "line 2: label should be one of ACTIVATOR, "),
        ('{"text": "It."}', "line 2: its JSON has no 'label'"),
        ('{"text": 5, "label": "AGONIST"}', "line 2: text should be a text, but is 5"),
        ('{"text": "It.", ', "line 2: it is not JSON"),
    ],
)
def test_bad_json_line_is_refused_with_its_number(tmp_path: Path, line: str, message: str) -> None:
    good_line = '{"text": "It.", "label": "AGONIST"}'
    write_file(tmp_path, "scibert/text_classification/chemprot/test.txt", f"{good_line}\n{line}\n")
    assert_refused(tmp_path, "chemprot-scibert", message)
