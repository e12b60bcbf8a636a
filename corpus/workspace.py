"""An output directory and the work folder in it, by name.

``OUT/.bioshards/`` holds what a run needs to continue and an update to be cheap.  It may be deleted
once a run is finished: the next one then starts from the inputs again.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import Any, Final

from .ahead import ahead
from .errors import OutputMismatchError
from .files import LocalFiles
from .manifest import DocumentsManifest, config_of, find_manifest, is_complete
from .pretraining import RECORDS, SPLITS
from .sources import Source

FORMAT: Final = 4
"""Raised whenever the same input and rules give other bytes than before, so that nothing made by
an older version is taken for the new one's."""

_PARTS: Final = ("", "dropped", "rejected", *SPLITS, *RECORDS.values())
"""Folders of an output directory that runs write to and sweep, itself the first."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths in an output directory.  ``name`` is a source's: its stem and the MD5's beginning."""

    output: str

    @property
    def folder(self) -> str:
        return f"{self.output}/.bioshards"

    @property
    def manifest(self) -> str:
        return f"{self.output}/manifest.json"

    @property
    def config(self) -> str:
        return f"{self.folder}/config.json"

    @property
    def outcome(self) -> str:
        return f"{self.folder}/outcome.json"

    @property
    def running(self) -> str:
        """Where a run says that it goes on, if the output is on an object store (lock.py)."""
        return f"{self.folder}/running.json"

    @property
    def excluded(self) -> str:
        """Where the ids that are to be left out are for every worker to read."""
        return f"{self.folder}/excluded.arrow"

    def seen(self, path: str, stamp: str) -> str:
        """Where the MD5 of an unchanged input is remembered."""
        digest = hashlib.md5(f"{path} {stamp}".encode(errors="surrogateescape"), usedforsecurity=False)
        return f"{self.folder}/seen/{digest.hexdigest()}.json"

    def parts(self, stamp: str) -> str:
        """Where the files of a source that is made of many are listed."""
        return f"{self.folder}/parts/{stamp}.json"

    def staged(self, name: str, ending: str) -> str:
        return f"{self.folder}/staged/{name}.{ending}"

    def verdicts(self, bucket: int) -> str:
        return f"{self.folder}/verdicts/{bucket:05d}.arrow"

    def duplicates(self, bucket: int) -> str:
        return f"{self.folder}/verdicts/duplicates-{bucket:05d}.arrow"

    def report(self, name: str) -> str:
        return f"{self.folder}/finished/{name}.json"

    def pairs(self, name: str) -> str:
        """Where a source's duplicates are listed, if it has any."""
        return f"{self.folder}/finished/{name}.tsv"

    def keys(self, sha256: str) -> str:
        """Where the keys of a shard's documents are (shard_keys.py)."""
        return f"{self.folder}/keys/{sha256}.arrow"

    def counts(self, name: str, ending: str) -> str:
        """Where the words of a shard of documents are counted; ``name`` is the shard's SHA-256."""
        return f"{self.folder}/counts/{name}.{ending}"

    def merged(self, bucket: int, file: str) -> str:
        """Where a bucket's part of a published list of words is."""
        return f"{self.folder}/merged/{bucket:05d}-{file}"

    def made(self, name: str, ending: str) -> str:
        """Where it is said what examples have been made of a portion of documents."""
        return f"{self.folder}/made/{name}.{ending}"

    def dealt(self, file: str) -> str:
        """Where the rows of a portion wait for those of the others."""
        return f"{self.folder}/dealt/{file}"

    def rejected(self, name: str) -> str:
        """Where it is said what could not be used of a portion, or of a source."""
        return f"{self.output}/rejected/{name}.jsonl"


def check(files: LocalFiles, work: Workspace, config: dict[str, Any]) -> None:
    """Make sure that the output directory is new, or begun with the same configuration.

    Raises:
        OutputMismatchError: it holds something else; the message says what and what to do.
    """
    before = None
    with contextlib.suppress(FileNotFoundError):
        before = files.read_json(work.config)
    if before is None:  # finished, and its work folder deleted
        before = config_of(files, work.output)
    if before is not None:
        if before.get("pipeline") != config.get("pipeline"):
            raise OutputMismatchError(
                f"{work.output} was begun by {before.get('pipeline')}, and this is {config.get('pipeline')}. "
                "Choose another folder."
            )
        if before.get("format") != config.get("format"):
            raise OutputMismatchError(
                f"{work.output} was begun by another version of bioshards, whose output differs (format "
                f"{before.get('format')}, this is {config.get('format')}). Choose another folder or delete "
                "that one."
            )
        if before != config:
            raise OutputMismatchError(
                f"{work.output} was begun with another configuration: {_difference(before, config)}. "
                "Choose another folder, give the same options, or delete that one."
            )
        return
    if strangers := names(files, work.output):  # in a run's folders, where what is not its own is swept
        raise OutputMismatchError(
            f"{work.output} is not empty and was not begun by this version of bioshards (it holds "
            f"{', '.join(strangers[:3])}{' ...' if len(strangers) > 3 else ''}). "
            "Choose another folder or empty that one."
        )


def names(files: LocalFiles, output: str) -> list[str]:
    """The files of an output by their names in it; what lies in other folders there is somebody else's."""
    return [
        f"{part}/{name}".lstrip("/")
        for part in _PARTS
        for name in files.names(f"{output}/{part}".rstrip("/"))
        if not name.startswith(".")
    ]


def begin(files: LocalFiles, work: Workspace, config: dict[str, Any]) -> None:
    """Mark the output directory, once checked, as begun with this configuration."""
    files.write_json(work.config, config)


def finished(
    files: LocalFiles,
    work: Workspace,
    sources: list[Source],
    abstracts: str | None = None,
    excluded: str | None = None,
) -> bool:
    """Is the manifest there, of these very inputs, with everything it lists in place?

    Args:
        abstracts: identity (overlap.py) of the directory whose abstracts are to be listed where held, if any.
        excluded: digest of the list (excluded.py) of ids that are to be left out, if any.
    """
    manifest = find_manifest(files, work.output, DocumentsManifest)
    if manifest is None or manifest.bad_files:
        return False
    if [listed.abstracts for listed in manifest.overlap] != ([abstracts] if abstracts else []):
        return False
    if (manifest.excluded.sha256 if manifest.excluded else None) != excluded:
        return False
    if not is_complete(files, work.output, manifest):
        return False
    seen = [work.seen(source.path, source.stamp) for source in sources]
    there = set(files.names(f"{work.folder}/seen"))
    if not all(path.rpartition("/")[2] in there for path in seen):
        return False
    md5s = [remembered["md5"] for remembered in ahead(files, files.read_json, seen)]
    now = {(source.name, md5) for source, md5 in zip(sources, md5s, strict=True)}
    return now == {(item.file, item.md5) for item in manifest.inputs}


def clear(files: LocalFiles, work: Workspace) -> None:
    """Nothing to be opened while unfinished; nothing left of what a killed run was just writing."""
    opened_by = ("state.json", "dataset_info.json", "dataset_dict.json")  # by which datasets finds shards
    splits = [
        f"{work.output}{part}/{name}"
        for part in ("", *(f"/{split}" for split in SPLITS))
        for name in opened_by
    ]
    for path in (work.manifest, work.outcome, work.excluded, *splits):
        files.remove(path)
    parts = [*(f"/{part}" if part else "" for part in _PARTS), "/.bioshards"]
    steps = ("seen", "parts", "staged", "verdicts", "finished", "counts", "merged", "made", "dealt")
    parts += [f"/.bioshards/{step}" for step in steps]
    for folder in [f"{work.output}{part}" for part in parts]:
        files.sweep(folder)


def _difference(before: dict[str, Any], now: dict[str, Any]) -> str:
    flat_before, flat_now = _flat(before), _flat(now)
    return "; ".join(
        f"{name} was {flat_before.get(name)!r}, now {flat_now.get(name)!r}"
        for name in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(name) != flat_now.get(name)
    )


def _flat(config: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat.update(value)
        else:
            flat[name] = value
    return flat
