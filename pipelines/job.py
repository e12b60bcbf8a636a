"""Everything a run that makes document shards is made of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bioshards.corpus.download.remote import RemoteFile
from bioshards.corpus.excluded import ExclusionList
from bioshards.corpus.files import LocalStorage
from bioshards.corpus.manifest import DocumentsRun
from bioshards.corpus.rules import TextConfig
from bioshards.corpus.sources import SourceFile
from bioshards.corpus.workspace import OutputDir

from .bucket import PmcArticlePlan
from .fetching import DownloadPlan


@dataclass(frozen=True)
class ShardsJob:
    """A run: ``sources`` are here, those ``wanted`` are to be fetched first, and what is in the ``bucket``.

    Attributes:
        drop_in: a finished directory of abstracts, of which those that the articles hold are to be listed.
        excluded: the list of ids of documents that are to be left out, which is in the work folder.
    """

    storage: LocalStorage
    output_dir: OutputDir
    sources: list[SourceFile]
    to_fetch: list[RemoteFile]
    download_plan: DownloadPlan | None
    article_plan: PmcArticlePlan | None
    document_config: TextConfig
    keep_dropped: bool
    dedup: str
    overlap_with: str | None
    exclusion_list: ExclusionList | None
    max_shard_bytes: int
    max_rejected: float
    config: dict[str, Any]
    run_info: DocumentsRun
