"""Finished directories with known statistics."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa

from bioshards.corpus.document import Document
from bioshards.corpus.manifest import (
    InputWords,
    OutputFile,
    PretrainingCounts,
    PretrainingInput,
    Shard,
    SplitCounts,
    VocabularyIdentity,
)
from bioshards.corpus.shards import document_schema, document_shards
from bioshards.corpus.shards.document_schema import DOCUMENT_SCHEMA
from bioshards.corpus.shards.pretraining_schema import make_schema
from tests.support.corpus import synthetic_documents as invented
from tests.support.corpus.arrow_streams import write_stream
from tests.support.corpus.manifests import (
    EMPTY_SPLIT,
    FILES,
    of_pretraining,
    of_vocabulary,
    put_documents,
)
from tests.support.outputs import save_manifest


def make_stats_document(
    number: int, sentences: list[str], year: int | None = 2020, source: str = "pubmed"
) -> Document:
    return invented.make_document(f"{source}:{number}", sentences, number, year=year, title="")


def write_document_shards(folder: Path, *of_shards: list[list[Document]]) -> Path:
    """Write a finished directory of shards, given the record batches of each."""
    outputs: list[Shard] = []
    for at, batches in enumerate(of_shards):
        written = document_shards.write_shards(
            FILES,
            str(folder),
            f"{at}",
            map(document_schema.record_batch_from_documents, batches),
            DOCUMENT_SCHEMA,
            1 << 20,
        )
        outputs += written
    put_documents(folder, outputs, funnel=FUNNEL)
    return folder


def write_manifest_file(folder: Path, found: Any) -> Path:
    folder.mkdir(exist_ok=True)
    if isinstance(found, dict):
        save_manifest(folder, found)
    else:
        (folder / "manifest.json").write_text(json.dumps(found))
    return folder


FUNNEL = {"records": 5, "dropped: no-abstract": 2, "kept": 3}


VOCABULARY_MANIFEST = msgspec.to_builtins(
    of_vocabulary(
        [OutputFile("report.html", 35_067, "x")],
        {"algorithm": "bpe", "size": 30_522, "lower_case": True, "dummies": ["@GENE$", "@X$"]},
        [InputWords("x")],
    )
)


LENGTH = 8


CountedRow = tuple[int, int, int]
"""Tokens, where segment B starts, and the label."""


def make_counted_batch(rows: list[CountedRow], schema: pa.Schema) -> pa.RecordBatch:
    columns: dict[str, Any] = {
        "input_ids": [[7] * tokens for tokens, _, _ in rows],
        "split": [split for _, split, _ in rows],
        "label": [label for _, _, label in rows],
    }
    return pa.record_batch([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def write_counted_set(
    folder: Path,
    splits: dict[str, list[list[CountedRow]]],
    counts: dict[str, SplitCounts],
    objective: str = "bert",
) -> Path:
    """Write a finished pretraining set with a shard for each batch of rows of each split."""
    labelled = objective in ("bert", "albert")
    schema = make_schema(100, labelled, {"objective": objective, "length": LENGTH})
    outputs = []
    for split, batches in splits.items():
        for at, rows in enumerate(batches):
            name = f"{split}/data-{at:016x}-00000.arrow"
            outputs.append(write_stream(folder, name, [make_counted_batch(rows, schema)], schema))
    found = of_pretraining(
        outputs,
        objective,
        LENGTH,
        VocabularyIdentity("0123456789abcdef", 100),
        [PretrainingInput("pubmed_to_shards", "x", 1, 5, ())],
        PretrainingCounts(
            documents=5,
            dropped={"no-tokens": 1},
            rejected={"too-long": 0},
            train=counts.get("train", EMPTY_SPLIT),
            validation=counts.get("validation", EMPTY_SPLIT),
            years={"pubmed": {"unknown": 4, "2019": 1200, "1987": 30}, "pmc": {}},
        ),
    )
    folder.mkdir(exist_ok=True)
    save_manifest(folder, msgspec.to_builtins(found))
    return folder


def split_counts(
    documents: int, read: int = 0, special: int = 0, borrowed: int = 0, **lost: int
) -> SplitCounts:
    return msgspec.structs.replace(
        EMPTY_SPLIT,
        lost_tokens=lost,
        documents=documents,
        special_tokens=special,
        other_document_tokens=borrowed,
        input_tokens=read,
    )
