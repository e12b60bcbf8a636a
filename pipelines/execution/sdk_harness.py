"""``bioshards-worker``: a worker process for runners that start it with the arguments of Beam's containers.

It is the boot command of ``--environment_type=PROCESS``, and what a worker pool starts. Nothing is
downloaded: bioshards is installed where it runs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import grpc
from apache_beam.portability.api import beam_provision_api_pb2, beam_provision_api_pb2_grpc
from apache_beam.runners.worker.sdk_worker import SdkHarness
from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a worker until its runner closes the connection."""
    parser = argparse.ArgumentParser(prog="bioshards-worker", description=__doc__)
    parser.add_argument("--id", required=True, help="id that the runner gives the worker")
    parser.add_argument("--control_endpoint", help="HOST:PORT that sends the work")
    parser.add_argument("--provision_endpoint", help="HOST:PORT that names it otherwise")
    options = parser.parse_known_args(arguments)[0]
    worker_id = options.id.strip("'")  # Prism 2.77 quotes it, as for a shell
    endpoint = options.control_endpoint
    if not endpoint and not options.provision_endpoint:
        parser.error(
            "give --control_endpoint or --provision_endpoint: a runner does so when it starts a worker"
        )
    endpoint = endpoint or _ask_control_endpoint(options.provision_endpoint, worker_id)
    SdkHarness(endpoint, worker_id=worker_id, state_cache_size=0, data_buffer_time_limit_ms=-1).run()
    return 0


def _ask_control_endpoint(provision_endpoint: str, worker_id: str) -> str:
    with grpc.insecure_channel(provision_endpoint) as channel:
        stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(
            grpc.intercept_channel(channel, WorkerIdInterceptor(worker_id))
        )
        info = stub.GetProvisionInfo(beam_provision_api_pb2.GetProvisionInfoRequest()).info
    return str(info.control_endpoint.url)


if __name__ == "__main__":
    sys.exit(main())
