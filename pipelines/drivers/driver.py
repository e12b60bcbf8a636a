"""The steps that every pipeline's run has, from parsed options to the exit code."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from bioshards.corpus.errors import NOT_PUBLISHED, OK, escape_controls, escape_line
from bioshards.corpus.output import output_layout
from bioshards.corpus.ui.progress import Progress
from bioshards.pipelines.context import JobSpec, PathOption, RunContext
from bioshards.pipelines.execution.executor import ProgressMonitor, execute, prepare_run
from bioshards.pipelines.execution.session import (
    check_reachable_by_workers,
    claim_output,
    command_of,
    make_context,
)
from bioshards.pipelines.job_types import Job
from bioshards.pipelines.options.parser import Parser
from bioshards.pipelines.options.pipeline_options import RunOptions
from bioshards.pipelines.reproduction import compare_with_manifest, read_manifest_file

if TYPE_CHECKING:
    import apache_beam as beam

    from bioshards.pipelines.dry_run.cost import DryRunPlan

OptionsT = TypeVar("OptionsT", bound=RunOptions)
JobT = TypeVar("JobT", bound=Job)


class Driver(ABC, Generic[OptionsT, JobT]):
    """Runs one pipeline: finds the inputs, claims the output, executes the graph, reports the result.

    :meth:`run` is the order of the steps. Subclasses implement the steps that differ.

    Attributes:
        pipeline: name of the pipeline.
        options: options of the command line.
        command: the command line, for the manifest.
    """

    pipeline: ClassVar[str]

    def __init__(
        self, parser: Parser[OptionsT], options: OptionsT, beam_args: Sequence[str], argv: Sequence[str]
    ) -> None:
        self.parser = parser
        self.options = options
        self.beam_args = beam_args
        self.command = command_of(self.pipeline, argv)

    def run(self) -> int:
        """Run the pipeline and return the exit code.

        Raises:
            UserError: the options, an input or the output cannot be used; nothing was written.
            RunError: the run failed; completed work is kept.
        """
        expected = read_manifest_file(self.options.like) if self.options.like else None
        paths = self.list_paths()
        notices = check_reachable_by_workers(self.beam_args, paths, self.options.dry_run)
        context = make_context(
            self.parser,
            self.beam_args,
            [path_option.path for path_option in paths],
            [path_option.path for path_option in paths if path_option.is_written and self.options.dry_run],
        )
        job = self.make_job(context)
        job_spec = self.make_job_spec(job)
        if self.options.dry_run:
            self._print_plan(self.complete_job(job, context), job_spec, context, notices)
            return OK
        self.print_notices(self.list_notices(job))
        prepare_run(context, job_spec)
        with self.claim_output(job):
            if self.is_up_to_date(job):
                print(f"{job.output_dir.path} is finished and {self.describe_inputs(job)}: nothing to do.")
                exit_code = OK
            else:
                exit_code = self._execute(self.complete_job(job, context), job_spec, context)
        if self.options.like and expected and exit_code == OK:
            return compare_with_manifest(job.storage, job.output_dir.path, expected, self.options.like)
        return exit_code

    @abstractmethod
    def list_paths(self) -> list[PathOption]:
        """Return the paths that the options name."""

    @abstractmethod
    def make_job(self, context: RunContext) -> JobT:
        """Find the inputs and return the job.

        Raises:
            UserError: an option, an input or the output cannot be used.
        """

    @abstractmethod
    def make_job_spec(self, job: JobT) -> JobSpec:
        """Return what a runner has to know of the job."""

    def complete_job(self, job: JobT, context: RunContext) -> JobT:
        """Return the job with what can be read only once the output is claimed, or in a dry run."""
        return job

    @abstractmethod
    def build(self, root: beam.Pipeline, job: JobT) -> None:
        """Build the graph."""

    @abstractmethod
    def plan(self, job: JobT) -> DryRunPlan:
        """Return the plan that a dry run prints."""

    def list_notices(self, job: JobT) -> Sequence[str]:
        """Return what a person should know before the job runs."""
        return ()

    def print_notices(self, notices: Iterable[str]) -> None:
        """Print notices, each on a line."""
        for notice in notices:
            print(escape_line(f"notice: {notice}"), file=sys.stderr)

    def claim_output(self, job: JobT) -> AbstractContextManager[None]:
        """Lock the output directory and mark it as started.

        Raises:
            OutputMismatchError: it cannot be written, or holds something else.
        """
        return claim_output(job.storage, job.output_dir, job.config, self.options.force)

    @abstractmethod
    def is_up_to_date(self, job: JobT) -> bool:
        """Return True if the output is complete and of the same inputs."""

    @abstractmethod
    def describe_inputs(self, job: JobT) -> str:
        """Return a clause that says that the inputs have not changed."""

    def reset_output(self, job: JobT) -> None:
        """Remove the manifest and what a killed run left, and write what workers read."""
        output_layout.reset(job.storage, job.output_dir)

    def count_workers(self, job: JobT) -> int:
        """Return the number of local processes: one for each item at most, as each imports Beam first."""
        return min(self.options.workers, max(1, self.make_job_spec(job).num_items))

    @abstractmethod
    def make_progress(self, job: JobT, progress: Progress) -> ProgressMonitor:
        """Return the monitor that shows the progress."""

    def describe_result(self, job: JobT, result: Mapping[str, Any]) -> list[str]:
        """Return lines on the result, published or not.

        Args:
            result: what the last step wrote to ``result_path``.
        """
        return []

    @abstractmethod
    def summarize(self, job: JobT, result: Mapping[str, Any]) -> list[str]:
        """Return lines on the published output."""

    def _print_plan(self, job: JobT, job_spec: JobSpec, context: RunContext, notices: Sequence[str]) -> None:
        from bioshards.pipelines.dry_run.cost import format_plan

        report = format_plan(
            self.plan(job),
            notices=notices,
            context=context,
            job_spec=job_spec,
            workers=self.options.workers,
            build=lambda root: self.build(root, job),
        )
        print(escape_controls(report))

    def _execute(self, job: JobT, job_spec: JobSpec, context: RunContext) -> int:
        self.reset_output(job)
        execute(
            lambda root: self.build(root, job),
            context,
            self.count_workers(job),
            job_spec,
            lambda progress: self.make_progress(job, progress),
        )
        result = job.storage.read_json(job.output_dir.result_path)
        for line in self.describe_result(job, result):
            print(line)
        if result["problem"]:
            print(escape_controls(f"beam: {result['problem']}"), file=sys.stderr)
            return NOT_PUBLISHED
        print("\n".join(self.summarize(job, result)))
        return OK
