"""Readers of text benchmarks on real files, against published counts and plain parsing."""

from __future__ import annotations

import html
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from bioshards.evaluate.benchmarks.records import LabelledText, Question, Relation
from tests.support.evaluate.benchmark_files import load_split, load_splits
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data
BENCHMARKS = Path(DATA or "") / "benchmarks"


def read_lines(name: str) -> list[str]:
    return (BENCHMARKS / name).read_bytes().decode("utf-8-sig").replace("\r\n", "\n").strip("\n").split("\n")


@pytest.mark.parametrize(
    ("name", "split", "file", "column", "header"),
    [
        ("chemprot-blue", "dev", "electramed/RE/chemprot/dev.csv", 1, 1),
        ("chemprot-lim-kang", "test", "bio_electra/chemprot/test.tsv", 0, 1),
        ("ddi-blue", "test", "electramed/RE/ddi-2013/test.csv", 1, 1),
        ("gad", "test", "bio_electra/gad/test.tsv", 1, 1),
    ],
)
def test_tables_equal_split_lines(name: str, split: str, file: str, column: int, header: int) -> None:
    """Split lines at tabs and unquote fields: no field of these files has a tab or a line end."""
    rows = [line.split("\t") for line in read_lines(file)[header:]]
    expected = [
        (re.sub(r'^"(.*)"$', lambda match: match[1].replace('""', '"'), row[column]), row[-1]) for row in rows
    ]
    texts = load_split(BENCHMARKS, name, split, LabelledText)
    assert [(text.text, text.label) for text in texts] == expected


def test_lim_kang_texts_have_both_placeholders() -> None:
    """Both placeholders occur once in each text, except in 45 with overlapping mentions."""
    records_by_split = load_splits(BENCHMARKS, "chemprot-lim-kang").values()
    texts = [
        record.text for records in records_by_split for record in records if isinstance(record, LabelledText)
    ]
    counts = Counter((text.count("BC6ENTC"), text.count("BC6ENTG")) for text in texts)
    assert counts == {(1, 1): 41233, (0, 1): 43, (1, 0): 2}


def iter_ddi_files() -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(BENCHMARKS / "ddi2013/DDICorpus-2013.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".xml") and "DrugNER" not in name:
                yield name, archive.read(name).decode()


def parse_attributes(tag: str) -> dict[str, str]:
    """Parse the attributes of an XML tag; a literal line end is a space, and ``&#xA;`` a line end."""
    return {
        key: html.unescape(value) for key, value in re.findall(r'(\w+)="([^"]*)"', re.sub(r"\s", " ", tag))
    }


def test_ddi_equals_regular_expressions() -> None:
    """Match tags in document order: a pair belongs to the latest sentence and its entities."""
    expected = {}
    for name, xml in iter_ddi_files():
        text = ""
        drugs: dict[str, tuple[int, int, str]] = {}
        for kind, tag in re.findall(r'<(sentence|entity|pair)\s((?:[^"<>]|"[^"]*")*)>', xml):
            attributes = parse_attributes(tag)
            if kind == "sentence":
                text = attributes["text"]
            elif kind == "entity":
                offsets = [int(number) for number in re.split("[-;]", attributes["charOffset"])]
                drugs[attributes["id"]] = (
                    offsets[0],
                    offsets[-1] + 1,
                    "" if len(offsets) > 2 else attributes["text"],
                )
            else:
                label = attributes.get("type", "false") if attributes["ddi"] == "true" else "false"
                mentions = sorted((drugs[attributes["e1"]], drugs[attributes["e2"]]))
                expected[attributes["id"]] = (Path(name).stem, text, mentions, f"DDI-{label}")
    records = [
        record
        for split_records in load_splits(BENCHMARKS, "ddi").values()
        for record in split_records
        if isinstance(record, Relation)
    ]
    assert {record.id for record in records} == expected.keys()
    for record in records:
        stem, text, mentions, label = expected[record.id]
        assert (record.document_id, record.text, record.label) == (stem, text, label)
        assert [(mention.start, mention.end) for mention in (record.first, record.second)] == [
            drug[:2] for drug in mentions
        ]
        for start, end, drug in mentions:
            assert not drug or record.text[start:end] == drug


def test_hallmarks_equal_name_search() -> None:
    records = [
        record
        for split_records in load_splits(BENCHMARKS, "hoc").values()
        for record in split_records
        if isinstance(record, LabelledText)
    ]
    hallmarks = {record.id: record.label for record in records if isinstance(record.label, frozenset)}
    names = frozenset[str]().union(*hallmarks.values())
    assert (len(hallmarks), len(names)) == (1852, 10)
    for record in records:
        labels = (BENCHMARKS / f"hallmarks-of-cancer/labels/{record.id}.txt").read_text().lower()
        assert hallmarks[record.id] == {name for name in names if name in labels}
        assert (
            record.text.split()
            == (BENCHMARKS / f"hallmarks-of-cancer/text/{record.id}.txt").read_text().split()
        )


def load_json(name: str) -> Any:
    return json.loads((BENCHMARKS / name).read_text())


def test_pubmedqa_split_equals_the_authors() -> None:
    """The order of the test questions equals that of the authors' file of test answers."""
    records_by_split = load_splits(BENCHMARKS, "pubmedqa")
    truth = load_json("pubmedqa/data/test_ground_truth.json")
    assert [
        (record.id, record.label) for record in records_by_split["test"] if isinstance(record, LabelledText)
    ] == list(truth.items())
    questions = load_json("pubmedqa/data/ori_pqal.json")
    for record in (record for records in records_by_split.values() for record in records):
        assert isinstance(record, LabelledText)
        assert questions[record.id]["LONG_ANSWER"] not in f"{record.text} {record.text_pair}"
    assert Counter(
        record.label for record in records_by_split["dev"] if isinstance(record, LabelledText)
    ) == {"yes": 27, "no": 17, "maybe": 6}


def test_factoids_have_the_golden_answers() -> None:
    records = load_splits(BENCHMARKS, "factoid-7b")["test"]
    seen_ids = set()
    for batch in "12345":
        for golden in load_json(f"electramed/QA/BioASQ/7B{batch}_golden.json")["questions"]:
            if golden["type"] == "factoid":
                matches = [
                    record
                    for record in records
                    if isinstance(record, Question) and record.group_id == golden["id"]
                ]
                assert matches
                assert {(record.accepted_answers, record.test_batch) for record in matches} == {
                    (tuple(golden["exact_answer"][0]), batch)
                }
                assert {record.document_id for record in matches} == {
                    " ".join(
                        re.findall(r"\d+$", " ".join(golden["documents"]).replace(" ", "\n"), re.MULTILINE)
                    )
                }
                seen_ids |= {record.id for record in matches}
    assert len(seen_ids) == len(records)


def test_answers_are_at_their_offsets() -> None:
    for record in load_split(BENCHMARKS, "factoid-8b", "test", Question):
        assert record.answers
        for answer in record.answers:
            assert answer.start >= 0
            assert record.context[answer.start :].startswith(answer.text)


def test_candidate_groups_equal_changes_of_question() -> None:
    rows = [line.split("\t") for line in read_lines("bio_electra/reranker/test.tsv")[1:]]
    changes = sum(row[1] != next_row[1] for row, next_row in pairwise(rows))
    texts = load_split(BENCHMARKS, "reranker", "test", LabelledText)
    assert [(text.label, text.text, text.text_pair) for text in texts] == [tuple(row) for row in rows]
    assert len({text.group_id for text in texts}) == changes + 1 == 100


def test_biosses_scores_equal_the_mean_column() -> None:
    means = {row.split("\t")[0]: float(row.split("\t")[4]) for row in read_lines("biosses/biosses.tsv")[1:]}
    for record in (record for records in load_splits(BENCHMARKS, "biosses").values() for record in records):
        assert isinstance(record, LabelledText)
        assert record.label == pytest.approx(means[record.id], abs=0.005)
