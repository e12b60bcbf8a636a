"""Check a finished directory against its manifest: sizes, SHA-256 and rows of every file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import pyarrow as pa

from bioshards.corpus.errors import InvalidValueError
from bioshards.corpus.manifest import Listed, MirrorManifest, Shard, listed_files, read_manifest
from bioshards.corpus.shards import arrow_io
from bioshards.corpus.shards.input_dirs import find_damage
from bioshards.corpus.storage.storage_protocol import Storage

_SHARD_NAME: Final = re.compile(r"(.+/)?data-[^/]*\.arrow")


@dataclass(frozen=True, slots=True)
class DirectoryCheck:
    """What a check found.

    Attributes:
        num_files, num_bytes, num_rows: totals of the listed files, as the manifest has them.
        problems: a line for each file that differs; empty if the directory is as it was made.
    """

    num_files: int
    num_bytes: int
    num_rows: int
    problems: tuple[str, ...]


def check_directory(storage: Storage, folder: str) -> DirectoryCheck:
    """Read every file that a manifest lists, and name those that differ.

    Raises:
        ManifestNotFoundError: the directory is not finished.
        ManifestError: the manifest is damaged.
        InvalidValueError: the directory is a mirror.
    """
    manifest = read_manifest(storage, folder)
    if isinstance(manifest, MirrorManifest):
        raise InvalidValueError(f"{folder} is a mirror: beam run fetch compares its files with the server's")
    entries = list(listed_files(manifest))
    listed_names = {entry.file for entry in entries}
    problems = [
        f"{folder}/{entry.file}: {problem}"
        for entry in entries
        if (problem := _find_problem(storage, f"{folder}/{entry.file}", entry))
    ]
    problems += [
        f"{folder}/{name}: the manifest does not list it"
        for name in sorted(_iter_shard_names(storage, folder))
        if name not in listed_names
    ]
    return DirectoryCheck(
        len(entries),
        sum(entry.bytes for entry in entries),
        sum(entry.rows for entry in entries if isinstance(entry, Shard)),
        tuple(problems),
    )


def _find_problem(storage: Storage, path: str, entry: Listed) -> str | None:
    if damage := find_damage(storage, path, entry):
        return damage
    if isinstance(entry, Shard) and path.endswith(".arrow"):
        try:
            rows = sum(batch.num_rows for batch in arrow_io.read_file(storage, path, None))
        except pa.ArrowInvalid as error:
            return str(error)
        if rows != entry.rows:
            return f"it has {rows:,} rows, and its manifest lists {entry.rows:,}"
    return None


def _iter_shard_names(storage: Storage, folder: str) -> Iterator[str]:
    """Yield the paths of shards within the directory; hidden folders are work folders."""
    for file in storage.walk(folder):
        name = file.path.removeprefix(f"{folder}/")
        if _SHARD_NAME.fullmatch(name):
            yield name
