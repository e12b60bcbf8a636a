"""Finish one source: its staged shard less the verdicts on it gives its final shards.

A final shard is written again only when the verdicts on its source have changed, so that a day's
update file costs the shards it touches and no more.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.document import DOCUMENT_SCHEMA
from bioshards.corpus.manifest import decode, encode
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io as shards
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

from . import dedup, exclusion_list, versions
from .stage import StageResult, order_stage_results

DROPPED_SCHEMA = DOCUMENT_SCHEMA.append(pa.field("reason", pa.string(), nullable=False)).append(
    pa.field("duplicate_of", pa.string())
)
"""The documents kept aside by ``--keep-dropped``: the same columns, why, and what a duplicate repeats."""


@dataclass(frozen=True, slots=True)
class FinalizeResult:
    """What became of a source.

    Attributes:
        funnel: records by what became of them: ``kept`` or a reason of filters.py.
        counts: documents, sentences, words and characters kept.
        years, languages, licences, article_types: documents kept by each of these.
        cleaning: by rule, the documents kept from which it took something, and how many characters.
        listed: how many ids of a list (exclusion_list.py) name a document that was dropped for it.
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


def usable_output_names(stage_results: list[StageResult]) -> list[str]:
    """The names of the sources that can be used, in the order they are applied."""
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
    """Write one bucket's verdicts, a batch per source in order, for :func:`finish` to pick from.

    Args:
        by_version: PMC's rule of the life cycle, else PubMed's.

    Returns:
        The file they are in.
    """

    def read_keys(output_name: str) -> pa.Table:
        return _read_staged_table(storage, output_dir.staged_path(output_name, "keys")).select(
            versions.VERSION_KEY_SCHEMA.names
        )

    readers = [functools.partial(read_keys, name) for name in usable_output_names(stage_results)]
    map_fn = functools.partial(prefetch_map, storage)
    return _write_decisions(
        storage,
        output_dir.decisions_path(bucket),
        versions.resolve_versions(readers, bucket, num_buckets, highest_version_wins, map_fn),
    )


def write_duplicate_decisions(
    storage: Storage,
    output_dir: OutputDir,
    stage_results: list[StageResult],
    decision_files: list[str],
    bucket: int,
    num_buckets: int,
) -> str:
    """Write one bucket's verdicts on documents that repeat another, as :func:`decide` writes its own.

    Args:
        decision_files: the files of all verdicts of :func:`decide`; what these drop repeats nothing.
    """

    def read_surviving_digests(output_name: str, decisions: pa.Table) -> pa.Table:
        digests = _read_staged_table(storage, output_dir.staged_path(output_name, "digests"))
        return digests.filter(pc.invert(pc.is_in(digests["position"], value_set=decisions["position"])))

    decisions_by_source = _read_all_decisions(storage, decision_files)
    readers = [
        functools.partial(read_surviving_digests, *arguments)
        for arguments in zip(usable_output_names(stage_results), decisions_by_source, strict=True)
    ]
    map_fn = functools.partial(prefetch_map, storage)
    return _write_decisions(
        storage,
        output_dir.duplicate_decisions_path(bucket),
        dedup.find_duplicates(readers, bucket, num_buckets, map_fn),
    )


def finalize_source(
    storage: Storage,
    output_dir: OutputDir,
    output_name: str,
    source_index: int,
    decision_files: list[str],
    keep_dropped: bool,
    max_bytes: int,
    exclusion_digest: str | None,
) -> FinalizeResult:
    """Write the final shards of the ``source_index``-th good source, unless they stand already.

    Args:
        decision_files: the files of all verdicts.
        exclusion_digest: digest of the list of ids in the work folder that are to be left out, if there is
            one.
    """
    decisions = _read_decisions(storage, decision_files, source_index).sort_by("position")
    cached_report = _read_current_report(storage, output_dir, output_name)
    cache_key = [versions.digest_decisions(decisions), exclusion_digest]
    if cached_report and cached_report.get("cache_key") == cache_key:
        return decode(FinalizeResult, cached_report["result"])
    matched_exclusions = 0
    if exclusion_digest:
        documents = shards.read_file(
            storage, output_dir.staged_path(output_name, "arrow"), exclusion_list.STAGED_COLUMNS
        )
        decisions, matched_exclusions = exclusion_list.extend_decisions(
            documents, decisions, exclusion_list.read(storage, output_dir.exclusion_list_path)
        )
        decisions = decisions.sort_by("position")
    decisions_digest = versions.digest_decisions(decisions)
    if cached_report and cached_report["fingerprint"] == decisions_digest:
        result = decode(FinalizeResult, cached_report["result"])
    else:
        # A run killed from here on leaves shards that are not those the report speaks of.
        for path in (output_dir.final_report_path(output_name), output_dir.duplicate_pairs_path(output_name)):
            storage.remove(path)
        result = _Finalizer(storage, output_dir, output_name, decisions).run(keep_dropped, max_bytes)
    result = dataclasses.replace(result, matched_exclusions=matched_exclusions)
    report = {"cache_key": cache_key, "fingerprint": decisions_digest, "result": encode(result)}
    storage.write_json(output_dir.final_report_path(output_name), report)
    return result


def _read_current_report(storage: Storage, output_dir: OutputDir, output_name: str) -> dict[str, Any] | None:
    """The report on a source whose final shards are all there; None where it has none."""
    if not storage.exists(output_dir.final_report_path(output_name)):
        return None
    report: dict[str, Any] = storage.read_json(output_dir.final_report_path(output_name))
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


def _write_decisions(storage: Storage, path: str, batches: Iterable[pa.RecordBatch]) -> str:
    with storage.write(path) as out, pa.ipc.new_file(out, versions.DECISION_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def _read_decisions(storage: Storage, decision_files: list[str], source_index: int) -> pa.Table:
    """All verdicts on the ``source_index``-th good source."""

    def read_batch(path: str) -> pa.RecordBatch:
        with storage.open(path) as file, pa.ipc.open_file(file) as reader:
            return reader.get_batch(source_index)

    return pa.Table.from_batches(
        list(prefetch_map(storage, read_batch, decision_files)), versions.DECISION_SCHEMA
    )


def _read_all_decisions(storage: Storage, decision_files: list[str]) -> list[pa.Table]:
    """All verdicts on each good source; those of files on this machine are mapped."""

    def read_batches(path: str) -> list[pa.RecordBatch]:
        with shards.open_mapped(storage, path) as file, pa.ipc.open_file(file) as reader:
            return [reader.get_batch(index) for index in range(reader.num_record_batches)]

    batches_by_source = zip(*prefetch_map(storage, read_batches, decision_files), strict=True)
    return [pa.Table.from_batches(list(batches), versions.DECISION_SCHEMA) for batches in batches_by_source]


class _Finalizer:
    def __init__(
        self, storage: Storage, output_dir: OutputDir, output_name: str, decisions: pa.Table
    ) -> None:
        self._storage, self._output_dir, self._output_name = storage, output_dir, output_name
        self._decision_positions = decisions["position"].combine_chunks()
        self._decision_reasons = decisions["reason"].cast(pa.string()).combine_chunks()
        self._decision_duplicate_of = decisions["duplicate_of"].combine_chunks()
        self._duplicate_pairs: list[str] = []
        self._counts = dict.fromkeys(("documents", "sentences", "words", "characters"), 0)
        self._documents_by_column: dict[str, collections.Counter[str]] = {
            column: collections.Counter() for column in ("year", "language", "licence", "article_type")
        }
        self._cleaned_documents: collections.Counter[str] = collections.Counter()
        self._cleaned_characters: collections.Counter[str] = collections.Counter()

    def run(self, keep_dropped: bool, max_bytes: int) -> FinalizeResult:
        folder = self._output_dir.path
        kept = shards.write_shards(
            self._storage, folder, self._output_name, self._iter_kept(), DOCUMENT_SCHEMA, max_bytes
        )
        if self._duplicate_pairs:
            with self._storage.write(self._output_dir.duplicate_pairs_path(self._output_name)) as out:
                out.write("".join(self._duplicate_pairs).encode())
        dropped: list[Shard] = []
        if keep_dropped:
            shards_written = shards.write_shards(
                self._storage,
                f"{folder}/dropped",
                self._output_name,
                self._iter_dropped(),
                DROPPED_SCHEMA,
                max_bytes,
            )
            dropped = [dataclasses.replace(shard, file=f"dropped/{shard.file}") for shard in shards_written]
        return FinalizeResult(
            output_name=self._output_name,
            shards=kept,
            dropped=dropped,
            funnel=self._count_funnel(),
            counts=self._counts,
            years=dict(sorted(self._documents_by_column["year"].items())),
            languages=dict(sorted(self._documents_by_column["language"].items())),
            licences=dict(sorted(self._documents_by_column["licence"].items())),
            article_types=dict(sorted(self._documents_by_column["article_type"].items())),
            cleaning={
                rule: {"documents": count, "characters": self._cleaned_characters[rule]}
                for rule, count in sorted(self._cleaned_documents.items())
            },
        )

    def _iter_staged(self) -> Iterator[pa.RecordBatch]:
        path = self._output_dir.staged_path(self._output_name, "arrow")
        with self._storage.open(path) as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def _find_drop_reasons(self, batch: pa.RecordBatch, position: pa.Array) -> pa.Array:
        """Why each row is dropped, null where it is not; a verdict comes before a rule's reason."""
        return pc.coalesce(
            self._look_up(self._decision_reasons, position), batch["drop_reason"].cast(pa.string())
        )

    def _look_up(self, column: pa.Array, position: pa.Array) -> pa.Array:
        """What the verdicts say of each position in a column of theirs, null where nothing."""
        return column.take(pc.index_in(position, value_set=self._decision_positions))

    def _iter_kept(self) -> Iterator[pa.RecordBatch]:
        for batch in self._iter_staged():
            position = pc.struct_field(batch["origin"], "position")
            reason = self._find_drop_reasons(batch, position)
            if reason.null_count < len(reason):
                self._add_duplicate_pairs(batch["id"], self._look_up(self._decision_duplicate_of, position))
                batch = batch.filter(pc.is_null(reason))
            if not batch.num_rows:
                continue
            self._count_batch(batch)
            yield batch.select(DOCUMENT_SCHEMA.names).cast(DOCUMENT_SCHEMA)

    def _add_duplicate_pairs(self, ids: pa.Array, duplicate_of: pa.Array) -> None:
        duplicate_ids = ids.filter(pc.is_valid(duplicate_of)).to_pylist()
        originals = duplicate_of.drop_null().to_pylist()
        self._duplicate_pairs += [
            f"{id_}\t{original}\n" for id_, original in zip(duplicate_ids, originals, strict=True)
        ]

    def _iter_dropped(self) -> Iterator[pa.RecordBatch]:
        for batch in self._iter_staged():
            position = pc.struct_field(batch["origin"], "position")
            reason = self._find_drop_reasons(batch, position)
            rows = batch.select(DOCUMENT_SCHEMA.names).add_column(len(DOCUMENT_SCHEMA), "reason", reason)
            duplicate_of = self._look_up(self._decision_duplicate_of, position)
            rows = rows.add_column(len(DOCUMENT_SCHEMA) + 1, "duplicate_of", duplicate_of).filter(
                pc.is_valid(reason)
            )
            if rows.num_rows:
                yield rows.cast(DROPPED_SCHEMA)

    def _count_batch(self, batch: pa.RecordBatch) -> None:
        self._counts["documents"] += batch.num_rows
        self._counts["sentences"] += pc.sum(pc.list_value_length(batch["sentences"])).as_py()
        self._counts["words"] += pc.sum(batch["words"]).as_py()
        self._counts["characters"] += pc.sum(batch["characters"]).as_py()
        for column, counter in self._documents_by_column.items():
            for item in batch[column].value_counts():
                counter[str(item["values"].as_py() or "unknown")] += item["counts"].as_py()
        for item in pc.list_flatten(batch["removals"]).to_pylist():
            self._cleaned_documents[item["rule"]] += 1
            self._cleaned_characters[item["rule"]] += item["characters"]

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
