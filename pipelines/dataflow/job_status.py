"""Track a Dataflow job: submitted, running, detached, failed.

The job continues when this process ends, so the message of Ctrl-C says how to watch and how to stop it.
"""

from __future__ import annotations

import re
from typing import Any, Final

from bioshards.corpus.errors import (
    RESUME,
    BioshardsError,
    OutputMismatchError,
    RunError,
    WorkerError,
)
from bioshards.corpus.ui.command_line import describe_full_disk, is_disk_full
from bioshards.pipelines.context import JobSpec, RunContext


def check_not_running(context: RunContext, job_spec: JobSpec) -> None:
    """See that no job on Dataflow is writing this output, before anything of it is touched.

    Raises:
        OutputMismatchError: one is.
        RunError: Dataflow does not say.
    """
    if not context.is_on_dataflow:
        return
    from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud import dataflow

    options = context.get_all_beam_options()
    request = dataflow.ListJobsRequest(
        project_id=options["project"],
        location=options["region"],
        name=options["job_name"],
        filter=dataflow.ListJobsRequest.Filter.ACTIVE,
    )
    try:
        active_jobs = list(DataflowApplicationClient(context.beam_options)._jobs_client.list_jobs(request))
    except (GoogleAPIError, GoogleAuthError) as error:
        detail = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise RunError(
            f"Dataflow does not say whether a job is writing {job_spec.output} already ({detail}). Nothing "
            "was begun: check --project and --region, that Dataflow's API is enabled, and that you may list "
            "its jobs (roles/dataflow.developer), and run again"
        ) from error
    for job in active_jobs:
        if job.name == options["job_name"]:
            raise OutputMismatchError(
                f"job {job.id} is writing {job_spec.output} on Dataflow: {_make_console_url(options, job.id)}"
                f". Wait for it, or stop it with {_format_cancel_command(options, job.id)}, and run the same "
                "command again"
            )


def format_submitted_message(context: RunContext, pipeline_result: Any) -> str:
    """Return the message on a job that Dataflow has accepted."""
    options = context.get_all_beam_options()
    job_id = pipeline_result.job_id()
    return f"job {job_id} is on Dataflow as {options['job_name']}: {_make_console_url(options, job_id)}"


def format_detached_message(context: RunContext, pipeline_result: Any, job_spec: JobSpec) -> str:
    """Return the message on a job that goes on without this process; '' for a local runner.

    Args:
        pipeline_result: Beam's, of the job; None if it was not handed over yet.
    """
    completion_hint = f"It is finished when {job_spec.output}/manifest.json is there"
    if not context.is_on_dataflow:
        job_id = get_job_id(pipeline_result)
        if job_id is None or context.get_all_beam_options()["job_endpoint"] is None:
            return ""
        return (
            f"this command no longer waits; job {job_id} goes on if its runner is a cluster, which has its "
            f"own commands to watch and to stop it. {completion_hint}. If it was stopped, run the same "
            "command again to continue"
        )
    options = context.get_all_beam_options()
    if pipeline_result is None:
        return (
            "stopped while the job was handed over. See whether Dataflow has it: gcloud dataflow jobs list "
            f"--status=active --filter=name={options['job_name']} {_format_location(options)}. If not, run "
            "the same command again"
        )
    job_id = pipeline_result.job_id()
    return (
        f"this command no longer waits; job {job_id} GOES ON at Dataflow, and costs. {completion_hint}. "
        f"To watch it: {_make_console_url(options, job_id)}. To stop it: "
        f"{_format_cancel_command(options, job_id)}; what it has done is kept"
    )


_JAVA_FRAME: Final = re.compile(
    r"\s*(at )?[\w.$/<>]++\((\w++\.java(:\d++)?|Native Method|Unknown Source)\)\.?"
)
_FAILED_PREFIX: Final = "Dataflow pipeline failed. State: "
"""How what Beam's client raises of a job that has ended begins.  All else it raises when it cannot look: no
network for ten minutes, credentials that have expired."""


def get_job_id(pipeline_result: Any) -> str | None:
    """Return the id that a job service gave a job; None for other runners, or before it has the job."""
    job_id = getattr(pipeline_result, "_job_id", None)
    return None if job_id is None else str(job_id)


def error_from_runner(context: RunContext, pipeline_result: Any, error: Exception) -> Exception:
    """Return the error to raise for one that a runner has raised.

    Args:
        pipeline_result: Beam's, of the job; None if it was not handed over yet.
    """
    if context.is_on_dataflow and pipeline_result is not None:
        return _error_from_dataflow(context.get_all_beam_options(), pipeline_result.job_id(), error)
    if isinstance(error, BioshardsError):
        return error
    text = str(error)
    if worker_error := WorkerError.find(text):
        return worker_error
    if is_disk_full(text):
        return RunError(describe_full_disk())
    if "Channel closed" in text:  # Beam's word for a worker process that is gone
        return RunError(
            "a worker process died, perhaps because memory ran out. Completed work is kept; run the same "
            "command again to continue, with fewer --workers if memory is short"
        )
    return RunError(
        f"the run failed: {find_reason(text) or type(error).__name__}. {RESUME}. BIOSHARDS_TRACEBACK=1, or "
        ".bioshards/workers.log of a local output, shows where it failed"
    )


def _error_from_dataflow(options: dict[str, Any], job_id: str, error: Exception) -> RunError:
    """Return the error to raise for one that Beam's Dataflow client has raised."""
    console_url = _make_console_url(options, job_id)
    if not str(error).startswith(_FAILED_PREFIX):
        is_poll_dead = isinstance(error, AssertionError)  # the polling thread of Beam's client has died
        detail = "Dataflow did not answer" if is_poll_dead else str(error).partition("\n")[0]
        return RunError(
            f"this command has lost sight of job {job_id}, which GOES ON at Dataflow, and costs "
            f"({detail or type(error).__name__}). To watch it: {console_url}. When it has ended, run the "
            f"same command again to do what is left. To stop it: {_format_cancel_command(options, job_id)}"
        )
    state, _, text = str(error).partition("Error:\n")
    if "State: CANCELLED" in state:
        reason = "was cancelled"
    elif worker_error := WorkerError.find(text):
        reason = f"failed: {worker_error.detail.message}"
    elif "lost contact" in text or "attempted 4 times" in text:
        reason = "failed: its workers died, perhaps because memory ran out: give a larger --machine_type"
    elif text.strip() in ("", "None"):
        reason = "failed: it does not say why"
    else:
        reason = f"failed: {find_reason(text)}"
    return RunError(f"job {job_id} {reason.rstrip('.')}. {RESUME}. {console_url} shows where it failed")


def find_reason(text: str) -> str:
    """Return the line of a runner's text that says what failed.

    It is the details of a gRPC error, the last cause of a Java exception, and the last line of a Python
    traceback.
    """
    if match := re.search(r'details = "(.*?)"\s*(?:debug_error_string|>|$)', text, re.DOTALL):
        text = match[1]
    lines = [line for line in text.strip().splitlines() if line.strip()] or [""]
    causes = [line for line in lines if line.lstrip().startswith("Caused by: ")]
    messages = [line for line in lines if not _JAVA_FRAME.fullmatch(line)] or lines
    is_java = len(messages) < len(lines)
    reason = causes[-1].lstrip().removeprefix("Caused by: ") if causes else messages[0 if is_java else -1]
    return reason.partition(" [while running ")[0].strip().rstrip(".")


def _format_location(options: dict[str, Any]) -> str:
    return f"--region={options['region']} --project={options['project']}"


def _format_cancel_command(options: dict[str, Any], job_id: str) -> str:
    return f"gcloud dataflow jobs cancel {job_id} {_format_location(options)}"


def _make_console_url(options: dict[str, Any], job_id: str) -> str:
    """Where Google's console shows a job."""
    return f"https://console.cloud.google.com/dataflow/jobs/{options['region']}/{job_id}?project={options['project']}"
