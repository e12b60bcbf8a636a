"""Pretraining sets of rows that a test makes up, written without a pipeline."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from bioshards.corpus import shards
from bioshards.corpus.files import LocalStorage
from bioshards.corpus.manifest import VocabularyIdentity, write_manifest
from bioshards.corpus.pretraining import LABELLED_OBJECTIVES, NO_LABEL, make_schema
from tests.manifests import of_pretraining

SPECIAL = {"[PAD]": 0, "[UNK]": 1, "[CLS]": 2, "[SEP]": 3, "[MASK]": 4}


class Example(NamedTuple):
    """A row: its tokens with [CLS] and [SEP], where segment B begins in them, and its label."""

    ids: Sequence[int]
    split: int = 0
    label: int = NO_LABEL


Blocks = Sequence[Sequence[Example]]
"""The record batches of a shard."""


def examples(number: int, length: int, vocabulary: int, labelled: bool, seed: int = 0) -> list[Example]:
    """Rows of chance, of 3 tokens to the length, some with a second segment."""
    chance = random.Random(seed)
    found = []
    for _ in range(number):
        size = chance.randint(3, length)
        ids = [2, *(chance.randrange(5, vocabulary) for _ in range(size - 2)), 3]
        split = chance.randrange(3, size - 1) if size > 5 and chance.random() < 0.7 else 0
        if split:
            ids[split - 1] = 3
        found.append(Example(ids, split, chance.randrange(2) if labelled and split else NO_LABEL))
    return found


def in_blocks(rows: Sequence[Example], sizes: Sequence[int]) -> list[list[Example]]:
    """The rows in record batches of these sizes, over and over."""
    blocks: list[list[Example]] = []
    begin = 0
    while begin < len(rows):
        size = sizes[len(blocks) % len(sizes)]
        blocks.append(list(rows[begin : begin + size]))
        begin += size
    return blocks


def put(
    folder: Path,
    train: Mapping[str, Blocks],
    validation: Mapping[str, Blocks] | None = None,
    objective: str = "electra",
    length: int = 16,
    vocabulary: int = 100,
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """A finished pretraining set, with a shard for each name.

    Args:
        facts: what the schemas say otherwise than they should.
    """
    storage, outputs = LocalStorage(), list[shards.Shard]()
    for split, shards_of in (("train", train), ("validation", validation or {})):
        for name, blocks in shards_of.items():
            rows = [row for block in blocks for row in block]
            said = {
                "objective": objective,
                "length": length,
                "vocabulary_size": vocabulary,
                "vocabulary_sha256": "5" * 64,
                "special": SPECIAL,
                "split": split,
                "rows": len(rows),
                "tokens": sum(len(row.ids) for row in rows),
            }
            of = make_schema(vocabulary, objective in LABELLED_OBJECTIVES, {**said, **(facts or {})})
            batches = [batch(block, of) for block in blocks]
            made = shards.write_shards(storage, str(folder / split), name, batches, of, 1 << 40)
            outputs += [replace(one, file=f"{split}/{one.file}") for one in made]
    manifest = of_pretraining(outputs, objective, length, VocabularyIdentity("5" * 64, vocabulary))
    write_manifest(storage, str(folder / "manifest.json"), manifest)
    return folder


def batch(rows: Sequence[Example], of: pa.Schema) -> pa.RecordBatch:
    """The rows as a record batch."""
    columns = {
        "input_ids": [row.ids for row in rows],
        "split": [row.split for row in rows],
        "label": [row.label for row in rows],
        "spans": [[] for _ in rows],
    }
    arrays = [pa.array(columns[field.name], field.type) for field in of]
    return pa.RecordBatch.from_arrays(arrays, schema=of)
