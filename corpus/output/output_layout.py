"""An output directory and the work folder in it, by name.

``OUT/.bioshards/`` holds what a run needs to continue and an update to be cheap.  It may be deleted
once a run is finished: the next one then starts from the inputs again.
"""

from __future__ import annotations

import contextlib
import hashlib
from dataclasses import dataclass
from typing import Any, Final

from bioshards.corpus.errors import OutputMismatchError
from bioshards.corpus.manifest import config_of
from bioshards.corpus.storage.storage_protocol import Storage

SPLITS: Final = ("train", "validation")
"""The folders of a pretraining set, each a directory of shards; ``datasets`` opens both as a DatasetDict."""


TFRECORD_FOLDERS: Final = {"train": "pretrain_tfrecords", "validation": "validation_tfrecords"}
"""The folders of the same rows for the original trainers; the first is where ELECTRA's looks for them
(configure_pretraining.py of google-research/electra)."""

FORMAT: Final = 4
"""Raised whenever the same input and rules give other bytes than before, so that nothing made by
an older version is taken for the new one's."""

_OUTPUT_FOLDERS: Final = ("", "dropped", "rejected", *SPLITS, *TFRECORD_FOLDERS.values())
"""Folders of an output directory that runs write to and sweep, itself the first."""


@dataclass(frozen=True, slots=True)
class OutputDir:
    """Paths in an output directory.  ``name`` is a source's: its stem and the MD5's beginning."""

    path: str

    @property
    def work_folder(self) -> str:
        return f"{self.path}/.bioshards"

    @property
    def manifest_path(self) -> str:
        return f"{self.path}/manifest.json"

    @property
    def config_path(self) -> str:
        return f"{self.work_folder}/config.json"

    @property
    def result_path(self) -> str:
        return f"{self.work_folder}/result.json"

    @property
    def lock_path(self) -> str:
        """Where a run says that it goes on, if the output is on an object store (lock.py)."""
        return f"{self.work_folder}/lock.json"

    @property
    def exclusion_list_path(self) -> str:
        """Where the ids that are to be left out are for every worker to read."""
        return f"{self.work_folder}/exclusion_list.arrow"

    def input_digest_path(self, path: str, stamp: str) -> str:
        """Where the MD5 of an unchanged input is remembered."""
        digest = hashlib.md5(f"{path} {stamp}".encode(errors="surrogateescape"), usedforsecurity=False)
        return f"{self.work_folder}/input_digests/{digest.hexdigest()}.json"

    def part_list_path(self, stamp: str) -> str:
        """Where the files of a source that is made of many are listed."""
        return f"{self.work_folder}/part_lists/{stamp}.json"

    def staged_path(self, output_name: str, suffix: str) -> str:
        return f"{self.work_folder}/staged/{output_name}.{suffix}"

    def decisions_path(self, bucket: int) -> str:
        return f"{self.work_folder}/decisions/{bucket:05d}.arrow"

    def duplicate_decisions_path(self, bucket: int) -> str:
        return f"{self.work_folder}/decisions/duplicates-{bucket:05d}.arrow"

    def final_report_path(self, output_name: str) -> str:
        return f"{self.work_folder}/final_reports/{output_name}.json"

    def duplicate_pairs_path(self, output_name: str) -> str:
        """Where a source's duplicates are listed, if it has any."""
        return f"{self.work_folder}/final_reports/{output_name}.tsv"

    def shard_keys_path(self, sha256: str) -> str:
        """Where the keys of a shard's documents are (shard_keys.py)."""
        return f"{self.work_folder}/shard_keys/{sha256}.arrow"

    def word_counts_path(self, sha256: str, suffix: str) -> str:
        """Where the words of a shard of documents are counted; ``sha256`` is the shard's SHA-256."""
        return f"{self.work_folder}/word_counts/{sha256}.{suffix}"

    def merged_bucket_path(self, bucket: int, file: str) -> str:
        """Where a bucket's part of a published list of words is."""
        return f"{self.work_folder}/merged_buckets/{bucket:05d}-{file}"

    def build_report_path(self, name: str, suffix: str) -> str:
        """Where it is said what examples have been made of a portion of documents."""
        return f"{self.work_folder}/build_reports/{name}.{suffix}"

    def shuffle_spill_path(self, file: str) -> str:
        """Where the rows of a portion wait for those of the others."""
        return f"{self.work_folder}/shuffle_spill/{file}"

    def rejects_path(self, name: str) -> str:
        """Where it is said what could not be used of a portion, or of a source."""
        return f"{self.path}/rejected/{name}.jsonl"


def check_config(storage: Storage, output_dir: OutputDir, config: dict[str, Any]) -> None:
    """Make sure that the output directory is new, or begun with the same configuration.

    Raises:
        OutputMismatchError: it holds something else; the message says what and what to do.
    """
    previous_config = None
    with contextlib.suppress(FileNotFoundError):
        previous_config = storage.read_json(output_dir.config_path)
    if previous_config is None:  # finished, and its work folder deleted
        previous_config = config_of(storage, output_dir.path)
    if previous_config is not None:
        if previous_config.get("pipeline") != config.get("pipeline"):
            raise OutputMismatchError(
                f"{output_dir.path} was begun by {previous_config.get('pipeline')}, and this is "
                f"{config.get('pipeline')}. "
                "Choose another folder."
            )
        if previous_config.get("format") != config.get("format"):
            raise OutputMismatchError(
                f"{output_dir.path} was begun by another version of bioshards, whose output differs (format "
                f"{previous_config.get('format')}, this is {config.get('format')}). Choose another folder "
                "or delete "
                "that one."
            )
        if previous_config != config:
            raise OutputMismatchError(
                f"{output_dir.path} was begun with another configuration: "
                f"{_describe_changes(previous_config, config)}. "
                "Choose another folder, give the same options, or delete that one."
            )
        return
    if foreign_files := list_output_files(
        storage, output_dir.path
    ):  # in a run's folders, where what is not its own is swept
        raise OutputMismatchError(
            f"{output_dir.path} is not empty and was not begun by this version of bioshards (it holds "
            f"{', '.join(foreign_files[:3])}{' ...' if len(foreign_files) > 3 else ''}). "
            "Choose another folder or empty that one."
        )


def list_output_files(storage: Storage, output: str) -> list[str]:
    """The files of an output by their names in it; what lies in other folders there is somebody else's."""
    return [
        f"{folder}/{name}".lstrip("/")
        for folder in _OUTPUT_FOLDERS
        for name in storage.list_names(f"{output}/{folder}".rstrip("/"))
        if not name.startswith(".")
    ]


def mark_started(storage: Storage, output_dir: OutputDir, config: dict[str, Any]) -> None:
    """Mark the output directory, once checked, as begun with this configuration."""
    storage.write_json(output_dir.config_path, config)


def reset(storage: Storage, output_dir: OutputDir) -> None:
    """Nothing to be opened while unfinished; nothing left of what a killed run was just writing."""
    dataset_files = ("state.json", "dataset_info.json", "dataset_dict.json")  # by which datasets finds shards
    dataset_paths = [
        f"{output_dir.path}{subfolder}/{name}"
        for subfolder in ("", *(f"/{split}" for split in SPLITS))
        for name in dataset_files
    ]
    for path in (
        output_dir.manifest_path,
        output_dir.result_path,
        output_dir.exclusion_list_path,
        *dataset_paths,
    ):
        storage.remove(path)
    folders = [*(f"/{subfolder}" if subfolder else "" for subfolder in _OUTPUT_FOLDERS), "/.bioshards"]
    work_folders = (
        "input_digests",
        "part_lists",
        "staged",
        "decisions",
        "final_reports",
        "word_counts",
        "merged_buckets",
        "build_reports",
        "shuffle_spill",
    )
    folders += [f"/.bioshards/{step}" for step in work_folders]
    for folder in [f"{output_dir.path}{subfolder}" for subfolder in folders]:
        storage.remove_temporaries(folder)


def _describe_changes(before: dict[str, Any], now: dict[str, Any]) -> str:
    flat_before, flat_now = _flatten(before), _flatten(now)
    return "; ".join(
        f"{name} was {flat_before.get(name)!r}, now {flat_now.get(name)!r}"
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
