"""Last steps of a pretraining set: merge the buckets of a global shuffle, and publish.

``SplitCounts`` in corpus/manifest.py documents the counts of a split.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from bioshards.corpus.errors import shorten_list
from bioshards.corpus.lifecycle import dataset_card
from bioshards.corpus.manifest import (
    PretrainingConfig,
    PretrainingCounts,
    PretrainingInput,
    PretrainingManifest,
    PretrainingRun,
    Shard,
    SplitCounts,
    find_manifest,
    is_complete,
    sweep,
    utc_now,
    write_manifest,
)
from bioshards.corpus.output.output_layout import SPLITS, OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.pretraining import global_shuffle, set_card, shard_writer
from bioshards.vocab.pretraining.build import BuildConfig, make_schema
from bioshards.vocab.pretraining.build_result import BuildResult
from bioshards.vocab.pretraining.objectives.example_recipes import OBJECTIVES


@dataclass(frozen=True, slots=True)
class MergeResult:
    """One merged bucket: its shard of rows, or no output if the bucket is empty."""

    split: str
    bucket: int
    outputs: list[Shard]


def merge_bucket(
    storage: Storage,
    output_dir: OutputDir,
    build_config: BuildConfig,
    spill_files: Sequence[str],
    split: str,
    bucket: int,
) -> MergeResult:
    """Write one bucket of spilled rows as a shard, or return the cached result.

    Args:
        spill_files: names of the spill files of this split.
    """
    name = f"data-{bucket:05d}-of-{build_config.num_buckets[split]:05d}"
    report_path = output_dir.merged_bucket_path(bucket, f"{split}.json")
    cache_key = arrow_io.combine_digests([name, *sorted(spill_files)])
    if storage.exists(report_path):
        cached_report = storage.read_json(report_path)
        cached_outputs = [msgspec.convert(listed, Shard) for listed in cached_report["outputs"]]
        if cached_report["cache_key"] == cache_key and shard_writer.has_all_outputs(
            storage, output_dir.path, cached_outputs
        ):
            return MergeResult(split, bucket, cached_outputs)
        storage.remove(report_path)  # before a new shard of the same name
    shuffle_bucket = global_shuffle.read_bucket(
        storage, [output_dir.shuffle_spill_path(file) for file in sorted(spill_files)], bucket
    )
    outputs: list[Shard] = []  # no file for no rows: ``datasets`` opens no empty shard
    if rows := len(shuffle_bucket.rows):
        schema = make_schema(build_config, split, rows, len(shuffle_bucket.rows["input_ids"].flatten()))
        batches = global_shuffle.iter_batches(shuffle_bucket, schema)
        outputs = [
            shard_writer.write_shard(storage, output_dir.path, f"{split}/{name}.arrow", schema, batches)
        ]
    storage.write_json(report_path, {"cache_key": cache_key, "outputs": msgspec.to_builtins(outputs)})
    return MergeResult(split, bucket, outputs)


def publish_pretraining_set(
    storage: Storage,
    output_dir: OutputDir,
    config: dict[str, Any],
    inputs: Sequence[PretrainingInput],
    build_results: Sequence[BuildResult],
    merge_results: Sequence[MergeResult],
    run: PretrainingRun,
    max_rejected: float,
    duplicates: Sequence[Shard] = (),
) -> str | None:
    """Write the index files of ``datasets``, and the manifest last.

    Args:
        config: fields of :class:`PretrainingConfig`.
        inputs: content of the directories that were read.
        run: facts about this run; the finishing time is added.
        max_rejected: highest fraction of rejected documents.
        duplicates: list of near duplicates, if they are left out.

    Returns:
        The reason why nothing is published, or None.
    """
    set_config = msgspec.convert(config, PretrainingConfig)
    totals = _sum_results(build_results, set_config.objective)
    if problem := _find_problem(build_results, totals, max_rejected):
        return problem
    outputs = [output for result in build_results for output in result.outputs]
    outputs += [output for merge_result in merge_results for output in merge_result.outputs]
    outputs.sort(key=lambda output: output.file)
    if inconsistency := _find_inconsistency(totals, outputs):
        return inconsistency
    _remove_stale_files(storage, output_dir, outputs, build_results, merge_results)
    splits = []
    for split in SPLITS:
        folder = f"{split}/"
        split_shards = [
            msgspec.structs.replace(output, file=output.file.removeprefix(folder))
            for output in outputs
            if output.file.startswith(folder)
        ]
        if split_shards:
            arrow_io.write_dataset_info(storage, f"{output_dir.path}/{split}", split_shards)
            splits.append(split)
        else:  # other inputs may have had rows
            for name in ("state.json", "dataset_info.json"):
                storage.remove(f"{output_dir.path}/{split}/{name}")
    manifest = PretrainingManifest(
        config=set_config,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        duplicates=tuple(duplicates),
        counts=totals,
        run=msgspec.structs.replace(run, finished_at=utc_now()),
    )
    contents = {
        "dataset_dict.json": json.dumps({"splits": splits}, indent=1) + "\n",
        dataset_card.FILE: set_card.format_set_card(manifest),
    }

    def write(name: str) -> None:
        with storage.write(f"{output_dir.path}/{name}") as out:
            out.write(contents[name].encode())

    parallel_for_each(storage, write, contents)
    write_manifest(storage, output_dir.manifest_path, manifest)
    remove_spill_files(storage, output_dir)
    return None


def remove_spill_files(storage: Storage, output_dir: OutputDir) -> None:
    """Remove the spill files of a global shuffle."""
    parallel_for_each(
        storage,
        storage.remove,
        map(output_dir.shuffle_spill_path, storage.list_names(f"{output_dir.work_folder}/shuffle_spill")),
    )


def is_up_to_date(storage: Storage, output_dir: OutputDir, inputs: Sequence[PretrainingInput]) -> bool:
    """Return True if the manifest is of these inputs and all files that it lists are in place."""
    manifest = find_manifest(storage, output_dir.path, PretrainingManifest)
    if manifest is None or list(manifest.inputs) != list(inputs):
        return False
    splits = {output.file.partition("/")[0] for output in manifest.outputs} & set(SPLITS)
    index_files = {"dataset_dict.json", *(f"{split}/state.json" for split in splits)}
    return is_complete(storage, output_dir.path, manifest, present=index_files)


def _sum_results(build_results: Sequence[BuildResult], objective: str) -> PretrainingCounts:
    sources = sorted({source for result in build_results for source in result.tokens_by_year})
    return PretrainingCounts(
        documents=sum(result.documents for result in build_results),
        dropped=dict(sorted((+_sum_counters(result.dropped for result in build_results)).items())),
        rejected=dict(sorted(_sum_counters(result.rejected for result in build_results).items())),
        train=_sum_split(build_results, "train", objective),
        validation=_sum_split(build_results, "validation", objective),
        years={
            source: dict(
                sorted(
                    _sum_counters(
                        source_result.tokens_by_year.get(source, Counter()) for source_result in build_results
                    ).items()
                )
            )
            for source in sources
        },
    )


def _sum_split(build_results: Sequence[BuildResult], split: str, objective: str) -> SplitCounts:
    total = _sum_counters(result.split_counts.get(split, Counter()) for result in build_results)
    loss_reason = OBJECTIVES[objective].loss_reason
    return SplitCounts(
        lost_tokens={loss_reason: total["lost_tokens"]} if loss_reason and total["lost_tokens"] else {},
        documents=total["documents"],
        rows=total["rows"],
        tokens=total["tokens"],
        special_tokens=total["special_tokens"],
        other_document_tokens=total["other_document_tokens"],
        input_tokens=total["input_tokens"],
        unknown_tokens=total["unknown_tokens"],
        unlabelled_rows=total["unlabelled_rows"],
    )


def _sum_counters(counters: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for counter in counters:
        total.update(counter)
    return total


def _find_problem(
    build_results: Sequence[BuildResult], totals: PretrainingCounts, max_rejected: float
) -> str | None:
    """Return the reason why these rows cannot be published, or None."""
    failures = sorted(failure for result in build_results for failure in result.failures)
    if failures:
        return (
            f"{len(failures)} shard{'s' if len(failures) > 1 else ''} cannot be read "
            f"({shorten_list(failures, separator='; ')}). All others are done. Delete them and rerun the "
            "command that made them; then rerun this one"
        )
    rejected = sum(totals.rejected.values())
    if rejected > max_rejected * totals.documents:
        return (
            f"{rejected:,} of {totals.documents:,} documents were rejected, more than --max-rejected "
            f"{max_rejected:g} allows; OUT/rejected/ has the reasons. Nothing is published. The same command "
            "with a higher --max-rejected publishes the rows that are built already"
        )
    if not totals.train.rows:
        near_duplicates = totals.dropped.get("near-duplicate", 0)
        near_duplicates_text = f"{near_duplicates:,} are near duplicates, " if near_duplicates else ""
        return (
            f"there is no row to train on: of {totals.documents:,} documents "
            f"{totals.validation.documents:,} are in the validation split, "
            f"{totals.dropped.get('overlap', 0):,} have their full text in another input, "
            f"{near_duplicates_text}"
            f"{totals.dropped.get('no-tokens', 0):,} have no tokens and {rejected:,} are rejected. "
            "Check --input and --validation-fraction"
        )
    return None


def _find_inconsistency(totals: PretrainingCounts, outputs: Sequence[Shard]) -> str | None:
    """Return a description of totals that do not add up, which is a bug of bioshards; None if all do."""
    for split, split_totals in (("train", totals.train), ("validation", totals.validation)):
        written_rows = sum(output.rows for output in outputs if output.file.startswith(f"{split}/"))
        own = split_totals.tokens - split_totals.special_tokens - split_totals.other_document_tokens
        accounted_tokens = own + sum(split_totals.lost_tokens.values())
        if written_rows != split_totals.rows or accounted_tokens != split_totals.input_tokens:
            return (
                f"{split} does not add up: {written_rows:,} of {split_totals.rows:,} rows are in shards, "
                f"and {accounted_tokens:,} of {split_totals.input_tokens:,} tokens are accounted for. This "
                "is a bug of bioshards, or OUT/.bioshards is damaged: please report it, delete that folder "
                "and rerun"
            )
    return None


def _remove_stale_files(
    storage: Storage,
    output_dir: OutputDir,
    outputs: Sequence[Shard],
    build_results: Sequence[BuildResult],
    merge_results: Sequence[MergeResult],
) -> None:
    """Remove files of other inputs."""
    folders = [f"{output_dir.path}/{folder}" for folder in SPLITS]
    keep = {f"{output_dir.path}/{listed.file}" for listed in outputs}
    sweep(storage, folders, keep, lambda name: name.startswith("data-"))
    current_paths = {output_dir.build_report_path(result.name, "json") for result in build_results}
    current_paths |= {
        output_dir.merged_bucket_path(merge_result.bucket, f"{merge_result.split}.json")
        for merge_result in merge_results
    }
    current_paths |= {output_dir.rejects_path(result.name) for result in build_results if result.rejected}
    sweep(
        storage,
        [
            f"{output_dir.work_folder}/build_reports",
            f"{output_dir.work_folder}/merged_buckets",
            f"{output_dir.path}/rejected",
        ],
        current_paths,
    )
