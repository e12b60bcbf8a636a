"""Pretraining sets of synthetic rows, written without a pipeline."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from bioshards.corpus.manifest import Shard, VocabularyIdentity, write_manifest
from bioshards.corpus.shards.pretraining_schema import NO_LABEL, make_schema
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.train.recipe import LABELLED_OBJECTIVES
from tests.support.corpus.arrow_streams import write_stream
from tests.support.corpus.manifests import of_pretraining

SPECIAL_TOKEN_IDS = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


class SyntheticRow(NamedTuple):
    """A row: its tokens with [CLS] and [SEP], where segment B begins in them, and its label."""

    ids: Sequence[int]
    split: int = 0
    label: int = NO_LABEL


ShardBatches = Sequence[Sequence[SyntheticRow]]
"""The record batches of a shard."""


def random_rows(
    count: int, length: int, vocabulary: int, labelled: bool, seed: int = 0
) -> list[SyntheticRow]:
    """Draw rows of 3 tokens to the maximum length, some with a second segment."""
    rng = random.Random(seed)
    rows = []
    for _ in range(count):
        size = rng.randint(3, length)
        ids = [2, *(rng.randrange(5, vocabulary) for _ in range(size - 2)), 3]
        split = rng.randrange(3, size - 1) if size > 5 and rng.random() < 0.7 else 0
        if split:
            ids[split - 1] = 3
        rows.append(SyntheticRow(ids, split, rng.randrange(2) if labelled and split else NO_LABEL))
    return rows


def split_into_batches(rows: Sequence[SyntheticRow], sizes: Sequence[int]) -> list[list[SyntheticRow]]:
    """Split rows into record batches whose sizes repeat."""
    batches: list[list[SyntheticRow]] = []
    start = 0
    while start < len(rows):
        size = sizes[len(batches) % len(sizes)]
        batches.append(list(rows[start : start + size]))
        start += size
    return batches


def write_pretraining_set(
    folder: Path,
    train: Mapping[str, ShardBatches],
    validation: Mapping[str, ShardBatches] | None = None,
    objective: str = "electra",
    length: int = 16,
    vocabulary: int = 100,
    metadata_overrides: Mapping[str, Any] | None = None,
) -> Path:
    """Write a finished pretraining set with a shard for each name.

    Args:
        facts: changed fields of the schemas' metadata.
    """
    storage, outputs = LocalStorage(), list[Shard]()
    for split, batches_by_shard in (("train", train), ("validation", validation or {})):
        for name, batches_of_rows in batches_by_shard.items():
            rows = [row for block in batches_of_rows for row in block]
            metadata = {
                "objective": objective,
                "length": length,
                "vocabulary_size": vocabulary,
                "vocabulary_sha256": "5" * 64,
                "special": SPECIAL_TOKEN_IDS,
                "split": split,
                "rows": len(rows),
                "tokens": sum(len(row.ids) for row in rows),
            }
            shard_schema = make_schema(
                vocabulary, objective in LABELLED_OBJECTIVES, {**metadata, **(metadata_overrides or {})}
            )
            batches = [make_record_batch(block, shard_schema) for block in batches_of_rows]
            outputs.append(write_stream(folder, f"{split}/data-{name}-00000.arrow", batches, shard_schema))
    manifest = of_pretraining(outputs, objective, length, VocabularyIdentity("5" * 64, vocabulary))
    write_manifest(storage, str(folder / "manifest.json"), manifest)
    return folder


def find_column(path: Path, batch_number: int, name: str) -> int:
    """Return where a column of a record batch begins in its file, in bytes."""
    field, buffer = {
        "offsets": ("input_ids", 1),
        "ids": ("input_ids", 3),
        "segment_b_starts": ("split", 1),
        "labels": ("label", 1),
    }[name]
    with pa.memory_map(str(path)) as file:
        mapped = file.read_buffer()
    batch = list(pa.ipc.open_stream(mapped))[batch_number]
    return int(batch.column(field).buffers()[buffer].address - mapped.address)


def make_record_batch(rows: Sequence[SyntheticRow], shard_schema: pa.Schema) -> pa.RecordBatch:
    """Make a record batch of rows."""
    columns = {
        "input_ids": [row.ids for row in rows],
        "split": [row.split for row in rows],
        "label": [row.label for row in rows],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in shard_schema]
    return pa.RecordBatch.from_arrays(arrays, schema=shard_schema)
