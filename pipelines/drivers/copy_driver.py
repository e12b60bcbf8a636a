"""``beam copy``: a finished directory from one store to another, every file that its manifest lists verified.

A vocabulary is built, and a model trained, of files on a machine; shards and examples may have been made on
gs://, s3:// or az://.  The copy is a finished directory like its original: no manifest, not finished.
"""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from bioshards.corpus.errors import OutputMismatchError, UsageError
from bioshards.corpus.exit_codes import OK
from bioshards.corpus.lifecycle import full_text_overlap
from bioshards.corpus.manifest import (
    Listed,
    ManifestError,
    ManifestNotFoundError,
    MirrorManifest,
    OutputManifest,
    encode,
    listed_files,
    read_manifest,
)
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.shards import input_dirs
from bioshards.corpus.shards.arrow_io import Shard
from bioshards.corpus.shards.input_dirs import InputError
from bioshards.corpus.storage.checksums import HashingWriter
from bioshards.corpus.storage.parallel import parallel_for_each
from bioshards.corpus.storage.retry import retry
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import Progress, ProgressBar
from bioshards.pipelines.copy import CopyOptions
from bioshards.pipelines.execution.session import (
    FILESYSTEM_OPTION_PREFIXES,
    claim_output,
    make_absolute,
    make_context,
    translate_output_errors,
)
from bioshards.pipelines.options.parser import Parser

_NUM_THREADS: Final = 8
"""Files copied at a time: most of the time of a small one is waiting for a store's answer."""
_BLOCK_BYTES: Final = 1 << 22
_MANIFEST: Final = "manifest.json"

_INPUT_DEPENDENT_FILES = re.compile(
    rf"(.+/)?data-[^/]*|rejected/[^/]*|{re.escape(full_text_overlap.FILE_NAME)}"
)
"""Files that another input may not have; all others are there whatever the input is."""


class CopyDriver:
    """Runs ``beam copy``."""

    def __init__(
        self,
        parser: Parser[CopyOptions],
        options: CopyOptions,
        beam_args: Sequence[str],
        _argv: Sequence[str],
    ) -> None:
        self._parser, self._beam_args = parser, beam_args
        self._source, self._target = make_absolute(options.source), make_absolute(options.target)

    def run(self) -> int:
        """Copy the directory and return the exit code.

        Raises:
            UsageError, InputError, OutputMismatchError: the directory cannot be copied.
        """
        source, target = self._source, self._target
        storage = make_context(self._parser, self._beam_args, [source, target]).storage
        for arg in self._beam_args:
            if arg.startswith("-") and not arg.startswith(FILESYSTEM_OPTION_PREFIXES):
                raise UsageError(f"{arg} is no option of beam copy")
        num_files, num_copied = copy_directory(storage, source, target)
        print(f"{target} holds {source}: {num_files:,} files, {num_copied:,} of them copied now")
        return OK


def copy_directory(storage: Storage, source: str, target: str) -> tuple[int, int]:
    """Copy a finished directory; returns how many files it has, and how many had to be copied.

    Raises:
        InputError: the source is not finished, or a file of it is not as its manifest lists it.
        OutputMismatchError: the target holds something else.
    """
    input_dirs.check_disjoint([source], target)
    manifest, manifest_entry = _read_manifest(storage, source)
    entries = {**{one.file: one for one in listed_files(manifest)}, _MANIFEST: manifest_entry}
    source_names = set(output_layout.list_output_files(storage, source))
    if missing := sorted(entries.keys() - source_names):
        if storage.exists(f"{source}/{missing[0]}"):
            raise InputError(
                f"{source} has folders of its own ({missing[0]}), as a model has, and is not copied by this: "
                "take gcloud storage cp --recursive, or aws s3 cp --recursive"
            )
        raise InputError(f"{source} has no {missing[0]}, which its manifest.json lists; make it again")
    output_dir = OutputDir(target)
    config = encode(manifest.config)
    with translate_output_errors(target, "TARGET"):
        output_layout.check_config(storage, output_dir, config)
        _check_is_copy(storage, output_dir)
    with claim_output(storage, output_dir, config, "TARGET"):
        output_layout.reset(storage, output_dir)
        target_names = set(output_layout.list_output_files(storage, target))
        surplus = filter(_INPUT_DEPENDENT_FILES.fullmatch, target_names - source_names)
        parallel_for_each(storage, storage.remove, [f"{target}/{name}" for name in surplus])
        num_copied = _copy_data_files(storage, source, target, entries, source_names, target_names)
        retry(lambda: _copy_file(storage, source, target, _MANIFEST, manifest_entry, False))
    return len(source_names), num_copied + 1


def _check_is_copy(storage: Storage, output_dir: OutputDir) -> None:
    """See that no run has made what is at the target, perhaps of other inputs: it is no copy.

    Raises:
        OutputMismatchError: one has.
    """
    work_folders = (
        output_dir.staged_folder,
        output_dir.word_counts_folder,
        output_dir.build_reports_folder,
    )
    if any(storage.is_folder(folder) for folder in work_folders):
        raise OutputMismatchError(
            f"{output_dir.path} is the output of a run, which a copy would replace. Choose another "
            "folder, or delete that one"
        )


def _copy_data_files(
    storage: Storage,
    source: str,
    target: str,
    entries: Mapping[str, Listed],
    source_names: Collection[str],
    target_names: Collection[str],
) -> int:
    """Copy the files that are not as they should be; returns how many that were."""
    names = sorted(name for name in source_names if name != _MANIFEST)
    num_copied = 0

    total = sum(entry.bytes for name, entry in entries.items() if name != _MANIFEST)

    def copy_one(name: str) -> bool:
        return retry(
            lambda: _copy_file(storage, source, target, name, entries.get(name), name in target_names, bar)
        )

    with Progress(sys.stderr).bar("copying", total, "B") as bar, ThreadPoolExecutor(_NUM_THREADS) as pool:
        try:
            for num_done, was_copied in enumerate(pool.map(copy_one, names), 1):
                num_copied += was_copied
                bar.advance(0, f"{num_done:,}/{len(names):,} files")
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return num_copied


def _read_manifest(storage: Storage, source: str) -> tuple[OutputManifest, Shard]:
    """Read the manifest of a directory to copy; return it and its own entry."""
    path = f"{source}/{_MANIFEST}"
    try:
        manifest = read_manifest(storage, source)
    except ManifestNotFoundError as error:
        raise InputError(f"{source} is no finished directory: it has no manifest.json") from error
    except ManifestError as error:
        raise InputError(str(error)) from error
    if isinstance(manifest, MirrorManifest):
        raise InputError(f"{path} lists no outputs: a mirror is not copied by this. Run beam run fetch there")
    with storage.open(path) as file:
        data = file.read()
    return manifest, Shard(_MANIFEST, 0, len(data), hashlib.sha256(data).hexdigest())


def _copy_file(
    storage: Storage,
    source: str,
    target: str,
    name: str,
    entry: Listed | None,
    is_at_target: bool,
    bar: ProgressBar | None = None,
) -> bool:
    """Copy a file, unless it is there as it is listed; returns whether it was copied."""
    if entry and is_at_target and not input_dirs.find_damage(storage, f"{target}/{name}", entry):
        if bar:
            bar.advance(entry.bytes)
        return False
    with storage.open(f"{source}/{name}") as source_file, storage.write(f"{target}/{name}") as target_file:
        writer = HashingWriter(target_file)
        while block := source_file.read(_BLOCK_BYTES):
            writer.write(block)
            if bar and entry:
                bar.advance(len(block))
        if entry and writer.sha256 != entry.sha256:
            raise InputError(
                f"{source}/{name} is not the file that its manifest.json lists, or was written anew "
                "meanwhile: make it again, or copy that again"
            )
    return True
