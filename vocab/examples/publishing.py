"""The last steps of a pretraining set: the buckets of a global shuffle, and the manifest, last of all.

What a manifest counts of a split:

=========  =======================================================================================
documents  those in it
rows       ``unlabelled``: those that have no pair, and are in no file for BERT's and ALBERT's own trainers
tokens     all ids in the rows; ``special``: [CLS] and [SEP] of them; ``borrowed``: those of them that are
           another document's text (the second segments of random pairs)
read       the documents' tokens, times the passes over them; ``unknown``: [UNK] among them, in one pass
lost       tokens of them that are in no row, by the reason
=========  =======================================================================================

so that read = tokens - special - borrowed + lost.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus import shards
from bioshards.corpus.ahead import for_each
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.pretraining import PIPELINE, RECORDS, SPLITS
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import Workspace

from . import dealing, writing
from .made import Made
from .making import Making, schema_of

LOST: Final = {"electra": "overflow", "bert": "truncated", "albert": "truncated"}
"""The reason for which an objective's builder loses tokens; plain packing loses none."""
_COUNTED: Final = ("documents", "rows", "tokens", "special", "borrowed", "read", "unknown", "unlabelled")


@dataclass(frozen=True, slots=True)
class Merged:
    """A shard of rows of all portions, or nothing where a bucket has none."""

    split: str
    bucket: int
    outputs: list[dict[str, Any]]


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
        if done["of"] == of and writing.stand(files, work.output, done["outputs"]):
            return Merged(split, bucket, done["outputs"])
        files.remove(report)  # before its shard, of the same name, is another one
    found = dealing.bucket(files, [work.dealt(file) for file in sorted(dealt)], bucket)
    outputs = []  # of no rows, as ``datasets`` opens no shard without any
    if rows := len(found.rows):
        schema = schema_of(making, split, rows, len(found.rows["input_ids"].flatten()))
        batches = dealing.batches(found, schema)
        outputs = making.writer.write(files, work.output, split, name, schema, batches, found.keys)
    files.write_json(report, {"of": of, "outputs": outputs})
    return Merged(split, bucket, outputs)


def publish(
    files: LocalFiles,
    work: Workspace,
    config: dict[str, Any],
    inputs: Sequence[dict[str, Any]],
    made: Sequence[Made],
    merged: Sequence[Merged],
    run: dict[str, Any],
    max_rejected: float,
) -> str | None:
    """Write what ``datasets`` looks for, and the manifest last.

    Args:
        config: what must be the same for the same rows, with the recipe's fields.
        inputs: what is read, as plain data, wherever it lies.
        run: what is true of this run only: when it began, versions, the command; its end is added.

    Returns:
        Why nothing is published; None where it is.
    """
    facts = _counts(made, config["objective"])
    if problem := _problem(made, facts, max_rejected):
        return problem
    outputs = [listed for portion in made for listed in portion.outputs]
    outputs += [listed for bucket in merged for listed in bucket.outputs]
    outputs.sort(key=lambda listed: str(listed["file"]))
    if fault := _fault(facts, outputs):
        return fault
    _sweep(files, work, {listed["file"] for listed in outputs}, made, merged)
    splits = []
    for split in SPLITS:
        folder = f"{split}/"
        of_split = [
            Shard(listed["file"].removeprefix(folder), listed["rows"], listed["bytes"], listed["sha256"])
            for listed in outputs
            if listed["file"].startswith(folder)
        ]
        if of_split:
            shards.publish(files, f"{work.output}/{split}", of_split)
            splits.append(split)
        else:  # of other inputs there may have been some
            for name in ("state.json", "dataset_info.json"):
                files.remove(f"{work.output}/{split}/{name}")
    files.write_json(f"{work.output}/dataset_dict.json", {"splits": splits})
    manifest: dict[str, Any] = {
        "pipeline": PIPELINE,
        "config": config,
        "inputs": inputs,
        "outputs": outputs,
        "counts": facts,
    }
    ended = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    files.write_json(work.manifest, {**manifest, "run": {**run, "finished": ended}})
    tidy(files, work)
    return None


def tidy(files: LocalFiles, work: Workspace) -> None:
    """Remove the rows that were dealt out, once they are in their shards."""
    for_each(files, files.remove, map(work.dealt, files.names(f"{work.folder}/dealt")))


def finished(files: LocalFiles, work: Workspace, inputs: Sequence[dict[str, Any]]) -> bool:
    """Is the manifest there, of these very inputs, with everything that it lists in place?"""
    if not files.exists(work.manifest):
        return False
    manifest = files.read_json(work.manifest)
    sizes = {found.path: found.size for found in files.walk(work.output)}
    splits = {listed["file"].partition("/")[0] for listed in manifest["outputs"]} & set(SPLITS)
    opened_by = {"dataset_dict.json", *(f"{split}/state.json" for split in splits)}
    return (
        manifest["inputs"] == inputs
        and all(f"{work.output}/{name}" in sizes for name in opened_by)
        and all(sizes.get(f"{work.output}/{one['file']}") == one["bytes"] for one in manifest["outputs"])
    )


def _counts(made: Sequence[Made], objective: str) -> dict[str, Any]:
    splits: dict[str, dict[str, Any]] = {}
    for split in SPLITS:
        total = _summed(portion.splits.get(split, Counter()) for portion in made)
        lost = {LOST[objective]: total["lost"]} if total["lost"] else {}
        splits[split] = {"lost": lost} | {what: total[what] for what in _COUNTED}
    sources = sorted({source for portion in made for source in portion.years})
    return {
        "documents": sum(portion.documents for portion in made),
        "dropped": dict(sorted((+_summed(portion.dropped for portion in made)).items())),
        "rejected": dict(sorted(_summed(portion.rejected for portion in made).items())),
        **splits,
        "years": {
            source: dict(sorted(_summed(one.years.get(source, Counter()) for one in made).items()))
            for source in sources
        },
    }


def _summed(parts: Iterable[Counter[str]]) -> Counter[str]:
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part)
    return total


def _problem(made: Sequence[Made], facts: dict[str, Any], max_rejected: float) -> str | None:
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
    rejected = sum(facts["rejected"].values())
    if rejected > max_rejected * facts["documents"]:
        return (
            f"{rejected:,} of {facts['documents']:,} documents were rejected, more than --max-rejected "
            f"{max_rejected:g} allows. OUT/rejected/ says why; nothing is published. With a higher "
            "--max-rejected the same command publishes what is made already"
        )
    if not facts["train"]["rows"]:
        return (
            f"there is nothing to train on: of {facts['documents']:,} documents "
            f"{facts['validation']['documents']:,} are held out, "
            f"{facts['dropped'].get('in-full', 0):,} are held in full, "
            f"{facts['dropped'].get('no-tokens', 0):,} have no tokens and {rejected:,} are rejected. "
            "Look at --input and --validation"
        )
    return None


def _fault(facts: dict[str, Any], outputs: Sequence[dict[str, Any]]) -> str | None:
    """What does not add up, which is nobody's fault but ours; None where all does."""
    for split in SPLITS:
        of = facts[split]
        shards_of = [one for one in outputs if one["file"].startswith(f"{split}/")]
        written = sum(one["rows"] for one in shards_of)
        text = of["tokens"] - of["special"] - of["borrowed"] + sum(of["lost"].values())
        if written != of["rows"] or text != of["read"]:
            return (
                f"{split} does not add up: {written:,} of {of['rows']:,} rows are in shards, and {text:,} of "
                f"{of['read']:,} tokens are accounted for. This is a fault of bioshards, or of what lies in "
                "OUT/.bioshards: please report it, delete that folder and run again"
            )
    return None


def _sweep(
    files: LocalFiles,
    work: Workspace,
    outputs: set[str],
    made: Sequence[Made],
    merged: Sequence[Merged],
) -> None:
    """Remove what was made of other inputs."""
    surplus = []
    for folder in (*SPLITS, *RECORDS.values()):
        for name in files.names(f"{work.output}/{folder}"):
            if name.startswith(("data-", "pretrain_data.")) and f"{folder}/{name}" not in outputs:
                surplus.append(f"{work.output}/{folder}/{name}")
    current = {work.made(portion.name, "json") for portion in made}
    current |= {work.merged(one.bucket, f"{one.split}.json") for one in merged}
    current |= {work.rejected(portion.name) for portion in made if portion.rejected}
    for folder in (f"{work.folder}/made", f"{work.folder}/merged", f"{work.output}/rejected"):
        paths = (f"{folder}/{name}" for name in files.names(folder))
        surplus += [path for path in paths if path not in current]
    for_each(files, files.remove, surplus)
