"""The course of a run that goes on elsewhere: handed over, watched, left behind, failed.

Of such a run this process is only the one that waits.  A job on Dataflow ends there whether anybody waits or
not, so that Ctrl-C here must not sound as if it had been stopped.
"""

from __future__ import annotations

import errno
import os
from typing import Any, Final

from bioshards.corpus.errors import (
    DISK_FULL,
    RESUME,
    BioshardsError,
    OutputMismatchError,
    RunError,
    WorkerError,
)

from .dataflow import Task
from .starting import Where


class JobFailedError(RunError):
    """A job on Dataflow failed or was cancelled."""


class JobDetachedError(RunError):
    """The job could not be looked at any longer, and goes on; the message is for the person."""


class DataflowQueryError(RunError):
    """Dataflow could not be asked before a run begins; the message is for the person."""


def alone(place: Where, task: Task) -> None:
    """See that no job on Dataflow is writing this output, before anything of it is touched.

    Raises:
        OutputMismatchError: one is.
        DataflowQueryError: Dataflow does not say.
    """
    if not place.on_dataflow or not_waited_for(place.beams):
        return
    from apache_beam.runners.dataflow.internal.apiclient import DataflowApplicationClient
    from google.api_core.exceptions import GoogleAPIError
    from google.auth.exceptions import GoogleAuthError
    from google.cloud import dataflow

    options = place.beams.get_all_options()
    request = dataflow.ListJobsRequest(
        project_id=options["project"],
        location=options["region"],
        name=options["job_name"],
        filter=dataflow.ListJobsRequest.Filter.ACTIVE,
    )
    try:
        active = list(DataflowApplicationClient(place.beams)._jobs_client.list_jobs(request))
    except (GoogleAPIError, GoogleAuthError) as error:
        said = str(error).partition("\n")[0].rstrip(".") or type(error).__name__
        raise DataflowQueryError(
            f"Dataflow does not say whether a job is writing {task.output} already ({said}). Nothing was "
            f"begun: see that --project and --region are right, that Dataflow's API is enabled there, and "
            "that you may list its jobs (roles/dataflow.developer), and run again"
        ) from error
    for job in active:
        if job.name == options["job_name"]:
            raise OutputMismatchError(
                f"job {job.id} is writing {task.output} on Dataflow: {_page(options, job.id)}. Wait for it, "
                f"or stop it with {_cancel(options, job.id)}, and run the same command again"
            )


def not_waited_for(beams: Any) -> str:
    """What to say of a job that is only described, not handed to Dataflow; '' if it is."""
    options = beams.get_all_options()
    if path := options["template_location"]:
        at = path if "://" in path else f"gs://BUCKET/... (a copy of {path})"
        return (
            f"template: {path}\nNothing runs yet. To start it: "
            f"gcloud dataflow jobs run {options['job_name']} --gcs-location={at} {_there(options)}"
        )
    return ""


def handed_over(beams: Any, result: Any) -> str:
    """What to say of a job that Dataflow has taken."""
    options = beams.get_all_options()
    return f"job {result.job_id()} is on Dataflow as {options['job_name']}: {_page(options, result.job_id())}"


def left(place: Where, result: Any, task: Task) -> str:
    """What to say when nobody waits any longer; '' for a runner of this machine.

    Args:
        result: Beam's, of the job; None if it was not handed over yet.
    """
    finished = f"It is finished when {task.output}/manifest.json is there"
    if place.on_dataflow:
        options = place.beams.get_all_options()
        if result is None:
            return (
                "stopped while the job was made or handed over. See whether Dataflow has it: gcloud dataflow "
                f"jobs list --status=active --filter=name={options['job_name']} {_there(options)}. If not, "
                "run the same command again"
            )
        job = result.job_id()
        return (
            f"this command no longer waits; job {job} GOES ON at Dataflow, and costs. {finished}. To watch "
            f"it: {_page(options, job)}. To stop it: {_cancel(options, job)}; what it has done is kept"
        )
    job = getattr(result, "_job_id", None)
    if job is None:
        return ""
    return (
        f"this command no longer waits; job {job} goes on if its runner is a cluster, which has its own "
        f"commands to watch and to stop it. {finished}. If it was stopped, run the same command again to "
        "continue"
    )


_FAILED: Final = "Dataflow pipeline failed. State: "
"""How what Beam's client raises of a job that has ended begins.  All else it raises when it cannot look: no
network for ten minutes, credentials that have expired."""


def run_error(place: Where, result: Any, error: Exception) -> Exception:
    """Return the error to raise for one that a runner has raised.

    Args:
        result: Beam's, of the job; None if it was not handed over yet.
    """
    if place.on_dataflow and result is not None:
        return _job_error(place.beams.get_all_options(), result.job_id(), error)
    if isinstance(error, BioshardsError):
        return error
    text = str(error)
    if carried := WorkerError.find(text):
        return carried
    if os.strerror(errno.ENOSPC) in text:
        return RunError(DISK_FULL)
    if type(error).__name__ == "FutureTimeoutError":  # grpc's, which comes with Beam
        return RunError(
            "the runner's job service does not answer. Look at --job_endpoint, and whether it is running"
        )
    if "Channel closed" in text:  # Beam's word for a worker process that is gone
        return RunError(
            "a worker process died, perhaps because memory ran out. Completed work is kept; run the same "
            "command again to continue, with fewer --workers if memory is short"
        )
    return RunError(
        f"the run failed: {_last_line(text) or type(error).__name__}. {RESUME}. BIOSHARDS_TRACEBACK=1, or "
        ".bioshards/error.log of a local output, shows where it failed"
    )


def _job_error(options: dict[str, Any], job: str, error: Exception) -> RunError:
    """Return the error to raise for one that Beam's Dataflow client has raised."""
    if not str(error).startswith(_FAILED):
        is_silent = isinstance(error, AssertionError)  # the polling thread of Beam's client has died
        why = (
            "Dataflow did not answer"
            if is_silent
            else (str(error) or type(error).__name__).partition("\n")[0]
        )
        return JobDetachedError(
            f"this command has lost sight of job {job}, which GOES ON at Dataflow, and costs ({why}). "
            f"To watch it: {_page(options, job)}. When it has ended, run the same command again: it goes on "
            f"with what is left to do, if anything is. To stop it: {_cancel(options, job)}"
        )
    state, _, text = str(error).partition("Error:\n")
    if "State: CANCELLED" in state:
        why = "was cancelled"
    elif carried := WorkerError.find(text):
        why = f"failed: {carried.detail.message}"
    elif "lost contact" in text or "attempted 4 times" in text:
        why = (
            "failed: its workers ended before their time, perhaps because memory ran out: give a "
            "--machine_type with more for each vCPU"
        )
    elif text.strip() in ("", "None"):
        why = "failed: it does not say why"
    else:
        why = f"failed: {_last_line(text)}"
    return JobFailedError(
        f"job {job} {why.rstrip('.')}. {RESUME}. {_page(options, job)} shows where it failed"
    )


def _last_line(text: str) -> str:
    """Return the last line of a runner's text, where Python's tracebacks name the exception."""
    lines = text.strip().splitlines() or [""]
    return lines[-1].partition(" [while running ")[0].rstrip(".")


def _there(options: dict[str, Any]) -> str:
    return f"--region={options['region']} --project={options['project']}"


def _cancel(options: dict[str, Any], job: str) -> str:
    return f"gcloud dataflow jobs cancel {job} {_there(options)}"


def _page(options: dict[str, Any], job: str) -> str:
    """Where Google's console shows a job."""
    return f"https://console.cloud.google.com/dataflow/jobs/{options['region']}/{job}?project={options['project']}"
