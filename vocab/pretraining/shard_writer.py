"""Write the files of a shard of rows: Arrow, and TFRecord if requested."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass

import pyarrow as pa

from bioshards.corpus.output.output_layout import TFRECORD_FOLDERS
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.vocab.pretraining.tfrecord.record_encoder import RecordEncoder

from .row_keys import KeyArray


@dataclass(frozen=True, slots=True)
class ShardWriter:
    """Writer of shards.

    Attributes:
        record_encoder: encoder of TFRecord files; None writes none.
    """

    record_encoder: RecordEncoder | None = None

    def write(
        self,
        storage: Storage,
        output: str,
        split: str,
        name: str,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        keys: KeyArray,
    ) -> list[Shard]:
        """Write one shard of a split, and return its files as listed in the manifest.

        Args:
            schema: schema of the shard (``pretraining_schema.make_schema``).
            batches: record batches of the rows.
            keys: sort key of each row.
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


def has_all_outputs(storage: Storage, output: str, outputs: Iterable[Shard]) -> bool:
    """Return True if all files exist with the listed sizes."""
    return all(
        [file_info.size for file_info in storage.glob(f"{output}/{entry.file}")] == [entry.bytes]
        for entry in outputs
    )


class _OutputFile:
    """A file being written, and its manifest entry once it is complete."""

    def __init__(self, storage: Storage, output: str, path: str, stack: ExitStack) -> None:
        self._path = path
        self.writer = HashingWriter(stack.enter_context(storage.write(f"{output}/{path}")))

    def to_manifest_entry(self, rows: int) -> Shard:
        return Shard(self._path, rows, self.writer.size, self.writer.sha256)
