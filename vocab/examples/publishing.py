"""The last steps of a pretraining set: the buckets of a global shuffle, and the manifest, last of all.

SplitCounts in corpus/manifest says what a manifest counts of a split.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus import shards
from bioshards.corpus.ahead import for_each
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import (
    PretrainingConfig,
    PretrainingCounts,
    PretrainingInput,
    PretrainingManifest,
    PretrainingRun,
    SplitCounts,
    decode,
    encode,
    find_manifest,
    is_complete,
    sweep,
    utc_now,
    write_manifest,
)
from bioshards.corpus.pretraining import RECORDS, SPLITS
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import Workspace

from . import dealing, writing
from .made import Made
from .making import Making, schema_of

LOST: Final = {"electra": "overflow", "bert": "truncated", "albert": "truncated"}
"""The reason for which an objective's builder loses tokens; plain packing loses none."""


@dataclass(frozen=True, slots=True)
class Merged:
    """A shard of rows of all portions, or nothing where a bucket has none."""

    split: str
    bucket: int
    outputs: list[Shard]


def merge(
    files: LocalFiles, work: Workspace, making: Making, dealt: Sequence[str], split: str, bucket: int
) -> Merged:
    """Write one bucket of the rows that portions have dealt out, unless that is done already.

    Args:
        dealt: the files, of this split, that the rows are in.
    """
    name = f"data-{bucket:05d}-of-{making.buckets[split]:05d}"
    report = work.merged(bucket, f"{split}.json")
    of = shards.digest([name, *sorted(dealt)])
    if files.exists(report):
        done = files.read_json(report)
        there = [decode(Shard, listed) for listed in done["outputs"]]
        if done["of"] == of and writing.stand(files, work.output, there):
            return Merged(split, bucket, there)
        files.remove(report)  # before its shard, of the same name, is another one
    found = dealing.bucket(files, [work.dealt(file) for file in sorted(dealt)], bucket)
    outputs: list[Shard] = []  # of no rows, as ``datasets`` opens no shard without any
    if rows := len(found.rows):
        schema = schema_of(making, split, rows, len(found.rows["input_ids"].flatten()))
        batches = dealing.batches(found, schema)
        outputs = making.writer.write(files, work.output, split, name, schema, batches, found.keys)
    files.write_json(report, {"of": of, "outputs": encode(outputs)})
    return Merged(split, bucket, outputs)


def publish(
    files: LocalFiles,
    work: Workspace,
    config: dict[str, Any],
    inputs: Sequence[PretrainingInput],
    made: Sequence[Made],
    merged: Sequence[Merged],
    run: PretrainingRun,
    max_rejected: float,
) -> str | None:
    """Write what ``datasets`` looks for, and the manifest last.

    Args:
        config: what must be the same for the same rows, with the recipe's fields.
        inputs: what is read, wherever it lies.
        run: facts about this run; its end is added.

    Returns:
        Why nothing is published; None where it is.
    """
    wanted = decode(PretrainingConfig, config)
    facts = _counts(made, wanted.objective)
    if problem := _problem(made, facts, max_rejected):
        return problem
    outputs = [listed for portion in made for listed in portion.outputs]
    outputs += [listed for bucket in merged for listed in bucket.outputs]
    outputs.sort(key=lambda listed: listed.file)
    if fault := _fault(facts, outputs):
        return fault
    _sweep(files, work, outputs, made, merged)
    splits = []
    for split in SPLITS:
        folder = f"{split}/"
        of_split = [
            dataclasses.replace(listed, file=listed.file.removeprefix(folder))
            for listed in outputs
            if listed.file.startswith(folder)
        ]
        if of_split:
            shards.publish(files, f"{work.output}/{split}", of_split)
            splits.append(split)
        else:  # of other inputs there may have been some
            for name in ("state.json", "dataset_info.json"):
                files.remove(f"{work.output}/{split}/{name}")
    files.write_json(f"{work.output}/dataset_dict.json", {"splits": splits})
    manifest = PretrainingManifest(
        config=wanted,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        counts=facts,
        run=dataclasses.replace(run, finished=utc_now()),
    )
    write_manifest(files, work.manifest, manifest)
    tidy(files, work)
    return None


def tidy(files: LocalFiles, work: Workspace) -> None:
    """Remove the rows that were dealt out, once they are in their shards."""
    for_each(files, files.remove, map(work.dealt, files.names(f"{work.folder}/dealt")))


def finished(files: LocalFiles, work: Workspace, inputs: Sequence[PretrainingInput]) -> bool:
    """Is the manifest there, of these very inputs, with everything that it lists in place?"""
    manifest = find_manifest(files, work.output, PretrainingManifest)
    if manifest is None or list(manifest.inputs) != list(inputs):
        return False
    splits = {listed.file.partition("/")[0] for listed in manifest.outputs} & set(SPLITS)
    opened_by = {"dataset_dict.json", *(f"{split}/state.json" for split in splits)}
    return is_complete(files, work.output, manifest, present=opened_by)


def _counts(made: Sequence[Made], objective: str) -> PretrainingCounts:
    sources = sorted({source for portion in made for source in portion.years})
    return PretrainingCounts(
        documents=sum(portion.documents for portion in made),
        dropped=dict(sorted((+_summed(portion.dropped for portion in made)).items())),
        rejected=dict(sorted(_summed(portion.rejected for portion in made).items())),
        train=_of_split(made, "train", objective),
        validation=_of_split(made, "validation", objective),
        years={
            source: dict(sorted(_summed(one.years.get(source, Counter()) for one in made).items()))
            for source in sources
        },
    )


def _of_split(made: Sequence[Made], split: str, objective: str) -> SplitCounts:
    total = _summed(portion.splits.get(split, Counter()) for portion in made)
    return SplitCounts(
        lost_tokens={LOST[objective]: total["lost_tokens"]} if total["lost_tokens"] else {},
        documents=total["documents"],
        rows=total["rows"],
        tokens=total["tokens"],
        special_tokens=total["special_tokens"],
        other_document_tokens=total["other_document_tokens"],
        input_tokens=total["input_tokens"],
        unknown=total["unknown"],
        unlabelled=total["unlabelled"],
    )


def _summed(parts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def _problem(made: Sequence[Made], facts: PretrainingCounts, max_rejected: float) -> str | None:
    """Why these rows cannot be published; None where they can."""
    bad = sorted(shard for portion in made for shard in portion.bad)
    if bad:
        more = f" (and {len(bad) - 5} more)" if len(bad) > 5 else ""
        return (
            f"{len(bad)} shard{'s' if len(bad) > 1 else ''} cannot be used ({'; '.join(bad[:5])}{more}). All "
            "others are done. "
            "Delete them and run the command that made them once more, which makes them anew; then run this "
            "one again"
        )
    rejected = sum(facts.rejected.values())
    if rejected > max_rejected * facts.documents:
        return (
            f"{rejected:,} of {facts.documents:,} documents were rejected, more than --max-rejected "
            f"{max_rejected:g} allows. OUT/rejected/ says why; nothing is published. With a higher "
            "--max-rejected the same command publishes what is made already"
        )
    if not facts.train.rows:
        return (
            f"there is nothing to train on: of {facts.documents:,} documents "
            f"{facts.validation.documents:,} are held out, "
            f"{facts.dropped.get('in-full', 0):,} are held in full, "
            f"{facts.dropped.get('no-tokens', 0):,} have no tokens and {rejected:,} are rejected. "
            "Look at --input and --validation"
        )
    return None


def _fault(facts: PretrainingCounts, outputs: Sequence[Shard]) -> str | None:
    """What does not add up, which is nobody's fault but ours; None where all does."""
    for split, of in (("train", facts.train), ("validation", facts.validation)):
        written = sum(one.rows for one in outputs if one.file.startswith(f"{split}/"))
        own = of.tokens - of.special_tokens - of.other_document_tokens
        text = own + sum(of.lost_tokens.values())
        if written != of.rows or text != of.input_tokens:
            return (
                f"{split} does not add up: {written:,} of {of.rows:,} rows are in shards, and {text:,} of "
                f"{of.input_tokens:,} tokens are accounted for. This is a fault of bioshards, or of what "
                "lies in OUT/.bioshards: please report it, delete that folder and run again"
            )
    return None


def _sweep(
    files: LocalFiles,
    work: Workspace,
    outputs: Sequence[Shard],
    made: Sequence[Made],
    merged: Sequence[Merged],
) -> None:
    """Remove what was made of other inputs."""
    folders = [f"{work.output}/{folder}" for folder in (*SPLITS, *RECORDS.values())]
    keep = {f"{work.output}/{listed.file}" for listed in outputs}
    sweep(files, folders, keep, lambda name: name.startswith(("data-", "pretrain_data.")))
    current = {work.made(portion.name, "json") for portion in made}
    current |= {work.merged(one.bucket, f"{one.split}.json") for one in merged}
    current |= {work.rejected(portion.name) for portion in made if portion.rejected}
    sweep(files, [f"{work.folder}/made", f"{work.folder}/merged", f"{work.output}/rejected"], current)
