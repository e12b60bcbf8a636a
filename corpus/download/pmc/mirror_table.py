"""Tables of a mirror of PMC: Parquet files whose checksums are compared as they are read."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bioshards.corpus.errors import RunError, TransientStorageError
from bioshards.corpus.storage.parquet_file import open_parquet
from bioshards.corpus.storage.storage_protocol import Storage

_SHA256: Final = b"sha256"
"""Key of the digest of the rows in the footer."""


class DamagedTableError(RunError):
    """A table of a mirror is damaged."""


@contextlib.contextmanager
def open_table(storage: Storage, path: str) -> Iterator[pq.ParquetFile]:
    """Open a table for reading.

    Raises:
        DamagedTableError: what is read of it within the block is damaged.
    """
    try:
        with storage.open(path) as file:
            yield open_parquet(file, checks_pages=True)
    except (FileNotFoundError, TransientStorageError):
        raise
    except (pa.ArrowException, OSError, LookupError, TypeError, ValueError) as error:
        raise DamagedTableError(
            f"{path} is damaged ({error}). Delete it, and fetch again: its content is got from PMC anew"
        ) from error


def read_table(storage: Storage, path: str, schema: pa.Schema) -> pa.Table:
    """Read a table that :func:`write_table` wrote; an empty one if there is none with these columns.

    Raises:
        DamagedTableError: it is damaged.
    """
    if not storage.exists(path):
        return schema.empty_table()
    with open_table(storage, path) as parquet:
        table = parquet.read()
        sha256 = (parquet.metadata.metadata or {}).get(_SHA256, b"").decode()
        if sha256 and sha256 != _digest_rows(table):  # earlier versions wrote none
            raise ValueError("its rows have another SHA-256")
        return table.cast(schema) if table.schema.names == schema.names else schema.empty_table()


def write_table(storage: Storage, path: str, table: pa.Table) -> None:
    """Write a table, with the SHA-256 of its rows: pages have checksums, the footer has none."""
    metadata = {_SHA256: _digest_rows(table)}
    with storage.write(path) as file:
        pq.write_table(
            table.replace_schema_metadata(metadata), file, compression="zstd", write_page_checksum=True
        )


def _digest_rows(table: pa.Table) -> str:
    """Return the SHA-256 of names and values."""
    columns = [column.cast(pa.string()) for column in table.columns]
    rows = pc.binary_join_element_wise(*columns, "\t", null_handling="replace", null_replacement="\0")
    return hashlib.sha256("\n".join([*table.schema.names, *rows.to_pylist()]).encode()).hexdigest()
