"""What any of our finished directories holds, in numbers: ``python -m bioshards.corpus stats DIR``.

The figures are plain data, the same for the same directory wherever and whenever they are asked for.
``stats_tables.py`` shows them in a terminal, ``stats_page.py`` as a page.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from . import pretraining, shards, stats_documents, stats_pretraining
from .files import LocalFiles
from .stats_shards import StatsError


def figures(files: LocalFiles, folder: str) -> dict[str, Any]:
    """All figures of a finished directory, as plain data.

    Beside ``pipeline``, which has made it, and ``kind``, one of ``documents``, ``pretraining``, ``words`` and
    ``vocabulary``, they are those of stats_documents.py, stats_pretraining.py or :func:`_of_manifest`.

    Raises:
        FileNotFoundError: the directory has no manifest, so it is not (or not yet) finished.
        StatsError: it is of something else, or damaged.
    """
    try:
        manifest = shards.manifest(files, folder)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise StatsError(f"{folder}/manifest.json cannot be read: {error}") from error
    pipeline = manifest.get("pipeline") if isinstance(manifest, dict) else None
    if not isinstance(pipeline, str) or pipeline not in _KINDS:
        made = f"was made by {pipeline}" if pipeline else "is not of bioshards"
        *others, last = _KINDS
        raise StatsError(
            f"{folder} holds nothing that can be counted: by its manifest.json it {made}. Give an output of "
            f"{', '.join(others)} or {last}"
        )
    kind, count = _KINDS[pipeline]
    try:
        return {"pipeline": pipeline, "kind": kind, **count(files, folder, manifest)}
    except (LookupError, TypeError, AttributeError) as error:
        raise StatsError(
            f"{folder}/manifest.json is not as {pipeline} writes it ({type(error).__name__}: {error}). "
            "Make the directory anew"
        ) from error


def as_json(figures: Mapping[str, Any]) -> str:
    """The figures as the text of a JSON file."""
    return json.dumps(figures, indent=1, ensure_ascii=False) + "\n"


def _of_manifest(_files: LocalFiles, _folder: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a manifest says by itself: what was asked for, of which inputs, and what came of it."""
    about = ("pipeline", "format", "tools", "inputs")
    return {
        "config": {key: value for key, value in manifest["config"].items() if key not in about},
        "inputs": list(manifest.get("inputs") or manifest["config"]["inputs"]),
        "counts": dict(manifest["counts"]),
        "outputs": [{"file": output["file"], "bytes": output["bytes"]} for output in manifest["outputs"]],
    }


_KINDS: Final[dict[str, tuple[str, Callable[[LocalFiles, str, Mapping[str, Any]], dict[str, Any]]]]] = {
    "pubmed_to_shards": ("documents", stats_documents.figures),
    "pmc_to_shards": ("documents", stats_documents.figures),
    "shards_to_words": ("words", _of_manifest),
    "vocab": ("vocabulary", _of_manifest),
    pretraining.PIPELINE: ("pretraining", stats_pretraining.figures),
}
"""By the pipeline that a manifest names: the kind of directory, and how it is counted."""
