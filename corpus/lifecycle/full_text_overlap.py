"""Match PubMed abstracts to PMC articles by PMID, then PMCID, then DOI (``--find-overlap-with``).

An article of PMC begins with its abstract, so that a model that reads both corpora reads the abstract twice.
pmc_to_shards lists these abstracts next to its shards; readers of both corpora exclude them.

NLM assigns PMIDs and PMCIDs individually, whereas a publisher may give one DOI to all abstracts of a
congress.  So DOIs are matched only for articles whose PMID and PMCID match no abstract.  If several
articles match, the one of the lowest PMCID and version is listed.

Memory holds the ids of all articles, about 60 bytes each, and of :data:`LOOKUP_ROWS` abstracts.

Of each shard only the columns with ids are read: 0.3 % of the bytes of articles.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import UserError
from bioshards.corpus.manifest import (
    DocumentsManifest,
    ForeignManifestError,
    OverlapFile,
    Shard,
    read_manifest,
)
from bioshards.corpus.shards import arrow_io, document_shards
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import parallel_for_each, prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

if TYPE_CHECKING:  # readers of a list need neither
    from bioshards.corpus.lifecycle.finalize import FinalizeResult
    from bioshards.corpus.lifecycle.job import ShardsJob

MATCH_KEY_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("pmid", pa.int32()),
        pa.field("pmcid", pa.string()),
        pa.field("doi", pa.string()),
    ]
)
"""Ids of a kept document; ``id`` is ``pmc:PMC123.1`` or ``pubmed:123``."""

OVERLAP_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("full_text_id", pa.string(), nullable=False),
        pa.field("matched_by", pa.string(), nullable=False),
    ]
)
"""An abstract with its full text in PMC: id, id of the PMC document, and the matching key (pmid, pmcid or
doi). Rows have the order of the abstracts."""

FILE_NAME: Final = "overlap.arrow"
"""File of :data:`OVERLAP_SCHEMA` in an output of pmc_to_shards, an Arrow IPC stream."""

LOOKUP_ROWS: Final = 1_000_000
"""Rows of a lookup, abstracts and articles: Arrow builds a hash table of them.  The peak is below 1 GB with
8 million articles, even if only DOIs match."""

_BATCH_ROWS: Final = 65_536

_ABSTRACTS_DIGEST_KEY: Final = b"abstracts"
"""Key of :func:`digest_abstracts` in the metadata of the schema."""

_PMC_ID_PATTERN: Final = r"^pmc:PMC(?P<number>[1-9][0-9]{0,8})\.(?P<version>[1-9][0-9]{0,3})$"
_VERSION_BITS: Final = 16
_PMCID_PATTERN: Final = r"^PMC(?P<number>[0-9]{1,9})$"
_DOI_PATTERN: Final = r"^\s*(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(?P<doi>10\.[^/\s]+/.*\S)\s*$"
"""A DOI in lower case, with an optional URL or "doi:".  DOIs are case-insensitive in ASCII (DOI Handbook,
https://www.doi.org/the-identifier/resources/handbook/)."""


class OverlapInputError(UserError):
    """An input directory is of another kind, or has changed."""


@dataclass(frozen=True, slots=True)
class OverlapResult:
    """The list of abstracts whose articles are in the output."""

    file: OverlapFile

    def counters(self) -> dict[str, int]:
        """Return the metrics of the step."""
        return {"abstracts": self.file.rows}


# Steps


def write_overlap(job: ShardsJob, finalized: Sequence[FinalizeResult]) -> OverlapResult:
    """Write the list of abstracts whose articles are in the output."""
    assert job.overlap_with, "the step is in the graph with --find-overlap-with only"
    storage, folder = job.storage, job.overlap_with
    abstracts = list_abstract_shards(storage, folder)
    articles = [shard for result in finalized for shard in result.shards]
    # Columns of ids alone are read below: checksums of pages cover these, and not the footers.
    for each, shards in ((folder, abstracts), (job.output.path, articles)):
        check = functools.partial(document_shards.check_shard, storage, each)
        parallel_for_each(storage, check, shards)
    matches = find_overlap(
        select_pmc_articles(read_keys(storage, job.output.path, articles)),
        lambda: read_keys(storage, folder, abstracts),
    )
    digest = arrow_io.combine_digests(shard.sha256 for shard in abstracts)
    path = f"{job.output.path}/{FILE_NAME}"
    return OverlapResult(write(storage, path, job.as_typed(folder), digest, matches))


def read_keys(storage: Storage, folder: str, shards: Sequence[Shard]) -> Iterator[pa.RecordBatch]:
    """Yield the ids of the documents of shards, in order, as batches of :data:`MATCH_KEY_SCHEMA`.

    Articles without a body are left out, because they do not contain the full text of an abstract.
    """
    columns = [*MATCH_KEY_SCHEMA.names, "flags"]

    def read_shard(shard: Shard) -> list[pa.RecordBatch]:
        return [
            _select_keys(batch)
            for batch in document_shards.read_checked_file(storage, f"{folder}/{shard.file}", columns)
        ]

    for batches in prefetch_map(storage, read_shard, shards):
        yield from batches


def _select_keys(batch: pa.RecordBatch) -> pa.RecordBatch:
    is_abstract_only = pc.match_substring(pc.binary_join(batch["flags"], ","), "no-body")
    keys = batch.filter(pc.and_not(pc.is_valid(batch["id"]), is_abstract_only))
    return keys.select(MATCH_KEY_SCHEMA.names).cast(MATCH_KEY_SCHEMA)


# Matching


def find_overlap(
    articles: Iterable[pa.RecordBatch], abstracts: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """Yield the abstracts with a full text in PMC as batches of :data:`OVERLAP_SCHEMA`, in their order.

    Args:
        articles: batches of :data:`MATCH_KEY_SCHEMA`, in any order.
        abstracts: returns the same of PubMed's documents; called twice.

    Raises:
        ValueError: the id of an article is not of the form ``pmc:PMC123.1``.
    """
    article_tables = [table.sort_by("rank") for table in _rebatch(map(_normalise_article_keys, articles))]
    doi_tables = []
    for index, is_matched in enumerate(
        _find_matched_articles(article_tables, map(_normalise_ids, abstracts()))
    ):
        is_candidate = pc.and_(pc.is_valid(article_tables[index]["doi"]), pc.invert(is_matched))
        doi_tables.append(article_tables[index].select(["doi", "rank"]).filter(is_candidate))
        article_tables[index] = article_tables[index].drop_columns("doi")
    for table in _rebatch(map(_normalise_abstract_keys, abstracts()) if article_tables else ()):
        yield from _match_abstracts(table, article_tables, doi_tables).to_batches(_BATCH_ROWS)
        del table  # free it before the next one is read


def select_pmc_articles(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Select the documents of PMC, for :func:`find_overlap`."""
    for batch in batches:
        yield batch.filter(pc.starts_with(batch["id"], "pmc:"))


def list_abstract_shards(storage: Storage, folder: str) -> Sequence[Shard]:
    """List the shards of a finished PubMed directory.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: its manifest is damaged.
        OverlapInputError: it does not hold abstracts of PubMed.
    """
    pipeline: str | None
    try:
        manifest = read_manifest(storage, folder)
        pipeline = manifest.pipeline
    except ForeignManifestError as error:
        pipeline = error.pipeline
    if pipeline != "pubmed_to_shards":
        raise OverlapInputError(
            f"{folder} does not hold PubMed's abstracts: by its manifest.json it was made by {pipeline}. "
            "Give the --output of beam run pubmed_to_shards."
        )
    assert isinstance(manifest, DocumentsManifest)
    return manifest.outputs


def digest_abstracts(storage: Storage, folder: str) -> str:
    """Return the SHA-256 of the SHA-256 sums of the shards of a finished PubMed directory.

    Raises:
        ManifestNotFoundError: as :func:`list_abstract_shards`.
        ManifestError: as :func:`list_abstract_shards`.
        OverlapInputError: as :func:`list_abstract_shards`.
    """
    return arrow_io.combine_digests(shard.sha256 for shard in list_abstract_shards(storage, folder))


def write(
    storage: Storage,
    path: str,
    abstracts_folder: str,
    abstracts_digest: str,
    batches: Iterable[pa.RecordBatch],
) -> OverlapFile:
    """Write the result of :func:`find_overlap`.

    Args:
        abstracts_folder: PubMed directory.
        abstracts_digest: :func:`digest_abstracts` of that directory.
        batches: result of :func:`find_overlap`.
    """
    rows = 0
    schema = OVERLAP_SCHEMA.with_metadata({_ABSTRACTS_DIGEST_KEY: abstracts_digest})
    with storage.write(path) as file:
        writer = HashingWriter(file)
        with pa.ipc.new_stream(pa.PythonFile(writer, "w"), schema) as stream:
            for batch in batches:
                stream.write_batch(batch)
                rows += batch.num_rows
    return OverlapFile(
        file=os.path.basename(path),
        rows=rows,
        bytes=writer.size,
        sha256=writer.sha256,
        abstracts_path=abstracts_folder,
        abstracts_sha256=abstracts_digest,
    )


def read(storage: Storage, folder: str, abstracts_folder: str) -> pa.Table:
    """Read the list of a finished PMC directory, a table of :data:`OVERLAP_SCHEMA`; a local file is
    memory-mapped.

    Args:
        folder: PMC directory.
        abstracts_folder: PubMed directory that was matched.

    Raises:
        ManifestNotFoundError: one of the directories is not finished.
        OverlapInputError: ``folder`` has no list, or one for another state of ``abstracts_folder``.
    """
    read_manifest(storage, folder)
    path = f"{folder}/{FILE_NAME}"
    if not storage.exists(path):
        raise OverlapInputError(
            f"{folder} has no {FILE_NAME}: it was made without --find-overlap-with. "
            f"Run pmc_to_shards with --find-overlap-with {abstracts_folder}."
        )
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
    if (table.schema.metadata or {}).get(_ABSTRACTS_DIGEST_KEY) != digest_abstracts(
        storage, abstracts_folder
    ).encode():
        raise OverlapInputError(
            f"{path} was made for other PubMed shards than {abstracts_folder} has now. If that folder was "
            "updated, run pmc_to_shards again with the same --find-overlap-with."
        )
    return table


def exclude_ids(documents: Iterable[pa.RecordBatch], ids: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    """Yield the documents without those of the given ids.

    Args:
        documents: batches with a column ``id`` of unique ids.
        ids: ids to exclude, in the order of the documents, so that each batch is compared with the next ids
            only.

    Raises:
        ValueError: an id is missing in the documents, or out of order.
    """
    start = 0
    for batch in documents:
        is_excluded = pc.is_in(batch["id"], value_set=ids.slice(start, batch.num_rows).combine_chunks())
        num_excluded = pc.sum(is_excluded, min_count=0).as_py()
        start += num_excluded
        if num_excluded:
            batch = batch.filter(pc.invert(is_excluded))
        if batch.num_rows:
            yield batch
    if start < len(ids):
        raise ValueError(f"{ids[start]} is to be excluded, but is missing in the documents or out of order")


# Normalised keys: PMIDs and PMCIDs as numbers, DOIs in lower case


def _normalise_article_keys(rows: pa.RecordBatch) -> pa.Table:
    return (
        _normalise_ids(rows)
        .append_column("doi", _normalise_dois(rows["doi"]))
        .append_column("rank", _ranks_from_ids(rows["id"]))
    )


def _normalise_abstract_keys(rows: pa.RecordBatch) -> pa.Table:
    return (
        _normalise_ids(rows)
        .append_column("doi", _normalise_dois(rows["doi"]))
        .append_column("id", rows["id"])
    )


def _normalise_ids(rows: pa.RecordBatch) -> pa.Table:
    numbers = pc.struct_field(pc.extract_regex(rows["pmcid"], _PMCID_PATTERN), "number").cast(pa.int32())
    return pa.table({"pmid": rows["pmid"], "pmcid": numbers})


def _normalise_dois(dois: pa.Array) -> pa.Array:
    """Normalise DOIs; null for invalid ones."""
    return pc.struct_field(pc.extract_regex(pc.ascii_lower(dois), _DOI_PATTERN), "doi")


def _ranks_from_ids(ids: pa.Array) -> pa.Array:
    """Convert ids of PMC documents to integers of the same order."""
    groups = pc.extract_regex(ids, _PMC_ID_PATTERN)
    if groups.null_count:
        invalid_id = ids.filter(pc.is_null(groups))[0]
        raise ValueError(f"{invalid_id} is not the id of a PMC document, such as pmc:PMC123.1")
    number = pc.struct_field(groups, "number").cast(pa.int64())
    version = pc.struct_field(groups, "version").cast(pa.int64())
    return pc.add(pc.multiply(number, 1 << _VERSION_BITS), version)


def _ids_from_ranks(ranks: pa.Array) -> pa.Array:
    """Convert the integers of :func:`_ranks_from_ids` back to ids."""
    number = pc.shift_right(ranks, _VERSION_BITS).cast(pa.string())
    version = pc.bit_wise_and(ranks, (1 << _VERSION_BITS) - 1).cast(pa.string())
    return pc.binary_join_element_wise("pmc:PMC", pc.binary_join_element_wise(number, version, "."), "")


# Lookup


def _rebatch(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Combine tables into tables of at least :data:`LOOKUP_ROWS` rows."""
    pending: list[pa.Table] = []
    rows = 0
    for table in tables:
        pending.append(table)
        rows += table.num_rows
        if rows >= LOOKUP_ROWS:
            yield _drain(pending)
            rows = 0
    if pending:
        yield _drain(pending)


def _drain(pending: list[pa.Table]) -> pa.Table:
    """Concatenate the tables and clear the list, to free their memory early."""
    table = pa.concat_tables(pending).combine_chunks()
    pending.clear()
    return table


def _find_matched_articles(
    article_tables: list[pa.Table], abstracts: Iterable[pa.Table]
) -> list[pa.ChunkedArray]:
    """Return for each article whether an abstract has its PMID or PMCID."""
    is_matched = [pa.chunked_array([pa.repeat(False, table.num_rows)]) for table in article_tables]
    for keys in _rebatch(abstracts if article_tables else ()):
        for column in ("pmid", "pmcid"):
            values = keys[column].combine_chunks()
            for index, table in enumerate(article_tables):
                has_value = pc.is_in(table[column], value_set=values, skip_nulls=True)
                is_matched[index] = pc.or_(is_matched[index], has_value)
    return is_matched


def _match_abstracts(
    abstracts: pa.Table, article_tables: list[pa.Table], doi_tables: list[pa.Table]
) -> pa.Table:
    """Match abstracts with articles; return rows of :data:`OVERLAP_SCHEMA`."""
    by_pmid = _find_lowest_ranks(abstracts["pmid"], article_tables, "pmid")
    by_pmcid = _find_lowest_ranks(abstracts["pmcid"], article_tables, "pmcid")
    rank = pc.coalesce(by_pmid, by_pmcid, _find_lowest_ranks(abstracts["doi"], doi_tables, "doi"))
    matched_by = pc.if_else(pc.is_valid(by_pmid), "pmid", pc.if_else(pc.is_valid(by_pmcid), "pmcid", "doi"))
    rows = pa.table({"id": abstracts["id"], "rank": rank, "matched_by": matched_by})
    rows = rows.filter(pc.is_valid(rank))
    return rows.set_column(1, "full_text_id", _ids_from_ranks(rows["rank"])).cast(OVERLAP_SCHEMA)


def _find_lowest_ranks(keys: pa.ChunkedArray, article_tables: list[pa.Table], column: str) -> pa.ChunkedArray:
    """Return the lowest rank of the articles with each key, or null."""
    ranks = [
        table["rank"].take(pc.index_in(keys, value_set=table[column].combine_chunks(), skip_nulls=True))
        for table in article_tables
    ]
    return pc.min_element_wise(*ranks)
