"""The bundled sample of benchmarks covers every split and class."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.records import (
    SPLITS,
    LabelledText,
    RecordsBySplit,
    Relation,
    TaggedSentence,
    record_texts,
)
from bioshards.evaluate.tasks.task_registry import TASKS, Task
from tests.support.paths import BENCHMARK_SAMPLE, PUBMED_SAMPLE

WITHOUT_DEV = {"yesno-ideal", "reranker", "factoid-8b", "factoid-7b"}


@cache
def load_sample(name: str) -> RecordsBySplit:
    files = locate_benchmark(str(BENCHMARK_SAMPLE), BENCHMARKS[name])
    assert files is not None
    assert not files.own_splits, "BLURB's lists are there"
    return load_records(files)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_has_its_splits(name: str) -> None:
    records_by_split = load_sample(name)
    expected = (
        {"train", "dev"} if name == "squad" else {*SPLITS} - ({"dev"} if name in WITHOUT_DEV else set())
    )
    assert {*records_by_split} == expected
    assert all(
        len({record.id for record in records}) == len(records) > 1 for records in records_by_split.values()
    )


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_train_and_test_have_every_class_and_type(task: Task) -> None:
    records_by_split = load_sample(task.benchmark)
    for split in ("train", "test"):
        labels: Counter[str] = Counter()
        for record in records_by_split[split]:
            if isinstance(record, TaggedSentence):
                labels.update(tag[2:] for tag in record.tags if tag != "O")
            elif isinstance(record, LabelledText | Relation) and not isinstance(record.label, float):
                labels.update([record.label] if isinstance(record.label, str) else record.label)
        assert labels.keys() >= set(task.spec.labels)
        assert task.spec.problem_type not in ("entities", "words") or labels


def test_counts_of_each_kind_of_benchmark_are_those_that_results_are_known_by() -> None:
    """A resumed run compares them, so that no version may add or rename one."""
    names = {
        name: set(BENCHMARKS[name].count_records(load_sample(name)["test"]))
        for name in ("reranker", "gad", "ncbi-disease", "factoid-8b", "hoc")
    }
    assert names == {
        "reranker": {"candidates", "questions", "right candidates"},
        "gad": {"sentences", "positives", "0", "1"},
        "ncbi-disease": {"sentences", "mentions", "labelled words"},
        "factoid-8b": {"pairs", "questions"},
        "hoc": {"abstracts", "with a hallmark"},
    }


def test_corpus_sample_shares_a_sentence_with_bc5_chem() -> None:
    words = "a tetracyclic compound isolated from the bark of a coastal shrub"
    assert any(words in path.read_text() for path in PUBMED_SAMPLE.glob("*.xml"))
    assert any(words in " ".join(record_texts(record)) for record in load_sample("bc5-chem")["test"])
