"""``bioshards worker-pool``: start worker processes for ``--environment_type=EXTERNAL``.

Beam's own pool starts the ``python`` of the PATH, listens on all interfaces, and knows a worker by an id that
every TaskManager and every job count from 1, so that the end of one job stops the workers of another. Workers
of this pool are of its own interpreter, and each ends when its runner closes the connection to it.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence

import grpc
from apache_beam.portability.api import beam_fn_api_pb2, beam_fn_api_pb2_grpc
from apache_beam.utils.thread_pool_executor import shared_unbounded_instance

from bioshards.corpus.ui.options import OptionParser
from bioshards.pipelines.execution import sdk_harness


class WorkerPool(beam_fn_api_pb2_grpc.BeamFnExternalWorkerPoolServicer):
    """The service that runners ask for workers."""

    def __init__(self) -> None:
        self._workers: list[subprocess.Popen[bytes]] = []
        self._lock = threading.Lock()

    def StartWorker(
        self, request: beam_fn_api_pb2.StartWorkerRequest, context: grpc.ServicerContext
    ) -> beam_fn_api_pb2.StartWorkerResponse:
        """Start a worker process."""
        endpoint = request.control_endpoint.url
        arguments = (f"--id={request.worker_id}", f"--control_endpoint={endpoint}")
        try:
            worker = subprocess.Popen([sys.executable, "-m", sdk_harness.__name__, *arguments])
        except OSError as error:
            return beam_fn_api_pb2.StartWorkerResponse(
                error=f"the worker pool cannot start a worker: {error}"
            )
        with self._lock:
            self._workers = [each for each in self._workers if each.poll() is None] + [worker]
        print(f"worker {request.worker_id} of {endpoint} is process {worker.pid}", flush=True)
        return beam_fn_api_pb2.StartWorkerResponse()

    def StopWorker(
        self, request: beam_fn_api_pb2.StopWorkerRequest, context: grpc.ServicerContext
    ) -> beam_fn_api_pb2.StopWorkerResponse:
        """Do nothing: the id may be that of another job's worker, and the worker ends with its connection."""
        return beam_fn_api_pb2.StopWorkerResponse()

    def stop(self) -> None:
        """Stop all workers."""
        with self._lock:
            for worker in self._workers:
                worker.terminate()
            for worker in self._workers:
                worker.wait()


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes."""
    parser = OptionParser(prog="bioshards worker-pool", description="Start workers for a cluster's runner.")
    parser.add_argument("--port", type=int, default=50000, help="port to listen on, default 50000")
    parser.add_argument(
        "--host",
        default="localhost",
        help="address to listen on, default localhost. Whoever reaches it can run code: a firewall's job",
    )
    options = parser.parse_args(arguments)
    pool, server = WorkerPool(), grpc.server(shared_unbounded_instance())
    beam_fn_api_pb2_grpc.add_BeamFnExternalWorkerPoolServicer_to_server(pool, server)
    try:
        port = server.add_insecure_port(f"{options.host}:{options.port}")
    except RuntimeError:
        parser.error(f"{options.host}:{options.port} cannot be listened on: choose another --port")
    with contextlib.suppress(KeyboardInterrupt):
        server.start()
        print(f"worker pool at {options.host}:{port}", flush=True)
        server.wait_for_termination()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    server.stop(None)
    pool.stop()
    return 0
