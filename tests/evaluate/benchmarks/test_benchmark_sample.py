"""The bundled sample of benchmarks: what is committed is what its writer writes, and every set is whole."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest

from bioshards.evaluate.benchmarks.catalogue import BENCHMARKS
from bioshards.evaluate.benchmarks.definition import SPLITS, RecordsBySplit, load_records, locate_benchmark
from bioshards.evaluate.benchmarks.record_types import LabelledText, Relation, TaggedSentence
from bioshards.evaluate.tasks.task_registry import TASKS, Task
from tests.support.evaluate.sample.benchmark_sample import sample_contents
from tests.support.paths import BENCHMARK_SAMPLE

WITHOUT_DEV = {"yesno-ideal", "reranker", "factoid-8b", "factoid-7b"}


def test_the_committed_files_are_what_is_written() -> None:
    there = {
        str(path.relative_to(BENCHMARK_SAMPLE)): path.read_bytes()
        for path in BENCHMARK_SAMPLE.rglob("*")
        if path.is_file() and path.name != "README.md"
    }
    assert there == {name: text.encode() for name, text in sample_contents().items()}, (
        "run python -m tests.support.evaluate.sample.benchmark_sample"
    )
    assert sum(map(len, there.values())) < 270_000


@cache
def _parts(name: str) -> RecordsBySplit:
    located = locate_benchmark(str(BENCHMARK_SAMPLE), BENCHMARKS[name])
    assert located is not None
    assert not located.own_splits, "BLURB's lists are there"
    return load_records(located)


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_set_is_there_with_its_authors_parts(name: str) -> None:
    parts = _parts(name)
    wanted = {"train", "dev"} if name == "squad" else {*SPLITS} - ({"dev"} if name in WITHOUT_DEV else set())
    assert {*parts} == wanted
    assert all(len({one.id for one in records}) == len(records) > 1 for records in parts.values())


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_each_class_and_type_is_in_train_and_in_test(task: Task) -> None:
    parts = _parts(task.benchmark)
    for part in ("train", "test"):
        seen: Counter[str] = Counter()
        for one in parts[part]:
            if isinstance(one, TaggedSentence):
                seen.update(tag[2:] for tag in one.tags if tag != "O")
            elif isinstance(one, LabelledText | Relation) and not isinstance(one.label, float):
                seen.update([one.label] if isinstance(one.label, str) else one.label)
        assert seen.keys() >= set(task.labels)
        assert task.problem_type not in ("entities", "words") or seen


def test_a_sentence_is_in_the_corpus_sample_too() -> None:
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
        list(one.words[2:]) == words for one in _parts("bc5-chem")["test"] if isinstance(one, TaggedSentence)
    )
