"""Start a run: choose the runner and the storage, check the paths, claim the output."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from bioshards.corpus.errors import (
    DiskFullError,
    OutputMismatchError,
    TransientStorageError,
    UsageError,
    suggest_nearest,
)
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.context import PathOption, RunContext
from bioshards.pipelines.dataflow import settings
from bioshards.pipelines.options.parser import parse_beam_options

if TYPE_CHECKING:
    from apache_beam.options.pipeline_options import PipelineOptions


def check_reachable_by_workers(
    beam_args: Sequence[str], paths: Iterable[PathOption], dry_run: bool = False
) -> list[str]:
    """Check that Dataflow's workers can reach the paths that they read and write.

    Returns:
        in a dry run, a notice for each path that they cannot reach.

    Raises:
        UsageError: a path is on this machine, and it is no dry run.
    """
    problems = [
        f"{path_option.option} {path_option.path} is local; Dataflow's workers need gs://BUCKET/FOLDER"
        for path_option in paths
        if path_option.is_used_by_workers
        and settings.is_dataflow_runner(beam_args)
        and "://" not in path_option.path
    ]
    if problems and not dry_run:
        raise UsageError(problems[0])
    return problems


_INCOMPLETE_SCHEME: Final = re.compile(r"(?:^|/)(gs|s3|az|abfss?|azfs):(?!//)")
"""A scheme without both of its slashes: ``gs:/BUCKET`` would be a folder of this machine, and the run's
output with it."""


def make_context(
    parser: argparse.ArgumentParser,
    beam_args: Sequence[str],
    paths: Sequence[str],
    optional_paths: Sequence[str] = (),
) -> RunContext:
    """Where the command line lets a run go on.

    Args:
        beam_args: the options that are not the pipeline's own.
        paths: what will be read and written.
        optional_paths: those of them that a dry run may plan for without looking, as if they were new.

    Raises:
        UsageError: an option that nobody knows, or that Dataflow needs; a path that nothing here can open.
        TransientStorageError: a store does not answer.
    """
    for path in paths:
        if match := _INCOMPLETE_SCHEME.search(path):
            raise UsageError(f"{path} is local as it is written; a bucket is {match[1]}://BUCKET/FOLDER")
    has_runner = any(arg.startswith("--runner") for arg in beam_args)
    is_on_dataflow = settings.is_dataflow_runner(beam_args)
    if not has_runner:
        logging.getLogger().setLevel(logging.CRITICAL)  # errors reach people as our own lines
    has_remote_paths = any("://" in path for path in paths)
    if not beam_args and not has_remote_paths:
        return RunContext(has_runner, is_on_dataflow, None, LocalStorage(), tuple(paths))
    beams = parse_beam_options(beam_args, parser)
    if is_on_dataflow:
        settings.check_options(beams)
    elif has_runner:
        _check_runner(beams.get_all_options()["runner"])
    if not has_remote_paths:
        return RunContext(has_runner, is_on_dataflow, beams, LocalStorage(), tuple(paths))
    from bioshards.pipelines.storage.object_store import StorageAccessError

    try:
        job_folders = settings.list_job_folders(beams) if is_on_dataflow else []
        storage = _open_remote_storage([*paths, *job_folders], beams, checks_locks=not has_runner)
        notices = tuple[str, ...]()
    except StorageAccessError as error:
        if not {path for path in paths if "://" in path} <= set(optional_paths):
            raise
        # As files of this machine nothing is there.
        storage, notices = LocalStorage(), (f"{error}. Planned as if nothing were there",)
    return RunContext(has_runner, is_on_dataflow, beams, storage, tuple(paths), notices)


def _check_runner(runner: str) -> None:
    """See that Beam has a runner of this name, before anything is begun.

    Raises:
        UsageError: it has not, or it cannot be loaded.
    """
    from apache_beam.options.pipeline_options import StandardOptions
    from apache_beam.runners.runner import create_runner

    try:
        create_runner(runner)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"--runner={runner} cannot be loaded: {error}") from error
    except ValueError as error:
        known_names = [name for name in StandardOptions.KNOWN_RUNNER_NAMES if "Test" not in name]
        hint = suggest_nearest(runner, known_names) or f"; there are {', '.join(known_names)}"
        raise UsageError(f"--runner={runner} is no runner of Beam's{hint}") from error


def _open_remote_storage(paths: Sequence[str], beam_options: PipelineOptions, checks_locks: bool) -> Storage:
    """Return a storage of local and remote paths, after a look at each bucket."""
    from bioshards.pipelines.storage.object_store import check_access, make_missing_library_error

    try:
        from bioshards.pipelines.storage.remote_storage import RemoteStorage
        from bioshards.pipelines.storage.store_options import StoreOptions
    except ImportError as error:
        raise make_missing_library_error(next(path for path in paths if "://" in path), error) from error
    storage = RemoteStorage(StoreOptions.from_beam(beam_options), checks_locks)
    check_access(storage, paths)
    return storage


def make_absolute(folder: str) -> str:
    """Return the absolute path or URL of a folder, without a trailing slash."""
    return (folder if "://" in folder else os.path.abspath(folder)).rstrip("/")


@contextlib.contextmanager
def translate_output_errors(output: str, option: str = "--output") -> Iterator[None]:
    """Failures to read and write are the output folder's in here; ``option``: what it was given as."""
    try:
        yield
    except (DiskFullError, TransientStorageError):
        raise
    except OSError as error:
        raise OutputMismatchError(
            f"{option} {output} cannot be written: {error.strerror or error}"
        ) from error


@contextlib.contextmanager
def claim_output(
    storage: Storage, output_dir: OutputDir, config: dict[str, Any], is_forced: bool = False
) -> Iterator[None]:
    """Inside, the output is marked as begun with this configuration, and this run alone writes it.

    Args:
        is_forced: take over the lock of another run.

    Raises:
        OutputMismatchError: it cannot be written, or another run writes it, or has begun it since it was
            looked at.
    """
    with contextlib.ExitStack() as stack:
        with translate_output_errors(output_dir.path):
            stack.enter_context(lock_output(storage, output_dir, is_forced))
            output_layout.check_config(
                storage, output_dir, config
            )  # once more: to find the inputs may have taken minutes
            output_layout.mark_started(storage, output_dir, config)
        yield


def command_of(pipeline: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the command line of a run, for its manifest."""
    return ("beam", "run", pipeline, *redact_secrets(arguments))


REDACTED: Final = "***"
"""What stands for a secret in the command line of a manifest."""
_SECRET_OPTION = re.compile(r"(--\w*(?:key|secret|token|password|connection_string)\w*)(=.*)?", re.IGNORECASE)


def redact_secrets(argv: Sequence[str]) -> list[str]:
    """Replace access keys, passwords and tokens in arguments by ``***``."""
    redacted: list[str] = []
    is_value_secret = False
    for arg in argv:
        match = _SECRET_OPTION.fullmatch(arg)
        value = f"{match[1]}={REDACTED}" if match and match[2] else arg
        redacted.append(REDACTED if is_value_secret else value)
        is_value_secret = bool(match and not match[2])
    return redacted
