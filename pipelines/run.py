"""Beginning and end that all runs have: what a command line opens, claims and leaves."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

from bioshards.corpus.errors import NOT_PUBLISHED, OK, RunError, escape_line
from bioshards.corpus.lifecycle.job import RunManifest
from bioshards.corpus.storage.storage_protocol import Storage
from bioshards.pipelines.context import JobSpec, PathOption, RunContext
from bioshards.pipelines.execution import executor, session
from bioshards.pipelines.execution.progress_monitor import StepBar
from bioshards.pipelines.options.pipeline_options import RunOptions
from bioshards.pipelines.reproduction import compare_with_manifest, read_manifest_file

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.steps import Job

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
    return CommandLine(parser, beam_args, session.command_of(pipeline, argv))


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
    def claimed(self, job: Job, spec: JobSpec, config: object) -> Iterator[None]:
        """See that the job can run; inside the block, this run alone writes the output.

        Raises:
            UserError: it cannot; or another run writes the output, or it has another configuration.
        """
        executor.prepare_run(self.context, spec)
        with session.claim_output(job.storage, job.output, msgspec.to_builtins(config), self.options.force):
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
        result: dict[str, Any] = job.storage.read_json(job.output.result_path)
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
    notices = session.check_reachable_by_workers(line.beam_args, paths, options.dry_run)
    context = session.make_context(
        line.parser,
        line.beam_args,
        [path_option.path for path_option in paths],
        [path_option.path for path_option in paths if path_option.is_written and options.dry_run],
    )
    context = context._replace(notices=(*notices, *context.notices))
    return Session(options, line.command, context, expected)


def check_published(result: Mapping[str, Any]) -> None:
    """Check that the last step has published the output.

    Args:
        result: what it left, with a ``problem``.

    Raises:
        NotPublishedError: it has not; the message is the problem.
    """
    if result["problem"]:
        raise NotPublishedError(result["problem"])


def print_notices(notices: Iterable[str]) -> None:
    """Print notices, each on a line."""
    for notice in notices:
        print(escape_line(f"notice: {notice}"), file=sys.stderr)
