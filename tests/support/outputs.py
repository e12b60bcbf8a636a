"""Published outputs: digests, manifests and documents."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from bioshards.corpus.manifest import digest_manifest

RUN_SECTIONS: Final = (
    rb"<h2>Steps of the last run</h2>.*?</table>|<details><summary>Command</summary>.*?</details>"
    rb'|<section class="comparison">.*?</section>'  # depends on whether the source is at hand
)


def remove_run_facts(name: str, data: bytes) -> bytes:
    """Return a published file without the facts on its run, in which equal runs differ.

    Args:
        name: path of the file in its directory.
    """
    if name == "manifest.json":
        manifest = json.loads(data)
        del manifest["run"]
        for entry in (*manifest.get("inputs", []), *manifest.get("overlap", [])):
            if isinstance(entry, dict):
                for name in ("path", "abstracts_path"):  # as they were typed
                    entry.pop(name, None)
        return json.dumps(manifest).encode()
    return re.sub(RUN_SECTIONS, b"", data, flags=re.DOTALL) if name == "report.html" else data


def published_digests(output: Path) -> dict[str, str]:
    """Return the SHA-256 of every published file, without the facts on the run."""
    digests = {}
    for path in sorted(output.rglob("*")):
        name = str(path.relative_to(output))
        if path.is_file() and not name.startswith(".bioshards"):
            digests[name] = hashlib.sha256(remove_run_facts(name, path.read_bytes())).hexdigest()
    return digests


def load_manifest(output: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((output / "manifest.json").read_text())
    return loaded


def save_manifest(output: Path, manifest: Mapping[str, Any]) -> None:
    """Write an edited manifest."""
    (output / "manifest.json").write_text(json.dumps(sign(manifest)))


def sign(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the JSON value of a manifest with the SHA-256 of its other fields, if it has this field."""
    run = manifest.get("run")
    if not isinstance(run, dict) or not isinstance(run.get("manifest_sha256"), str):
        return manifest
    return {**manifest, "run": {**run, "manifest_sha256": digest_manifest(manifest)}}


def load_documents(output: Path) -> dict[str, dict[str, Any]]:
    """Load all documents of a finished directory by id."""
    from bioshards.corpus.shards import document_shards
    from bioshards.corpus.storage.local_storage import LocalStorage

    return {
        row["id"]: row
        for batch in document_shards.read_directory(LocalStorage(), str(output))
        for row in batch.to_pylist()
    }
