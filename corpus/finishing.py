"""Finish one source: its staged shard less the verdicts on it gives its final shards.

A final shard is written again only when the verdicts on its source have changed, so that a day's
update file costs the shards it touches and no more.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from . import duplicates, excluded, lifecycle, shards
from .ahead import ahead
from .document import SCHEMA
from .files import LocalFiles
from .manifest import decode, encode
from .shards import Shard
from .staging import Staged, ordered
from .workspace import Workspace

DROPPED_SCHEMA = SCHEMA.append(pa.field("reason", pa.string(), nullable=False)).append(
    pa.field("duplicate_of", pa.string())
)
"""The documents kept aside by ``--keep-dropped``: the same columns, why, and what a duplicate repeats."""


@dataclass(frozen=True, slots=True)
class Finished:
    """What became of a source.

    Attributes:
        funnel: records by what became of them: ``kept`` or a reason of rules.py.
        counts: documents, sentences, words and characters kept.
        years, languages, licences, article_types: documents kept by each of these.
        cleaning: by rule, the documents kept from which it took something, and how many characters.
        listed: how many ids of a list (excluded.py) name a document that was dropped for it.
    """

    name: str
    shards: list[Shard]
    dropped: list[Shard]
    funnel: dict[str, int]
    counts: dict[str, int]
    years: dict[str, int]
    languages: dict[str, int]
    licences: dict[str, int]
    article_types: dict[str, int]
    cleaning: dict[str, dict[str, int]]
    listed: int = 0


def good_names(staged: list[Staged]) -> list[str]:
    """The names of the sources that can be used, in the order they are applied."""
    return [source.name for source in ordered(staged)[0] if source.name]


def decide(
    files: LocalFiles, work: Workspace, staged: list[Staged], bucket: int, buckets: int, by_version: bool
) -> str:
    """Write one bucket's verdicts, a batch per source in order, for :func:`finish` to pick from.

    Args:
        by_version: PMC's rule of the life cycle, else PubMed's.

    Returns:
        The file they are in.
    """

    def keys(name: str) -> pa.Table:
        return _staged_rows(files, work.staged(name, "keys")).select(lifecycle.KEYS.names)

    sources = [functools.partial(keys, name) for name in good_names(staged)]
    many = functools.partial(ahead, files)
    return _write_verdicts(
        files, work.verdicts(bucket), lifecycle.decide(sources, bucket, buckets, by_version, many)
    )


def decide_duplicates(
    files: LocalFiles, work: Workspace, staged: list[Staged], decided: list[str], bucket: int, buckets: int
) -> str:
    """Write one bucket's verdicts on documents that repeat another, as :func:`decide` writes its own.

    Args:
        decided: the files of all verdicts of :func:`decide`; what these drop repeats nothing.
    """

    def living(name: str, verdicts: pa.Table) -> pa.Table:
        digests = _staged_rows(files, work.staged(name, "digests"))
        return digests.filter(pc.invert(pc.is_in(digests["position"], value_set=verdicts["position"])))

    verdicts = _all_verdicts(files, decided)
    sources = [functools.partial(living, *of) for of in zip(good_names(staged), verdicts, strict=True)]
    many = functools.partial(ahead, files)
    return _write_verdicts(files, work.duplicates(bucket), duplicates.decide(sources, bucket, buckets, many))


def finish(
    files: LocalFiles,
    work: Workspace,
    name: str,
    index: int,
    decided: list[str],
    keep_dropped: bool,
    max_bytes: int,
    listed: str | None,
) -> Finished:
    """Write the final shards of the ``index``-th good source, unless they stand already.

    Args:
        decided: the files of all verdicts.
        listed: digest of the list of ids in the work folder that are to be left out, if there is one.
    """
    verdicts = _verdicts(files, decided, index).sort_by("position")
    before = _standing(files, work, name)
    cache_key = [lifecycle.fingerprint(verdicts), listed]
    if before and before.get("cache_key") == cache_key:
        return decode(Finished, before["finished"])
    found = 0
    if listed:
        documents = shards.read_columns(files, work.staged(name, "arrow"), excluded.COLUMNS)
        verdicts, found = excluded.verdicts(documents, verdicts, excluded.read(files, work.excluded))
        verdicts = verdicts.sort_by("position")
    digest = lifecycle.fingerprint(verdicts)
    if before and before["fingerprint"] == digest:
        finished = decode(Finished, before["finished"])
    else:
        # A run killed from here on leaves shards that are not those the report speaks of.
        for path in (work.report(name), work.pairs(name)):
            files.remove(path)
        finished = _Finisher(files, work, name, verdicts).run(keep_dropped, max_bytes)
    finished = dataclasses.replace(finished, listed=found)
    report = {"cache_key": cache_key, "fingerprint": digest, "finished": encode(finished)}
    files.write_json(work.report(name), report)
    return finished


def _standing(files: LocalFiles, work: Workspace, name: str) -> dict[str, Any] | None:
    """The report on a source whose final shards are all there; None where it has none."""
    if not files.exists(work.report(name)):
        return None
    report: dict[str, Any] = files.read_json(work.report(name))
    written = [*report["finished"]["shards"], *report["finished"]["dropped"]]
    if all(
        [found.size for found in files.find(f"{work.output}/{shard['file']}")] == [shard["bytes"]]
        for shard in written
    ):
        return report
    return None


def _staged_rows(files: LocalFiles, path: str) -> pa.Table:
    with files.open(path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def _write_verdicts(files: LocalFiles, path: str, batches: Iterable[pa.RecordBatch]) -> str:
    with files.write(path) as out, pa.ipc.new_file(out, lifecycle.VERDICTS) as verdicts:
        for batch in batches:
            verdicts.write_batch(batch)
    return path


def _verdicts(files: LocalFiles, decided: list[str], index: int) -> pa.Table:
    """All verdicts on the ``index``-th good source."""

    def some(path: str) -> pa.RecordBatch:
        with files.open(path) as file, pa.ipc.open_file(file) as reader:
            return reader.get_batch(index)

    return pa.Table.from_batches(list(ahead(files, some, decided)), lifecycle.VERDICTS)


def _all_verdicts(files: LocalFiles, decided: list[str]) -> list[pa.Table]:
    """All verdicts on each good source; those of files on this machine are mapped."""

    def some(path: str) -> list[pa.RecordBatch]:
        with shards.opened(files, path) as file, pa.ipc.open_file(file) as reader:
            return [reader.get_batch(index) for index in range(reader.num_record_batches)]

    of_sources = zip(*ahead(files, some, decided), strict=True)
    return [pa.Table.from_batches(list(parts), lifecycle.VERDICTS) for parts in of_sources]


class _Finisher:
    def __init__(self, files: LocalFiles, work: Workspace, name: str, verdicts: pa.Table) -> None:
        self._files, self._work, self._name = files, work, name
        self._positions = verdicts["position"].combine_chunks()
        self._reasons = verdicts["reason"].cast(pa.string()).combine_chunks()
        self._duplicate_of = verdicts["duplicate_of"].combine_chunks()
        self._pairs: list[str] = []
        self._counts = dict.fromkeys(("documents", "sentences", "words", "characters"), 0)
        self._kinds: dict[str, collections.Counter[str]] = {
            column: collections.Counter() for column in ("year", "language", "licence", "article_type")
        }
        self._touched: collections.Counter[str] = collections.Counter()
        self._removed: collections.Counter[str] = collections.Counter()

    def run(self, keep_dropped: bool, max_bytes: int) -> Finished:
        folder = self._work.output
        kept = shards.write(self._files, folder, self._name, self._kept(), SCHEMA, max_bytes)
        if self._pairs:
            with self._files.write(self._work.pairs(self._name)) as out:
                out.write("".join(self._pairs).encode())
        dropped: list[Shard] = []
        if keep_dropped:
            written = shards.write(
                self._files, f"{folder}/dropped", self._name, self._dropped(), DROPPED_SCHEMA, max_bytes
            )
            dropped = [dataclasses.replace(shard, file=f"dropped/{shard.file}") for shard in written]
        return Finished(
            name=self._name,
            shards=kept,
            dropped=dropped,
            funnel=self._funnel(),
            counts=self._counts,
            years=dict(sorted(self._kinds["year"].items())),
            languages=dict(sorted(self._kinds["language"].items())),
            licences=dict(sorted(self._kinds["licence"].items())),
            article_types=dict(sorted(self._kinds["article_type"].items())),
            cleaning={
                rule: {"documents": count, "characters": self._removed[rule]}
                for rule, count in sorted(self._touched.items())
            },
        )

    def _staged(self) -> Iterator[pa.RecordBatch]:
        path = self._work.staged(self._name, "arrow")
        with self._files.open(path) as file, pa.ipc.open_stream(file) as stream:
            yield from stream

    def _reason(self, batch: pa.RecordBatch, position: pa.Array) -> pa.Array:
        """Why each row is dropped, null where it is not; a verdict comes before a rule's reason."""
        return pc.coalesce(self._said(self._reasons, position), batch["drop"].cast(pa.string()))

    def _said(self, column: pa.Array, position: pa.Array) -> pa.Array:
        """What the verdicts say of each position in a column of theirs, null where nothing."""
        return column.take(pc.index_in(position, value_set=self._positions))

    def _kept(self) -> Iterator[pa.RecordBatch]:
        for batch in self._staged():
            position = pc.struct_field(batch["origin"], "position")
            reason = self._reason(batch, position)
            if reason.null_count < len(reason):
                self._pair(batch["id"], self._said(self._duplicate_of, position))
                batch = batch.filter(pc.is_null(reason))
            if not batch.num_rows:
                continue
            self._count(batch)
            yield batch.select(SCHEMA.names).cast(SCHEMA)

    def _pair(self, ids: pa.Array, duplicate_of: pa.Array) -> None:
        repeating = ids.filter(pc.is_valid(duplicate_of)).to_pylist()
        originals = duplicate_of.drop_null().to_pylist()
        self._pairs += [f"{id_}\t{other}\n" for id_, other in zip(repeating, originals, strict=True)]

    def _dropped(self) -> Iterator[pa.RecordBatch]:
        for batch in self._staged():
            position = pc.struct_field(batch["origin"], "position")
            reason = self._reason(batch, position)
            rows = batch.select(SCHEMA.names).add_column(len(SCHEMA), "reason", reason)
            duplicate_of = self._said(self._duplicate_of, position)
            rows = rows.add_column(len(SCHEMA) + 1, "duplicate_of", duplicate_of).filter(pc.is_valid(reason))
            if rows.num_rows:
                yield rows.cast(DROPPED_SCHEMA)

    def _count(self, batch: pa.RecordBatch) -> None:
        self._counts["documents"] += batch.num_rows
        self._counts["sentences"] += pc.sum(pc.list_value_length(batch["sentences"])).as_py()
        self._counts["words"] += pc.sum(batch["words"]).as_py()
        self._counts["characters"] += pc.sum(batch["characters"]).as_py()
        for column, counter in self._kinds.items():
            for item in batch[column].value_counts():
                counter[str(item["values"].as_py() or "unknown")] += item["counts"].as_py()
        for item in pc.list_flatten(batch["cleaned"]).to_pylist():
            self._touched[item["rule"]] += 1
            self._removed[item["rule"]] += item["characters"]

    def _funnel(self) -> dict[str, int]:
        keys = _staged_rows(self._files, self._work.staged(self._name, "keys"))
        records = keys.filter(pc.invert(keys["deletes"])).combine_chunks()
        batch = records.to_batches()[0] if records.num_rows else None
        if batch is None:
            return {}
        reasons = pc.fill_null(self._reason(batch, batch["position"]), "kept")
        return {
            item["values"].as_py(): item["counts"].as_py()
            for item in sorted(reasons.value_counts(), key=lambda item: item["values"].as_py())
        }
