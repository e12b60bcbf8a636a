"""Last steps of a pretraining set: merge the buckets of a global shuffle, and publish.

``SplitCounts`` in corpus/manifest.py documents the counts of a split.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import msgspec

from bioshards.corpus.errors import shorten_list
from bioshards.corpus.lifecycle.job import PublishResult, finish_manifest
from bioshards.corpus.manifest import (
    PretrainingCounts,
    PretrainingManifest,
    Shard,
    SplitCounts,
    convert,
    sweep,
    write_manifest,
)
from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.stats import dataset_card
from bioshards.corpus.stats.dataset_card import NOTICE_BY_PIPELINE, format_settings, format_table
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.vocab.pretraining import global_shuffle
from bioshards.vocab.pretraining.build import BuildResult, has_all_outputs, make_schema, write_shard
from bioshards.vocab.pretraining.document_filters import SignedShard, publish_duplicates
from bioshards.vocab.pretraining.job import PretrainingJob
from bioshards.vocab.pretraining.objectives.example_recipes import OBJECTIVES


@dataclass(frozen=True, slots=True)
class MergeResult:
    """One merged bucket: its shard of rows, or no output if the bucket is empty."""

    split: str
    bucket: int
    outputs: list[Shard]
    is_cached: bool = field(default=False, compare=False)

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        rows = sum(shard.rows for shard in self.outputs)
        return {"skipped": int(self.is_cached), f"{self.split}_rows": rows}


def list_buckets(job: PretrainingJob, built: Sequence[BuildResult]) -> list[tuple[str, int]]:
    """List the buckets of spilled rows by split; none if a group could not be built."""
    if any(result.failures for result in built):
        return []
    return [
        (split, bucket)
        for split in SPLITS
        if any(result.spill_files.get(split) for result in built)
        for bucket in range(job.num_buckets[split])
    ]


def merge_bucket(
    job: PretrainingJob, split_and_bucket: tuple[str, int], built: Sequence[BuildResult]
) -> MergeResult:
    """Write one bucket of spilled rows as a shard, or return the cached result."""
    storage, output = job.storage, job.output
    split, bucket = split_and_bucket
    spill_files = sorted(file for result in built for file in result.spill_files.get(split, []))
    name = f"data-{bucket:05d}-of-{job.num_buckets[split]:05d}"
    report_path = output.merged_bucket_path(bucket, f"{split}.json")
    cache_key = arrow_io.combine_digests([name, *spill_files])
    if storage.exists(report_path):
        report = storage.read_json(report_path)
        cached_outputs = convert(report["outputs"], list[Shard])
        if report["cache_key"] == cache_key and has_all_outputs(storage, output.path, cached_outputs):
            return MergeResult(split, bucket, cached_outputs, is_cached=True)
        storage.remove(report_path)  # before a new shard of the same name
    spill_paths = [output.shuffle_spill_path(file) for file in spill_files]
    shuffle_bucket = global_shuffle.read_bucket(storage, spill_paths, bucket)
    outputs: list[Shard] = []  # no file for no rows: ``datasets`` opens no empty shard
    if rows := len(shuffle_bucket.rows):
        tokens = len(shuffle_bucket.rows["input_ids"].flatten())
        schema = make_schema(job, job.load_encoder(), split, rows, tokens)
        batches = global_shuffle.iter_batches(shuffle_bucket, schema)
        outputs = [write_shard(storage, output.path, f"{split}/{name}.arrow", schema, batches)]
    storage.write_json(report_path, {"cache_key": cache_key, "outputs": msgspec.to_builtins(outputs)})
    return MergeResult(split, bucket, outputs)


def publish(
    job: PretrainingJob,
    built: Sequence[BuildResult],
    merged: Sequence[MergeResult],
    signed: Sequence[SignedShard] = (),
    duplicates: Sequence[str] = (),
) -> PublishResult:
    """Write the index files of ``datasets``, and the manifest last.

    Args:
        duplicates: file of the decisions on near duplicates of ``signed``, if they are left out.
    """
    totals = _sum_results(built, job.config.objective)
    if problem := _find_problem(built, totals, job.max_rejected):
        return PublishResult(problem)
    outputs = [output for result in built for output in result.outputs]
    outputs += [output for merge_result in merged for output in merge_result.outputs]
    outputs.sort(key=lambda output: output.file)
    if inconsistency := _find_inconsistency(totals, outputs):
        return PublishResult(inconsistency)
    duplicate_lists = [publish_duplicates(job, signed, path) for path in duplicates]
    _remove_stale_files(job, outputs, built, merged)
    manifest = PretrainingManifest(
        config=job.config,
        inputs=job.inputs,
        outputs=tuple(outputs),
        duplicates=tuple(duplicate_lists),
        counts=totals,
        run=job.run,
    )
    splits = _publish_splits(job, outputs)
    contents = {
        "dataset_dict.json": json.dumps({"splits": splits}, indent=1) + "\n",
        dataset_card.FILE: format_set_card(manifest),
    }

    def write(name: str) -> None:
        with job.storage.write(f"{job.output.path}/{name}") as out:
            out.write(contents[name].encode())

    parallel_for_each(job.storage, write, contents)
    write_manifest(job.storage, job.output.manifest_path, finish_manifest(manifest, job.inputs_key))
    remove_spill_files(job)
    return PublishResult(None)


def _publish_splits(job: PretrainingJob, outputs: Sequence[Shard]) -> list[str]:
    """Write the index files of the splits that have rows; return the names of these splits."""
    splits = []
    for split in SPLITS:
        folder = f"{split}/"
        split_shards = [
            msgspec.structs.replace(output, file=output.file.removeprefix(folder))
            for output in outputs
            if output.file.startswith(folder)
        ]
        if split_shards:
            arrow_io.write_dataset_info(job.storage, f"{job.output.path}/{split}", split_shards)
            splits.append(split)
        else:  # other inputs may have had rows
            for name in ("state.json", "dataset_info.json"):
                job.storage.remove(f"{job.output.path}/{split}/{name}")
    return splits


def remove_spill_files(job: PretrainingJob) -> None:
    """Remove the spill files of a global shuffle."""
    names = job.storage.list_names(f"{job.output.work_folder}/shuffle_spill")
    parallel_for_each(job.storage, job.storage.remove, map(job.output.shuffle_spill_path, names))


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
    job: PretrainingJob,
    outputs: Sequence[Shard],
    build_results: Sequence[BuildResult],
    merge_results: Sequence[MergeResult],
) -> None:
    """Remove files of other inputs."""
    folders = [f"{job.output.path}/{folder}" for folder in SPLITS]
    keep = {f"{job.output.path}/{listed.file}" for listed in outputs}
    sweep(job.storage, folders, keep, lambda name: name.startswith("data-"))
    current_paths = {job.output.work_path(f"build_reports/{result.name}.json") for result in build_results}
    current_paths |= {
        job.output.merged_bucket_path(merge_result.bucket, f"{merge_result.split}.json")
        for merge_result in merge_results
    }
    current_paths |= {
        f"{job.output.path}/rejected/{result.name}.jsonl" for result in build_results if result.rejected
    }
    sweep(
        job.storage,
        [
            f"{job.output.work_folder}/build_reports",
            f"{job.output.work_folder}/merged_buckets",
            f"{job.output.path}/rejected",
        ],
        current_paths,
    )


def format_set_card(manifest: PretrainingManifest) -> str:
    """Return README.md, the card of the set on Hugging Face's hub, without paths and times."""
    config, counts = manifest.config, manifest.counts
    totals = {"train": counts.train, "validation": counts.validation}
    splits = [split for split in SPLITS if totals[split].rows]
    settings = msgspec.to_builtins(config)
    for name in ("pipeline", "format", "vocabulary", "library_versions"):
        del settings[name]
    inputs = [
        (f"`{one.pipeline}`", f"{one.documents:,}", f"`{one.shards_sha256}`") for one in manifest.inputs
    ]
    rows = [(split, f"{totals[split].rows:,}", f"{totals[split].tokens:,}") for split in splits]
    notices = dict.fromkeys(NOTICE_BY_PIPELINE[one.pipeline] for one in manifest.inputs)
    data_files = "\n".join(f"  - split: {split}\n    path: {split}/data-*.arrow" for split in splits)
    return f"""\
---
license: other
task_categories:
- fill-mask
tags:
- biology
- medical
configs:
- config_name: default
  data_files:
{data_files}
---

# Pretraining rows for {config.objective.upper()}

Rows of up to {config.max_seq_length} token ids, of {counts.documents:,} documents, made by bioshards
(`beam run {manifest.pipeline}`). The vocabulary has {config.vocabulary.size:,} entries and SHA-256
`{config.vocabulary.sha256}`.

{format_table(("split", "rows", "tokens"), rows)}

## How it was made

{format_table(("documents of", "number", "SHA-256 of their shards"), inputs)}

{format_settings(settings)}

`manifest.json` has the shards with SHA-256, and what became of every token.

## Rights

{" ".join(notices)}
"""
