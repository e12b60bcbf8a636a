"""Layout of an output directory, and the check of its configuration.

The work folder ``OUT/.bioshards/`` has the state from which a run resumes and an update reuses results.  It
may be deleted after a run; the next one then starts from the inputs.
"""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.errors import OutputMismatchError, shorten_list
from bioshards.corpus.manifest import read_any_version
from bioshards.corpus.output.work_files import read_report, write_report
from bioshards.corpus.storage.storage_protocol import Storage

SPLITS: Final = ("train", "validation")
"""Folders of a pretraining set, each a directory of shards; ``datasets`` opens both as a DatasetDict."""

FORMAT: Final = 11
"""Version of the data files.  Raise it whenever the same inputs and options give other bytes, so that
results of an older version are not reused."""

_OUTPUT_FOLDERS: Final = ("", "data", "dropped", "rejected", *SPLITS)
"""Folders of an output directory that runs write to and sweep; the first is the directory itself."""

_WORK_FOLDERS: Final = (
    "",  # the work folder itself
    "input_digests",  # MD5s of unchanged inputs
    "part_lists",  # files of sources that have several
    "staged",  # reports, shards, keys and rejected records of source files
    "decisions",  # what is dropped of each source
    "final_reports",  # on the final shards of sources, with their duplicates
    "word_counts",  # of shards
    "merged_buckets",  # of words
    "build_reports",  # on the rows of shard groups
)


@dataclass(frozen=True, slots=True)
class OutputDir:
    """Paths in an output directory.

    ``output_name`` identifies a source: its stem and the first digits of its MD5.
    """

    path: str

    @property
    def work_folder(self) -> str:
        """Folder of the state of runs."""
        return f"{self.path}/.bioshards"

    def work_path(self, name: str) -> str:
        """Return the path of a file or folder of the work folder, by its relative path."""
        return f"{self.work_folder}/{name}"

    @property
    def manifest_path(self) -> str:
        """Manifest; its presence marks the directory complete."""
        return f"{self.path}/manifest.json"

    @property
    def config_path(self) -> str:
        """Configuration of an unfinished directory."""
        return f"{self.work_folder}/config.json"

    @property
    def result_path(self) -> str:
        """Result of the pipeline, for the driver."""
        return f"{self.work_folder}/result.json"

    @property
    def lock_path(self) -> str:
        """Lock of the run that writes the directory."""
        return f"{self.work_folder}/lock"

    @property
    def job_path(self) -> str:
        """Job of a job service that writes the directory; it may outlive the lock of the command."""
        return f"{self.work_folder}/job.json"

    @property
    def inclusion_list_path(self) -> str:
        """Ids of ``--include-ids``, for all workers."""
        return f"{self.work_folder}/inclusion_list.arrow"

    @property
    def exclusion_list_path(self) -> str:
        """Ids of ``--exclude-ids``, for all workers."""
        return f"{self.work_folder}/exclusion_list.arrow"

    def input_digest_path(self, path: str, stamp: str) -> str:
        """Return the path of the cached MD5 of an input."""
        digest = hashlib.md5(f"{path} {stamp}".encode(errors="surrogateescape"), usedforsecurity=False)
        return f"{self.work_folder}/input_digests/{digest.hexdigest()}.json"

    def part_list_path(self, stamp: str) -> str:
        """Return the path of the file list of a multi-file source."""
        return f"{self.work_folder}/part_lists/{stamp}.json"

    def staged_path(self, output_name: str, suffix: str) -> str:
        """Return the path of a file of a staged source."""
        return f"{self.work_folder}/staged/{output_name}.{suffix}"

    def final_report_path(self, output_name: str) -> str:
        """Return the path of the report on the final shards of a source."""
        return f"{self.work_folder}/final_reports/{output_name}.json"

    def duplicate_pairs_path(self, output_name: str) -> str:
        """Return the path of the list of duplicates of a source."""
        return f"{self.work_folder}/final_reports/{output_name}.tsv"

    def word_counts_path(self, sha256: str, suffix: str) -> str:
        """Return the path of the word counts of a shard with this SHA-256."""
        return f"{self.work_folder}/word_counts/{sha256}.{suffix}"

    def merged_bucket_path(self, bucket: int, file: str) -> str:
        """Return the path of a merged bucket of words."""
        return f"{self.work_folder}/merged_buckets/{bucket:05d}-{file}"


def lock_output(
    storage: Storage, output_dir: OutputDir, is_forced: bool = False
) -> AbstractContextManager[None]:
    """Hold the exclusive lock on an output directory.

    Args:
        is_forced: take over a lock on an object store that another run holds.

    Raises:
        OutputMismatchError: another run holds it.
    """
    return storage.lock(output_dir.lock_path, output_dir.path, is_forced)


def check_config(storage: Storage, output_dir: OutputDir, config: dict[str, Any]) -> None:
    """Check that the output directory is new or has the same configuration.

    Raises:
        OutputMismatchError: it has other content or another configuration; the message names the difference.
    """
    previous_config = read_started(storage, output_dir)
    if previous_config is None:  # complete, without its work folder
        config_of_manifest = read_any_version(storage, output_dir.path).get("config")
        previous_config = config_of_manifest if isinstance(config_of_manifest, dict) else None
    if previous_config is not None:
        previous_config = _rename_years(previous_config)
        if previous_config.get("pipeline") != config.get("pipeline"):
            raise OutputMismatchError(
                f"{output_dir.path} was written by {previous_config.get('pipeline')}, and this is "
                f"{config.get('pipeline')}. Choose another --output."
            )
        if previous_config.get("format") != config.get("format"):
            raise OutputMismatchError(
                f"{output_dir.path} was written by another version of bioshards (format "
                f"{previous_config.get('format')}, this is {config.get('format')}). Choose another --output "
                "or delete that folder."
            )
        if previous_config != config:
            raise OutputMismatchError(
                f"{output_dir.path} has another configuration: "
                f"{_describe_changes(previous_config, config)}. "
                "Choose another --output, give the same options, or delete that folder."
            )
        return
    # A run sweeps its folders, so that files of others there would be lost.
    if foreign_files := list_output_files(storage, output_dir.path):
        raise OutputMismatchError(
            f"{output_dir.path} is not empty and was not written by this version of bioshards (it has "
            f"{shorten_list(foreign_files)}). "
            "Choose another --output or empty that folder."
        )


def _rename_years(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration with ``published`` in place of ``years``, which outputs until 2026 have."""
    documents = config.get("document_config")
    if not isinstance(documents, dict) or "years" not in documents:
        return config
    others = {name: value for name, value in documents.items() if name != "years"}
    bounds = [f"{year:04}" if 0 < year < 9999 else "" for year in documents["years"]]
    return {**config, "document_config": {**others, "published": bounds}}


def list_output_files(storage: Storage, output: str) -> list[str]:
    """List the files in the folders of an output directory that runs write to, by relative path."""
    return [
        f"{folder}/{name}".lstrip("/")
        for folder in _OUTPUT_FOLDERS
        for name in storage.list_names(f"{output}/{folder}".rstrip("/"))
        if not name.startswith(".")
    ]


def mark_started(storage: Storage, output_dir: OutputDir, config: dict[str, Any]) -> None:
    """Write the configuration of an output directory that :func:`check_config` has accepted."""
    write_report(storage, output_dir.config_path, config)


def read_started(storage: Storage, output_dir: OutputDir) -> dict[str, Any] | None:
    """Return the configuration that :func:`mark_started` has written; None without one.

    Raises:
        OutputMismatchError: it is damaged.
    """
    damaged: list[str] = []
    config: dict[str, Any] | None = read_report(storage, output_dir.config_path, damaged)
    if config is None and not damaged and storage.exists(output_dir.config_path):
        config = storage.read_json(output_dir.config_path)  # of an earlier version, without SHA-256
    if damaged or (config is not None and "pipeline" not in config):
        raise OutputMismatchError(
            f"{output_dir.config_path} is damaged, so that it does not say what {output_dir.path} is. Delete "
            f"that file if {output_dir.manifest_path} is there, which says it too; else choose another "
            "output, or delete the folder"
        )
    return config


def reset(storage: Storage, output_dir: OutputDir) -> None:
    """Mark an output directory as incomplete, and remove what a killed run left."""
    mark_incomplete(storage, output_dir)
    remove_leftovers(storage, output_dir)


def mark_incomplete(storage: Storage, output_dir: OutputDir) -> None:
    """Remove the manifest and the files by which ``datasets`` opens a pretraining set."""
    split_files = (f"{split}/{name}" for split in SPLITS for name in ("state.json", "dataset_info.json"))
    for name in ("manifest.json", "dataset_dict.json", *split_files):
        storage.remove(f"{output_dir.path}/{name}")


def remove_leftovers(storage: Storage, output_dir: OutputDir) -> None:
    """Remove the result, the lists of ids and the temporary files of an earlier run."""
    storage.remove(output_dir.result_path)
    storage.remove(output_dir.inclusion_list_path)
    storage.remove(output_dir.exclusion_list_path)
    folders = [f"{output_dir.path}/{subfolder}".rstrip("/") for subfolder in _OUTPUT_FOLDERS]
    folders += [f"{output_dir.work_folder}/{subfolder}".rstrip("/") for subfolder in _WORK_FOLDERS]
    for folder in folders:
        storage.remove_temporaries(folder)


def _describe_changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    flat_before, flat_now = _flatten(before), _flatten(now)
    return "; ".join(
        f"{name} was {flat_before.get(name)!r}, now {flat_now[name]!r}"
        if name in flat_now
        else f"{name} was {flat_before[name]!r}, and this version of bioshards has no such option"
        for name in sorted(flat_before.keys() | flat_now.keys())
        if flat_before.get(name) != flat_now.get(name)
    )


def _flatten(config: dict[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, dict):
            flat.update(value)
        else:
            flat[name] = value
    return flat
