"""Jobs of runs that write document shards, for tests that call single steps."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from bioshards.corpus.lifecycle.job import ShardsJob
from bioshards.corpus.manifest import DocumentsConfig, DocumentsPipeline, DocumentsRun
from bioshards.corpus.output.output_layout import FORMAT, OutputDir
from bioshards.corpus.pubmed.filters import PubMedConfig
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.text_config import TextConfig


def make_shards_job(
    output: Path | str,
    documents: TextConfig | None = None,
    *,
    pipeline: DocumentsPipeline = "pubmed_to_shards",
    dedup: Literal["none", "exact", "near"] = "none",
    keep_dropped: bool = False,
    storage: Storage | None = None,
    overlap_with: str | None = None,
) -> ShardsJob:
    """Return a job with these options."""
    documents = documents or PubMedConfig()
    return ShardsJob(
        storage=storage or LocalStorage(),
        output=OutputDir(str(output)),
        config=DocumentsConfig(
            pipeline=pipeline,
            format=FORMAT,
            preset=None,
            document_config=documents.to_dict(),
            library_versions={},
            include_ids=None,
            keep_dropped=keep_dropped,
            dedup=dedup,
            max_shard_mb=256,
        ),
        documents=documents,
        overlap_with=overlap_with,
        run=DocumentsRun(command=("beam", "run", pipeline)),
    )
