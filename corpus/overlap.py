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

from . import shards
from .errors import UserError
from .files import Checked, LocalFiles
from .manifest import DocumentsManifest, ForeignManifestError, OverlapFile, read_manifest
from .shards import Shard

KEYS: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("pmid", pa.int32()),
        pa.field("pmcid", pa.string()),
        pa.field("doi", pa.string()),
    ]
)
"""One row a document that is kept, its id as in ``pmc:PMC123.1`` or ``pubmed:123``."""

OVERLAP: Final = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("full_text_id", pa.string(), nullable=False),
        pa.field("matched_by", pa.string(), nullable=False),
    ]
)
"""One row an abstract that PMC holds in full, in the order of the abstracts: its id, the id of the PMC
document, and by what it was found: pmid, pmcid or doi."""

_HASHED: Final = OVERLAP.set(1, pa.field("held_by", pa.string(), nullable=False))
"""The schema that ``rows_sha256`` is made with.  Keep its names: the names of the shards of a pretraining
set, and with them the order of its rows, depend on that hash."""

FILE: Final = "overlap.arrow"
"""The file of :data:`OVERLAP` in a directory made by pmc_to_shards, an Arrow IPC stream."""

ROWS: Final = 1_000_000
"""Abstracts looked up at a time, and articles they are looked up in, as Arrow makes a hash table of these:
with 8 million articles less than 1 GB at the peak, even if nothing but DOIs matches."""

_BATCH_ROWS: Final = 65_536

_ABSTRACTS_DIGEST: Final = b"abstracts"
"""Where the stream's schema metadata has the PubMed directory's :func:`identity`."""

_ID: Final = r"^pmc:PMC(?P<number>[1-9][0-9]{0,8})\.(?P<version>[1-9][0-9]{0,3})$"
_VERSION_BITS: Final = 16
_PMCID: Final = r"^PMC(?P<number>[0-9]{1,9})$"
_DOI: Final = r"^\s*(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?(?P<doi>10\.[^/\s]+/.*\S)\s*$"
"""A DOI in small letters, bare or with the address or the "doi:" it is displayed with.  The case of ASCII
letters makes no difference in a DOI (DOI Handbook,
https://www.doi.org/the-identifier/resources/handbook/)."""


class OverlapInputError(UserError):
    """A folder is finished but not what is asked for: the message says what it is and what to do."""


def find(
    articles: Iterable[pa.RecordBatch], abstracts: Callable[[], Iterable[pa.RecordBatch]]
) -> Iterator[pa.RecordBatch]:
    """The abstracts that PMC holds in full: batches of :data:`OVERLAP`, in the order of the abstracts.

    Args:
        articles: batches of :data:`KEYS` (shard_keys.py), in any order.
        abstracts: reads the same of PubMed's documents; called twice.

    Raises:
        ValueError: the id of an article is not like ``pmc:PMC123.1``.
    """
    ids = [part.sort_by("rank") for part in _gathered(map(_article_keys, articles))]
    dois = []
    for at, named in enumerate(_named(ids, map(_id_keys, abstracts()))):
        asked = pc.and_(pc.is_valid(ids[at]["doi"]), pc.invert(named))
        dois.append(ids[at].select(["doi", "rank"]).filter(asked))
        ids[at] = ids[at].drop_columns("doi")
    for part in _gathered(map(_abstract_keys, abstracts()) if ids else ()):
        yield from _held(part, ids, dois).to_batches(_BATCH_ROWS)
        del part  # not to hold it while the next is gathered


def of_pmc(keys: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Those of documents that PMC has, for :func:`find`: of a directory of full text others may be part."""
    for batch in keys:
        yield batch.filter(pc.starts_with(batch["id"], "pmc:"))


def of_abstracts(files: LocalFiles, folder: str) -> Sequence[Shard]:
    """The shards of a finished PubMed directory, as its manifest lists them.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: its manifest is damaged.
        OverlapInputError: it does not hold PubMed's abstracts.
    """
    pipeline: str | None
    try:
        manifest = read_manifest(files, folder)
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


def identity(files: LocalFiles, folder: str) -> str:
    """A digest of the shards of a finished PubMed directory: another one once it has been updated.

    Raises:
        ManifestNotFoundError, ManifestError, OverlapInputError: as :func:`of_abstracts`.
    """
    return shards.digest(shard.sha256 for shard in of_abstracts(files, folder))


def write(
    files: LocalFiles, path: str, folder: str, abstracts: str, batches: Iterable[pa.RecordBatch]
) -> OverlapFile:
    """Write what :func:`find` has found.

    Args:
        folder: the PubMed directory in which it was found.
        abstracts: the :func:`identity` of that directory.
    """
    rows = 0
    with files.write(path) as file, open(os.devnull, "wb") as nowhere:
        checked, hashed = Checked(file), Checked(nowhere)
        schema = OVERLAP.with_metadata({_ABSTRACTS_DIGEST: abstracts})
        hashed_schema = _HASHED.with_metadata({_ABSTRACTS_DIGEST: abstracts})
        with (
            pa.ipc.new_stream(pa.PythonFile(checked, "w"), schema) as stream,
            pa.ipc.new_stream(pa.PythonFile(hashed, "w"), hashed_schema) as hashed_stream,
        ):
            for batch in batches:
                stream.write_batch(batch)
                hashed_stream.write_batch(pa.RecordBatch.from_arrays(batch.columns, schema=hashed_schema))
                rows += batch.num_rows
    return OverlapFile(
        file=os.path.basename(path),
        rows=rows,
        bytes=checked.size,
        sha256=checked.sha256,
        of=folder,
        abstracts=abstracts,
        rows_sha256=hashed.sha256,
    )


def read(files: LocalFiles, folder: str, abstracts: str) -> pa.Table:
    """The rows of :data:`OVERLAP` of a finished PMC directory; a local file is mapped, not read into memory.

    Args:
        abstracts: the PubMed directory that it is to be about.

    Raises:
        ManifestNotFoundError: one of the directories is not finished.
        OverlapInputError: ``folder`` lists no abstracts, or those of other shards than ``abstracts`` has.
    """
    read_manifest(files, folder)
    path = f"{folder}/{FILE}"
    if not files.exists(path):
        raise OverlapInputError(
            f"{folder} has no {FILE}: it was made without --drop-in, so it does not say which abstracts it "
            f"holds in full. Run pmc_to_shards with --drop-in {abstracts}."
        )
    with shards.opened(files, path) as file, pa.ipc.open_stream(file) as stream:
        found = stream.read_all()
    if (found.schema.metadata or {}).get(_ABSTRACTS_DIGEST) != identity(files, abstracts).encode():
        raise OverlapInputError(
            f"{path} was made for other PubMed shards than {abstracts} has now. If that folder has been "
            "updated since, run pmc_to_shards again with the same --drop-in."
        )
    return found


def without(documents: Iterable[pa.RecordBatch], ids: pa.ChunkedArray) -> Iterator[pa.RecordBatch]:
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
        listed = pc.is_in(batch["id"], value_set=ids.slice(start, batch.num_rows).combine_chunks())
        left_out = pc.sum(listed, min_count=0).as_py()
        start += left_out
        if left_out:
            batch = batch.filter(pc.invert(listed))
        if batch.num_rows:
            yield batch
    if start < len(ids):
        raise ValueError(
            f"{ids[start]} is to be left out, but is not among the documents or not in its place"
        )


# Keys as they are compared: PMIDs and PMCIDs as numbers, DOIs in small letters


def _article_keys(rows: pa.RecordBatch) -> pa.Table:
    return _id_keys(rows).append_column("doi", _doi(rows["doi"])).append_column("rank", _rank(rows["id"]))


def _abstract_keys(rows: pa.RecordBatch) -> pa.Table:
    return _id_keys(rows).append_column("doi", _doi(rows["doi"])).append_column("id", rows["id"])


def _id_keys(rows: pa.RecordBatch) -> pa.Table:
    numbers = pc.struct_field(pc.extract_regex(rows["pmcid"], _PMCID), "number").cast(pa.int32())
    return pa.table({"pmid": rows["pmid"], "pmcid": numbers})


def _doi(dois: pa.Array) -> pa.Array:
    """DOIs as they are compared, null where it is none."""
    return pc.struct_field(pc.extract_regex(pc.ascii_lower(dois), _DOI), "doi")


def _rank(ids: pa.Array) -> pa.Array:
    """Ids of PMC documents as numbers of the same order."""
    found = pc.extract_regex(ids, _ID)
    if found.null_count:
        wrong = ids.filter(pc.is_null(found))[0]
        raise ValueError(f"{wrong} is not the id of a PMC document: such are like pmc:PMC123.1")
    number = pc.struct_field(found, "number").cast(pa.int64())
    version = pc.struct_field(found, "version").cast(pa.int64())
    return pc.add(pc.multiply(number, 1 << _VERSION_BITS), version)


def _id(ranks: pa.Array) -> pa.Array:
    """The ids of which these are the ranks."""
    number = pc.shift_right(ranks, _VERSION_BITS).cast(pa.string())
    version = pc.bit_wise_and(ranks, (1 << _VERSION_BITS) - 1).cast(pa.string())
    return pc.binary_join_element_wise("pmc:PMC", pc.binary_join_element_wise(number, version, "."), "")


# Looking up


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The tables' rows, some :data:`ROWS` at a time."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows >= ROWS:
            yield _joined(waiting)
            rows = 0
    if waiting:
        yield _joined(waiting)


def _joined(waiting: list[pa.Table]) -> pa.Table:
    """The tables in one piece, taken out of the list so that they are not in memory twice for long."""
    joined = pa.concat_tables(waiting).combine_chunks()
    waiting.clear()
    return joined


def _named(articles: list[pa.Table], abstracts: Iterable[pa.Table]) -> list[pa.ChunkedArray]:
    """Whether an abstract has the PMID or the PMCID of each article."""
    named = [pa.chunked_array([pa.repeat(False, part.num_rows)]) for part in articles]
    for keys in _gathered(abstracts if articles else ()):
        for column in ("pmid", "pmcid"):
            values = keys[column].combine_chunks()
            for at, part in enumerate(articles):
                found = pc.is_in(part[column], value_set=values, skip_nulls=True)
                named[at] = pc.or_(named[at], found)
    return named


def _held(abstracts: pa.Table, ids: list[pa.Table], dois: list[pa.Table]) -> pa.Table:
    """The rows of :data:`OVERLAP` of some abstracts, looked up in the articles' ids and DOIs."""
    by_pmid = _holding(abstracts["pmid"], ids, "pmid")
    by_pmcid = _holding(abstracts["pmcid"], ids, "pmcid")
    rank = pc.coalesce(by_pmid, by_pmcid, _holding(abstracts["doi"], dois, "doi"))
    matched_by = pc.if_else(pc.is_valid(by_pmid), "pmid", pc.if_else(pc.is_valid(by_pmcid), "pmcid", "doi"))
    rows = pa.table({"id": abstracts["id"], "rank": rank, "matched_by": matched_by})
    rows = rows.filter(pc.is_valid(rank))
    return rows.set_column(1, "full_text_id", _id(rows["rank"])).cast(OVERLAP)


def _holding(keys: pa.ChunkedArray, articles: list[pa.Table], column: str) -> pa.ChunkedArray:
    """The lowest rank of the articles that have each key, null where none has."""
    ranks = [
        part["rank"].take(pc.index_in(keys, value_set=part[column].combine_chunks(), skip_nulls=True))
        for part in articles
    ]
    return pc.min_element_wise(*ranks)
