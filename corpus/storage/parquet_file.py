"""Open Parquet files that are Python files."""

from __future__ import annotations

import pyarrow.parquet as pq


def open_parquet(file: object, *, checks_pages: bool = False, buffer_size: int = 0) -> pq.ParquetFile:
    """Open a Parquet file that the calling thread alone reads.

    Arrow reads ahead in threads of its own by default. One that lets go of a Python file while the process
    ends aborts the process.

    Args:
        file: a binary file.
        checks_pages: compare the checksums of pages.
        buffer_size: bytes that are read of a column at a time; 0 for whole columns of a row group.

    Raises:
        pyarrow.ArrowInvalid: it is no Parquet file, or its footer is damaged.
    """
    return pq.ParquetFile(
        file, pre_buffer=False, page_checksum_verification=checks_pages, buffer_size=buffer_size
    )
