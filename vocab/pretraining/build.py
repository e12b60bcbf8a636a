"""Build the rows of a shard group: read, encode, plan, sort, write.

Groups are independent of each other.  The report of a group is written last, and a group with a report is
not built again, unless an output is missing.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus import progress_notes
from bioshards.corpus.lifecycle.job import make_key
from bioshards.corpus.manifest import (
    PretrainingConfig,
    PretrainingInput,
    PretrainingRun,
    Shard,
    convert,
    find_damage,
)
from bioshards.corpus.output.output_layout import SPLITS, OutputDir
from bioshards.corpus.output.rejects import RejectWriter
from bioshards.corpus.output.work_files import read_report, write_report
from bioshards.corpus.shards import document_shards, pretraining_schema
from bioshards.corpus.shards.input_dirs import DocumentsInput
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.counting.word_counts import CountConfig
from bioshards.vocab.encode import EncodedBatch, Encoder
from bioshards.vocab.pretraining.example_recipes import ExampleRecipe
from bioshards.vocab.pretraining.pretraining_inputs import read_overlap_ids
from bioshards.vocab.pretraining.row_plan import Int64Array, TokenBlock, plan_rows

MIN_GROUP_BYTES: Final = 5_000_000
"""Minimum bytes of a group, about 10,000 abstracts."""
MAX_DOCUMENT_TOKENS: Final = 10_000_000
"""Maximum tokens of a document, else it is rejected.  The longest of 2,254 articles has 152,000 words."""
_COLUMNS: Final = ("id", "source", "pmid", "year", "sentences")


@dataclass(frozen=True, slots=True, kw_only=True)
class PretrainingJob:
    """Document shards and a vocabulary to pretraining examples: what each step gets, whole.

    The vocabulary is not in it, because the job is pickled into every step of the graph: workers load it from
    the work folder.

    Attributes:
        config, inputs: as the manifest has them; the options that fix the bytes of the output.
        run: facts about this run; the last step completes them.
        max_rejected: accepted fraction of rejected documents.
    """

    storage: Storage
    output: OutputDir
    config: PretrainingConfig
    inputs: tuple[PretrainingInput, ...]
    run: PretrainingRun
    max_rejected: float = 0.001

    @property
    def recipe(self) -> ExampleRecipe:
        """Return the objective and its options."""
        names = [field.name for field in dataclasses.fields(ExampleRecipe)]
        return ExampleRecipe(**{name: getattr(self.config, name) for name in names})

    @property
    def inputs_key(self) -> str:
        """Return the key of the inputs, by which a finished output is known."""
        return make_key(msgspec.to_builtins(self.inputs))

    def save_vocabulary(self, encoder: Encoder) -> None:
        """Write the vocabulary to the work folder, for :meth:`load_encoder`."""
        with self.storage.write(f"{self.output.work_folder}/tokenizer.json") as file:
            file.write(encoder.tokenizer_json)

    def load_encoder(self) -> Encoder:
        """Return the encoder of the vocabulary in the work folder; a process loads it once."""
        sha256 = self.config.vocabulary.sha256
        if sha256 not in _encoders:
            _encoders[sha256] = Encoder(self.output.work_folder, special_as_text=True, storage=self.storage)
        return _encoders[sha256]


_encoders: dict[str, Encoder] = {}
"""Encoders of this process, with their caches, by the SHA-256 of the vocabulary."""


@dataclass(frozen=True, slots=True)
class ShardGroup:
    """Consecutive shards of one directory, the unit of building rows.

    Articles by ranges of ids may be a thousand shards of two documents each.  BERT's pairs need other
    documents to draw from, and a trainer needs few files.  A group depends on the shards of its directory
    only, and an unchanged group is built once.

    Attributes:
        name: 16 hexadecimal digits, a hash of the seed and of all content to read, so that names sort in
            random order.
        overlap_lists: directories of full text that list abstracts of this one, with the SHA-256 of the
            lists.
    """

    name: str
    folder: str
    shards: tuple[Shard, ...]
    overlap_lists: tuple[tuple[str, str], ...]

    @property
    def bytes(self) -> int:
        """Size of the shards."""
        return sum(shard.bytes for shard in self.shards)


def group_shards(
    inputs: Iterable[DocumentsInput], seed: int, lists_by_folder: Mapping[str, Mapping[str, str]]
) -> Iterator[ShardGroup]:
    """Yield consecutive shards of directories in groups of sufficient size; a small rest joins the last one.

    Args:
        lists_by_folder: overlap lists of each directory (pretraining_inputs.py).
    """
    for documents in inputs:
        groups: list[list[Shard]] = [[]]
        sizes = [0]
        for shard in documents.shards:
            if sizes[-1] >= MIN_GROUP_BYTES:
                groups.append([])
                sizes.append(0)
            groups[-1].append(shard)
            sizes[-1] += shard.bytes
        if len(groups) > 1 and sizes[-1] < MIN_GROUP_BYTES // 2:
            remainder = groups.pop()
            groups[-1] += remainder
        overlap_lists = tuple(sorted(lists_by_folder.get(documents.folder, {}).items()))
        list_digests = sorted(digest for _, digest in overlap_lists)
        for shards in filter(None, groups):
            content = " ".join([str(seed), *(shard.sha256 for shard in shards), *list_digests])
            name = hashlib.sha256(content.encode()).hexdigest()[:16]
            yield ShardGroup(name, documents.folder, tuple(shards), overlap_lists)


@dataclass
class BuildResult:
    """Result of building one shard group.

    Attributes:
        split_counts: counts by split, with the fields of ``SplitCounts``.
        tokens_by_year: number of tokens by source and year of publication.
        dropped, rejected: numbers of documents by reason.
        failures: shards that cannot be read, with the reasons.
        damaged: paths of work files of an earlier run that were damaged.
        is_cached: True if the rows were built by an earlier run.
    """

    name: str
    outputs: list[Shard] = field(default_factory=list)
    split_counts: dict[str, dict[str, int]] = field(default_factory=dict)
    tokens_by_year: dict[str, dict[str, int]] = field(default_factory=dict)
    documents: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    rejected: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list, compare=False)
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        metrics = {
            "skipped": int(self.is_cached),
            "failed": int(bool(self.failures)),
            "documents": self.documents,
            **{f"dropped_{reason}": count for reason, count in self.dropped.items()},
            **{f"rejected_{reason}": count for reason, count in self.rejected.items()},
        }
        for split, counts in self.split_counts.items():
            for name in ("documents", "rows", "tokens", "lost_tokens"):
                metrics[f"{split}_{name}"] = counts.get(name, 0)
        return metrics


def build_group(job: PretrainingJob, group: ShardGroup) -> BuildResult:
    """Build the rows of a group, or return the cached result."""
    storage, output = job.storage, job.output
    progress_notes.begin_item(sum(shard.rows for shard in group.shards))
    report_path = output.work_path(f"build_reports/{group.name}.json")
    damaged = list[str]()
    if report := read_report(storage, report_path, damaged):
        result = convert(report, BuildResult)
        paths = [f"{output.path}/{shard.file}" for shard in result.outputs]
        sizes = [info.size for path in paths for info in storage.glob(path)]
        if sizes == [shard.bytes for shard in result.outputs]:
            result.is_cached = True
            return result
        storage.remove(report_path)  # before new files of the same names
    shards = {f"{group.folder}/{shard.file}": shard for shard in group.shards}
    damages = {path: find_damage(storage, path, shard) for path, shard in shards.items()}
    if failures := [f"{path}: {damage}" for path, damage in damages.items() if damage]:
        return BuildResult(group.name, failures=failures)
    result = _Builder(job, group).build()
    write_report(storage, report_path, msgspec.to_builtins(result))
    result.damaged = damaged
    return result


class _Builder:
    """One pass over a group: a block of documents is written when it reaches the size limit of a shard.

    Building takes the memory of a shard, writing as much again.
    """

    def __init__(self, job: PretrainingJob, group: ShardGroup) -> None:
        self._job, self._group = job, group
        self._encoder = job.load_encoder()
        self._blocks = {split: TokenBlock(self._encoder) for split in SPLITS}
        self._num_written = Counter[str]()
        self._num_passes = {"train": job.config.dupe_factor, "validation": 1}
        self._counts = {split: Counter[str]() for split in SPLITS}
        self._tokens_by_year: dict[str, Counter[str]] = {}
        self._documents, self._dropped = 0, Counter[str]()
        self._outputs: list[Shard] = []

    def build(self) -> BuildResult:
        """Read and write everything, and return the result."""
        job, group = self._job, self._group
        count_config = CountConfig(validation_fraction=job.config.validation_fraction, seed=job.config.seed)
        overlap_ids = read_overlap_ids(job.storage, group.folder, group.overlap_lists, group.shards)
        with RejectWriter(job.storage, f"{job.output.path}/rejected/{group.name}.jsonl") as rejects:
            for shard in group.shards:
                path = f"{group.folder}/{shard.file}"
                for batch in document_shards.read_checked_file(job.storage, path, _COLUMNS):
                    progress_notes.add_units(len(batch))
                    self._documents += len(batch)
                    is_overlap = pc.is_in(batch["id"], value_set=overlap_ids)
                    self._dropped["overlap"] += is_overlap.true_count
                    batch = batch.filter(pc.invert(is_overlap))
                    is_validation = count_config.find_validation(batch)
                    for split, mask in zip(SPLITS, (pc.invert(is_validation), is_validation), strict=True):
                        self._add_documents(split, batch.filter(mask), shard.file, rejects)
        for split in SPLITS:
            self._write_block(split)
        return BuildResult(
            group.name,
            outputs=self._outputs,
            split_counts={split: dict(counts) for split, counts in self._counts.items()},
            tokens_by_year={source: dict(years) for source, years in self._tokens_by_year.items()},
            documents=self._documents,
            dropped=dict(self._dropped),
            rejected=dict(rejects.reason_counts),
        )

    def _add_documents(self, split: str, batch: pa.RecordBatch, file: str, rejects: RejectWriter) -> None:
        """Encode documents and add them to the block of their split."""
        if not len(batch):
            return
        sentences, encoded, tokens = _encode_documents(batch, self._encoder)
        is_usable = (tokens > 0) & (tokens <= MAX_DOCUMENT_TOKENS)
        if not is_usable.all():
            self._dropped["no-tokens"] += int((tokens == 0).sum())
            for row in np.flatnonzero(tokens > MAX_DOCUMENT_TOKENS).tolist():
                detail = f"{tokens[row]:,} tokens, more than {MAX_DOCUMENT_TOKENS:,}"
                rejects.add_document(file, batch["id"][row].as_py(), "too-long", detail)
            batch = batch.filter(pa.array(is_usable))
            sentences, encoded, tokens = _encode_documents(batch, self._encoder)
        counts = self._counts[split]
        counts["documents"] += len(batch)
        counts["unknown_tokens"] += int((encoded.ids == self._encoder.unknown_id).sum())
        years = ("unknown" if year is None else str(year) for year in batch["year"].to_pylist())
        for source, year, num_tokens in zip(batch["source"].to_pylist(), years, tokens.tolist(), strict=True):
            self._tokens_by_year.setdefault(source, Counter())[year] += num_tokens
        block = self._blocks[split]
        block.add(batch["id"], sentences, encoded)
        shard_bytes = block.tokens * encoded.ids.itemsize * self._num_passes[split]
        if shard_bytes >= self._job.config.max_shard_mb * 1_000_000:
            self._write_block(split)

    def _write_block(self, split: str) -> None:
        """Write the rows of a split's block as a shard, and start a new block."""
        block, self._blocks[split] = self._blocks[split], TokenBlock(self._encoder)
        if not len(block):
            return
        job, num_passes = self._job, self._num_passes[split]
        rows = plan_rows(block, job.recipe, job.config.seed, num_passes)
        self._counts[split].update(
            rows=len(rows),
            tokens=rows.tokens,
            special_tokens=rows.special_tokens,
            other_document_tokens=rows.other_document_tokens,
            lost_tokens=rows.lost_tokens,
            unlabelled_rows=rows.unlabelled_rows,
            input_tokens=block.tokens * num_passes,
        )
        file = f"{split}/data-{self._group.name}-{self._num_written[split]:05d}.arrow"
        self._num_written[split] += 1
        encoder, recipe = self._encoder, job.recipe
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
            "rows": len(rows),
            "tokens": rows.tokens,
        }
        schema = pretraining_schema.make_schema(encoder.size, recipe.has_labels, metadata)
        with job.storage.write(f"{job.output.path}/{file}") as shard_file:
            writer = HashingWriter(shard_file)
            with pa.ipc.new_stream(pa.PythonFile(writer, "w"), schema) as stream:
                for batch in rows.iter_batches(schema):
                    stream.write_batch(batch)
        self._outputs.append(Shard(file, len(rows), writer.size, writer.sha256))


def _encode_documents(batch: pa.RecordBatch, encoder: Encoder) -> tuple[Int64Array, EncodedBatch, Int64Array]:
    """Return sentences per document, the ids of all documents, and tokens per document."""
    sentences = pc.list_value_length(batch["sentences"]).to_numpy(zero_copy_only=False).astype(np.int64)
    encoded = encoder.encode_all(batch["sentences"].flatten())
    ends = encoded.offsets[np.concatenate([np.zeros(1, np.int64), np.cumsum(sentences)])]
    return sentences, encoded, np.diff(ends)
