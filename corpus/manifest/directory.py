"""Write, read and check the manifest of a finished directory.

The manifest is written last; its presence marks a directory complete.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, TypeVar

from bioshards.corpus.errors import InputNotFoundError, TransientStorageError, UserError
from bioshards.corpus.manifest.documents_types import DocumentsManifest
from bioshards.corpus.manifest.json_codec import FieldError, decode, encode
from bioshards.corpus.manifest.kinds import Listed, Manifest, OutputManifest
from bioshards.corpus.manifest.mirror_types import MirrorManifest
from bioshards.corpus.manifest.pretraining_types import PretrainingManifest
from bioshards.corpus.manifest.shared_types import SCHEMA_VERSION, Json
from bioshards.corpus.manifest.training_types import TrainingManifest
from bioshards.corpus.manifest.vocabulary_types import VocabularyManifest
from bioshards.corpus.manifest.words_types import WordsManifest
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.storage_protocol import Storage

NAME: Final = "manifest.json"
T = TypeVar("T")

KINDS: Final[Mapping[str, type[Manifest]]] = {
    "pubmed_to_shards": DocumentsManifest,
    "pmc_to_shards": DocumentsManifest,
    "text_to_shards": DocumentsManifest,
    "shards_to_words": WordsManifest,
    "vocab": VocabularyManifest,
    "shards_to_pretraining": PretrainingManifest,
    "fetch": MirrorManifest,
    "train": TrainingManifest,
}
"""Type of the manifest by pipeline."""

_REMAKE: Final = "Make the directory anew"


class ManifestError(UserError):
    """The manifest of a directory cannot be used; the message names the file and what to do.

    Attributes:
        path: the file.
        field: the field that is missing or mistyped; empty if another part is at fault.
    """

    def __init__(self, message: str, path: str = "", field: str = "") -> None:
        super().__init__(message)
        self.path, self.field = path, field


class ManifestNotFoundError(ManifestError, InputNotFoundError):
    """The directory has no manifest: it is not finished."""


class ForeignManifestError(ManifestError):
    """The file was not written by bioshards.

    Attributes:
        pipeline: what the file names as its pipeline; None if it names none.
    """

    pipeline: str | None = None


def write_manifest(storage: Storage, path: str, manifest: Manifest) -> None:
    """Write a manifest; the directory is complete then.

    Raises:
        FieldError: a value is not of its field's type, which is a bug.
    """
    value = encode(manifest)
    decode(type(manifest), value)  # in every process that writes one: no manifest breaks the schema
    storage.write_json(path, value)


def read_manifest(storage: Storage, folder: str) -> Manifest:
    """Read the manifest of a finished directory.

    Raises:
        ManifestNotFoundError: there is none, so the directory is not finished; or it is on a store that
            this storage cannot reach.
        ForeignManifestError: it was not written by bioshards.
        ManifestError: it cannot be read, is of another version of bioshards, or a field is wrong.
        TransientStorageError: the store does not answer.
    """
    path = f"{folder}/{NAME}"
    if "://" in folder and not storage.is_remote:
        raise ManifestNotFoundError(
            f"{folder} is on an object store, and this reads local folders: copy it first (rclone, or the "
            "store's own tools)",
            path,
        )
    if not storage.exists(path):
        raise ManifestNotFoundError(
            f"{folder} has no {NAME}: it is not a finished output of bioshards. "
            "Give the --output of a completed run, or rerun the command to complete it.",
            path,
        )
    try:
        value = storage.read_json(path)
    except TransientStorageError:
        raise
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path} cannot be read: {error}. {_REMAKE}", path) from error
    return parse_manifest(value, folder)


def parse_manifest(value: object, folder: str) -> Manifest:
    """Check the JSON value of the manifest of a directory.

    Raises:
        ForeignManifestError, ManifestError: as :func:`read_manifest`.
    """
    path = f"{folder}/{NAME}"
    pipeline = value.get("pipeline") if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(pipeline, str) or pipeline not in KINDS:
        origin = f"was made by {pipeline}" if isinstance(pipeline, str) else "is not of bioshards"
        error = ForeignManifestError(f"{folder} by its {NAME} {origin}: give an output of bioshards", path)
        error.pipeline = pipeline if isinstance(pipeline, str) else None
        raise error
    version = value.get("schema_version")
    if version != SCHEMA_VERSION:
        raise ManifestError(
            f"{folder} was made by another version of bioshards "
            f"({_describe_version(value, version)}, this is "
            f"schema_version {SCHEMA_VERSION}). {_REMAKE}",
            path,
            "schema_version",
        )
    try:
        return decode(KINDS[pipeline], value)
    except FieldError as wrong:
        raise ManifestError(
            f"{path} is not as {pipeline} writes it ({wrong}). {_REMAKE}", path, wrong.field
        ) from wrong


def _describe_version(value: Mapping[str, Any], version: object) -> str:
    if version is not None:
        return f"its manifest has schema_version {version}"
    config = value.get("config")
    data_format = config.get("format") if isinstance(config, dict) else None
    return f"format {data_format}, its manifest has no schema_version" if data_format else "no schema_version"


def find_manifest(storage: Storage, folder: str, kind: type[T]) -> T | None:
    """Return the manifest of a run's own output, None if it is absent, damaged or of another kind.

    A run that finds none does its work again, which writes it anew.
    """
    try:
        manifest = read_manifest(storage, folder)
    except ManifestError:
        return None
    return manifest if isinstance(manifest, kind) else None


def config_of(storage: Storage, folder: str) -> dict[str, Json] | None:
    """Return the configuration that a manifest of any version names; None without one."""
    path = f"{folder}/{NAME}"
    if not storage.exists(path):
        return None
    value = storage.read_json(path)
    config = value.get("config") if isinstance(value, dict) else None
    return config if isinstance(config, dict) else None


def listed_files(manifest: OutputManifest) -> Iterator[Listed]:
    """Yield the files that a manifest lists."""
    yield from manifest.outputs
    if isinstance(manifest, DocumentsManifest):
        yield from manifest.dropped
        yield from manifest.overlap
    if isinstance(manifest, DocumentsManifest | PretrainingManifest):
        yield from manifest.duplicates


def is_complete(
    storage: Storage,
    folder: str,
    manifest: Manifest,
    *,
    present: Collection[str] = (),
    any_size: Collection[str] = (),
) -> bool:
    """Return True if every file that the manifest lists is there with its size.

    Args:
        present: further files that must be there.
        any_size: listed files that a stopped run may have rewritten, whose size does not matter.
    """
    sizes = {info.path: info.size for info in storage.walk(folder)}
    files = manifest.files if isinstance(manifest, MirrorManifest) else listed_files(manifest)
    for entry in files:
        size = sizes.get(f"{folder}/{entry.file}")
        if size is None or (size != entry.bytes and entry.file not in any_size):
            return False
    return all(f"{folder}/{name}" in sizes for name in present)


def sweep(
    storage: Storage,
    folders: Iterable[str],
    keep: Collection[str],
    is_ours: Callable[[str], bool] = lambda name: True,
) -> None:
    """Remove the files of folders that a finished directory no longer lists.

    Args:
        keep: paths of the files that stay.
        is_ours: return True for the name of a file that a run may have written.
    """
    paths = [f"{folder}/{name}" for folder in folders for name in storage.list_names(folder) if is_ours(name)]
    parallel_for_each(storage, storage.remove, [path for path in paths if path not in keep])
