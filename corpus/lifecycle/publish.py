"""Publish an output directory of documents: rejected records, pages, manifest.

The manifest is written last; its presence marks the directory complete.  All of it but ``run`` is the same
for the same inputs and options, whatever the runner, the number of workers and the restarts.
"""

from __future__ import annotations

import collections
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

import msgspec
import pyarrow as pa

from bioshards.corpus.jats.filters import DROPPED_PART_PREFIX
from bioshards.corpus.lifecycle import checks, full_text_overlap
from bioshards.corpus.lifecycle.finalize import FinalizeResult, read_tally
from bioshards.corpus.lifecycle.full_text_overlap import OverlapResult
from bioshards.corpus.lifecycle.id_lists import IdList
from bioshards.corpus.lifecycle.job import (
    PublishResult,
    ShardsJob,
    StageResult,
    finish_manifest,
    order_stage_results,
)
from bioshards.corpus.lifecycle.near_duplicates import DUPLICATES_HEADER
from bioshards.corpus.lifecycle.source_of_document import read_source_record
from bioshards.corpus.lifecycle.stage import MENDABLE_REASONS
from bioshards.corpus.manifest import (
    BadFile,
    DocumentCounts,
    DocumentsManifest,
    IdListSummary,
    InputFile,
    RemovedText,
    Retrieval,
    Shard,
    listed_files,
    sweep,
    write_manifest,
)
from bioshards.corpus.output.work_files import describe_damaged
from bioshards.corpus.shards.document_shards import DATA_FOLDER, DROPPED_FOLDER, SUFFIX
from bioshards.corpus.source_record import SourceRecord
from bioshards.corpus.stats import dataset_card, report
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.parallel import parallel_for_each, prefetch_map
from bioshards.corpus.storage.source_file import SourceFile

DUPLICATES_FILE: Final = "duplicates.tsv"
_DUPLICATE_REASONS: Final = {"exact": "duplicate", "near": "near-duplicate"}
"""Drop reason by the value of ``--dedup``."""

_WORK_FILE_NAME = re.compile(r"(.+-[0-9a-f]{8})\.(?:arrow|keys|digests|signatures|json|rejected\.jsonl|tsv)$")
"""File names in the work folder: output name and extension."""


def publish(
    job: ShardsJob,
    staged: Sequence[StageResult],
    finalized: Sequence[FinalizeResult],
    overlap: Sequence[OverlapResult] = (),
) -> PublishResult:
    """Check the fraction of rejected input, publish the files beside the shards, and the manifest last.

    Args:
        staged: results of all sources, in any order.
        finalized: results of the usable sources, in any order.
        overlap: the list of abstracts with full text, if it was requested.

    Returns:
        The bad files, and the reason if nothing was published.
    """
    ordered_results, copies = order_stage_results(staged)
    stage_results = [
        replace(result, source=replace(result.source, path=job.as_typed(result.source.path)))
        for result in ordered_results
    ]
    copies = [(job.as_typed(copy), job.as_typed(kept)) for copy, kept in copies]
    results_by_name = {result.output_name: result for result in finalized}
    usable_results = [
        (stage_result, results_by_name[stage_result.output_name])
        for stage_result in stage_results
        if stage_result.output_name
    ]
    manifest = _build_manifest(job, stage_results, usable_results)
    manifest = msgspec.structs.replace(
        manifest,
        overlap=tuple(result.file for result in overlap),
        warnings=tuple(checks.collect_warnings(manifest, stage_results, copies)),
    )
    _publish_rejects(job, stage_results)
    problem = checks.find_problem(job, stage_results, manifest)
    if problem is None:
        if reason := _DUPLICATE_REASONS.get(job.config.dedup):
            duplicates = _publish_duplicates(job, [result for _, result in usable_results], reason)
            manifest = msgspec.structs.replace(manifest, duplicates=(duplicates,))
        _publish_pages(job, manifest, list(results_by_name))
        _sweep(job, manifest, [stage_result for stage_result, _ in usable_results])
        manifest = finish_manifest(manifest, _make_inputs_key(job, staged))
        write_manifest(job.storage, job.output.manifest_path, manifest)
    damaged = [path for stage_result in staged for path in stage_result.damaged]
    damaged += [path for finalize_result in finalized for path in finalize_result.damaged]
    rejects = "" if problem else checks.describe_rejects(job, stage_results)
    notices = (*describe_damaged(damaged), *([rejects] if rejects else []))
    bad_files = tuple((bad_file.path, bad_file.detail) for bad_file in manifest.bad_files)
    return PublishResult(problem, bad_files, notices)


def _make_inputs_key(job: ShardsJob, staged: Sequence[StageResult]) -> str:
    """Return the key of the inputs; '' if a rerun may mend one of them."""
    is_mendable = any(result.rejection or MENDABLE_REASONS & result.rejected.keys() for result in staged)
    return "" if is_mendable else job.make_inputs_key(result.source for result in staged)


def _build_manifest(
    job: ShardsJob,
    stage_results: list[StageResult],
    usable_results: list[tuple[StageResult, FinalizeResult]],
) -> DocumentsManifest:
    """Build the manifest from the results of all sources and of the usable ones, in order of application."""
    usable_sources = [stage_result.source for stage_result, _ in usable_results]
    finalize_results = [result for _, result in usable_results]
    config, documents = job.config, job.documents
    funnel = _sum_counts(finalize_result.funnel for finalize_result in finalize_results)
    num_kept = funnel.pop("kept", 0)
    # Reused work files of an older version may have a reason that this one does not have: it comes last.
    drop_reasons = dict.fromkeys([*documents.drop_reasons, *sorted(funnel)])
    rejected = _sum_counts(stage_result.rejected for stage_result in stage_results)
    skipped = _sum_counts(stage_result.skipped_entries for stage_result in stage_results)
    records = sum(stage_result.records for stage_result in stage_results)
    counts = _sum_counts(finalize_result.counts for finalize_result in finalize_results)
    # Elements of articles are named where they were met, after what the settings name.
    met = sorted({rule for finalize_result in finalize_results for rule in finalize_result.cleaning})
    rules = dict.fromkeys([*documents.removal_names(), *met])
    removed = {rule: _sum_removed_text(rule, finalize_results) for rule in rules}
    return DocumentsManifest(
        pipeline=config.pipeline,
        notice=dataset_card.NOTICE_BY_PIPELINE[config.pipeline],
        config=config,
        newest_file=_find_newest_file(usable_sources) if config.pipeline == "pubmed_to_shards" else None,
        inputs=tuple(_make_input_entry(*results) for results in usable_results),
        bad_files=tuple(
            BadFile(stage_result.source.name, stage_result.source.path, *stage_result.rejection)
            for stage_result in stage_results
            if stage_result.rejection
        ),
        outputs=tuple(shard for finalize_result in finalize_results for shard in finalize_result.shards),
        dropped=tuple(shard for finalize_result in finalize_results for shard in finalize_result.dropped),
        duplicates=(),
        overlap=(),
        # An article has one PMID and one PMCID, which match in one source; a DOI may be given twice.
        exclusion_list=_summarise_id_list(
            job.excluded, sum(result.matched_exclusions for result in finalize_results)
        ),
        inclusion_list=_summarise_id_list(
            job.included, sum(result.matched_inclusions for result in finalize_results)
        ),
        funnel={
            "records": records,
            **{f"rejected: {reason}": count for reason, count in sorted(rejected.items())},
            **{f"dropped: {reason}": funnel[reason] for reason in drop_reasons if reason in funnel},
            "kept": num_kept,
            **{f"not read: {kind} of an archive": count for kind, count in sorted(skipped.items())},
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
        run=msgspec.structs.replace(
            job.run, retrieved_at=_collect_retrieval_times(usable_sources), pyarrow=pa.__version__
        ),
    )


def _summarise_id_list(id_list: IdList | None, matched: int) -> IdListSummary | None:
    return IdListSummary(id_list.num_ids, id_list.sha256, matched) if id_list else None


def _sum_removed_text(rule: str, finalize_results: list[FinalizeResult]) -> RemovedText:
    removals = [
        finalize_result.cleaning[rule]
        for finalize_result in finalize_results
        if rule in finalize_result.cleaning
    ]
    return RemovedText(
        sum(text["documents"] for text in removals), sum(text["characters"] for text in removals)
    )


def _find_newest_file(sources: list[SourceFile]) -> str | None:
    """Return the name of the last file in NLM's order."""
    ordered_sources = [source for source in sources if source.is_ordered]
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


def _collect_retrieval_times(sources: list[SourceFile]) -> Retrieval | None:
    """Return the UTC download times of the inputs, None without downloads."""
    dates = {source.name: source.retrieved_at for source in sources if source.retrieved_at}
    return Retrieval(min(dates.values()), max(dates.values()), dates) if dates else None


def _sum_counts(counters: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: collections.Counter[str] = collections.Counter()
    for counter in counters:
        total.update(counter)
    return dict(sorted(total.items()))


def _publish_rejects(job: ShardsJob, stage_results: list[StageResult]) -> None:
    folder = f"{job.output.path}/rejected"
    results_by_file = {
        f"{stage_result.output_name}.jsonl": stage_result
        for stage_result in stage_results
        if stage_result.rejected
    }
    parallel_for_each(
        job.storage,
        job.storage.remove,
        [f"{folder}/{name}" for name in job.storage.list_names(folder) if name not in results_by_file],
    )

    def copy(name: str) -> None:
        path = job.output.staged_path(str(results_by_file[name].output_name), "rejected.jsonl")
        with job.storage.open(path) as source_file, job.storage.write(f"{folder}/{name}") as target_file:
            while block := source_file.read(1 << 20):
                target_file.write(block)

    parallel_for_each(job.storage, copy, results_by_file)
    bad_files = [stage_result for stage_result in stage_results if stage_result.rejection]
    if bad_files:
        with job.storage.write(f"{folder}/files.jsonl") as out:
            for stage_result in bad_files:
                reason, detail = stage_result.rejection or ("", "")
                entry = {
                    "file": stage_result.source.path,
                    "position": None,
                    "reason": reason,
                    "detail": detail,
                }
                out.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")


def _publish_duplicates(job: ShardsJob, finalize_results: list[FinalizeResult], reason: str) -> Shard:
    """Write the ids of duplicates and of their originals, in the order of sources and positions.

    Near duplicates have the estimated similarity beside them.
    """

    def read_pairs(finalize_result: FinalizeResult) -> bytes:
        with job.storage.open(job.output.duplicate_pairs_path(finalize_result.output_name)) as file:
            return file.read()

    results_with_duplicates = [result for result in finalize_results if reason in result.funnel]
    rows = sum(result.funnel[reason] for result in results_with_duplicates)
    with job.storage.write(f"{job.output.path}/{DUPLICATES_FILE}") as out:
        writer = HashingWriter(out)
        writer.write(DUPLICATES_HEADER if reason == "near-duplicate" else b"id\tduplicate_of\n")
        for lines in prefetch_map(job.storage, read_pairs, results_with_duplicates):
            writer.write(lines)
    return Shard(DUPLICATES_FILE, rows, writer.size, writer.sha256)


def _publish_pages(job: ShardsJob, manifest: DocumentsManifest, output_names: list[str]) -> None:
    """Write the card and the report; of the latter, only the sections on the run differ in equal runs."""

    def write(name: str) -> None:
        with job.storage.write(f"{job.output.path}/{name}") as out:
            out.write(pages[name].encode("utf-8", "backslashreplace"))

    inputs = [msgspec.structs.replace(one, path=job.as_absolute(one.path)) for one in manifest.inputs]

    def read_record(file: str, position: int) -> SourceRecord:
        return read_source_record(LocalStorage(), inputs, job.documents, file, position)

    tallies = prefetch_map(job.storage, lambda name: read_tally(job, name), output_names)
    pages = {
        dataset_card.FILE: dataset_card.format_dataset_card(manifest, job.documents),
        report.FILE: report.render_documents_page(
            job.storage, job.output.path, manifest, tallies, read_record
        ),
    }
    parallel_for_each(job.storage, write, pages)


def _sweep(job: ShardsJob, manifest: DocumentsManifest, usable_results: list[StageResult]) -> None:
    """Remove shards and work files that the manifest does not list, as of replaced inputs."""
    output_names = {stage_result.output_name for stage_result in usable_results}
    expected = {f"{job.output.path}/{entry.file}" for entry in listed_files(manifest)}
    folders = [f"{job.output.path}/{name}" for name in (DATA_FOLDER, DROPPED_FOLDER)]
    sweep(job.storage, folders, expected, lambda name: name.startswith("data-") and name.endswith(SUFFIX))
    if manifest.pipeline == "pmc_to_shards" and not manifest.overlap:
        job.storage.remove(f"{job.output.path}/{full_text_overlap.FILE_NAME}")

    def is_replaced(name: str) -> bool:
        match = _WORK_FILE_NAME.match(name)
        return match is None or match[1] not in output_names

    sweep(
        job.storage,
        [f"{job.output.work_folder}/staged", f"{job.output.work_folder}/final_reports"],
        (),
        is_replaced,
    )
    part_lists = {
        job.output.part_list_path(stage_result.source.stamp)
        for stage_result in usable_results
        if stage_result.source.num_files
    }
    sweep(job.storage, [f"{job.output.work_folder}/part_lists"], part_lists)
