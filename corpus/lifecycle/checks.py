"""Checks of the input of a run: warnings, and problems that prevent publication."""

from __future__ import annotations

import collections
import re
from collections.abc import Mapping
from typing import Final

from bioshards.corpus.errors import shorten_list
from bioshards.corpus.lifecycle.job import ShardsJob, StageResult
from bioshards.corpus.manifest import DocumentsManifest, IdListSummary
from bioshards.corpus.output.rejects import describe_rejected, is_over_limit

RECORDS_PER_BASELINE_FILE: Final = 30_000
"""Records of a baseline file, except for the last one (baselines of 2024, 2025 and 2026)."""

_BASELINE_PATH = re.compile(r"/baseline/[^/]*$")
"""A file in a folder of this name, as on NLM's server."""


def collect_warnings(
    manifest: DocumentsManifest, stage_results: list[StageResult], copies: list[tuple[str, str]]
) -> list[str]:
    """Return the warnings about the input.

    Args:
        manifest: the manifest, without warnings.
        stage_results: results of all sources, in the order of application.
        copies: (path, path of the kept copy) of identical files.
    """
    messages = _check_sources(manifest.pipeline, stage_results, copies)
    if manifest.pipeline == "text_to_shards":
        messages += _check_ids(sum(item.funnel.get("superseded", 0) for item in manifest.inputs))
    for option, id_list in (
        ("--exclude-ids", manifest.exclusion_list),
        ("--include-ids", manifest.inclusion_list),
    ):
        if id_list:
            messages += _check_id_list(option, id_list)
    return messages + _check_filter_names(stage_results)


def _check_filter_names(stage_results: list[StageResult]) -> list[str]:
    """Warn about names of filters that no record of any source has."""
    by_source = [stage_result.unmatched for stage_result in stage_results if stage_result.output_name]
    unmatched = set(by_source[0]).intersection(*by_source) if by_source else ()
    messages = []
    for name in sorted(unmatched):
        nearest = next(filter(None, (names[name] for names in by_source)), "")
        messages.append(f"{name} matches no record{f' (did you mean {nearest}?)' if nearest else ''}")
    return messages


def _check_sources(
    pipeline: str, stage_results: list[StageResult], copies: list[tuple[str, str]]
) -> list[str]:
    messages = [f"{copy} is the same file as {kept} and is read once" for copy, kept in copies]
    misdeclared = [stage_result for stage_result in stage_results if stage_result.misdeclared_files]
    if misdeclared:
        num_files = sum(stage_result.misdeclared_files for stage_result in misdeclared)
        messages.append(
            f"{num_files:,} files declare a single-byte encoding, but are in UTF-8, and were read as UTF-8: "
            f"in {_list_names(misdeclared)}"
        )
    partial = [name for stage_result in stage_results for name in stage_result.partial_lists]
    if partial:
        files = "1 file is a page" if len(partial) == 1 else f"{len(partial):,} files are pages"
        messages.append(
            f"{files} of a longer list (OAI-PMH, by a resumptionToken), whose other records are read only if "
            f"the files of the next pages are inputs, too: {shorten_list(partial)}"
        )
    if pipeline == "pubmed_to_shards":
        return messages + _check_order(stage_results) + _check_baseline_sizes(stage_results)
    not_fetched = sum(stage_result.not_fetched for stage_result in stage_results)
    if not_fetched:
        messages.append(
            f"{not_fetched:,} articles could not be fetched ({_describe_fetch_errors(stage_results)}); rerun "
            "the command to retry them (listed in MIRROR/pmc/reports/)"
        )
    return messages


def _format_counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{reason}: {count}" for reason, count in sorted(counts.items()))


def _list_names(stage_results: list[StageResult]) -> str:
    """Return the names of the first sources."""
    return shorten_list([stage_result.source.name for stage_result in stage_results])


def _check_id_list(option: str, id_list: IdListSummary) -> list[str]:
    """Return the warnings about a list of ids."""
    if not id_list.num_ids:
        return [f"{option} lists no id"]
    if not id_list.matched:
        return [f"none of the {id_list.num_ids:,} ids of {option} matches a document"]
    return []


def _check_ids(superseded: int) -> list[str]:
    """Warn about documents of text files whose id a later file has too."""
    if not superseded:
        return []
    return [
        f"{superseded:,} documents are superseded: a later file, by name, has a document of the same id. If "
        "they are not versions of it, name a field of ids that differ in all files with --id-field"
    ]


def _check_order(stage_results: list[StageResult]) -> list[str]:
    """Warn about files whose names do not define their order."""
    messages = []
    unordered = [stage_result for stage_result in stage_results if not stage_result.source.is_ordered]
    if unordered:
        messages.append(
            f"{len(unordered)} files have no year and number in their names (as pubmed26n0001.xml.gz); they "
            f"are applied after all others, in the order of their names: {_list_names(unordered)}"
        )
    names = collections.Counter(stage_result.source.name for stage_result in stage_results)
    messages += [
        f"{count} different files have the name {name}; they are applied in the order of their paths"
        for name, count in sorted(names.items())
        if count > 1
    ]
    return messages


def _check_baseline_sizes(stage_results: list[StageResult]) -> list[str]:
    """Warn about baseline files with an unexpected number of records."""
    baseline = [
        stage_result
        for stage_result in stage_results
        if not stage_result.rejection and _BASELINE_PATH.search(stage_result.source.path)
    ]
    last_numbers = {
        stage_result.source.year: stage_result.source.number for stage_result in baseline
    }  # the last one of a year wins
    incomplete = [
        f"{stage_result.source.name} ({stage_result.records:,})"
        for stage_result in baseline
        if stage_result.records != RECORDS_PER_BASELINE_FILE
        and stage_result.source.number != last_numbers[stage_result.source.year]
    ]
    if not incomplete:
        return []
    return [
        f"{len(incomplete)} baseline files do not have {RECORDS_PER_BASELINE_FILE:,} records, as expected of "
        "all but the last: "
        f"{shorten_list(incomplete)}; they may be incomplete"
    ]


def find_problem(job: ShardsJob, stage_results: list[StageResult], manifest: DocumentsManifest) -> str | None:
    """Return the reason why the output cannot be published, or None."""
    max_rejected, max_bad_files = job.max_rejected, job.max_bad_files
    counts, funnel = manifest.counts, manifest.funnel
    unfetched = [
        stage_result
        for stage_result in stage_results
        if stage_result.rejection and not stage_result.source.stamp
    ]
    if unfetched:
        return (
            f"{len(unfetched)} of {len(stage_results)} files could not be fetched "
            f"({_describe_files(unfetched)}). All others are "
            "processed. Rerun the command to fetch them, or select other files"
        )
    not_fetched = sum(stage_result.not_fetched for stage_result in stage_results)
    if not_fetched > max_rejected * (counts.records + not_fetched):  # no floor: a rerun fetches them
        return (
            f"{not_fetched:,} articles of {counts.records + not_fetched:,} could not be fetched: more "
            f"than --max-rejected {max_rejected:g} allows ({_describe_fetch_errors(stage_results)}). All "
            "others are processed. Rerun the command"
        )
    bad_files = [stage_result for stage_result in stage_results if stage_result.rejection]
    bad_files_text = f"{_count_bad_files(bad_files, stage_results)} ({_describe_files(bad_files)})"
    if stage_results and len(bad_files) == len(stage_results):
        return f"{bad_files_text}, so that there is no record. Replace the input and rerun the command"
    if len(bad_files) > max_bad_files * len(stage_results):
        return (
            f"{bad_files_text}, more than --max-bad-files {max_bad_files:g} allows. See {job.output.path}/"
            "rejected/. Replace the input and rerun the command, or raise --max-bad-files"
        )
    if is_over_limit(counts.rejected, counts.records, max_rejected):
        return (
            f"{describe_rejects(job, stage_results)}. More than --max-rejected {max_rejected:g} allows: "
            "replace the input and rerun the command, or raise --max-rejected"
        )
    if not counts.documents:
        reason_counts = ", ".join(f"{outcome}: {count}" for outcome, count in funnel.items())
        unmatched = "".join(f"{message}. " for message in _check_filter_names(stage_results))
        problem = f"no document was kept ({reason_counts}). {unmatched}Check --input and the filters"
        return f"{bad_files_text}, and {problem}" if bad_files else problem
    return None


def describe_rejects(job: ShardsJob, stage_results: list[StageResult]) -> str:
    """Describe the rejected records, which are kept aside; '' if there are none."""
    results = [stage_result for stage_result in stage_results if stage_result.rejected]
    reasons: collections.Counter[str] = collections.Counter()
    for stage_result in results:
        reasons.update(stage_result.rejected)
    if not results:
        return ""
    paths = [f"{job.output.path}/rejected/{stage_result.output_name}.jsonl" for stage_result in results]
    records = sum(stage_result.records for stage_result in stage_results)
    return (
        f"{reasons.total():,} of {records:,} records were rejected ({_format_counts(reasons)}) and are kept "
        f"in {describe_rejected(job.storage, paths, reasons.total())}"
    )


def _count_bad_files(bad_files: list[StageResult], stage_results: list[StageResult]) -> str:
    if len(stage_results) == 1:
        return "the only file cannot be used"
    if len(bad_files) == len(stage_results):
        return f"none of the {len(stage_results)} files can be used"
    return f"{len(bad_files)} of {len(stage_results)} files cannot be used"


def _describe_fetch_errors(stage_results: list[StageResult]) -> str:
    """Describe the first articles that could not be fetched."""
    errors = [error for stage_result in stage_results for error in stage_result.fetch_errors]
    return shorten_list(errors, sum(stage_result.not_fetched for stage_result in stage_results), "; ")


def _describe_files(bad_files: list[StageResult]) -> str:
    """Describe the first bad files."""
    descriptions = [
        f"{stage_result.source.path}: {stage_result.rejection[1]}"
        for stage_result in bad_files
        if stage_result.rejection
    ]
    return shorten_list(descriptions, separator="; ")
