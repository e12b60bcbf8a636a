"""The real sets: all that papers count, and what plain code of another kind finds in the same files."""

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

from bioshards.evaluate.benchmarks.catalogue.texts import TEXT_BENCHMARKS
from bioshards.evaluate.benchmarks.definition import load_records, locate_benchmark
from bioshards.evaluate.benchmarks.record_types import LabelledText, Question, Relation
from tests.support.evaluate.benchmark_files import TEXT_BENCHMARKS_BY_NAME, load_splits
from tests.support.real_data import DATA, needs_data

pytestmark = needs_data
BENCHMARKS = Path(DATA or "") / "benchmarks"

EXPECTED = {
    "chemprot-blue": {"dev": 11820},
    "chemprot-lim-kang": {"train": 16521, "dev": 10361, "test": 14396},
    "chemprot-scibert": {"train": 4169, "dev": 2427, "test": 3469},
    "ddi": {"train+dev": 27792, "test": 5716},
    "ddi-blue": {"dev": 7244, "test": 5761},
    "gad": {"train": 4261, "dev": 535, "test": 534},
    "biosses": {"train": 64, "dev": 16, "test": 20},
    "hoc": {"train": 1295, "dev": 186, "test": 371},
    "pubmedqa": {"train": 450, "dev": 50, "test": 500},
    "bioasq-yesno": {"test": 140},
    "yesno-ideal": {"train": 728, "test": 128},
    "reranker": {"test": 9064},
    "factoid-8b": {"test": 1809},
    "factoid-7b": {"test": 407},
    "squad": {"dev": 10570},
}
"""Examples of what is there."""


@pytest.mark.parametrize("name", [one.name for one in TEXT_BENCHMARKS])
def test_everything_that_is_published_is_found(name: str) -> None:
    found = locate_benchmark(str(BENCHMARKS), TEXT_BENCHMARKS_BY_NAME[name])
    if name not in EXPECTED:
        assert found is None
        return
    assert found is not None
    records = load_records(found)
    for part, number in EXPECTED[name].items():
        assert sum(len(records[one]) for one in found.splits if one in part.split("+")) == number
    counted = {part: found.benchmark.count_records(records[part]) for part in found.splits}
    compared = 0
    for unit, by_part in found.benchmark.published_counts.items():
        for part, number in by_part.items():
            named = [one for one in counted if one in part.split("+")]
            exact = len(named) > 1 or not found.own_splits.intersection(named)
            if len(named) == len(part.split("+")) and exact:
                assert (unit, part, sum(counted[one].get(unit, 0) for one in named)) == (unit, part, number)
                compared += 1
    assert compared
    for part in found.splits:
        ids = [record.id for record in records[part]]
        assert len(set(ids)) == len(ids)


def lines(name: str) -> list[str]:
    return (BENCHMARKS / name).read_bytes().decode("utf-8-sig").replace("\r\n", "\n").strip("\n").split("\n")


@pytest.mark.parametrize(
    ("name", "part", "file", "column", "header"),
    [
        ("chemprot-blue", "dev", "electramed/RE/chemprot/dev.csv", 1, 1),
        ("chemprot-lim-kang", "test", "bio_electra/chemprot/test.tsv", 0, 1),
        ("ddi-blue", "test", "electramed/RE/ddi-2013/test.csv", 1, 1),
        ("gad", "test", "bio_electra/gad/test.tsv", 1, 1),
    ],
)
def test_tables_by_splitting_lines(name: str, part: str, file: str, column: int, header: int) -> None:
    """No field of these files has a tab or a line end in it: only quotation marks are to be undone."""
    rows = [line.split("\t") for line in lines(file)[header:]]
    plain = [
        (re.sub(r'^"(.*)"$', lambda quoted: quoted[1].replace('""', '"'), row[column]), row[-1])
        for row in rows
    ]
    found = [
        (one.text, one.label) for one in load_splits(BENCHMARKS, name)[part] if isinstance(one, LabelledText)
    ]
    assert found == plain


def test_lim_and_kang_hide_a_chemical_and_a_gene() -> None:
    """Both once in each text, but for 45 of which one is within the other's words."""
    sets = load_splits(BENCHMARKS, "chemprot-lim-kang").values()
    texts = [one.text for its in sets for one in its if isinstance(one, LabelledText)]
    counts = Counter((text.count("BC6ENTC"), text.count("BC6ENTG")) for text in texts)
    assert counts == {(1, 1): 41233, (0, 1): 43, (1, 0): 2}


def corpus() -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(BENCHMARKS / "ddi2013/DDICorpus-2013.zip") as archive:
        for name in archive.namelist():
            if name.endswith(".xml") and "DrugNER" not in name:
                yield name, archive.read(name).decode()


def attributes(tag: str) -> dict[str, str]:
    """An XML tag's attributes; a line end written as one is a blank, ``&#xA;`` is a line end."""
    return {
        key: html.unescape(value) for key, value in re.findall(r'(\w+)="([^"]*)"', re.sub(r"\s", " ", tag))
    }


def test_ddi_by_regular_expressions() -> None:
    """Tags in the order in which they stand: a pair has the latest sentence and its entities."""
    wanted = {}
    for name, xml in corpus():
        text = ""
        drugs: dict[str, tuple[int, int, str]] = {}
        for kind, tag in re.findall(r'<(sentence|entity|pair)\s((?:[^"<>]|"[^"]*")*)>', xml):
            its = attributes(tag)
            if kind == "sentence":
                text = its["text"]
            elif kind == "entity":
                offsets = [int(number) for number in re.split("[-;]", its["charOffset"])]
                drugs[its["id"]] = (offsets[0], offsets[-1] + 1, "" if len(offsets) > 2 else its["text"])
            else:
                label = its.get("type", "false") if its["ddi"] == "true" else "false"
                both = sorted((drugs[its["e1"]], drugs[its["e2"]]))
                wanted[its["id"]] = (Path(name).stem, text, both, f"DDI-{label}")
    found = [
        one for its in load_splits(BENCHMARKS, "ddi").values() for one in its if isinstance(one, Relation)
    ]
    assert {one.id for one in found} == wanted.keys()
    for one in found:
        stem, text, both, label = wanted[one.id]
        assert (one.document_id, one.text, one.label) == (stem, text, label)
        assert [(mention.start, mention.end) for mention in (one.first, one.second)] == [
            drug[:2] for drug in both
        ]
        for start, end, drug in both:
            assert not drug or one.text[start:end] == drug


def test_hallmarks_by_searching_names() -> None:
    found = [
        one for its in load_splits(BENCHMARKS, "hoc").values() for one in its if isinstance(one, LabelledText)
    ]
    hallmarks = {one.id: one.label for one in found if isinstance(one.label, frozenset)}
    names = frozenset[str]().union(*hallmarks.values())
    assert (len(hallmarks), len(names)) == (1852, 10)
    for one in found:
        labels = (BENCHMARKS / f"hallmarks-of-cancer/labels/{one.id}.txt").read_text().lower()
        assert hallmarks[one.id] == {name for name in names if name in labels}
        assert one.text.split() == (BENCHMARKS / f"hallmarks-of-cancer/text/{one.id}.txt").read_text().split()


def asked(name: str) -> Any:
    return json.loads((BENCHMARKS / name).read_text())


def test_pubmedqa_is_split_as_its_authors_did() -> None:
    """In the order of the authors' own file of the test answers: only the same draws give it."""
    found = load_splits(BENCHMARKS, "pubmedqa")
    truth = asked("pubmedqa/data/test_ground_truth.json")
    assert [(one.id, one.label) for one in found["test"] if isinstance(one, LabelledText)] == list(
        truth.items()
    )
    questions = asked("pubmedqa/data/ori_pqal.json")
    for one in (one for its in found.values() for one in its):
        assert isinstance(one, LabelledText)
        assert questions[one.id]["LONG_ANSWER"] not in f"{one.text} {one.text_pair}"
    assert Counter(one.label for one in found["dev"] if isinstance(one, LabelledText)) == {
        "yes": 27,
        "no": 17,
        "maybe": 6,
    }


def test_factoids_have_the_golden_answers() -> None:
    found = load_splits(BENCHMARKS, "factoid-7b")["test"]
    seen = set()
    for batch in "12345":
        for one in asked(f"electramed/QA/BioASQ/7B{batch}_golden.json")["questions"]:
            if one["type"] == "factoid":
                its = [each for each in found if isinstance(each, Question) and each.group_id == one["id"]]
                assert its
                assert {(each.accepted_answers, each.test_batch) for each in its} == {
                    (tuple(one["exact_answer"][0]), batch)
                }
                assert {each.document_id for each in its} == {
                    " ".join(re.findall(r"\d+$", " ".join(one["documents"]).replace(" ", "\n"), re.MULTILINE))
                }
                seen |= {each.id for each in its}
    assert len(seen) == len(found)


@pytest.mark.parametrize(("name", "part"), [("squad", "dev"), ("factoid-8b", "test")])
def test_all_answers_stand_where_they_are_said_to(name: str, part: str) -> None:
    for one in load_splits(BENCHMARKS, name)[part]:
        assert isinstance(one, Question)
        assert one.answers
        for answer in one.answers:
            assert answer.start >= 0
            assert one.context[answer.start :].startswith(answer.text)


def test_candidates_by_counting_changes() -> None:
    rows = [line.split("\t") for line in lines("bio_electra/reranker/test.tsv")[1:]]
    changes = sum(one[1] != other[1] for one, other in pairwise(rows))
    found = load_splits(BENCHMARKS, "reranker")["test"]
    assert [(one.label, one.text, one.text_pair) for one in found if isinstance(one, LabelledText)] == [
        tuple(row) for row in rows
    ]
    assert len({one.group_id for one in found if isinstance(one, LabelledText)}) == changes + 1 == 100


def test_biosses_by_its_own_means() -> None:
    means = {row.split("\t")[0]: float(row.split("\t")[4]) for row in lines("biosses/biosses.tsv")[1:]}
    for one in (one for its in load_splits(BENCHMARKS, "biosses").values() for one in its):
        assert isinstance(one, LabelledText)
        assert one.label == pytest.approx(means[one.id], abs=0.005)
