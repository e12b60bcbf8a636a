"""How every run begins: where it goes on, by what storage, and what a manifest says of its beginning."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import time
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bioshards import __version__
from bioshards.corpus.files import LocalFiles
from bioshards.corpus.workspace import WrongOutput

from .options import Parser, UsageError, beam_options


def for_workers_elsewhere(rest: Sequence[str], folders: dict[str, str]) -> None:
    """See that Dataflow's workers can reach the folders, by option, that they will read and write.

    Raises:
        UsageError: one is on this machine.
    """
    for option, folder in folders.items():
        if "DataflowRunner" in " ".join(rest) and "://" not in folder:
            raise UsageError(f"{option} {folder} is local; Dataflow's workers need gs://BUCKET/...")


class Where(NamedTuple):
    """Where a run goes on.

    Attributes:
        beams: Beam's PipelineOptions; None where none are needed before the run, as Beam is slow to import.
        files: the storage of its inputs and outputs.
    """

    runner_given: bool
    beams: Any
    files: LocalFiles


def where(parser: Parser, rest: Sequence[str], workers: int, paths: Sequence[str]) -> Where:
    """Where the command line lets a run go on.

    Args:
        rest: the options that are not the pipeline's own.
        paths: what will be read and written.

    Raises:
        UsageError: an option that nobody knows, or a path that nothing here can open.
    """
    runner_given = any(word.startswith("--runner") for word in rest)
    if not runner_given:
        logging.getLogger().setLevel(logging.CRITICAL)  # errors reach people as our own lines
    remote = any("://" in path for path in paths)
    if not rest and not remote:
        return Where(runner_given, None, LocalFiles())
    beams = beam_options(rest, parser, **_local_options(runner_given, workers))
    return Where(runner_given, beams, _remote_files(paths, beams) if remote else LocalFiles())


def _local_options(runner_given: bool, workers: int) -> dict[str, Any]:
    """Beam options of a run without ``--runner``; none with one."""
    if runner_given:
        return {}
    from . import local

    return local.options_for(workers)


def _remote_files(paths: Sequence[str], beams: Any) -> LocalFiles:
    """The storage of paths of which some are on object stores, which Beam's options open."""
    from .storage import AnyFiles, configure, supported

    configure(beams)
    for path in paths:
        if "://" in path and not supported(path):
            raise UsageError(
                f"nothing here can open {path}; gs:// and s3:// need: pip install 'bioshards[cloud]'"
            )
    return AnyFiles()


def absolute(folder: str) -> str:
    """A folder as it is named wherever the work is done, without a slash at its end."""
    return (folder if "://" in folder else os.path.abspath(folder)).rstrip("/")


@contextlib.contextmanager
def output_at_fault(output: str) -> Iterator[None]:
    """Failures to read and write are the output folder's in here."""
    try:
        yield
    except OSError as error:
        raise WrongOutput(f"--output {output} cannot be written: {error.strerror or error}") from error


def this_run(pipeline: str, arguments: Sequence[str]) -> dict[str, Any]:
    """What a manifest says of the run that begins now."""
    return {
        "bioshards": __version__,
        "command": ["beam", "run", pipeline, *without_secrets(arguments)],
        "started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }


_SECRET = re.compile(r"(--\w*(?:key|secret|token|password)\w*)(=.*)?", re.IGNORECASE)


def without_secrets(arguments: Sequence[str]) -> list[str]:
    """The arguments as a manifest may show them: no access keys, passwords and tokens."""
    shown: list[str] = []
    hide = False
    for word in arguments:
        secret = _SECRET.fullmatch(word)
        shown.append("***" if hide else f"{secret[1]}=***" if secret and secret[2] else word)
        hide = bool(secret and not secret[2])
    return shown
