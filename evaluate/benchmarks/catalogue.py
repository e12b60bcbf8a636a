"""All benchmarks by name: what an entry of catalogue.toml holds, how files are found, and records counted.

``verify`` compares every reader with the published counts.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from importlib import resources
from inspect import signature
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from bioshards.corpus.errors import InputNotFoundError
from bioshards.corpus.storage.local_storage import LocalStorage, ignore_extension_case, matches_glob
from bioshards.corpus.storage.source_file import explain_unreadable
from bioshards.evaluate.benchmarks.formats import PathsByName
from bioshards.evaluate.benchmarks.readers import READERS
from bioshards.evaluate.benchmarks.records import (
    SPLITS,
    BenchmarkFileError,
    LabelledText,
    Record,
    RecordsBySplit,
    Relation,
    Split,
)

Reader = Callable[[PathsByName], RecordsBySplit]
"""Function from the existing files to the records of each split that can be read."""
RecordCounter = Callable[[Sequence[Record]], Mapping[str, int]]
"""Function that counts the units in the records of a split."""


class MissingSplitPolicy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Replacement for a missing file that lists the examples of a split.

    Attributes:
        note: sentence that every result carries.
        affected_splits: splits that then differ from the published ones; their union is the same.
    """

    note: str
    affected_splits: tuple[Split, ...]


class KnownDiscrepancy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Count of these files that differs from the published one, with the reason.

    Attributes:
        unit: counted unit, as in ``Benchmark.published_counts``.
        split: split, or several joined by ``+``.
        actual: count in these files.
        is_same_data: True if the paper used the same files and counted them differently.
    """

    unit: str
    split: str
    actual: int
    reason: str
    is_same_data: bool = False


class FileLayout(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One way in which the files of a benchmark are distributed.

    Attributes:
        patterns: glob pattern (``**`` too) below the benchmarks directory, by file name.
        files_by_split: names of the files that each split needs; in catalogue.toml by default the file of the
            split's name.
        read: reader of the existing files.
        missing_split_policies: replacement for each optional file.
        note: property of these files that affects scores.
        known_discrepancies: counts that differ from the published ones.
    """

    patterns: Mapping[str, str]
    files_by_split: Mapping[Split, tuple[str, ...]]
    read: Reader
    missing_split_policies: Mapping[str, MissingSplitPolicy] = {}
    note: str = ""
    known_discrepancies: tuple[KnownDiscrepancy, ...] = ()


ProblemType = Literal[
    "single_label",
    "multi_label",
    "regression",
    "ranking",
    "entities",
    "word_labels",
    "span_per_passage",
    "span_per_question",
]
MetricName = Literal[
    "accuracy",
    "micro_f1",
    "positive_f1",
    "yes_no_f1",
    "multilabel_f1",
    "pearson",
    "mean_reciprocal_rank",
    "entity_f1",
    "word_f1",
    "squad_f1",
    "bioasq_factoid",
]


class TaskSpec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a model predicts on a benchmark, and the metric of it.

    Attributes:
        problem_type: selects the task adapter and the head.
        metric: key of the table of metrics in tasks/task_registry.py.
        labels: classes in the order of the model's outputs; of a ranking and of ``positive_f1`` the second
            is the positive one; of ``word_f1`` the entity types.
        negative_label: class that ``micro_f1`` leaves out.
        has_entity_pairs: True if an example is a pair of entities in a text.
    """

    problem_type: ProblemType
    metric: MetricName
    labels: tuple[str, ...] = ()
    negative_label: str | None = None
    has_entity_pairs: bool = False


class Benchmark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One benchmark.

    Attributes:
        name: name on the command line.
        title: name in papers.
        layouts: supported file layouts. The one with most splits is used; of equal ones the first.
        published_counts: expected counts by unit (``mentions``, ``pairs`` ...) and split; ``train+dev`` is a
            sum.
        count_records: function that counts the units in the records of a split.
        counts_source: publication of the counts.
        licence: licence of the files.
        download_from: address of the files, with instructions.
        has_pmids: True if ``document_id`` of the records holds PMIDs, separated by blanks.
        task: what a model predicts; None if no task uses this benchmark directly.
    """

    name: str
    title: str
    layouts: tuple[FileLayout, ...]
    published_counts: Mapping[str, Mapping[str, int]]
    count_records: RecordCounter
    counts_source: str
    licence: str
    download_from: str
    has_pmids: bool = False
    task: TaskSpec | None = None


@dataclass(frozen=True, slots=True)
class BenchmarkFiles:
    """Files of a benchmark that were found: layout, paths and available splits."""

    benchmark: Benchmark
    folder: str
    layout: FileLayout
    paths: PathsByName
    splits: tuple[Split, ...]

    @property
    def _applied_policies(self) -> list[MissingSplitPolicy]:
        policies = self.layout.missing_split_policies
        return [policy for name, policy in policies.items() if name not in self.paths]

    @property
    def notes(self) -> tuple[str, ...]:
        """Properties of these files that affect how a score may be read."""
        notes = [self.layout.note, *(policy.note for policy in self._applied_policies)]
        return tuple(dict.fromkeys(filter(None, notes)))

    @property
    def own_splits(self) -> frozenset[Split]:
        """Splits that differ from the published ones because a split list is missing."""
        return frozenset(split for policy in self._applied_policies for split in policy.affected_splits)

    @property
    def missing_splits(self) -> tuple[Split, ...]:
        """Splits that the authors distribute and these files lack."""
        distributed = {split for layout in self.benchmark.layouts for split in layout.files_by_split}
        return tuple(split for split in SPLITS if split in distributed.difference(self.splits))


def locate_benchmark(folder: str, benchmark: Benchmark) -> BenchmarkFiles | None:
    """Find the files of a benchmark in a directory; None if no split is complete.

    Raises:
        InputNotFoundError: the directory does not exist.
        InputUnreadableError: a folder in it cannot be listed.
    """
    if not os.path.isdir(folder):
        raise InputNotFoundError(f"there is no folder {folder} with benchmarks: give --benchmarks FOLDER")
    with explain_unreadable(folder):
        paths = [info.path for info in LocalStorage().walk(folder)]
    candidates = []
    for layout in benchmark.layouts:
        found = {name: _match_paths(folder, paths, pattern) for name, pattern in layout.patterns.items()}
        found = {name: matches for name, matches in found.items() if matches}
        needed = layout.files_by_split
        splits = tuple(split for split in SPLITS if split in needed and found.keys() >= {*needed[split]})
        candidates.append(BenchmarkFiles(benchmark, folder, layout, found, splits))
    best = max(candidates, key=lambda candidate: len(candidate.splits))
    return best if best.splits else None


def _match_paths(folder: str, paths: Sequence[str], pattern: str) -> list[str]:
    """Return the paths that match a pattern below the folder, extensions in any case."""
    parts = ignore_extension_case(pattern).split("/")
    prefix = os.path.join(folder, "")
    return [
        path
        for path in paths
        if fnmatchcase(os.path.basename(path), parts[-1])
        and matches_glob(path.removeprefix(prefix).split("/"), parts)
    ]


def load_records(files: BenchmarkFiles) -> RecordsBySplit:
    """Read the records of all splits that were found.

    Raises:
        BenchmarkFileError: a file cannot be read, or a split is empty.
    """
    records_by_split = files.layout.read(files.paths)
    for split in files.splits:
        if not records_by_split.get(split):
            path = files.paths[files.layout.files_by_split[split][0]][0]
            raise BenchmarkFileError(path, None, f"it holds nothing for {split} of {files.benchmark.title}")
    return {split: records_by_split[split] for split in files.splits}


def count_sentences(records: Sequence[Any]) -> dict[str, int]:
    """Count sentences, mentions (``B-`` tags), labelled words, and documents if the files name them."""
    tag_counts = Counter(tag[0] for sentence in records for tag in sentence.tags)
    counts = {
        "sentences": len(records),
        "mentions": tag_counts["B"],
        "labelled words": tag_counts["B"] + tag_counts["I"],
    }
    document_ids = {sentence.document_id for sentence in records} - {""}
    return counts | ({"documents": len(document_ids)} if document_ids else {})


def count_documents(records: Sequence[Any]) -> dict[str, int]:
    """Count documents, chemicals and diseases of BC5CDR."""
    type_counts = Counter(mention.split()[1] for document in records for mention in document.label)
    return {
        "documents": len(records),
        "chemicals": type_counts["CHEMICAL"],
        "diseases": type_counts["DISEASE"],
    }


def count_examples(
    records: Sequence[Record], unit: str, positive_unit: str = "", negative_label: str = ""
) -> dict[str, int]:
    """Count examples, those of each label and positive ones; of candidates to rank, questions and not labels.

    Args:
        unit: name of the count of all examples.
        positive_unit: name of the count of examples with a label other than ``negative_label``; "": none.
    """
    examples = [record for record in records if isinstance(record, LabelledText | Relation)]
    questions = {one.group_id for one in examples if isinstance(one, LabelledText)} - {""}
    counts = {unit: len(records)}  # part of what a result is known by when a run is resumed
    if questions:
        counts["questions"] = len(questions)
    else:
        counts |= Counter(one.label for one in examples if isinstance(one.label, str))
    if positive_unit:
        counts[positive_unit] = sum(bool(one.label) and one.label != negative_label for one in examples)
    return counts


def count_questions(records: Sequence[Any]) -> dict[str, int]:
    """Count pairs of question and passage, and distinct questions, in all and by test batch."""
    counts = {"pairs": len(records), "questions": len({record.question for record in records})}
    for batch in sorted({record.test_batch for record in records} - {""}):
        texts = [record.question for record in records if record.test_batch == batch]
        counts |= {f"pairs of batch {batch}": len(texts), f"questions of batch {batch}": len({*texts})}
    return counts


_COUNTS: Final[Mapping[str, Callable[..., Mapping[str, int]]]] = {
    "sentences": count_sentences,
    "documents": count_documents,
    "examples": count_examples,
    "questions": count_questions,
}


def _find_function(expected_type: object, value: dict[str, Any]) -> Callable[..., Any]:
    """Return the reader or the count that an entry names, with its options."""
    functions = READERS if expected_type == Reader else _COUNTS
    return partial(functions[value.pop("by")], **value)


def _load_benchmarks() -> Mapping[str, Benchmark]:
    """Decode catalogue.toml. A split is by default the file of its name; readers read the task's labels."""
    entries = tomllib.loads(resources.files(__package__).joinpath("catalogue.toml").read_text("utf-8"))
    for name, entry in entries.items():
        entry["name"] = name
        for layout in entry["layouts"]:
            if isinstance(layout["patterns"], str):
                start, parts, end = re.split("[{}]", layout["patterns"])
                names = zip(SPLITS, parts.split(","), strict=True)
                layout["patterns"] = {split: f"{start}{part}{end}" for split, part in names}
            own_files = {split: [split] for split in SPLITS if split in layout["patterns"]}
            layout.setdefault("files_by_split", own_files)
            if "labels" in signature(READERS[layout["read"]["by"]]).parameters:
                layout["read"].setdefault("labels", entry["task"]["labels"])
    return MappingProxyType(msgspec.convert(entries, dict[str, Benchmark], dec_hook=_find_function))


BENCHMARKS: Final = _load_benchmarks()
