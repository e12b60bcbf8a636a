"""A shard's rows to its files: Arrow always, TensorFlow records beside it where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from bioshards.corpus.files import Checked, LocalFiles
from bioshards.corpus.pretraining import RECORDS
from bioshards.corpus.shards import Shard

from .plan import Keys
from .tensorflow import Tensorflow


@dataclass(frozen=True, slots=True)
class Writer:
    """Writes what is asked for.

    Attributes:
        tensorflow: makes records for the original trainers; None where none are asked for.
    """

    tensorflow: Tensorflow | None = None

    def write(
        self,
        files: LocalFiles,
        output: str,
        split: str,
        name: str,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        keys: Keys,
    ) -> list[Shard]:
        """Write one shard of a split; returns its files as a manifest lists them.

        Args:
            keys: 64 bits for each row.
        """
        rows = written = 0
        with ExitStack() as stack:
            arrow = _Listed(files, output, f"{split}/{name}.arrow", stack)
            records = None
            if self.tensorflow:
                path = f"{RECORDS[split]}/pretrain_data.tfrecord-{name.removeprefix('data-')}"
                records = _Listed(files, output, path, stack)
            stream = stack.enter_context(pa.ipc.new_stream(pa.PythonFile(arrow.file, "w"), schema))
            for batch in batches:
                stream.write_batch(batch)
                if self.tensorflow and records:
                    data, count = self.tensorflow.records(batch, keys[rows : rows + len(batch)])
                    records.file.write(data)
                    written += count
                rows += len(batch)
        return [arrow.listed(rows), *([records.listed(written)] if records else [])]


def stand(files: LocalFiles, output: str, listed: Iterable[Shard]) -> bool:
    """Are the files that :meth:`Writer.write` has listed still there, with as many bytes?"""
    return all([found.size for found in files.find(f"{output}/{one.file}")] == [one.bytes] for one in listed)


class _Listed:
    """A file being written, to be listed once it is whole."""

    def __init__(self, files: LocalFiles, output: str, path: str, stack: ExitStack) -> None:
        self._path = path
        self.file = Checked(stack.enter_context(files.write(f"{output}/{path}")))

    def listed(self, rows: int) -> Shard:
        return Shard(self._path, rows, self.file.size, self.file.sha256)
