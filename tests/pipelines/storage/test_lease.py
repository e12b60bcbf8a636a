"""Leases on object stores: two runs that start together, lost answers, renewal, expiry, release."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.errors import OutputMismatchError, TransientStorageError
from bioshards.corpus.storage import retry
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines.storage import lease, store_options
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from tests.support.cloud import lease_racers
from tests.support.cloud.object_store_proxy import LostResponse, ObjectStoreProxy, UploadReset
from tests.support.servers.server_faults import ServiceUnavailable, Stall


@pytest.fixture
def proxy(store_proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> ObjectStoreProxy:
    for name, value in store_proxy.store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(retry, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=4, initial_backoff=0))
    monkeypatch.setattr(lease, "LEASE_RENEWAL_SECONDS", 3600)
    monkeypatch.setattr(store_options, "STORE_INITIAL_BACKOFF_SECONDS", 0.01)
    monkeypatch.setattr(store_options, "STORE_MAX_RETRIES", 1)
    store_options.open_store.cache_clear()
    store_proxy.reset()
    return store_proxy


@pytest.fixture
def options(proxy: ObjectStoreProxy) -> StoreOptions:
    return StoreOptions.from_beam(PipelineOptions(proxy.store.options))


@pytest.fixture
def storage(options: StoreOptions) -> RemoteStorage:
    return RemoteStorage(options)


@pytest.fixture
def folder(proxy: ObjectStoreProxy, request: pytest.FixtureRequest) -> str:
    """The URL of a folder that only this test uses."""
    return f"{proxy.store.url}/{request.node.name.replace('[', '-').replace(']', '')}"


def write_lease(storage: RemoteStorage, path: str, **changes: object) -> None:
    """Write the lease of another run."""
    fields = {"host": "elsewhere", "pid": 1, "renewed_at": int(time.time()), "token": "x", **changes}
    storage.write_json(path, fields)


def test_of_two_runs_that_start_together_one_gets_the_lease(options: StoreOptions, folder: str) -> None:
    answers = lease_racers.race(folder, options, 20)
    assert [sorted(answer) for answer in answers] == [["held", "refused"]] * 20


def test_of_two_runs_that_find_an_expired_lease_one_gets_it(
    storage: RemoteStorage, options: StoreOptions, folder: str
) -> None:
    for number in range(10):
        write_lease(storage, f"{folder}/{number}.json", renewed_at=int(time.time()) - 200)
    answers = lease_racers.race(folder, options, 10)
    assert [sorted(answer) for answer in answers] == [["held", "refused"]] * 10


@pytest.mark.parametrize(
    "fault", [LostResponse(), UploadReset(10), ServiceUnavailable()], ids=["lost", "reset", "busy"]
)
def test_failed_creation_is_repeated(
    storage: RemoteStorage, proxy: ObjectStoreProxy, folder: str, fault: LostResponse | UploadReset
) -> None:
    """Where the answer was lost, the lease exists: its token says that it is ours."""
    proxy.schedule_fault("PUT", "*/lock.json", fault)
    with storage.lease(f"{folder}/lock.json", folder):
        assert not proxy.pending_fault_count()
        with pytest.raises(
            OutputMismatchError, match=f"another run is writing {folder}: process {os.getpid()}"
        ):
            storage.lease(f"{folder}/lock.json", folder).__enter__()
    assert not storage.exists(f"{folder}/lock.json")


def test_store_that_fails_gives_no_lease(
    storage: RemoteStorage, proxy: ObjectStoreProxy, folder: str
) -> None:
    proxy.schedule_fault("PUT", "*/lock.json", ServiceUnavailable(), times=None)
    with pytest.raises(TransientStorageError):
        storage.lease(f"{folder}/lock.json", folder).__enter__()


@pytest.mark.parametrize(
    ("host", "seconds_since_renewal", "is_acquired"),
    [
        ("elsewhere", 100, False),
        ("elsewhere", 130, True),
        ("elsewhere", -130, True),
        ("here", 0, True),
        ("ours", 0, True),
    ],
)
def test_lease_of_a_killed_run_expires(
    storage: RemoteStorage, folder: str, host: str, seconds_since_renewal: int, is_acquired: bool
) -> None:
    """A lease of another host expires; one of this host is free once its process has ended.

    The recorded process id may be our own, as in a container that is started again.
    """
    ended_process = subprocess.Popen(["true"])
    ended_process.wait()
    path = f"{folder}/lock.json"
    write_lease(
        storage,
        path,
        host=host if host == "elsewhere" else socket.gethostname(),
        pid=os.getpid() if host == "ours" else ended_process.pid,
        renewed_at=int(time.time()) - seconds_since_renewal,
    )
    if is_acquired:
        with storage.lease(path, folder):
            assert read_lease(storage, path)["pid"] == os.getpid()
    else:
        with pytest.raises(OutputMismatchError, match=r"if it was killed, rerun the command in \d+ sec"):
            storage.lease(path, folder).__enter__()
    assert storage.exists(path) is not is_acquired


def read_lease(storage: RemoteStorage, path: str) -> dict[str, object]:
    with storage.open(path) as file:
        fields: dict[str, object] = json.load(file)
    return fields


def wait_for_renewal(storage: RemoteStorage, path: str) -> None:
    before = read_lease(storage, path)["renewed_at"]
    deadline = time.monotonic() + 60
    while read_lease(storage, path)["renewed_at"] == before:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("fault", [LostResponse(), ServiceUnavailable()], ids=["lost", "busy"])
def test_lease_is_renewed_after_failed_renewals(
    storage: RemoteStorage,
    proxy: ObjectStoreProxy,
    folder: str,
    fault: LostResponse,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lease, "LEASE_RENEWAL_SECONDS", 0.1)
    path = f"{folder}/lock.json"
    with storage.lease(path, folder):
        proxy.schedule_fault("PUT", "*/lock.json", fault, times=3)
        wait_for_renewal(storage, path)
        while proxy.pending_fault_count():
            time.sleep(0.05)
        wait_for_renewal(storage, path)
    assert not storage.exists(path)


def test_run_whose_lease_was_taken_over_says_so_and_leaves_it(
    storage: RemoteStorage, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after a machine slept for more than two minutes."""
    monkeypatch.setattr(lease, "LEASE_RENEWAL_SECONDS", 0.1)
    path = f"{folder}/lock.json"

    def run_for_a_while() -> None:
        with storage.lease(path, folder):
            write_lease(storage, path)
            time.sleep(0.5)

    with pytest.raises(OutputMismatchError, match="process 1 of elsewhere"):
        run_for_a_while()
    assert read_lease(storage, path)["token"] == "x"


def test_releasing_a_lease_does_not_wait_for_a_stalled_store(
    storage: RemoteStorage, proxy: ObjectStoreProxy, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "RELEASE_TIMEOUT_SECONDS", 0.1)
    path = f"{folder}/lock.json"
    with storage.lease(path, folder):
        proxy.schedule_fault("GET", "*lock.json*", Stall(0, 4))
        started_at = time.monotonic()
    assert time.monotonic() - started_at < 3
    assert storage.exists(path)
    while storage.exists(path):  # until the stalled request completes
        assert time.monotonic() - started_at < 60
        time.sleep(0.05)
    assert not proxy.pending_fault_count()
