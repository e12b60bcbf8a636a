"""A shard's rows to its files: Arrow always, TensorFlow records beside it where they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from bioshards.corpus.output.output_layout import TFRECORD_FOLDERS
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.vocab.pretraining.tfrecord.record_encoder import RecordEncoder

from .row_keys import KeyArray


@dataclass(frozen=True, slots=True)
class ShardWriter:
    """Writes what is asked for.

    Attributes:
        tensorflow: makes records for the original trainers; None where none are asked for.
    """

    record_encoder: RecordEncoder | None = None

    def write(
        self,
        storage: LocalStorage,
        output: str,
        split: str,
        name: str,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        keys: KeyArray,
    ) -> list[Shard]:
        """Write one shard of a split; returns its files as a manifest lists them.

        Args:
            keys: 64 bits for each row.
        """
        rows = num_records = 0
        with ExitStack() as stack:
            arrow_file = _OutputFile(storage, output, f"{split}/{name}.arrow", stack)
            record_file = None
            if self.record_encoder:
                path = f"{TFRECORD_FOLDERS[split]}/pretrain_data.tfrecord-{name.removeprefix('data-')}"
                record_file = _OutputFile(storage, output, path, stack)
            stream = stack.enter_context(pa.ipc.new_stream(pa.PythonFile(arrow_file.writer, "w"), schema))
            for batch in batches:
                stream.write_batch(batch)
                if self.record_encoder and record_file:
                    record_bytes, count = self.record_encoder.encode_batch(
                        batch, keys[rows : rows + len(batch)]
                    )
                    record_file.writer.write(record_bytes)
                    num_records += count
                rows += len(batch)
        return [
            arrow_file.to_manifest_entry(rows),
            *([record_file.to_manifest_entry(num_records)] if record_file else []),
        ]


def has_all_outputs(storage: LocalStorage, output: str, outputs: Iterable[Shard]) -> bool:
    """Are the files that :meth:`Writer.write` has listed still there, with as many bytes?"""
    return all(
        [file_info.size for file_info in storage.glob(f"{output}/{entry.file}")] == [entry.bytes]
        for entry in outputs
    )


class _OutputFile:
    """A file being written, to be listed once it is whole."""

    def __init__(self, storage: LocalStorage, output: str, path: str, stack: ExitStack) -> None:
        self._path = path
        self.writer = HashingWriter(stack.enter_context(storage.write(f"{output}/{path}")))

    def to_manifest_entry(self, rows: int) -> Shard:
        return Shard(self._path, rows, self.writer.size, self.writer.sha256)
