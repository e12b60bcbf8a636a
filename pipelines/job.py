"""Everything a run that makes document shards is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bioshards.corpus.download.remote import Remote
from bioshards.corpus.excluded import Excluded
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.manifest import DocumentsRun
from bioshards.corpus.rules import TextRules
from bioshards.corpus.sources import Source
from bioshards.corpus.workspace import Workspace

from .bucket import Bucket
from .fetching import Fetching


@dataclass(frozen=True)
class Job:
    """A run: ``sources`` are here, those ``wanted`` are to be fetched first, and what is in the ``bucket``.

    Attributes:
        drop_in: a finished directory of abstracts, of which those that the articles hold are to be listed.
        excluded: the list of ids of documents that are to be left out, which is in the work folder.
    """

    files: LocalFiles
    work: Workspace
    sources: list[Source]
    wanted: list[Remote]
    fetching: Fetching | None
    bucket: Bucket | None
    rules: TextRules
    keep_dropped: bool
    dedup: str
    drop_in: str | None
    excluded: Excluded | None
    max_shard_bytes: int
    max_rejected: float
    config: dict[str, Any]
    run: DocumentsRun
