"""Finalize a source: apply the decisions to its staged shard and write its final shards.

Final shards are rewritten only if the decisions on their source have changed, so that a daily update rewrites
only the shards with changes.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle import dedup, id_lists, versions
from bioshards.corpus.lifecycle.near_duplicate_files import SignatureSource
from bioshards.corpus.lifecycle.stage import STAGED_FIELDS, StageResult, order_stage_results
from bioshards.corpus.manifest import Shard
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.stats.tally import TALLIED_COLUMNS, DocumentTally
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

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


def usable_output_names(stage_results: list[StageResult]) -> list[str]:
    """Return the output names of the usable sources, in the order of application."""
    return [
        stage_result.output_name
        for stage_result in order_stage_results(stage_results)[0]
        if stage_result.output_name
    ]


def write_version_decisions(
    storage: Storage,
    output_dir: OutputDir,
    stage_results: list[StageResult],
    bucket: int,
    num_buckets: int,
    highest_version_wins: bool,
) -> str:
    """Write the version decisions of a bucket, a batch per source in order, for :func:`finalize_source`.

    Args:
        highest_version_wins: rule of PMC, else that of PubMed.

    Returns:
        Path of the file.
    """

    def read_keys(output_name: str) -> pa.Table:
        return _read_staged_table(storage, output_dir.staged_path(output_name, "keys")).select(
            versions.VERSION_KEY_SCHEMA.names
        )

    readers = [functools.partial(read_keys, name) for name in usable_output_names(stage_results)]
    return versions.write_decisions(
        storage,
        output_dir.decisions_path(bucket),
        versions.resolve_versions(storage, readers, bucket, num_buckets, highest_version_wins),
    )


def write_duplicate_decisions(
    storage: Storage,
    output_dir: OutputDir,
    stage_results: list[StageResult],
    decision_files: list[str],
    bucket: int,
    num_buckets: int,
) -> str:
    """Write the duplicates of a bucket, in the format of :func:`write_version_decisions`.

    Args:
        decision_files: all version decisions; documents that they drop are not compared.

    Returns:
        Path of the file.
    """

    def read_surviving_digests(output_name: str, decisions: pa.Table) -> pa.Table:
        digests = _read_staged_table(storage, output_dir.staged_path(output_name, "digests"))
        return digests.filter(pc.invert(pc.is_in(digests["position"], value_set=decisions["position"])))

    decisions_by_source = _read_all_decisions(storage, decision_files)
    readers = [
        functools.partial(read_surviving_digests, *arguments)
        for arguments in zip(usable_output_names(stage_results), decisions_by_source, strict=True)
    ]
    return versions.write_decisions(
        storage,
        output_dir.duplicate_decisions_path(bucket),
        dedup.find_duplicates(storage, readers, bucket, num_buckets),
    )


def list_signature_sources(
    storage: Storage, output_dir: OutputDir, stage_results: list[StageResult], decision_files: list[str]
) -> list[SignatureSource]:
    """List the signatures of the usable sources, in the order of application.

    Args:
        decision_files: all version decisions; documents that they drop are not compared.
    """
    usable_results = [result for result in order_stage_results(stage_results)[0] if result.output_name]
    decisions_by_source = _read_all_decisions(storage, decision_files)
    return [
        SignatureSource(
            output_dir.staged_path(str(result.output_name), "signatures"),
            decisions["position"].combine_chunks(),
        )
        for result, decisions in zip(usable_results, decisions_by_source, strict=True)
    ]


def finalize_source(
    storage: Storage,
    output_dir: OutputDir,
    output_name: str,
    source_index: int,
    decision_files: list[str],
    keep_dropped: bool,
    max_bytes: int,
    exclusion_digest: str | None,
    has_inclusion_list: bool = False,
) -> FinalizeResult:
    """Write the final shards of a source, unless they are current.

    Args:
        output_name: stem of the files of the source.
        source_index: index of the source among the usable ones.
        decision_files: all decisions.
        keep_dropped: write shards of dropped documents.
        max_bytes: size limit of a shard.
        exclusion_digest: SHA-256 of the exclusion list in the work folder, if any.
        has_inclusion_list: count the matches of the inclusion list in the work folder.
    """
    decisions = _read_decisions(storage, decision_files, source_index).sort_by("position")
    cached_report = _read_current_report(storage, output_dir, output_name)
    cache_key = [versions.digest_decisions(decisions), exclusion_digest]
    if cached_report and cached_report.get("cache_key") == cache_key:
        return msgspec.convert(cached_report["result"], FinalizeResult)
    matched_exclusions = matched_inclusions = 0
    staged_path = output_dir.staged_path(output_name, "arrow")
    if exclusion_digest:
        documents = arrow_io.read_file(storage, staged_path, id_lists.STAGED_COLUMNS)
        decisions, matched_exclusions = id_lists.extend_decisions(
            documents, decisions, id_lists.read(storage, output_dir.exclusion_list_path)
        )
        decisions = decisions.sort_by("position")
    if has_inclusion_list:
        documents = arrow_io.read_file(storage, staged_path, id_lists.STAGED_COLUMNS)
        matched_inclusions = id_lists.find_matches(
            documents, decisions, id_lists.read(storage, output_dir.inclusion_list_path)
        )[1]
    decisions_digest = versions.digest_decisions(decisions)
    if cached_report and cached_report["fingerprint"] == decisions_digest:
        result, tally = msgspec.convert(cached_report["result"], FinalizeResult), cached_report["tally"]
    else:
        # A run that is killed from here on leaves shards that do not match the report.
        for path in (output_dir.final_report_path(output_name), output_dir.duplicate_pairs_path(output_name)):
            storage.remove(path)
        finalizer = _Finalizer(storage, output_dir, output_name, decisions)
        result, tally = finalizer.run(keep_dropped, max_bytes), finalizer.tally.to_json()
    result = dataclasses.replace(
        result, matched_exclusions=matched_exclusions, matched_inclusions=matched_inclusions
    )
    report = {"cache_key": cache_key, "fingerprint": decisions_digest, "result": msgspec.to_builtins(result)}
    storage.write_json(output_dir.final_report_path(output_name), {**report, "tally": tally})
    return result


def read_tally(storage: Storage, output_dir: OutputDir, output_name: str) -> str:
    """Read the tally of the kept documents of a finalized source, as text (:class:`DocumentTally`).

    It stays in the report, since journals and lengths of thousands of sources are too much for results.
    """
    tally: str = storage.read_json(output_dir.final_report_path(output_name))["tally"]
    return tally


def _read_current_report(storage: Storage, output_dir: OutputDir, output_name: str) -> dict[str, Any] | None:
    """Return the cached report if all shards that it lists exist with the right size, else None."""
    if not storage.exists(output_dir.final_report_path(output_name)):
        return None
    report: dict[str, Any] = storage.read_json(output_dir.final_report_path(output_name))
    if "tally" not in report:  # of an earlier version
        return None
    manifest_entries = [*report["result"]["shards"], *report["result"]["dropped"]]
    if all(
        [info.size for info in storage.glob(f"{output_dir.path}/{shard['file']}")] == [shard["bytes"]]
        for shard in manifest_entries
    ):
        return report
    return None


def _read_staged_table(storage: Storage, path: str) -> pa.Table:
    with storage.open(path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def _read_decisions(storage: Storage, decision_files: list[str], source_index: int) -> pa.Table:
    """Read all decisions on a source."""

    def read_batch(path: str) -> pa.RecordBatch:
        with storage.open(path) as file, pa.ipc.open_file(file) as reader:
            return reader.get_batch(source_index)

    return pa.Table.from_batches(
        list(prefetch_map(storage, read_batch, decision_files)), versions.DECISION_SCHEMA
    )


def _read_all_decisions(storage: Storage, decision_files: list[str]) -> list[pa.Table]:
    """Read all decisions on every usable source; local files are memory-mapped."""

    def read_batches(path: str) -> list[pa.RecordBatch]:
        with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_file(file) as reader:
            return [reader.get_batch(index) for index in range(reader.num_record_batches)]

    batches_by_source = zip(*prefetch_map(storage, read_batches, decision_files), strict=True)
    return [pa.Table.from_batches(list(batches), versions.DECISION_SCHEMA) for batches in batches_by_source]


def _strip_staged_fields(schema: pa.Schema) -> pa.Schema:
    """Return the fields of a final shard from those of a staged file."""
    return pa.schema(list(schema)[: -len(STAGED_FIELDS)])


_MAX_TALLY_BYTES: Final = 16 << 20
"""Batches whose documents are tallied at once."""


class _Finalizer:
    def __init__(
        self, storage: Storage, output_dir: OutputDir, output_name: str, decisions: pa.Table
    ) -> None:
        self._storage, self._output_dir, self._output_name = storage, output_dir, output_name
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

    def run(self, keep_dropped: bool, max_bytes: int) -> FinalizeResult:
        folder = self._output_dir.path
        with self._open_staged() as staged:
            schema = _strip_staged_fields(staged.schema)
            kept = arrow_io.write_shards(
                self._storage, folder, self._output_name, self._iter_kept(staged, schema), schema, max_bytes
            )
        if self._duplicate_pairs:
            with self._storage.write(self._output_dir.duplicate_pairs_path(self._output_name)) as out:
                out.write("".join(self._duplicate_pairs).encode())
        dropped: list[Shard] = []
        if keep_dropped:
            with self._open_staged() as staged:
                schema = pa.schema([*_strip_staged_fields(staged.schema), *_DROPPED_FIELDS])
                shards_written = arrow_io.write_shards(
                    self._storage,
                    f"{folder}/dropped",
                    self._output_name,
                    self._iter_dropped(staged, schema),
                    schema,
                    max_bytes,
                )
            dropped = [
                msgspec.structs.replace(shard, file=f"dropped/{shard.file}") for shard in shards_written
            ]
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
        )

    @contextlib.contextmanager
    def _open_staged(self) -> Iterator[pa.RecordBatchReader]:
        path = self._output_dir.staged_path(self._output_name, "arrow")
        with self._storage.open(path) as file, pa.ipc.open_stream(file) as stream:
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
        keys = _read_staged_table(self._storage, self._output_dir.staged_path(self._output_name, "keys"))
        records = keys.filter(pc.invert(keys["is_deletion"])).combine_chunks()
        batch = records.to_batches()[0] if records.num_rows else None
        if batch is None:
            return {}
        reasons = pc.fill_null(self._find_drop_reasons(batch, batch["position"]), "kept")
        return {
            item["values"].as_py(): item["counts"].as_py()
            for item in sorted(reasons.value_counts(), key=lambda item: item["values"].as_py())
        }
