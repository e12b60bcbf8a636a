"""Publish a finished directory: what is rejected, what ``datasets`` needs, and the manifest last.

No manifest, not finished.  Everything in it but the part called ``run`` is the same for the same
inputs and rules, whatever the runner, the number of workers and the restarts.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from . import judging, overlap, shard_keys, shards
from .ahead import ahead, for_each
from .article_rules import LEFT_OUT
from .excluded import Excluded
from .files import Checked, LocalFiles
from .finishing import Finished
from .manifest import (
    BadFile,
    DocumentCounts,
    DocumentsConfig,
    DocumentsManifest,
    DocumentsRun,
    ExcludedIds,
    InputFile,
    OverlapFile,
    RemovedText,
    Retrieval,
    decode,
    listed_files,
    sweep,
    write_manifest,
)
from .rules import TextRules
from .shards import Shard
from .staging import Staged, ordered
from .workspace import Workspace

NOTICE: Final = (
    "Courtesy of the U.S. National Library of Medicine. NLM neither endorses this product nor "
    "guarantees its content; it does not reflect the most current data available from NLM. "
)
COPYRIGHT: Final = {
    "pubmed_to_shards": "Abstracts may be their publishers' copyright.",
    "pmc_to_shards": "Each article is under the licence in its row.",
}

DUPLICATES: Final = "duplicates.tsv"

_MADE_OF = re.compile(r"(.+-[0-9a-f]{8})\.(?:arrow|keys|digests|json|rejected\.jsonl|tsv)$")
"""File names in the work folder: the source's name and an ending."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run ended.  ``problem`` is None when the manifest is written, else says why it is not."""

    problem: str | None
    documents: int
    sentences: int
    rejected: int
    records: int


def publish(
    files: LocalFiles,
    work: Workspace,
    rules: TextRules,
    config: dict[str, Any],
    staged: list[Staged],
    finished: list[Finished],
    max_rejected: float,
    run: DocumentsRun,
    overlaps: Sequence[OverlapFile] = (),
    excluded: Excluded | None = None,
) -> Outcome:
    """Check the share of rejected input and, where it is small enough, write the manifest.

    Args:
        rules: those that ``config`` has as plain data.
        staged: all sources; ``finished``: what became of the good ones; in any order.
        max_rejected: the share of records, and of files, that may be rejected.
        run: facts about this run; the download times of the inputs are added.
        overlaps: the file that lists the abstracts that the articles hold, if that was asked for.
        excluded: the list of ids that were to be left out, if there is one.
    """
    staged, copies = ordered(staged)
    good = [source for source in staged if not source.bad]
    by_name = {done.name: done for done in finished}
    in_order = [by_name[str(source.name)] for source in good]
    # NLM gives an article one PMID and one PMCID, so that an id is found in one source.
    found = sum(done.listed for done in finished)
    warnings = judging.warnings(config["pipeline"], staged, copies)
    if excluded:
        warnings += judging.of_list(excluded, found)
    manifest = dataclasses.replace(
        _manifest(rules, decode(DocumentsConfig, config), staged, in_order, run),
        overlap=tuple(overlaps),
        excluded=ExcludedIds(excluded.ids, excluded.sha256, found) if excluded else None,
        warnings=tuple(warnings),
    )
    _publish_rejected(files, work, staged)
    totals = manifest.counts
    problem = judging.problem_of(work, staged, manifest, max_rejected)
    outcome = Outcome(problem, totals.documents, totals.sentences, totals.rejected, totals.records)
    if problem is None:
        shards.publish(files, work.output, list(manifest.outputs))
        if manifest.config.keep_dropped:
            dropped = [
                dataclasses.replace(shard, file=os.path.basename(shard.file)) for shard in manifest.dropped
            ]
            shards.publish(files, f"{work.output}/dropped", dropped)
        if manifest.config.dedup == "exact":
            duplicates = (_publish_duplicates(files, work, in_order),)
            manifest = dataclasses.replace(manifest, duplicates=duplicates)
        _sweep(files, work, manifest, good)
        write_manifest(files, work.manifest, manifest)
    return outcome


def _manifest(
    rules: TextRules,
    config: DocumentsConfig,
    staged: list[Staged],
    finished: list[Finished],
    run: DocumentsRun,
) -> DocumentsManifest:
    good = [source for source in staged if not source.bad]
    funnel = _summed(done.funnel for done in finished)
    rejected = _summed(source.rejected for source in staged)
    records = sum(source.records for source in staged)
    counts = _summed(done.counts for done in finished)
    removed = {rule: _removed(rule, finished) for rule in rules.removals()}
    return DocumentsManifest(
        pipeline=config.pipeline,
        notice=NOTICE + COPYRIGHT[config.pipeline],
        config=config,
        newest_file=_newest(good) if config.pipeline == "pubmed_to_shards" else None,
        inputs=tuple(_input(source, done) for source, done in zip(good, finished, strict=True)),
        bad_files=tuple(
            BadFile(source.source.name, source.source.path, *source.bad) for source in staged if source.bad
        ),
        outputs=tuple(shard for done in finished for shard in done.shards),
        dropped=tuple(shard for done in finished for shard in done.dropped),
        duplicates=(),
        overlap=(),
        excluded=None,
        funnel={
            "records": records,
            **{f"rejected: {reason}": count for reason, count in sorted(rejected.items())},
            **{f"dropped: {reason}": funnel[reason] for reason in rules.reasons if reason in funnel},
            "kept": funnel.get("kept", 0),
        },
        counts=DocumentCounts(
            documents=counts.get("documents", 0),
            sentences=counts.get("sentences", 0),
            words=counts.get("words", 0),
            characters=counts.get("characters", 0),
            records=records,
            rejected=sum(rejected.values()),
            deletions=sum(source.deletions for source in staged),
        ),
        cleaning={rule: text for rule, text in removed.items() if not rule.startswith(LEFT_OUT)},
        dropped_parts={
            rule.removeprefix(LEFT_OUT): text for rule, text in removed.items() if rule.startswith(LEFT_OUT)
        },
        years=_summed(done.years for done in finished),
        languages=_summed(done.languages for done in finished),
        licences=_summed(done.licences for done in finished),
        article_types=_summed(done.article_types for done in finished),
        warnings=(),
        run=dataclasses.replace(run, retrieved=_retrieved(good)),
    )


def _removed(rule: str, finished: list[Finished]) -> RemovedText:
    of = [done.cleaning[rule] for done in finished if rule in done.cleaning]
    return RemovedText(sum(text["documents"] for text in of), sum(text["characters"] for text in of))


def _newest(good: list[Staged]) -> str | None:
    """The last of NLM's files, by its number."""
    numbered = [source.source for source in good if source.source.ordered]
    return max(numbered).name if numbered else None


def _input(source: Staged, done: Finished) -> InputFile:
    return InputFile(
        file=source.source.name,
        path=source.source.path,
        files=source.source.files or 1,
        bytes=source.source.size,
        md5=str(source.md5),
        records=source.records,
        deletions=source.deletions,
        rejected=source.rejected,
        funnel=done.funnel,
        shards=tuple(shard.file for shard in done.shards),
    )


def _retrieved(good: list[Staged]) -> Retrieval | None:
    """When the inputs that were fetched were fetched, UTC."""
    dates = {source.source.name: source.source.retrieved for source in good if source.source.retrieved}
    return Retrieval(min(dates.values()), max(dates.values()), dates) if dates else None


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: collections.Counter[str] = collections.Counter()
    for part in parts:
        total.update(part)
    return dict(sorted(total.items()))


def _publish_rejected(files: LocalFiles, work: Workspace, staged: list[Staged]) -> None:
    folder = f"{work.output}/rejected"
    wanted = {f"{source.name}.jsonl": source for source in staged if source.rejected}
    for_each(files, files.remove, [f"{folder}/{name}" for name in files.names(folder) if name not in wanted])

    def copy(name: str) -> None:
        path = work.staged(str(wanted[name].name), "rejected.jsonl")
        with files.open(path) as old, files.write(f"{folder}/{name}") as new:
            while block := old.read(1 << 20):
                new.write(block)

    for_each(files, copy, wanted)
    bad = [source for source in staged if source.bad]
    if bad:
        with files.write(f"{folder}/files.jsonl") as out:
            for source in bad:
                reason, detail = source.bad or ("", "")
                entry = {"file": source.source.path, "position": None, "reason": reason, "detail": detail}
                out.write(json.dumps(entry, ensure_ascii=False).encode() + b"\n")


def _publish_duplicates(files: LocalFiles, work: Workspace, finished: list[Finished]) -> Shard:
    """Write each duplicate's id and the id it duplicates, in the order of sources and positions."""

    def pairs(done: Finished) -> bytes:
        with files.open(work.pairs(done.name)) as file:
            return file.read()

    repeating = [done for done in finished if "duplicate" in done.funnel]
    rows = sum(done.funnel["duplicate"] for done in repeating)
    with files.write(f"{work.output}/{DUPLICATES}") as out:
        checked = Checked(out)
        checked.write(b"id\tduplicate_of\n")
        for lines in ahead(files, pairs, repeating):
            checked.write(lines)
    return Shard(DUPLICATES, rows, checked.size, checked.sha256)


def _sweep(files: LocalFiles, work: Workspace, manifest: DocumentsManifest, good: list[Staged]) -> None:
    """Remove what no source of this run has written: shards and staged files of replaced inputs."""
    names = {source.name for source in good}
    keep = {f"{work.output}/{listed.file}" for listed in listed_files(manifest)}
    sweep(files, [work.output, f"{work.output}/dropped"], keep, _is_shard)
    sweep(files, [work.output], keep, lambda name: name == overlap.FILE)
    if manifest.pipeline == "pmc_to_shards" and not manifest.overlap:
        shard_keys.sweep(files, work, [])

    def replaced(name: str) -> bool:
        made = _MADE_OF.match(name)
        return made is None or made[1] not in names

    sweep(files, [f"{work.folder}/staged", f"{work.folder}/finished"], (), replaced)
    parts = {work.parts(source.source.stamp) for source in good if source.source.files}
    sweep(files, [f"{work.folder}/parts"], parts)


def _is_shard(name: str) -> bool:
    return name.startswith("data-") and name.endswith(".arrow")
