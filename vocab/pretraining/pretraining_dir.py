"""Last step of a pretraining set: check and sum the built groups, and publish.

``SplitCounts`` in corpus/manifest.py documents the counts of a split.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from bioshards.corpus.errors import shorten_list
from bioshards.corpus.lifecycle.job import PublishResult, finish_manifest
from bioshards.corpus.manifest import (
    PretrainingCounts,
    PretrainingManifest,
    Shard,
    SplitCounts,
    sweep,
    write_manifest,
)
from bioshards.corpus.output.output_layout import SPLITS
from bioshards.corpus.output.rejects import describe_rejected, is_over_limit
from bioshards.corpus.output.work_files import describe_damaged
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.stats import dataset_card, report
from bioshards.corpus.stats.dataset_card import (
    NOTICE_BY_PIPELINE,
    choose_size,
    format_settings,
    format_table,
)
from bioshards.corpus.stats.directory_stats import summarise_set
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.vocab.pretraining.build import BuildResult, PretrainingJob
from bioshards.vocab.pretraining.example_recipes import OBJECTIVES

_DRAWN_ROWS: Final = 3


def publish(job: PretrainingJob, built: Sequence[BuildResult]) -> PublishResult:
    """Write the index files of ``datasets``, and the manifest last."""
    totals = _sum_results(built, job.config.objective)
    outputs = sorted((output for result in built for output in result.outputs), key=lambda item: item.file)
    notices = describe_damaged(path for result in built for path in result.damaged)
    if problem := _find_problem(job, built, totals) or _find_inconsistency(totals, outputs):
        return PublishResult(problem, notices=notices)
    _remove_stale_files(job, outputs, built)
    manifest = PretrainingManifest(
        config=job.config, inputs=job.inputs, outputs=tuple(outputs), counts=totals, run=job.run
    )
    splits = _publish_splits(job, outputs)
    contents = {
        "dataset_dict.json": json.dumps({"splits": splits}, indent=1) + "\n",
        dataset_card.FILE: format_set_card(manifest),
        report.FILE: render_set_page(job, manifest),
    }

    def write(name: str) -> None:
        with job.storage.write(f"{job.output.path}/{name}") as file:
            file.write(contents[name].encode())

    parallel_for_each(job.storage, write, contents)
    write_manifest(job.storage, job.output.manifest_path, finish_manifest(manifest, job.inputs_key))
    return PublishResult(None, notices=notices)


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


def _sum_results(results: Sequence[BuildResult], objective: str) -> PretrainingCounts:
    sources = sorted({source for result in results for source in result.tokens_by_year})
    return PretrainingCounts(
        documents=sum(result.documents for result in results),
        dropped=dict(+_sum_counts(result.dropped for result in results)),
        rejected=_sum_counts(result.rejected for result in results),
        train=_sum_split(results, "train", objective),
        validation=_sum_split(results, "validation", objective),
        years={
            source: _sum_counts(result.tokens_by_year.get(source, {}) for result in results)
            for source in sources
        },
    )


def _sum_split(results: Sequence[BuildResult], split: str, objective: str) -> SplitCounts:
    total = _sum_counts(result.split_counts.get(split, {}) for result in results)
    loss_reason, lost_tokens = OBJECTIVES[objective].loss_reason, total["lost_tokens"]
    names = [name for name in SplitCounts.__struct_fields__ if name != "lost_tokens"]
    return SplitCounts(
        lost_tokens={loss_reason: lost_tokens} if loss_reason and lost_tokens else {},
        **{name: total[name] for name in names},
    )


def _sum_counts(counts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """Return the sums by name, sorted."""
    total: Counter[str] = Counter()
    for count in counts:
        total.update(count)
    return Counter(dict(sorted(total.items())))


def _find_problem(
    job: PretrainingJob, build_results: Sequence[BuildResult], totals: PretrainingCounts
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
    if is_over_limit(rejected, totals.documents, job.max_rejected):
        paths = [
            f"{job.output.path}/rejected/{result.name}.jsonl" for result in build_results if result.rejected
        ]
        return (
            f"{rejected:,} of {totals.documents:,} documents were rejected, more than --max-rejected "
            f"{job.max_rejected:g} allows: {describe_rejected(job.storage, sorted(paths), rejected)}. "
            "Nothing is published. The same command with a higher --max-rejected publishes the rows that are "
            "built already"
        )
    if not totals.train.rows:
        return (
            f"there is no row to train on: of {totals.documents:,} documents "
            f"{totals.validation.documents:,} are in the validation split, "
            f"{totals.dropped.get('overlap', 0):,} have their full text in another input, "
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
    job: PretrainingJob, outputs: Sequence[Shard], results: Sequence[BuildResult]
) -> None:
    """Remove files of other inputs."""
    storage, output = job.storage, job.output
    shard_paths = {f"{output.path}/{shard.file}" for shard in outputs}
    split_folders = [f"{output.path}/{split}" for split in SPLITS]
    sweep(storage, split_folders, shard_paths, lambda name: name.startswith("data-"))
    report_paths = {output.work_path(f"build_reports/{result.name}.json") for result in results}
    sweep(storage, [output.work_path("build_reports")], report_paths)
    rejects_paths = {f"{output.path}/rejected/{result.name}.jsonl" for result in results if result.rejected}
    sweep(storage, [f"{output.path}/rejected"], rejects_paths)


def render_set_page(job: PretrainingJob, manifest: PretrainingManifest) -> str:
    """Render report.html: what the manifest counts, and some rows as pieces; paths and times are left out."""
    pieces = {token_id: piece for piece, token_id in job.load_encoder().get_vocab().items()}
    shards = [shard for shard in manifest.outputs if shard.file.startswith("train/")]
    drawn: list[dict[str, Any]] = []
    for number in range(min(_DRAWN_ROWS, manifest.counts.train.rows)):
        # Rows of a shard are in random order: its first ones are drawn by the seed of the set.
        shard = shards[number * len(shards) // _DRAWN_ROWS]
        batch = next(arrow_io.read_stream(job.storage, f"{job.output.path}/{shard.file}"))
        for row in batch.slice(number if len(shards) < _DRAWN_ROWS else 0, 1).to_pylist():
            texts, start = [pieces[token_id] for token_id in row["input_ids"]], row["split"]
            segments = [texts[:start], texts[start:]] if start else [texts]
            drawn.append({"name": shard.file, "label": row.get("label"), "segments": segments})
    return report.render_stats_page({**summarise_set(manifest), "drawn": drawn}, manifest.pipeline)


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
    is_english = {one.pipeline for one in manifest.inputs} == {"pubmed_to_shards"}
    data_files = "\n".join(f"  - split: {split}\n    path: {split}/data-*.arrow" for split in splits)
    return f"""\
---
license: other
{"language: en" if is_english else "multilinguality: multilingual"}
size_categories:
- {choose_size(sum(total.rows for total in totals.values()))}
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

`report.html` shows what became of the text, and some rows.
`manifest.json` has the shards with SHA-256, and what became of every token.

## Rights

{" ".join(notices)}
"""
