"""Finished directories: those of documents as inputs, and the check of any against its manifest.

A shard may be in one input only, so that no document is counted twice.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import pyarrow as pa

from bioshards.corpus.errors import InvalidValueError, UserError, shorten_list
from bioshards.corpus.manifest import (
    DOCUMENT_PIPELINES,
    DocumentsPipeline,
    InputAbstracts,
    InputArticles,
    InputDocuments,
    InputText,
    Listed,
    ManifestError,
    MirrorManifest,
    Shard,
    find_damage,
    listed_files,
    read_manifest,
)
from bioshards.corpus.shards import arrow_io, document_shards
from bioshards.corpus.storage.storage_protocol import Storage

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
        sources: names of the files that it was made from, by MD5.
    """

    folder: str
    pipeline: DocumentsPipeline
    shards: tuple[Shard, ...]
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def summary(self) -> InputDocuments:
        """Summarise the content for a manifest, independent of the path."""
        return _SUMMARY_TYPES[self.pipeline](
            shards_sha256=arrow_io.combine_digests(shard.sha256 for shard in self.shards),
            shards=len(self.shards),
            documents=sum(shard.rows for shard in self.shards),
        )


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


def describe_shared_sources(inputs: Sequence[DocumentsInput]) -> list[str]:
    """Return a notice on each two inputs that were made from the same file."""
    return [
        f"{one.folder} and {other.folder} were made from the same files ({shorten_list(names)}): a document "
        "that is in both is read twice. Give one of them only, unless their filters exclude each other"
        for one, other in itertools.combinations(inputs, 2)
        if (names := sorted(one.sources[md5] for md5 in one.sources.keys() & other.sources.keys()))
    ]


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
    try:
        manifest = document_shards.read_documents_manifest(storage, folder, accepted_pipelines)
    except ManifestError as error:
        raise InputError(str(error).rstrip(".")) from error
    sources = {item.md5: item.file for item in manifest.inputs}
    return DocumentsInput(folder, manifest.pipeline, manifest.outputs, sources)


_SHARD_NAME: Final = re.compile(r"(.+/)?data-[^/]*\.(arrow|parquet)")


def check_directory(storage: Storage, folder: str) -> tuple[list[Listed], list[str]]:
    """Read every file that a manifest lists.

    Returns:
        The listed files, and a line for each file that differs or is a shard and not listed.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: the manifest is damaged.
        InvalidValueError: the directory is a mirror.
    """
    manifest = read_manifest(storage, folder)
    if isinstance(manifest, MirrorManifest):
        raise InvalidValueError(f"{folder} is a mirror: beam run fetch compares its files with the server's")
    entries = list(listed_files(manifest))
    problems = [
        f"{folder}/{entry.file}: {problem}"
        for entry in entries
        if (problem := _find_problem(storage, f"{folder}/{entry.file}", entry))
    ]
    listed_names = {entry.file for entry in entries}
    for file in storage.walk(folder):  # without hidden folders: these are work folders
        name = file.path.removeprefix(f"{folder}/")
        if _SHARD_NAME.fullmatch(name) and name not in listed_names:
            problems.append(f"{folder}/{name}: the manifest does not list it")
    return entries, problems


def _find_problem(storage: Storage, path: str, entry: Listed) -> str | None:
    if damage := find_damage(storage, path, entry):
        return damage
    if isinstance(entry, Shard) and path.endswith((".arrow", document_shards.SUFFIX)):
        read = document_shards.read_file if path.endswith(document_shards.SUFFIX) else arrow_io.read_stream
        try:
            rows = sum(batch.num_rows for batch in read(storage, path))
        except (OSError, pa.ArrowException) as error:
            return str(error)
        if rows != entry.rows:
            return f"it has {rows:,} rows, and its manifest lists {entry.rows:,}"
    return None
