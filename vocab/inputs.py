"""Finished directories of document shards as inputs: each read by its manifest, and seen to be right.

A text that is counted twice weighs twice, so no shard may come in by two directories.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus import shards
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.shards import Shard
from bioshards.corpus.workspace import FORMAT

PIPELINES: Final = ("pubmed_to_shards", "pmc_to_shards")
"""The pipelines that make document shards."""


class WrongInput(Exception):
    """An input is no finished directory of documents, or is there twice; the message says what to do."""


@dataclass(frozen=True, slots=True)
class Documents:
    """A finished directory of documents.

    Attributes:
        folder: its path, without a slash at its end.
        pipeline: the one of :data:`PIPELINES` that has made it.
    """

    folder: str
    pipeline: str
    shards: tuple[Shard, ...]

    def as_dict(self) -> dict[str, Any]:
        """What it holds, wherever it lies, for a manifest."""
        return {
            "pipeline": self.pipeline,
            "shards_sha256": shards.digest(shard.sha256 for shard in self.shards),
            "shards": len(self.shards),
            "documents": sum(shard.rows for shard in self.shards),
        }


def find(files: LocalFiles, folders: Sequence[str]) -> list[Documents]:
    """The directories of these paths, in an order that depends only on what they hold.

    Raises:
        WrongInput: one is not finished, or not of documents, or of another version of bioshards, or has a
            shard that another one has.
    """
    found = [_documents(files, folder) for folder in folders]
    folder_of: dict[str, str] = {}
    for documents in found:
        for shard in documents.shards:
            if other := folder_of.get(shard.sha256):
                raise WrongInput(
                    f"{other} and {documents.folder} hold the same shard ({shard.file}, SHA-256 "
                    f"{shard.sha256[:12]}...), whose words would be counted twice. Give one of them, once"
                )
        folder_of |= {shard.sha256: documents.folder for shard in documents.shards}
    return sorted(found, key=lambda documents: (documents.pipeline, documents.as_dict()["shards_sha256"]))


def _documents(files: LocalFiles, folder: str) -> Documents:
    try:
        manifest = shards.manifest(files, folder)
    except FileNotFoundError as error:
        raise WrongInput(str(error).rstrip(".")) from error
    except (OSError, ValueError) as error:
        raise WrongInput(f"{folder}/manifest.json cannot be read: {error}") from error
    pipeline = manifest.get("pipeline") if isinstance(manifest, dict) else None
    if pipeline not in PIPELINES:
        made = f"was made by {pipeline}" if pipeline else "is not of bioshards"
        raise WrongInput(
            f"{folder} does not hold documents: by its manifest.json it {made}. Give the --output of "
            f"beam run {' or '.join(PIPELINES)}"
        )
    made_in = manifest["config"]["format"]
    if made_in != FORMAT:
        raise WrongInput(
            f"{folder} was made by another version of bioshards (format {made_in}, this is {FORMAT}). "
            f"Make it anew: beam run {pipeline} with another --output"
        )
    return Documents(folder, pipeline, tuple(Shard(**shard) for shard in manifest["outputs"]))
