"""Build the rows of a shard group: read, encode, plan, sort, write.

Groups are independent of each other.  The report of a group is written last, and a group with a report is
not built again, unless an output is missing or the number of buckets of a global shuffle changed, which
depends on the size of all inputs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import progress_notes
from bioshards.corpus.manifest import Shard, convert
from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.output.rejects import RejectWriter
from bioshards.corpus.shards import arrow_io, input_dirs, pretraining_schema
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining import document_filters, global_shuffle
from bioshards.vocab.pretraining.job import PretrainingJob
from bioshards.vocab.pretraining.row_plan import plan_rows
from bioshards.vocab.pretraining.shard_groups import ShardGroup
from bioshards.vocab.pretraining.token_block import Int64Array, TokenBlock

MAX_DOCUMENT_TOKENS: Final = 10_000_000
"""Maximum tokens of a document, else it is rejected.  The longest of 2,254 articles has 152,000 words."""
_COLUMNS: Final = ("id", "source", "pmid", "year", "sentences")


@dataclass
class BuildResult:
    """Result of building one shard group.

    Attributes:
        name: name of the group.
        outputs: shards, as listed in the manifest.
        spill_files: names of the spill files of a global shuffle, by split.
        split_counts: counts by split, with the fields of ``SplitCounts``.
        tokens_by_year: number of tokens by source and year of publication.
        documents: number of documents that were read.
        dropped: number of dropped documents by reason.
        rejected: number of rejected documents by reason.
        failures: shards that cannot be read, with the reasons.
        is_cached: True if the rows were built by an earlier run.
    """

    name: str
    outputs: list[Shard] = field(default_factory=list)
    spill_files: dict[str, list[str]] = field(default_factory=dict)
    split_counts: dict[str, Counter[str]] = field(default_factory=dict)
    tokens_by_year: dict[str, Counter[str]] = field(default_factory=dict)
    documents: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {
            "skipped": int(self.is_cached),
            "failed": int(bool(self.failures)),
            "documents": self.documents,
            **{f"dropped_{reason}": count for reason, count in self.dropped.items()},
            **{f"rejected_{reason}": count for reason, count in self.rejected.items()},
            **{
                f"{split}_{name}": counts[name]
                for split, counts in self.split_counts.items()
                for name in ("documents", "rows", "tokens", "lost_tokens")
            },
        }

    @classmethod
    def from_dict(cls, report: dict[str, Any]) -> BuildResult:
        """Return the result from the JSON of a build report."""
        result = cls(**report)
        result.outputs = [convert(listed, Shard) for listed in report["outputs"]]
        result.split_counts = {split: Counter(counts) for split, counts in result.split_counts.items()}
        result.dropped, result.rejected = Counter(result.dropped), Counter(result.rejected)
        result.tokens_by_year = {source: Counter(years) for source, years in result.tokens_by_year.items()}
        return result


def build_group(job: PretrainingJob, shard_group: ShardGroup, duplicates: Sequence[str] = ()) -> BuildResult:
    """Build the rows of a group, or return the cached result.

    Args:
        duplicates: file of the decisions on documents to leave out, if there is one.
    """
    progress_notes.begin_item(sum(shard.rows for shard in shard_group.shards))
    near_duplicates: dict[str, pa.Table] = {}
    for path in duplicates:
        near_duplicates = document_filters.read_decisions(job.storage, path, shard_group)
    output_stem = document_filters.name_outputs(shard_group, near_duplicates)
    report_path = job.output.work_path(f"build_reports/{shard_group.name}.json")
    if job.storage.exists(report_path):
        report = job.storage.read_json(report_path)
        result = BuildResult.from_dict(report["result"])
        is_current = report["num_buckets"] == job.num_buckets and report["output_stem"] == output_stem
        if is_current and _has_all_files(job, result):
            result.is_cached = True
            return result
        job.storage.remove(report_path)  # before new files of the same names
    if failures := _find_damages(job, shard_group):
        return BuildResult(shard_group.name, failures=failures)
    result = _Builder(job, shard_group, output_stem, near_duplicates).build()
    report = {
        "num_buckets": job.num_buckets,
        "output_stem": output_stem,
        "result": msgspec.to_builtins(result),
    }
    job.storage.write_json(report_path, report)
    return result


def _has_all_files(job: PretrainingJob, result: BuildResult) -> bool:
    """Return True if the shards and the spill files of a cached result are there."""
    spill_paths = [
        job.output.shuffle_spill_path(name) for names in result.spill_files.values() for name in names
    ]
    return has_all_outputs(job.storage, job.output.path, result.outputs) and all(
        map(job.storage.exists, spill_paths)
    )


def _find_damages(job: PretrainingJob, shard_group: ShardGroup) -> list[str]:
    """Return the shards of a group that cannot be read, with the reasons."""
    shard_by_path = {f"{shard_group.folder}/{shard.file}": shard for shard in shard_group.shards}
    damages = {
        path: input_dirs.find_damage(job.storage, path, shard) for path, shard in shard_by_path.items()
    }
    return [f"{path}: {damage}" for path, damage in damages.items() if damage]


class _Builder:
    """One pass over a group: a block of documents is written when it reaches the size limit of a shard."""

    def __init__(
        self,
        job: PretrainingJob,
        shard_group: ShardGroup,
        output_stem: str,
        near_duplicates: Mapping[str, pa.Table],
    ) -> None:
        self._job = job
        self._recipe = job.recipe
        self._encoder = job.load_encoder()
        self._shard_group = shard_group
        self._output_stem = output_stem
        self._near_duplicates = near_duplicates
        self._blocks = {split: TokenBlock(self._encoder) for split in SPLITS}
        self._num_written = Counter[str]()
        self._result = BuildResult(
            shard_group.name,
            split_counts={split: Counter() for split in SPLITS},
            spill_files={split: [] for split in SPLITS},
        )
        self._split_config = CountConfig(
            validation_fraction=job.config.validation_fraction, seed=job.config.seed
        )

    def build(self) -> BuildResult:
        """Read and write everything, and return the result."""
        shard_group = self._shard_group
        shard_entries = shard_group.shards
        overlap_ids = document_filters.read_overlap_ids(
            self._job.storage, shard_group.folder, shard_group.overlap_lists, shard_entries
        )
        rejects_path = f"{self._job.output.path}/rejected/{shard_group.name}.jsonl"
        with RejectWriter(self._job.storage, rejects_path) as rejects:
            for shard in shard_entries:
                batches = arrow_io.read_shards(self._job.storage, shard_group.folder, [shard], _COLUMNS)
                if decisions := self._near_duplicates.get(shard.file):
                    self._result.documents += decisions.num_rows
                    self._result.dropped["near-duplicate"] += decisions.num_rows
                    batches = document_filters.remove_documents(batches, decisions)
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
        sentences, encoded, tokens = _encode_documents(batch, self._encoder)
        is_usable = (tokens > 0) & (tokens <= MAX_DOCUMENT_TOKENS)
        if not is_usable.all():
            self._result.dropped["no-tokens"] += int((tokens == 0).sum())
            for row in np.flatnonzero(tokens > MAX_DOCUMENT_TOKENS).tolist():
                detail = f"{tokens[row]:,} tokens, more than {MAX_DOCUMENT_TOKENS:,}"
                rejects.add_document(file, batch["id"][row].as_py(), "too-long", detail)
            batch = batch.filter(pa.array(is_usable))
            sentences, encoded, tokens = _encode_documents(batch, self._encoder)
        counts = self._result.split_counts[split]
        counts["documents"] += len(batch)
        counts["unknown_tokens"] += int((encoded.ids == self._encoder.unknown_id).sum())
        years = ("unknown" if year is None else str(year) for year in batch["year"].to_pylist())
        for source, year, num_tokens in zip(batch["source"].to_pylist(), years, tokens.tolist(), strict=True):
            self._result.tokens_by_year.setdefault(source, Counter())[year] += num_tokens
        block = self._blocks[split]
        block.add(batch["id"], sentences, encoded)
        if block.tokens * encoded.ids.itemsize * self._num_passes(split) >= self._job.max_shard_bytes:
            self._write_block(split)

    def _num_passes(self, split: str) -> int:
        """Return the number of passes; documents of the validation split have one."""
        return self._recipe.dupe_factor if split == "train" else 1

    def _write_block(self, split: str) -> None:
        """Write the rows of a split's block, and start a new block."""
        block, self._blocks[split] = self._blocks[split], TokenBlock(self._encoder)
        if not len(block):
            return
        job, num_passes = self._job, self._num_passes(split)
        row_plan = plan_rows(block, self._recipe, job.config.seed, num_passes)
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
        schema = make_schema(job, self._encoder, split, len(row_plan), row_plan.tokens)
        order, keys = row_plan.sort_by_key()
        if job.num_buckets:
            file = f"{split}-{name}.arrow"
            global_shuffle.spill_rows(
                self._job.storage,
                self._job.output.shuffle_spill_path(file),
                row_plan,
                order,
                keys,
                schema,
                job.num_buckets[split],
            )
            self._result.spill_files[split].append(file)
        else:
            batches = row_plan.iter_batches(order, schema)
            shard = write_shard(
                self._job.storage, self._job.output.path, f"{split}/data-{name}.arrow", schema, batches
            )
            self._result.outputs.append(shard)


def make_schema(job: PretrainingJob, encoder: Encoder, split: str, rows: int, tokens: int) -> pa.Schema:
    """Return the schema of a shard with these numbers of rows and tokens."""
    recipe = job.recipe
    metadata = {
        "objective": recipe.objective,
        "length": recipe.max_seq_length,
        "vocabulary_sha256": job.config.vocabulary.sha256,
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


def write_shard(
    storage: Storage, output: str, file: str, schema: pa.Schema, batches: Iterator[pa.RecordBatch]
) -> Shard:
    """Write one shard, and return it as listed in the manifest.

    Args:
        file: path of the shard in the output directory.
        schema: schema of the shard (``pretraining_schema.make_schema``).
        batches: record batches of the rows.
    """
    rows = 0
    with storage.write(f"{output}/{file}") as shard_file:
        writer = HashingWriter(shard_file)
        with pa.ipc.new_stream(pa.PythonFile(writer, "w"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
                rows += len(batch)
    return Shard(file, rows, writer.size, writer.sha256)


def has_all_outputs(storage: Storage, output: str, outputs: Iterable[Shard]) -> bool:
    """Return True if all files exist with the listed sizes."""
    return all(
        [file_info.size for file_info in storage.glob(f"{output}/{entry.file}")] == [entry.bytes]
        for entry in outputs
    )
