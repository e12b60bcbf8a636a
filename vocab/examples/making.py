"""A portion of document shards to shards of examples: read, encode, plan, sort, write; one call each.

Nothing that is decided here depends on another portion.  A portion's report is written last, and a portion
that has one is not made again, unless a file that it lists is gone, or its rows were dealt out to another
number of shards: that number depends on the size of all inputs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import pretraining, shards
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import encode
from bioshards.corpus.pretraining import SPLITS
from bioshards.corpus.workspace import Workspace
from bioshards.vocab import inputs
from bioshards.vocab.counts import Counting
from bioshards.vocab.encode import Encoded, Encoder

from . import building, dealing, held_in_full, writing
from .block import Block
from .made import Made, Rejected
from .portions import Portion
from .recipes import Recipe

MAX_TOKENS: Final = 10_000_000
"""Tokens of a document; one with more is rejected.  The longest of 2,254 real articles has 152,000 words."""
_COLUMNS: Final = ("id", "source", "pmid", "year", "sentences")


@dataclass(frozen=True, slots=True)
class Making:
    """What is made of documents.

    Attributes:
        vocabulary: the SHA-256 of its tokenizer.json.
        seed: of all chances: with a document's id those of its rows, with its PMID whether it is held out.
        validation: the share of documents that is held out.
        buckets: shards that the rows of all portions are dealt out to, for each split; none where rows stay
            within their portion.
        max_bytes: of a shard, about: it takes as much memory, and as much again while it is written.
        writer: writes a shard's files.
    """

    recipe: Recipe
    encoder: Encoder
    vocabulary: str
    seed: int
    validation: float
    buckets: dict[str, int]
    max_bytes: int
    writer: writing.Writer


def make(files: LocalFiles, work: Workspace, portion: Portion, making: Making) -> Made:
    """Make a portion's examples, unless that is done already."""
    report = work.made(portion.name, "json")
    if files.exists(report):
        before = files.read_json(report)
        made = Made.read(before["made"])
        waiting = [work.dealt(name) for names in made.dealt.values() for name in names]
        if (
            before["buckets"] == making.buckets
            and writing.stand(files, work.output, made.outputs)
            and all(map(files.exists, waiting))
        ):
            return made
        files.remove(report)  # before the files of these names are other ones
    paths = {f"{portion.folder}/{shard.file}": shard for shard in portion.shards}
    damages = {path: inputs.damage(files, path, shard) for path, shard in paths.items()}
    if bad := [f"{path}: {damage}" for path, damage in damages.items() if damage]:
        return Made(portion.name, bad=bad)
    started = time.monotonic()
    made = _Maker(files, work, portion, making).made()
    seconds = round(time.monotonic() - started, 3)
    first, *others = (shard.file for shard in portion.shards)
    title = f"{first} and {len(others)} more" if others else first
    files.write_json(
        report, {"file": title, "seconds": seconds, "buckets": making.buckets, "made": encode(made)}
    )
    return made


class _Maker:
    """Reads a portion once; a block of documents is written when it is as large as a shard may be."""

    def __init__(self, files: LocalFiles, work: Workspace, portion: Portion, making: Making) -> None:
        self._files, self._work, self._portion, self._making = files, work, portion, making
        self._blocks = {split: Block(making.encoder) for split in SPLITS}
        self._written = Counter[str]()
        self._made = Made(
            portion.name,
            splits={split: Counter() for split in SPLITS},
            dealt={split: [] for split in SPLITS},
        )
        self._hold_out = Counting(hold_out=making.validation, seed=making.seed)

    def made(self) -> Made:
        """Read all of it; returns what is made."""
        portion = self._portion
        listed = portion.shards
        left_out = held_in_full.ids(self._files, portion.folder, portion.listed_by, listed)
        with ExitStack() as stack:
            rejects = Rejected(self._files, self._work.rejected(self._portion.name), stack)
            for shard in listed:
                for batch in shards.read_some(self._files, portion.folder, [shard], _COLUMNS):
                    self._made.documents += len(batch)
                    in_full = pc.is_in(batch["id"], value_set=left_out)
                    self._made.dropped["in-full"] += in_full.true_count
                    batch = batch.filter(pc.invert(in_full))
                    names = zip(batch["id"].to_pylist(), batch["pmid"].to_pylist(), strict=True)
                    held_out = pa.array(
                        [self._hold_out.held_out(id_, pmid) for id_, pmid in names], pa.bool_()
                    )
                    for split, mask in zip(SPLITS, (pc.invert(held_out), held_out), strict=True):
                        self._add(split, batch.filter(mask), shard.file, rejects)
        for split in SPLITS:
            self._write(split)
        return self._made

    def _add(self, split: str, batch: pa.RecordBatch, file: str, rejects: Rejected) -> None:
        """Encode documents and put them into the block of their split."""
        if not len(batch):
            return
        making = self._making
        sentences, encoded, tokens = _encoded(batch, making.encoder)
        good = (tokens > 0) & (tokens <= MAX_TOKENS)
        if not good.all():
            self._made.dropped["no-tokens"] += int((tokens == 0).sum())
            for row in np.flatnonzero(tokens > MAX_TOKENS).tolist():
                detail = f"{tokens[row]:,} tokens, and {MAX_TOKENS:,} are the most"
                rejects.add(file, batch["id"][row].as_py(), "too-long", detail)
                self._made.rejected["too-long"] += 1
            batch = batch.filter(pa.array(good))
            sentences, encoded, tokens = _encoded(batch, making.encoder)
        counts = self._made.splits[split]
        counts["documents"] += len(batch)
        counts["unknown"] += int((encoded.ids == making.encoder.unknown).sum())
        for source, year, size in _by_year(batch, tokens):
            self._made.years.setdefault(source, Counter())[year] += size
        block = self._blocks[split]
        block.add(batch["id"], sentences, encoded)
        if block.tokens * encoded.ids.itemsize * self._passes(split) >= making.max_bytes:
            self._write(split)

    def _passes(self, split: str) -> int:
        """A held-out document is looked at in one way."""
        return self._making.recipe.dupe_factor if split == "train" else 1

    def _write(self, split: str) -> None:
        """Make rows of a split's block and write them; the block is a new one then."""
        block, self._blocks[split] = self._blocks[split], Block(self._making.encoder)
        if not len(block):
            return
        making, passes = self._making, self._passes(split)
        plan = building.plan(block, making.recipe, making.seed, passes)
        name = f"{self._portion.name}-{self._written[split]:05d}"
        self._written[split] += 1
        counts = self._made.splits[split]
        counts["rows"] += len(plan)
        counts["tokens"] += plan.tokens
        counts["special_tokens"] += plan.special
        counts["other_document_tokens"] += plan.borrowed
        counts["lost_tokens"] += plan.lost
        counts["unlabelled"] += plan.unlabelled
        counts["input_tokens"] += block.tokens * passes
        schema = schema_of(making, split, len(plan), plan.tokens)
        order, keys = plan.sorted()
        if making.buckets:
            file = f"{split}-{name}.arrow"
            dealing.deal(
                self._files, self._work.dealt(file), plan, order, keys, schema, making.buckets[split]
            )
            self._made.dealt[split].append(file)
        else:
            batches = plan.batches(order, schema)
            self._made.outputs += making.writer.write(
                self._files, self._work.output, split, f"data-{name}", schema, batches, keys
            )


def schema_of(making: Making, split: str, rows: int, tokens: int) -> pa.Schema:
    """The schema of a shard of so many rows and tokens."""
    recipe, encoder = making.recipe, making.encoder
    facts = {
        "objective": recipe.objective,
        "length": recipe.length,
        "vocabulary_sha256": making.vocabulary,
        "vocabulary_size": encoder.size,
        "special": {
            "[PAD]": encoder.pad,
            "[UNK]": encoder.unknown,
            **{name: encoder.special[name] for name in ("[CLS]", "[SEP]", "[MASK]")},
        },
        "split": split,
        "rows": rows,
        "tokens": tokens,
    }
    return pretraining.schema(encoder.size, recipe.labelled, facts)


def _encoded(batch: pa.RecordBatch, encoder: Encoder) -> tuple[Any, Encoded, Any]:
    """How many sentences each document has, the ids of all of them, and how many tokens each document has."""
    sentences = pc.list_value_length(batch["sentences"]).to_numpy(zero_copy_only=False).astype(np.int64)
    encoded = encoder.encode_all(batch["sentences"].flatten())
    ends = encoded.offsets[np.concatenate([np.zeros(1, np.int64), np.cumsum(sentences)])]
    return sentences, encoded, np.diff(ends)


def _by_year(batch: pa.RecordBatch, tokens: Any) -> Iterable[tuple[str, str, int]]:
    table = pa.table({"source": batch["source"], "year": batch["year"], "tokens": pa.array(tokens)})
    for group in table.group_by(["source", "year"]).aggregate([("tokens", "sum")]).to_pylist():
        year = "unknown" if group["year"] is None else str(group["year"])
        yield group["source"], year, group["tokens_sum"]
