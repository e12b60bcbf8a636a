"""Beginning and end that all runs have: what a command line opens, claims and leaves."""

from __future__ import annotations

import os
import re
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec

from bioshards.corpus.errors import (
    NOT_PUBLISHED,
    OK,
    RESUME,
    DiskFullError,
    OutputMismatchError,
    RunError,
    TransientStorageError,
    UsageError,
    escape_line,
    suggest_nearest,
)
from bioshards.corpus.lifecycle.job import RunManifest
from bioshards.corpus.output import output_layout
from bioshards.corpus.output.output_layout import lock_output
from bioshards.corpus.output.work_files import read_report
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.corpus.ui.progress import StepBar
from bioshards.pipelines.context import JobSpec, PathOption, RunContext
from bioshards.pipelines.dataflow import settings as dataflow_settings
from bioshards.pipelines.execution import executor
from bioshards.pipelines.options import RunOptions, parse_beam_options
from bioshards.pipelines.reproduction import compare_with_manifest, read_manifest_file, redact_secrets

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

    from bioshards.pipelines.steps import Job

_INCOMPLETE_SCHEME: Final = re.compile(r"(?:^|/)(gs|s3|az|abfss?|azfs):(?!//)")
"""A scheme without both of its slashes: ``gs:/BUCKET`` would be a folder of this machine, and the run's
output with it."""
Build = Callable[["beam.Pipeline"], None]


@dataclass(frozen=True, slots=True)
class CommandLine:
    """A command line that is parsed, but for Beam's options.

    Attributes:
        beam_args: the arguments that are not the pipeline's own.
        command: the command line without secrets, for the manifest.
    """

    parser: ArgumentParser
    beam_args: Sequence[str]
    command: tuple[str, ...]


def make_command_line(
    pipeline: str, parser: ArgumentParser, beam_args: Sequence[str], argv: Sequence[str]
) -> CommandLine:
    """Return the command line of a run of a pipeline with these arguments."""
    return CommandLine(parser, beam_args, ("beam", "run", pipeline, *redact_secrets(argv)))


class NotPublishedError(RunError):
    """The run is completed, but its result is not published."""

    exit_code: ClassVar[int] = NOT_PUBLISHED


@dataclass(frozen=True, slots=True)
class Session:
    """A command line with the runner and the storage that it names.

    Attributes:
        expected: the manifest of ``--like``, read before the run, which may replace it.
    """

    options: RunOptions
    command: tuple[str, ...]
    context: RunContext
    expected: RunManifest | None

    @property
    def storage(self) -> Storage:
        """Return the storage of inputs and outputs."""
        return self.context.storage

    @contextmanager
    def claimed(self, job: Job, spec: JobSpec) -> Iterator[None]:
        """See that the job can run; inside the block, this run alone writes the output.

        Raises:
            UserError: it cannot; or another run writes the output, or it has another configuration.
        """
        executor.prepare_run(self.context, spec, self.options.force)
        settings = msgspec.to_builtins(job.config)
        with ExitStack() as stack:
            with translate_output_errors(job.output.path):
                stack.enter_context(lock_output(job.storage, job.output, self.options.force))
                # Once more: to find the inputs may have taken minutes.
                output_layout.check_config(job.storage, job.output, settings)
                output_layout.mark_started(job.storage, job.output, settings)
            yield

    def execute(
        self,
        job: Job,
        spec: JobSpec,
        build: Build,
        workers: int,
        bars: Sequence[StepBar],
    ) -> dict[str, Any]:
        """Run the graph to its end, with bars of its steps, and return what the last one left."""
        executor.execute(build, self.context, workers, spec, bars)
        result: dict[str, Any] | None = read_report(job.storage, job.output.result_path, [])
        if result is None:
            raise RunError(f"{job.output.result_path} is missing or damaged. {RESUME}")
        return result

    def compare(self, job: Job) -> int:
        """Compare the output with the manifest of ``--like``, if it is given; return the exit code."""
        if self.expected is None:
            return OK
        return compare_with_manifest(job.storage, job.output.path, self.expected, str(self.options.like))


def open_session(line: CommandLine, options: RunOptions, paths: Iterable[PathOption]) -> Session:
    """Open the storage of the paths that a command line names.

    Raises:
        UserError: an option is unknown, or workers cannot reach a path.
        TransientStorageError: a store does not answer.
    """
    expected = read_manifest_file(options.like) if options.like else None
    paths = list(paths)
    notices = _find_unreachable_paths(line.beam_args, paths, options.dry_run)
    context = _make_context(line, paths, options.dry_run)
    context = context._replace(notices=(*notices, *context.notices))
    return Session(options, line.command, context, expected)


def check_output(job: Job) -> None:
    """Check that the output is new or has the configuration of the job.

    Raises:
        OutputMismatchError: it has another one, or cannot be read.
    """
    with translate_output_errors(job.output.path):
        output_layout.check_config(job.storage, job.output, msgspec.to_builtins(job.config))


def check_published(result: Mapping[str, Any]) -> None:
    """Print the notices of the last step, and check that it has published the output.

    Args:
        result: what it left, with a ``problem``, and ``notices`` if it has any.

    Raises:
        NotPublishedError: it has not; the message is the problem.
    """
    print_notices(result.get("notices", ()))
    if result["problem"]:
        raise NotPublishedError(result["problem"])


def print_notices(notices: Iterable[str]) -> None:
    """Print notices, each on a line."""
    for notice in notices:
        print(escape_line(f"notice: {notice}"), file=sys.stderr)


def make_absolute(folder: str) -> str:
    """Return the absolute path or URL of a folder, without a trailing slash."""
    return (folder if "://" in folder else os.path.abspath(folder)).rstrip("/")


@contextmanager
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


def _find_unreachable_paths(
    beam_args: Sequence[str], paths: Iterable[PathOption], is_dry_run: bool
) -> list[str]:
    """Return a notice for each path that Dataflow's workers cannot reach.

    Raises:
        UsageError: there is one, and it is no dry run.
    """
    if not dataflow_settings.is_dataflow_runner(beam_args):
        return []
    problems = [
        f"{path_option.option} {path_option.path} is local; Dataflow's workers need gs://BUCKET/FOLDER"
        for path_option in paths
        if path_option.is_used_by_workers and "://" not in path_option.path
    ]
    if problems and not is_dry_run:
        raise UsageError(problems[0])
    return problems


def _make_context(line: CommandLine, path_options: Sequence[PathOption], is_dry_run: bool) -> RunContext:
    """Return where the command line lets a run go on.

    A dry run may plan without access to what a run writes, as if it were new.

    Raises:
        UsageError: an option that nobody knows, or that Dataflow needs; a path that nothing here can open.
        TransientStorageError: a store does not answer.
    """
    paths = tuple(path_option.path for path_option in path_options)
    for path in paths:
        if match := _INCOMPLETE_SCHEME.search(path):
            raise UsageError(f"{path} is local as it is written; a bucket is {match[1]}://BUCKET/FOLDER")
    has_runner = any(arg.startswith("--runner") for arg in line.beam_args)
    is_on_dataflow = dataflow_settings.is_dataflow_runner(line.beam_args)
    remote_paths = {path for path in paths if "://" in path}
    local = LocalStorage(checks_locks=not has_runner)
    if not line.beam_args and not remote_paths:
        return RunContext(has_runner, is_on_dataflow, None, local, paths)
    beam_options = parse_beam_options(line.beam_args, line.parser)
    if is_on_dataflow:
        dataflow_settings.check_options(beam_options)
    elif has_runner:
        _check_runner(beam_options.get_all_options()["runner"])
    if not remote_paths:
        return RunContext(has_runner, is_on_dataflow, beam_options, local, paths)
    from bioshards.pipelines.storage.object_store import StorageAccessError

    job_folders = dataflow_settings.list_job_folders(beam_options) if is_on_dataflow else []
    try:
        storage = _open_remote_storage([*paths, *job_folders], beam_options, checks_locks=not has_runner)
    except StorageAccessError as error:
        if not (is_dry_run and remote_paths <= {each.path for each in path_options if each.is_written}):
            raise
        # As files of this machine nothing is there.
        notices = (f"{error}. Planned as if nothing were there",)
        return RunContext(has_runner, is_on_dataflow, beam_options, local, paths, notices)
    return RunContext(has_runner, is_on_dataflow, beam_options, storage, paths)


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
