"""Decide which records are dropped, across all sources: versions, and exact duplicates.

PubMed: of the records of a PMID, the one in the last file is kept; within a file, the highest Version, then
the last position.  A ``DeleteCitation`` removes the records of the PMID before it, in its own and in
earlier files.

PMC: of the records of an article, the highest version is kept, by the sequence of its numbers; of the same
version, the one in the last source, at the last position.  If the version of one of them is no number, the
one that was published last is kept.  An article outside PMC is a copy of one that has its PMID or DOI; the
one with a PMCID is kept.  Articles of PMC are no copies of each other, as a congress gives one DOI to all
abstracts.

Duplicates (``--dedup exact``) are documents whose titles and abstracts have equal letters and digits; 128-bit
digests are compared.  The document with the lowest PMID or PMCID is kept.  The position of a record is no
criterion, because a revision moves it to a later file, which would change decisions without a change of text.
Documents without an abstract are not compared: titles such as "Editorial." are shared by many articles.

Only keys are read, 26 bytes a record, and digests.  Each file is read once and dealt out to buckets of
:data:`KEYS_PER_BUCKET` rows, in temporary files if there are several, so that memory is bounded by the size
of a bucket and the dropped records.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle.job import ShardsJob, StageResult, order_stage_results
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.source_record import NON_PMC_NUMBER_BIT, UNNUMBERED_VERSION
from bioshards.corpus.storage.locks import make_temporary_folder
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

VERSION_KEY_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("version", pa.int16(), nullable=False),
        pa.field("minor_version", pa.int32(), nullable=False),
        pa.field("published", pa.int32(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("is_deletion", pa.bool_(), nullable=False),
    ]
)
"""A record, in the order of the source; ``key`` is the PMID, or the number of the PMCID.  A DeleteCitation
has a row for each of its PMIDs."""

TEXT_DIGEST_SCHEMA: Final = pa.schema(
    [
        pa.field("key", pa.int64(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("position", pa.int32(), nullable=False),
        pa.field("digest", pa.binary(16), nullable=False),
    ]
)
"""A document to compare, in the order of the source."""

DECISION_SCHEMA: Final = pa.schema(
    [
        pa.field("position", pa.int32(), nullable=False),
        pa.field("reason", pa.dictionary(pa.int8(), pa.string()), nullable=False),
        pa.field("duplicate_of", pa.string()),
        pa.field("similarity", pa.float32()),
    ]
)
"""A dropped record of a source: superseded by its version or by its date of publication, deleted, copy,
duplicate, near-duplicate with the estimated similarity (near_duplicates.py) or excluded (id_lists.py)."""

DECISION_REASONS: Final = pa.array(
    ["superseded", "deleted", "duplicate", "excluded", "near-duplicate", "copy", "superseded-by-date"]
)
"""Dictionary of the reasons of :data:`DECISION_SCHEMA`.  Its order is part of the files in work folders."""

KEYS_PER_BUCKET: Final = 4_000_000
"""Rows in a bucket: 0.75 GB at the peak (make bench)."""

_SOURCE_FIELD: Final = pa.field("source", pa.int32(), nullable=False)
_ASCII_TO_DELETE: Final = bytes(set(range(128)) - set((string.ascii_lowercase + string.digits).encode()))
"""ASCII characters except lower-case letters and digits."""
_NON_ALPHANUMERIC: Final = re.compile(r"[\W_]+")

BucketFilter = Callable[[pa.Table, int, int], pa.ChunkedArray]
"""Takes a table, a bucket and the number of buckets; returns whether each row is in the bucket."""


def decide(job: ShardsJob, stage_results: Sequence[StageResult]) -> str:
    """Write the decisions on versions and exact duplicates, a batch per usable source in order.

    Returns:
        Path of the file, for :func:`read_decisions`.
    """
    names = usable_output_names(stage_results)
    num_buckets = count_buckets(sum(stage_result.num_keys for stage_result in stage_results))
    has_others = [False] * len(names)
    keys = _note_others(_read_staged_keys(job, names), has_others)
    rows = find_dropped_versions(keys, num_buckets, job.documents.highest_version_wins)
    if job.documents.highest_version_wins and any(has_others):
        rows = pa.concat_tables([rows, find_copies(_read_staged_ids(job, names, rows), has_others)])
    if job.config.dedup == "exact":
        rows = pa.concat_tables(
            [rows, find_duplicates(_read_surviving_digests(job, names, rows), num_buckets)]
        )
    return write_decisions(
        job.storage, job.output.work_path("decisions/decisions.arrow"), split_by_source(rows, len(names))
    )


def usable_output_names(stage_results: Sequence[StageResult]) -> list[str]:
    """Return the output names of the usable sources, in the order of application."""
    return [
        stage_result.output_name
        for stage_result in order_stage_results(stage_results)[0]
        if stage_result.output_name
    ]


def count_buckets(num_keys: int) -> int:
    """Return the number of buckets for this number of keys."""
    return max(1, -(-num_keys // KEYS_PER_BUCKET))


# Versions


def find_dropped_versions(
    keys_by_source: Iterable[pa.Table], num_buckets: int, highest_version_wins: bool
) -> pa.Table:
    """Find the superseded and deleted records of all sources, as rows for :func:`split_by_source`.

    Args:
        keys_by_source: :data:`VERSION_KEY_SCHEMA` of each source, in the order of application.
        num_buckets: number of buckets by the remainder of the keys.
        highest_version_wins: rule of PMC, else that of PubMed.
    """
    with _deal_out(keys_by_source, VERSION_KEY_SCHEMA, num_buckets, _has_remainder) as buckets:
        return pa.concat_tables([_find_dropped(keys, highest_version_wins) for keys in buckets])


def _has_remainder(keys: pa.Table, bucket: int, num_buckets: int) -> pa.ChunkedArray:
    column = keys["key"]
    remainders = pc.subtract(column, pc.multiply(pc.divide(column, num_buckets), num_buckets))
    return pc.equal(remainders, bucket)


def _find_dropped(keys: pa.Table, highest_version_wins: bool) -> pa.Table:
    """Find the superseded and deleted records of a bucket."""
    apply_order = pc.add(
        pc.shift_left(keys["source"].cast(pa.int64()), pa.scalar(32, pa.int64())),
        keys["position"].cast(pa.int64()),
    )
    keys = keys.append_column("when", apply_order)
    deletions = keys.filter(keys["is_deletion"])
    records = keys.filter(pc.invert(keys["is_deletion"])).drop_columns(["is_deletion"])
    last_deletions = deletions.group_by("key").aggregate([("when", "max")])
    deletion_order = last_deletions["when_max"].take(
        pc.index_in(records["key"], value_set=last_deletions["key"])
    )
    is_deleted = pc.less(records["when"], deletion_order).fill_null(False)
    survivors = records.filter(pc.invert(is_deleted))
    if highest_version_wins:
        survivors = _keep_one_criterion(survivors)
        version_columns = ["version", "minor_version", "published", "source", "position"]
    else:
        version_columns = ["source", "version", "position"]
    survivors = survivors.sort_by([(column, "ascending") for column in ("key", *version_columns)])
    survivors = survivors.combine_chunks()
    older, newer = survivors.slice(0, max(0, len(survivors) - 1)), survivors.slice(1)
    is_superseded = pc.equal(older["key"], newer["key"])
    is_older = pc.and_(is_superseded, pc.less(older["published"], newer["published"]))
    by_date = pc.and_(is_older, pc.equal(older["version"], UNNUMBERED_VERSION))
    by_version = pc.and_not(is_superseded, by_date)
    return pa.concat_tables(
        [
            _make_rows(older.filter(by_version), "superseded"),
            _make_rows(older.filter(by_date), "superseded-by-date"),
            _make_rows(records.filter(is_deleted), "deleted"),
        ]
    )


def _keep_one_criterion(records: pa.Table) -> pa.Table:
    """Blank the dates of articles whose versions are all numbers, and the versions of all other articles."""
    is_unnumbered = pc.equal(records["version"], UNNUMBERED_VERSION)
    by_date = pc.is_in(records["key"], value_set=pc.unique(records["key"].filter(is_unnumbered)))
    values = {
        "version": pc.if_else(by_date, pa.scalar(UNNUMBERED_VERSION, pa.int16()), records["version"]),
        "minor_version": pc.if_else(by_date, pa.scalar(0, pa.int32()), records["minor_version"]),
        "published": pc.if_else(by_date, records["published"], pa.scalar(0, pa.int32())),
    }
    for name, column in values.items():
        index = records.schema.get_field_index(name)
        records = records.set_column(index, VERSION_KEY_SCHEMA.field(name), column)
    return records


# Copies


def _note_others(keys_by_source: Iterable[pa.Table], has_others: list[bool]) -> Iterator[pa.Table]:
    """Pass the keys of sources on, and note for each whether it has articles outside PMC."""
    for source, keys in enumerate(keys_by_source):
        highest = pc.max(keys["key"]).as_py()
        has_others[source] = highest is not None and highest >= NON_PMC_NUMBER_BIT
        yield keys


def find_copies(
    ids_by_source: Sequence[Callable[[], Iterable[pa.Table]]], has_others: Sequence[bool]
) -> pa.Table:
    """Find the articles outside PMC with the PMID or DOI of another, as rows for :func:`split_by_source`.

    Args:
        ids_by_source: reads the ids of the surviving documents of each source: id, pmid, doi in lower case,
            and position. Those of articles outside PMC are kept in memory.
        has_others: whether each source has articles outside PMC.
    """
    others: list[tuple[str, list[str], int, int]] = []
    for source, read_ids in enumerate(ids_by_source):
        for table in read_ids() if has_others[source] else ():
            rows = table.filter(pc.invert(pc.starts_with(table["id"], "pmc:"))).to_pylist()
            others += [(row["id"], _list_names(row), source, row["position"]) for row in rows]
    known: set[str] = set()
    if others:
        names = {name for _, row_names, _, _ in others for name in row_names}
        pmids = pa.array([int(name) for name in names if name.isdecimal()], pa.int32())
        dois = pa.array([name for name in names if not name.isdecimal()], pa.string())
        for read_ids in ids_by_source:
            for table in read_ids():
                is_known = pc.or_(pc.is_in(table["pmid"], pmids), pc.is_in(table["doi"], dois))
                in_pmc = table.filter(pc.and_(is_known, pc.starts_with(table["id"], "pmc:")))
                known.update(name for row in in_pmc.to_pylist() for name in _list_names(row))
    copies = []
    for _, row_names, source, position in sorted(others):
        if known.isdisjoint(row_names):
            known.update(row_names)
        else:
            copies.append({"source": source, "position": position})
    schema = pa.schema([_SOURCE_FIELD, DECISION_SCHEMA.field("position")])
    return _make_rows(pa.Table.from_pylist(copies, schema), "copy")


def _list_names(row: dict[str, Any]) -> list[str]:
    """Return the names by which another corpus knows an article: its PMID, its DOI."""
    return [str(row[name]) for name in ("pmid", "doi") if row[name]]


# Exact duplicates


def digest_text(title: str, abstract: Iterable[str]) -> bytes | None:
    """Compute a 128-bit digest of the letters and digits of a text.

    Case, white space, punctuation, compatibility forms (NFKC: a subscript 2 is a 2) and the division into
    sentences and sections make no difference.

    Args:
        title: title, may be empty.
        abstract: texts of the abstract, in order.

    Returns:
        The digest; None if the abstract has no letter or digit, so that the document is not compared.
    """
    text = _normalise(" ".join(abstract))
    if not text:
        return None
    return hashlib.blake2b(_normalise(title) + b"\n" + text, digest_size=16).digest()


def _normalise(text: str) -> bytes:
    if text.isascii():
        return text.lower().encode().translate(None, _ASCII_TO_DELETE)
    # NFKC before casefold, as compatibility forms contain capitals (℃), and after, as casefold decomposes.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    # Deleting ASCII characters first halves the time.
    reduced = folded.encode().translate(None, _ASCII_TO_DELETE).decode()
    return _NON_ALPHANUMERIC.sub("", reduced).encode()


def find_duplicates(digests_by_source: Iterable[pa.Table], num_buckets: int) -> pa.Table:
    """Find the documents that duplicate one of a lower key, as rows for :func:`split_by_source`.

    Args:
        digests_by_source: :data:`TEXT_DIGEST_SCHEMA` of the surviving documents of each source, in the order
            of application.
        num_buckets: number of equal ranges of digests.
    """
    with _deal_out(digests_by_source, TEXT_DIGEST_SCHEMA, num_buckets, _has_digest_in_range) as buckets:
        return pa.concat_tables([_select_duplicates(digests) for digests in buckets])


def _has_digest_in_range(digests: pa.Table, bucket: int, num_buckets: int) -> pa.ChunkedArray:
    digest_type = TEXT_DIGEST_SCHEMA.field("digest").type
    lowest = pa.scalar(((bucket << 128) // num_buckets).to_bytes(16), digest_type)
    highest = pa.scalar((((bucket + 1) << 128) // num_buckets - 1).to_bytes(16), digest_type)
    return pc.and_(pc.greater_equal(digests["digest"], lowest), pc.less_equal(digests["digest"], highest))


def _select_duplicates(table: pa.Table) -> pa.Table:
    table = table.sort_by([("digest", "ascending"), ("key", "ascending")])
    digests, ids = table["digest"].combine_chunks(), table["id"].combine_chunks()
    is_duplicate = pc.equal(digests.slice(0, max(0, len(digests) - 1)), digests.slice(1))
    is_first = pa.concat_arrays([pa.array([True]), pc.invert(is_duplicate)]).slice(0, len(digests))
    originals = pc.fill_null_forward(pc.if_else(is_first, ids, None)).filter(pc.invert(is_first))
    return _make_rows(table.filter(pc.invert(is_first)), "duplicate", originals)


# Buckets


@contextlib.contextmanager
def _deal_out(
    tables: Iterable[pa.Table], schema: pa.Schema, num_buckets: int, is_in_bucket: BucketFilter
) -> Iterator[Iterable[pa.Table]]:
    """Deal the rows of the tables of all sources out to buckets, with a column ``source``: its index."""
    schema = schema.append(_SOURCE_FIELD)
    numbered_tables = (
        table.append_column(_SOURCE_FIELD, pa.repeat(pa.scalar(index, pa.int32()), table.num_rows))
        for index, table in enumerate(tables)
    )
    if num_buckets == 1:
        yield [pa.concat_tables([schema.empty_table(), *numbered_tables]).combine_chunks()]
        return
    with make_temporary_folder("buckets") as folder:
        paths = [f"{folder}/{bucket:05d}.arrow" for bucket in range(num_buckets)]
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(pa.ipc.new_stream(path, schema)) for path in paths]
            for table in numbered_tables:
                for bucket, stream in enumerate(streams):
                    stream.write_table(table.filter(is_in_bucket(table, bucket, num_buckets)))
        yield map(_read_bucket, paths)


def _read_bucket(path: str) -> pa.Table:
    with pa.memory_map(path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all().combine_chunks()


# Staged files


def read_staged_table(job: ShardsJob, output_name: str, suffix: str) -> pa.Table:
    """Read a table of a staged source: its keys or its digests."""
    path = job.output.staged_path(output_name, suffix)
    with job.storage.open(path) as file, pa.ipc.open_stream(file) as stream:
        return stream.read_all()


def _read_staged_keys(job: ShardsJob, output_names: Sequence[str]) -> Iterator[pa.Table]:
    names = VERSION_KEY_SCHEMA.names
    return prefetch_map(
        job.storage,
        lambda output_name: read_staged_table(job, output_name, "keys").select(names),
        output_names,
    )


def _read_staged_ids(
    job: ShardsJob, output_names: Sequence[str], dropped: pa.Table
) -> list[Callable[[], Iterator[pa.Table]]]:
    """Return a reader of the ids of each source's documents that neither versions nor filters drop."""

    def read_ids(output_name: str, dropped_positions: pa.Array) -> Iterator[pa.Table]:
        path = job.output.staged_path(output_name, "arrow")
        for batch in arrow_io.read_stream(job.storage, path, ("id", "pmid", "doi", "origin", "drop_reason")):
            position = pc.struct_field(batch["origin"], "position")
            is_dropped = pc.or_(
                pc.is_valid(batch["drop_reason"]), pc.is_in(position, value_set=dropped_positions)
            )
            columns = [batch["id"], batch["pmid"], pc.utf8_lower(batch["doi"]), position]
            yield pa.table(columns, ["id", "pmid", "doi", "position"]).filter(pc.invert(is_dropped))

    dropped_by_source = list(split_by_source(dropped, len(output_names)))
    return [
        functools.partial(read_ids, output_name, batch["position"])
        for output_name, batch in zip(output_names, dropped_by_source, strict=True)
    ]


def _read_surviving_digests(
    job: ShardsJob, output_names: Sequence[str], dropped: pa.Table
) -> Iterator[pa.Table]:
    """Yield the digests of each source without those of dropped records."""
    dropped_by_source = list(split_by_source(dropped, len(output_names)))

    def read_digests(index: int) -> pa.Table:
        digests = read_staged_table(job, output_names[index], "digests")
        is_dropped = pc.is_in(digests["position"], value_set=dropped_by_source[index]["position"])
        return digests.filter(pc.invert(is_dropped))

    return prefetch_map(job.storage, read_digests, range(len(output_names)))


# Decisions


def _make_rows(records: pa.Table, reason: str, duplicate_of: pa.ChunkedArray | None = None) -> pa.Table:
    """Return rows for :func:`split_by_source` of dropped records."""
    count = records.num_rows
    reason_index = pa.scalar(DECISION_REASONS.index(reason).as_py(), pa.int8())
    rows = records.select(["source", "position"]).append_column("reason", pa.repeat(reason_index, count))
    originals = pa.nulls(count, pa.string()) if duplicate_of is None else duplicate_of
    return rows.append_column("duplicate_of", originals)


def split_by_source(rows: pa.Table, num_sources: int) -> Iterator[pa.RecordBatch]:
    """Split decisions into a batch of :data:`DECISION_SCHEMA` for each source, sorted by position.

    Args:
        rows: source, position, reason (index of :data:`DECISION_REASONS`), duplicate_of and, of near
            duplicates, similarity, in any order.
        num_sources: number of sources.
    """
    rows = rows.sort_by([("source", "ascending"), ("position", "ascending")]).combine_chunks()
    row_counts = {entry["values"]: entry["counts"] for entry in rows["source"].value_counts().to_pylist()}
    start = 0
    for index in range(num_sources):
        source_rows = rows.slice(start, row_counts.get(index, 0)).combine_chunks()
        start += source_rows.num_rows
        yield _make_decision_batch(source_rows)


def _make_decision_batch(rows: pa.Table) -> pa.RecordBatch:
    def get_column(name: str, data_type: pa.DataType) -> pa.Array:
        if name not in rows.column_names:
            return pa.nulls(rows.num_rows, data_type)
        chunks = rows[name].chunks
        return chunks[0] if chunks else pa.array([], data_type)

    reasons = pa.DictionaryArray.from_arrays(get_column("reason", pa.int8()), DECISION_REASONS)
    columns = [get_column("position", pa.int32()), reasons]
    columns += [get_column("duplicate_of", pa.string()), get_column("similarity", pa.float32())]
    return pa.RecordBatch.from_arrays(columns, schema=DECISION_SCHEMA)


def write_decisions(storage: Storage, path: str, batches: Iterable[pa.RecordBatch]) -> str:
    """Write the decisions on each source, in order; return the path."""
    with storage.write(path) as out, pa.ipc.new_file(out, DECISION_SCHEMA) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return path


def read_decisions(storage: Storage, paths: Sequence[str], source_index: int) -> pa.Table:
    """Read the decisions on one source from the files of :func:`write_decisions`, sorted by position."""

    def read_batch(path: str) -> pa.RecordBatch:
        with storage.open(path) as file, pa.ipc.open_file(file) as reader:
            return reader.get_batch(source_index)

    batches = list(prefetch_map(storage, read_batch, paths))
    return pa.Table.from_batches(batches, DECISION_SCHEMA).sort_by("position")


def read_dropped_positions(storage: Storage, path: str) -> list[pa.Array]:
    """Read the positions of the dropped records of each source; a local file is memory-mapped."""
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_file(file) as reader:
        return [reader.get_batch(index)["position"] for index in range(reader.num_record_batches)]


def digest_decisions(decisions: pa.Table) -> str:
    """Return a short digest of the decisions on a source: equal digests give equal final shards."""
    reasons = pc.index_in(decisions["reason"].cast(pa.string()), DECISION_REASONS)
    plain = decisions.set_column(1, "reason", reasons)
    plain = plain.set_column(2, "duplicate_of", pc.fill_null(decisions["duplicate_of"], ""))
    if plain["similarity"].null_count == len(plain):
        plain = plain.drop_columns("similarity")  # the digest of runs without near duplicates
    digest = hashlib.sha256()
    for batch in plain.combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()[:16]
