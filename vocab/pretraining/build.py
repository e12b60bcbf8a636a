"""Build the rows of a shard group: read, encode, plan, sort, write.

Groups are independent of each other.  The report of a group is written last, and a group with a report is
not built again, unless an output is missing or the number of buckets of a global shuffle changed, which
depends on the size of all inputs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle.rejects import RejectWriter
from bioshards.corpus.output.output_layout import SPLITS, OutputDir
from bioshards.corpus.shards import arrow_io, input_dirs, pretraining_schema
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui import progress_notes
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining import (
    global_shuffle,
    near_duplicate_filter,
    overlap_filter,
    row_planner,
    shard_writer,
)
from bioshards.vocab.pretraining.build_result import BuildResult
from bioshards.vocab.pretraining.objectives.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.shard_groups import ShardGroup
from bioshards.vocab.pretraining.token_block import Int64Array, TokenBlock

MAX_DOCUMENT_TOKENS: Final = 10_000_000
"""Maximum tokens of a document, else it is rejected.  The longest of 2,254 articles has 152,000 words."""
_COLUMNS: Final = ("id", "source", "pmid", "year", "sentences")


@dataclass(frozen=True, slots=True)
class BuildConfig:
    """How rows are built.

    Attributes:
        recipe: objective and its options.
        encoder: encoder of the vocabulary.
        vocabulary_sha256: SHA-256 of its tokenizer.json.
        seed: seed of the rows, with a document's id, and of the validation split, with its PMID.
        validation_fraction: fraction of documents in the validation split.
        num_buckets: number of buckets of a global shuffle by split; empty if rows stay in their group.
        max_shard_bytes: approximate size limit of a shard; building takes this memory, writing as much again.
    """

    recipe: ExampleRecipe
    encoder: Encoder
    vocabulary_sha256: str
    seed: int
    validation_fraction: float
    num_buckets: dict[str, int]
    max_shard_bytes: int


def build_group(
    storage: Storage,
    output_dir: OutputDir,
    shard_group: ShardGroup,
    build_config: BuildConfig,
    near_duplicates: Mapping[str, pa.Table] | None = None,
) -> BuildResult:
    """Build the rows of a group, or return the cached result.

    Args:
        near_duplicates: decisions on documents to leave out, by shard (near_duplicate_filter.py).
    """
    near_duplicates = near_duplicates or {}
    output_stem = near_duplicate_filter.name_outputs(shard_group, near_duplicates)
    report_path = output_dir.build_report_path(shard_group.name, "json")
    if storage.exists(report_path):
        cached_report = storage.read_json(report_path)
        result = BuildResult.from_dict(cached_report["result"])
        spill_paths = [
            output_dir.shuffle_spill_path(name) for names in result.spill_files.values() for name in names
        ]
        if (
            cached_report["num_buckets"] == build_config.num_buckets
            and cached_report.get("output_stem", shard_group.name) == output_stem
            and shard_writer.has_all_outputs(storage, output_dir.path, result.outputs)
            and all(map(storage.exists, spill_paths))
        ):
            return result
        storage.remove(report_path)  # before new files of the same names
    shard_by_path = {f"{shard_group.folder}/{shard.file}": shard for shard in shard_group.shards}
    damages = {path: input_dirs.find_damage(storage, path, shard) for path, shard in shard_by_path.items()}
    if failures := [f"{path}: {damage}" for path, damage in damages.items() if damage]:
        return BuildResult(shard_group.name, failures=failures)
    started = time.monotonic()
    progress_notes.begin_item(shard_group.name)
    builder = _Builder(storage, output_dir, shard_group, build_config, output_stem, near_duplicates)
    result = builder.build()
    seconds = round(time.monotonic() - started, 3)
    first, *other_files = (shard.file for shard in shard_group.shards)
    title = f"{first} and {len(other_files)} more" if other_files else first
    storage.write_json(
        report_path,
        {
            "file": title,
            "seconds": seconds,
            "num_buckets": build_config.num_buckets,
            **({"output_stem": output_stem} if near_duplicates else {}),
            "result": msgspec.to_builtins(result),
        },
    )
    return result


class _Builder:
    """One pass over a group: a block of documents is written when it reaches the size limit of a shard."""

    def __init__(
        self,
        storage: Storage,
        output_dir: OutputDir,
        shard_group: ShardGroup,
        build_config: BuildConfig,
        output_stem: str,
        near_duplicates: Mapping[str, pa.Table],
    ) -> None:
        self._storage = storage
        self._output_dir = output_dir
        self._shard_group = shard_group
        self._build_config = build_config
        self._output_stem = output_stem
        self._near_duplicates = near_duplicates
        self._blocks = {split: TokenBlock(build_config.encoder) for split in SPLITS}
        self._num_written = Counter[str]()
        self._result = BuildResult(
            shard_group.name,
            split_counts={split: Counter() for split in SPLITS},
            spill_files={split: [] for split in SPLITS},
        )
        self._split_config = CountConfig(
            validation_fraction=build_config.validation_fraction, seed=build_config.seed
        )

    def build(self) -> BuildResult:
        """Read and write everything, and return the result."""
        shard_group = self._shard_group
        shard_entries = shard_group.shards
        overlap_ids = overlap_filter.read_overlap_ids(
            self._storage, shard_group.folder, shard_group.overlap_lists, shard_entries
        )
        with RejectWriter(self._storage, self._output_dir.rejects_path(shard_group.name)) as rejects:
            for shard in shard_entries:
                batches = arrow_io.read_shards(self._storage, shard_group.folder, [shard], _COLUMNS)
                if decisions := self._near_duplicates.get(shard.file):
                    self._result.documents += decisions.num_rows
                    self._result.dropped["near-duplicate"] += decisions.num_rows
                    batches = near_duplicate_filter.remove_documents(batches, decisions)
                for batch in batches:
                    progress_notes.add_units(len(batch))
                    self._result.documents += len(batch)
                    is_overlap = pc.is_in(batch["id"], value_set=overlap_ids)
                    self._result.dropped["overlap"] += is_overlap.true_count
                    batch = batch.filter(pc.invert(is_overlap))
                    names = zip(batch["id"].to_pylist(), batch["pmid"].to_pylist(), strict=True)
                    is_validation = pa.array(
                        [self._split_config.is_validation(document_id, pmid) for document_id, pmid in names],
                        pa.bool_(),
                    )
                    for split, mask in zip(SPLITS, (pc.invert(is_validation), is_validation), strict=True):
                        self._add_documents(split, batch.filter(mask), shard.file, rejects)
        self._result.rejected = rejects.reason_counts
        for split in SPLITS:
            self._write_block(split)
        return self._result

    def _add_documents(self, split: str, batch: pa.RecordBatch, file: str, rejects: RejectWriter) -> None:
        """Encode documents and add them to the block of their split."""
        if not len(batch):
            return
        build_config = self._build_config
        sentences, encoded, tokens = _encode_documents(batch, build_config.encoder)
        is_usable = (tokens > 0) & (tokens <= MAX_DOCUMENT_TOKENS)
        if not is_usable.all():
            self._result.dropped["no-tokens"] += int((tokens == 0).sum())
            for row in np.flatnonzero(tokens > MAX_DOCUMENT_TOKENS).tolist():
                detail = f"{tokens[row]:,} tokens, more than {MAX_DOCUMENT_TOKENS:,}"
                rejects.add_document(file, batch["id"][row].as_py(), "too-long", detail)
            batch = batch.filter(pa.array(is_usable))
            sentences, encoded, tokens = _encode_documents(batch, build_config.encoder)
        counts = self._result.split_counts[split]
        counts["documents"] += len(batch)
        counts["unknown_tokens"] += int((encoded.ids == build_config.encoder.unknown_id).sum())
        years = ("unknown" if year is None else str(year) for year in batch["year"].to_pylist())
        for source, year, num_tokens in zip(batch["source"].to_pylist(), years, tokens.tolist(), strict=True):
            self._result.tokens_by_year.setdefault(source, Counter())[year] += num_tokens
        block = self._blocks[split]
        block.add(batch["id"], sentences, encoded)
        if block.tokens * encoded.ids.itemsize * self._num_passes(split) >= build_config.max_shard_bytes:
            self._write_block(split)

    def _num_passes(self, split: str) -> int:
        """Return the number of passes; documents of the validation split have one."""
        return self._build_config.recipe.dupe_factor if split == "train" else 1

    def _write_block(self, split: str) -> None:
        """Write the rows of a split's block, and start a new block."""
        block, self._blocks[split] = self._blocks[split], TokenBlock(self._build_config.encoder)
        if not len(block):
            return
        build_config, num_passes = self._build_config, self._num_passes(split)
        row_plan = row_planner.plan_rows(block, build_config.recipe, build_config.seed, num_passes)
        name = f"{self._output_stem}-{self._num_written[split]:05d}"
        self._num_written[split] += 1
        counts = self._result.split_counts[split]
        counts["rows"] += len(row_plan)
        counts["tokens"] += row_plan.tokens
        counts["special_tokens"] += row_plan.special_tokens
        counts["other_document_tokens"] += row_plan.other_document_tokens
        counts["lost_tokens"] += row_plan.lost_tokens
        counts["unlabelled_rows"] += row_plan.unlabelled_rows
        counts["input_tokens"] += block.tokens * num_passes
        schema = make_schema(build_config, split, len(row_plan), row_plan.tokens)
        order, keys = row_plan.sort_by_key()
        if build_config.num_buckets:
            file = f"{split}-{name}.arrow"
            global_shuffle.spill_rows(
                self._storage,
                self._output_dir.shuffle_spill_path(file),
                row_plan,
                order,
                keys,
                schema,
                build_config.num_buckets[split],
            )
            self._result.spill_files[split].append(file)
        else:
            batches = row_plan.iter_batches(order, schema)
            shard = shard_writer.write_shard(
                self._storage, self._output_dir.path, f"{split}/data-{name}.arrow", schema, batches
            )
            self._result.outputs.append(shard)


def make_schema(build_config: BuildConfig, split: str, rows: int, tokens: int) -> pa.Schema:
    """Return the schema of a shard with these numbers of rows and tokens."""
    recipe, encoder = build_config.recipe, build_config.encoder
    metadata = {
        "objective": recipe.objective,
        "length": recipe.max_seq_length,
        "vocabulary_sha256": build_config.vocabulary_sha256,
        "vocabulary_size": encoder.size,
        "special": {
            "[PAD]": encoder.pad_id,
            "[UNK]": encoder.unknown_id,
            **{name: encoder.special_ids[name] for name in ("[CLS]", "[SEP]", "[MASK]")},
        },
        "split": split,
        "rows": rows,
        "tokens": tokens,
    }
    return pretraining_schema.make_schema(encoder.size, recipe.has_labels, metadata)


def _encode_documents(batch: pa.RecordBatch, encoder: Encoder) -> tuple[Int64Array, EncodedBatch, Int64Array]:
    """Return sentences per document, the ids of all documents, and tokens per document."""
    sentences = pc.list_value_length(batch["sentences"]).to_numpy(zero_copy_only=False).astype(np.int64)
    encoded = encoder.encode_all(batch["sentences"].flatten())
    ends = encoded.offsets[np.concatenate([np.zeros(1, np.int64), np.cumsum(sentences)])]
    return sentences, encoded, np.diff(ends)
