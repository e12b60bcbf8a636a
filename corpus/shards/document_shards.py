"""Write and read document shards: Parquet files in ``OUT/data/``, one row a document.

pandas, polars, DuckDB and pyarrow open ``OUT/data``; ``datasets.load_dataset("OUT")`` finds the files by the
dataset card.  The layout is that of datasets on the Hugging Face hub.

The choices, measured on 50,491 abstracts and 2,233 articles: zstd level 1 gives a third of the bytes for 2 %
of the time of a job (abstracts) to 6 % (articles); dictionaries save less than 0.5 %; row groups of 16 MB are
1 % larger than of 64 MB.  Without checksums of pages, 18 of 40 flipped bits were read as other text; with
them, none.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from bioshards.corpus.errors import BioshardsError, UserError, quote
from bioshards.corpus.manifest import (
    DOCUMENT_PIPELINES,
    DocumentsManifest,
    ForeignManifestError,
    ManifestError,
    Shard,
    find_damage,
    read_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards.document_schema import BATCH_ROWS
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parquet_file import open_parquet
from bioshards.corpus.storage.storage_protocol import Storage

DATA_FOLDER: Final = "data"
DROPPED_FOLDER: Final = "dropped"
"""Folders of the shards of an output: of its documents, and of those that ``--keep-dropped`` keeps."""
SUFFIX: Final = ".parquet"
_GROUP_BYTES: Final = 16_000_000
"""Bytes of a row group in memory: some 8,000 abstracts or 420 articles.  A reader holds one at a time."""
_METADATA_KEY: Final = b"bioshards"
_MAX_OVERHEAD: Final = 100_000
"""Most bytes of page headers, page index and footer that a row group adds to its data."""
_COLUMNS_WITH_STATISTICS: Final = ("id", "pmid", "pmcid", "doi", "year", "published", "entered", "revised")
"""Columns by which readers skip row groups and pages."""


class DamagedShardError(UserError, OSError):
    """A shard is missing, or not as its manifest lists it."""


def write_shards(
    storage: Storage,
    output: str,
    stem: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    max_bytes: int,
    folder: str = DATA_FOLDER,
) -> list[Shard]:
    """Write record batches to ``FOLDER/data-STEM-00000.parquet`` and following shards.

    The same batches give the same bytes, whatever the number of threads.  Another version of pyarrow changes
    ``created_by`` in the footer.

    Args:
        output: output directory.
        stem: part of the file names; it may begin with any character.
        batches: record batches in order.
        schema: schema of the batches.
        max_bytes: size limit of a shard; only a shard of a single document may exceed it.
        folder: :data:`DATA_FOLDER` or :data:`DROPPED_FOLDER`.

    Returns:
        The shards, named relative to ``output``.
    """
    metadata = {"format": FORMAT, "output": folder}
    schema = schema.with_metadata({_METADATA_KEY: json.dumps(metadata).encode()})
    shards: list[Shard] = []
    groups = _iter_row_groups(batches, min(_GROUP_BYTES, max_bytes))
    pending = next(groups, None)
    while pending is not None:
        name, rows = f"{folder}/data-{stem}-{len(shards):05d}{SUFFIX}", 0
        with storage.write(f"{output}/{name}") as file:
            hashing_file = HashingWriter(file)
            with _open_writer(hashing_file, schema) as writer:
                while pending is not None and (
                    not rows or hashing_file.size + pending.nbytes + _MAX_OVERHEAD <= max_bytes
                ):
                    writer.write_table(pending.cast(schema), row_group_size=len(pending))
                    rows += len(pending)
                    pending = next(groups, None)
        shards.append(Shard(name, rows, hashing_file.size, hashing_file.sha256))
    return shards


def _iter_row_groups(batches: Iterable[pa.RecordBatch], max_bytes: int) -> Iterator[pa.Table]:
    """Yield tables of at most this many bytes in memory, or of one document."""
    pending: list[pa.RecordBatch] = []
    num_bytes = 0
    for batch in batches:
        rows = max(1, batch.num_rows * max_bytes // max(1, batch.nbytes, max_bytes))
        for start in range(0, batch.num_rows, rows):
            part = batch.slice(start, rows)
            if pending and num_bytes + part.nbytes > max_bytes:
                yield pa.Table.from_batches(pending)
                pending, num_bytes = [], 0
            pending.append(part)
            num_bytes += part.nbytes
    if pending:
        yield pa.Table.from_batches(pending)


def _open_writer(file: HashingWriter, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(
        pa.PythonFile(file, "w"),
        schema,
        compression="zstd",
        compression_level=1,
        use_dictionary=False,
        write_statistics=[name for name in _COLUMNS_WITH_STATISTICS if name in schema.names],
        write_page_index=True,
        write_page_checksum=True,
    )


def read_documents_manifest(
    storage: Storage, folder: str, accepted_pipelines: Sequence[str] = DOCUMENT_PIPELINES
) -> DocumentsManifest:
    """Read the manifest of a finished directory of documents.

    Args:
        accepted_pipelines: pipelines to name in the error message.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: it holds something else, was made by another version of bioshards, or its manifest is
            damaged.
    """
    pipeline: str | None
    try:
        manifest = read_manifest(storage, folder)
        if isinstance(manifest, DocumentsManifest):
            if manifest.config.format != FORMAT:
                raise ManifestError(
                    f"{folder} was made by another version of bioshards (format {manifest.config.format}, "
                    f"this is {FORMAT}). Make it anew: beam run {manifest.pipeline} with another --output"
                )
            return manifest
        pipeline = manifest.pipeline
    except ForeignManifestError as error:
        pipeline = error.pipeline
    origin = f"was made by {pipeline}" if pipeline else "is not of bioshards"
    *other_pipelines, last_pipeline = accepted_pipelines
    raise ManifestError(
        f"{folder} does not hold documents: by its manifest.json it {origin}. Give the --output of "
        f"beam run {', '.join(other_pipelines)} or {last_pipeline}"
    )


def read_directory(
    storage: Storage, folder: str, columns: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield all record batches of a finished directory, in the order of its shards.

    Args:
        columns: names of the columns to read, in the order of the schema; None for all.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: as :func:`read_documents_manifest`.
        DamagedShardError: as :func:`read_shards`.
    """
    yield from read_shards(storage, folder, read_documents_manifest(storage, folder).outputs, columns)


def read_shards(
    storage: Storage, folder: str, manifest_entries: Iterable[Shard], columns: Sequence[str] | None
) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of some shards of a directory, with these columns only, or all for None.

    The size and the SHA-256 of each shard are compared with the manifest before it is read: a damaged footer
    may end the process, or give other values.

    Raises:
        DamagedShardError: a shard is missing, or not as the manifest lists it.
    """
    for shard in manifest_entries:
        check_shard(storage, folder, shard)
        yield from read_checked_file(storage, f"{folder}/{shard.file}", columns)


def read_checked_file(storage: Storage, path: str, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of a shard that is as its manifest lists it, as :func:`read_file`.

    Raises:
        DamagedShardError: whoever wrote shard and manifest wrote no documents.
    """
    with _explain_damage(path):
        yield from read_file(storage, path, columns)


@contextlib.contextmanager
def _explain_damage(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and (error.errno or isinstance(error, BioshardsError)):
            raise
        raise DamagedShardError(
            f"{path} is damaged: {quote(str(error)).rstrip('.')}. Copy it again, or delete it and run the "
            "command that wrote it"
        ) from error


def check_shard(storage: Storage, folder: str, shard: Shard) -> None:
    """Compare the size and the SHA-256 of a shard with its manifest entry.

    Raises:
        DamagedShardError: it is missing, or not as the manifest lists it.
    """
    path = f"{folder}/{shard.file}"
    if damage := find_damage(storage, path, shard):
        raise DamagedShardError(
            f"{path} is damaged: {damage}. Copy it again, or delete it and run the command that wrote it"
        )


def read_rows(
    storage: Storage, path: str, rows: Sequence[int], columns: Sequence[str] | None = None
) -> Iterator[dict[str, Any]]:
    """Yield some rows of one shard; one batch is in memory at a time, and nothing is read after the last row.

    Args:
        rows: 0-based numbers of the rows, ascending, at least one.
        columns: names of the columns to read; None for all.

    Raises:
        DamagedShardError: the shard cannot be read.
    """
    start = 0
    with _explain_damage(path):
        for batch in read_file(storage, path, columns):
            end = start + batch.num_rows
            if chosen := [row - start for row in rows if start <= row < end]:
                yield from batch.take(pa.array(chosen)).to_pylist()
            if rows[-1] < end:
                return
            start = end


def read_file(storage: Storage, path: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
    """Yield the record batches of one shard, with these columns only, or all for None.

    Only these columns are read, a row group at a time, and the checksums of their pages are compared.

    Raises:
        OSError: the file cannot be read, or a page is damaged.
        pyarrow.ArrowInvalid: it is no Parquet file, is damaged, or lacks a column.
    """
    with storage.open(path) as file, _open_parquet(file) as parquet:
        if missing := set(columns or ()).difference(parquet.schema_arrow.names):
            raise pa.ArrowInvalid(f"it has no column {', '.join(sorted(missing))}")
        for group in range(parquet.num_row_groups):
            # Over several groups, iter_batches would join them: 79 MB of articles in a batch were seen.
            yield from parquet.iter_batches(
                BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False
            )


def _open_parquet(file: object) -> pq.ParquetFile:
    try:
        return open_parquet(file, checks_pages=True)
    except UnicodeDecodeError as error:  # a name of a column
        raise pa.ArrowInvalid(f"its footer is damaged: {error}") from error
