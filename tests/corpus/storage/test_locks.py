"""The exclusive lock on a folder, and temporary folders that killed processes left."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pickle
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pytest

from bioshards.corpus.errors import OutputMismatchError, RunError
from bioshards.corpus.storage import locks
from bioshards.corpus.storage.local_storage import LocalStorage
from bioshards.corpus.storage.locks import make_temporary_folder, open_locked
from tests.support.cloud import lock_racers

HOLD = """\
import time
from bioshards.corpus.storage.locks import make_temporary_folder
with make_temporary_folder("test") as folder:
    print(folder, flush=True)
    time.sleep(60)
"""


def test_second_lock_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path, storage = str(tmp_path / "lock"), LocalStorage()
    umask = os.umask(0)
    with storage.lock(path, "OUT"):
        os.umask(umask)
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o666, "for all users of a shared folder"
        with pytest.raises(
            OutputMismatchError, match=f"is writing OUT: process {os.getpid()} of .*, since 2"
        ):
            storage.lock(path, "OUT").__enter__()
        assert os.listdir(tmp_path) == ["lock"]
    with pytest.raises(ZeroDivisionError), storage.lock(path, "OUT"):
        raise ZeroDivisionError
    with storage.lock(path, "OUT"):
        storage.check_locks()
    storage.check_locks()  # it holds none
    assert os.path.getsize(path) == 0, "the file says that nobody holds the lock"


@pytest.mark.parametrize(
    "content", [b"", b"[", b'{"pid": "x"}', b"[" * 50_000, b"\xff", b" " * (1 << 16) + b'{"pid": 7}']
)
def test_holder_that_wrote_something_else_is_unknown(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "lock"
    with open_locked(str(path)) as file:
        file.write(content)
        file.flush()
        message = "process 0 of an unknown host, since an unknown time"
        with pytest.raises(OutputMismatchError, match=message):
            LocalStorage().lock(str(path), "OUT").__enter__()


def test_killed_process_leaves_no_lock(tmp_path: Path) -> None:
    path, storage = str(tmp_path / "lock"), LocalStorage()
    code = (
        "import sys, time; from bioshards.corpus.storage.locks import lock_folder\n"
        "with lock_folder(sys.argv[1], ''): print('ready', flush=True), time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        assert child.stdout.readline() == "ready\n"
        with pytest.raises(OutputMismatchError):
            storage.lock(path, "OUT").__enter__()
        child.send_signal(signal.SIGKILL)
    with storage.lock(path, "OUT"):
        pass


NAMESPACE = ("unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--mount-proc")


@pytest.mark.parametrize("prefixes", [((), ()), (NAMESPACE, NAMESPACE)], ids=["one", "two"])
def test_of_two_runs_that_start_together_one_gets_the_lock(
    tmp_path: Path, prefixes: tuple[tuple[str, ...], ...]
) -> None:
    """100 rounds of two processes: 200 starts, in one and in two namespaces of process numbers."""
    if prefixes[0] and subprocess.run([*NAMESPACE, "true"], check=False, capture_output=True).returncode:
        pytest.skip("this system lets nobody make a namespace")
    answers = lock_racers.race(str(tmp_path), LocalStorage(), 100, prefixes)
    assert [sorted(answer) for answer in answers] == [["held", "refused"]] * 100


def test_file_that_its_holder_removes_is_made_again_for_who_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, flock, is_open = tmp_path / "lock", fcntl.flock, threading.Event()

    def note_and_lock(file: int, flags: int) -> None:
        is_open.set()
        flock(file, flags)

    def lock() -> bool:
        with open_locked(str(path)) as file:
            return os.path.samestat(os.fstat(file.fileno()), path.stat())

    with ThreadPoolExecutor() as pool, open_locked(str(path)):
        monkeypatch.setattr(fcntl, "flock", note_and_lock)
        waiting = pool.submit(lock)
        assert is_open.wait(60)
        with pytest.raises(TimeoutError):
            waiting.result(0.1)
        path.unlink()
    assert waiting.result()


@pytest.mark.parametrize("number", [errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def test_disk_without_locks_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """The file names a process that this container does not have, and another may: it is no lock to take."""

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    path = tmp_path / "lock"
    path.write_text(f"999999999\n{socket.gethostname()}\n")
    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OutputMismatchError, match=r"OUT is on a disk without file locks.*another disk"):
        LocalStorage().lock(str(path), "OUT").__enter__()


@pytest.mark.parametrize("is_taken", [True, False], ids=["taken", "gone"])
def test_storage_whose_lock_is_lost_writes_nothing_more(tmp_path: Path, is_taken: bool) -> None:
    """In its workers too, which have a copy of the storage; another storage is not concerned."""
    storage, path, kept = LocalStorage(), str(tmp_path / "lock"), tmp_path / "kept"
    kept.touch()
    with contextlib.ExitStack() as stack:
        stack.enter_context(storage.lock(path, "OUT"))
        partial = stack.enter_context(storage.open_resumable(f"{tmp_path}/fetched", "1"))
        os.remove(path)
        if is_taken:
            stack.enter_context(LocalStorage().lock(path, "OUT"))
        reason = f"another run has taken over.*process {os.getpid()} of" if is_taken else "OUT is gone"
        for each in (storage, pickle.loads(pickle.dumps(storage))):
            for write in (
                lambda each=each: each.write_json(f"{tmp_path}/new", 1),
                lambda each=each: each.remove(str(kept)),
                partial.commit,
            ):
                with pytest.raises(RunError, match=f"nothing more is written, as .*{reason}"):
                    write()
        assert {"fetched", "new"}.isdisjoint(os.listdir(tmp_path))
        assert kept.exists()
        LocalStorage().remove(str(kept))


def test_leftovers_of_killed_processes_alone_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    holders = [
        subprocess.Popen([sys.executable, "-c", HOLD], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    try:
        live, killed = [Path(holder.stdout.readline().strip()) for holder in holders if holder.stdout]
        holders[1].kill()
        holders[1].wait()
        for path in (live, killed):
            os.utime(path, (100, 100))
        monkeypatch.setattr(locks, "time", SimpleNamespace(time=lambda: 160.0))
        with make_temporary_folder("test") as folder:
            assert killed.is_dir()  # too young to be judged
        monkeypatch.setattr(locks, "time", SimpleNamespace(time=lambda: 160.5))
        with make_temporary_folder("test") as folder:
            assert set(tmp_path.iterdir()) == {live, Path(folder)}
        assert list(tmp_path.iterdir()) == [live]
    finally:
        holders[0].kill()
        for holder in holders:
            holder.communicate()


@pytest.mark.parametrize("owner", ["this user", "another user"])
def test_planted_pipe_hangs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str) -> None:
    """Another user can put anything under the temporary folder, under any name that is free."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / "bioshards-test-planted"
    planted.mkdir()
    os.mkfifo(planted / ".lock")
    os.mkfifo(tmp_path / "bioshards-test-pipe")
    (tmp_path / "bioshards-test-link").symlink_to("/")
    os.utime(planted, (0, 0))
    if owner == "another user":
        own_uid = os.getuid()
        monkeypatch.setattr(os, "getuid", lambda: own_uid + 1)
    with make_temporary_folder("test") as folder:
        assert os.path.isdir(folder)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    assert planted.exists() == (owner == "another user")
    assert os.path.lexists(tmp_path / "bioshards-test-pipe")
