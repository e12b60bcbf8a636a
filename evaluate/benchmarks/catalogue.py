"""All benchmarks by name: the entries of catalogue.toml, and the functions that count their records."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from inspect import signature
from types import MappingProxyType
from typing import Any, Final

import msgspec

from bioshards.evaluate.benchmarks.definition import SPLITS, Benchmark, Reader
from bioshards.evaluate.benchmarks.readers import READERS
from bioshards.evaluate.benchmarks.record_types import (
    LabelledText,
    Question,
    Record,
    Relation,
    TaggedSentence,
)


def count_sentences(records: Sequence[Record]) -> dict[str, int]:
    """Count sentences, mentions (``B-`` tags), labelled words, and documents if the files name them."""
    sentences = [record for record in records if isinstance(record, TaggedSentence)]
    tag_counts = Counter(tag[0] for sentence in sentences for tag in sentence.tags)
    counts = {
        "sentences": len(sentences),
        "mentions": tag_counts["B"],
        "labelled words": tag_counts["B"] + tag_counts["I"],
    }
    document_ids = {sentence.document_id for sentence in sentences} - {""}
    return {**counts, "documents": len(document_ids)} if document_ids else counts


def count_documents(records: Sequence[Record]) -> dict[str, int]:
    """Count documents, chemicals and diseases of BC5CDR."""
    texts = [record for record in records if isinstance(record, LabelledText)]
    labels = [record.label for record in texts if isinstance(record.label, frozenset)]
    type_counts = Counter(mention.split()[1] for label in labels for mention in label)
    return {"documents": len(texts), "chemicals": type_counts["CHEMICAL"], "diseases": type_counts["DISEASE"]}


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


def count_questions(records: Sequence[Record]) -> dict[str, int]:
    """Count pairs of question and passage, and distinct questions, in all and by test batch."""
    questions = [record for record in records if isinstance(record, Question)]
    counts = {"pairs": len(questions), "questions": len({question.question for question in questions})}
    for batch in sorted({question.test_batch for question in questions} - {""}):
        texts = [question.question for question in questions if question.test_batch == batch]
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
            own_files = {split: [split] for split in SPLITS if split in layout["patterns"]}
            layout.setdefault("files_by_split", own_files)
            if "labels" in signature(READERS[layout["read"]["by"]]).parameters:
                layout["read"].setdefault("labels", entry["task"]["labels"])
    return MappingProxyType(msgspec.convert(entries, dict[str, Benchmark], dec_hook=_find_function))


BENCHMARKS: Final = _load_benchmarks()
