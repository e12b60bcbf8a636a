"""How every run begins: where it goes on, by what storage, and what a manifest says of its beginning."""

from __future__ import annotations

import contextlib
import difflib
import logging
import os
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from bioshards.corpus import workspace
from bioshards.corpus.errors import OutputMismatchError, TransientStorageError
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.lock import locked
from bioshards.corpus.workspace import Workspace

from . import dataflow
from .options import Parser, UsageError, beam_options


def for_workers_elsewhere(rest: Sequence[str], folders: dict[str, str], dry_run: bool = False) -> list[str]:
    """See that Dataflow's workers can reach the folders, by option, that they will read and write.

    Returns:
        In a dry run, what is to be said of those that they cannot.

    Raises:
        UsageError: one is on this machine.
    """
    found = [
        f"{option} {folder} is local; Dataflow's workers need gs://BUCKET/FOLDER"
        for option, folder in folders.items()
        if dataflow.chosen(rest) and "://" not in folder
    ]
    if found and not dry_run:
        raise UsageError(found[0])
    return found


_SLIP: Final = re.compile(r"(?:^|/)(gs|s3):(?!//)")
"""A scheme without both of its slashes: ``gs:/BUCKET`` would be a folder of this machine, and the run's
output with it."""


FILE_OPTIONS: Final = ("--s3_", "--no_auth")
"""How the options of Beam's file systems begin, the only ones that say something where no job is made."""


class Where(NamedTuple):
    """Where a run goes on.

    Attributes:
        runner_given: does the command line name a runner?
        on_dataflow: is it Dataflow's?
        beams: Beam's PipelineOptions; None where none are needed before the run, as Beam is slow to import.
        files: the storage of its inputs and outputs, which are at ``paths``.
        notices: what is to be said of a dry run that cannot look at all of them.
    """

    runner_given: bool
    on_dataflow: bool
    beams: Any
    files: LocalFiles
    paths: tuple[str, ...]
    notices: tuple[str, ...] = ()


def where(
    parser: Parser, rest: Sequence[str], workers: int, paths: Sequence[str], unseen: Sequence[str] = ()
) -> Where:
    """Where the command line lets a run go on.

    Args:
        rest: the options that are not the pipeline's own.
        paths: what will be read and written.
        unseen: those of them that a dry run may plan for without looking, as if they were new.

    Raises:
        UsageError: an option that nobody knows, or that Dataflow needs; a path that nothing here can open.
        TransientStorageError: a store does not answer.
    """
    for path in paths:
        if slip := _SLIP.search(path):
            raise UsageError(f"{path} is local as it is written; a bucket is {slip[1]}://BUCKET/FOLDER")
    runner_given = any(word.startswith("--runner") for word in rest)
    on_dataflow = dataflow.chosen(rest)
    if not runner_given:
        logging.getLogger().setLevel(logging.CRITICAL)  # errors reach people as our own lines
    remote = any("://" in path for path in paths)
    if not rest and not remote:
        return Where(runner_given, on_dataflow, None, LocalFiles(), tuple(paths))
    beams: Any = beam_options(rest, parser, **_local_options(runner_given, workers))
    if on_dataflow:
        dataflow.check(beams)
    elif runner_given:
        _known(beams.get_all_options()["runner"])
    if not remote:
        return Where(runner_given, on_dataflow, beams, LocalFiles(), tuple(paths))
    from .reachable import StorageAccessError

    try:
        beside = dataflow.folders(beams) if on_dataflow else []
        files, notices = _remote_files([*paths, *beside], beams), tuple[str, ...]()
    except StorageAccessError as error:
        if not {path for path in paths if "://" in path} <= set(unseen):
            raise
        # As files of this machine nothing is there.
        files, notices = LocalFiles(), (f"{error}. Planned as if nothing were there",)
    return Where(runner_given, on_dataflow, beams, files, tuple(paths), notices)


def _known(runner: str) -> None:
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
        names = [name for name in StandardOptions.KNOWN_RUNNER_NAMES if "Test" not in name]
        near = difflib.get_close_matches(runner, names, 1, 0.5)
        hint = f" (did you mean {near[0]}?)" if near else f"; there are {', '.join(names)}"
        raise UsageError(f"--runner={runner} is no runner of Beam's{hint}") from error


def _local_options(runner_given: bool, workers: int) -> dict[str, Any]:
    """Beam options of a run without ``--runner``; none with one."""
    if runner_given:
        return {}
    from . import local

    return local.options_for(workers)


def _remote_files(paths: Sequence[str], beams: Any) -> LocalFiles:
    """The storage of paths of which some are on object stores, which Beam's options open."""
    from .reachable import check
    from .storage import AnyFiles, configure

    configure(beams)
    check(paths)
    return AnyFiles()


def absolute(folder: str) -> str:
    """A folder as it is named wherever the work is done, without a slash at its end."""
    return (folder if "://" in folder else os.path.abspath(folder)).rstrip("/")


@contextlib.contextmanager
def output_at_fault(output: str, option: str = "--output") -> Iterator[None]:
    """Failures to read and write are the output folder's in here; ``option``: what it was given as."""
    try:
        yield
    except TransientStorageError:
        raise
    except OSError as error:
        raise OutputMismatchError(
            f"{option} {output} cannot be written: {error.strerror or error}"
        ) from error


@contextlib.contextmanager
def begun(
    files: LocalFiles, work: Workspace, config: dict[str, Any], option: str = "--output"
) -> Iterator[None]:
    """Inside, the output is marked as begun with this configuration, and this run alone writes it.

    Args:
        option: what the output was given as.

    Raises:
        OutputMismatchError: it cannot be written, or another run writes it, or has begun it since it was
            looked at.
    """
    with contextlib.ExitStack() as stack:
        with output_at_fault(work.output, option):
            stack.enter_context(locked(files, work))
            workspace.check(files, work, config)  # once more: to find the inputs may have taken minutes
            workspace.begin(files, work, config)
        yield


def command_of(pipeline: str, arguments: Sequence[str]) -> tuple[str, ...]:
    """The command line of a run, for its manifest."""
    return ("beam", "run", pipeline, *without_secrets(arguments))


_SECRET = re.compile(r"(--\w*(?:key|secret|token|password|connection_string)\w*)(=.*)?", re.IGNORECASE)


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments as a manifest may show them: no access keys, passwords and tokens."""
    shown: list[str] = []
    hide = False
    for word in arguments:
        secret = _SECRET.fullmatch(word)
        shown.append("***" if hide else f"{secret[1]}=***" if secret and secret[2] else word)
        hide = bool(secret and not secret[2])
    return shown
