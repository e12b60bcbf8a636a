"""Execute a graph, on this machine or by the runner that is named, and print the progress."""

from __future__ import annotations

import atexit
import contextlib
import gc
import shutil
import traceback
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from bioshards.corpus import progress_notes
from bioshards.corpus.gc_pause import pause_gc
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.storage.locks import make_temporary_folder
from bioshards.corpus.ui.progress import Progress, RunProgress, StepBar
from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import job_status, settings, worker_package

if TYPE_CHECKING:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions

POLL_SECONDS: Final = 0.5
REMOTE_POLL_SECONDS: Final = 20
"""How often progress is looked for; in an object store each look is a listing that costs."""


def prepare_run(context: RunContext, job_spec: JobSpec, is_forced: bool) -> None:
    """Make Beam's options those of this run, and see that it can be one, before anything is begun.

    Args:
        is_forced: begin although a job service does not know what became of an earlier job.

    Raises:
        UsageError: workers cannot be given what they need; a job service is not named.
        OutputMismatchError: a job is writing this output elsewhere.
    """
    if context.is_on_dataflow:
        settings.set_defaults(context.beam_options, job_spec)
        worker_package.provide_package(context, job_spec)
        job_status.check_not_running(context, job_spec)
        return
    if context.has_runner or context.storage.exists(OutputDir(job_spec.output).job_path):
        from bioshards.pipelines.execution import job_service

        job_service.check_no_job_runs(context, job_spec, is_forced)
        if context.has_runner:
            job_service.prepare(context, job_spec)


def execute(
    build: Callable[[beam.Pipeline], None],
    context: RunContext,
    workers: int,
    job_spec: JobSpec,
    bars: Sequence[StepBar],
) -> None:
    """Run the graph that ``build`` makes to its end.

    Args:
        bars: the steps whose progress is shown.

    Raises:
        KeyboardInterrupt: Ctrl-C or a termination signal; with what to say if the job goes on elsewhere.
        Exception: what went wrong in a worker or a runner.
    """
    with pause_gc():  # to import Beam leaves no garbage, but 0.03 to 0.25 s would go into looking for it
        from apache_beam.options.pipeline_options import PipelineOptions

        from bioshards.pipelines.execution import local_runner

    # The collections at the end of the process would search all of Beam: 0.1 to 0.4 s.
    atexit.register(gc.freeze)
    beam_options = context.beam_options or PipelineOptions([])
    if not context.has_runner:
        local_runner.set_workers(beam_options, workers)
    runner = None if context.has_runner else local_runner.make_runner(beam_options)
    results: list[Any] = []

    def update_progress() -> None:
        with contextlib.suppress(OSError):  # a run is not ended because nobody can look at it
            progress.update()
            if job_id := job_status.get_job_id(results[0] if results else None):
                progress.report_stall(f"job {job_id} of the runner")

    def start() -> None:
        pipeline = make_pipeline(runner, beam_options)
        build(pipeline)
        results.append(pipeline.run())
        if job_id := job_status.get_job_id(results[0]):
            from bioshards.pipelines.execution import job_service

            job_service.record_job(context, job_spec, job_id)
        if context.is_on_dataflow:
            print(job_status.format_submitted_message(context, results[0]), file=terminal, flush=True)

    def wait() -> None:
        if not context.has_runner:
            start()  # runs the job to its end
        state = results[0].wait_until_finish()
        context.storage.remove(OutputDir(job_spec.output).job_path)
        if state in ("FAILED", "CANCELLED"):
            raise RuntimeError(f"the runner says the job {state.lower()}")

    is_remote = "://" in job_spec.output
    log_path = None if is_remote or workers == 1 else f"{job_spec.output}/.bioshards/workers.log"
    with local_runner.redirect_stderr(log_path) as terminal, contextlib.ExitStack() as stack:
        if runner:
            notes_folder = stack.enter_context(make_temporary_folder("progress"))
            stack.enter_context(progress_notes.write_notes(notes_folder))
        progress = RunProgress(bars, context.storage, Progress(terminal))
        try:
            if context.has_runner:
                start()  # in the main thread: Beam's own job servers handle signals
            local_runner.run_in_thread(
                wait, update_progress, REMOTE_POLL_SECONDS if is_remote else POLL_SECONDS
            )
        except Exception as error:
            if log_path:
                traceback.print_exc()
            if context.has_runner and not context.is_on_dataflow:
                from bioshards.pipelines.execution import job_service

                job_service.check_not_lost(context, job_spec, results[0] if results else None, error)
            raise job_status.error_from_runner(context, results[0] if results else None, error) from error
        except KeyboardInterrupt:
            if runner:
                local_runner.kill_workers()
            raise KeyboardInterrupt(
                job_status.format_detached_message(context, results[0] if results else None, job_spec)
            ) from None
        finally:
            progress.close()


def make_pipeline(runner: Any, options: PipelineOptions) -> beam.Pipeline:
    """Make an empty graph, without the temporary folder that Beam makes for transforms in Java and leaves."""
    import apache_beam as beam

    pipeline = beam.Pipeline(runner=runner, options=options)
    shutil.rmtree(pipeline.local_tempdir, ignore_errors=True)
    return pipeline
