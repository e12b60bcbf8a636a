"""Publish an output directory of documents: rejected records, files for ``datasets``, manifest.

The manifest is written last; its presence marks the directory complete.  All of it but ``run`` is the same
for the same inputs and options, whatever the runner, the number of workers and the restarts.
"""

from __future__ import annotations

import collections
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bioshards.corpus.jats.filters import DROPPED_PART_PREFIX
from bioshards.corpus.lifecycle import checks, dataset_card, finalize, full_text_overlap, shard_keys
from bioshards.corpus.lifecycle.finalize import FinalizeResult
from bioshards.corpus.lifecycle.id_lists import IdList
from bioshards.corpus.lifecycle.near_duplicate_files import DUPLICATES_HEADER
from bioshards.corpus.lifecycle.stage import MENDABLE_REASONS, StageResult, order_stage_results
from bioshards.corpus.manifest import (
    BadFile,
    DocumentCounts,
    DocumentsConfig,
    DocumentsManifest,
    DocumentsRun,
    IdListSummary,
    InputFile,
    OverlapFile,
    RemovedText,
    Retrieval,
    Shard,
    find_manifest,
    is_complete,
    listed_files,
    sweep,
    write_manifest,
)
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.stats import report
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import parallel_for_each, prefetch_map
from bioshards.corpus.storage.source_file import SourceFile
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_config import TextConfig

DUPLICATES_FILE: Final = "duplicates.tsv"
_DUPLICATE_REASONS: Final = {"exact": "duplicate", "near": "near-duplicate"}
"""Drop reason by the value of ``--dedup``."""

_WORK_FILE_NAME = re.compile(r"(.+-[0-9a-f]{8})\.(?:arrow|keys|digests|signatures|json|rejected\.jsonl|tsv)$")
"""File names in the work folder: output name and extension."""


@dataclass(frozen=True, slots=True)
class PublishResult:
    """Result of a run.

    Attributes:
        problem: None if the manifest was written, else the reason.
        documents: number of documents.
        sentences: number of sentences.
        rejected: number of rejected records.
        records: number of records.
        bad_files: path of every bad file, and why it is one.
    """

    problem: str | None
    documents: int
    sentences: int
    rejected: int
    records: int
    bad_files: list[tuple[str, str]]


def publish_output(
    storage: Storage,
    output_dir: OutputDir,
    document_config: TextConfig,
    config: dict[str, Any],
    stage_results: list[StageResult],
    finalize_results: list[FinalizeResult],
    max_rejected: float,
    max_bad_files: float,
    run: DocumentsRun,
    overlaps: Sequence[OverlapFile] = (),
    exclusion_list: IdList | None = None,
    inclusion_list: IdList | None = None,
) -> PublishResult:
    """Check the fraction of rejected input and write the manifest.

    Args:
        config: configuration of the output as JSON values.
        stage_results: results of all sources, in any order.
        finalize_results: results of the usable sources, in any order.
        max_rejected: accepted fraction of rejected records.
        max_bad_files: accepted fraction of bad files.
        run: facts about this run; the download times of the inputs are added.
        overlaps: list of the abstracts with full text, if requested.
        exclusion_list: list of excluded ids, if any.
        inclusion_list: list of included ids, if any.

    Returns:
        The totals, and the reason if nothing was published.
    """
    stage_results, copies = order_stage_results(stage_results)
    usable_results = [stage_result for stage_result in stage_results if not stage_result.rejection]
    results_by_name = {finalize_result.output_name: finalize_result for finalize_result in finalize_results}
    ordered_results = [results_by_name[str(stage_result.output_name)] for stage_result in usable_results]
    warnings = checks.collect_warnings(config["pipeline"], stage_results, copies)
    if config["pipeline"] == "text_to_shards":
        warnings += checks.check_ids(
            sum(finalize_result.funnel.get("superseded", 0) for finalize_result in finalize_results)
        )
    # An article has one PMID and one PMCID, which match in one source; a DOI may be given twice.
    excluded = _summarise_id_list(
        exclusion_list, sum(result.matched_exclusions for result in finalize_results)
    )
    included = _summarise_id_list(
        inclusion_list, sum(result.matched_inclusions for result in finalize_results)
    )
    for option, summary in (("--exclude-ids", excluded), ("--include-ids", included)):
        if summary:
            warnings += checks.collect_id_list_warnings(option, summary)
    manifest = msgspec.structs.replace(
        _build_manifest(
            document_config, msgspec.convert(config, DocumentsConfig), stage_results, ordered_results, run
        ),
        overlap=tuple(overlaps),
        exclusion_list=excluded,
        inclusion_list=included,
        warnings=tuple(warnings),
    )
    _publish_rejects(storage, output_dir, stage_results)
    counts = manifest.counts
    problem = checks.find_problem(output_dir, stage_results, manifest, max_rejected, max_bad_files)
    result = PublishResult(
        problem,
        counts.documents,
        counts.sentences,
        counts.rejected,
        counts.records,
        [(bad_file.path, bad_file.detail) for bad_file in manifest.bad_files],
    )
    if problem is None:
        arrow_io.write_dataset_info(storage, output_dir.path, list(manifest.outputs))
        if manifest.config.keep_dropped:
            dropped = [
                msgspec.structs.replace(shard, file=os.path.basename(shard.file))
                for shard in manifest.dropped
            ]
            arrow_io.write_dataset_info(storage, f"{output_dir.path}/dropped", dropped)
        if reason := _DUPLICATE_REASONS.get(manifest.config.dedup):
            duplicates = (_publish_duplicates(storage, output_dir, ordered_results, reason),)
            manifest = msgspec.structs.replace(manifest, duplicates=duplicates)
        _publish_pages(storage, output_dir, manifest, document_config, list(results_by_name))
        _sweep(storage, output_dir, manifest, usable_results)
        write_manifest(storage, output_dir.manifest_path, manifest)
    return result


def _summarise_id_list(id_list: IdList | None, matched: int) -> IdListSummary | None:
    return IdListSummary(id_list.num_ids, id_list.sha256, matched) if id_list else None


def _build_manifest(
    document_config: TextConfig,
    config: DocumentsConfig,
    stage_results: list[StageResult],
    finalize_results: list[FinalizeResult],
    run: DocumentsRun,
) -> DocumentsManifest:
    usable_results = [stage_result for stage_result in stage_results if not stage_result.rejection]
    funnel = _sum_counts(finalize_result.funnel for finalize_result in finalize_results)
    rejected = _sum_counts(stage_result.rejected for stage_result in stage_results)
    records = sum(stage_result.records for stage_result in stage_results)
    counts = _sum_counts(finalize_result.counts for finalize_result in finalize_results)
    removed = {rule: _sum_removed_text(rule, finalize_results) for rule in document_config.removal_names()}
    return DocumentsManifest(
        pipeline=config.pipeline,
        notice=dataset_card.NOTICE_BY_PIPELINE[config.pipeline],
        config=config,
        newest_file=_find_newest_file(usable_results) if config.pipeline == "pubmed_to_shards" else None,
        inputs=tuple(
            _make_input_entry(stage_result, finalize_result)
            for stage_result, finalize_result in zip(usable_results, finalize_results, strict=True)
        ),
        bad_files=tuple(
            BadFile(stage_result.source.name, stage_result.source.path, *stage_result.rejection)
            for stage_result in stage_results
            if stage_result.rejection
        ),
        outputs=tuple(shard for finalize_result in finalize_results for shard in finalize_result.shards),
        dropped=tuple(shard for finalize_result in finalize_results for shard in finalize_result.dropped),
        duplicates=(),
        overlap=(),
        exclusion_list=None,
        inclusion_list=None,
        funnel={
            "records": records,
            **{f"rejected: {reason}": count for reason, count in sorted(rejected.items())},
            **{
                f"dropped: {reason}": funnel[reason]
                for reason in document_config.drop_reasons
                if reason in funnel
            },
            "kept": funnel.get("kept", 0),
        },
        counts=DocumentCounts(
            documents=counts.get("documents", 0),
            sentences=counts.get("sentences", 0),
            words=counts.get("words", 0),
            characters=counts.get("characters", 0),
            records=records,
            rejected=sum(rejected.values()),
            deletions=sum(stage_result.deletions for stage_result in stage_results),
        ),
        cleaning={rule: text for rule, text in removed.items() if not rule.startswith(DROPPED_PART_PREFIX)},
        dropped_parts={
            rule.removeprefix(DROPPED_PART_PREFIX): text
            for rule, text in removed.items()
            if rule.startswith(DROPPED_PART_PREFIX)
        },
        years=_sum_counts(finalize_result.years for finalize_result in finalize_results),
        languages=_sum_counts(finalize_result.languages for finalize_result in finalize_results),
        licences=_sum_counts(finalize_result.licences for finalize_result in finalize_results),
        article_types=_sum_counts(finalize_result.article_types for finalize_result in finalize_results),
        warnings=(),
        run=msgspec.structs.replace(run, retrieved_at=_collect_retrieval_times(usable_results)),
    )


def _sum_removed_text(rule: str, finalize_results: list[FinalizeResult]) -> RemovedText:
    removals = [
        finalize_result.cleaning[rule]
        for finalize_result in finalize_results
        if rule in finalize_result.cleaning
    ]
    return RemovedText(
        sum(text["documents"] for text in removals), sum(text["characters"] for text in removals)
    )


def _find_newest_file(usable_results: list[StageResult]) -> str | None:
    """Return the name of the last file in NLM's order."""
    ordered_sources = [
        stage_result.source for stage_result in usable_results if stage_result.source.is_ordered
    ]
    return max(ordered_sources).name if ordered_sources else None


def _make_input_entry(stage_result: StageResult, finalize_result: FinalizeResult) -> InputFile:
    return InputFile(
        file=stage_result.source.name,
        path=stage_result.source.path,
        num_files=stage_result.source.num_files or 1,
        bytes=stage_result.source.size,
        md5=str(stage_result.md5),
        records=stage_result.records,
        deletions=stage_result.deletions,
        rejected=stage_result.rejected,
        funnel=finalize_result.funnel,
        shards=tuple(shard.file for shard in finalize_result.shards),
    )


def _collect_retrieval_times(usable_results: list[StageResult]) -> Retrieval | None:
    """Return the UTC download times of the inputs, None without downloads."""
    dates = {
        stage_result.source.name: stage_result.source.retrieved_at
        for stage_result in usable_results
        if stage_result.source.retrieved_at
    }
    return Retrieval(min(dates.values()), max(dates.values()), dates) if dates else None


def _sum_counts(counters: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: collections.Counter[str] = collections.Counter()
    for counter in counters:
        total.update(counter)
    return dict(sorted(total.items()))


def _publish_rejects(storage: Storage, output_dir: OutputDir, stage_results: list[StageResult]) -> None:
    folder = f"{output_dir.path}/rejected"
    results_by_file = {
        f"{stage_result.output_name}.jsonl": stage_result
        for stage_result in stage_results
        if stage_result.rejected
    }
    parallel_for_each(
        storage,
        storage.remove,
        [f"{folder}/{name}" for name in storage.list_names(folder) if name not in results_by_file],
    )

    def copy(name: str) -> None:
        path = output_dir.staged_path(str(results_by_file[name].output_name), "rejected.jsonl")
        with storage.open(path) as source_file, storage.write(f"{folder}/{name}") as target_file:
            while block := source_file.read(1 << 20):
                target_file.write(block)

    parallel_for_each(storage, copy, results_by_file)
    bad_files = [stage_result for stage_result in stage_results if stage_result.rejection]
    if bad_files:
        with storage.write(f"{folder}/files.jsonl") as out:
            for stage_result in bad_files:
                reason, detail = stage_result.rejection or ("", "")
                entry = {
                    "file": stage_result.source.path,
                    "position": None,
                    "reason": reason,
                    "detail": detail,
                }
                out.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")


def _publish_duplicates(
    storage: Storage, output_dir: OutputDir, finalize_results: list[FinalizeResult], reason: str
) -> Shard:
    """Write the ids of duplicates and of their originals, in the order of sources and positions.

    Near duplicates have the estimated similarity beside them.
    """

    def read_pairs(finalize_result: FinalizeResult) -> bytes:
        with storage.open(output_dir.duplicate_pairs_path(finalize_result.output_name)) as file:
            return file.read()

    results_with_duplicates = [result for result in finalize_results if reason in result.funnel]
    rows = sum(result.funnel[reason] for result in results_with_duplicates)
    with storage.write(f"{output_dir.path}/{DUPLICATES_FILE}") as out:
        writer = HashingWriter(out)
        writer.write(DUPLICATES_HEADER if reason == "near-duplicate" else b"id\tduplicate_of\n")
        for lines in prefetch_map(storage, read_pairs, results_with_duplicates):
            writer.write(lines)
    return Shard(DUPLICATES_FILE, rows, writer.size, writer.sha256)


def _publish_pages(
    storage: Storage,
    output_dir: OutputDir,
    manifest: DocumentsManifest,
    document_config: TextConfig,
    output_names: list[str],
) -> None:
    """Write the card and the report; of the latter, only the sections on the run differ in equal runs."""

    def read_tally(output_name: str) -> str:
        return finalize.read_tally(storage, output_dir, output_name)

    def write(name: str) -> None:
        with storage.write(f"{output_dir.path}/{name}") as out:
            out.write(pages[name].encode("utf-8", "backslashreplace"))

    tallies = prefetch_map(storage, read_tally, output_names)
    pages = {
        dataset_card.FILE: dataset_card.format_dataset_card(manifest, document_config),
        report.FILE: report.render_documents_page(storage, output_dir.path, manifest, tallies),
    }
    parallel_for_each(storage, write, pages)


def _sweep(
    storage: Storage,
    output_dir: OutputDir,
    manifest: DocumentsManifest,
    usable_results: list[StageResult],
) -> None:
    """Remove shards and work files that the manifest does not list, as of replaced inputs."""
    output_names = {stage_result.output_name for stage_result in usable_results}
    expected = {f"{output_dir.path}/{entry.file}" for entry in listed_files(manifest)}
    sweep(storage, [output_dir.path, f"{output_dir.path}/dropped"], expected, _is_shard_or_overlap_file)
    if manifest.pipeline == "pmc_to_shards" and not manifest.overlap:
        shard_keys.sweep(storage, output_dir, [])

    def is_replaced(name: str) -> bool:
        match = _WORK_FILE_NAME.match(name)
        return match is None or match[1] not in output_names

    sweep(
        storage,
        [f"{output_dir.work_folder}/staged", f"{output_dir.work_folder}/final_reports"],
        (),
        is_replaced,
    )
    part_lists = {
        output_dir.part_list_path(stage_result.source.stamp)
        for stage_result in usable_results
        if stage_result.source.num_files
    }
    sweep(storage, [f"{output_dir.work_folder}/part_lists"], part_lists)


def _is_shard_or_overlap_file(name: str) -> bool:
    return (name.startswith("data-") and name.endswith(".arrow")) or name == full_text_overlap.FILE_NAME


def is_up_to_date(
    storage: Storage,
    output_dir: OutputDir,
    sources: list[SourceFile],
    abstracts_digest: str | None = None,
    exclusion_digest: str | None = None,
) -> bool:
    """Return True if the output is complete and was made from these inputs.

    Args:
        sources: sources of the run.
        abstracts_digest: :func:`.full_text_overlap.digest_abstracts` of ``--find-overlap-with``, if given.
        exclusion_digest: SHA-256 of the list of ``--exclude-ids``, if given.
    """
    manifest = find_manifest(storage, output_dir.path, DocumentsManifest)
    if manifest is None or manifest.bad_files:
        return False
    if any(MENDABLE_REASONS & item.rejected.keys() for item in manifest.inputs):
        return False
    if [entry.abstracts_sha256 for entry in manifest.overlap] != (
        [abstracts_digest] if abstracts_digest else []
    ):
        return False
    if (manifest.exclusion_list.sha256 if manifest.exclusion_list else None) != exclusion_digest:
        return False
    if not is_complete(storage, output_dir.path, manifest):
        return False
    digest_paths = [output_dir.input_digest_path(source.path, source.stamp) for source in sources]
    existing = set(storage.list_names(f"{output_dir.work_folder}/input_digests"))
    if not all(path.rpartition("/")[2] in existing for path in digest_paths):
        return False
    md5s = [record["md5"] for record in prefetch_map(storage, storage.read_json, digest_paths)]
    current_inputs = {(source.name, md5) for source, md5 in zip(sources, md5s, strict=True)}
    return current_inputs == {(item.file, item.md5) for item in manifest.inputs}
