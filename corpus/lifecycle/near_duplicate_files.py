"""The files by which near duplicates are found: signatures, candidates and decisions.

Signatures are written once for each source, in large batches, so that a column is few ranges of the file.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from bioshards.corpus.lifecycle import versions
from bioshards.corpus.lifecycle.near_duplicates import (
    SIGNATURE_SCHEMA,
    SignatureTable,
    UInt32Array,
    compute_signature,
    make_signature_batch,
)
from bioshards.corpus.manifest import Shard, sweep
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import prefetch_map
from bioshards.corpus.storage.storage_protocol import Storage

DUPLICATES_HEADER: Final = b"id\tduplicate_of\tsimilarity\n"
_BATCH_DOCUMENTS: Final = 65_536
"""Documents in a batch of signatures: 33 MB."""
_CANDIDATE_SCHEMA: Final = pa.schema([pa.field("pair", pa.uint64(), nullable=False)])


class SignatureWriter(ExitStack):
    """Writes the signatures of the documents of a source; the file appears when the block ends."""

    def __init__(self, storage: Storage, path: str) -> None:
        super().__init__()
        file = pa.PythonFile(self.enter_context(storage.write(path)), "w")
        self._writer = self.enter_context(pa.ipc.new_file(file, SIGNATURE_SCHEMA))
        self._rows: list[tuple[int, str, int, int | None]] = []
        self._signatures: list[UInt32Array] = []
        self.callback(self._write_batch)

    def add(
        self, key: int, document_id: str, position: int, year: int | None, title: str, abstract: Iterable[str]
    ) -> None:
        """Add a document; one without an abstract is left out."""
        signature = compute_signature(title, abstract)
        if signature is not None:
            self._rows.append((key, document_id, position, year))
            self._signatures.append(signature)
            if len(self._rows) == _BATCH_DOCUMENTS:
                self._write_batch()

    def _write_batch(self) -> None:
        self._writer.write_batch(make_signature_batch(self._rows, self._signatures))
        self._rows, self._signatures = [], []


@dataclass(frozen=True, slots=True)
class SignatureSource:
    """The signatures of the documents of a source.

    Attributes:
        path: file of :class:`SignatureWriter`; None if there is none.
        dropped_positions: positions of documents that are dropped for other reasons.
    """

    path: str | None
    dropped_positions: pa.Array | None = None


def write_candidates(
    storage: Storage,
    output_dir: OutputDir,
    sources: Sequence[SignatureSource],
    band: int,
    bucket: int,
    num_buckets: int,
) -> str:
    """Write the pairs of :meth:`.SignatureTable.find_candidates`; return the path of the file."""
    pairs = _open_signatures(storage, sources).find_candidates(band, bucket, num_buckets)
    path = output_dir.candidates_path(band, bucket)
    with storage.write(path) as out, pa.ipc.new_stream(out, _CANDIDATE_SCHEMA) as stream:
        stream.write_table(pa.table([pa.array(pairs)], schema=_CANDIDATE_SCHEMA))
    return path


def write_near_duplicate_decisions(
    storage: Storage, output_dir: OutputDir, sources: Sequence[SignatureSource], candidate_files: list[str]
) -> str:
    """Write the decisions on near duplicates, a batch per source in order; return the path."""

    def read_pairs(path: str) -> pa.Table:
        with storage.open(path) as file, pa.ipc.open_stream(file) as stream:
            return stream.read_all()

    tables = [_CANDIDATE_SCHEMA.empty_table(), *prefetch_map(storage, read_pairs, candidate_files)]
    candidates = pa.concat_tables(tables)["pair"].to_numpy()
    return versions.write_decisions(
        storage,
        output_dir.near_duplicate_decisions_path,
        _open_signatures(storage, sources).find_near_duplicates(candidates),
    )


def write_duplicate_list(
    storage: Storage, path: str, sources: Sequence[SignatureSource], decisions_path: str
) -> Shard:
    """Write the ids of near duplicates, of their originals, and the estimated similarities, in order.

    Returns:
        The entry of the file in the manifest.
    """
    rows = 0
    with (
        arrow_io.open_mapped(storage, decisions_path) as file,
        pa.ipc.open_file(file) as reader,
        storage.write(path) as out,
    ):
        writer = HashingWriter(out)
        writer.write(DUPLICATES_HEADER)
        for index, source in enumerate(sources):
            decisions = reader.get_batch(index)
            if not decisions.num_rows:
                continue
            rows += decisions.num_rows
            documents = _read_columns(storage, source, ["id", "position"])
            ids = documents["id"].take(pc.index_in(decisions["position"], documents["position"]))
            for document_id, decision in zip(ids.to_pylist(), decisions.to_pylist(), strict=True):
                line = f"{document_id}\t{decision['duplicate_of']}\t{decision['similarity']:.3f}\n"
                writer.write(line.encode())
    return Shard(os.path.basename(path), rows, writer.size, writer.sha256)


def sweep_signatures(storage: Storage, output_dir: OutputDir, sources: Iterable[SignatureSource]) -> None:
    """Remove the signatures in the work folder that belong to other shards than these."""
    sweep(storage, [output_dir.signatures_folder], {source.path for source in sources if source.path})


def _open_signatures(storage: Storage, sources: Sequence[SignatureSource]) -> SignatureTable:
    readers = [functools.partial(_read_columns, storage, source) for source in sources]
    return SignatureTable(storage, readers)


def _read_columns(storage: Storage, source: SignatureSource, columns: Sequence[str]) -> pa.Table:
    """Read columns of the documents that are not dropped."""
    if source.path is None:
        return SIGNATURE_SCHEMA.empty_table().select(columns)
    names = [name for name in SIGNATURE_SCHEMA.names if name in ("position", *columns)]
    options = pa.ipc.IpcReadOptions(included_fields=list(map(SIGNATURE_SCHEMA.get_field_index, names)))
    with (
        arrow_io.open_mapped(storage, source.path) as file,
        pa.ipc.open_file(file, options=options) as reader,
    ):
        table = reader.read_all()
    if source.dropped_positions is not None:
        table = table.filter(pc.invert(pc.is_in(table["position"], value_set=source.dropped_positions)))
    return table.select(columns)
