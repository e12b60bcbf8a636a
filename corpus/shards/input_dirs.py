"""Input directories of document shards: read by their manifests and checked.

A shard may be in one input only, so that no document is counted twice.
"""

from __future__ import annotations

import hashlib
import os
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from bioshards.corpus.errors import TransientStorageError, UserError
from bioshards.corpus.manifest import (
    DocumentsManifest,
    DocumentsPipeline,
    ForeignManifestError,
    InputAbstracts,
    InputArticles,
    InputDocuments,
    InputText,
    Listed,
    Manifest,
    ManifestError,
    read_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.storage.storage_protocol import Storage

DOCUMENT_PIPELINES: Final = typing.get_args(DocumentsPipeline)
"""Pipelines that write document shards."""
_SUMMARY_TYPES: Final[dict[str, type[InputAbstracts] | type[InputArticles] | type[InputText]]] = {
    "pubmed_to_shards": InputAbstracts,
    "pmc_to_shards": InputArticles,
    "text_to_shards": InputText,
}


class InputError(UserError):
    """An input directory is unfinished, of another kind, or given twice."""


@dataclass(frozen=True, slots=True)
class DocumentsInput:
    """A finished directory of documents.

    Attributes:
        folder: its path, without a trailing slash.
        pipeline: pipeline that wrote it, one of :data:`DOCUMENT_PIPELINES`.
        shards: its shards, in the order of its manifest.
    """

    folder: str
    pipeline: DocumentsPipeline
    shards: tuple[Shard, ...]

    @property
    def summary(self) -> InputDocuments:
        """Summarise the content for a manifest, independent of the path."""
        return _SUMMARY_TYPES[self.pipeline](
            shards_sha256=arrow_io.combine_digests(shard.sha256 for shard in self.shards),
            shards=len(self.shards),
            documents=sum(shard.rows for shard in self.shards),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the summary as JSON values, for a configuration."""
        summary: dict[str, Any] = msgspec.to_builtins(self.summary)
        return summary


def load_document_inputs(
    storage: Storage, folders: Sequence[str], accepted_pipelines: Sequence[str] = DOCUMENT_PIPELINES
) -> list[DocumentsInput]:
    """Read the manifests of input directories, in an order that depends on their content only.

    Args:
        folders: paths of the directories.
        accepted_pipelines: pipelines to name in error messages.

    Raises:
        InputError: a directory is unfinished, does not hold documents, was written by another version of
            bioshards, or shares a shard with another one.
    """
    document_inputs = [_load_documents_input(storage, folder, accepted_pipelines) for folder in folders]
    folder_by_digest: dict[str, str] = {}
    for documents in document_inputs:
        for shard in documents.shards:
            if other_folder := folder_by_digest.get(shard.sha256):
                raise InputError(
                    f"{other_folder} and {documents.folder} hold the same shard ({shard.file}, SHA-256 "
                    f"{shard.sha256[:12]}...), whose documents would be counted twice. Give one of them only"
                )
        folder_by_digest |= {shard.sha256: documents.folder for shard in documents.shards}
    return sorted(
        document_inputs, key=lambda documents: (documents.pipeline, documents.summary.shards_sha256)
    )


def find_damage(storage: Storage, path: str, shard: Listed) -> str | None:
    """Compare a file with its manifest entry; return the difference, or None."""
    digest, size = hashlib.sha256(), 0
    try:
        with storage.open(path) as file:
            while block := file.read(1 << 20):
                digest.update(block)
                size += len(block)
    except TransientStorageError:
        raise
    except OSError as error:
        return error.strerror or str(error)
    if size != shard.bytes:
        return f"it has {size:,} bytes, and its manifest lists {shard.bytes:,}"
    if digest.hexdigest() != shard.sha256:
        return "its SHA-256 is not the one that its manifest lists"
    return None


def check_disjoint(folders: Sequence[str], output: str) -> None:
    """Check that the output and the inputs are disjoint folders.

    Raises:
        InputError: ``output`` is, contains or is inside one of the folders.
    """
    for folder in folders:
        output_path, input_path = _resolve_folder(output), _resolve_folder(folder)
        if output_path.startswith(input_path):
            raise InputError(f"{output} is inside the input {folder}. Choose another --output")
        if input_path.startswith(output_path):
            raise InputError(f"the input {folder} is inside {output}. Choose another --output")


def _resolve_folder(folder: str) -> str:
    """Return the real path of a folder, with a trailing slash."""
    path = folder if "://" in folder else os.path.realpath(folder)
    return path.rstrip("/") + "/"


def _load_documents_input(storage: Storage, folder: str, accepted_pipelines: Sequence[str]) -> DocumentsInput:
    manifest: Manifest | None
    pipeline: str | None
    try:
        manifest = read_manifest(storage, folder)
        pipeline = manifest.pipeline
    except ForeignManifestError as error:
        manifest, pipeline = None, error.pipeline
    except ManifestError as error:
        raise InputError(str(error).rstrip(".")) from error
    if not isinstance(manifest, DocumentsManifest):
        origin = f"was made by {pipeline}" if pipeline else "is not of bioshards"
        *other_pipelines, last_pipeline = accepted_pipelines
        raise InputError(
            f"{folder} does not hold documents: by its manifest.json it {origin}. Give the --output of "
            f"beam run {', '.join(other_pipelines)} or {last_pipeline}"
        )
    if manifest.config.format != FORMAT:
        raise InputError(
            f"{folder} was made by another version of bioshards (format {manifest.config.format}, this is "
            f"{FORMAT}). Make it anew: beam run {pipeline} with another --output"
        )
    return DocumentsInput(folder, manifest.pipeline, manifest.outputs)
