"""The steps of counting the words of finished directories, each of them one call for one shard or bucket.

Count a shard, merge a bucket, publish: between them pass names and small reports, and words lie in files, so
that the calls may run anywhere and in any order (``beam run shards_to_words``).  The counts of a shard are
named by its SHA-256: a shard that has not changed is not counted again.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.files import Checked, LocalFiles
from bioshards.corpus.manifest import (
    InputDocuments,
    PrunedWords,
    ValidationWords,
    WordCounts,
    WordsConfig,
    WordsManifest,
    WordsRun,
    decode,
    find_manifest,
    is_complete,
    sweep,
    utc_now,
    write_manifest,
)
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import Workspace

from . import counts, inputs
from .counts import Counting
from .inputs import Documents

WORDS: Final = "words.tsv"
HELD_OUT: Final = "validation-words.tsv"
_LINES: Final = 65536
"""Lines written at a time."""


@dataclass(frozen=True, slots=True)
class CountedShard:
    """What is known of a shard once it is counted.

    Attributes:
        name: names its counts in the work folder: its SHA-256.
        documents, tokens: those to train on; ``held_out_documents``, ``held_out_tokens``: those held out.
        distinct: words of all of them.
        bad: why it cannot be used.
    """

    name: str
    documents: int = 0
    held_out_documents: int = 0
    tokens: int = 0
    held_out_tokens: int = 0
    distinct: int = 0
    bad: str | None = None


@dataclass(frozen=True, slots=True)
class MergedBucket:
    """What is in one bucket of all shards' words; ``pruned``: words that are too rare, and their tokens."""

    number: int
    distinct: int
    held_out_distinct: int
    pruned_distinct: int
    pruned_tokens: int


def count(files: LocalFiles, work: Workspace, folder: str, shard: Shard, counting: Counting) -> CountedShard:
    """Count one of a directory's shards, unless that is done already."""
    report = work.counts(shard.sha256, "json")
    if files.exists(report):
        return CountedShard(**files.read_json(report)["counted"])
    path = f"{folder}/{shard.file}"
    if damage := inputs.damage(files, path, shard):
        return CountedShard(shard.sha256, bad=f"{path}: {damage}")
    started = time.monotonic()
    found = counts.of_shard(files, folder, shard, counting)
    counts.write(files, work.counts(shard.sha256, "arrow"), found)
    counted = CountedShard(
        name=shard.sha256,
        documents=found.documents,
        held_out_documents=found.held_out_documents,
        tokens=found.words.total(),
        held_out_tokens=found.held_out.total(),
        distinct=len(found.words.keys() | found.held_out.keys()),
    )
    seconds = round(time.monotonic() - started, 3)
    files.write_json(report, {"file": shard.file, "seconds": seconds, "counted": asdict(counted)})
    return counted


def merge(
    files: LocalFiles, work: Workspace, names: Iterable[str], bucket: int, min_count: int
) -> MergedBucket:
    """Write one bucket of all counted shards' words and of those held out, as sorted lines."""
    table = counts.merge(files, [work.counts(name, "arrow") for name in sorted(names)], bucket)
    _write(files, work.merged(bucket, WORDS), counts.lines(table, "count", min_count))
    _write(files, work.merged(bucket, HELD_OUT), counts.lines(table, "held_out"))
    times = table["count"]
    rare = table.filter(pc.and_(pc.greater(times, 0), pc.less(times, min_count)))["count"]
    return MergedBucket(
        number=bucket,
        distinct=_positive(times),
        held_out_distinct=_positive(table["held_out"]),
        pruned_distinct=len(rare),
        pruned_tokens=pc.sum(rare, min_count=0).as_py(),
    )


def publish(
    files: LocalFiles,
    work: Workspace,
    config: dict[str, Any],
    inputs: Sequence[InputDocuments],
    counted: Sequence[CountedShard],
    merged: Sequence[MergedBucket],
    run: WordsRun,
) -> str | None:
    """Write the words of all buckets as one sorted list, those held out as another, and the manifest last.

    Args:
        config: what must be the same for the same words, with the fields of ``Counting`` and ``min_count``.
        inputs: what is read, wherever it lies.
        run: facts about this run; its end is added.

    Returns:
        Why nothing is published; None where it is.
    """
    facts = _counts(counted, merged)
    wanted = decode(WordsConfig, config)
    if problem := _problem(counted, facts, wanted.min_count):
        return problem
    buckets = sorted(bucket.number for bucket in merged)
    outputs = []
    for name in (WORDS, HELD_OUT) if wanted.validation_fraction else (WORDS,):
        paths = [work.merged(bucket, name) for bucket in buckets]
        outputs.append(_joined(files, paths, work.output, name))
    names = {shard.name for shard in counted}
    sweep(files, [f"{work.folder}/counts"], (), lambda name: name.partition(".")[0] not in names)
    manifest = WordsManifest(
        config=wanted,
        inputs=tuple(inputs),
        outputs=tuple(outputs),
        counts=facts,
        run=dataclasses.replace(run, finished=utc_now()),
    )
    write_manifest(files, work.manifest, manifest)
    return None


def finished(files: LocalFiles, work: Workspace, inputs: Sequence[Documents]) -> bool:
    """Is the manifest there, of these very inputs, with everything that it lists in place?"""
    manifest = find_manifest(files, work.output, WordsManifest)
    return (
        manifest is not None
        and list(manifest.inputs) == [documents.summary for documents in inputs]
        and is_complete(files, work.output, manifest)
    )


def _write(files: LocalFiles, path: str, lines: Iterator[bytes]) -> Shard:
    """Write lines as they come."""
    rows = 0
    with files.write(path) as file:
        checked = Checked(file)
        while block := list(itertools.islice(lines, _LINES)):
            checked.write(b"".join(block))
            rows += len(block)
    return Shard(path.rpartition("/")[2], rows, checked.size, checked.sha256)


def _joined(files: LocalFiles, paths: Sequence[str], folder: str, name: str) -> Shard:
    """One sorted file of several."""
    with ExitStack() as stack:
        opened = [stack.enter_context(files.open(path)) for path in paths]
        return _write(files, f"{folder}/{name}", counts.merge_lines(opened))


def _positive(column: pa.ChunkedArray) -> int:
    """How many are above 0."""
    return int(pc.sum(pc.greater(column, 0), min_count=0).as_py())


def _counts(counted: Sequence[CountedShard], merged: Sequence[MergedBucket]) -> WordCounts:
    return WordCounts(
        documents=sum(shard.documents for shard in counted),
        tokens=sum(shard.tokens for shard in counted),
        distinct=sum(bucket.distinct for bucket in merged),
        pruned=PrunedWords(
            distinct=sum(bucket.pruned_distinct for bucket in merged),
            tokens=sum(bucket.pruned_tokens for bucket in merged),
        ),
        validation=ValidationWords(
            documents=sum(shard.held_out_documents for shard in counted),
            tokens=sum(shard.held_out_tokens for shard in counted),
            distinct=sum(bucket.held_out_distinct for bucket in merged),
        ),
    )


def _problem(counted: Sequence[CountedShard], facts: WordCounts, min_count: int) -> str | None:
    """Why these counts cannot be published; None where they can."""
    bad = sorted(shard.bad for shard in counted if shard.bad)
    if bad:
        more = f" (and {len(bad) - 5} more)" if len(bad) > 5 else ""
        return (
            f"{len(bad)} of {len(counted)} shards cannot be used ({'; '.join(bad[:5])}{more}). All others "
            "are counted. Delete them and run the command that made them once more, which makes them anew; "
            "then run this one again"
        )
    if facts.distinct == facts.pruned.distinct:
        return (
            f"no word is left: {facts.documents:,} documents to train on have {facts.distinct:,} "
            f"words, none of them {min_count} times. Look at --input, --hold-out and --min-count"
        )
    return None
