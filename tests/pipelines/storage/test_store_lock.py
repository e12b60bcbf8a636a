"""Locks on object stores: runs that start together, lost answers, locks that are held, taken over or gone."""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from bioshards.corpus.errors import OutputMismatchError, RunError, TransientStorageError
from bioshards.corpus.output.output_layout import OutputDir, lock_output
from bioshards.corpus.storage import retry
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.retry import RetryPolicy
from bioshards.pipelines.storage import store_options
from bioshards.pipelines.storage.remote_storage import RemoteStorage
from bioshards.pipelines.storage.store_options import StoreOptions
from tests.support.cloud import lock_racers
from tests.support.cloud.object_store_proxy import LostResponse, ObjectStoreProxy, UploadReset
from tests.support.servers.server_faults import ServiceUnavailable

pytestmark = pytest.mark.thorough  # this file takes minutes


@pytest.fixture
def proxy(store_proxy: ObjectStoreProxy, monkeypatch: pytest.MonkeyPatch) -> ObjectStoreProxy:
    for name, value in store_proxy.store.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(retry, "STEP_RETRY_POLICY", RetryPolicy(max_attempts=4, initial_backoff=0))
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


def write_lock(storage: RemoteStorage, folder: str) -> None:
    """Write the lock of another run."""
    fields = {"host": "elsewhere", "pid": 1, "since": "2026-11-01 10:00:00 UTC", "token": "x"}
    storage.write_json(f"{folder}/lock.json", fields)


def read_lock(storage: RemoteStorage, folder: str) -> dict[str, object]:
    with storage.open(f"{folder}/lock.json") as file:
        fields: dict[str, object] = json.load(file)
    return fields


def test_of_many_runs_that_start_together_one_gets_the_lock(storage: RemoteStorage, folder: str) -> None:
    """100 rounds of two processes: 200 starts."""
    answers = lock_racers.race(folder, storage, 100)
    assert [sorted(answer) for answer in answers] == [["held", "refused"]] * 100


def test_of_200_runs_that_start_at_once_one_gets_the_lock(storage: RemoteStorage, folder: str) -> None:
    start = threading.Barrier(200)

    def try_to_lock(_: int) -> bool:
        start.wait()
        try:
            held.enter_context(storage.lock(f"{folder}/lock", folder))
        except OutputMismatchError:
            return False
        return True

    with contextlib.ExitStack() as held, ThreadPoolExecutor(200) as threads:
        assert sum(threads.map(try_to_lock, range(200))) == 1


@pytest.mark.parametrize(
    "fault", [LostResponse(), UploadReset(10), ServiceUnavailable()], ids=["lost", "reset", "busy"]
)
def test_failed_creation_is_repeated(
    storage: RemoteStorage, proxy: ObjectStoreProxy, folder: str, fault: LostResponse | UploadReset
) -> None:
    """Where the answer was lost, the lock exists: its token says that it is ours."""
    proxy.schedule_fault("PUT", "*/lock.json", fault)
    with storage.lock(f"{folder}/lock", folder):
        assert not proxy.pending_fault_count()
        storage.check_locks()
        with pytest.raises(
            OutputMismatchError, match=f"another run is writing {folder}: process {os.getpid()}"
        ):
            storage.lock(f"{folder}/lock", folder).__enter__()
    assert not storage.exists(f"{folder}/lock.json")


def test_store_that_fails_gives_no_lock(storage: RemoteStorage, proxy: ObjectStoreProxy, folder: str) -> None:
    proxy.schedule_fault("PUT", "*/lock.json", ServiceUnavailable(), times=None)
    with pytest.raises(TransientStorageError):
        storage.lock(f"{folder}/lock", folder).__enter__()


def test_lock_says_who_holds_it_since_when_and_how_to_go_on(storage: RemoteStorage, folder: str) -> None:
    output_dir = OutputDir(folder)
    with lock_output(storage, output_dir):
        written = read_lock(storage, output_dir.work_folder)
        assert (written["host"], written["pid"]) == (socket.gethostname(), os.getpid())
        with pytest.raises(OutputMismatchError, match=f"since {written['since']}.*--force"):
            lock_output(storage, output_dir).__enter__()
    assert not storage.exists(f"{output_dir.lock_path}.json")


@pytest.mark.parametrize(
    "body", [b"", b"[1]", b'{"host": 3}', b'{"host": "h", "pid": 1, "renewed_at": 2}', b"\xff", b"[" * 5000]
)
def test_lock_of_something_else_is_a_lock(storage: RemoteStorage, folder: str, body: bytes) -> None:
    with storage.write(f"{folder}/lock.json") as file:
        file.write(body)
    with pytest.raises(OutputMismatchError, match=r"process \d of .*--force"):
        storage.lock(f"{folder}/lock", folder).__enter__()
    with storage.lock(f"{folder}/lock", folder, is_forced=True):
        storage.check_locks()


def test_lock_of_a_killed_run_is_taken_over_by_force_only(storage: RemoteStorage, folder: str) -> None:
    write_lock(storage, folder)
    with pytest.raises(OutputMismatchError, match=r"process 1 of elsewhere, since 2026-11-01.*with --force"):
        storage.lock(f"{folder}/lock", folder).__enter__()
    with storage.lock(f"{folder}/lock", folder, is_forced=True):
        assert read_lock(storage, folder)["pid"] == os.getpid()
        storage.check_locks()
    assert not storage.exists(f"{folder}/lock.json")


def test_run_whose_lock_was_taken_over_says_so_and_leaves_it(storage: RemoteStorage, folder: str) -> None:
    """In its workers too, which have a copy of the storage."""
    with storage.lock(f"{folder}/lock", folder):
        write_lock(storage, folder)
        for each in (storage, pickle.loads(pickle.dumps(storage))):
            with pytest.raises(
                RunError, match=r"nothing more is written.*taken over.*process 1 of elsewhere"
            ):
                each.check_locks()
    assert read_lock(storage, folder)["token"] == "x"
    storage.check_locks()  # it holds none


def test_run_whose_lock_is_gone_says_so(storage: RemoteStorage, folder: str) -> None:
    with storage.lock(f"{folder}/lock", folder):
        storage.remove(f"{folder}/lock.json")
        with pytest.raises(RunError, match=rf"nothing more is written.*{folder} is gone"):
            storage.check_locks()


@pytest.mark.parametrize("kind", ["disk", "store"])
def test_job_on_a_cluster_outlives_its_lock(
    options: StoreOptions, folder: str, tmp_path: Path, kind: str
) -> None:
    """It goes on when the command that has started it is stopped; its name is the lock on Dataflow."""
    on_disk, folder = kind == "disk", str(tmp_path) if kind == "disk" else folder
    storage = LocalStorage(checks_locks=False) if on_disk else RemoteStorage(options, checks_locks=False)
    with storage.lock(f"{folder}/lock", folder):
        storage.remove(f"{folder}/lock" if on_disk else f"{folder}/lock.json")
        storage.check_locks()
