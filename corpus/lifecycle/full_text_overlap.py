"""Find which abstracts PMC holds in full: keys of articles and of abstracts in, a list of ids out.

A model that reads an abstract in PubMed and the same article in PMC, which begins with that abstract, reads
it twice.  So pmc_to_shards lists beside its shards the abstracts of a PubMed directory that its articles
hold.  That directory stays as it is; who uses both leaves these abstracts out.

An article holds an abstract if it gives the abstract's PMID; or else, if the abstract gives its PMCID; or
else, if both give the same DOI.  NLM assigns ids one by one, whereas a publisher may give one DOI to all
abstracts of a congress: so a DOI is asked only of articles whose PMID and PMCID no abstract has.  Of
several articles the one of the lowest PMCID, then of the lowest version, is named, whatever their order.

Only keys are looked at.  In memory are those of all articles, some 60 bytes each, and of
:data:`ROWS` abstracts.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.errors import UserError
from bioshards.corpus.manifest import DocumentsManifest, ForeignManifestError, OverlapFile, read_manifest
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage

MATCH_KEY_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("pmid", pa.int32()),
        pa.field("pmcid", pa.string()),
        pa.field("doi", pa.string()),
    ]
)
"""One row a document that is kept, its id as in ``pmc:PMC123.1`` or ``pubmed:123``."""

OVERLAP_SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("full_text_id", pa.string(), nullable=False),
        pa.field("matched_by", pa.string(), nullable=False),
    ]
)
"""One row an abstract that PMC holds in full, in the order of the abstracts: its id, the id of the PMC
document, and by what it was found: pmid, pmcid or doi."""

_HASHED_SCHEMA: Final = OVERLAP_SCHEMA.set(1, pa.field("held_by", pa.string(), nullable=False))
"""The schema that ``rows_sha256`` is made with.  Keep its names: the names of the shards of a pretraining
set, and with them the order of its rows, depend on that hash."""

FILE_NAME: Final = "overlap.arrow"
"""The file of :data:`OVERLAP` in a directory made by pmc_to_shards, an Arrow IPC stream."""

LOOKUP_ROWS: Final = 1_000_000
"""Abstracts looked up at a time, and articles they are looked up in, as Arrow makes a hash table of these:
with 8 million articles less than 1 GB at the peak, even if nothing but DOIs matches."""

_BATCH_ROWS: Final = 65_536

_ABSTRACTS_DIGEST_KEY: Final = b"abstracts"
"""Where the stream's schema metadata has the PubMed directory's :func:`identity`."""

_PMC_ID_PATTERN: Final = r"^pmc:PMC(?P<number>[1-9][0-9]{0,8})\.(?P<version>[1-9][0-9]{0,3})$"
_VERSION_BITS: Final = 16
_PMCID_PATTERN: Final = r"^PMC(?P<number>[0-9]{1,9})$"
_DOI_PATTERN: Final = r"^\s*(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(?P<doi>10\.[^/\s]+/.*\S)\s*$"
"""A DOI in small letters, bare or with the address or the "doi:" it is displayed with.  The case of ASCII
letters makes no difference in a DOI (DOI Handbook,
https://www.doi.org/the-identifier/resources/handbook/)."""


class OverlapInputError(UserError):
    """A folder is finished but not what is asked for: the message says what it is and what to do."""


def find_overlap(
    articles: Iterable[pa.RecordBatch], abstracts: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The abstracts that PMC holds in full: batches of :data:`OVERLAP`, in the order of the abstracts.

    Args:
        articles: batches of :data:`KEYS` (shard_keys.py), in any order.
        abstracts: reads the same of PubMed's documents; called twice.

    Raises:
        ValueError: the id of an article is not like ``pmc:PMC123.1``.
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
        yield from _matchabstracts(table, article_tables, doi_tables).to_batches(_BATCH_ROWS)
        del table  # not to hold it while the next is gathered


def select_pmc_articles(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Those of documents that PMC has, for :func:`find`: of a directory of full text others may be part."""
    for batch in batches:
        yield batch.filter(pc.starts_with(batch["id"], "pmc:"))


def list_abstract_shards(storage: Storage, folder: str) -> Sequence[Shard]:
    """The shards of a finished PubMed directory, as its manifest lists them.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: its manifest is damaged.
        OverlapInputError: it does not hold PubMed's abstracts.
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
    """A digest of the shards of a finished PubMed directory: another one once it has been updated.

    Raises:
        ManifestNotFoundError, ManifestError, OverlapInputError: as :func:`of_abstracts`.
    """
    return arrow_io.combine_digests(shard.sha256 for shard in list_abstract_shards(storage, folder))


def write(
    storage: Storage,
    path: str,
    abstracts_folder: str,
    abstracts_digest: str,
    batches: Iterable[pa.RecordBatch],
) -> OverlapFile:
    """Write what :func:`find` has found.

    Args:
        abstracts_folder: the PubMed directory in which it was found.
        abstracts_digest: the :func:`identity` of that directory.
    """
    rows = 0
    with storage.write(path) as file, open(os.devnull, "wb") as null_file:
        writer, hashed_writer = HashingWriter(file), HashingWriter(null_file)
        schema = OVERLAP_SCHEMA.with_metadata({_ABSTRACTS_DIGEST_KEY: abstracts_digest})
        hashed_schema = _HASHED_SCHEMA.with_metadata({_ABSTRACTS_DIGEST_KEY: abstracts_digest})
        with (
            pa.ipc.new_stream(pa.PythonFile(writer, "w"), schema) as stream,
            pa.ipc.new_stream(pa.PythonFile(hashed_writer, "w"), hashed_schema) as hashed_stream,
        ):
            for batch in batches:
                stream.write_batch(batch)
                hashed_stream.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=hashed_schema))
                rows += batch.num_rows
    return OverlapFile(
        file=os.path.basename(path),
        rows=rows,
        bytes=writer.size,
        sha256=writer.sha256,
        abstracts_path=abstracts_folder,
        abstracts_sha256=abstracts_digest,
        rows_sha256=hashed_writer.sha256,
    )


def read(storage: Storage, folder: str, abstracts_folder: str) -> pa.Table:
    """The rows of :data:`OVERLAP` of a finished PMC directory; a local file is mapped, not read into memory.

    Args:
        abstracts_folder: the PubMed directory that it is to be about.

    Raises:
        ManifestNotFoundError: one of the directories is not finished.
        OverlapInputError: ``folder`` lists no abstracts, or those of other shards than ``abstracts_folder``
            has.
    """
    read_manifest(storage, folder)
    path = f"{folder}/{FILE_NAME}"
    if not storage.exists(path):
        raise OverlapInputError(
            f"{folder} has no {FILE_NAME}: it was made without --find-overlap-with, so it does not say which "
            "abstracts it "
            f"holds in full. Run pmc_to_shards with --find-overlap-with {abstracts_folder}."
        )
    with arrow_io.open_mapped(storage, path) as file, pa.ipc.open_stream(file) as stream:
        table = stream.read_all()
    if (table.schema.metadata or {}).get(_ABSTRACTS_DIGEST_KEY) != digest_abstracts(
        storage, abstracts_folder
    ).encode():
        raise OverlapInputError(
            f"{path} was made for other PubMed shards than {abstracts_folder} has now. If that folder has "
            "been "
            "updated since, run pmc_to_shards again with the same --find-overlap-with."
        )
    return table


def exclude_ids(documents: Iterable[pa.RecordBatch], ids: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
    """The documents whose ids are not listed, batch by batch.

    Args:
        documents: batches with a column ``id``, in which an id is there once.
        ids: those to leave out, in the order of the documents: so for each batch only the next ones of
            them are looked at, and never all.

    Raises:
        ValueError: an id listed is not among the documents, or not in their order.
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
        raise ValueError(
            f"{ids[start]} is to be left out, but is not among the documents or not in its place"
        )


# Keys as they are compared: PMIDs and PMCIDs as numbers, DOIs in small letters


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
    """DOIs as they are compared, null where it is none."""
    return pc.struct_field(pc.extract_regex(pc.ascii_lower(dois), _DOI_PATTERN), "doi")


def _ranks_from_ids(ids: pa.Array) -> pa.Array:
    """Ids of PMC documents as numbers of the same order."""
    groups = pc.extract_regex(ids, _PMC_ID_PATTERN)
    if groups.null_count:
        invalid_id = ids.filter(pc.is_null(groups))[0]
        raise ValueError(f"{invalid_id} is not the id of a PMC document: such are like pmc:PMC123.1")
    number = pc.struct_field(groups, "number").cast(pa.int64())
    version = pc.struct_field(groups, "version").cast(pa.int64())
    return pc.add(pc.multiply(number, 1 << _VERSION_BITS), version)


def _ids_from_ranks(ranks: pa.Array) -> pa.Array:
    """The ids of which these are the ranks."""
    number = pc.shift_right(ranks, _VERSION_BITS).cast(pa.string())
    version = pc.bit_wise_and(ranks, (1 << _VERSION_BITS) - 1).cast(pa.string())
    return pc.binary_join_element_wise("pmc:PMC", pc.binary_join_element_wise(number, version, "."), "")


# Looking up


def _rebatch(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables' rows, some :data:`ROWS` at a time."""
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
    """The tables in one piece, taken out of the list so that they are not in memory twice for long."""
    table = pa.concat_tables(pending).combine_chunks()
    pending.clear()
    return table


def _find_matched_articles(
    article_tables: list[pa.Table], abstracts: Iterable[pa.Table]
) -> list[pa.ChunkedArray]:
    """Whether an abstract has the PMID or the PMCID of each article."""
    is_matched = [pa.chunked_array([pa.repeat(False, table.num_rows)]) for table in article_tables]
    for keys in _rebatch(abstracts if article_tables else ()):
        for column in ("pmid", "pmcid"):
            values = keys[column].combine_chunks()
            for index, table in enumerate(article_tables):
                has_value = pc.is_in(table[column], value_set=values, skip_nulls=True)
                is_matched[index] = pc.or_(is_matched[index], has_value)
    return is_matched


def _matchabstracts(
    abstracts: pa.Table, article_tables: list[pa.Table], doi_tables: list[pa.Table]
) -> pa.Table:
    """The rows of :data:`OVERLAP` of some abstracts, looked up in the articles' ids and DOIs."""
    by_pmid = _find_lowest_ranks(abstracts["pmid"], article_tables, "pmid")
    by_pmcid = _find_lowest_ranks(abstracts["pmcid"], article_tables, "pmcid")
    rank = pc.coalesce(by_pmid, by_pmcid, _find_lowest_ranks(abstracts["doi"], doi_tables, "doi"))
    matched_by = pc.if_else(pc.is_valid(by_pmid), "pmid", pc.if_else(pc.is_valid(by_pmcid), "pmcid", "doi"))
    rows = pa.table({"id": abstracts["id"], "rank": rank, "matched_by": matched_by})
    rows = rows.filter(pc.is_valid(rank))
    return rows.set_column(1, "full_text_id", _ids_from_ranks(rows["rank"])).cast(OVERLAP_SCHEMA)


def _find_lowest_ranks(keys: pa.ChunkedArray, article_tables: list[pa.Table], column: str) -> pa.ChunkedArray:
    """The lowest rank of the articles that have each key, null where none has."""
    ranks = [
        table["rank"].take(pc.index_in(keys, value_set=table[column].combine_chunks(), skip_nulls=True))
        for table in article_tables
    ]
    return pc.min_element_wise(*ranks)
