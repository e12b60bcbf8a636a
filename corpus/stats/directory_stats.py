"""Statistics of any finished directory: ``python -m bioshards.corpus stats DIR``.

The statistics are JSON data and deterministic. ``text_tables.py`` renders them for a terminal,
``html_report.py`` as HTML.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from bioshards.corpus.manifest import (
    DocumentsManifest,
    ForeignManifestError,
    Manifest,
    ManifestError,
    ManifestNotFoundError,
    PretrainingManifest,
    VocabularyManifest,
    WordsManifest,
    read_manifest,
)
from bioshards.corpus.stats import document_stats, pretraining_stats
from bioshards.corpus.stats.shard_batches import StatsError
from bioshards.corpus.storage.storage_protocol import Storage


def compute_stats(storage: Storage, folder: str) -> dict[str, Any]:
    """Compute all statistics of a finished directory.

    Returns:
        JSON data: ``pipeline``, ``kind`` (``documents``, ``pretraining``, ``words`` or ``vocabulary``), and
        the fields of document_stats.py, pretraining_stats.py or :func:`_compute_manifest_stats`.

    Raises:
        FileNotFoundError: the directory has no manifest: it is not finished.
        StatsError: the directory is of another kind, or damaged.
    """
    try:
        manifest: Manifest | None = read_manifest(storage, folder)
    except ManifestNotFoundError:
        raise
    except ForeignManifestError as error:
        manifest, pipeline = None, error.pipeline
    except ManifestError as error:
        raise StatsError(str(error)) from error
    if isinstance(manifest, DocumentsManifest):
        kind, stats = "documents", document_stats.compute_document_stats(storage, folder, manifest)
    elif isinstance(manifest, PretrainingManifest):
        kind, stats = "pretraining", pretraining_stats.compute_pretraining_stats(storage, folder, manifest)
    elif isinstance(manifest, WordsManifest):
        kind, stats = "words", _compute_manifest_stats(manifest)
    elif isinstance(manifest, VocabularyManifest):
        kind, stats = "vocabulary", _compute_manifest_stats(manifest)
    else:
        if manifest is not None:
            pipeline = manifest.pipeline
        origin = f"was made by {pipeline}" if pipeline else "is not of bioshards"
        *all_but_last, last = _SUPPORTED_PIPELINES
        raise StatsError(
            f"{folder} has no statistics: by its manifest.json it {origin}. Give an output of "
            f"{', '.join(all_but_last)} or {last}"
        )
    return {"pipeline": manifest.pipeline, "kind": kind, **stats}


def to_json(stats: Mapping[str, Any]) -> str:
    """Encode the statistics as the text of a JSON file."""
    return json.dumps(stats, indent=1, ensure_ascii=False) + "\n"


def _compute_manifest_stats(manifest: WordsManifest | VocabularyManifest) -> dict[str, Any]:
    """Return the statistics that the manifest contains: config, inputs, counts, files."""
    excluded_keys = ("pipeline", "format", "library_versions", "inputs")
    inputs = manifest.inputs if isinstance(manifest, WordsManifest) else manifest.config.inputs
    return {
        "config": {
            key: value
            for key, value in msgspec.to_builtins(manifest.config).items()
            if key not in excluded_keys
        },
        "inputs": msgspec.to_builtins(inputs),
        "counts": msgspec.to_builtins(manifest.counts),
        "outputs": [{"file": output.file, "bytes": output.bytes} for output in manifest.outputs],
    }


_SUPPORTED_PIPELINES: Final = (
    "pubmed_to_shards",
    "pmc_to_shards",
    "text_to_shards",
    "shards_to_words",
    "vocab",
    "shards_to_pretraining",
)
"""Pipelines whose output directories have statistics."""
