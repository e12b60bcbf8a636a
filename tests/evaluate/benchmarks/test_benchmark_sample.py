"""The bundled sample of benchmarks equals its generator's output and covers every split and class."""

from __future__ import annotations

import operator
import re
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
)
from bioshards.evaluate.metrics.tags import entity_f1
from bioshards.evaluate.tasks.task_registry import TASKS, Task
from tests.support.evaluate.majority_baseline import predict_majority
from tests.support.evaluate.sample.benchmark_sample import sample_contents
from tests.support.paths import BENCHMARK_SAMPLE

WITHOUT_DEV = {"yesno-ideal", "reranker", "factoid-8b", "factoid-7b"}


def test_committed_files_equal_the_generated_sample() -> None:
    committed_files = {
        str(path.relative_to(BENCHMARK_SAMPLE)): path.read_bytes()
        for path in BENCHMARK_SAMPLE.rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    assert committed_files == {name: text.encode() for name, text in sample_contents().items()}, (
        "run python -m tests.support.evaluate.sample.benchmark_sample"
    )
    assert sum(map(len, committed_files.values())) < 270_000


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
    words = [
        "a",
        "tetracyclic",
        "compound",
        "isolated",
        "from",
        "the",
        "bark",
        "of",
        "a",
        "coastal",
        "shrub",
        ".",
    ]
    corpus = BENCHMARK_SAMPLE.parent.parent / "corpus" / "sample" / "pubmed"
    assert any(" ".join(words).replace(" .", ".") in path.read_text() for path in corpus.glob("*.xml"))
    assert any(
        list(record.words[2:]) == words
        for record in load_sample("bc5-chem")["test"]
        if isinstance(record, TaggedSentence)
    )


def read_words(text: LabelledText) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", f"{text.text} {text.text_pair or ''}".lower()))


@pytest.mark.parametrize("name", ["gad", "chemprot-blue", "ddi-blue", "pubmedqa", "bioasq-yesno"])
def test_words_of_train_tell_the_classes_of_test(name: str) -> None:
    """The sample can be learned: the text of train that shares most words has the right class."""
    records_by_split = load_sample(name)
    train, test = (
        [
            (read_words(record), record.label)
            for record in records_by_split[split]
            if isinstance(record, LabelledText)
        ]
        for split in ("train", "test")
    )
    labels = [label for _, label in test]
    majority = predict_majority("single_label", [label for _, label in train], labels)
    nearest = [
        max((len(known & words) / len(known | words), label) for known, label in train)[1]
        for words, _ in test
    ]
    accuracies = [sum(map(operator.eq, labels, predicted)) / len(labels) for predicted in (nearest, majority)]
    assert accuracies[0] > max(0.8, accuracies[1] + 0.2)


@pytest.mark.parametrize("name", ["bc5-chem", "bc5-disease", "ncbi-disease", "bc2gm", "jnlpba", "s800"])
def test_tags_of_train_tell_the_tags_of_test(name: str) -> None:
    """The sample can be learned: most words of test have the tag that they have in train."""
    records_by_split = load_sample(name)
    tag_counts: dict[str, Counter[str]] = {}
    for record in records_by_split["train"]:
        assert isinstance(record, TaggedSentence)
        for word, tag in zip(record.words, record.tags, strict=True):
            tag_counts.setdefault(word.lower(), Counter())[tag] += 1
    sentences = [record for record in records_by_split["test"] if isinstance(record, TaggedSentence)]
    predicted = [
        [tag_counts.get(word.lower(), Counter("O")).most_common(1)[0][0] for word in sentence.words]
        for sentence in sentences
    ]
    assert entity_f1().compute_scores([list(one.tags) for one in sentences], predicted)["F1"] > 0.8
