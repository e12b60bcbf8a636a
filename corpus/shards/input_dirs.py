"""Finished directories of document shards as inputs: each read by its manifest, and seen to be right.

A text that is counted twice weighs twice, so no shard may come in by two directories.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from bioshards.corpus.errors import TransientStorageError, UserError
from bioshards.corpus.manifest import (
    DocumentsManifest,
    ForeignManifestError,
    InputDocuments,
    Listed,
    Manifest,
    ManifestError,
    encode,
    read_manifest,
)
from bioshards.corpus.output.output_layout import FORMAT
from bioshards.corpus.storage.storage_protocol import Storage

from . import arrow_io as shards
from .arrow_io import Shard

DOCUMENT_PIPELINES: Final = ("pubmed_to_shards", "pmc_to_shards")
"""The pipelines that make document shards."""


class InputError(UserError):
    """An input is not what it must be, or is there twice; the message says what to do."""


@dataclass(frozen=True, slots=True)
class DocumentsInput:
    """A finished directory of documents.

    Attributes:
        folder: its path, without a slash at its end.
        pipeline: the one of :data:`PIPELINES` that has made it.
    """

    folder: str
    pipeline: Literal["pubmed_to_shards", "pmc_to_shards"]
    shards: tuple[Shard, ...]

    @property
    def summary(self) -> InputDocuments:
        """What it holds, wherever it lies, for a manifest."""
        return InputDocuments(
            pipeline=self.pipeline,
            shards_sha256=shards.combine_digests(shard.sha256 for shard in self.shards),
            shards=len(self.shards),
            documents=sum(shard.rows for shard in self.shards),
        )

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain data, for a configuration."""
        found: dict[str, Any] = encode(self.summary)
        return found


def load_document_inputs(
    storage: Storage, folders: Sequence[str], accepted_pipelines: Sequence[str] = DOCUMENT_PIPELINES
) -> list[DocumentsInput]:
    """The directories of these paths, in an order that depends only on what they hold.

    Args:
        accepted_pipelines: the pipelines whose output may be given where these folders were, for messages.

    Raises:
        InputError: one is not finished, or not of documents, or of another version of bioshards, or has a
            shard that another one has.
    """
    document_inputs = [_load_documents_input(storage, folder, accepted_pipelines) for folder in folders]
    folder_by_digest: dict[str, str] = {}
    for documents in document_inputs:
        for shard in documents.shards:
            if other_folder := folder_by_digest.get(shard.sha256):
                raise InputError(
                    f"{other_folder} and {documents.folder} hold the same shard ({shard.file}, SHA-256 "
                    f"{shard.sha256[:12]}...), whose documents would be counted twice. Give one of them, once"
                )
        folder_by_digest |= {shard.sha256: documents.folder for shard in documents.shards}
    return sorted(
        document_inputs, key=lambda documents: (documents.pipeline, documents.summary.shards_sha256)
    )


def find_damage(storage: Storage, path: str, shard: Listed) -> str | None:
    """What is wrong with a file of a finished directory; None where it is as its manifest lists it."""
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
    """See that what is written and what is read lie apart, so that the inputs stay as they are.

    Raises:
        InputError: ``output`` is one of the folders, or lies in one, or one lies in it.
    """
    for folder in folders:
        output_path, input_path = _resolve_folder(output), _resolve_folder(folder)
        if output_path.startswith(input_path):
            raise InputError(f"{output} lies in {folder}, which is to stay as it is. Write to another folder")
        if input_path.startswith(output_path):
            raise InputError(f"{folder} lies in {output}, which is to be written. Write to another folder")


def _resolve_folder(folder: str) -> str:
    """Where a folder is, by whatever links it is named, with a slash at its end."""
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
