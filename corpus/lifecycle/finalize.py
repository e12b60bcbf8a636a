"""Finalize a source: apply the decisions to its staged shard and write its final shards.

Final shards are rewritten only if the decisions on their source or the list of excluded ids have changed, so
that a daily update rewrites only the shards with changes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import RunError
from bioshards.corpus.lifecycle import id_lists
from bioshards.corpus.lifecycle.decisions import (
    digest_decisions,
    read_decisions,
    read_staged_table,
    usable_output_names,
)
from bioshards.corpus.lifecycle.job import ShardsJob, StageResult
from bioshards.corpus.lifecycle.stage import STAGED_FIELDS, mend_documents
from bioshards.corpus.manifest import Shard, convert
from bioshards.corpus.output.work_files import is_intact, read_report, write_report
from bioshards.corpus.shards import arrow_io, document_shards
from bioshards.corpus.stats.document_stats import TALLIED_COLUMNS, DocumentTally

_DROPPED_FIELDS = (pa.field("reason", pa.string(), nullable=False), pa.field("duplicate_of", pa.string()))
"""Columns of ``--keep-dropped`` after those of a document: drop reason, and the original of a duplicate."""


@dataclass(frozen=True, slots=True)
class FinalizeResult:
    """Result of finalizing a source.

    Attributes:
        output_name: stem of its files.
        shards: final shards.
        dropped: shards of dropped documents.
        funnel: number of records by result: ``kept`` or the drop reason.
        counts: number of kept documents, sentences, words and characters.
        years: number of kept documents by year.
        languages: number of kept documents by language.
        licences: number of kept documents by licence.
        article_types: number of kept documents by article type.
        cleaning: by cleaning rule, the number of changed documents and of removed characters.
        matched_exclusions: number of ids of the exclusion list that match a dropped document.
        matched_inclusions: number of ids of the inclusion list that match a kept document.
        pairs_sha256: SHA-256 of the list of its duplicates; '' without one.
        damaged: paths of work files of an earlier run that were damaged.
        is_cached: True if the shards are those of an earlier run.
    """

    output_name: str
    shards: list[Shard]
    dropped: list[Shard]
    funnel: dict[str, int]
    counts: dict[str, int]
    years: dict[str, int]
    languages: dict[str, int]
    licences: dict[str, int]
    article_types: dict[str, int]
    cleaning: dict[str, dict[str, int]]
    matched_exclusions: int = 0
    matched_inclusions: int = 0
    pairs_sha256: str = ""
    damaged: tuple[str, ...] = field(default=(), compare=False)
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        outcomes = {
            "kept" if reason == "kept" else f"dropped_{reason}": count
            for reason, count in self.funnel.items()
        }
        sizes = {name: self.counts[name] for name in ("sentences", "words")}
        return {"skipped": int(self.is_cached), **outcomes, **sizes}


def list_sources(job: ShardsJob, stage_results: Sequence[StageResult]) -> list[tuple[int, StageResult]]:
    """List the index and the staging of each usable source, those with most keys first."""
    by_name = {result.output_name: result for result in stage_results}
    numbered = enumerate(by_name[name] for name in usable_output_names(stage_results))
    return sorted(numbered, key=lambda source: -source[1].num_keys)


def finalize_source(
    job: ShardsJob, source: tuple[int, StageResult], decided: Sequence[str]
) -> FinalizeResult:
    """Write the final shards of a source, unless those of an earlier run are of the same decisions.

    Args:
        source: index of the source among the usable ones, and its staging.
        decided: files of all decisions.
    """
    source_index, staged = source
    output_name = str(staged.output_name)
    decisions = read_decisions(job.storage, decided, source_index)
    cache_key = [digest_decisions(decisions), job.excluded.sha256 if job.excluded else None, _TALLY_VERSION]
    damaged = list[str]()
    cached_report = _read_current_report(job, output_name, damaged)
    if cached_report and cached_report["cache_key"] == cache_key:
        return dataclasses.replace(convert(cached_report["result"], FinalizeResult), is_cached=True)
    damaged += mend_documents(job, staged)
    matched_exclusions = matched_inclusions = 0
    if job.excluded:
        exclusion_list = id_lists.read(job.storage, job.output.exclusion_list_path)
        decisions, matched_exclusions = id_lists.extend_decisions(
            _read_staged_ids(job, output_name), decisions, exclusion_list
        )
    if job.included:
        inclusion_list = id_lists.read(job.storage, job.output.inclusion_list_path)
        matched_inclusions = id_lists.find_matches(
            _read_staged_ids(job, output_name), decisions, inclusion_list
        )[1]
    # A run that is killed from here on leaves shards that do not match the report.
    for path in (job.output.final_report_path(output_name), job.output.duplicate_pairs_path(output_name)):
        job.storage.remove(path)
    finalizer = _Finalizer(job, output_name, decisions)
    result = dataclasses.replace(
        finalizer.run(), matched_exclusions=matched_exclusions, matched_inclusions=matched_inclusions
    )
    report = {
        "cache_key": cache_key,
        "result": msgspec.to_builtins(result),
        "tally": finalizer.tally.to_json(),
    }
    write_report(job.storage, job.output.final_report_path(output_name), report)
    return dataclasses.replace(result, damaged=tuple(damaged))


def read_tally(job: ShardsJob, output_name: str) -> str:
    """Read the tally of the kept documents of a finalized source, as text (:class:`DocumentTally`).

    It stays in the report, since journals and lengths of thousands of sources are too much for results.
    """
    path = job.output.final_report_path(output_name)
    report = read_report(job.storage, path, [])
    if report is None:
        raise RunError(
            f"{path} was damaged while this run went on. Run the same command again: it is made anew"
        )
    tally: str = report["tally"]
    return tally


def _read_current_report(job: ShardsJob, output_name: str, damaged: list[str]) -> dict[str, Any] | None:
    """Return the cached report if all that it lists is there, else None.

    Shards are to have the right size, as their readers verify them; the list of duplicates, its SHA-256.
    """
    report: dict[str, Any] | None
    report = read_report(job.storage, job.output.final_report_path(output_name), damaged)
    if report is None:
        return None
    pairs_path, pairs_sha256 = job.output.duplicate_pairs_path(output_name), report["result"]["pairs_sha256"]
    if pairs_sha256 and not is_intact(job.storage, pairs_path, pairs_sha256):
        damaged.append(pairs_path)
        return None
    for shard in (*report["result"]["shards"], *report["result"]["dropped"]):
        sizes = [info.size for info in job.storage.glob(f"{job.output.path}/{shard['file']}")]
        if sizes != [shard["bytes"]]:
            return None
    return report


def _read_staged_ids(job: ShardsJob, output_name: str) -> Iterator[pa.RecordBatch]:
    path = job.output.staged_path(output_name, "arrow")
    return arrow_io.read_stream(job.storage, path, id_lists.STAGED_COLUMNS)


def _strip_staged_fields(schema: pa.Schema) -> pa.Schema:
    """Return the fields of a final shard from those of a staged file."""
    return pa.schema(list(schema)[: -len(STAGED_FIELDS)])


_TALLY_VERSION: Final = 2
"""Raised when a tally gets other fields, so that those of an earlier version are not read."""
_MAX_TALLY_BYTES: Final = 16 << 20
"""Batches whose documents are tallied at once."""


class _Finalizer:
    """Writes the final shards of one source, and counts what is in them."""

    def __init__(self, job: ShardsJob, output_name: str, decisions: pa.Table) -> None:
        self._job, self._output_name = job, output_name
        self._decision_positions = decisions["position"].combine_chunks()
        self._decision_reasons = decisions["reason"].cast(pa.string()).combine_chunks()
        self._decision_duplicate_of = decisions["duplicate_of"].combine_chunks()
        self._decision_similarity = decisions["similarity"].combine_chunks()
        self._duplicate_pairs: list[str] = []
        self._counts = dict.fromkeys(("documents", "sentences", "words", "characters"), 0)
        self._rows: list[pa.Table] = []
        self._rows_bytes = 0
        self.tally = DocumentTally()
        self._cleaned_documents: collections.Counter[str] = collections.Counter()
        self._cleaned_characters: collections.Counter[str] = collections.Counter()

    def run(self) -> FinalizeResult:
        storage, output, config = self._job.storage, self._job.output, self._job.config
        with self._open_staged() as staged:
            schema = _strip_staged_fields(staged.schema)
            kept = self._write_shards(document_shards.DATA_FOLDER, self._iter_kept(staged, schema), schema)
        pairs = "".join(self._duplicate_pairs).encode()
        if pairs:
            with storage.write(output.duplicate_pairs_path(self._output_name)) as out:
                out.write(pairs)
        dropped: list[Shard] = []
        if config.keep_dropped:
            with self._open_staged() as staged:
                schema = pa.schema([*_strip_staged_fields(staged.schema), *_DROPPED_FIELDS])
                dropped = self._write_shards(
                    document_shards.DROPPED_FOLDER, self._iter_dropped(staged, schema), schema
                )
        self._tally_rows()
        values = self.tally.values
        return FinalizeResult(
            output_name=self._output_name,
            shards=kept,
            dropped=dropped,
            funnel=self._count_funnel(),
            counts=self._counts,
            years=dict(sorted(self.tally.count_years().items())),
            languages=dict(sorted(values["language"].items())),
            licences=dict(sorted(values["licence"].items())),
            article_types=dict(sorted(values["article_type"].items())),
            cleaning={
                rule: {"documents": count, "characters": self._cleaned_characters[rule]}
                for rule, count in sorted(self._cleaned_documents.items())
            },
            pairs_sha256=hashlib.sha256(pairs).hexdigest() if pairs else "",
        )

    def _write_shards(self, folder: str, batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> list[Shard]:
        job = self._job
        return document_shards.write_shards(
            job.storage,
            job.output.path,
            self._output_name,
            batches,
            schema,
            job.config.max_shard_mb * 1_000_000,
            folder,
        )

    @contextlib.contextmanager
    def _open_staged(self) -> Iterator[pa.RecordBatchReader]:
        path = self._job.output.staged_path(self._output_name, "arrow")
        with self._job.storage.open(path) as file, pa.ipc.open_stream(file) as stream:
            yield stream

    def _find_drop_reasons(self, batch: pa.RecordBatch, position: pa.Array) -> pa.Array:
        """Return the drop reason of each row, null for kept rows; decisions precede filters."""
        return pc.coalesce(
            self._look_up(self._decision_reasons, position), batch["drop_reason"].cast(pa.string())
        )

    def _look_up(self, column: pa.Array, position: pa.Array) -> pa.Array:
        """Return the values of a column of the decisions by position, null without a decision."""
        return column.take(pc.index_in(position, value_set=self._decision_positions))

    def _iter_kept(self, staged: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in staged:
            position = pc.struct_field(batch["origin"], "position")
            reason = self._find_drop_reasons(batch, position)
            if reason.null_count < len(reason):
                self._add_duplicate_pairs(batch["id"], position)
                batch = batch.filter(pc.is_null(reason))
            if not batch.num_rows:
                continue
            self._count_batch(batch)
            yield batch.select(schema.names).cast(schema)

    def _add_duplicate_pairs(self, ids: pa.Array, position: pa.Array) -> None:
        columns = [ids]
        columns += [self._look_up(self._decision_duplicate_of, position)]
        columns += [self._look_up(self._decision_similarity, position)]
        duplicates = pa.table(columns, ["id", "duplicate_of", "similarity"]).filter(pc.is_valid(columns[1]))
        for duplicate in duplicates.to_pylist():
            similarity = "" if duplicate["similarity"] is None else f"\t{duplicate['similarity']:.3f}"
            self._duplicate_pairs.append(f"{duplicate['id']}\t{duplicate['duplicate_of']}{similarity}\n")

    def _iter_dropped(self, staged: pa.RecordBatchReader, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        for batch in staged:
            position = pc.struct_field(batch["origin"], "position")
            reason = self._find_drop_reasons(batch, position)
            rows = batch.select(_strip_staged_fields(staged.schema).names).append_column("reason", reason)
            rows = rows.append_column(
                "duplicate_of", self._look_up(self._decision_duplicate_of, position)
            ).filter(pc.is_valid(reason))
            if rows.num_rows:
                yield rows.cast(schema)

    def _count_batch(self, batch: pa.RecordBatch) -> None:
        num_sentences = pc.list_value_length(batch["sentences"])
        self._counts["documents"] += batch.num_rows
        self._counts["sentences"] += pc.sum(num_sentences).as_py()
        self._counts["words"] += pc.sum(batch["words"]).as_py()
        self._counts["characters"] += pc.sum(batch["characters"]).as_py()
        self.tally.add_sentences(batch["id"], batch["sentences"])
        columns = batch.select(["source", "year", "words", *TALLIED_COLUMNS])
        self._rows.append(pa.Table.from_batches([columns.append_column("num_sentences", num_sentences)]))
        self._rows_bytes += batch.nbytes  # a column keeps its whole batch in memory
        if self._rows_bytes > _MAX_TALLY_BYTES:
            self._tally_rows()
        for item in pc.list_flatten(batch["removals"]).to_pylist():
            self._cleaned_documents[item["rule"]] += 1
            self._cleaned_characters[item["rule"]] += item["characters"]

    def _tally_rows(self) -> None:
        if self._rows:
            self.tally.add_rows(pa.concat_tables(self._rows))
        self._rows, self._rows_bytes = [], 0

    def _count_funnel(self) -> dict[str, int]:
        keys = read_staged_table(self._job, self._output_name, "keys")
        records = keys.filter(pc.invert(keys["is_deletion"])).combine_chunks()
        batch = records.to_batches()[0] if records.num_rows else None
        if batch is None:
            return {}
        reasons = pc.fill_null(self._find_drop_reasons(batch, batch["position"]), "kept")
        return {
            item["values"].as_py(): item["counts"].as_py()
            for item in sorted(reasons.value_counts(), key=lambda item: item["values"].as_py())
        }
