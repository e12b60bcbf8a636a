"""Job services of Flink, Spark and Prism: what a run needs of them, jobs that outlive their command, errors.

A runner that has a job service of its own (``--runner=PrismRunner``) ends with this command. A service at
``--job_endpoint`` is a process of somebody else, and its cluster goes on with a job whose command has ended.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import sys
import threading
import time
import urllib.request
from pathlib import Path
from typing import Any, Final

import grpc
from apache_beam.portability.api import beam_job_api_pb2
from apache_beam.runners.portability.job_server import ExternalJobServer

from bioshards.corpus.errors import RESUME, LostServiceError, OutputMismatchError, RunError, UsageError, quote
from bioshards.corpus.manifest import ManifestError, read_any_version, utc_now
from bioshards.corpus.output.output_layout import OutputDir
from bioshards.corpus.output.work_files import read_report, write_report
from bioshards.pipelines.context import JobSpec, RunContext
from bioshards.pipelines.dataflow import job_status

TIMEOUT_SECONDS: Final = 15
"""How long a job service may take to answer: one that was started a moment ago is not ready yet."""
_POOL_TIMEOUT_SECONDS: Final = 5

_ENVIRONMENTS: Final = """\
EXTERNAL with --environment_config=HOST:PORT of bioshards worker-pool; PROCESS, which starts \
bioshards-worker on the cluster's machines; DOCKER with --environment_config=IMAGE of an image with \
bioshards; or LOOPBACK, workers in this process, for a service on this machine"""
_LOCAL_MASTERS: Final = r"\[(auto|local|collection)\]|local(\[.+\])?"
"""Values of --flink_master and --spark_master_url with which Beam starts an engine on this machine."""

_LOOPBACK: Final = ("localhost", "127.0.0.1", "[::1]")
_ENDED_STATES: Final = ("DONE", "FAILED", "CANCELLED", "STOPPED", "DRAINED", "UPDATED")


def prepare(context: RunContext, job_spec: JobSpec) -> None:
    """Check what a run needs of a job service, before anything is begun, and set what is not given.

    Raises:
        UsageError: the service, or where its workers run, is not named.
        RunError: the service, or a worker pool, does not answer.
        OutputMismatchError: a job is writing this output.
    """
    options = context.get_all_beam_options()
    endpoint = get_endpoint(context)
    if options["runner"] == "PortableRunner" and not options["job_endpoint"]:
        raise UsageError("--runner=PortableRunner needs --job_endpoint=HOST:PORT of the runner's job service")
    if endpoint:
        _connect(endpoint)
    _check_environment(context)
    _set_parallelism(context, job_spec)


def get_endpoint(context: RunContext) -> str | None:
    """Return the address of a job service that is not this command's own."""
    endpoint = context.get_all_beam_options()["job_endpoint"]
    return None if endpoint in (None, "embed") else str(endpoint)


def _connect(endpoint: str) -> Any:
    """Return the stub of a job service; Beam would wait for minutes, in silence.

    Raises:
        RunError: it does not answer.
    """
    try:
        return ExternalJobServer(endpoint, TIMEOUT_SECONDS).start()
    except grpc.FutureTimeoutError as error:
        raise RunError(
            f"the runner's job service at {endpoint} does not answer. Look at --job_endpoint, and whether it "
            "is running"
        ) from error


def _check_environment(context: RunContext) -> None:
    from apache_beam.options.pipeline_options import PortableOptions

    options = context.get_all_beam_options()
    kind, config = options["environment_type"], options["environment_config"]
    if kind is None and options["runner"] in ("PortableRunner", "FlinkRunner", "SparkRunner"):
        master = options["spark_master_url" if options["runner"] == "SparkRunner" else "flink_master"]
        has_default = get_endpoint(context) is None and re.fullmatch(_LOCAL_MASTERS, str(master))
        if not has_default:
            raise UsageError(
                f"--environment_type is not given: it says where the workers run. It is {_ENVIRONMENTS}"
            )
    if kind == "PROCESS" and not config and not options["environment_options"]:
        command = json.dumps({"command": str(Path(sys.executable).with_name("bioshards-worker"))})
        assert context.beam_options is not None
        context.beam_options.view_as(PortableOptions).environment_config = command
    if kind == "EXTERNAL" and config and (match := re.fullmatch(r"(\S+):(\d+)", config)):
        try:
            socket.create_connection((match[1], int(match[2])), _POOL_TIMEOUT_SECONDS).close()
        except OSError as error:
            message = (
                f"no worker pool answers at --environment_config={config} ({error.strerror or error}). Start "
                f"one: bioshards worker-pool --port {match[2]}"
            )
            if get_endpoint(context) is None or match[1] not in _LOOPBACK:
                raise RunError(message) from error
            # Each machine of a cluster means itself; this one need not be one of them.
            print(f"notice: on this machine {message} on each machine of the cluster", file=sys.stderr)


def _set_parallelism(context: RunContext, job_spec: JobSpec) -> None:
    """Set Flink's parallelism from its free slots and the number of items; say it if that is not known."""
    from apache_beam.options.pipeline_options import FlinkRunnerOptions

    options = context.get_all_beam_options()
    if options["runner"] not in ("PortableRunner", "FlinkRunner") or options["parallelism"] not in (None, -1):
        return
    master = str(options["flink_master"])
    slots = None if re.fullmatch(_LOCAL_MASTERS, master) else _count_free_slots(master)
    if slots:
        assert context.beam_options is not None
        parallelism = max(1, min(slots, job_spec.num_items))
        context.beam_options.view_as(FlinkRunnerOptions).parallelism = parallelism
        notice = (
            f"--parallelism={parallelism}: {master} has {slots} free slots, for {job_spec.num_items} items"
        )
    elif get_endpoint(context):
        notice = (
            "--parallelism is not given: a job on Flink uses one slot. Give it, or --flink_master=HOST:PORT "
            "to have it set from the free slots. Other runners ignore it"
        )
    else:
        return
    print(f"notice: {notice}", file=sys.stderr)


def _count_free_slots(master: str) -> int | None:
    """Return the number of free slots that Flink's REST interface names; None if it does not answer."""
    url = master if "://" in master else f"http://{master}"
    try:
        with urllib.request.urlopen(f"{url}/overview", timeout=_POOL_TIMEOUT_SECONDS) as response:
            return int(json.loads(response.read(1 << 20))["slots-available"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


# Jobs that outlive their command


def record_job(context: RunContext, job_spec: JobSpec, job_id: str) -> None:
    """Write beside the lock which job writes the output: the job may outlive the lock of this command."""
    if endpoint := get_endpoint(context):
        job = {"job_id": job_id, "job_endpoint": endpoint, "submitted_at": utc_now()}
        write_report(context.storage, OutputDir(job_spec.output).job_path, job)


def forget_job(context: RunContext, job_spec: JobSpec) -> None:
    """Remove the record of a job that has ended."""
    context.storage.remove(OutputDir(job_spec.output).job_path)


def check_no_job_runs(context: RunContext, job_spec: JobSpec, is_forced: bool) -> None:
    """Check that no job of an earlier command is writing the output.

    Args:
        is_forced: begin although its job service does not know what became of it.

    Raises:
        OutputMismatchError: one is, or may be.
    """
    output = OutputDir(job_spec.output)
    if not context.storage.exists(output.job_path):
        return
    job = read_report(context.storage, output.job_path, [])
    if job is None and not is_forced:
        raise OutputMismatchError(
            f"{output.job_path} is damaged or of an earlier version, and does not say which job may be "
            f"writing {job_spec.output}. Look in the cluster; if the job has ended, run the same command "
            "again with --force"
        )
    job_id, endpoint, submitted_at = (
        job[name] if job else "" for name in ("job_id", "job_endpoint", "submitted_at")
    )
    state = _ask_state(job_id, endpoint)
    has_ended = state in _ENDED_STATES
    if state and not has_ended:
        raise OutputMismatchError(
            f"job {quote(job_id)} at {quote(endpoint)} is writing {job_spec.output} ({state}). Wait for it, "
            "or cancel it with the runner's own commands, and run the same command again"
        )
    if not has_ended and not is_forced and not _has_published(context, output, submitted_at):
        raise OutputMismatchError(
            f"job {quote(job_id)} may be writing {job_spec.output}: its job service at {quote(endpoint)} "
            "does not answer, or does not know it. Look in the cluster; if the job has ended, run the same "
            "command again with --force"
        )
    forget_job(context, job_spec)


def _has_published(context: RunContext, output: OutputDir, submitted_at: str) -> bool:
    """Return True if the manifest was written after a job was submitted: an update finds an old one."""
    try:
        finished_at = read_any_version(context.storage, output.path)["run"]["finished_at"]
        return bool(submitted_at) and str(finished_at) >= submitted_at
    except (OSError, ManifestError, KeyError, TypeError):
        return False


def _ask_state(job_id: str, endpoint: str) -> str | None:
    """Return the state of a job, or None if its service does not say."""
    with contextlib.suppress(grpc.RpcError, RunError, ValueError):
        request = beam_job_api_pb2.GetJobStateRequest(job_id=job_id)
        event = _connect(endpoint).GetState(request, timeout=TIMEOUT_SECONDS)
        return str(beam_job_api_pb2.JobState.Enum.Name(event.state))
    return None


# Errors


def check_not_lost(context: RunContext, job_spec: JobSpec, pipeline_result: Any, error: Exception) -> None:
    """See what an error says of the job: it has ended and is forgotten, or its service is gone.

    Args:
        pipeline_result: Beam's, of the job; None if it was not handed over yet.

    Raises:
        LostServiceError: the job service is gone. A cluster may go on with the job.
    """
    job_id = job_status.get_job_id(pipeline_result)
    is_lost = isinstance(error, grpc.RpcError) and _code_of(error) == grpc.StatusCode.UNAVAILABLE
    if job_id is None or not is_lost:
        forget_job(context, job_spec)
        return
    threading.excepthook = lambda _: None  # Beam's threads miss the service, each with a traceback
    time.sleep(0.1)  # those that are being printed end in the log of the workers
    reason = job_status.find_reason(str(error))
    if endpoint := get_endpoint(context):
        raise LostServiceError(
            f"the job service at {endpoint} is gone ({reason}). A cluster may go on with job {job_id}: look "
            f"at it with its own commands. It is finished when {job_spec.output}/manifest.json is there; if "
            "not, run the same command again to continue"
        ) from error
    raise LostServiceError(f"the runner that this command started has ended ({reason}). {RESUME}") from error


def _code_of(error: grpc.RpcError) -> object:
    code = getattr(error, "code", None)
    return code() if callable(code) else None
