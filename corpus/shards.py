"""Write and read document shards: Arrow IPC streams that pyarrow and datasets open memory-mapped.

A directory of shards holds ``data-*.arrow`` and the two small JSON files by which Hugging Face's
``datasets.load_from_disk`` finds them.  Shards are streams, not IPC files, because that is what
``datasets`` maps, and uncompressed, because a compressed one would be unpacked into memory.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from .document import SCHEMA, Document
from .files import Checked, LocalFiles
from .manifest import DocumentsManifest, ManifestError, read_manifest
from .manifest import Shard as Shard

BATCH_ROWS: Final = 2048
"""Documents a record batch: 3-4 MB of abstracts, the unit that is in memory at a time."""
BATCH_CHARACTERS: Final = 8_000_000
"""Characters a record batch, of longer documents: some 200 articles."""


def listed(lists: list[list[Any]]) -> tuple[pa.Array, list[Any]]:
    """Offsets and flat values of a list column."""
    offsets = [0]
    flat: list[Any] = []
    for values in lists:
        flat += values
        offsets.append(len(flat))
    return pa.array(offsets, pa.int32()), flat


def batch(documents: list[Document]) -> pa.RecordBatch:
    """The documents as one record batch of :data:`~.document.SCHEMA`."""
    sentence_offsets, sentences = listed([document.sentences for document in documents])
    section_offsets, sections = listed([document.sections for document in documents])
    columns = {
        "id": pa.array([document.id for document in documents], pa.string()),
        "source": pa.array([document.source for document in documents], pa.string()),
        "pmid": pa.array([document.pmid for document in documents], pa.int32()),
        "pmcid": pa.array([document.pmcid for document in documents], pa.string()),
        "doi": pa.array([document.doi for document in documents], pa.string()),
        "version": pa.array([document.version for document in documents], pa.int16()),
        "year": pa.array([document.year for document in documents], pa.int16()),
        "journal": pa.array([document.journal for document in documents], pa.string()),
        "article_type": pa.array([document.article_type for document in documents], pa.string()),
        "language": pa.array([document.language for document in documents], pa.string()),
        "licence": pa.array([document.licence for document in documents], pa.string()),
        "retracted": pa.array([document.retracted for document in documents], pa.bool_()),
        "flags": pa.array([document.flags for document in documents], pa.list_(pa.string())),
        "title": pa.array([document.title for document in documents], pa.string()),
        "sentences": pa.ListArray.from_arrays(sentence_offsets, pa.array(sentences, pa.string())),
        "sections": pa.ListArray.from_arrays(
            section_offsets,
            pa.StructArray.from_arrays(
                [
                    pa.array([heading for heading, _ in sections], pa.string()),
                    pa.array([first for _, first in sections], pa.int32()),
                ],
                names=["heading", "first_sentence"],
            ),
        ),
        "origin": pa.StructArray.from_arrays(
            [
                pa.array([document.file for document in documents], pa.string()),
                pa.array([document.position for document in documents], pa.int32()),
            ],
            names=["file", "position"],
        ),
    }
    return pa.RecordBatch.from_arrays([columns[name] for name in SCHEMA.names], schema=SCHEMA)


def _room(batch: pa.RecordBatch) -> int:
    """Bytes the batch takes in a stream, at most: its buffers, their padding and description."""
    return int(batch.nbytes) + 10_000


def write(
    files: LocalFiles,
    folder: str,
    stem: str,
    batches: Iterable[pa.RecordBatch],
    schema: pa.Schema,
    max_bytes: int,
) -> list[Shard]:
    """Write record batches to ``data-STEM-00000.arrow`` and on, none larger than ``max_bytes``.

    A new shard begins where a batch would go over the bound; a single batch (a few MB) may.
    """
    shards: list[Shard] = []
    source = iter(batches)
    waiting = next(source, None)
    while waiting is not None:
        name = f"data-{stem}-{len(shards):05d}.arrow"
        rows = 0
        with files.write(f"{folder}/{name}") as file:
            checked = Checked(file)
            with pa.ipc.new_stream(pa.PythonFile(checked, "w"), schema) as stream:
                while waiting is not None and (not rows or checked.size + _room(waiting) <= max_bytes):
                    stream.write_batch(waiting)
                    rows += waiting.num_rows
                    waiting = next(source, None)
        shards.append(Shard(name, rows, checked.size, checked.sha256))
    return shards


def publish(files: LocalFiles, folder: str, shards: list[Shard]) -> None:
    """Write what ``datasets.load_from_disk`` looks for beside the shards."""
    fingerprint = digest(shard.sha256 for shard in shards)
    files.write_json(f"{folder}/dataset_info.json", {})
    files.write_json(
        f"{folder}/state.json",
        {
            "_data_files": [{"filename": shard.file} for shard in shards],
            "_fingerprint": fingerprint[:16],
            "_format_columns": None,
            "_format_kwargs": {},
            "_format_type": None,
            "_output_all_columns": False,
            "_split": None,
        },
    )


def digest(sha256s: Iterable[str]) -> str:
    """A digest of shards by theirs, in order."""
    return hashlib.sha256("".join(sha256s).encode()).hexdigest()


def documents_manifest(files: LocalFiles, folder: str) -> DocumentsManifest:
    """Read the manifest of a finished directory of documents.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: it holds something else, or its manifest is damaged.
    """
    manifest = read_manifest(files, folder)
    if not isinstance(manifest, DocumentsManifest):
        raise ManifestError(
            f"{folder} does not hold documents: by its manifest.json it was made by {manifest.pipeline}. "
            "Give the --output of beam run pubmed_to_shards or pmc_to_shards",
            f"{folder}/manifest.json",
        )
    return manifest


def read(files: LocalFiles, folder: str, columns: Sequence[str] = SCHEMA.names) -> Iterator[pa.RecordBatch]:
    """All record batches of a finished directory, in its shards' order.

    Args:
        columns: those to read, in the order of the schema; of local shards nothing else is read.

    Raises:
        ManifestNotFoundError: the directory has no manifest, so it is not (or not yet) finished.
        ManifestError: it holds something else, or its manifest is damaged.
    """
    yield from read_some(files, folder, documents_manifest(files, folder).outputs, columns)


def read_some(
    files: LocalFiles, folder: str, listed: Iterable[Shard], columns: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    """The record batches of some of a directory's shards, as its manifest lists them; only these columns."""
    for shard in listed:
        yield from read_columns(files, f"{folder}/{shard.file}", columns)


def read_columns(files: LocalFiles, path: str, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The record batches of one file; only these columns."""
    with opened(files, path) as file:
        has = pa.ipc.read_schema(file)  # an older version's may have fewer columns
        file.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=[has.get_field_index(name) for name in columns])
        with pa.ipc.open_stream(file, options=options) as stream:
            yield from stream


def opened(files: LocalFiles, path: str) -> Any:
    """An Arrow stream's file, mapped where it is local, so that only what is looked at is read."""
    return files.open(path) if "://" in path else pa.memory_map(path)
