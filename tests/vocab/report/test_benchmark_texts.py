"""Texts of the benchmarks: each file format on a few lines, and the sizes of the real files."""

from __future__ import annotations

import errno
import io
import json
import os
import zipfile
from pathlib import Path
from typing import NoReturn

import pytest

from bioshards.corpus.errors import InputUnreadableError
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.report.benchmark_texts import (
    BENCHMARKS,
    BenchmarkSpec,
    BenchmarkTexts,
    find_benchmark_texts,
    load_benchmark_texts,
)
from tests.support.real_data import DATA, needs_data


def write_file(folder: Path, name: str, content: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def load_single_benchmark(folder: Path, name: str) -> BenchmarkTexts:
    """Return the texts of this benchmark, and check that no other has any."""
    texts_by_name = {texts.benchmark.name: texts for texts in find_benchmark_texts(str(folder))}
    assert {other for other, texts in texts_by_name.items() if texts.inputs} == {name}
    return texts_by_name[name]


def make_zip(**files: str) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as opened:
        for name, text in files.items():
            opened.writestr(name.replace("__", "/") + ".xml", text)
    return data.getvalue()


def test_tagged_sentences_end_at_blank_lines(tmp_path: Path) -> None:
    text = "-DOCSTART-\tO\r\n\r\nAspirin\tB\r\nhelps\tO\r\n \r\n\r\nIt\tO\r\ndoes\tO"
    write_file(tmp_path, "mtl-bioinformatics-2016/BC2GM-IOB/train.tsv", text)
    write_file(tmp_path, "mtl-bioinformatics-2016/BC2GM-IOB/test.tsv", "Yes\tO\n\n")
    found = load_single_benchmark(tmp_path, "BC2GM")
    assert found.inputs == [("Yes",), ("Aspirin helps",), ("It does",)]
    assert found.files == tuple(f"mtl-bioinformatics-2016/BC2GM-IOB/{name}.tsv" for name in ("test", "train"))
    assert found.missing_patterns == ()


def test_pico_sentences_end_at_full_stops_and_at_new_abstracts(tmp_path: Path) -> None:
    text = "-DOCSTART- (1)\n\nWe NN O O\ntried NN O O\n. NN O O\nIt NN O O\n-DOCSTART- (2)\nMore NN O O\n"
    write_file(tmp_path, "scibert/pico/ebmnlp/dev.txt", text)
    found = load_single_benchmark(tmp_path, "EBM PICO")
    assert found.inputs == [("We tried .",), ("It",), ("More",)]
    assert found.missing_patterns == ("scibert/pico/ebmnlp/train.txt", "scibert/pico/ebmnlp/test.txt")


def test_table_sentences_may_contain_quotes(tmp_path: Path) -> None:
    write_file(
        tmp_path, "biosses/biosses.tsv", 'id\tsentence1\tsentence2\tmean\n1\tA "quoted one.\tB.\t4.0\n'
    )
    assert load_single_benchmark(tmp_path, "BIOSSES").inputs == [('A "quoted one.', "B.")]


def test_table_may_have_a_byte_order_mark(tmp_path: Path) -> None:
    write_file(
        tmp_path, "electramed/RE/chemprot/dev.csv", "\ufeffsentence\tlabel\n@CHEMICAL$ on @GENE$.\tfalse\n"
    )
    assert load_single_benchmark(tmp_path, "ChemProt").inputs == [("@CHEMICAL$ on @GENE$.",)]


def test_gad_header_is_optional(tmp_path: Path) -> None:
    write_file(tmp_path, "bio_electra/gad/train.tsv", "@GENE$ and @DISEASE$.\t1\nNo\tlink.\t0\n")
    write_file(tmp_path, "bio_electra/gad/test.tsv", "index\tsentence\tlabel\n0\tA third.\t1\n")
    assert load_single_benchmark(tmp_path, "GAD").inputs == [
        ("@GENE$ and @DISEASE$.",),
        ("No\tlink.",),
        ("A third.",),
    ]


def test_hoc_has_one_sentence_per_line_in_many_files(tmp_path: Path) -> None:
    write_file(tmp_path, "hallmarks-of-cancer/text/2.txt", "Third.\n")
    write_file(tmp_path, "hallmarks-of-cancer/text/1.txt", "First.\nSecond.\n\n")
    assert load_single_benchmark(tmp_path, "HoC").inputs == [("First.",), ("Second.",), ("Third.",)]


def test_pubmedqa_and_bioasq_yesno_questions_are_pairs(tmp_path: Path) -> None:
    write_file(
        tmp_path,
        "pubmedqa/data/ori_pqal.json",
        json.dumps({"1": {"QUESTION": "Why?", "CONTEXTS": ["A.", "B."], "LONG_ANSWER": "C."}}),
    )
    assert load_single_benchmark(tmp_path, "PubMedQA").inputs == [("Why?", "A. B.")]
    (tmp_path / "pubmedqa/data/ori_pqal.json").unlink()
    questions = [
        {"body": "Is it?", "type": "yesno", "snippets": [{"text": "It is."}, {"text": "So."}]},
        {"body": "What?", "type": "factoid", "snippets": []},
    ]
    write_file(tmp_path, "electramed/QA/BioASQ/7B1_golden.json", json.dumps({"questions": questions}))
    assert load_single_benchmark(tmp_path, "BioASQ").inputs == [("Is it?", "It is. So.")]


def test_ddi_entities_are_replaced_from_first_to_last_character(tmp_path: Path) -> None:
    document = """<document><sentence text="Alpha and beta or gamma forms.">
        <entity id="e0" charOffset="0-4"/><entity id="e1" charOffset="10-13;24-28"/>
        <entity id="e2" charOffset="18-22"/>
        <pair e1="e0" e2="e1"/><pair e1="e2" e2="e0"/><pair e1="e1" e2="e2"/></sentence>
        <sentence text="Nothing here."/></document>"""
    data = make_zip(C__Train__a=document, C__Test__Test_for_DrugNER_task__b=document)
    write_file(tmp_path, "ddi2013/DDICorpus-2013.zip", data)
    assert load_single_benchmark(tmp_path, "DDI").inputs == [
        ("@DRUG$ and @DRUG$.",),
        ("@DRUG$ and beta or @DRUG$ forms.",),
        ("Alpha and @DRUG-DRUG$.",),
    ]


def test_missing_benchmarks_have_no_inputs(tmp_path: Path) -> None:
    all_texts = list(find_benchmark_texts(str(tmp_path)))
    assert [texts.benchmark for texts in all_texts] == list(BENCHMARKS)
    assert all(not texts.inputs and texts.missing_patterns == texts.benchmark.files for texts in all_texts)


def test_loading_returns_all_texts_or_lists_expected_files(tmp_path: Path) -> None:
    write_file(tmp_path, "biosses/other.tsv", "id\tsentence1\tsentence2\n1\tA.\tB.\n")
    with pytest.raises(ValueError, match="none of the evaluation sets") as caught:
        load_benchmark_texts(str(tmp_path))
    assert str(tmp_path) in str(caught.value)
    assert all(pattern in str(caught.value) for benchmark in BENCHMARKS for pattern in benchmark.files)
    write_file(tmp_path, "biosses/biosses.tsv", "id\tsentence1\tsentence2\n1\tA.\tB.\n")
    assert load_benchmark_texts(str(tmp_path)) == list(find_benchmark_texts(str(tmp_path)))
    write_file(tmp_path, "biosses/biosses.tsv", "")
    with pytest.raises(ValueError, match="it is empty"):
        load_benchmark_texts(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_benchmark_texts(str(tmp_path / "nowhere"))


def test_files_are_found_by_links_and_in_any_case(tmp_path: Path) -> None:
    write_file(tmp_path, "elsewhere/text/1.TXT", "First.\n")
    write_file(tmp_path, "in/biosses/biosses.txt", "")
    (tmp_path / "in/hallmarks-of-cancer").symlink_to(tmp_path / "elsewhere")
    assert load_single_benchmark(tmp_path / "in", "HoC").inputs == [("First.",)]


def test_unreadable_folder_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object, pattern: str) -> NoReturn:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), pattern)

    monkeypatch.setattr(LocalStorage, "glob", refuse)
    with pytest.raises(InputUnreadableError, match=r"cannot be read \(Permission denied\)"):
        list(find_benchmark_texts(str(tmp_path)))


def test_missing_directory_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no folder .*nowhere with benchmarks"):
        list(find_benchmark_texts(str(tmp_path / "nowhere")))


def test_directory_name_may_contain_glob_characters(tmp_path: Path) -> None:
    write_file(tmp_path / "[a]*", "hallmarks-of-cancer/text/1.txt", "First.\n")
    assert load_single_benchmark(tmp_path / "[a]*", "HoC").files == ("hallmarks-of-cancer/text/1.txt",)


@pytest.mark.parametrize(
    ("file", "content", "name", "why"),
    [
        ("biosses/biosses.tsv", "id\ttext\n1\tA.\n", "BIOSSES", "names no column 'sentence'"),
        ("biosses/biosses.tsv", "id\tsentence1\tsentence2\n1\tA.\n", "BIOSSES", "IndexError"),
        ("biosses/biosses.tsv", "", "BIOSSES", "it is empty"),
        ("biosses/biosses.tsv", b"id\tsentence\n1\t\xff\n", "BIOSSES", "UnicodeDecodeError"),
        ("biosses/biosses.tsv", "id\tsentence\n1\t" + "a" * 200_000, "BIOSSES", "field larger than"),
        ("hallmarks-of-cancer/text/1.txt", "\n\n", "HoC", "it holds no input"),
        ("pubmedqa/data/ori_pqal.json", '{"1": {"CONTEXTS": []}}', "PubMedQA", "KeyError: 'QUESTION'"),
        ("pubmedqa/data/ori_pqal.json", "[", "PubMedQA", "JSONDecodeError"),
        ("pubmedqa/data/ori_pqal.json", "[1]", "PubMedQA", "AttributeError"),
        ("electramed/QA/BioASQ/7B9_golden.json", '{"questions": 3}', "BioASQ", "TypeError"),
        ("ddi2013/DDICorpus-2013.zip", "no archive", "DDI", "not a zip file"),
        ("ddi2013/DDICorpus-2013.zip", make_zip(a="<document>"), "DDI", "no element found"),
        (
            "ddi2013/DDICorpus-2013.zip",
            make_zip(a='<d><sentence text="A"><pair e1="x" e2="y"/></sentence></d>'),
            "DDI",
            "KeyError: 'x'",
        ),
    ],
)
def test_error_names_unreadable_file_benchmark_and_reason(
    tmp_path: Path, file: str, content: str | bytes, name: str, why: str
) -> None:
    write_file(tmp_path, file, content)
    with pytest.raises(ValueError, match="cannot be read as a file of") as caught:
        list(find_benchmark_texts(str(tmp_path)))
    message = str(caught.value)
    assert file in message
    assert name in message
    assert why in message


def test_all_blurb_benchmarks_have_published_lengths() -> None:
    published: list[BenchmarkSpec] = [benchmark for benchmark in BENCHMARKS if benchmark.published]
    assert len(published) == 13
    assert all(
        benchmark.published and benchmark.published.pubmedbert < benchmark.published.bert
        for benchmark in published
    )


@needs_data
def test_real_benchmarks_have_published_sizes() -> None:
    found = {
        texts.benchmark.name: len(texts.inputs)
        for texts in find_benchmark_texts(str(Path(str(DATA)) / "benchmarks"))
    }
    assert found == {
        "BC5-chem": 4560 + 4581 + 4797,
        "BC5-disease": 4560 + 4581 + 4797,
        "NCBI-disease": 5424 + 923 + 940,
        "BC2GM": 12574 + 2519 + 5038,
        "JNLPBA": 23930,
        "EBM PICO": 12462,  # of dev and test
        "ChemProt": 11820,  # of dev
        "ChemProt (Lim and Kang)": 16521 + 10361 + 14396,
        "DDI": 25296 + 2496 + 5716,
        "GAD": 4261 + 535 + 534,
        "BIOSSES": 100,
        "HoC": 17464,  # sentences of 1852 abstracts
        "PubMedQA": 1000,
        "BioASQ": 140,
    }
